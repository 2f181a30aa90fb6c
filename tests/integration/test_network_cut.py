"""The network between who asks, or a machine, and the store of all is cut for a while: nothing is lost or doubled."""

import collections
import threading

import pytest
from filelock import FileLock

from core.files.shared import mirror
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.shared import asking, board
from core.jobs.shared.board import Question
from core.results.finding import mirrored
from core.results.store import Store
from tests import cut, nodes, objects
from tests.integration import scripted_node
from tests.integration.following import until
from tests.integration.scripted_worker import sweep
from tests.nodes import Node

pytestmark = pytest.mark.slow

SIZES = tuple(range(8, 8 + 6))
ONCE = {size: {"cpu@1": 1, "cpu": 1} for size in SIZES}


@pytest.fixture
def server(monkeypatch):
    for name, value in objects.KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(scripted_node.LEASE_VARIABLE, "4")
    monkeypatch.setattr(mirror, "AGAIN_S", 0.2)
    monkeypatch.setattr(asking, "POLL_S", 0.2)
    monkeypatch.setattr(asking, "SETTLE_S", 0.5)
    with objects.served() as server:
        yield server


@pytest.fixture
def link(server):
    host, _, port = server.endpoint.rpartition(":")
    with cut.link(host, int(port)) as link:
        yield link


def counted(folder):
    found = collections.defaultdict(collections.Counter)
    for row in Store(folder).trials():
        if row.outcome == "timed":
            found[row.hidden_size][row.contender] += 1
    return found


def test_who_asks_loses_the_network_and_finds_the_answer_when_it_is_back(server, link, tmp_path, monkeypatch):
    monkeypatch.setenv(mirrored.MIRRORS_VARIABLE, str(tmp_path / "asker"))
    direct = server.address()
    through = mirrored.located(direct.replace(server.endpoint, f"127.0.0.1:{link.port}"))
    question, told = Question(sweep=sweep(sizes=SIZES), spread="shared"), []
    measured_elsewhere = FileLock(nodes.surroundings(tmp_path / "one")[LOCK_VARIABLE])
    with nodes.ended([Node(tmp_path / "one", direct)]):
        answered = []
        at = board.board_of(through)
        asks = threading.Thread(
            target=lambda: answered.append(asking.follow(at, question, told.append, lambda: None)), daemon=True
        )
        measured_elsewhere.acquire()  # on that machine, so that it cannot be done before the network is cut
        asks.start()
        until(lambda: told, lambda seen: seen and "busy" in {each.state for each in seen[-1].present.values()})
        with link.cut():
            until(lambda: told, lambda seen: seen[-1].failure)
            measured_elsewhere.release()
            until(lambda: board.board_of(mirrored.located(direct)).ends(question.id), bool)
        asks.join(300)
    [seen] = answered
    assert [member.state for member in seen.ended.values()] == ["finished"]
    mirrored.bring_now(through)
    until(lambda: mirrored.bring_now(through) or counted(through), lambda found: found == ONCE)


def test_a_machine_that_loses_the_network_for_longer_than_its_lease_doubles_nothing(
    server, link, tmp_path, monkeypatch
):
    monkeypatch.setenv(mirrored.MIRRORS_VARIABLE, str(tmp_path / "asker"))
    direct = server.address()
    through, asker = direct.replace(server.endpoint, f"127.0.0.1:{link.port}"), mirrored.located(direct)
    question, at = Question(sweep=sweep(sizes=SIZES), spread="shared"), board.board_of(asker)
    with nodes.ended([Node(tmp_path / "cut", through), Node(tmp_path / "other", direct)]):
        until(at.members, lambda members: len(members) == 2)
        at.ask(question)
        until(lambda: [member.done for member in at.members()], lambda done: max(done, default=0) >= 1)
        with link.cut():
            until(lambda: mirrored.bring_now(asker) or counted(asker), lambda found: len(found) == len(SIZES))
        until(lambda: at.ends(question.id), lambda ends: len(ends) == 2)
        assert {member.state for member in at.ends(question.id).values()} == {"finished"}
        until(lambda: list((tmp_path / "cut").glob("shared/*/.*.waiting")), lambda waiting: not waiting)
    mirrored.bring_now(asker)
    assert counted(asker) == ONCE
