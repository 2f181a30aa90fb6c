"""Steps too short to be looked at one by one, and passes too short for counting. By a clock moved by hand."""

import pytest

from tests.unit.own.loops import STEPS

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
    assert " times as long as a usual one" in uneven
    often, beyond, _ = seen.steps.uneven
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
