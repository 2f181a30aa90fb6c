"""Machines that measure what another one asks: how a question is spread over them, and what each tells of itself.

Plain data, which every job may hold; nothing here reaches a store.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from ...files import documents

Spread = Literal["everywhere", "shared"]

SPREADS: dict[Spread, str] = {
    "everywhere": "each machine answers the whole question",
    "shared": "machines that are alike share its points, and count as one",
}
"""How a question is spread over machines, with a phrase for people."""

State = Literal["free", "busy", "measuring", "waiting", "finished", "failed", "stopped"]
"""What a machine does.

- free: nothing, for want of a question.
- busy: nothing, as something else is measured on it.
- measuring: it measures.
- waiting: it has work and cannot go on; the message says why.
- finished, failed, stopped: how it ended with its question.
"""

ENDED: tuple[State, ...] = ("finished", "failed", "stopped")
"""States in which a machine is done with its question."""

Line = Annotated[str, Meta(max_length=2_000)]


@dataclass(frozen=True, kw_only=True)
class Member:
    """A machine that works on what is open, as it tells of itself.

    Attributes:
        host: its name among those that share the store.
        machine_id: hash of its hardware; machines that are alike have the same.
        cpu: processor.
        devices: what it can train on, by their own names.
        state: what it does.
        question: on which it works, or worked last; empty before the first.
        message: one sentence where there is something to say.
        doing: where the point lies that it measures, e.g. `hidden size 512`; empty between points.
        done: points of that question that have an answer for it.
        total: points of that question; 0 where a search chooses them.
        left_s: seconds that the rest would take on this machine alone; None while that is not known.
        own_id: `machine_id` of its rows where each answers for itself; empty as earlier versions tell it.
        threads: of its processor that it may use; 0 as earlier versions tell it.
    """

    host: Annotated[str, Meta(pattern=r"^[\w.-]{1,100}$")]
    machine_id: Line
    cpu: Line
    devices: tuple[Line, ...]
    state: State = "free"
    question: Line = ""
    message: Line = ""
    doing: Line = ""
    done: documents.Count = 0
    total: documents.Count = 0
    left_s: documents.Seconds | None = None
    own_id: Line = ""
    threads: documents.Count = 0

    def rows_id(self, spread: Spread) -> str:
        """The `machine_id` of its rows of a question that is spread so."""
        return self.own_id if spread == "everywhere" and self.own_id else self.machine_id
