"""A sweep that a page has measured by other machines: real processes for who asks and for the machines."""

import pytest

from core.jobs import client
from core.jobs.job import RemoteTarget
from core.jobs.queue import Queue
from core.jobs.shared import board
from core.remote import local_cache
from core.results.store import Store
from tests import nodes
from tests.integration.following import until
from tests.integration.scripted_worker import UNTIL_RELEASED, sweep
from tests.nodes import Node

WORKERS = RemoteTarget(on="workers")


@pytest.fixture
def asked_by(tmp_path, monkeypatch):
    """The queue and the store of the machine of the page, with one machine at work for whoever shares the store."""
    for name, value in nodes.surroundings(tmp_path / "page").items():
        monkeypatch.setenv(name, value)
    address = f"file://{tmp_path / 'place'}"
    (tmp_path / "place").mkdir()
    queue, store = Queue(), Store(local_cache.resolve_store(address))
    with nodes.ended([Node(tmp_path / "one", address)]):
        until(lambda: board.board_of(store.folder).members(), bool)
        yield queue, store
        nodes.kill_machine(tmp_path / "page")


def test_who_only_watches_a_job_has_it_measured_elsewhere_and_stopped_there(asked_by):
    queue, store = asked_by
    first = queue.submit(sweep(sizes=(8, 64)), store, elsewhere=WORKERS)
    ended = client.follow_job(queue, first.id, lambda _: None)
    assert (ended.state, [member.state for member in ended.machines]) == ("finished", ["finished"])
    assert len(client.load_job_rows(queue, ended)) == 4
    second = queue.submit(sweep(script=UNTIL_RELEASED, sizes=(8, 16)), store, elsewhere=WORKERS)
    measuring = until(lambda: client.watch(queue, second.id), lambda job: any(member.doing for member in job.machines))
    assert measuring.state == "running"
    client.stop(queue, second.id)
    stopped = until(lambda: client.watch(queue, second.id), lambda job: not job.active)
    assert stopped.state == "stopped"
    assert board.board_of(store.folder).questions() == []
