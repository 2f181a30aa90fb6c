"""A Ray cluster of processes on this machine, whose nodes have jobs, a lock and a name each."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from core.jobs.cluster_node import MACHINE_VARIABLE
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import JOBS_VARIABLE
from core.remote import CACHES_VARIABLE

MACHINE = {"num_cpus": 0, "resources": {"crossover_machine": 1}}
"""A node that starts no process before it is given a task; ours take no processor of Ray's."""

HEAD = {"num_cpus": 0, "include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
"""A head that measures nothing, and shows no logs."""

STARTS = 5
"""How often a node is started that does not come up in time."""


def surroundings(folder: Path) -> dict[str, str]:
    """What makes a process a machine of its own."""
    return {
        JOBS_VARIABLE: str(folder / "jobs"),
        LOCK_VARIABLE: str(folder / "machine.lock"),
        CACHES_VARIABLE: str(folder / "shared"),
        MACHINE_VARIABLE: folder.name,
    }


@contextlib.contextmanager
def ray_cluster(folder: Path, **head: object) -> Iterator[Callable[..., Path]]:
    """A Ray cluster whose head measures nothing unless told to, and what adds a node of a name; returns its folder.

    Whoever asks here is a machine of its own too, in the folder `asker`.
    """
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    os.environ.update(surroundings(folder / "asker"))
    cluster = Cluster(initialize_head=True, head_node_args={**HEAD, **head, "env_vars": surroundings(folder / "head")})
    os.environ["RAY_ADDRESS"] = cluster.address
    names = ["head", "asker"]

    def add(name: str, **own: str) -> Path:
        (folder / name).mkdir(parents=True, exist_ok=True)
        names.append(name)
        for tries_left in reversed(range(STARTS)):
            try:
                cluster.add_node(**MACHINE, env_vars={**surroundings(folder / name), **own})
                break
            except Exception:  # of this very type: Ray waits for 30 s, which a machine with much else to do exceeds
                kill_machine(folder / name)
                if not tries_left:
                    raise
        return folder / name

    try:
        yield add
    finally:
        kill_machine(folder / "asker")
        cluster.shutdown()
        for name in names:
            kill_machine(folder / name)
        os.environ.clear()
        os.environ.update(before)


def kill_machine(folder: Path) -> None:
    """Let the power of a machine fail: every process of it is killed at once."""
    me = os.getpid()
    while victims := [process for process in find_processes(folder) if process.pid != me]:
        for process in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(victims, timeout=5)


def find_processes(folder: Path, module: str = "") -> Iterator[psutil.Process]:
    """Processes of a machine, all or those that run a module."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            ours = process.environ().get(JOBS_VARIABLE) == str(folder / "jobs")
            if ours and process.status() != psutil.STATUS_ZOMBIE and (not module or module in process.cmdline()):
                yield process
