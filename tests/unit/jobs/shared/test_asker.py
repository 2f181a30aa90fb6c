"""Who has sweeps of a queue measured by other machines, with machines that only say what they do."""

import contextlib
import dataclasses

import pytest

from core.errors import JobError
from core.jobs import client, process
from core.jobs.job import RemoteTarget
from core.jobs.shared import asker, asking, board
from core.jobs.shared.board import Question
from core.jobs.shared.members import Member
from core.results import environment
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep

ASKED = sweep()
EVERYWHERE = RemoteTarget(on="workers")
QUESTION = Question(sweep=ASKED, spread="everywhere")
ONE = Member(host="one", machine_id="a" * 12, cpu="Test CPU", devices=("Test CPU",), question=QUESTION.id)
TWO = dataclasses.replace(ONE, host="two", machine_id="b" * 12)


@pytest.fixture
def at(store, monkeypatch):
    monkeypatch.setattr(asking, "POLL_S", 0.001)
    monkeypatch.setattr(asking, "SETTLE_S", 0.01)
    monkeypatch.setattr(asker, "ROWS_S", 0.0)
    monkeypatch.setattr(asker, "END_S", 0.05)
    return board.board_of(store.folder)


@pytest.fixture
def serve(queue, monkeypatch):
    """Serves the queue while something happens at each look; the fault, if any, is that of who launches machines."""

    def served(*steps, fault=None):
        happens = iter(steps)

        @contextlib.contextmanager
        def launched(on, folder, *told):
            if fault is not None:
                raise fault
            yield type("Nodes", (), {"keep": lambda _: next(happens, lambda: None)()})()

        monkeypatch.setattr(asker, "launcher", launched)
        asker.serve(queue)

    return served


def said(member, state, message=""):
    return dataclasses.replace(member, state=state, message=message)


def measured(store, member):
    """What a machine brings to the store."""
    here = {"machine_id": member.machine_id, "torch_version": environment.read_environment().torch_version}
    for number, point in enumerate(ASKED.points):
        run_id = f"{member.machine_id[:4]}{number:08x}"
        for row in scripted_worker.timed(ASKED.experiment(point), run_id, **here):
            store.add(row)


@pytest.mark.slow
def test_a_job_has_the_rows_of_all_machines_and_the_sentence_of_who_failed(queue, store, at, serve):
    job = queue.submit(ASKED, store, elsewhere=EVERYWHERE)
    serve(
        lambda: at.tell(said(ONE, "measuring")),
        lambda: at.tell(said(TWO, "measuring")),
        lambda: measured(store, ONE),
        lambda: at.tell(said(ONE, "finished")),
        lambda: at.tell(said(TWO, "failed", "There is no room.")),
    )
    ended = queue.job(job.id)
    assert (ended.state, ended.message, ended.complete) == ("finished", "two: There is no room.", False)
    assert {member.host: member.state for member in ended.machines} == {"one": "finished", "two": "failed"}
    assert {row.machine_id for row in client.load_job_rows(queue, ended)} == {ONE.machine_id}
    assert len(ended.run_ids) == len(ASKED.points)
    assert at.questions() == []
    assert not queue.asker_file.is_served


def test_a_job_that_is_stopped_takes_its_question_away(queue, store, at, serve):
    job = queue.submit(ASKED, store, elsewhere=EVERYWHERE)
    serve(
        lambda: at.tell(said(ONE, "measuring")),
        lambda: None,
        lambda: queue.request_stop(job.id),
        lambda: at.tell(said(ONE, "stopped")),
    )
    ended = queue.job(job.id)
    assert ended.state == "stopped"
    assert "told to stop; nothing was measured. Not heard by then: one." in ended.message
    assert at.questions() == []


def test_a_machine_that_is_gone_is_told_to_have_failed(queue, store, at, serve):
    job = queue.submit(ASKED, store, elsewhere=EVERYWHERE)
    serve(
        lambda: at.tell(said(ONE, "measuring")),
        lambda: at.tell(said(TWO, "measuring")),
        lambda: None,
        lambda: at.leave("two"),
        lambda: at.tell(said(ONE, "finished")),
    )
    assert {member.host: member.message for member in queue.job(job.id).machines} == {"one": "", "two": asker.LOST}


def test_machines_that_cannot_be_asked_fail_the_job_with_their_sentence(queue, store, at, serve):
    job = queue.submit(ASKED, store, elsewhere=RemoteTarget(on="ray"))
    serve(fault=JobError("Ray is not installed: pip install it."))
    assert (queue.job(job.id).state, queue.job(job.id).message) == ("failed", "Ray is not installed: pip install it.")


def test_nobody_is_waited_for_for_ever(queue, store, at, serve, monkeypatch):
    monkeypatch.setattr(asker, "ABSENT_S", 0.0)
    job = queue.submit(ASKED, store, elsewhere=EVERYWHERE)
    serve()
    assert queue.job(job.id).state == "failed"
    assert "python -m core worker" in queue.job(job.id).message


def test_what_is_measured_here_does_not_wait_for_what_is_measured_elsewhere(queue, store):
    there = queue.submit(ASKED, store, elsewhere=EVERYWHERE)
    here = queue.submit(ASKED, store)
    assert here.id != there.id
    assert (there.place, here.place) == (1, 1)
    assert queue.claim(process.current_process()).id == here.id
    assert queue.claim(process.current_process()) is None
    assert queue.claim(process.current_process(), elsewhere=True).id == there.id


def test_the_same_sweep_of_the_same_machines_is_joined(queue, store):
    there = queue.submit(ASKED, store, elsewhere=EVERYWHERE)
    assert queue.submit(ASKED, store, elsewhere=EVERYWHERE).id == there.id
    assert queue.submit(ASKED, store, elsewhere=RemoteTarget(on="workers", spread="shared")).id != there.id
    assert queue.job(there.id).elsewhere == EVERYWHERE


def test_a_job_whose_asker_was_killed_says_that_machines_go_on(queue, store, dead):
    job = queue.submit(ASKED, store, elsewhere=EVERYWHERE)
    queue.claim(dead, elsewhere=True)
    assert queue.job(job.id).state == "crashed"
    assert "They go on" in queue.job(job.id).message
