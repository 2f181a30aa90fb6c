"""Which trainings can be kept alive at once."""

import dataclasses

import pytest

from core.measure import devices, preflight
from core.question.experiment import Contender, Experiment, Point

POINT = Point(dataset="signal", samples=1000, hidden_size=1024, depth=2, batch_size=100)
ONE = Experiment(point=POINT, contenders=(Contender(threads=1),))
TWO = dataclasses.replace(ONE, contenders=(Contender(threads=1), Contender(threads=2)))
TRAINING = POINT.network.memory_bytes(100)
SAMPLES = 1000 * 20 * 4
CARD = Experiment(point=POINT, contenders=(Contender(threads=1), Contender(device="cuda:0")))


@pytest.fixture
def free(monkeypatch):
    """Free bytes of each device, of which all may be taken."""
    found = {"cpu": 0, "cuda": 0}
    monkeypatch.setattr(preflight, "SHARE", 1.0)
    monkeypatch.setattr(devices, "open_device", lambda name: devices.Device(devices.torch.device(name)))
    monkeypatch.setattr(devices.Device, "free_bytes", lambda device: found[device.torch.type])
    return found


@pytest.mark.parametrize(
    ("new", "alive", "needed"),
    [
        ([ONE], [], TRAINING + SAMPLES),
        ([TWO], [], 2 * TRAINING + SAMPLES),
        ([TWO, TWO, TWO], [], 6 * TRAINING + SAMPLES),
        ([ONE], [TWO, ONE], 3 * TRAINING + SAMPLES),
    ],
    ids=["one", "two", "three points", "beside others"],
)
def test_networks_count_each_and_samples_once_and_of_those_alive_the_largest(free, new, alive, needed):
    free["cpu"] = needed
    assert preflight.can_fit_in_memory(new, alive)
    free["cpu"] = needed - 1
    assert not preflight.can_fit_in_memory(new, alive)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_each_device_must_have_room(free, device):
    free.update(cpu=TRAINING + SAMPLES, cuda=TRAINING + SAMPLES)
    assert preflight.can_fit_in_memory([CARD])
    free[device] -= 1
    assert not preflight.can_fit_in_memory([CARD])


def test_samples_that_do_not_stay_on_a_device_take_memory_of_the_host_alone(free):
    free.update(cpu=TRAINING + SAMPLES, cuda=TRAINING)
    moving = dataclasses.replace(CARD, point=dataclasses.replace(POINT, data_path="per_batch"))
    assert preflight.can_fit_in_memory([moving])


def test_a_part_of_what_is_free_is_left(free, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(devices.Device, "free_bytes", lambda _: TRAINING + SAMPLES)
    assert not preflight.can_fit_in_memory([ONE])


def test_so_many_processes_of_loaders_wait_at_once_and_no_more(free):
    free["cpu"] = 2**50
    loading = dataclasses.replace(ONE, point=dataclasses.replace(POINT, data_path="loader", loader_workers=8))
    assert preflight.can_fit_in_memory([loading], [loading])
    assert not preflight.can_fit_in_memory([loading, loading], [loading])
