"""Where `tests.benchmarks.kills` takes place: a server, its folders with a class, and who kills server and worker."""

import asyncio
import collections
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow.parquet as pq

from core.classroom.classes import CLASSES_VARIABLE, Classes
from core.classroom.question import ClassQuestion
from core.files.project import PROJECT
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import JOBS_VARIABLE, Queue
from pages.shared import queries
from tests.benchmarks.sessions import await_health
from tests.integration import scripted_worker
from tests.ports import free_port

PAIRS = 60
"""Rounds at each size: a third of a second, so that a student's sweep takes two and is hit by some of the kills."""

LOOK_EVERY_S = 0.2
"""From one look of a student at the page to the next."""

SIZES = (25, 50, 100, 200, 400)
QUESTION = ClassQuestion(title="Hidden size", question=scripted_worker.sweep(sizes=SIZES, pairs=PAIRS), words="")


class House:
    """The server, the folders, and who kills.

    Attributes:
        folder: of everything.
        seed: of all that is drawn.
        last: whether all kills are over.
        killed: how often each of the two was.
        seen: names of the rows that were ever seen in a store, by student.
        spread_s: within which students come.
        look_s: from one look of a student at the page to the next.
        secret: the teacher's code.
        trains: whether the app measures real trainings; else `tests.integration.scripted_worker` stands for them.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seed: int,
        spread_s: float,
        look_s: float = LOOK_EVERY_S,
        question: ClassQuestion = QUESTION,
        trains: bool = False,
    ) -> None:
        self.folder, self.seed, self.spread_s, self.last = folder, seed, spread_s, False
        self.look_s, self.trains = look_s, trains
        self.killed: collections.Counter[str] = collections.Counter()
        self.seen: dict[str, set[str]] = {}
        self.port = free_port()
        self.queue, self.classes = Queue(folder / "jobs"), Classes(folder / "classes")
        self.of, self.secret = self.classes.create("Physics 7b", question)
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server; what it prints goes into a file."""
        variables = {
            JOBS_VARIABLE: str(self.queue.folder),
            queries.RESULTS_VARIABLE: str(self.folder / "results"),
            CLASSES_VARIABLE: str(self.classes.folder),
            LOCK_VARIABLE: str(self.folder / "machine.lock"),
        }
        command = [sys.executable, "-m", "tests.benchmarks.scripted_server", str(self.port)]
        command += ["--trains"] if self.trains else []
        with (self.folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                command, cwd=PROJECT, env={**os.environ, **variables}, stdout=log, stderr=log
            )

    async def healthy(self) -> None:
        """Wait until the server answers."""
        await asyncio.to_thread(await_health, self.port)

    async def kill(self, whom: str) -> bool:
        """Kill one of the two, if it is there; the server is started anew at once."""
        if whom == "server":
            assert self._server is not None
            self._server.kill()
            self._server.wait()
            self.start()
        elif not self._kill_worker():
            return False
        self.killed[whom] += 1
        return True

    def stop(self) -> None:
        """End both."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        self.queue.worker_file.dismiss()

    def idle(self) -> bool:
        """Whether nothing waits or is measured."""
        return not any(job.active for job in self.queue.jobs())

    def look(self) -> None:
        """Remember every row that is in a store now."""
        for student in self.classes.students(self.of):
            self.seen.setdefault(student.id, set()).update(self.rows_of(student.id))

    def rows_of(self, student_id: str) -> set[str]:
        """Names of the rows in a student's store."""
        return set(self.counted(student_id))

    def counted(self, student_id: str) -> collections.Counter[str]:
        """How often each row is in the files of a student's store."""
        found: collections.Counter[str] = collections.Counter()
        for path in (self.classes.folder / self.of.id / "students" / student_id).glob("results*/*.parquet"):
            with contextlib.suppress(FileNotFoundError):
                found.update(pq.read_table(path, columns=["trial_id"])["trial_id"].to_pylist())
        return found

    def _kill_worker(self) -> bool:
        """Kill who serves the queue; False if nobody does just now."""
        serving = self.queue.worker_file.serving
        if serving is None or not serving.process.alive:
            return False
        with contextlib.suppress(psutil.NoSuchProcess, PermissionError):
            serving.process.kill(self.queue.worker_file.serves)
            return True
        return False
