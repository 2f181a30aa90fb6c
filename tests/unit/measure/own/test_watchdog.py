"""Where a script is while it runs: it is reported, it is ended when its time is over, and its long steps are found."""

import re
import signal
import threading
import time
from pathlib import Path

import pytest

from core.errors import CustomTrainingFailed, OutOfTime
from core.measure.custom.user_code import UserCode
from core.measure.custom.watchdog import CAN_INTERRUPT, SHOWN_BY, Limits, LineSampler, Place, find_long_line, find_place

HERE = Path(__file__)


@pytest.fixture
def script():
    """This file as a script, and what was reported of it."""
    reports: list[str] = []
    before = signal.getsignal(signal.SIGUSR2) if CAN_INTERRUPT else None
    yield lambda seconds, **limits: UserCode(HERE, limits=Limits(seconds=seconds, report=reports.append, **limits))
    if before is not None:
        signal.signal(signal.SIGUSR2, before)


def evaluate(seconds):
    time.sleep(seconds)


def save_checkpoint(seconds):
    time.sleep(seconds)


def train(seconds):
    time.sleep(seconds)


def swallow(ended):
    while not ended.is_set():
        try:
            ended.wait(60)
        except BaseException:
            continue


@pytest.mark.skipif(not CAN_INTERRUPT, reason="no signal reaches a thread there")
@pytest.mark.parametrize(
    ("work", "said"),
    [
        (evaluate, "in evaluate, an evaluation. Leave evaluation out"),
        (save_checkpoint, "in save_checkpoint, a checkpoint. Leave saving out"),
        (train, "in train. Allow more time"),
    ],
)
def test_a_script_that_goes_on_for_too_long_is_interrupted_where_it_is(script, work, said):
    code, place = script(1.5), f"{HERE.name}:{work.__code__.co_firstlineno + 1}"
    code.stage = "the first step on 1 CPU thread"
    with pytest.raises(OutOfTime) as ended:
        code.call(lambda: code.call(lambda: work(600)))
    assert (
        f"reached its limit of 1.50 s in the first step on 1 CPU thread; most of it was spent at {place} {said}"
        in str(ended.value)
    )
    with pytest.raises(OutOfTime):
        code.call(lambda: pytest.fail("its time is over"))


@pytest.mark.skipif(not CAN_INTERRUPT, reason="no signal reaches a thread there")
def test_a_script_that_takes_no_notice_ends_its_process(script, monkeypatch):
    monkeypatch.setattr("core.measure.custom.watchdog.GRACE_S", 0.1)
    ended, said = threading.Event(), list[str]()

    def give_up(reason):
        said.append(reason)
        ended.set()

    with pytest.raises(OutOfTime):
        script(0.1, give_up=give_up).call(lambda: swallow(ended))
    assert "the script reached its limit of" in said[0].lower()


def test_what_a_script_raises_itself_is_its_own_error(script):
    with pytest.raises(CustomTrainingFailed, match="ZeroDivisionError"):
        script(60.0).call(lambda: 1 / 0)


def test_a_script_that_takes_long_is_reported_with_its_line(script, monkeypatch):
    monkeypatch.setattr("core.measure.custom.watchdog.SAMPLED_AFTER_S", 0.0)
    monkeypatch.setattr("core.measure.custom.watchdog.REPORTED_AFTER_S", 0.0)
    reported, told = threading.Event(), list[str]()

    def report(sentence):
        told.append(sentence)
        reported.set()

    code = UserCode(HERE, limits=Limits(report=report))
    code.stage = "build on 1 CPU thread"
    code.call(lambda: reported.wait(60))
    assert told[0].startswith("build on 1 CPU thread has run for ")
    assert "; it is at test_watchdog.py:" in told[0]
    assert "test_watchdog.py:" in str(code.stopwatch.find_longest_place())


def test_a_thread_without_a_line_of_the_script_is_at_no_place():
    assert find_place(threading.get_ident(), lambda file: False) == Place()


def test_long_steps_are_found_at_the_line_that_usual_steps_do_not_have():
    times_s = [1.0] * 9 + [50.0]
    samples = [(number, "own.py:3 in step") for number in range(9)] + [(9, "own.py:7 in evaluate")] * 40
    assert find_long_line(samples, times_s) == "own.py:7 in evaluate"
    assert find_long_line(samples[:12], times_s) == ""
    everywhere = [(number, "own.py:3 in step") for number in range(10) for _ in range(int(times_s[number]))]
    assert find_long_line(everywhere, times_s) == ""
    assert find_long_line([], []) == ""


def test_lines_are_sampled_for_as_long_as_it_is_entered():
    seen = threading.Event()
    with LineSampler(lambda file: file == __file__) as sampler:
        while not sampler.samples:
            seen.wait(0.01)
    assert not sampler.is_alive()
    assert sampler.samples[0][1].startswith("test_watchdog.py:")


def test_a_step_of_an_optimizer_is_no_compilation():
    files = ["torch/_dynamo/eval_frame.py", "torch/optim/sgd.py"]
    assert not any(re.search(dict(SHOWN_BY)["compilation"], file) for file in files)
    assert re.search(dict(SHOWN_BY)["compilation"], "torch/_dynamo/convert_frame.py")
