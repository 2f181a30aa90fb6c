"""Jobs of real processes: asked for, followed until something is so, and killed."""

import os
import signal
import time
from collections.abc import Callable
from typing import TypeVar

from core.jobs import client
from core.jobs.job import Job
from core.jobs.queue import Queue
from core.results.store import Store
from tests.integration.scripted_worker import experiment

T = TypeVar("T")

PATIENCE_S = 240.0
"""Far beyond what anything here takes, on a machine with a lot else to do too; the limit of a test is longer still."""

LOOK_EVERY_S, LOOK_AT_LEAST_EVERY_S = 0.02, 0.5
"""Looking leaves the processors to what it waits for: between two looks there is three times what one takes."""


def submit(queue: Queue, store: Store, script: int, **choices: int) -> Job:
    job = queue.submit(experiment(script, **choices), store)
    client.ensure_worker(queue)
    return job


def until(look: Callable[[], T], done: Callable[[T], bool]) -> T:
    """Look until it is done; fails after a while, so that a test never hangs."""
    began = looks = time.monotonic()
    while not done(seen := look()):
        now = time.monotonic()
        assert now < began + PATIENCE_S, f"waited in vain, last seen: {seen}"
        time.sleep(min(max(3 * (now - looks), LOOK_EVERY_S), LOOK_AT_LEAST_EVERY_S))
        looks = time.monotonic()
    return seen


def watched(queue: Queue, job: Job, done: Callable[[Job], bool]) -> Job:
    return until(lambda: client.watch(queue, job.id), done)


def ended(job: Job) -> bool:
    return not job.active


def measuring(job: Job) -> bool:
    """Some pairs were measured, and the rows so far were kept."""
    assert job.active, f"it ended early: {job.state}, {job.message}"
    return job.progress is not None and job.progress.pairs >= 10


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
