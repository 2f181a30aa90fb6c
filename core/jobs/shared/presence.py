"""What a machine that works for others says of itself, and how it goes on while the place cannot be reached."""

import contextlib
import dataclasses
import hashlib
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ... import units
from ...errors import StoreError
from ...files.shared.lease import Lease
from ...results.environment import DeviceInfo, Environment
from ..queue import Queue
from .board import Board
from .members import ENDED, Member, State

TELL_S = 10.0
"""How often a machine says that it is there, and that it still holds what it holds."""

SETTLE_S = 1.0
"""After this and `TELL_S` whoever could not reach the place, and can again, has said what it holds."""

MACHINE_VARIABLE = "CROSSOVER_MACHINE"
"""Environment variable that names this machine among those that are alike; hashed. Its host's name unless given."""

Told = Callable[[Member], None]


class Presence:
    """A machine as others see it.

    Attributes:
        member: what it said last, and what it will say next.
        trouble: why the place could not be reached last; empty if it always could.
    """

    def __init__(self, board: Board, member: Member, on_change: Told) -> None:
        """Take part; nothing is told yet.

        Args:
            board: what machines tell each other.
            member: this one at first.
            on_change: told whenever it says something new.
        """
        self.member, self.trouble = member, ""
        self._board, self._on_change, self._said = board, on_change, member
        self._told = self._missed = float("-inf")
        self._owed: Member | None = None

    @property
    def settled(self) -> bool:
        """Whether the place could be reached for so long that others have said there what they hold."""
        return time.monotonic() - self._missed >= TELL_S + SETTLE_S

    def note(self, **changes: Any) -> None:
        """Change what is said next; fields as in `Member`."""
        self.member = dataclasses.replace(self.member, **changes)

    def say(self, state: State, message: str = "") -> None:
        """Say what this machine does now."""
        self._told = time.monotonic()
        self.note(state=state, message=message[:2_000])
        if self.member != self._said:
            self._on_change(self.member)
        self._said = self.member
        self._owed = self.member if state in ENDED else self._owed
        with self.reaching():
            self._tell_end()
            if state not in ENDED:
                self._board.tell(self.member)

    def keep(self, state: State, message: str = "", lease: Lease | None = None) -> bool:
        """Say every now and then that this machine is there, and holds something; False if it has lost that."""
        if state != self.member.state or time.monotonic() - self._told >= TELL_S:
            self.say(state, message)
            if lease is not None:
                with self.reaching():
                    return lease.renew() or lease.take()  # what lapsed may be free all the same
        return True

    def leave(self) -> None:
        """Be counted no more."""
        with self.reaching():
            self._tell_end()
            self._board.leave(self.member.host)

    def _tell_end(self) -> None:
        """Say how this machine ended with its question, which may not have reached the place before: one waits for it.

        Raises:
            StoreError: the place cannot be reached.
        """
        if self._owed is not None:
            self._board.tell(self._owed)
            self._owed = None

    @contextlib.contextmanager
    def reaching(self) -> Iterator[None]:
        """Go on where the place cannot be reached, and note when that was, and why."""
        try:
            yield
        except StoreError as error:
            self._missed, self.trouble = time.monotonic(), str(error)


def introduced(board: Board, queue: Queue, about: Environment, devices: Sequence[DeviceInfo] = ()) -> Member:
    """This machine as it tells of itself at first; devices are known once the measuring process has looked.

    Raises:
        StoreError: the place cannot be reached.
    """
    return Member(
        host=host_name(queue),
        machine_id=about.machine_id,
        cpu=about.cpu_name[:200],
        devices=tuple(info.name for info in devices),
        own_id=own_id(board.salt(), about.machine_id),
        threads=about.cores_usable,
    )


def own_id(salt: str, machine_id: str) -> str:
    """What tells this machine from those that are alike, 12 hexadecimal digits; who has no salt learns nothing of it.

    It is the same whatever folder of jobs there is, as Slurm has a new one for each task.
    """
    node = uuid.getnode()
    card = "" if node >> 40 & 1 else f"{node:x}"  # a random number where the system tells of no network card
    name = os.environ.get(MACHINE_VARIABLE) or f"{socket.gethostname()} {card}"
    return hashlib.sha256(f"{salt} {name} {machine_id}".encode()).hexdigest()[:12]


def host_name(queue: Queue) -> str:
    """The name of this machine among those that share a store: its own, and a mark, as machines may be called alike."""
    mark = hashlib.sha256(f"{queue.folder} {uuid.getnode():x}".encode()).hexdigest()[:6]
    return f"{re.sub(r'[^A-Za-z0-9.-]', '-', socket.gethostname())[:60] or 'machine'}-{mark}"


def how_far(member: Member) -> str:
    """Where a machine is with a question, for people: "hidden size 64; 5 of 24 points, about 2 min left"."""
    points = f"{member.done} of {member.total} points" if member.total else units.format_quantity(member.done, "point")
    return f"{member.doing}; {points}{units.format_time_left(member.left_s)}".removeprefix("; ")
