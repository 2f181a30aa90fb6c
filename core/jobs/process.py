"""A process by its number and time of birth: whether it still lives, and how it is ended with its children.

The number alone is not enough, systems give it to another process later. Nothing here starts a process.
"""

import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass

import psutil

BIRTH_TOLERANCE_S = 2.0
"""Times of birth may differ by this much: Linux derives them from a wall clock that is adjusted now and then."""

DEATH_S = 1.0
"""How long a killed process is waited for; the kernel needs milliseconds unless the process is deep in a driver."""

_POLL_S = 0.005


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process of this machine.

    Attributes:
        pid: its number.
        created: when it began, seconds since 1970.
    """

    pid: int
    created: float

    @property
    def alive(self) -> bool:
        """Whether it still runs; one that ended and was not yet buried by its parent does not."""
        try:
            seen = psutil.Process(self.pid)
            same = abs(seen.create_time() - self.created) <= BIRTH_TOLERANCE_S
            return same and seen.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:  # a process that we may not look at is one that is there
            return True

    def kill(self) -> None:
        """End it and all its children at once, and wait until it is gone.

        Raises:
            PermissionError: it belongs to somebody else.
        """
        if not self.alive:
            self.kill_orphans()
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            seen = psutil.Process(self.pid)
            for member in (*seen.children(recursive=True), seen):
                _kill(member)
        deadline = time.monotonic() + DEATH_S
        while self.alive and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self.kill_orphans()

    def kill_orphans(self) -> None:
        """End what a dead leader of a process group has left behind, such as the workers of a DataLoader."""
        if sys.platform == "win32" or self.alive or _taken(self.pid):
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def this() -> Process:
    """The process that asks."""
    return of(os.getpid())


def of(pid: int) -> Process:
    """The process that has this number now.

    Raises:
        psutil.NoSuchProcess: there is none.
    """
    return Process(pid=pid, created=psutil.Process(pid).create_time())


def _kill(member: psutil.Process) -> None:
    try:
        member.kill()
    except psutil.NoSuchProcess:
        return
    except psutil.AccessDenied as error:
        raise PermissionError(str(error)) from None


def _taken(pid: int) -> bool:
    """Whether the number now belongs to a living process, whose group must not be touched."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False
