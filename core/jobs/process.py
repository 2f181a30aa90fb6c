"""Processes, identified by number and birth: whether one is alive, how it is ended, and what it inherits.

The number alone is not enough: systems reuse numbers, and a file may contain any number. A process is therefore
identified by values that the kernel counts and no clock can change: its boot and the ticks at its start. A process is
signalled only if its command line is one of Crossover's. Nothing here starts a process.
"""

import contextlib
import functools
import hashlib
import json
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
"""Seconds to wait for the end of a killed process; the kernel needs milliseconds unless a driver blocks it."""

CommandCheck = Callable[[Sequence[str]], bool]
"""Function that returns whether a command line is one of Crossover's; no other process is ever signalled."""

_POLL_S = 0.005
_START_TICKS = 19
"""Position of the start time among the fields after the name in /proc/N/stat."""

_ENDED = ("Z", "X", "x")

_INHERITED = re.compile(
    r"(CUDA|HIP|ROCR|NVIDIA)_VISIBLE_DEVICES|CUDA_DEVICE_ORDER|GPU_DEVICE_ORDINAL|ZE_\w+|ONEAPI_DEVICE_SELECTOR"
    r"|SYCL_DEVICE_FILTER|(OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|VECLIB|DNNL|ONEDNN)_\w+"
)
"""Environment variables that determine the visible devices and the behaviour of threads."""

_OF_A_SHELL = frozenset(("_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES", "WINDOWID", "PYTEST_CURRENT_TEST"))
"""Environment variables that describe a shell and do not matter to a script."""

_ALIKE = frozenset(("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"))
"""Inherited variables that are the same in every measuring process, or that scikit-learn sets when it is imported."""


@dataclass(frozen=True, kw_only=True)
class ExecutionContext:
    """The context that a measurement inherits from its requester, as if it ran in the same shell.

    Attributes:
        processors: numbers of the usable processor threads; empty if a process cannot inherit them.
        variables: environment variables that select the visible devices and configure threads.
        environment: hash of all environment variables for a custom script; otherwise empty.
        interpreter: path of the Python whose packages a custom script imports; otherwise empty.
    """

    processors: tuple[Count, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    environment: str = ""
    interpreter: str = ""

    @classmethod
    def capture(cls, *, whole: bool = False) -> Self:
        """Return the context of this process.

        Args:
            whole: whether to include all environment variables and the interpreter.
        """
        processors = tuple(environment.processors()) if hasattr(os, "sched_setaffinity") else ()
        return cls(
            processors=processors,
            variables=tuple(sorted(_select_inherited(os.environ).items())),
            environment=hash_environment(os.environ) if whole else "",
            interpreter=sys.executable if whole else "",
        )

    def suits(self, wanted: Self) -> bool:
        """Return whether a process with this context can measure a request made in another context."""
        same = (self.processors, self.variables) == (wanted.processors, wanted.variables)
        return same and wanted.environment in ("", self.environment) and wanted.interpreter in ("", self.interpreter)

    def apply_to_environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return all environment variables of a process in this context.

        Args:
            variables: environment variables of the starter; those that are not part of the context stay unchanged.
        """
        others = {name: variables[name] for name in variables.keys() - _select_inherited(variables).keys()}
        return {**others, **_select_inherited(dict(self.variables))}

    @contextlib.contextmanager
    def lend_processors(self) -> Iterator[None]:
        """Let processes started by this thread run on these processors, as far as allowed."""
        before = environment.processors()
        if not self.processors or tuple(before) == self.processors or not hasattr(os, "sched_setaffinity"):
            yield
            return
        with contextlib.suppress(OSError):  # none of them is available: it runs on this process's, as its rows record
            os.sched_setaffinity(0, self.processors)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


def hash_environment(variables: Mapping[str, str]) -> str:
    """Return a hash of the environment variables, without those that differ between shells."""
    told = sorted((name, text) for name, text in variables.items() if name not in _ALIKE | _OF_A_SHELL)
    return hashlib.sha256(json.dumps(told).encode(errors="surrogateescape")).hexdigest()[:16]


def _select_inherited(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: variables[name] for name in variables if name not in _ALIKE and _INHERITED.fullmatch(name)}


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process of this machine.

    Attributes:
        pid: number of the process; never 0 or 1, which mean groups of processes or the first one of the system.
        born: birth of the process, from `_birth`; if it is empty, the process counts as dead.
    """

    pid: Annotated[int, Meta(gt=1, lt=2**31)]
    born: str = ""

    @property
    def alive(self) -> bool:
        """Whether the process is running; a zombie is not."""
        if not self.born:
            return False
        try:
            return _birth(self.pid) == self.born
        except PermissionError:  # a process that may not be read exists
            return True

    def kill(self, is_crossover_command: CommandCheck, log: Path | None = None) -> None:
        """Kill the process and all its children, and wait until it has ended.

        Args:
            is_crossover_command: checks its command line.
            log: file that it writes, which identifies it if a custom script has changed its command line.

        Raises:
            PermissionError: it belongs to another user or is not Crossover's; nothing was signalled.
        """
        if self.alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                seen = psutil.Process(self.pid)
                _require_crossover_process(seen, is_crossover_command, log)
                for member in (*seen.children(recursive=True), seen):
                    _kill(member)
            deadline = time.monotonic() + DEATH_S
            while self.alive and time.monotonic() < deadline:
                time.sleep(_POLL_S)
        self.kill_orphans(is_crossover_command, log)

    def kill_orphans(self, is_crossover_command: CommandCheck, log: Path | None = None) -> None:
        """End processes that remain in the group of a dead process, such as the workers of a DataLoader.

        Only forks with its command line are ended. Children that run other programs, such as compilers started by
        torch, monitor their parent themselves.
        """
        if sys.platform == "win32" or not self.born or _is_pid_in_use(self.pid):
            return
        if not self.born.startswith(f"{boot()}:"):  # its group ended with the boot that it belonged to
            return
        for member in _group(self.pid):
            with contextlib.suppress(psutil.Error, PermissionError):
                _require_crossover_process(member, is_crossover_command, log)
                _kill(member)


def current_process() -> Process:
    """Return this process."""
    return process_from_pid(os.getpid())


def process_from_pid(pid: int) -> Process:
    """Return the process that has this number now.

    Raises:
        psutil.NoSuchProcess: there is none, or it has ended.
        PermissionError: its data may not be read.
    """
    born = _birth(pid)
    if born is None:
        raise psutil.NoSuchProcess(pid)
    return Process(pid=pid, born=born)


def _birth(pid: int) -> str | None:
    """Return the boot and the start time of the process with a number; None if there is none, or it has ended.

    Raises:
        PermissionError: its data may not be read.
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
    """Return the birth of a process from the time that the system stores, which no clock change affects."""
    try:
        seen = psutil.Process(pid)
        return None if seen.status() == psutil.STATUS_ZOMBIE else f"{boot()}:{seen.create_time():.6f}"
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied as error:
        raise PermissionError(str(error)) from None


def _is_pid_in_use(pid: int) -> bool:
    """Return whether the number belongs to a living process, whose group must not be signalled."""
    try:
        return _birth(pid) is not None
    except PermissionError:
        return True


def _require_absent(pid: int) -> None:
    """Check that a process does not exist, because some systems hide those of other users.

    Raises:
        PermissionError: it is only hidden.
    """
    with contextlib.suppress(ProcessLookupError, OverflowError):
        os.kill(pid, 0)  # signals nothing


@functools.cache
def boot() -> str:
    """Return the identifier of the present boot of the system; empty if the system has none."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def _group(number: int) -> Iterator[psutil.Process]:
    """Yield the processes of a group."""
    for member in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(member.pid) == number:
                yield member


def _require_crossover_process(
    member: psutil.Process, is_crossover_command: CommandCheck, log: Path | None = None
) -> None:
    try:
        command = member.cmdline()
    except psutil.AccessDenied as error:
        raise PermissionError(str(error)) from None
    if not command:  # it has just ended
        raise psutil.NoSuchProcess(member.pid)
    if not is_crossover_command(command) and not (log and _has_open(member, log)):
        message = f"process {member.pid} does not belong to Crossover"
        raise PermissionError(message)


def _has_open(member: psutil.Process, file: Path) -> bool:
    """Return whether a process has a file open, which still identifies it after a custom script renamed it."""
    with contextlib.suppress(psutil.Error, OSError):
        return any(Path(opened.path) == file.resolve() for opened in member.open_files())
    return False


def _kill(member: psutil.Process) -> None:
    try:
        member.kill()
    except psutil.NoSuchProcess:
        return
    except psutil.AccessDenied as error:
        raise PermissionError(str(error)) from None
