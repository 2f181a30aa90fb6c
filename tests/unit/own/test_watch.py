"""One's own loop, watched: what is seen of it, and that it goes on as if nobody looked. By a clock moved by hand."""

import json
import types

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

import core
from core.measure.own import floor, watching
from core.own.pace import MOST, WARM_UP
from core.own.watch import Watch
from tests.delayed import Costs

STEPS = 120


@pytest.fixture
def costs():
    """Operations that take no time, so that all of it is the test's."""
    with Costs(asynchronous=False, number_s=0.0, call_s=1e-5) as entered:
        yield entered


class Loop:
    """Whatever a test trains, ten milliseconds a step."""

    def __init__(self, costs, *, lr=0.1):
        self.costs = costs
        self.model = nn.Linear(2, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.batch = torch.ones(3, 2)

    def watch(self, *, batches=STEPS, model=True, **options):
        given = [self.batch] * batches if isinstance(batches, int) else batches
        options = {"clock": self.costs.clock, "drain": self.costs.drain, **options}
        return Watch(given, self.model if model else None, **options)

    def step(self, batch, *, host_s=0.01, update=True):
        loss = self.model(batch).sum()
        loss.backward()
        self.costs.clock.pass_s(host_s)
        if update:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss


@pytest.fixture
def loop(costs):
    return Loop(costs)


def kinds(seen):
    return [found.kind for found in seen.findings]


def test_the_batches_are_handed_on_and_the_host_is_named(loop, capsys):
    seen = loop.watch()
    for batch in seen:
        assert batch is loop.batch
        loop.step(batch)
    assert kinds(seen) == ["host"]
    assert seen.shares["host"] == pytest.approx(0.98, abs=0.02)
    assert (seen.steps.steps, len(seen.steps.operations), seen.steps.learns) == (STEPS, MOST, True)
    assert seen.document["updates"] == STEPS
    printed = capsys.readouterr().out
    assert (
        printed.splitlines()[0]
        == f"{STEPS} batches of {seen_duration(seen)} on CPU; {STEPS - WARM_UP - MOST} looked at, 8 counted"
    )
    assert "1. what the host does between PyTorch's operations takes 98 % of a step" in printed


def seen_duration(seen):
    return core.units.duration(seen.steps.step_s)


def test_a_slow_loader_is_named(loop, costs):
    def slow():
        for _ in range(STEPS):
            costs.clock.pass_s(0.03)
            yield loop.batch

    seen = loop.watch(batches=slow(), quiet=True)
    for batch in seen:
        loop.step(batch)
    assert kinds(seen) == ["loader", "host"]
    assert seen.shares["loader"] == pytest.approx(0.75, abs=0.02)


def test_around_a_loop_steps_are_those_of_the_optimizer_that_updates_the_model(loop, costs):
    other = torch.optim.SGD([nn.Parameter(torch.ones(1, requires_grad=True))], lr=0.1)
    with loop.watch(batches=None) as seen:
        for _ in range(STEPS):
            costs.clock.pass_s(0.03)
            other.step()
            loop.step(loop.batch)
    assert seen.steps.steps == STEPS
    assert kinds(seen) == ["before", "host"]
    assert seen.shares["before"] == pytest.approx(0.75, abs=0.02)
    assert sum(seen.shares.values()) == pytest.approx(1.0)


def test_several_batches_an_update_are_counted_together(loop, capsys):
    seen = loop.watch(batches=4 * STEPS)
    for number, batch in enumerate(seen):
        loop.step(batch, update=number % 4 == 3)
    assert seen.document["updates"] == STEPS
    assert seen.shares["host"] == pytest.approx(0.98, abs=0.02)
    assert set(seen.steps.operations) == {seen.steps.operations[0]}
    assert "4 an update" in capsys.readouterr().out


def test_without_an_optimizer_of_pytorch_that_is_said(loop, capsys):
    with torch.no_grad():
        for batch in loop.watch():
            loop.step(batch, update=False) if False else loop.model.weight.mul_(0.9)
            loop.costs.clock.pass_s(0.01)
    assert "No optimizer of PyTorch took a step" in capsys.readouterr().out


def test_around_a_loop_without_an_optimizer_there_are_no_steps_and_that_is_said_once(loop, capsys):
    seen = loop.watch(batches=None)
    for _ in range(2):
        with seen:
            loop.step(loop.batch, update=False)
    assert (seen.steps.steps, seen.findings) == (0, [])
    assert capsys.readouterr().out.count("No step was seen: no optimizer of PyTorch updated the model.") == 1
    with loop.watch(batches=None, quiet=True):
        loop.step(loop.batch, update=False)
    assert capsys.readouterr().out == ""


def test_of_no_batch_there_is_nothing_to_say(loop):
    assert str(loop.watch()) == "No batch was trained to its end, so there is nothing to say."


def test_a_progress_bar_around_it_knows_how_many_batches_there_are(loop):
    assert len(loop.watch()) == STEPS
    for unknown in (iter([loop.batch]), None):
        with pytest.raises(TypeError):
            len(loop.watch(batches=unknown))
        assert loop.watch(batches=unknown)


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


def hooks_now():
    return len(_global_optimizer_post_hooks)


def on_top():
    return _get_current_dispatch_mode()


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


SHORT = 1_000
"""Steps of a loop that are too short to be looked at one by one."""


def short_loop(loop, costs, *, around, ends_at=SHORT, long_each=SHORT):
    """Train steps of 0.1 ms after 0.3 ms for the batch; of every so many, one takes a hundred times as long."""
    hooked = []

    def slow():
        for number in range(SHORT):
            costs.clock.pass_s(3e-4)
            yield number

    def train(batches):
        for number in batches:
            hooked.append(bool(loop.model._forward_pre_hooks))
            loop.step(loop.batch, host_s=1e-2 if number % long_each == long_each - 1 else 1e-5)
            if number + 1 == ends_at < SHORT:
                break

    seen = loop.watch(batches=None if around else slow(), quiet=True)
    if not around:
        train(seen)
        return seen, hooked
    with seen:
        train(slow())
    return seen, hooked


@pytest.mark.parametrize("around", [False, True], ids=["for", "with"])
@pytest.mark.parametrize("ends_at", [SHORT, SHORT - 7, 60])
def test_short_steps_are_passed_by_and_all_are_told_with_the_share_of_what_came_before(loop, costs, around, ends_at):
    seen, hooked = short_loop(loop, costs, around=around, ends_at=ends_at)
    broken = ends_at < SHORT and not around
    assert seen.steps.steps == ends_at - broken
    assert 0 < seen.steps.looked < 0.6 * ends_at
    assert seen.shares["before" if around else "loader"] == pytest.approx(0.6, abs=0.07)
    assert seen.document["updates"] == ends_at
    if around:
        assert hooked.count(False) > 0.3 * ends_at


@pytest.mark.parametrize("around", [False, True], ids=["for", "with"])
def test_what_only_some_steps_do_is_said_with_their_share_of_the_time(loop, costs, around):
    seen, _ = short_loop(loop, costs, around=around, long_each=20)
    (uneven,) = [found.sentence for found in seen.findings if found.kind == "uneven"]
    assert "of its steps take several times as long as the usual one" in uneven
    often, beyond = seen.steps.uneven
    assert 0.01 < often < 0.1
    assert beyond > 0.5


def test_of_a_loop_that_raises_in_its_loader_those_that_were_passed_by_are_told(loop, costs):
    def failing():
        yield from [loop.batch] * 50
        raise OSError

    seen = loop.watch(batches=failing(), quiet=True)

    def train():
        for batch in seen:
            loop.step(batch, host_s=1e-5)

    with pytest.raises(OSError):
        train()
    assert seen.steps.steps == 50


def test_a_second_pass_goes_on_where_the_first_was_and_prints_no_more(loop, capsys):
    seen = loop.watch()
    for _ in range(3):
        for batch in seen:
            loop.step(batch)
    assert seen.steps.steps == 3 * STEPS
    assert capsys.readouterr().out.count("batches of") == 1


def test_a_pass_too_short_for_counting_says_so_and_a_later_one_prints_what_was_counted(loop, capsys):
    seen = loop.watch(batches=20)
    for _ in range(30):
        for batch in seen:
            loop.step(batch, host_s=0.001)
    printed = capsys.readouterr().out
    assert printed.count("batches of") == 2
    assert printed.count("Its operations were not counted") == 1


def test_what_grows_and_what_does_not_learn_is_said(costs):
    loop, kept = Loop(costs, lr=0.0), []
    seen = loop.watch(quiet=True)
    for batch in seen:
        kept.append(loop.step(batch))
    assert kinds(seen) == ["host", "learns", "grows"]


def test_what_is_compiled_is_clocked_alone(loop, monkeypatch):
    monkeypatch.setattr(watching, "compiles", lambda: True)
    seen = loop.watch(quiet=True)
    for batch in seen:
        loop.step(batch)
    assert seen.steps.operations == ()
    assert "compiled" in str(seen)


def test_a_mode_that_somebody_left_on_top_stays_and_ours_goes_when_it_has_gone(loop, costs):
    class Theirs(TorchDispatchMode):
        def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    theirs, left = Theirs(), False
    for number, batch in enumerate(loop.watch(quiet=True)):
        loop.step(batch)
        if isinstance(on_top(), watching.Watching) and not left:
            theirs.__enter__()
            left = True
        if left and number == STEPS - 5:
            theirs.__exit__(None, None, None)
    assert on_top() is costs


def test_a_read_is_placed_in_ones_own_file_or_cell(loop):
    namespace = {"loop": loop}
    cell = types.CodeType.replace(
        compile("loss = loop.step(loop.batch)\nloss.item()", "/tmp/ipykernel_7/42.py", "exec")
    )
    seen = loop.watch(quiet=True)
    for _ in seen:
        exec(cell, namespace)
    assert seen.steps.waits_at == "42.py:2"
    assert [found.sentence for found in seen.findings if found.kind == "waits"] == [
        "each step reads 1 value, for which the host would wait on a GPU, most often at 42.py:2."
    ]


def test_what_is_seen_is_plain_data(loop):
    seen = loop.watch(quiet=True)
    for batch in seen:
        loop.step(batch)
    read = json.loads(seen.json())
    assert read["findings"][0]["kind"] == "host"
    assert read["shares"] == seen.shares
    assert (read["device"], read["steps"]) == ("cpu", STEPS)


@pytest.mark.parametrize("around", [False, True], ids=["for", "with"])
def test_what_counting_needs_once_is_got_beforehand_and_is_no_part_of_a_step(loop, costs, monkeypatch, around):
    monkeypatch.setattr(floor, "rehearse", lambda: costs.clock.pass_s(1.0))
    seen = loop.watch(batches=None if around else STEPS)
    if around:
        with seen:
            for _ in range(5 * STEPS):
                loop.step(loop.batch)
    else:
        for batch in seen:
            loop.step(batch)
    assert seen.steps.operations
    assert seen.steps.step_s < 0.02
    assert max(seen.steps.between_s) < 0.02
