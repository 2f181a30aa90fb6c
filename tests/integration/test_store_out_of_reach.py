"""A machine works for others while the server of their store says nothing: it goes on, and its rows arrive after."""

import collections
import contextlib
import os
from pathlib import Path

import pytest

from core.errors import StoreError
from core.files.shared import mirror
from core.jobs.shared import asking, board
from core.jobs.shared.board import Board, Question
from core.jobs.shared.members import State
from core.results.finding import mirrored
from core.results.store import Store
from tests import nodes, objects
from tests.integration.following import until
from tests.integration.scripted_worker import UNTIL_RELEASED, sweep
from tests.nodes import Node

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a process cannot be stopped there for a while")

SIZES = (8, 16, 32, 64)


@pytest.fixture
def server(monkeypatch):
    for name, value in objects.KEYS.items():
        monkeypatch.setenv(name, value)
    with objects.served_apart() as server:
        yield server


@pytest.fixture
def address(server):
    return server.address()


@pytest.fixture
def machine(address, tmp_path):
    node = Node(tmp_path / "node", address)
    with nodes.ended([node]):
        yield node


def waiting(machine: Node) -> list[Path]:
    """Marks of rows that the machine holds for the store."""
    assert not machine.ended, machine.log
    return list(machine.folder.glob(f"shared/*/.*{mirror.WAITING}"))


def seen(machine: Node, at: Board) -> list[tuple[State, str]]:
    """What the machines at a store do, and where the point lies that each measures, as far as the store answers."""
    assert not machine.ended, machine.log
    with contextlib.suppress(StoreError):
        return [(member.state, member.doing) for member in at.members()]
    return []


@pytest.mark.slow
def test_the_sweep_goes_on_while_the_store_says_nothing_and_its_rows_arrive_after(server, asker, machine):
    question = Question(sweep=sweep(UNTIL_RELEASED, sizes=SIZES), spread="everywhere")
    at = board.board_of(asker)
    at.ask(question)
    until(lambda: seen(machine, at), lambda found: found == [("measuring", "hidden size 8")])
    with server.silent():
        mirrored.bring_now(asker)
        assert mirrored.failure(asker).endswith("cannot be reached: it does not answer.")
        (machine.folder / "jobs" / "release").touch()
        until(lambda: waiting(machine), lambda marks: len(marks) == len(SIZES))
    [ended] = until(lambda: asking.look(at, question).ended.values(), bool)
    assert ended.state == "finished"
    assert waiting(machine) == []
    until(lambda: mirrored.bring_now(asker) or mirrored.failure(asker), lambda failure: not failure)
    found = collections.Counter((row.hidden_size, row.contender) for row in Store(asker).trials())
    assert found == dict.fromkeys(((size, contender) for size in SIZES for contender in ("cpu@1", "cpu")), 1)


@pytest.mark.slow
def test_a_machine_that_is_ended_while_the_store_says_nothing_ends_soon(server, asker, machine):
    at = board.board_of(asker)
    until(lambda: seen(machine, at), lambda found: found == [("free", "")])
    with server.silent():
        machine.interrupt()
        assert until(lambda: machine.ended, bool)
