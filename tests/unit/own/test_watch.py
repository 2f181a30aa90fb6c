"""One's own loop, watched: what is seen of it, and how that is told. By a clock moved by hand."""

import json
import types

import pytest
import torch
from torch import nn

from core import units
from core.custom.watch import MOST, WARM_UP
from core.measure.custom import op_counter
from tests.unit.own.loops import STEPS, Loop, kinds


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
    step = units.format_duration(seen.steps.step_s)
    said = f"{STEPS} batches of {step} on CPU; {STEPS - WARM_UP - MOST} timed, 8 counted"
    assert printed.splitlines()[0] == said
    assert "1. the host's work between PyTorch's operations takes 98 % of a step" in printed


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
        for _ in loop.watch():
            loop.model.weight.mul_(0.9)
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
    assert str(loop.watch()) == "No batch was completed, so there is nothing to report."


def test_a_progress_bar_around_it_knows_how_many_batches_there_are(loop):
    assert len(loop.watch()) == STEPS
    for unknown in (iter([loop.batch]), None):
        with pytest.raises(TypeError):
            len(loop.watch(batches=unknown))
        assert loop.watch(batches=unknown)


def test_what_grows_and_what_does_not_learn_is_said(costs):
    loop, kept = Loop(costs, lr=0.0), []
    seen = loop.watch(quiet=True)
    for batch in seen:
        kept.append(loop.step(batch))
    assert kinds(seen) == ["host", "learns", "grows"]


def test_what_is_compiled_is_clocked_alone(loop, monkeypatch):
    monkeypatch.setattr(op_counter, "compiles", lambda: True)
    seen = loop.watch(quiet=True)
    for batch in seen:
        loop.step(batch)
    assert seen.steps.operations == ()
    assert "compiled" in str(seen)


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
        "each step reads values or sizes 1 time, most often at 42.py:2; "
        "with tensors on a GPU, each read makes the host wait."
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
    monkeypatch.setattr(op_counter, "rehearse", lambda: costs.clock.pass_s(1.0))
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
