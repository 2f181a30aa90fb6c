"""Usage of the measuring process per person today, and the order of turns (docs/decisions/0006).

One small file in the jobs folder, changed only under the queue's lock. People are opaque names, see
`core.jobs.job.Job.asked_by`; requests from the command line have no name and no limit.
"""

import collections
import contextlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .. import units
from ..errors import DamagedFile
from ..files import documents
from ..files.documents import Count, Seconds
from .job import Job

KEPT_PEOPLE = 10_000
"""Limit of stored entries, latest turns first; a visitor without a name makes a new entry each time."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The queue's limits for one person.

    Attributes:
        seconds_per_day: seconds of measuring per day, including requested seconds that are not used yet; 0 for no
            limit.
        waiting: jobs of the person that wait or run at once; 0 for no limit.
        queue_length: waiting jobs of all people.
    """

    seconds_per_day: float = 0.0
    waiting: int = 0
    queue_length: int = 100

    def refusal(self, wanted_s: Sequence[float], waiting_s: Sequence[float], *, used_s: float) -> str:
        """Return why a person may not submit more, in one sentence; empty if they may.

        Args:
            wanted_s: seconds that each new job may take.
            waiting_s: seconds that each unfinished job of the person may take.
            used_s: seconds that the person used today.
        """
        if self.waiting and len(waiting_s) + len(wanted_s) > self.waiting:
            allowed = f"{self.waiting} {'is' if self.waiting == 1 else 'are'} allowed at once"
            if not waiting_s:
                return f"This takes {len(wanted_s)} measurements, and {allowed}."
            have = f"You have {units.format_quantity(len(waiting_s), 'measurement')} waiting or running"
            more = f", this would be {len(wanted_s)} more," if len(wanted_s) > 1 else ""
            return f"{have}{more} and {allowed}."
        if not self.seconds_per_day:
            return ""
        total_s, left_s = sum(wanted_s), max(0.0, self.seconds_per_day - used_s - sum(waiting_s))
        if total_s <= left_s:
            return ""
        return (
            f"This run may take {units.format_duration(total_s)}, but only {units.format_duration(left_s)} of your "
            f"{units.format_duration(self.seconds_per_day)} for today (UTC) are left."
        )


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """The record of a person, or of a location that many share.

    Attributes:
        turn: number of the last turn, which increases; 0 if there was none.
        day: day of the seconds, ISO date, UTC.
        seconds: seconds of measuring on that day.
    """

    turn: Count = 0
    day: str = ""
    seconds: Seconds = 0.0

    def seconds_on_day(self, day: str) -> float:
        """Return the seconds of measuring on a day."""
        return self.seconds if self.day == day else 0.0


@dataclass(frozen=True)
class Usage:
    """The usage file of one folder of jobs.

    Attributes:
        path: path of the file.
    """

    path: Path

    def seconds_on_day(self, person: str, day: str) -> float:
        """Return the seconds of measuring that a person used on a day (ISO date, UTC)."""
        return self._entries().get(person, _Entry()).seconds_on_day(day)

    def turns(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of the last turn of each name; 0 if it had none."""
        known = self._entries()
        return {name: known.get(name, _Entry()).turn for name in names}

    def take_turn(self, *names: str) -> None:
        """Record a turn of a person, and of their location.

        Raises:
            OSError: the folder cannot be written.
        """
        entries = self._entries()
        turn = max((entry.turn for entry in entries.values()), default=0) + 1
        for name in names:
            entries[name] = replace(entries.get(name, _Entry()), turn=turn)
        self._write(entries)

    def charge(self, person: str, seconds: float, day: str) -> None:
        """Add seconds of measuring to the usage of a person on a day.

        Raises:
            OSError: the folder cannot be written.
        """
        entries = self._entries()
        entry = entries.get(person, _Entry())
        entries[person] = replace(entry, day=day, seconds=entry.seconds_on_day(day) + seconds)
        self._write(entries)

    def _entries(self) -> dict[str, _Entry]:
        try:
            return documents.read_json(self.path, dict[str, _Entry]) or {}
        except DamagedFile as error:  # nobody is blocked for it; a copy of the damaged file remains
            _log.warning("The turns and budgets of today are reset: %s", error)
            with contextlib.suppress(OSError):
                documents.set_aside(self.path)
            return {}

    def _write(self, entries: dict[str, _Entry]) -> None:
        latest = sorted(entries, key=lambda name: entries[name].turn)[-KEPT_PEOPLE:]
        documents.write_json(self.path, {name: asdict(entries[name]) for name in latest})


def places(waiting: Sequence[Job], usage: Usage) -> dict[str, int]:
    """Return job id → place of the job in the queue, 1 for the next.

    Args:
        waiting: waiting jobs, in the order of submission.
        usage: last turns of all people.
    """
    if not waiting:
        return {}
    turns = usage.turns({name for job in waiting for name in (job.asked_by, _source(job))})
    asked: collections.Counter[str] = collections.Counter()
    by_source: dict[str, list[tuple[int, int, str]]] = {}
    for job in waiting:
        by_source.setdefault(_source(job), []).append((asked[job.asked_by], turns[job.asked_by], job.id))
        asked[job.asked_by] += 1
    order = [
        (rank, turns[source], job_id)
        for source, theirs in by_source.items()
        for rank, (_, _, job_id) in enumerate(sorted(theirs))
    ]
    return {job_id: place for place, (_, _, job_id) in enumerate(sorted(order), start=1)}


def _source(job: Job) -> str:
    """Return the location of a job's request; a requester without a location counts as a separate location."""
    return job.asked_from or job.asked_by
