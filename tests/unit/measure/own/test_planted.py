"""A cause that was planted in a step is named first, with about the share that was planted: by a clock moved by hand.

The share is what the undisturbed step takes longer for it. `tests.benchmarks.planted_causes` does it with real time.
"""

import functools

import pytest
import torch

from core.answer.custom_findings import CustomSteps, list_findings
from core.measure.custom import op_counter
from tests.delayed import Costs

NO_CLOCK = Costs(asynchronous=False)
CPU, NUMBER = torch.device("cpu"), torch.zeros(())
STEPS = 6


class Planted:
    """A training with what is planted in it."""

    def __init__(self, costs, *, rows=100, dtype=torch.float32, loader_s=0.0, host_s=0.0, reads=0, small=0):
        self.costs, self.loader_s, self.host_s, self.reads, self.small = costs, loader_s, host_s, reads, small
        self.alone = functools.partial(Planted, NO_CLOCK, rows=rows, dtype=dtype)
        self.weight = torch.ones(4, 4, dtype=dtype, requires_grad=True)
        self.batch = torch.ones(rows, 4, dtype=dtype)

    def draw(self):
        self.costs.clock.pass_s(self.loader_s)

    def step(self):
        for _ in range(self.small):
            NUMBER.add_(0)
        loss = (self.batch @ self.weight).tanh().mean()
        loss.backward()
        with torch.no_grad():
            self.weight.sub_(self.weight.grad, alpha=0.01)
        self.weight.grad = None
        for _ in range(self.reads):
            loss.item()
        self.costs.clock.pass_s(self.host_s)


def undisturbed_s(costs, training):
    """Seconds of a step in a row of them, with its batch, from one's end to that of another."""
    ends_ns = []
    with costs:
        for _ in range(3 + STEPS):
            training.draw()
            training.step()
            ends_ns.append(max(costs.clock(), costs.device.busy_until_ns if costs.device else 0))
    return (ends_ns[-1] - ends_ns[2]) / 1e9 / STEPS


def seen(costs, training):
    """What is known of it, as a contender and one's own loop find out."""
    clock = costs.clock

    def step(one):
        training.draw()
        with one:
            one.begin()
            training.step()
            one.add_host_time()

    def fresh():
        return op_counter.OperationCounter(CPU, str, costs.drain, clock)

    step_s, busy_s = undisturbed_s(costs, training), None
    if costs.device and not training.reads:  # what is queued behind filler, where no read waits for it
        busy_s = undisturbed_s(Costs(asynchronous=True, number_s=costs.number_s, call_s=0.0), training.alone())
    with costs:
        counts = op_counter.count_step_operations(fresh, step, training.step, 4)
        least = op_counter.measure_dispatch_overhead(CPU, costs.drain, clock)
    return CustomSteps(
        on_host=costs.device is None,
        step_s=step_s,
        loader_s=training.loader_s,
        busy_s=busy_s,
        operations=counts.operations,
        waits=counts.waits,
        float64=counts.float64,
        kept=counts.kept,
        inside_s=counts.inside_s,
        float64_s=counts.float64_s,
        between_s=counts.between_s,
        floor_s=(least.call_s, least.inside_s, least.read_s),
    )


def planted_share(costs, **planted):
    """Share of an undisturbed step that it takes longer for what is planted."""
    return 1 - undisturbed_s(costs, Planted(costs)) / undisturbed_s(costs, Planted(costs, **planted))


BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["cpu", "delayed"])


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("cause", ["loader", "host"])
def test_work_of_the_host_is_named_with_what_a_step_takes_longer_for_it(cause, asynchronous):
    costs, planted = Costs(asynchronous=asynchronous), {f"{cause}_s": 0.005}
    found = list_findings(seen(costs, Planted(costs, **planted)))[0]
    assert found.kind == cause
    assert found.share == pytest.approx(planted_share(costs, **planted), abs=0.1)
    assert found.share > 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("reads", "asynchronous"), [(200, False), (1, True), (3, True)])
def test_reading_values_is_named_with_what_a_step_takes_longer_for_it(reads, asynchronous):
    """On an accelerator that is what is left to do when the host comes to wait, which it could have done meanwhile."""
    costs, before = Costs(asynchronous=asynchronous), {"small": 40 if asynchronous else 0}
    found = list_findings(seen(costs, Planted(costs, reads=reads, **before)))[0]
    without_s = undisturbed_s(costs, Planted(costs, **before))
    planted = 1 - without_s / undisturbed_s(costs, Planted(costs, reads=reads, **before))
    assert found.kind == "waits"
    assert found.share == pytest.approx(planted, abs=0.1)
    assert found.share > 0.3


@pytest.mark.slow
@BOTH
def test_float64_is_named_with_the_time_that_arithmetic_in_it_takes(asynchronous):
    costs, idle = (Costs(asynchronous=asynchronous, number_s=number_s) for number_s in (1e-7, 0.0))
    training = Planted(costs, rows=2_000, dtype=torch.float64)
    found = list_findings(seen(costs, training))[0]
    assert found.kind == "float64"
    assert found.share == pytest.approx(
        1 - undisturbed_s(idle, Planted(idle)) / undisturbed_s(costs, training), abs=0.1
    )


@pytest.mark.slow
def test_a_tiny_batch_is_named_with_what_a_step_takes_that_has_one_row():
    costs = Costs(asynchronous=False)
    least_s, training = undisturbed_s(costs, Planted(costs, rows=1)), Planted(costs, rows=4)
    found = list_findings(seen(costs, training))[0]
    assert found.kind == "small"
    assert found.share == pytest.approx(least_s / undisturbed_s(costs, training), abs=0.1)


@pytest.mark.slow
def test_a_tiny_batch_on_an_accelerator_is_named_with_what_a_step_saves_that_is_launched_for_nothing():
    costs, free = Costs(asynchronous=True), Costs(asynchronous=True, call_s=0.0)
    found = list_findings(seen(costs, Planted(costs, rows=2)))[0]
    planted = 1 - undisturbed_s(free, Planted(free, rows=2)) / undisturbed_s(costs, Planted(costs, rows=2))
    assert found.kind == "small"
    assert found.share == pytest.approx(planted, abs=0.1)


@pytest.mark.slow
def test_what_is_hidden_behind_a_busy_device_is_not_named():
    costs = Costs(asynchronous=True, number_s=1e-6)
    assert planted_share(costs, host_s=1e-3) == pytest.approx(0.0, abs=0.02)
    assert list_findings(seen(costs, Planted(costs, host_s=1e-3))) == []
