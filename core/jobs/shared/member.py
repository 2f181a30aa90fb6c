"""A machine at work for others: takes what is open at the place of a shared store, measures it, and says so.

It asks its own queue as anybody at this machine would, so that its rows are those of a run by hand: the same measuring
process, the same lock of the machine, the same settings. Of a question that is shared it holds one point at a time; a
machine that dies gives its point back when its lease lapses. While the place cannot be reached it goes on with what it
has, and its rows wait here.
"""

import contextlib
import dataclasses
import hashlib
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from core.answer.run import certainty
from core.answer.study import search, study
from core.errors import CrossoverError, StoreError
from core.files.shared.lease import Lease
from core.jobs import client
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.queue import Queue
from core.jobs.shared.board import Board, Member, Question, State
from core.question.experiment import Experiment, Point
from core.question.sweep import Sweep
from core.results.finding import mirrored
from core.results.schema import Trial
from core.results.store import Store

LOOK_S = 1.0
"""How often it is looked whether a question is still open."""

TELL_S = 10.0
"""How often a machine says that it is there, and that it still holds what it holds."""

_WATCH_S = 0.2

Told = Callable[[Member], None]


def host_name(queue: Queue) -> str:
    """The name of this machine among those that share a store: its own, and a mark of its folder of jobs."""
    mark = hashlib.sha256(str(queue.folder).encode()).hexdigest()[:6]
    return f"{re.sub(r'[^A-Za-z0-9.-]', '-', socket.gethostname())[:60] or 'machine'}-{mark}"


@dataclass
class _Work:
    """What is done for one question: points that this machine could not measure, and how often it told."""

    question: Question
    failed: dict[Point, str] = field(default_factory=dict)
    open: bool = True
    looked: float = -LOOK_S
    told: float = -TELL_S


class Working:
    """This machine, at work for whoever shares a store."""

    def __init__(self, board: Board, store: Store, queue: Queue, machine: Machine, on_change: Told) -> None:
        """Take part; nothing is told yet.

        Args:
            board: what machines tell each other.
            store: the rows of this machine's copy.
            queue: of this machine.
            machine: what the measuring process found here.
            on_change: told whenever this machine says something new of itself.
        """
        self._board, self._store, self._queue, self._machine, self._on_change = board, store, queue, machine, on_change
        names = tuple(info.name for info in machine.devices)
        about = machine.environment
        self._member = Member(
            host=host_name(queue), machine_id=about.machine_id, cpu=about.cpu_name[:200], devices=names
        )
        self._done: set[str] = set()
        self._told = -TELL_S

    def work(self, *, for_s: float, only: str = "") -> Member:
        """Answer what is asked until so much time has passed.

        Args:
            for_s: seconds after which nothing new is begun.
            only: a question, with whose end this ends too; any unless given.

        Returns:
            What it said of itself last.
        """
        end = time.monotonic() + for_s
        try:
            while time.monotonic() < end:
                question = self._next(only)
                if question is not None:
                    self._answer(question)
                elif only:
                    break
                else:
                    self._tell(every_s=TELL_S)
                    time.sleep(LOOK_S)
        finally:
            with contextlib.suppress(StoreError):
                self._board.leave(self._member.host)
        return self._member

    def _next(self, only: str) -> Question | None:
        """A question that is open and not answered here; None also while the place cannot be reached."""
        try:
            asked = self._board.questions()
            for question in asked:
                if only in ("", question.id) and self._is_new(question):
                    return question
        except StoreError as error:
            self._say("waiting", str(error))
        return None

    def _is_new(self, question: Question) -> bool:
        """Whether this machine has not answered it; one that was asked anew since has lost its ends."""
        ended = self._board.ends(question.id).get(self._member.host)
        return ended is None or ended.state == "stopped"

    def _answer(self, question: Question) -> None:
        work = _Work(question)
        self._member = dataclasses.replace(self._member, question=question.id, rows=0)
        self._say("measuring", "")
        try:
            if question.spread == "everywhere":
                state, message = self._whole(work)
            else:
                state, message = self._points(work)
        except CrossoverError as error:
            state, message = "failed", str(error)
        mirrored.bring(self._store.folder)
        self._say(state, message)

    def _whole(self, work: _Work) -> tuple[State, str]:
        job = self._measured(work, work.question.sweep, None)
        self._member = dataclasses.replace(self._member, rows=len(job.trial_ids))
        return _end(job, work)

    def _points(self, work: _Work) -> tuple[State, str]:
        """Measure points that nobody has measured on a machine like this one, one at a time."""
        while self._is_open(work):
            todo = self._todo(work)
            if not todo:
                break
            if not any(self._point(work, point) for point in todo):  # others hold them all
                self._tell(every_s=TELL_S)
                time.sleep(LOOK_S)
        self._member = dataclasses.replace(self._member, rows=len(self._answers(work.question.sweep)))
        if not work.open:
            return "stopped", ""
        return ("failed" if work.failed else "finished"), " ".join(dict.fromkeys(work.failed.values()))

    def _point(self, work: _Work, point: Point) -> bool:
        """Measure a point if nobody holds it; returns whether it was ours to measure."""
        asked = work.question.sweep.experiment(point)
        lease = self._board.lease(work.question.id, f"{asked.id}-{self._member.machine_id}")
        if not lease.take():
            return False
        try:
            mirrored.bring_now(self._store.folder)
            if self._answered([asked]):
                return True
            job = self._measured(work, asked, lease)
            if not job.complete and work.open:
                work.failed[point] = job.message or f"The measurement has {job.state}."
            return True
        finally:
            with contextlib.suppress(StoreError):
                lease.release()

    def _measured(self, work: _Work, asked: Experiment | Sweep, lease: Lease | None) -> Job:
        """The job of a question, ended; it is stopped when the question is taken away."""
        job = self._queue.submit(asked, self._store)
        while job.active:
            if not self._is_open(work):
                return client.stop(self._queue, job.id)
            self._keep(work, job, lease)
            time.sleep(_WATCH_S)
            job = client.watch(self._queue, job.id)
        return job

    def _keep(self, work: _Work, job: Job, lease: Lease | None) -> None:
        """Say every now and then that this machine is there, and holds what it holds."""
        if time.monotonic() - work.told < TELL_S:
            return
        work.told = time.monotonic()
        self._say("measuring", _progress(job))
        if lease is not None:
            with contextlib.suppress(StoreError):
                lease.renew()

    def _is_open(self, work: _Work) -> bool:
        """Whether the question is still asked; while that cannot be found out, it is."""
        if work.open and time.monotonic() - work.looked >= LOOK_S:
            work.looked = time.monotonic()
            with contextlib.suppress(StoreError):
                work.open = self._board.is_open(work.question.id)
        return work.open

    def _todo(self, work: _Work) -> list[Point]:
        """Points to measure: of a grid all that have no answer, of a search the one that it wants next."""
        sweep = work.question.sweep
        answers = self._answers(sweep)
        if sweep.adaptive:
            return _wanted(sweep, answers, work.failed)
        return [
            point for point in sweep.points if sweep.experiment(point).id not in answers and point not in work.failed
        ]

    def _answers(self, sweep: Sweep) -> Mapping[str, Sequence[Trial]]:
        return self._answered([sweep.experiment(point) for point in sweep.points])

    def _answered(self, experiments: Sequence[Experiment]) -> Mapping[str, Sequence[Trial]]:
        return self._store.answers(experiments, self._machine.here, accepted=certainty.answers)

    def _tell(self, *, every_s: float) -> None:
        if time.monotonic() - self._told >= every_s:
            self._say("free", "")

    def _say(self, state: State, message: str) -> None:
        self._told = time.monotonic()
        said = dataclasses.replace(self._member, state=state, message=message[:2_000])
        if said != self._member:
            self._on_change(said)
        self._member = said
        with contextlib.suppress(StoreError):
            self._board.tell(said)


def _wanted(sweep: Sweep, answers: Mapping[str, Sequence[Trial]], failed: Mapping[Point, str]) -> list[Point]:
    """The point that a search measures next; none once it is over."""
    known = {point: answers[name] for point in sweep.points if (name := sweep.experiment(point).id) in answers}
    size = search.next_step(list(map(sweep.size, sweep.points)), study.of_sweep(sweep, known, failed)).size
    return [point for point in sweep.points if sweep.size(point) == size]


def _end(job: Job, work: _Work) -> tuple[State, str]:
    if not work.open:
        return "stopped", ""
    return ("finished" if job.complete else "failed"), job.message


def _progress(job: Job) -> str:
    """How far a job is, in a few words."""
    if job.progress is None:
        return "waiting for its turn" if job.state == "queued" else ""
    sweep = job.progress.sweep
    if sweep is None:
        return job.progress.phase
    return f"{sweep.done} of {sweep.total} points{sweep.left}"
