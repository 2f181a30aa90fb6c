"""A process by its number and its birth: whether it lives, how it is ended, and what it inherits from who starts it.

The number alone is not enough, systems give it to another process later, and a file may say any number. So a process
is known by what the kernel counts and no clock can change: the boot it belongs to and the ticks at which it began. And
none is signalled unless its command line is one of ours. Nothing here starts a process.
"""

import contextlib
import functools
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import psutil
from msgspec import Meta

from ..files.documents import Count
from ..results import environment

DEATH_S = 1.0
"""How long a killed process is waited for; the kernel needs milliseconds unless the process is deep in a driver."""

CommandCheck = Callable[[Sequence[str]], bool]
"""Whether a command line is one of ours; no other process is ever signalled."""

_POLL_S = 0.005
_START_TICKS = 19
"""Place of a process' start among the fields behind its name in /proc/N/stat."""

_ENDED = ("Z", "X", "x")

_INHERITED = re.compile(
    r"(CUDA|HIP|ROCR|NVIDIA)_VISIBLE_DEVICES|CUDA_DEVICE_ORDER|GPU_DEVICE_ORDINAL|ZE_\w+|ONEAPI_DEVICE_SELECTOR"
    r"|SYCL_DEVICE_FILTER|(OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|VECLIB|DNNL|ONEDNN)_\w+"
)
"""Environment variables that say which devices are seen and how threads work."""

_ALIKE = frozenset(("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"))
"""Of these, those that are the same in every measuring process, and those that scikit-learn sets in who imports it."""


@dataclass(frozen=True, kw_only=True)
class ExecutionContext:
    """What a measurement takes over from who asks for it, as if it ran in the same shell.

    Attributes:
        processors: numbers of the processor threads that it may use; empty where that cannot be lent to a process.
        variables: environment variables that say which devices are seen and how threads work.
    """

    processors: tuple[Count, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()

    @classmethod
    def capture(cls) -> Self:
        """The surroundings of this process."""
        processors = tuple(environment.processors()) if hasattr(os, "sched_setaffinity") else ()
        return cls(processors=processors, variables=tuple(sorted(_select_inherited(os.environ).items())))

    def apply_to_environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """All environment variables of a process with these surroundings.

        Args:
            variables: of who starts it; all that are not of these surroundings stay.
        """
        others = {name: variables[name] for name in variables.keys() - _select_inherited(variables).keys()}
        return {**others, **_select_inherited(dict(self.variables))}

    @contextlib.contextmanager
    def lend_processors(self) -> Iterator[None]:
        """Let what this thread starts run on these processors, as far as it may."""
        before = environment.processors()
        if not self.processors or tuple(before) == self.processors or not hasattr(os, "sched_setaffinity"):
            yield
            return
        with contextlib.suppress(OSError):  # none of them is left to us: it runs where we do, as its rows say
            os.sched_setaffinity(0, self.processors)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


def _select_inherited(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: variables[name] for name in variables if name not in _ALIKE and _INHERITED.fullmatch(name)}


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process of this machine.

    Attributes:
        pid: its number; never 0 or 1, which stand for whole groups of processes or for the system's first one.
        born: by `_birth`, when it began; empty where that was not written down, and then it counts as dead.
    """

    pid: Annotated[int, Meta(gt=1, lt=2**31)]
    born: str = ""

    @property
    def alive(self) -> bool:
        """Whether the process still runs; one that ended and was not yet buried by its parent does not."""
        if not self.born:
            return False
        try:
            return _birth(self.pid) == self.born
        except PermissionError:  # a process that we may not look at is one that is there
            return True

    def kill(self, is_crossover_command: CommandCheck) -> None:
        """End the process and all its children at once, and wait until it is gone.

        Args:
            is_crossover_command: says which command line it must have.

        Raises:
            PermissionError: it belongs to somebody else, or is none of ours: then nothing was signalled.
        """
        if self.alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                seen = psutil.Process(self.pid)
                _require_crossover_process(seen, is_crossover_command)
                for member in (*seen.children(recursive=True), seen):
                    _kill(member)
            deadline = time.monotonic() + DEATH_S
            while self.alive and time.monotonic() < deadline:
                time.sleep(_POLL_S)
        self.kill_orphans(is_crossover_command)

    def kill_orphans(self, is_crossover_command: CommandCheck) -> None:
        """End what the process left behind in its group when it died, such as the workers of a DataLoader.

        Only forks of it are ended, which have its command line. What runs another program (the compilers that torch
        starts) looks after its parent by itself.
        """
        if sys.platform == "win32" or not self.born or _is_pid_in_use(self.pid):
            return
        if not self.born.startswith(f"{boot()}:"):  # its group ended with the boot that it belonged to
            return
        for member in _group(self.pid):
            with contextlib.suppress(psutil.Error, PermissionError):
                _require_crossover_process(member, is_crossover_command)
                _kill(member)


def current_process() -> Process:
    """The process that asks."""
    return process_from_pid(os.getpid())


def process_from_pid(pid: int) -> Process:
    """The process that has this number now.

    Raises:
        psutil.NoSuchProcess: there is none, or it has ended.
        PermissionError: it may not be looked at.
    """
    born = _birth(pid)
    if born is None:
        raise psutil.NoSuchProcess(pid)
    return Process(pid=pid, born=born)


def _birth(pid: int) -> str | None:
    """The boot and the moment in which the process with a number began; None if none has it, or it has ended.

    Raises:
        PermissionError: it may not be looked at.
    """
    if sys.platform != "linux":
        return _birth_from_psutil(pid)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        _require_absent(pid)
        return None
    return None if fields[0] in _ENDED else f"{boot()}:{fields[_START_TICKS]}"


def _birth_from_psutil(pid: int) -> str | None:
    """The birth of a process where the system keeps the moment itself, which no later change of its clock moves."""
    try:
        seen = psutil.Process(pid)
        return None if seen.status() == psutil.STATUS_ZOMBIE else f"{boot()}:{seen.create_time():.6f}"
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied as error:
        raise PermissionError(str(error)) from None


def _is_pid_in_use(pid: int) -> bool:
    """Whether the number now belongs to a living process, whose group must not be touched."""
    try:
        return _birth(pid) is not None
    except PermissionError:
        return True


def _require_absent(pid: int) -> None:
    """Find out whether a process is only hidden, as some systems hide those of other users.

    Raises:
        PermissionError: it is.
    """
    with contextlib.suppress(ProcessLookupError, OverflowError):
        os.kill(pid, 0)  # signals nothing


@functools.cache
def boot() -> str:
    """A name of the time since the system was started; empty where it gives none."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def _group(number: int) -> Iterator[psutil.Process]:
    """The processes of a group."""
    for member in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(member.pid) == number:
                yield member


def _require_crossover_process(member: psutil.Process, is_crossover_command: CommandCheck) -> None:
    try:
        command = member.cmdline()
    except psutil.AccessDenied as error:
        raise PermissionError(str(error)) from None
    if not command:  # it has just ended
        raise psutil.NoSuchProcess(member.pid)
    if not is_crossover_command(command):
        message = f"process {member.pid} is none of ours"
        raise PermissionError(message)


def _kill(member: psutil.Process) -> None:
    try:
        member.kill()
    except psutil.NoSuchProcess:
        return
    except psutil.AccessDenied as error:
        raise PermissionError(str(error)) from None
