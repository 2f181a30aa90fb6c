"""What is looked at while something odd is read: signals, complaints in the log, and what it costs.

A signal is never sent here: it is written down, unless it is for a process that we started ourselves, and whoever sends
it is told that there is no such process. Seconds are of this process's processors, so a busy machine is no failure;
memory is what the process took on top while it worked.
"""

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import psutil

from core.errors import CrossoverError

MOST_LETTERS = 1_000
"""Letters of a sentence that is shown."""

HANG_S = 400.0
"""Seconds of the wall clock after which a case hangs: nothing here takes a hundredth of that."""

MOST_MEMORY = 4 * 2**30
"""Memory of this process, so that what is read without end ends the case and not the process."""

T = TypeVar("T")


class Fault(Exception):
    """What must never happen did; says what."""


def said(ask: Callable[[], T]) -> T | None:
    """What is answered; None where it is refused, which has to be with one sentence that can be shown.

    Raises:
        Fault: it is refused otherwise.
    """
    try:
        return ask()
    except CrossoverError as error:
        require_sentence(str(error))
        return None


def require_sentence(text: str) -> None:
    """Find out whether a text can be shown as it is: in one line, of letters that exist, and not endless.

    Raises:
        Fault: it cannot.
    """
    if not 3 < len(text) < MOST_LETTERS:
        raise Fault(f"a sentence of {len(text):,} letters: {text[:200]!r}")
    kinds = {unicodedata.category(letter) for letter in text}
    if kinds & {"Cc", "Cs", "Zl", "Zp"}:
        raise Fault(f"a sentence with letters that end a line, control or are none: {text[:200]!r}")


@contextlib.contextmanager
def signals() -> Iterator[list[str]]:
    """Every signal that this process would have sent from now on; none is."""
    sent: list[str] = []

    def refuse(name: str) -> Callable[..., None]:
        def refused(*to: Any, **more: Any) -> None:
            if name == "os.kill" and to[1:] == (0,):  # asks whether a process is there, and signals nothing
                return asks(*to)
            if not _is_our_child(to[0]):
                sent.append(f"{name}{to}")
            raise psutil.NoSuchProcess(to[0].pid) if name.startswith("psutil") else ProcessLookupError

        return refused

    asks, unix = os.kill, sys.platform != "win32"
    names: list[tuple[Any, str, str]] = [(os, "kill", "os.kill")]
    names += [(os, "killpg", "os.killpg"), (signal, "pthread_kill", "signal.pthread_kill")] if unix else []
    names += [(psutil.Process, name, f"psutil.{name}") for name in ("send_signal", "kill", "terminate", "suspend")]
    names += [(subprocess.Popen, "send_signal", "Popen.send_signal")]
    with contextlib.ExitStack() as patched:
        for owner, name, called in names:
            patched.enter_context(mock.patch.object(owner, name, refuse(called)))
        yield sent


def _is_our_child(signalled: Any) -> bool:
    """Whether who is signalled, a number or an object with one, was started by this process: such as a worker."""
    with contextlib.suppress(psutil.Error, ValueError, TypeError):
        return psutil.Process(getattr(signalled, "pid", signalled)).ppid() == os.getpid()
    return False


@contextlib.contextmanager
def complaints() -> Iterator[list[str]]:
    """Every exception that was caught and logged, and so was expected by nobody."""
    found: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[0]:
                found.append(f"{record.name} logged {logging.Formatter().formatException(record.exc_info)}")

    listener, root = Listener(logging.ERROR), logging.getLogger()
    with mock.patch.object(root, "handlers", [*root.handlers, listener]):
        yield found


@contextlib.contextmanager
def patience(seconds: float = HANG_S) -> Iterator[None]:
    """Bounds how long something may take by the wall clock, where the system can interrupt it.

    Raises:
        Fault: it takes longer.
    """

    def ring(*_: object) -> None:
        raise Fault(f"it hangs: {seconds:g} s have passed")

    if sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def memory(most_bytes: int = MOST_MEMORY) -> Iterator[None]:
    """Bounds what this process may have, where the system keeps such a limit: beyond it a MemoryError is raised."""
    if sys.platform == "win32":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a part of a case cost.

    Attributes:
        part: which.
        cpu_s: seconds of processors.
        grown_bytes: memory that it took on top of what the process had.
    """

    part: str = ""
    cpu_s: float = 0.0
    grown_bytes: int = 0


@dataclass
class Gauge:
    """What the parts of a case cost, one after the other.

    Attributes:
        costs: of each part.
    """

    costs: list[Cost] = field(default_factory=list)

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure a part; not to be nested."""
        before, began_s = _begin(), time.process_time()
        try:
            yield
        finally:
            cpu_s = time.process_time() - began_s
            self.costs.append(Cost(part=name, cpu_s=cpu_s, grown_bytes=max(0, peak_bytes() - before)))

    @property
    def slowest(self) -> Cost:
        return max(self.costs, key=lambda cost: cost.cpu_s, default=Cost())

    @property
    def largest(self) -> Cost:
        return max(self.costs, key=lambda cost: cost.grown_bytes, default=Cost())


def _begin() -> int:
    """Forget the highest memory so far, where the system can; bytes that the process has now, or had at most."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_bytes()
    return psutil.Process().memory_info().rss


def peak_bytes() -> int:
    """The most memory that this process had, since it was last forgotten."""
    with contextlib.suppress(OSError):
        if found := re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return 1024 * int(found[1])
    import resource  # which Windows has not

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
