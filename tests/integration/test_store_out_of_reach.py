"""The server of a store says nothing while a sweep is measured: the sweep goes on, and its rows arrive afterwards."""

import collections
import contextlib
import itertools
import os

import pytest

from core import remote
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import Queue
from core.jobs.worker.reporter import Reporter
from core.jobs.worker.worker import Code, Worker
from core.remote import remote_store
from core.results.store import Store
from tests import objects
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="a process cannot be stopped there")]

SIZES = (8, 16, 32, 64)


@pytest.fixture
def server(monkeypatch):
    for name, value in objects.KEYS.items():
        monkeypatch.setenv(name, value)
    with objects.served_apart() as server:
        monkeypatch.setattr(remote_store, "ANSWER_S", 1.0)
        monkeypatch.setattr(remote_store, "RETRY_AFTER_S", 0.0)
        monkeypatch.setattr(remote, "RETRY_AFTER_S", 0.0)
        yield server


@pytest.fixture
def store(server, tmp_path, monkeypatch):
    monkeypatch.setenv(remote.CACHES_VARIABLE, str(tmp_path / "caches"))
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    return Store(server.address())


def measure(queue, store):
    """Measure a sweep in this process."""
    job = queue.submit(sweep(sizes=SIZES), store)
    bench = scripted_worker.bench(queue)
    Worker(queue, bench, bench.survey(), code=Code.scan(store.folder), idle_s=0.0).run()
    return queue.files(job.id).read()


def silence(server, monkeypatch, *, points):
    """Let the server say nothing while so many points are brought to it; returns what ends that."""
    stack, numbers, save = contextlib.ExitStack(), itertools.count(), Reporter.save

    def save_in_silence(self, rows):
        number = next(numbers)
        if number == 0:
            stack.enter_context(server.silent())
        if number == points:
            stack.close()
        return save(self, rows)

    monkeypatch.setattr(Reporter, "save", save_in_silence)
    return stack


def count_rows(store):
    remote.open_cache(store.folder).list_files(now=True)
    return collections.Counter((row.hidden_size, row.contender) for row in store.trials())


ONCE = dict.fromkeys(((size, contender) for size in SIZES for contender in ("cpu@1", "cpu")), 1)


def test_the_sweep_goes_on_while_the_store_says_nothing_and_its_rows_arrive_after(server, store, tmp_path, monkeypatch):
    assert store.trials() == []
    with silence(server, monkeypatch, points=len(SIZES) - 1):
        job = measure(Queue(tmp_path / "jobs"), store)
    assert (job.state, job.unsaved) == ("finished", False)
    assert count_rows(store) == ONCE


def test_rows_of_a_sweep_that_ends_in_the_silence_stay_with_the_job_until_the_store_answers(
    server, store, tmp_path, monkeypatch
):
    queue = Queue(tmp_path / "jobs")
    assert store.trials() == []
    with silence(server, monkeypatch, points=len(SIZES)):
        job = measure(queue, store)
        assert (job.state, job.unsaved) == ("failed", True)
        assert job.message.startswith("The rows could not be stored, they are saved with the job: The store s3://")
        assert job.message.endswith("cannot be reached: it does not answer.")
        assert len(queue.files(job.id).read_unsaved()) == 2 * len(SIZES)
    queue.settle()
    assert not queue.files(job.id).read().unsaved
    assert count_rows(store) == ONCE
