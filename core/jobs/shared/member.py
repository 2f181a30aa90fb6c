"""A machine at work for others: takes what is open at the place of a shared store, measures it, and says so.

It asks its own queue as anybody at this machine would, so that its rows are those of a run by hand: the same measuring
process, the same lock of the machine, the same settings. Of a question that is shared it holds one point at a time,
until the place has its rows; a machine that dies gives its point back when its lease lapses. While the place cannot be
reached it goes on with what it holds, and takes nothing new before others could say again what they hold.
"""

import contextlib
import dataclasses
import hashlib
import random
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from filelock import FileLock, Timeout

from ...answer import search, speedup, study
from ...errors import CrossoverError, DeviceUnavailable, NotReached
from ...files.shared.lease import Lease
from ...progress import WAITING
from ...question.experiment import Experiment, Point
from ...question.sweep import Sweep
from ...results import index
from ...results.schema import Trial
from ...results.store import Store
from .. import client, machine
from ..job import Job
from ..machine import Machine
from ..queue import Queue
from ..worker import sweep
from .board import Board, Question
from .members import Member, State
from .presence import Presence, Told, how_far, introduced

LOOK_S = 1.0
"""How often it is looked whether a question is still open."""

PATIENCE_S = 20.0
"""A point whose measurement has to wait for longer, as something else is measured on this machine, is given back."""

BUSY = "Something else is measured on this machine."
KILLED = "A system does so when its memory runs out."
OTHERS = "Others measure what is left."

_WATCH_S = 0.2


@dataclass
class _Work:
    """What is done for one question: by whose name, its points, which failed and which were measured here, how long."""

    question: Question
    machine_id: str
    experiments: Mapping[Point, Experiment]
    failed: dict[Point, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    open: bool = True
    looked: float = -LOOK_S


class Working:
    """This machine, at work for whoever shares a store."""

    def __init__(self, board: Board, store: Store, queue: Queue, found: Machine, on_change: Told) -> None:
        """Take part; nothing is told yet.

        Args:
            board: what machines tell each other.
            store: the rows of this machine's copy.
            queue: of this machine.
            found: what the measuring process found here.
            on_change: told whenever this machine says something new of itself.
        """
        self._board, self._store, self._queue, self._machine = board, store, queue, found
        self._presence = Presence(board, introduced(board, queue, found.environment, found.devices), on_change)
        self._end = 0.0

    def work(self, *, for_s: float, only: str = "") -> Member:
        """Answer what is asked until so much time has passed.

        One process of a machine does so for a store; another one waits until that has ended.

        Args:
            for_s: seconds after which nothing new is begun.
            only: a question, with whose end this ends too; any unless given.

        Returns:
            What it said of itself last.
        """
        self._end = time.monotonic() + for_s
        mark = hashlib.sha256(str(self._store.folder.absolute()).encode()).hexdigest()[:8]
        self._queue.folder.mkdir(parents=True, exist_ok=True)
        alone = FileLock(self._queue.folder / f"sharing-{mark}.lock")
        try:
            while self._has_time and self._goes_on(alone, only):
                pass
        finally:
            if alone.is_locked:
                self._presence.leave()
            alone.release()
        return self._presence.member

    @property
    def _has_time(self) -> bool:
        return time.monotonic() < self._end

    def _goes_on(self, alone: FileLock, only: str) -> bool:
        """Answer one question, or look again in a moment; False once there is nothing left to wait for."""
        with contextlib.suppress(Timeout):
            if not alone.is_locked:
                alone.acquire(timeout=0)
            if self._answered_one(only):
                return True
        if only and self._is_over(only):
            return False
        time.sleep(LOOK_S)
        return True

    def _answered_one(self, only: str) -> bool:
        """Answer a question that is open and new here; False if there is none, or the place cannot be reached."""
        with self._presence.reaching():
            for question_id, question in self._board.asked().items():
                if only not in ("", question_id) or not self._is_new(question_id):
                    continue
                if isinstance(question, Question):
                    self._answer(question)
                    return True
                self._presence.note(question=question_id)
                self._presence.say("failed", question)
            self._presence.keep("busy" if machine.is_measuring() else "free")
            return False
        self._presence.keep("waiting", self._presence.trouble)
        return False

    def _is_over(self, question_id: str) -> bool:
        """Whether a question is answered by this machine, or asked no more; not while that cannot be found out."""
        with self._presence.reaching():
            return not self._board.is_open(question_id) or not self._is_new(question_id)
        return False

    def _is_new(self, question_id: str) -> bool:
        """Whether this machine has not answered it; one that was asked anew since has lost its ends."""
        ended = self._board.end(question_id, self._presence.member.host)
        return ended is None or ended.state == "stopped"

    def _answer(self, question: Question) -> None:
        sweep = question.sweep
        machine_id = self._presence.member.rows_id(question.spread)
        work = _Work(question, machine_id, {point: sweep.experiment(point) for point in sweep.points})
        total = 0 if sweep.adaptive else len(work.experiments)
        self._presence.note(question=question.id, done=0, total=total, left_s=None)
        self._presence.say("measuring")
        try:
            self._require_devices(sweep)
            end = self._whole(work) if question.spread == "everywhere" else self._points(work)
        except NotReached as error:
            end = "waiting", str(error)  # it is begun again, as it is asked and has no end
        except CrossoverError as error:
            end = "failed", str(error)
        state, message = end or ("free", "")
        self._presence.say(state, message)

    def _require_devices(self, sweep: Sweep) -> None:
        """Refuse at once what would fail at every point."""
        there = [info.device for info in self._machine.devices]
        for contender in sweep.contenders:
            if contender.device not in there:
                raise DeviceUnavailable(
                    f"The device {contender.device} is not on this machine, which has {', '.join(there)}."
                )

    def _whole(self, work: _Work) -> tuple[State, str] | None:
        """Measure all points as one job; None if the time is over before.

        Where its process is killed, as when memory runs out, one by one: then all but one point have an answer.
        """
        job = self._measured(work, work.question.sweep, None)
        if job is None:
            return None if work.open else ("stopped", "")
        if job.state == "crashed":
            return self._points(work)
        return ("finished" if job.complete else "failed"), job.message

    def _points(self, work: _Work) -> tuple[State, str] | None:
        """Measure points that nobody has measured on a machine like this one, one at a time; None as above."""
        while self._is_open(work):
            if not self._has_time:
                return None
            todo = self._todo(work)
            if not todo:
                return ("failed" if work.failed else "finished"), " ".join(dict.fromkeys(work.failed.values()))
            if not self._took_one(work, todo):
                time.sleep(LOOK_S)
        return "stopped", ""

    def _todo(self, work: _Work) -> list[Point]:
        """Points to measure: of a grid all that have no answer, of a search the one that it wants next."""
        sweep, answers = work.question.sweep, self._answers(work, work.experiments.values())
        known = {point: answers[name] for point, asked in work.experiments.items() if (name := asked.id) in answers}
        todo = [point for point in work.experiments if point not in known and point not in work.failed]
        left_s = statistics.median(work.seconds.values()) * len(todo) if work.seconds and not sweep.adaptive else None
        self._presence.note(done=len(known), left_s=left_s)
        if not sweep.adaptive:
            order = random.Random(self._presence.member.host)  # another one each, so that few want the same at once
            return order.sample(todo, len(todo))
        sizes = list(map(sweep.size, sweep.points))
        wanted = search.next_step(sizes, study.sweep_evidence(sweep, known, work.failed)).size
        return [point for point in work.experiments if sweep.size(point) == wanted]

    def _took_one(self, work: _Work, todo: Sequence[Point]) -> bool:
        """Measure the first point that nobody holds; False if this machine has to wait."""
        if machine.is_measuring():
            self._presence.keep("busy", BUSY)
            return False
        if self._presence.settled:  # or others may hold what lapsed while nobody could say so
            with self._presence.reaching():
                held = self._board.held(work.question.id)
                free = (point for point in todo if self._part(work, work.experiments[point]) not in held)
                if any(self._point(work, point) for point in free):
                    return True
                self._presence.keep("waiting", OTHERS)
                return False
        self._presence.keep("waiting", self._presence.trouble)
        return False

    def _part(self, work: _Work, asked: Experiment) -> str:
        return f"{asked.id}-{work.machine_id}"

    def _point(self, work: _Work, point: Point) -> bool:
        """Measure a point if nobody holds it; returns whether it was ours to measure.

        Raises:
            StoreError: the place cannot be reached.
        """
        asked = work.experiments[point]
        lease = self._board.lease(work.question.id, self._part(work, asked), self._presence.member.host)
        if not lease.take():
            return False
        self._presence.note(doing=sweep.describe_point(work.question.sweep, point))
        try:
            index.list_files(self._store.folder, now=True)
            if not self._answers(work, [asked]):
                began = time.monotonic()
                job = self._measured(work, asked, lease)
                if job is not None and not job.complete:
                    work.failed[point] = self._why(job)
                elif job is not None:
                    work.seconds[asked.id] = time.monotonic() - began
        finally:
            self._presence.note(doing="")
            with self._presence.reaching():
                lease.release()
        return True

    def _why(self, job: Job) -> str:
        """Why a point has no answer; where its process was killed, also which."""
        said = job.message or f"The measurement has {job.state}."
        if job.state != "crashed":
            return said
        return f"{self._presence.member.doing.capitalize()}: {said} {KILLED}"

    def _measured(self, work: _Work, asked: Experiment | Sweep, lease: Lease | None) -> Job | None:
        """The job of a question, ended; None if it was ended here before, as it shall not be measured on."""
        own = work.machine_id if work.question.spread == "everywhere" else ""
        job, began = self._queue.submit(asked, self._store, measured_as=own), time.monotonic()
        try:
            while job.active:
                self._take_over(job)
                if not self._is_open(work) or not self._keeps(job, lease, time.monotonic() - began):
                    return None
                time.sleep(_WATCH_S)
                job = client.watch(self._queue, job.id)
        finally:
            if job.active:
                client.stop(self._queue, job.id)
        self._take_over(job)
        return job

    def _keeps(self, job: Job, lease: Lease | None, seconds: float) -> bool:
        """Say how far a job is; False if it shall end, as the time is over, or others can have its point."""
        waits = job.progress is not None and job.progress.phase == WAITING
        if waits:
            held = self._presence.keep("busy", BUSY, lease)
        else:
            held = self._presence.keep("measuring", how_far(self._presence.member), lease)
        if lease is None:
            return self._has_time
        stuck = (waits or job.state == "queued") and seconds > PATIENCE_S and machine.is_measuring()
        return held and not stuck

    def _take_over(self, job: Job) -> None:
        """Say of a whole sweep how far it is."""
        if job.progress is not None and (sweep := job.progress.sweep) is not None:
            self._presence.note(doing=sweep.size_label, done=sweep.done, total=sweep.total, left_s=sweep.remaining_s)

    def _is_open(self, work: _Work) -> bool:
        """Whether the question is still asked; while that cannot be found out, it is."""
        if work.open and time.monotonic() - work.looked >= LOOK_S:
            work.looked = time.monotonic()
            with self._presence.reaching():
                work.open = self._board.is_open(work.question.id)
        return work.open

    def _answers(self, work: _Work, experiments: Iterable[Experiment]) -> Mapping[str, Sequence[Trial]]:
        """Runs that answer; of those measured here for this question any, or a busy machine would never end."""
        return self._store.answers(
            list(experiments),
            dataclasses.replace(self._machine.local_machine, machine_id=work.machine_id),
            accepted=lambda asked, rows: asked.id in work.seconds or speedup.answers_experiment(asked, rows),
        )
