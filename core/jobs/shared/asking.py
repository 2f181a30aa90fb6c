"""Who asks many machines: opens a question at the place of a store, follows those who work on it, takes it away.

Whoever asked may die: the machines go on, and the same question asked again finds what they did. Nothing here measures
or reads a row.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ...errors import StoreError
from .board import Board, Question
from .launching import Launcher
from .members import ENDED, Member

POLL_S = 1.0

FOLLOW_S = 60.0
"""How often who asked says that somebody waits for the answer."""

SETTLE_S = 3.0
"""For how long everybody must have ended before it is believed that nobody else begins."""


GATHER_S = 60.0
"""For how long machines are waited for that are brought to say who they are: each has to load PyTorch."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """How a question stands.

    Attributes:
        present: machines that are there, by name.
        ended: machines that ended, by name.
        failure: why the place could not be looked at just now; empty if it could.
    """

    present: Mapping[str, Member] = field(default_factory=dict)
    ended: Mapping[str, Member] = field(default_factory=dict)
    failure: str = ""

    @property
    def over(self) -> bool:
        """Whether every machine that is there has ended, and at least one has."""
        return bool(self.ended) and not self.failure and self.present.keys() <= self.ended.keys()


def follow(board: Board, question: Question, on_change: Callable[[Seen], None], keep: Callable[[], None]) -> Seen:
    """Ask a question of all who share a place, and watch until every machine that is there has ended.

    The question is taken away at its end, and when an interrupt from the keyboard or an error ends the watching, which
    stops all who work on it.

    Args:
        board: of the place.
        question: to be asked; if it is open already, it goes on.
        on_change: told whenever something is seen that is new.
        keep: called again and again meanwhile, for whoever has to see to the machines.

    Returns:
        What was seen last.

    Raises:
        StoreError: the place cannot be reached at the beginning.
    """
    if not board.is_open(question.id):
        board.forget_ends(question.id)
        board.ask(question)
    seen, over_since, told = Seen(), 0.0, float("-inf")
    try:
        while True:
            keep()
            if time.monotonic() - told >= FOLLOW_S:
                told = time.monotonic()
                with contextlib.suppress(StoreError):
                    board.follow(question.id)
            now = look(board, question)
            if (now.present, now.ended, now.failure) != (seen.present, seen.ended, seen.failure):
                on_change(now)
            seen = now
            over_since = (over_since or time.monotonic()) if now.over else 0.0
            if over_since and time.monotonic() - over_since >= SETTLE_S:
                return seen
            time.sleep(POLL_S)
    finally:
        with contextlib.suppress(StoreError):
            board.close(question.id)


def gathered(board: Board, launcher: Launcher) -> list[Member]:
    """Machines that are there once all that are brought have said so, or `GATHER_S` later.

    Raises:
        StoreError: the place cannot be reached.
        JobError: none can be brought.
    """
    until = time.monotonic() + GATHER_S
    while len(members := board.members()) < launcher.machines and time.monotonic() < until:
        launcher.keep()
        time.sleep(POLL_S)
    return members


def look(board: Board, question: Question) -> Seen:
    """How a question stands now."""
    try:
        ended = board.ends(question.id)
        present = {member.host: member for member in board.members()}
    except StoreError as error:
        return Seen(failure=str(error))
    return Seen(present=present, ended=ended)


def left_s(question: Question, members: Iterable[Member]) -> float | None:
    """Seconds until machines have done what is left of a question; None while nothing is known of it.

    Args:
        question: on which they work.
        members: as they told of themselves last; those that have ended, or work on another one, are left out.
    """
    alike: dict[str, list[float]] = {}
    for member in members:
        if member.question == question.id and member.state not in ENDED and member.left_s:
            name = member.machine_id if question.spread == "shared" else member.host
            alike.setdefault(name, []).append(member.left_s)
    return max((1 / sum(1 / alone_s for alone_s in group) for group in alike.values()), default=None)
