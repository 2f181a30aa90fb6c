"""Single steps of a custom script are clocked within the blocks, and what an accelerator would wait for is foreseen."""

import statistics

import pytest
import torch

from core.answer.custom_findings import custom_steps, list_findings
from core.errors import CustomTrainingFailed, SizeNotBuilt
from core.measure.custom.op_counter import OperationCounter
from core.measure.custom.training import CLOCK_NS, CLOCK_SHARE, MOST_STORED, CustomTraining, StepTimes
from core.measure.custom.user_code import UserCode
from tests import own_trainings

TENTH = """
import torch
rows = torch.randn(2_000, 50)
def evaluate(weight):
    with torch.no_grad():
        for _ in range(60):
            (rows @ weight).tanh().sum()
def build(size, device):
    weight, state = torch.zeros(50, size, requires_grad=True), {"steps": 0}
    def step():
        state["steps"] += 1
        if state["steps"] % 10 == 0:
            evaluate(weight)
        (rows[:10] @ weight).tanh().sum().backward()
        with torch.no_grad():
            weight.sub_(weight.grad, alpha=0.01)
        weight.grad = None
    return step
"""


def test_steps_that_now_and_then_take_many_times_as_long_are_found_with_their_line(own):
    (row,) = own(TENTH, pairs=6, budget_s=60)
    assert row.own_single_s
    found = list_findings(custom_steps(row))[0]
    assert (found.kind, row.own_heavy_at.split(":")[1]) == ("uneven", "7 in evaluate, an evaluation")
    assert found.share > 0.5
    assert "Leave evaluation out of build and step" in found.sentence


@pytest.mark.parametrize(("step_s", "together"), [(1.0, 1), (CLOCK_NS / 1e9 / CLOCK_SHARE / 3, 3), (0.0, 1)])
def test_very_short_steps_are_clocked_in_groups(tmp_path, step_s, together):
    steps = []
    training = CustomTraining(lambda: steps.append(1), UserCode(tmp_path / "mine.py"))
    training.clock_steps(step_s)
    training.advance(10)
    assert (len(steps), training.steps) == (10, 10)
    assert len(training.clocked_ns) == -(-10 // together)


def test_waiting_for_a_batch_is_no_part_of_a_single_step(tmp_path):
    order = []

    class Own:
        batches = (1, 2)

        def place(self, batch):
            order.append(f"place {batch}")
            return batch

        def step(self, batch):
            order.append(f"step {batch}")

    training = CustomTraining(Own(), UserCode(tmp_path / "mine.py"))
    training.clock_steps(1.0)
    training.advance(3)
    assert order == ["place 1", "step 1", "place 2", "step 2", "place 1", "step 1"]


def test_a_row_has_a_part_of_very_many_steps():
    times = StepTimes()
    for number in range(100_000):
        times.add(10**9 if number % 10 else 10**10)
    assert len(times.sample_s()) == MOST_STORED
    assert statistics.fmean(times.sample_s()) == pytest.approx(1.9, rel=0.2)


ROWS, MASK = torch.randn(10, 3, requires_grad=True), torch.arange(10) % 2 == 0


def put(value):
    torch.zeros(10, 3)[MASK] = value


@pytest.mark.parametrize(
    ("work", "places"),
    [
        (lambda: ROWS[MASK], {"here (boolean mask)": 1}),
        (lambda: ROWS[MASK].sum().backward(), {"here (boolean mask)": 2}),
        (lambda: put(torch.ones(5, 3)), {"here (boolean mask)": 1}),
        (lambda: put(0.0), {}),
        (lambda: ROWS[torch.tensor([1, 2])], {}),
        (lambda: ROWS[1:3], {}),
        (lambda: torch.where(MASK), {"here (nonzero)": 1}),
        (lambda: MASK.nonzero(), {"here (nonzero)": 1}),
        (lambda: torch.unique(MASK), {"here (unique)": 1}),
        (lambda: torch.unique(ROWS.detach(), dim=0), {"here (unique)": 1}),
        (lambda: ROWS.sum().item(), {"here": 1}),
    ],
)
def test_what_would_make_the_host_wait_for_a_gpu_is_foreseen_on_a_cpu(work, places):
    counter = OperationCounter(torch.device("cpu"), lambda: "here")
    with counter:
        work()
    assert dict(counter.places) == places


MASKED = """
import torch
def build(size, device):
    rows, weight = torch.randn(64, size), torch.zeros(size, requires_grad=True)
    def step():
        (rows[rows[:, 0] > 0] @ weight).sum().backward()
        weight.grad = None
    return step
"""


def test_a_boolean_mask_in_each_step_is_named_with_its_line(own):
    (row,) = own(MASKED, pairs=2, budget_s=60)
    (found,) = [each for each in list_findings(custom_steps(row)) if each.kind == "waits"]
    assert "each step reads values or sizes 1 time, most often at" in found.sentence
    assert ":6 (boolean mask); with tensors on a GPU, each read makes the host wait" in found.sentence


FIRST = """
import time, torch
def estimate_loss():
    time.sleep(2.5)
def build(size, device):
    weight, state = torch.zeros(50, size, requires_grad=True), {"steps": 0}
    def step():
        if not state["steps"]:
            estimate_loss()
        state["steps"] += 1
        weight.sum().backward()
        weight.grad = None
    return step
"""


def test_an_evaluation_at_the_first_step_is_named_with_its_line_and_what_to_do(own):
    (row,) = own(FIRST, pairs=2, budget_s=60)
    assert row.own_first_at.split(":")[1] == "4 in estimate_loss, an evaluation"
    (found,) = [each for each in list_findings(custom_steps(row)) if each.kind == "first"]
    assert "4 in estimate_loss, an evaluation. Leave evaluation out of build and step" in found.sentence


@pytest.mark.parametrize(
    ("changed", "error"),
    [({"build": "assert size % 3 == 0"}, SizeNotBuilt), ({"step": "self.no"}, SizeNotBuilt)],
    ids=["build", "first-step"],
)
def test_a_size_is_refused_by_a_build_or_a_first_step_that_fails(own, changed, error):
    with pytest.raises(error):
        own(own_trainings.changed(**changed))


def test_a_later_step_that_fails_refuses_no_size(own):
    later = "self.count = getattr(self, 'count', 0) + 1; assert self.count < 3"
    with pytest.raises(CustomTrainingFailed) as failed:
        own(own_trainings.changed(step=later))
    assert not isinstance(failed.value, SizeNotBuilt)
