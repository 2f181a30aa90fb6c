"""A machine at work for others, whose measuring process is a double that only writes rows."""

import dataclasses

import pytest

from core.errors import StoreError
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.shared import board, member, presence
from core.jobs.shared.board import Question
from core.jobs.shared.member import Working
from core.question.experiment import Experiment
from core.results import environment
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep

FOUND = Machine(environment=environment.read(), devices=scripted_worker.DEVICES)


@pytest.fixture
def at(store, monkeypatch):
    monkeypatch.setattr(member, "LOOK_S", 0.001)
    monkeypatch.setattr(member, "_WATCH_S", 0.001)
    monkeypatch.setattr(presence, "SETTLE_S", -presence.TELL_S)
    return board.board_of(store.folder)


@pytest.fixture
def working(at, store, queue, monkeypatch):
    """A machine that measures what it is asked at once; `asked` has what it was asked, `told` what it said."""
    made = Working(at, store, queue, FOUND, lambda said: made.told.append(said))
    made.told, made.asked, made.failing = [], [], {}

    def measured(work, asked, lease):
        made.asked.append(asked)
        experiments = [asked] if isinstance(asked, Experiment) else [asked.experiment(point) for point in asked.points]
        message = next(
            (made.failing[e.point.hidden_size] for e in experiments if e.point.hidden_size in made.failing), ""
        )
        for number, experiment in enumerate(experiments if not message else ()):
            facts = {"machine_id": FOUND.environment.machine_id, "torch_version": FOUND.environment.torch_version}
            run_id = f"{len(made.asked):06x}{number:06x}"
            for row in scripted_worker.timed(experiment, run_id, **facts):
                store.add(row)
        state = "failed" if message else "finished"
        trials = tuple(f"{place}" for place, _ in enumerate(experiments))
        return Job(
            id="1",
            asked=asked,
            store=store.folder,
            fresh=False,
            created_at="",
            state=state,
            message=message,
            trial_ids=trials,
        )

    monkeypatch.setattr(made, "_measured", measured)
    return made


def asked_of(spread, **changes):
    return Question(sweep=sweep(**changes), spread=spread)


def sizes(working):
    return [asked.point.hidden_size for asked in working.asked]


def test_a_whole_question_is_one_job(at, working):
    question = asked_of("everywhere")
    at.ask(question)
    last = working.work(for_s=0.05, only="")
    assert working.asked == [question.sweep]
    assert at.ends(question.id)[last.host].state == "finished"
    assert at.members() == []


def test_points_that_are_shared_are_asked_one_by_one(at, working):
    question = asked_of("shared", sizes=(8, 16, 32))
    at.ask(question)
    working.work(for_s=60.0, only=question.id)
    assert sorted(sizes(working)) == [8, 16, 32]
    [end] = at.ends(question.id).values()
    assert (end.state, end.done, end.total) == ("finished", 3, 3)
    assert set(at.place.names("claims")) == set()


def test_what_another_machine_like_this_one_has_measured_is_left_out(at, working, store):
    question = asked_of("shared", sizes=(8, 16, 32))
    facts = {"machine_id": FOUND.environment.machine_id, "torch_version": FOUND.environment.torch_version}
    for row in scripted_worker.timed(question.sweep.experiment(question.sweep.points[1]), "abcdefabcdef", **facts):
        store.add(row)
    at.ask(question)
    working.work(for_s=60.0, only=question.id)
    assert sorted(sizes(working)) == [8, 32]


def test_what_a_machine_of_another_kind_has_measured_is_measured_here_too(at, working, store):
    question = asked_of("shared", sizes=(8, 16))
    for row in scripted_worker.timed(question.sweep.experiment(question.sweep.points[0]), "abcdefabcdef"):
        store.add(dataclasses.replace(row, machine_id="bbbbbbbbbbbb"))
    at.ask(question)
    working.work(for_s=60.0, only=question.id)
    assert sorted(sizes(working)) == [8, 16]


def test_a_point_that_another_holds_is_waited_for(at, working):
    question = asked_of("shared", sizes=(8, 16))
    first = question.sweep.experiment(question.sweep.points[0])
    held = at.lease(question.id, f"{first.id}-{FOUND.environment.machine_id}", "another")
    assert held.take()
    at.ask(question)
    measured = working._measured

    def then_release(work, asked, lease):
        held.release()
        return measured(work, asked, lease)

    working._measured = then_release
    working.work(for_s=60.0, only=question.id)
    assert sizes(working) == [16, 8]


def test_a_point_that_fails_is_told_and_not_tried_again(at, working):
    working.failing[16] = "The device cuda:7 is not on this machine."
    question = asked_of("shared", sizes=(8, 16, 32))
    at.ask(question)
    working.work(for_s=60.0, only=question.id)
    assert sorted(sizes(working)) == [8, 16, 32]
    [end] = at.ends(question.id).values()
    assert (end.state, end.message) == ("failed", "The device cuda:7 is not on this machine.")


@pytest.mark.slow
def test_a_search_asks_for_what_it_wants_next_until_it_is_content(at, working):
    axis = dataclasses.replace(sweep().axes[0], values=tuple(2**power for power in range(3, 11)))
    question = asked_of("shared", axes=(axis,), adaptive=True)
    at.ask(question)
    working.work(for_s=60.0, only=question.id)
    assert len(sizes(working)) == len(set(sizes(working)))
    assert {64, 128} <= set(sizes(working))


@pytest.mark.slow
def test_a_question_is_answered_once_and_again_when_it_is_asked_anew(at, working):
    question = asked_of("everywhere", sizes=(8,))
    at.ask(question)
    working.work(for_s=60.0, only=question.id)
    working.work(for_s=60.0, only=question.id)
    assert len(working.asked) == 1
    at.forget_ends(question.id)
    working.work(for_s=60.0, only=question.id)
    assert len(working.asked) == 2


def test_with_one_question_it_ends_when_that_is_taken_away(at, working):
    working.work(for_s=60.0, only="another-shared")
    assert working.asked == []


def test_a_question_that_is_taken_away_meanwhile_leaves_the_rest(at, working, monkeypatch):
    monkeypatch.setattr(member, "LOOK_S", 0.0)
    question = asked_of("shared", sizes=(8, 16, 32))
    at.ask(question)
    measured = working._measured

    def then_close(work, asked, lease):
        at.close(question.id)
        return measured(work, asked, lease)

    working._measured = then_close
    working.work(for_s=60.0, only=question.id)
    assert len(sizes(working)) == 1
    assert [end.state for end in at.ends(question.id).values()] == ["stopped"]


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


def test_machines_with_folders_of_jobs_of_their_own_have_names_of_their_own(queue, tmp_path):
    other = type(queue)(tmp_path / "other")
    assert presence.host_name(queue) == presence.host_name(queue) != presence.host_name(other)
