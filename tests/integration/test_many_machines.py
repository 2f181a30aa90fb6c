"""Machines that share nothing but a store answer one question: joined, killed, stopped, and asked again."""

import collections
import dataclasses
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from core.answer import many_machines, study
from core.files.project import PROJECT
from core.jobs.queue import Queue
from core.jobs.shared import asking, board
from core.jobs.shared.board import Question
from core.jobs.shared.members import SPREADS, Spread
from core.question.sweep import Sweep
from core.results import environment, index
from core.results.store import Store
from tests import nodes, objects
from tests.integration.following import until
from tests.integration.scripted_worker import LARGE, TOO_LARGE, UNTIL_RELEASED, sweep
from tests.nodes import Node

SIZES = tuple(range(8, 8 + 16))
FEW = SIZES[:6]


@pytest.fixture(params=["folder", "s3"])
def address(request, tmp_path, monkeypatch):
    """A store that machines share, as they are told of it."""
    if request.param == "folder":
        yield str(tmp_path / "store")
        return
    for name, value in objects.KEYS.items():
        monkeypatch.setenv(name, value)
    with objects.served() as server:
        yield server.address()


@pytest.fixture
def machines(address, tmp_path):
    """Starts machines; none outlives the test."""
    running: list[Node] = []

    def start(name: str) -> Node:
        running.append(Node(tmp_path / name, address))
        return running[-1]

    with nodes.ended(running):
        yield start


def asked_of(spread: Spread, **changes) -> Question:
    asked = sweep(**{"sizes": SIZES, **changes})
    return Question(sweep=asked, spread=spread)


def rows_of(folder: Path, asked: Sweep) -> dict[int, collections.Counter]:
    """By size, how often each contender was measured to the end."""
    index.list_files(folder, now=True)
    found: dict[int, collections.Counter] = collections.defaultdict(collections.Counter)
    for row in Store(folder).trials(experiment_id=[asked.experiment(point).id for point in asked.points]):
        if row.outcome == "timed":
            found[row.hidden_size][row.contender] += 1
    return found


def follow(folder: Path, question: Question) -> asking.Seen:
    return asking.follow(board.board_of(folder), question, lambda _: None, lambda: None)


def present(folder: Path) -> list[str]:
    return [member.host for member in board.board_of(folder).members()]


def test_a_question_for_everybody_is_answered_by_each(address, asker, machines):
    machines("one")
    machines("two")
    until(lambda: present(asker), lambda hosts: len(hosts) == 2)
    question = asked_of("everywhere", sizes=(8, 64, 512))
    seen = follow(asker, question)
    assert [member.state for member in seen.ended.values()] == ["finished"] * 2
    assert {member.machine_id for member in seen.ended.values()} == {environment.read_environment().machine_id}
    found = rows_of(asker, question.sweep)
    assert {size: set(counts.values()) for size, counts in found.items()} == {8: {2}, 64: {2}, 512: {2}}
    answered = many_machines.rows(Store(asker), question.sweep, {member.own_id for member in seen.ended.values()})
    each = many_machines.by_machine(study.studies(answered, axis="hidden_size"), question.sweep)
    assert [len(entry.runs) for entry in each.values()] == [3, 3]
    assert board.board_of(asker).questions() == []


@pytest.mark.slow
@pytest.mark.parametrize("address", ["s3"], indirect=True)
def test_points_that_are_shared_are_measured_once_though_a_machine_dies_one_comes_and_one_leaves(
    address, asker, machines
):
    victim, guest = machines("one"), machines("two")
    question = asked_of("shared")
    answered: list[asking.Seen] = []
    asks = threading.Thread(target=lambda: answered.append(follow(asker, question)))
    asks.start()
    until(lambda: rows_of(asker, question.sweep), lambda found: len(found) >= 4)
    victim.kill()
    machines("three")
    until(lambda: rows_of(asker, question.sweep), lambda found: len(found) >= 8)
    guest.leave()
    assert list(Queue(guest.folder / "jobs").active()) == []
    asks.join(300)
    [seen] = answered
    assert {member.state for member in seen.ended.values()} == {"finished"}
    found = rows_of(asker, question.sweep)
    assert set(found) == set(SIZES)
    assert [size for size, counts in found.items() if counts != {"cpu@1": 1, "cpu": 1}] == []


@pytest.mark.slow
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("address", ["folder"], indirect=True)
def test_a_machine_that_runs_out_of_memory_at_a_point_names_it_and_measures_the_others(
    address, asker, machines, spread
):
    machines("one")
    question = asked_of(spread, script=TOO_LARGE, sizes=(8, LARGE, 32))
    [ended] = follow(asker, question).ended.values()
    assert (ended.state, ended.message) == (
        "failed",
        "Hidden size 16: The measuring process was killed before anything was measured. "
        "A system does so when its memory runs out.",
    )
    assert {size: set(counts.values()) for size, counts in rows_of(asker, question.sweep).items()} == {8: {1}, 32: {1}}


def test_what_is_taken_away_stops_everywhere(address, asker, machines):
    machines("one")
    question = asked_of("everywhere", script=UNTIL_RELEASED, sizes=(8, 16))
    at = board.board_of(asker)
    at.ask(question)
    until(lambda: [member.state for member in at.members()], lambda states: states == ["measuring"])
    at.close(question.id)
    [ended] = until(lambda: at.ends(question.id).values(), bool)
    assert ended.state == "stopped"  # how long it takes is measured by tests/benchmarks/many_machines.py


@pytest.mark.slow
@pytest.mark.parametrize("address", ["folder"], indirect=True)
def test_machines_go_on_when_the_asker_dies_and_the_same_question_finds_their_rows(address, asker, machines, tmp_path):
    machines("one")
    question = asked_of("shared", sizes=FEW)
    command = f"from tests.integration import test_many_machines as t; t.ask_and_wait({str(asker)!r})"
    child = subprocess.Popen([sys.executable, "-c", command], cwd=PROJECT)
    until(lambda: rows_of(asker, question.sweep), lambda found: len(found) >= 2)
    child.kill()
    child.wait()
    until(lambda: rows_of(asker, question.sweep), lambda found: len(found) == len(FEW))
    seen = follow(asker, question)
    assert [member.state for member in seen.ended.values()] == ["finished"]
    assert [size for size, counts in rows_of(asker, question.sweep).items() if max(counts.values()) > 1] == []


def ask_and_wait(folder: str) -> None:
    """What an asker does in a process of its own."""
    follow(Path(folder), asked_of("shared", sizes=FEW))


@pytest.mark.slow
@pytest.mark.parametrize("address", ["folder"], indirect=True)
def test_a_search_is_gone_on_with_by_whoever_is_there(address, asker, machines):
    machines("one")
    machines("two")
    axis = dataclasses.replace(sweep().axes[0], values=tuple(2**power for power in range(3, 11)))
    question = asked_of("shared", axes=(axis,), adaptive=True)
    seen = follow(asker, question)
    assert {member.state for member in seen.ended.values()} == {"finished"}
    found = rows_of(asker, question.sweep)
    assert 64 in found
    assert 128 in found
    assert [size for size, counts in found.items() if max(counts.values()) > 1] == []
