"""Who asks many machines, with machines that only say what they do."""

import dataclasses
from types import SimpleNamespace

import pytest

from core.errors import StoreError
from core.jobs.shared import asking, board
from core.jobs.shared.board import Question
from core.jobs.shared.launching import Nobody
from core.jobs.shared.members import Member
from tests.fakes import FakeClock
from tests.integration.scripted_worker import sweep

QUESTION = Question(sweep=sweep(), spread="everywhere")
ONE = Member(host="one", machine_id="a", cpu="Test CPU", devices=("Test CPU",))
TWO = dataclasses.replace(ONE, host="two", machine_id="b")


@pytest.fixture
def at(tmp_path, monkeypatch):
    """The place; time passes where who asks waits and nowhere else, however busy this machine is."""
    clock = FakeClock()
    monkeypatch.setattr(asking, "time", SimpleNamespace(monotonic=lambda: 1 + clock() / 1e9, sleep=clock.pass_s))
    return board.board_of(tmp_path / "store")


def ended(member, state="finished"):
    return dataclasses.replace(member, state=state, question=QUESTION.id)


def follow(at, *steps):
    """Ask, and let something happen at each look; returns what was seen at last, and all that was told."""
    told, happens = [], iter(steps)
    seen = asking.follow(at, QUESTION, told.append, lambda: next(happens, lambda: None)())
    return seen, told


def test_it_is_over_when_all_who_are_there_have_ended(at):
    seen, told = follow(
        at,
        lambda: at.tell(ONE),
        lambda: at.tell(TWO),
        lambda: at.tell(ended(ONE)),
        lambda: at.tell(ended(TWO, "failed")),
    )
    assert {host: member.state for host, member in seen.ended.items()} == {"one": "finished", "two": "failed"}
    assert len(told) >= 3
    assert at.questions() == []


def test_a_machine_that_is_gone_is_not_waited_for(at):
    seen, _ = follow(
        at, lambda: at.tell(ONE), lambda: at.tell(TWO), lambda: at.tell(ended(ONE)), lambda: at.leave("two")
    )
    assert set(seen.ended) == {"one"}


def test_ends_of_before_are_none_of_a_question_that_is_asked_anew(at):
    at.tell(ended(TWO))
    at.leave("two")
    seen, _ = follow(at, lambda: None, lambda: at.tell(ended(ONE)))
    assert set(seen.ended) == {"one"}


def test_a_question_that_is_open_goes_on_with_its_ends(at):
    at.ask(QUESTION)
    at.tell(ended(TWO))
    at.leave("two")
    seen, _ = follow(at)
    assert set(seen.ended) == {"two"}


def test_an_interrupt_takes_the_question_away(at):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow(at, lambda: at.tell(ONE), interrupt)
    assert at.questions() == []


@pytest.mark.slow
def test_while_the_place_cannot_be_reached_nothing_is_over(at, monkeypatch):
    names, away = at.place.names, []

    def look(*asked):
        if away:
            raise StoreError("The store cannot be reached.")
        return names(*asked)

    monkeypatch.setattr(at.place, "names", look)
    nothing = [lambda: None] * 5  # for longer than who asks waits for others to begin
    steps = [lambda: at.tell(ended(ONE)), lambda: away.append("the place"), *nothing, away.clear]
    seen, told = follow(at, *steps)
    assert "The store cannot be reached." in [look.failure for look in told]
    assert set(seen.ended) == {"one"}


class Bringing(Nobody):
    """Brings two machines, one a look."""

    machines = 2

    def __init__(self, at):
        self.todo = [lambda: at.tell(ONE), lambda: at.tell(TWO)]

    def keep(self):
        if self.todo:
            self.todo.pop(0)()


def test_machines_that_are_brought_are_waited_for_until_all_said_who_they_are(at):
    assert asking.gathered(at, Nobody()) == []
    assert {member.host for member in asking.gathered(at, Bringing(at))} == {"one", "two"}


def test_machines_that_never_come_are_waited_for_a_while_only(at):
    bringing = Bringing(at)
    bringing.todo.pop()
    assert [member.host for member in asking.gathered(at, bringing)] == ["one"]
