"""The machines of a cluster, as a job tells of them.

Plain data, which every job may hold; nothing here reaches a cluster.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from core.files import documents

Spread = Literal["everywhere", "shared"]

SPREADS: dict[Spread, str] = {
    "everywhere": "every machine measures all points",
    "shared": "machines of one kind share the points, and count as one",
}
"""How the points of a sweep are spread over machines, with a phrase for people."""

State = Literal["free", "busy", "measuring", "waiting", "finished", "failed", "stopped"]
"""What a machine does.

- free: nothing yet.
- busy: it waits, as something else is measured on it; as earlier versions tell it.
- measuring: it measures.
- waiting: it has nothing to measure now, or cannot; the message says why.
- finished, failed, stopped: how it ended with the sweep.
"""

ENDED: tuple[State, ...] = ("finished", "failed", "stopped")
"""States in which a machine is done with the sweep."""

Line = Annotated[str, Meta(max_length=2_000)]


@dataclass(frozen=True, kw_only=True)
class ClusterMachine:
    """A machine that measures a sweep for others.

    Attributes:
        host: its name in the cluster.
        machine_id: hash of its hardware; machines of one kind have the same.
        cpu: processor.
        devices: what it can train on, by their own names.
        state: what it does.
        question: sweep that earlier versions say it works on.
        message: one sentence where there is something to say.
        doing: where the point lies that it measures, e.g. `hidden size 512`; empty between points.
        done: points that have an answer for it.
        total: points of the sweep; 0 where a search chooses them.
        left_s: seconds that the rest would take on this machine alone; None while that is not known.
        own_id: `machine_id` of its rows where every machine measures all points; empty as earlier versions tell it.
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
