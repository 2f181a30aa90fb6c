"""How machines of a cluster are brought to work: each is only told to run `python -m core worker`, as a person would.

Whatever launches them never times anything, and hands over no rows: machines meet at the store.
"""

import importlib.util
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ...errors import InvalidValue, JobError
from ...files.project import PROJECT
from ...files.settings import WAYS, is_way
from ...remote import local_cache
from .on_ray import RayNodes

LOOK_S, GONE_S = 10.0, 25.0
"""How often Slurm is asked for its tasks, and after how long without any they are not waited for."""


class Launcher(Protocol):
    """What sees to it that machines are at work; entered while a question is asked.

    Attributes:
        machines: how many it brings; 0 if they join by themselves.
    """

    machines: int

    def keep(self) -> None:
        """See again whether machines came that are not at work yet."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...


class Nobody:
    """Machines join by themselves."""

    machines = 0

    def keep(self) -> None:
        """Nothing is seen to."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Nothing ends."""


class Slurm:
    """An array of Slurm, a task a machine, which is cancelled when the question is over."""

    def __init__(self, machines: int, command: list[str]) -> None:
        self.machines, self._command, self._job = machines, command, ""
        self._looked = self._there = time.monotonic()

    def keep(self) -> None:
        """Make sure that tasks are there or wait for nodes; Slurm sees to them.

        Raises:
            JobError: all of them have ended.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        asked = subprocess.run(
            ["squeue", "--noheader", "--jobs", self._job], check=False, capture_output=True, text=True
        )
        if asked.stdout.strip() or (asked.returncode and "Invalid job id" not in asked.stderr):
            self._there = now  # or Slurm does not answer just now
        elif now - self._there >= GONE_S:
            raise JobError(
                f"All tasks of Slurm's job {self._job} have ended, and the question is not answered: "
                f"slurm-{self._job}_*.out says more. The same command goes on with what is in the store."
            )

    def __enter__(self) -> Self:
        script = PROJECT / "deploy" / "slurm" / "worker.sbatch"
        asked = ["sbatch", "--parsable", f"--array=1-{self.machines}", str(script), *self._command]
        try:
            done = subprocess.run(asked, check=True, capture_output=True, text=True, cwd=PROJECT)
        except FileNotFoundError as error:
            raise JobError("sbatch is not here: --on slurm is asked where jobs of Slurm are submitted.") from error
        except subprocess.CalledProcessError as error:
            raise JobError(f"Slurm took no job: {error.stderr.strip() or error}.") from error
        self._job = done.stdout.strip().partition(";")[0]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        subprocess.run(["scancel", self._job], check=False, capture_output=True)


def installed(module: str) -> bool:
    """Whether a module is there; it is looked for, not imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def launcher(on: str, store: Path, *told: str) -> Launcher:
    """What brings machines to work.

    Args:
        on: one of `WAYS`.
        store: folder here of the store that they share.
        told: to the worker of each machine beside the store: which question it answers, or for how long.

    Raises:
        InvalidValue: `on` is none of them.
        JobError: what it needs is not installed here.
    """
    command = ["--store", local_cache.read_address(store) or str(store.absolute()), *told]
    if not is_way(on):
        raise InvalidValue("on", on, "one of {}", WAYS)
    kind, _, which = on.partition(":")
    if kind == "workers":
        return Nobody()
    if kind == "slurm":
        return Slurm(int(which or 1), command)
    if not installed("ray"):
        raise JobError("Ray is not installed: pip install -r requirements-cluster.txt")
    return RayNodes(on, ["worker", *command])
