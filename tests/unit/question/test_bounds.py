"""What is refused before a step of it is run, because nobody could stop it or it would fill the memory."""

import pytest
import torch

from core.errors import NotAllowed, TooSlow
from core.measure import preflight
from core.measure.devices import Device
from core.measure.preflight import FIRST_STEPS
from core.question.experiment import Contender, Experiment, Point
from core.question.policy import Policy, RunBudget
from core.question.sweep import Axis, Sweep

CPU = Device(torch.device("cpu"))
HUGE = Point(dataset="signal", samples=50_000, hidden_size=4096, depth=6, batch_size=16_384)


@pytest.fixture
def speed(monkeypatch):
    """Operations a second that the device is said to do, and how often it was asked."""
    asked = []

    def product_flops(device):
        asked.append(device)
        return 1e11

    monkeypatch.setattr(preflight, "product_flops", product_flops)
    return asked


def test_a_training_whose_first_block_takes_many_budgets_is_refused_before_it_begins(speed):
    with pytest.raises(TooSlow) as caught:
        preflight.check_speed(HUGE.network.flops_per_step(HUGE.batch_size), 1.0, CPU, "cpu@2")
    assert str(caught.value) == (
        "Nothing was measured: one step on cpu@2 takes at least 1 min 23 s, 9 are needed before the first block is "
        "timed, and the budget is 1.00 s. Choose a smaller model or batch, or a longer budget."
    )
    assert speed == [CPU]


def test_what_any_device_does_in_time_needs_no_look_at_this_one(speed):
    preflight.check_speed(10**8, 1.0, CPU, "cpu")
    assert speed == []


def test_what_this_device_does_in_time_is_let_through(speed):
    preflight.check_speed(int(1e11 * preflight.PATIENCE / FIRST_STEPS), 1.0, CPU, "cpu")
    assert speed == [CPU]
    with pytest.raises(TooSlow):
        preflight.check_speed(int(1.01e11 * preflight.PATIENCE / FIRST_STEPS), 1.0, CPU, "cpu")


def test_the_speed_of_a_device_is_that_of_a_real_product():
    found = preflight.product_flops(CPU)
    assert 1e8 < found < 1e14, "operations a second of a processor"
    assert preflight.product_flops(CPU) == found


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (
            {"operations": 10**12},
            "This run needs 8.25 TFLOP a step, but a run may need 1.00 TFLOP a step on this host.",
        ),
        (
            {"memory_bytes": 10**9},
            r"This run needs .* GiB of memory, but a run may need 954 MiB of memory on this host.",
        ),
        ({"parameters": 10**6}, "This run has .* parameters, but a run may have 1,000,000 parameters on this host."),
    ],
)
@pytest.mark.parametrize("swept", [False, True])
def test_a_host_bounds_a_run_by_operations_and_memory(budget, said, swept):
    contenders = (Contender(), Contender(threads=1))
    asked = (
        Sweep(point=HUGE, axes=(Axis(name="batch_size", values=(16, 16_384)),), contenders=contenders)
        if swept
        else Experiment(point=HUGE, contenders=contenders)
    )
    Policy().check(asked)
    with pytest.raises(NotAllowed, match=said):
        Policy(run=RunBudget(**budget)).check(asked)


def test_the_samples_count_as_memory():
    few, many = (
        Experiment(point=Point(dataset="signal", hidden_size=1, batch_size=1, samples=samples))
        for samples in (1_000, 1_000_000)
    )
    host = Policy(run=RunBudget(memory_bytes=10**6))
    host.check(few)
    with pytest.raises(NotAllowed, match="MiB of memory"):
        host.check(many)
