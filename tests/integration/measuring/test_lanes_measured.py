"""Real measurements in lanes on the CPU; compiling takes seconds, so there are few."""

import pytest
import torch

from core.answer import causes, speedup
from core.errors import LaneUnavailable
from core.measure import contender, devices
from core.measure.trial import Hooks, measure
from core.question.experiment import Contender, Experiment, Point
from core.question.lanes import Lane
from core.results import environment
from core.results.schema import Trial

compiles = pytest.mark.skipif(
    "compiled" in devices.refusals("cpu"), reason="there is no C++ compiler for torch.compile"
)
POINT = Point(samples=300, hidden_size=8, depth=1, batch_size=50, epochs=9)
"""54 steps: calls of four leave two over."""


def run(*contenders: str, point: Point = POINT, pairs: int = 0, **hooks: object) -> list[Trial]:
    asked = Experiment(point=point, contenders=tuple(map(Contender.parse, contenders)), pairs=pairs)
    return measure(asked, hooks=Hooks(**hooks))


@compiles
def test_compiled_steps_are_the_same_training_and_their_compilation_is_start_up():
    plain, compiled = run("cpu@1", "cpu@1+compiled4")
    assert (plain.outcome, compiled.outcome) == ("completed", "completed")
    assert compiled.loss == pytest.approx(plain.loss, rel=1e-5)
    assert sum(a != b for a, b in zip(plain.predictions, compiled.predictions, strict=True)) <= 1
    assert compiled.startup_compile_s > compiled.startup_first_step_s > 0
    assert plain.startup_compile_s == 0
    assert all(steps % 4 == 0 for steps in (*compiled.block_steps, compiled.lead_in_steps, *compiled.warmup_steps))
    assert (len(compiled.lane_loss), len(compiled.reference_loss), plain.lane_loss) == (20, 20, ())
    assert speedup.check_lane(compiled).within
    assert compiled.breakdown_forward_s == ()
    assert "cannot be timed separately: 1 CPU thread (compiled, 4 steps a call)" in causes.difference_cause(
        plain, compiled
    )
    assert speedup.speedup(plain, compiled).pairs == 3


@compiles
@pytest.mark.skipif(environment.usable_cores() < 2, reason="needs two usable cores")
def test_each_thread_count_has_compiled_code_of_its_own_and_blocks_compile_nothing():
    from torch._dynamo.utils import counters

    compiled: list[int] = []

    def count(_: object) -> None:
        compiled.append(counters["stats"]["unique_graphs"])

    point = Point(**{**vars(POINT), "epochs": 8})
    one, best = run("cpu@1+compiled2", "cpu+compiled2", point=point, pairs=2, progress=count)
    assert one.threads == 1
    assert best.threads_tried == (1, environment.usable_cores())
    assert best.startup_compile_s > 0
    assert len(set(compiled[compiled.index(max(compiled)) :])) == 1
    assert max(compiled) - compiled[0] <= 3  # one thread; all threads and one thread


@pytest.mark.parametrize("words", ["fused", "foreach", "micro10", "bf16"])
def test_eager_lanes_are_trained_taken_apart_and_checked(words):
    (row,) = run(f"cpu@1+{words}")
    assert row.outcome == "completed"
    assert Lane.from_row(row) == Lane.parse([words])
    assert row.contender == f"cpu@1+{words}"
    assert min(map(len, (row.breakdown_forward_s, row.breakdown_backward_s, row.breakdown_optimizer_s))) > 0
    found = speedup.check_lane(row)
    assert found.steps == 20
    if words != "bf16":  # whose mathematics is another
        assert found.within


def test_lanes_share_batches_and_weights_with_the_plain_one():
    plain, fused = run("cpu@1", "cpu@1+fused")
    assert fused.loss == pytest.approx(plain.loss, rel=1e-5)
    assert fused.predictions == plain.predictions
    assert not plain.reference_loss


@pytest.mark.parametrize("words", ["graph10", "tf32", "graph+fused"])
def test_a_lane_that_this_device_has_not_is_refused_before_anything_runs(words, monkeypatch):
    monkeypatch.setattr(contender.MeasuredContender, "start", lambda _: pytest.fail("it was started"))
    with pytest.raises(LaneUnavailable, match=r"Training on the CPU \(.*\) is not possible: .*GPUs"):
        run("cpu@1", f"cpu+{words}")


def test_precision_of_one_contender_does_not_leak_into_the_others():
    run("cpu@1+bf16", "cpu@1", pairs=2)
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.is_autocast_enabled("cpu")
