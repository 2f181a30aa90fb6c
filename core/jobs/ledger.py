"""Who had how much of the measuring process today, and whose turn was when: one small file beside the jobs.

Changed only under the queue's guard. Jobs themselves are dropped when there are many, what they cost is not. People
are names without meaning here, see `core.jobs.job.Job.asked_by`; who asked on the command line has none and no limit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.jobs import files

KEPT_PEOPLE = 10_000
"""Entries that are kept, those with the latest turns; a visitor who comes without a name each time makes many."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What the queue holds one person to.

    Attributes:
        seconds_per_day: of measuring, those that were asked for and not yet used included; 0 for no limit.
        waiting: jobs that wait or run at once; 0 for no limit.
        queue_length: most jobs of everybody that wait at once.
    """

    seconds_per_day: float = 0.0
    waiting: int = 0
    queue_length: int = 100


@dataclass(frozen=True)
class Ledger:
    """The file of one folder of jobs.

    Attributes:
        path: where it is.
    """

    path: Path

    def spent_s(self, person: str, day: str) -> float:
        """Seconds of measuring that a person had on a day (ISO date, UTC)."""
        entry = self._people().get(person, {})
        return float(entry["seconds"]) if entry.get("day") == day else 0.0

    def turns(self, people: Iterable[str]) -> dict[str, int]:
        """When each person's last turn was, as a number that grows; 0 for who had none."""
        known = self._people()
        return {person: int(known.get(person, {}).get("turn", 0)) for person in people}

    def take_turn(self, person: str) -> None:
        """Write down that it is a person's turn now.

        Raises:
            OSError: the folder cannot be written.
        """
        people = self._people()
        latest = max((int(entry["turn"]) for entry in people.values()), default=0)
        people[person] = {"day": "", "seconds": 0.0, **people.get(person, {}), "turn": latest + 1}
        self._write(people)

    def charge(self, person: str, seconds: float, day: str) -> None:
        """Add seconds of measuring to what a person had on a day.

        Raises:
            OSError: the folder cannot be written.
        """
        people = self._people()
        entry = people.get(person, {"turn": 0})
        before = float(entry["seconds"]) if entry.get("day") == day else 0.0
        people[person] = {**entry, "day": day, "seconds": before + seconds}
        self._write(people)

    def _people(self) -> dict[str, dict[str, Any]]:
        return files.read_json(self.path) or {}

    def _write(self, people: dict[str, dict[str, Any]]) -> None:
        if len(people) > KEPT_PEOPLE:
            latest = sorted(people, key=lambda person: int(people[person]["turn"]))[-KEPT_PEOPLE:]
            people = {person: people[person] for person in latest}
        files.write_json(self.path, people)
