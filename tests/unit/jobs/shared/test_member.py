"""A machine at work for others: what it takes, measures, leaves and gives back."""

import dataclasses
import json

import pytest

from core.answer import speedup
from core.jobs import client, machine
from core.jobs.shared import member
from core.jobs.shared.member import Working
from core.jobs.shared.members import SPREADS
from core.question.experiment import PROTOCOL_VERSION, Contender, Experiment
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep
from tests.unit.jobs.shared.conftest import FOUND, asked_of, sizes


def test_a_whole_question_is_one_job(at, working):
    question = asked_of("everywhere")
    at.ask(question)
    last = working.work(for_s=0.02, only="")  # twenty looks
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


@pytest.mark.parametrize("spread", SPREADS)
def test_a_point_whose_process_is_killed_is_named_and_the_others_are_measured(at, working, monkeypatch, spread):
    measured = working._measured

    def killed(work, asked, lease):
        job = measured(work, asked, lease)
        whole = not isinstance(asked, Experiment)
        if not whole and asked.point.hidden_size != 16:
            return job
        return dataclasses.replace(job, state="crashed", message="The measuring process was killed.")

    monkeypatch.setattr(working, "_measured", killed)
    working.failing[16] = "The measuring process was killed."
    question = asked_of(spread, sizes=(8, 16, 32))
    at.ask(question)
    working.work(for_s=60.0, only=question.id)
    assert sorted(asked.point.hidden_size for asked in working.asked if isinstance(asked, Experiment)) == [8, 16, 32]
    [end] = at.ends(question.id).values()
    assert end.state == "failed"
    assert end.message == (
        "Hidden size 16: The measuring process was killed. A system does so when its memory runs out."
    )


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


def test_a_device_that_is_not_here_is_told_before_anything_is_measured(at, working):
    contenders = (Contender(), Contender.parse("cuda:7"))
    question = asked_of("shared", sizes=(8, 16), contenders=contenders)
    at.ask(question)
    working.work(for_s=60.0, only=question.id)
    [end] = at.ends(question.id).values()
    assert (end.state, end.message) == ("failed", "The device cuda:7 is not on this machine, which has cpu.")
    assert working.asked == []


def test_a_question_of_another_version_is_refused_with_a_sentence(at, working):
    question = asked_of("shared", sizes=(8, 16))
    data = {"sweep": question.sweep.to_json(), "spread": "shared", "protocol": PROTOCOL_VERSION + 1}
    at.place.write(f"questions/{'0' * 16}-shared.json", json.dumps(data).encode())
    working.work(for_s=60.0, only=f"{'0' * 16}-shared")
    [end] = at.ends(f"{'0' * 16}-shared").values()
    assert end.state == "failed"
    assert end.message.startswith("It was asked by another version of Crossover")
    assert working.asked == []


def test_while_something_else_is_measured_here_points_are_left_to_others(at, working, monkeypatch):
    question = asked_of("shared", sizes=(8, 16))
    at.ask(question)
    others = iter([True, True, True])
    monkeypatch.setattr(machine, "is_measuring", lambda: next(others, False))
    working.work(for_s=60.0, only=question.id)
    assert ("busy", "Something else is measured on this machine.") in [(s.state, s.message) for s in working.told]
    assert sorted(sizes(working)) == [8, 16]


def test_a_point_that_has_to_wait_for_long_is_given_back(at, store, queue, monkeypatch):
    monkeypatch.setattr(member, "PATIENCE_S", 0.0)
    monkeypatch.setattr(client, "watch", lambda queue, job_id: queue.job(job_id))
    question, told = asked_of("shared", sizes=(8,)), []
    at.ask(question)

    def is_measuring():
        """Somebody is, from when the point waits for its turn until it is given back."""
        jobs = queue.jobs()
        if jobs and not jobs[-1].active:
            at.close(question.id)
        return bool(jobs)

    monkeypatch.setattr(machine, "is_measuring", is_measuring)
    Working(at, store, queue, FOUND, told.append).work(for_s=60.0, only=question.id)
    assert [job.state for job in queue.jobs()] == ["stopped"]
    assert "busy" in [said.state for said in told]
    assert set(at.place.names("claims")) == set()


def test_an_interrupt_stops_what_is_measured_and_gives_its_point_back(at, store, queue, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(client, "watch", interrupt)
    question = asked_of("shared", sizes=(8, 16))
    at.ask(question)
    with pytest.raises(KeyboardInterrupt):
        Working(at, store, queue, FOUND, lambda said: None).work(for_s=60.0)
    assert [job.state for job in queue.jobs()] == ["stopped"]
    assert set(at.place.names("claims")) == set()
    assert at.members() == []


@pytest.mark.parametrize("spread", SPREADS)
def test_whose_time_is_over_leaves_the_rest_to_others(at, store, queue, monkeypatch, clock, spread):
    def watch(queue, job_id):
        clock.pass_s(61.0)
        return finished(queue.job(job_id), spread)

    monkeypatch.setattr(client, "watch", watch)
    question = asked_of(spread, sizes=(8, 16))
    at.ask(question)
    last = Working(at, store, queue, FOUND, lambda said: None).work(for_s=60.0)
    assert last.state == "free"
    assert len(queue.jobs()) == 1
    assert at.ends(question.id) == {}
    assert at.is_open(question.id)


def finished(job, spread):
    """A job as it is when its point has come to its end; a whole sweep goes on."""
    return dataclasses.replace(job, state="finished") if spread == "shared" else job


def test_one_process_of_a_machine_works_for_a_store(at, working, store, queue, monkeypatch):
    question = asked_of("shared", sizes=(8,))
    at.ask(question)
    measured = working._measured

    def while_measuring(work, asked, lease):
        second = Working(at, store, queue, FOUND, lambda said: None)
        assert second.work(for_s=0.02).state == "free"
        assert [entry.state for entry in at.members()] == ["measuring"]
        return measured(work, asked, lease)

    working._measured = while_measuring
    working.work(for_s=60.0, only=question.id)
    assert sizes(working) == [8]


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", [False, True])
def test_a_run_of_a_busy_machine_is_not_repeated_by_it_for_the_same_question(at, working, monkeypatch, adaptive):
    monkeypatch.setattr(speedup, "answers_experiment", lambda asked, rows: False)
    axis = dataclasses.replace(sweep().axes[0], values=tuple(2**power for power in range(3, 11)))
    question = asked_of("shared", axes=(axis,), adaptive=adaptive)
    at.ask(question)
    working.work(for_s=60.0, only=question.id)
    assert len(sizes(working)) == len(set(sizes(working))) > 1
    assert [end.state for end in at.ends(question.id).values()] == ["finished"]
