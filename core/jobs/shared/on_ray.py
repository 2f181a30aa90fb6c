"""The machines of a Ray cluster: on each a task starts our own worker, and waits for it.

Ray says which machines are there, and ends what it started; it times nothing and carries no rows. A task takes the
whole machine, where its owner gave it the resource `crossover_machine`. The worker has the environment, processors and
devices that the owner of the machine started Ray with, and not those that Ray gives to its own tasks.
"""

import time
from types import TracebackType
from typing import Any, Self

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from core.errors import JobError
from core.files.project import PROJECT

RESOURCE = "crossover_machine"
"""Of which a machine has 1: `ray start --resources='{"crossover_machine": 1}'`."""

AGAIN_S = 10.0
"""Seconds after which a worker is started again on a machine on which it ended."""

HOME_VARIABLE = "CROSSOVER_HOME"
"""Where Crossover lies on a machine, in the environment of its Ray; as on the asking machine unless it is set."""


class RayNodes:
    """Every node of a cluster, each with one worker at a time."""

    def __init__(self, address: str, command: list[str], module: str = "core") -> None:
        """Take a cluster; nothing is connected yet.

        Args:
            address: `ray` for the cluster that this machine is part of, or `ray://HOST:PORT`.
            command: what the worker is told.
            module: that is run with it.
        """
        self._address = "auto" if address == "ray" else address
        self._command = ["-m", module, *command]
        self._tasks: dict[str, tuple[Any, float]] = {}

    def __enter__(self) -> Self:
        try:
            ray.init(address=self._address, log_to_driver=False, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise JobError(f"No Ray cluster answers at {self._address}: {reason}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        ray.shutdown()

    def keep(self) -> None:
        """Start a worker on every node that has none; where one ended, another one after a while."""
        nodes = ray.nodes()  # type: ignore[no-untyped-call]
        for node in nodes:
            task, since = self._tasks.get(node["NodeID"], (None, 0.0))
            ended = task is None or bool(ray.wait([task], timeout=0)[0])
            if node["Alive"] and ended and time.monotonic() - since >= AGAIN_S:
                self._tasks[node["NodeID"]] = self._started(node), time.monotonic()

    def _started(self, node: dict[str, Any]) -> Any:
        whole = {RESOURCE: 1.0} if RESOURCE in node["Resources"] else {}
        task = ray.remote(num_cpus=0, max_calls=1, max_retries=0, resources=whole)(_task())
        there = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        return task.options(scheduling_strategy=there).remote(self._command, str(PROJECT), HOME_VARIABLE)


def _task() -> Any:
    """What a node does, in one function that needs nothing of ours there before it has started our worker."""

    def serve(command: list[str], home: str, variable: str) -> int:
        import subprocess
        import sys

        import psutil

        mine = psutil.Process()
        owner = mine.parent() or mine
        theirs = owner.environ()
        if hasattr(mine, "cpu_affinity"):
            mine.cpu_affinity(owner.cpu_affinity())
        environment = {name: value for name, value in theirs.items() if not name.startswith("RAY_")}
        where = theirs.get(variable, home)
        return subprocess.run([sys.executable, *command], cwd=where, env=environment, check=False).returncode

    return serve
