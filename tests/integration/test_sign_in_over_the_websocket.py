"""A real server that asks for a sign-in, and a visitor who sends what its disabled buttons would send."""

import asyncio
import dataclasses
import os

import pytest

from core.jobs import process
from core.jobs.machine import LOCK_VARIABLE, Machine, Serving
from core.jobs.queue import Queue
from core.results.environment import DeviceInfo, Environment
from tests import rows
from tests.benchmarks import sessions

VISITS = {"compare": "Run", "crossover": "Find the crossover", "tutorials": "Run", "lessons": "Run"}


@pytest.fixture
def queue(tmp_path):
    """A queue that is served by this process, which takes nothing."""
    queue = Queue(tmp_path / "jobs")
    queue.folder.mkdir()
    queue.worker_file.take(Serving(process=process.current_process(), ready=True))
    row = rows.trial()
    facts = Environment(**{field.name: getattr(row, field.name) for field in dataclasses.fields(Environment)})
    devices = (DeviceInfo(device="cpu", kind="cpu", name="Test CPU", memory_bytes=2**34, driver=""),)
    queue.worker_file.report(Machine(environment=facts, devices=devices, hint="None."), process.current_process())
    return queue


def test_pressing_a_button_that_is_disabled_or_not_drawn_starts_nothing_without_a_sign_in(tmp_path, queue):
    settings = tmp_path / "policy.toml"

    def require(text, tick):
        settings.write_text(text)
        os.utime(settings, ns=(tick, tick))

    async def press_all(port, known):
        for page in VISITS:
            visitor = sessions.Session(port, page=page)
            await visitor.open()
            known.setdefault(page, visitor.buttons.get(VISITS[page]))
            await visitor.press(known[page])
            await visitor.close()

    require('who_may_run = "everybody"', 1)
    known: dict[str, str] = {}
    folders = {"CROSSOVER_JOBS": str(queue.folder), "CROSSOVER_RESULTS": str(tmp_path / "results")}
    folders |= {"CROSSOVER_POLICY": str(settings), LOCK_VARIABLE: str(tmp_path / "machine.lock")}
    with sessions.server(**folders) as port:
        require('who_may_run = "signed_in"', 2)
        asyncio.run(press_all(port, known))
        assert queue.jobs() == []
        assert all(known.values())
        require('who_may_run = "everybody"', 3)
        asyncio.run(press_all(port, known))
        assert len({job.question.id for job in queue.jobs()}) >= len(VISITS), "these buttons start nothing at all"
