"""Moments that several processes of one machine can compare, whatever becomes of its clock.

Counted from the start of the system, without the time that it slept; a moment of an earlier start cannot be compared.
Dates for people are another matter. Nothing here waits.
"""

import time
from dataclasses import dataclass
from typing import Self

from core.files.documents import Seconds
from core.jobs import process


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A reading of the system's uptime.

    Attributes:
        boot: name of the start that it counts from.
        uptime_s: seconds since then.
    """

    boot: str
    uptime_s: Seconds

    @classmethod
    def read_clock(cls) -> Self:
        """The present moment."""
        return cls(boot=process.boot(), uptime_s=time.monotonic())

    @property
    def ago_s(self) -> float | None:
        """Seconds that passed since; None if the system was started anew, or the moment is yet to come."""
        passed_s = time.monotonic() - self.uptime_s
        return passed_s if self.boot == process.boot() and passed_s >= 0 else None
