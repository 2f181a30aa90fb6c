import dataclasses

import pytest

from core.errors import DatasetUnavailable, DeviceUnavailable, InvalidValue, OutOfMemory
from core.measure import demonstrations as stage_door
from core.measure.demonstrations import run_demonstration
from core.measure.trial import Hooks
from core.question.demonstrations import Demonstration
from core.question.experiment import Contender
from core.results import environment
from tests.exhibited import DIGITS

MOVING = Demonstration(kind="moving", contenders=(Contender(threads=1),))


def test_an_exhibit_says_what_was_shown_where_and_when():
    shown, here = run_demonstration(MOVING, hooks=Hooks()), environment.read_environment()
    assert shown.demonstration == MOVING
    assert (shown.machine_id, shown.torch_version, shown.cpu_name) == (
        here.machine_id,
        here.torch_version,
        here.cpu_name,
    )
    (participant,) = shown.participants
    assert (participant.contender, participant.device, participant.kind, participant.threads) == (
        "cpu@1",
        "cpu",
        "cpu",
        1,
    )
    assert participant.startup_s > 0
    assert shown.measured_at.endswith("+00:00")


def test_two_exhibits_have_two_names():
    assert run_demonstration(MOVING, hooks=Hooks()).id != run_demonstration(MOVING, hooks=Hooks()).id


def test_nothing_is_shown_once_it_was_stopped():
    assert run_demonstration(MOVING, hooks=Hooks(should_stop=lambda: True)) is None


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(DeviceUnavailable, match="cuda:99"):
        run_demonstration(dataclasses.replace(MOVING, contenders=(Contender(device="cuda:99"),)), hooks=Hooks())


def test_more_threads_than_there_are_are_refused():
    with pytest.raises(InvalidValue, match=r"^threads must be at most"):
        run_demonstration(dataclasses.replace(MOVING, contenders=(Contender(threads=1_000),)), hooks=Hooks())


def test_a_data_set_that_is_not_there_is_said_to_be_missing(monkeypatch):
    def missing(*_, **__):
        raise DatasetUnavailable("MNIST is not on this machine.")

    monkeypatch.setattr("core.measure.datasets.load_dataset", missing)
    with pytest.raises(DatasetUnavailable):
        run_demonstration(Demonstration(kind="clock", point=DIGITS), hooks=Hooks())


def test_memory_that_runs_out_is_a_sentence_and_any_other_error_a_bug(monkeypatch):
    def fails(error):
        def lesson(*_):
            raise error

        monkeypatch.setitem(stage_door.LESSON_RUNNERS, "moving", lesson)
        run_demonstration(MOVING, hooks=Hooks())

    with pytest.raises(OutOfMemory, match="does not fit"):
        fails(RuntimeError("CUDA out of memory."))
    with pytest.raises(OutOfMemory, match="need 4"):
        fails(OutOfMemory("need 4"))
    with pytest.raises(ZeroDivisionError):
        fails(ZeroDivisionError())
