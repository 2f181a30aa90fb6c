"""One's own loop goes on as if nobody looked, whatever becomes of it. By a clock moved by hand."""

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from core.custom.watch import Watch
from core.measure.custom import op_counter
from tests.unit.own.loops import STEPS, hooks_now, on_top


@pytest.mark.parametrize("at", [0, 3, 40, 60, STEPS - 1])
def test_a_loop_that_breaks_leaves_nothing_behind(loop, at, capsys):
    hooks = hooks_now()
    for number, batch in enumerate(loop.watch()):
        loop.step(batch)
        if number == at:
            break
    assert on_top() is loop.costs
    assert hooks_now() == hooks
    assert bool(capsys.readouterr().out) is (at > 0)


@pytest.mark.parametrize("counting", [False, True])
@pytest.mark.parametrize("around", [False, True])
def test_a_loop_that_raises_leaves_nothing_behind_also_in_a_step_that_is_counted(loop, around, counting):
    hooks = hooks_now()
    seen = loop.watch(batches=None if around else 2 * STEPS, quiet=True)
    with pytest.raises(ValueError):
        raise_in(loop, seen, around=around, counting=counting)
    assert on_top() is loop.costs
    assert Watch._counting is None
    assert hooks_now() == hooks
    assert not loop.model._forward_pre_hooks


def raise_in(loop, seen, *, around, counting):
    """Train until a step is counted, or for three steps, and raise."""

    def train(batches):
        for number, batch in enumerate(batches):
            loop.step(batch)
            if on_top() is not loop.costs if counting else number == 3:
                raise ValueError

    if not around:
        train(seen)
    else:
        with seen:
            train([loop.batch] * 2 * STEPS)


def test_a_loop_within_a_loop_is_watched_too_and_one_counts_at_a_time(loop, costs):
    outer = loop.watch(batches=30, quiet=True)
    for batch in outer:
        inner = loop.watch(batches=20, quiet=True)
        for part in inner:
            loop.step(part)
        assert inner.steps.steps == 20
        loop.step(batch)
    assert outer.steps.steps == 30
    assert on_top() is costs


def test_a_mode_that_somebody_left_on_top_stays_and_ours_goes_when_it_has_gone(loop, costs):
    class Theirs(TorchDispatchMode):
        def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    theirs, left = Theirs(), False
    for number, batch in enumerate(loop.watch(quiet=True)):
        loop.step(batch)
        if isinstance(on_top(), op_counter.OperationCounter) and not left:
            theirs.__enter__()
            left = True
        if left and number == STEPS - 5:
            theirs.__exit__(None, None, None)
    assert on_top() is costs
