"""`worker`, `machines` and `sweep --on`: what they print, and how they end."""

import dataclasses
import json
import os
import re
import sys
import time

import pytest

from core.commands import measuring
from core.errors import JobError
from core.jobs.machine import Machine
from core.jobs.shared import asking, board, member
from core.jobs.shared.members import Member
from core.results import environment
from core.results.store import Store
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep

HERE = environment.read_environment()
ONE = Member(host="lab-1", machine_id=HERE.machine_id, cpu="Test CPU", devices=("Test CPU",))
SWEEP = (
    *("sweep", "--dataset", "digits", "--axis", "hidden_size", "--values", "8,16,32,64,128,256,512,1024"),
    *("--devices", "cpu@1,cpu", "--seed", str(scripted_worker.CURVE), "--on", "workers"),
)


@pytest.fixture
def run(command, capsys):
    """Status, what was printed and what was said, also where the words were wrong."""

    def call(*words):
        try:
            done = command(*words)
        except SystemExit as left:
            captured = capsys.readouterr()
            return left.code, captured.out, captured.err
        return done.status, done.out, done.err

    return call


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "POLL_S", 0.001)
    monkeypatch.setattr(asking, "SETTLE_S", 0.01)
    return Store(tmp_path / "store")


@pytest.fixture
def answering(store, monkeypatch):
    """Machines that have measured everything at once, and say how they ended."""

    def answer(*members):
        ask = board.Board.ask

        def then_answer(self, question):
            ask(self, question)
            for each in members:
                for number, point in enumerate(question.sweep.points if each.state == "finished" else ()):
                    run_id = f"{each.host[-1] * 6}{number:06x}"
                    facts = {"machine_id": each.machine_id, "torch_version": HERE.torch_version}
                    for row in scripted_worker.timed(question.sweep.experiment(point), run_id, **facts):
                        store.add(row)
                self.tell(dataclasses.replace(each, question=question.id))

        monkeypatch.setattr(board.Board, "ask", then_answer)

    return answer


def ended(host, state="finished", machine_id=HERE.machine_id, **changes):
    return dataclasses.replace(ONE, host=host, state=state, machine_id=machine_id, **changes)


@pytest.mark.slow
def test_each_machine_has_its_answer(run, store, answering):
    answering(ended("lab-1"), ended("lab-2", machine_id="bbbbbbbbbbbb"))
    status, out, err = run(*SWEEP, "--store", str(store.folder))
    assert status == 0
    first, second = out.splitlines()
    assert first.startswith("lab-1 (Test CPU): ")
    assert second.startswith("lab-2 (Test CPU): ")
    assert "hidden size" in first
    assert "python -m core worker joins with the same --store" in err
    assert "lab-2 (Test CPU): finished" in err


@pytest.mark.slow
def test_machines_that_are_alike_and_share_points_have_one_answer(run, store, answering):
    answering(ended("lab-1"), ended("lab-2"))
    status, out, _ = run(*SWEEP, "--store", str(store.folder), "--spread", "shared", "--json")
    assert status == 0
    [machine] = json.loads(out)["machines"]
    assert [each["host"] for each in machine["members"]] == ["lab-1", "lab-2"]
    assert machine["points"] == 8
    assert len(machine["crossovers"]) == 1
    assert [answer["sentence"] for answer in machine["answers"]] == machine["crossovers"]


@pytest.mark.slow
def test_a_machine_that_failed_is_told_with_its_sentence(run, store, answering):
    answering(ended("lab-1"), ended("lab-2", "failed", machine_id="b", message="The device cuda:0 is not there."))
    status, out, _ = run(*SWEEP, "--store", str(store.folder))
    assert status == 1
    assert out.splitlines()[1] == "lab-2 (Test CPU): The device cuda:0 is not there."


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("--spread", "nowhere"), "--spread: invalid choice: 'nowhere'"),
        (("--on", "mars"), "on: 'mars'"),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_sentence(run, store, changed, said):
    status, _, err = run(*SWEEP, "--store", str(store.folder), *changed)
    assert status == 2
    assert said in err


def test_devices_must_be_named_where_machines_differ(run, store):
    words = [word for word in SWEEP if word not in ("--devices", "cpu@1,cpu")]
    status, _, err = run(*words, "--store", str(store.folder))
    assert status == 2
    assert "as machines differ" in err


def test_code_of_ones_own_is_given_to_no_other_machine(run, store, tmp_path):
    (tmp_path / "mine.py").write_text("def build(size, device): return lambda: None\n")
    words = ("sweep", "--training", str(tmp_path / "mine.py"), "--axis", "size", "--values", "8,16")
    status, _, err = run(*words, "--devices", "cpu@1,cpu", "--on", "workers", "--store", str(store.folder))
    assert status == 2
    assert "code is given to no other machine" in err


@pytest.mark.skipif(sys.platform == "win32", reason="Slurm's commands are of Unix")
def test_machines_of_a_cluster_are_brought_to_say_who_they_are(run, store, monkeypatch, tmp_path):
    monkeypatch.setattr(asking, "GATHER_S", 0.05)
    for name, said in (("sbatch", "echo 4711"), ("scancel", f"touch {tmp_path}/cancelled"), ("squeue", "echo 4711_1")):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/called\n{said}\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    board.board_of(store.folder).tell(ONE)
    status, out, err = run("machines", "--store", str(store.folder), "--on", "slurm:3")
    assert status == 0
    assert "  lab-1  free" in out
    assert "1 of 3 machines said who they are." in err
    assert "--array=1-3" in (tmp_path / "called").read_text()
    assert (tmp_path / "cancelled").exists()


def test_who_is_there_and_what_is_asked_is_listed(run, store, monkeypatch):
    at = board.board_of(store.folder)
    assert run("machines", "--store", str(store.folder))[1] == "No machine is at work here.\n"
    question = board.Question(sweep=sweep(), spread="shared")
    at.ask(question)
    at.place.write(f"questions/{'0' * 16}-shared.json", b"{}")
    mine = {"question": question.id, "message": "hidden size 64; 3 of 8 points", "left_s": 60.0}
    at.tell(dataclasses.replace(ONE, state="measuring", **mine))
    at.tell(dataclasses.replace(ONE, host="lab-2", state="measuring", **mine))
    at.tell(dataclasses.replace(ONE, host="lab-3", machine_id="b", cpu="Other CPU", state="free"))
    at.tell(
        dataclasses.replace(ONE, host="lab-4", state="failed", question=question.id, message="No such device. " * 9)
    )
    at.leave("lab-4")
    monkeypatch.setenv("COLUMNS", "80")
    out = run("machines", "--store", str(store.folder))[1]
    assert f"2 machines of kind {HERE.machine_id}: Test CPU" in out
    assert "  lab-2  measuring  hidden size 64; 3 of 8 points" in out
    assert "  lab-3  free" in out
    assert f"Asked: {question.id}, about 30.0 s left" in out
    assert f"Asked: {'0' * 16}-shared\n  This version of Crossover cannot read the question" in out
    assert "  lab-4  failed  No such device. No such device." in out
    assert max(len(line) for line in out.splitlines()) <= 80
    document = json.loads(run("machines", "--store", str(store.folder), "--json")[1])
    assert [machine["state"] for machine in document["machines"]] == ["measuring", "measuring", "free"]
    assert document["machines"][0]["devices"] == ["Test CPU"]
    [asked, refused] = sorted(document["questions"], key=lambda entry: "refused" in entry)
    assert (asked["id"], asked["left_s"], asked["ended"][0]["host"]) == (question.id, 30.0, "lab-4")
    assert "cannot read the question" in refused["refused"]


def test_a_worker_works_for_as_long_as_it_is_told(run, store, monkeypatch):
    found = Machine(environment=HERE, devices=scripted_worker.DEVICES)
    monkeypatch.setattr(measuring, "require_machine", lambda _: found)
    monkeypatch.setattr(member, "LOOK_S", 0.001)
    status, out, err = run("worker", "--store", str(store.folder), "--for", "0.02s")
    assert f"answers what is asked at {store.folder}; Ctrl+C ends it." in err
    assert (status, out) == (0, "")


def test_a_machine_whose_measuring_process_does_not_start_says_so_to_who_asks(run, store, monkeypatch):
    def fail(_):
        raise JobError("The measuring process did not start.")

    monkeypatch.setattr(measuring, "require_machine", fail)
    name = f"{'0' * 16}-shared"
    status, _, err = run("worker", "--store", str(store.folder), "--question", name)
    assert (status, "did not start" in err) == (1, True)
    [end] = board.board_of(store.folder).ends(name).values()
    assert (end.state, end.message) == ("failed", "The measuring process did not start.")


@pytest.mark.slow
def test_of_machines_that_share_points_one_may_fail(run, store, answering):
    answering(ended("lab-1"), ended("lab-2", "failed", message="The device cuda:0 is not there."))
    status, out, _ = run(*SWEEP, "--store", str(store.folder), "--spread", "shared")
    assert status == 0
    assert out.startswith("lab-1, lab-2 (Test CPU): ")


@pytest.mark.parametrize("span", ["", "2", "h", "-1h", "2 weeks", "1e3s"])
def test_a_time_that_is_none_is_refused(run, store, span):
    status, _, err = run("worker", "--store", str(store.folder), f"--for={span}")
    assert status == 2
    assert "a time such as 90s, 30min or 2h" in err


@pytest.mark.parametrize("address", ["ftp://x/y", "s3://key:secret@bucket/x"])
def test_an_address_that_is_none_is_told_without_its_secret(run, address):
    status, _, err = run("machines", "--store", address)
    assert status == 2
    assert err.startswith("--store: '")
    assert "secret" not in err


def test_a_question_whose_asker_is_gone_is_named_and_can_be_taken_away(run, store):
    at = board.board_of(store.folder)
    question = board.Question(sweep=sweep(), spread="shared")
    at.ask(question)
    words = ("machines", "--store", str(store.folder))
    assert "Nobody has followed it" not in run(*words)[1]
    before = time.time() - 3 * 3_600
    os.utime(store.folder / "shared/questions" / f"{question.id}.json", (before, before))
    out = " ".join(run(*words)[1].split())
    spans = r"for 3 h(?: \d+ min)?; it lapses in 2[01] h(?: \d+ min)?"  # minutes, where this takes any
    assert re.search(rf"Nobody has followed it {spans}\. The same sweep goes on with it, and", out)
    assert f"machines --close {question.id} takes it away." in out
    status, _, err = run(*words, "--close", "another")
    assert (status, "close: 'another'" in err) == (2, True)
    assert run(*words, "--close", question.id)[0] == 0
    assert at.asked(lapsed=True) == {}
