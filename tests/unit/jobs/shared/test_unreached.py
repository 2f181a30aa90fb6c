"""A machine at work for others while the place cannot be reached, or is behind."""

from core.errors import NotReached, StoreError
from core.jobs.shared import presence
from core.jobs.shared.members import ENDED
from tests.unit.jobs.shared.conftest import asked_of


def test_while_the_place_cannot_be_reached_it_says_so_and_goes_on(at, working, monkeypatch):
    def fail(*_):
        raise StoreError("The store cannot be reached.")

    with monkeypatch.context() as patch:
        patch.setattr(at.place, "names", fail)
        working.work(for_s=0.01)
    assert [(said.state, said.message) for said in working.told] == [("waiting", "The store cannot be reached.")]
    question = asked_of("everywhere", sizes=(8,))
    at.ask(question)
    working.work(for_s=60.0, only=question.id)
    assert len(working.asked) == 1


def test_a_place_that_cannot_be_reached_for_a_moment_fails_nothing(at, working, monkeypatch):
    question, held = asked_of("shared", sizes=(8, 16)), at.held
    at.ask(question)
    troubles = iter([StoreError("The store cannot be reached."), StoreError("The store cannot be reached.")])

    def fail(question_id):
        for error in troubles:
            raise error
        return held(question_id)

    monkeypatch.setattr(at, "held", fail)
    working.work(for_s=60.0, only=question.id)
    assert ("waiting", "The store cannot be reached.") in [(said.state, said.message) for said in working.told]
    assert [end.state for end in at.ends(question.id).values()] == ["finished"]


def test_a_question_that_cannot_be_begun_as_the_place_says_nothing_is_begun_again(at, working, monkeypatch):
    question, measured = asked_of("everywhere", sizes=(8,)), working._measured
    at.ask(question)
    troubles = iter([NotReached("The store cannot be reached."), NotReached("The store cannot be reached.")])

    def fail(*asked):
        for error in troubles:
            raise error
        return measured(*asked)

    monkeypatch.setattr(working, "_measured", fail)
    working.work(for_s=60.0, only=question.id)
    states = [(said.state, said.message) for said in working.told]
    assert states.count(("waiting", "The store cannot be reached.")) == 2
    assert "failed" not in dict(states)
    assert [end.state for end in at.ends(question.id).values()] == ["finished"]


def test_after_the_place_could_not_be_reached_nothing_is_taken_before_others_could_say_what_they_hold(
    at, working, monkeypatch
):
    monkeypatch.setattr(presence, "SETTLE_S", 1000.0)
    question = asked_of("shared", sizes=(8, 16))
    at.ask(question)
    with working._presence.reaching():
        raise StoreError("The store cannot be reached.")
    working.work(for_s=0.05)
    assert working.asked == []
    assert ("waiting", "The store cannot be reached.") in [(said.state, said.message) for said in working.told]


def test_an_end_that_did_not_reach_the_place_is_told_as_soon_as_it_can_be(at, working, monkeypatch):
    tell, troubles = at.tell, ["The store cannot be reached."]

    def fail_once_at_the_end(member):
        if member.state in ENDED and troubles:
            raise StoreError(troubles.pop())
        tell(member)

    monkeypatch.setattr(at, "tell", fail_once_at_the_end)
    question = asked_of("everywhere", sizes=(8,))
    at.ask(question)
    working._presence.note(question=question.id)
    working._presence.say("stopped")
    assert at.ends(question.id) == {}
    working._presence.leave()
    assert [end.state for end in at.ends(question.id).values()] == ["stopped"]
    assert at.members() == []
