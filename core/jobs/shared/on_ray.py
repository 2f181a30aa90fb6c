"""The machines of a Ray cluster: on each a task starts our own worker, and waits for it.

Ray says which machines are there, and ends what it started; it times nothing and carries no rows. A task takes the
whole machine, where its owner gave it the resource `crossover_machine`. The worker has the environment, processors and
devices that the owner of the machine started Ray with, and not those that Ray gives to its own tasks.

Ray ends a process that loses its cluster. So it is spoken to by one that does nothing else, `python -m
core.jobs.shared.on_ray ADDRESS MODULE COMMAND…`, which ends when its standard input does.
"""

import math
import os
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Any, Self

from ...errors import JobError
from ...files.project import PROJECT

RESOURCE = "crossover_machine"
"""Of which a machine has 1: `ray start --resources='{"crossover_machine": 1}'`. Where some have it, others are left."""

AGAIN_S = 10.0
"""Seconds after which a worker is started again on a machine on which it was killed."""

GONE_S = 60.0
"""For how long a cluster is tried again that was lost, as when the network is cut."""

STOP_S = 4.0
"""Seconds that workers have to stop what they measure, once their question was taken away."""

HOME_VARIABLE = "CROSSOVER_HOME"
"""Where Crossover lies on a machine, in the environment of its Ray; as on the asking machine unless it is set."""

_READY = "ready: "
_SOON = {"RAY_gcs_rpc_server_reconnect_timeout_s": "15"}
"""Seconds after which a cluster that does not answer counts as gone; Ray waits for four times as long."""


class RayNodes:
    """Every node of a cluster, each with one worker at a time.

    Attributes:
        machines: how many nodes there were when it was entered.
    """

    machines = 0

    def __init__(self, address: str, command: list[str], module: str = "core") -> None:
        """Take a cluster; nothing is connected yet.

        Args:
            address: `ray` for the cluster that this machine is part of, or `ray://HOST:PORT`.
            command: what the worker is told.
            module: that is run with it.
        """
        self._address = "auto" if address == "ray" else address
        self._words = [self._address, module, *command]
        self._lost, self._tried = math.inf, 0.0

    def __enter__(self) -> Self:
        self._connect()
        said = self._process.stdout.readline().strip() if self._process.stdout else ""
        if not said.startswith(_READY):
            self.__exit__(None, None, None)
            raise JobError(f"No Ray cluster answers at {self._address}: {said or 'it ended the connection'}")
        self.machines = int(said.removeprefix(_READY))
        return self

    def _connect(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.on_ray", *self._words],
            cwd=PROJECT,
            env={**_SOON, **os.environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # a keyboard's interrupt is for us, who let the workers stop first
        )
        self._tried = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._process.communicate(timeout=2 * STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def keep(self) -> None:
        """Make sure that there is a cluster; the other process sees to its nodes, and is started anew if it ends.

        Raises:
            JobError: it is gone.
        """
        now = time.monotonic()
        if self._process.poll() is None:
            if now - self._tried >= GONE_S:  # it stays, so the cluster is there
                self._lost = math.inf
            return
        self._lost = min(self._lost, now)
        if now - self._lost < GONE_S:
            if now - self._tried >= AGAIN_S:
                self._process.communicate()
                self._connect()
        else:
            raise JobError(
                f"The Ray cluster at {self._address} is gone. What was measured is in the store: once the cluster is "
                "there again, the same command goes on."
            )


def main() -> int:
    """Keep a worker on every node until nobody wants that any more."""
    import ray

    address, module, *command = sys.argv[1:]
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        _print_line(str(error).splitlines()[0] if str(error) else type(error).__name__)
        return 1
    _print_line(f"{_READY}{len(_nodes())}")
    unwanted, tasks = threading.Event(), dict[str, tuple[Any, float]]()
    threading.Thread(target=_await_end, args=(unwanted,), daemon=True).start()
    while not unwanted.wait(1.0):
        for node in _nodes():
            task, since = tasks.get(node["NodeID"], (None, 0.0))
            if task is None or (_was_killed(task) and time.monotonic() - since >= AGAIN_S):
                tasks[node["NodeID"]] = _started(node, ["-m", module, *command]), time.monotonic()
    running = [task for task, _ in tasks.values()]
    if running:
        ray.wait(running, num_returns=len(running), timeout=STOP_S)
    ray.shutdown()
    return 0


def _nodes() -> list[dict[str, Any]]:
    """Nodes that are there and may be used."""
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    return [node for node in nodes if RESOURCE in node["Resources"]] or nodes


def _await_end(unwanted: threading.Event) -> None:
    sys.stdin.read()
    unwanted.set()


def _print_line(text: str) -> None:
    """Tell who started this process."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _was_killed(task: Any) -> bool:
    """Whether a task is over, and not because its worker had nothing left to do."""
    import ray

    if not ray.wait([task], timeout=0)[0]:
        return False
    try:
        return bool(ray.get(task) < 0)
    except ray.exceptions.RayError:
        return True


def _started(node: dict[str, Any], command: list[str]) -> Any:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    whole = {RESOURCE: 1.0} if RESOURCE in node["Resources"] else {}
    task = ray.remote(num_cpus=0, max_calls=1, max_retries=0, resources=whole)(_task())
    there = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
    return task.options(scheduling_strategy=there).remote(command, str(PROJECT), HOME_VARIABLE)


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


if __name__ == "__main__":
    sys.exit(main())
