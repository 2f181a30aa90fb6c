"""The process that has measured by other machines what a queue holds for them: `python -m core.jobs.shared.asker`.

`core.jobs.client` starts it as it starts a worker, so that a page or a command line may come and go. It takes such jobs
in turn, asks the machines, and writes into the job what they tell; only here is Ray ever loaded for a page. It
measures nothing itself, and leaves once nothing waits.
"""

import argparse
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from filelock import BaseFileLock, Timeout

from ... import units
from ...answer import many_machines
from ...errors import CrossoverError, StoreError
from ...progress import Progress, SweepProgress
from ...question.sweep import Sweep
from ...results import index
from ...results.store import Store
from ...text import LogFormatter
from .. import process, recovery
from ..job import Job, RemoteTarget
from ..queue import Queue
from ..worker.reporter import Reporter
from ..worker_file import Serving
from . import asking, board
from .asking import Seen
from .board import Question
from .launching import launcher
from .members import ENDED, Member

ROWS_S = 3.0
"""How often it is looked which rows there are by now."""

END_S = 5.0
"""How long machines that are told to stop have to say that they did."""

ABSENT_S = 600.0
"""After so long without any machine nobody is waited for, where they join by themselves."""

LOST = "Nothing was heard of it for a minute."
NOBODY = "No machine is at work there yet. On each: python -m core worker, with the same --store."
GONE = "No machine was at work there for 10 minutes, so nothing was measured. {start}"
BUSY = "at work for another question"


class _Stop(Exception):
    """Somebody wants the job to end."""


class Asking:
    """One job of a queue, asked of other machines."""

    def __init__(self, queue: Queue, job: Job, asked: Sweep, elsewhere: RemoteTarget) -> None:
        """Take a job; nothing is asked yet."""
        self._queue, self._reporter, self._elsewhere = queue, Reporter(queue, job), elsewhere
        self._question = Question(sweep=asked, spread=elsewhere.spread)
        self._store = Store(job.store)
        self._began = self._met = time.monotonic()
        self._looked = -ROWS_S
        self._told: dict[str, Member] = {}
        self._phase = NOBODY

    @property
    def job(self) -> Job:
        """The job as it was written down last."""
        return self._reporter.job

    def run(self) -> Job:
        """Ask until every machine has ended, or somebody stops it; the job, ended.

        Raises:
            CrossoverError: the machines cannot be asked.
        """
        at = board.board_of(self._store.folder)
        with launcher(self._elsewhere.on, self._store.folder, "--question", self._question.id) as nodes:

            def keep() -> None:
                nodes.keep()
                self._report()

            try:
                asking.follow(at, self._question, self._see, keep)
            except _Stop:
                self._await_ends(at)
                return self._ended("stopped")
        return self._ended("finished")

    def _see(self, seen: Seen) -> None:
        """Take over what machines tell; one that is not there any more and did not end is told to have failed."""
        gone = self._told.keys() - seen.present.keys() - seen.ended.keys() if not seen.failure else set()
        self._told |= {host: replace(self._told[host], state="failed", message=LOST) for host in gone}
        self._told |= {host: self._as_ours(member) for host, member in seen.present.items()} | dict(seen.ended)
        if self._told:
            self._met = time.monotonic()
        self._phase = seen.failure or self._in_short()

    def _as_ours(self, member: Member) -> Member:
        """What a machine says of itself, as far as this question goes."""
        if member.question == self._question.id or member.state != "measuring":
            return member
        return replace(member, state="waiting", message=BUSY)

    def _in_short(self) -> str:
        states = [member.state for member in self._told.values()]
        if not states:
            return NOBODY
        over = sum(state in ENDED for state in states)
        return f"{over} of {units.format_quantity(len(states), 'machine')} done"

    def _report(self) -> None:
        """Write down how it stands.

        Raises:
            _Stop: the job shall end.
            CrossoverError: nobody came.
        """
        if self._reporter.should_stop():
            raise _Stop
        now = time.monotonic()
        if self._elsewhere.on == "workers" and not self._told and now - self._met >= ABSENT_S:
            raise CrossoverError(GONE.format(start=NOBODY.partition(". ")[2]))
        if now - self._looked >= ROWS_S:
            self._looked = now
            with suppress(StoreError):
                self._look()
        machines = self._machines()
        self._reporter.job = replace(self._reporter.job, machines=machines)
        at_it = [member for member in machines if member.state != "failed"]
        done, total = sum(member.done for member in at_it), sum(member.total for member in at_it)
        left_s = asking.left_s(self._question, at_it)
        self._reporter.sweep_progress(SweepProgress(done=done, total=total, remaining_s=left_s))
        self._reporter.progress(Progress(phase=self._phase, elapsed_s=now - self._began))

    def _look(self) -> None:
        """Take over which rows there are."""
        machines = {member.rows_id(self._question.spread) for member in self._told.values()}
        rows = many_machines.rows(self._store, self._question.sweep, machines)
        run_ids, trial_ids = ({getattr(row, name): None for row in rows} for name in ("run_id", "trial_id"))
        self._reporter.job = replace(self._reporter.job, run_ids=tuple(run_ids), trial_ids=tuple(trial_ids))

    def _machines(self) -> tuple[Member, ...]:
        return tuple(self._told[host] for host in sorted(self._told))

    def _at_it(self) -> list[Member]:
        """Machines that work on it, as far as they said."""
        known = (member for member in self._machines() if member.question == self._question.id)
        return [member for member in known if member.state not in (*ENDED, "free")]

    def _await_ends(self, at: board.Board) -> None:
        """Let machines that were told to stop say so."""
        deadline = time.monotonic() + END_S
        while time.monotonic() < deadline and self._at_it():
            self._see(asking.look(at, self._question))
            time.sleep(asking.POLL_S / 4)

    def _ended(self, state: str) -> Job:
        """The job at its end, with the rows that there are and with what failed."""
        with suppress(StoreError):
            index.list_files(self._store.folder, now=True)
            self._look()
        failed = [member for member in self._machines() if member.state == "failed"]
        job = replace(
            self._reporter.job,
            machines=self._machines(),
            missing=tuple(f"{member.host}: {member.message or 'it failed.'}" for member in failed),
        )
        if state == "stopped":
            kept = (
                f"{units.format_quantity(len(job.run_ids), 'run')} of theirs kept"
                if job.run_ids
                else "nothing was measured"
            )
            late = [member.host for member in self._at_it()]
            last = f" Not heard by then: {', '.join(late)}." if late else ""
            return replace(job, state="stopped", message=f"The machines were told to stop; {kept}.{last}")
        return recovery.finish_job(job, "" if job.trial_ids else "No machine has measured anything.")


def serve(queue: Queue) -> None:
    """Take what waits for other machines until nothing does; leave at once if somebody else does."""
    served, me = queue.asker_file, process.current_process()
    served.folder.mkdir(parents=True, exist_ok=True)
    lock = served.lock()
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return
    with queue.guard():
        served.take(Serving(process=me, ready=True))
    while not _left(queue, lock):
        if (job := queue.claim(me, elsewhere=True)) and job.sweep and job.elsewhere:
            queue.end(_answered(queue, job, job.sweep, job.elsewhere))


def _answered(queue: Queue, job: Job, asked: Sweep, elsewhere: RemoteTarget) -> Job:
    asking_them = Asking(queue, job, asked, elsewhere)
    try:
        return asking_them.run()
    except CrossoverError as error:
        return replace(asking_them.job, state="failed", message=str(error))
    except Exception as error:
        logging.exception("Job %s met an unexpected error.", job.id)
        said = f"Unexpected error while machines were asked: {type(error).__name__} ({queue.asker_file.log})."
        return replace(asking_them.job, state="failed", message=said)


def _left(queue: Queue, lock: BaseFileLock) -> bool:
    """Give the place up if nothing waits; whoever submits a job from now on finds it empty."""
    with queue.guard():
        if queue.waiting(elsewhere=True):
            return False
        lock.release()
        queue.asker_file.leave(process.current_process())
        return True


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the queue named on the command line."""
    parser = argparse.ArgumentParser(prog=f"{__package__}.asker", description="Ask other machines what waits here.")
    parser.add_argument("--jobs", type=Path, required=True, help="folder of jobs; it tells this process from others")
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    serve(Queue(parser.parse_args(arguments).jobs))


if __name__ == "__main__":
    main()
