"""Machines as processes of this one: each with jobs, a lock and a copy of the store of its own."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from core.files.project import PROJECT
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import JOBS_VARIABLE
from core.jobs.shared.presence import MACHINE_VARIABLE
from core.remote.local_cache import CACHES_VARIABLE

MODULE = "tests.integration.scripted_node"


def surroundings(folder: Path) -> dict[str, str]:
    """What makes a process a machine of its own."""
    return {
        JOBS_VARIABLE: str(folder / "jobs"),
        LOCK_VARIABLE: str(folder / "machine.lock"),
        CACHES_VARIABLE: str(folder / "shared"),
        MACHINE_VARIABLE: str(folder),
    }


class Node:
    """A machine that works for others, in a process of its own.

    Attributes:
        folder: of all that is this machine's.
    """

    def __init__(self, folder: Path, store: str, module: str = MODULE) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, "worker", "--store", store],
                cwd=PROJECT,
                env={**os.environ, **surroundings(folder)},
                stdout=log,
                stderr=log,
            )

    @property
    def log(self) -> str:
        """What it said."""
        return (self.folder / "log").read_text()

    @property
    def ended(self) -> bool:
        """Whether it works no more."""
        return self._process.poll() is not None

    def interrupt(self) -> None:
        """Press Ctrl-C at the machine."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Let the power of the machine fail: nothing that belongs to it lives on."""
        kill_machine(self.folder)
        self._process.wait()

    def leave(self) -> None:
        """Let its owner end it, as Ctrl-C or the end of a Slurm job does; what it measured by then is in the store."""
        self._process.terminate()
        self._process.wait()


class RayNode:
    """A node of a Ray cluster, with all that our worker there starts."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder / f"machine{number}"

    def kill(self) -> None:
        """Let the power of the machine fail."""
        kill_machine(self.folder)


@contextlib.contextmanager
def ray_cluster(folder: Path) -> Iterator[Callable[[int], RayNode]]:
    """A Ray cluster on this machine, whose head measures nothing, and what adds a node of a number."""
    from ray.cluster_utils import Cluster

    own = surroundings(folder / "head")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, "env_vars": own})
    os.environ["RAY_ADDRESS"] = cluster.address
    added: list[RayNode] = []

    def start(number: int) -> RayNode:
        added.append(RayNode(folder, number))
        own = surroundings(added[-1].folder)
        cluster.add_node(num_cpus=1, resources={"crossover_machine": 1}, env_vars=own)
        return added[-1]

    try:
        yield start
    finally:
        cluster.shutdown()
        for node in added:
            node.kill()


def kill_machine(folder: Path) -> None:
    """Kill every process of a machine at once."""
    mine = str(folder / "jobs")
    while victims := [process for process in psutil.process_iter() if _belongs(process, mine)]:
        for process in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(victims, timeout=5)


@contextlib.contextmanager
def ended(nodes: list[Node]) -> Iterator[None]:
    """Let no machine outlive a test."""
    try:
        yield
    finally:
        for node in nodes:
            node.kill()


def _belongs(process: psutil.Process, jobs: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(JOBS_VARIABLE) == jobs
    except (psutil.Error, OSError):
        return False
