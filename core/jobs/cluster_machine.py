"""The machines of a Ray cluster: their status in a job, and the classes that start a process on each.

Only this module loads Ray, and only once a cluster is connected: a job can contain the status data without it.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, Any, Literal, Protocol, Self

from msgspec import Meta

from ..errors import JobError
from ..files import documents
from ..files.project import START_FOLDER

Spread = Literal["everywhere", "shared"]

SPREADS: dict[Spread, str] = {
    "everywhere": "every machine measures all points",
    "shared": "machines of one kind share the points, and count as one",
}
"""How the points of a sweep are spread over machines, with a phrase for people."""

State = Literal["free", "busy", "measuring", "waiting", "finished", "failed", "stopped"]
"""State of a machine. - free: no work yet. - busy: it waits for another measurement on it; only earlier versions report
this. - measuring: it measures. - waiting: it has no work, or cannot measure; the message gives the reason. - finished,
failed, stopped: end of its part of the sweep.
"""

ENDED: tuple[State, ...] = ("finished", "failed", "stopped")
"""States in which a machine is done with the sweep."""

RESOURCE = "crossover_machine"
"""Resource of machines that Crossover may use: `ray start --resources='{"crossover_machine": 1}'`.

If some machines have it, only these are used.
"""

HOME_VARIABLE = "CROSSOVER_HOME"
"""Environment variable of Ray on a machine: folder of Crossover there; by default the same as on the driver's machine.
"""

STOP_S = 4.0
"""Seconds that machines have to stop their measurements."""

_SOON = {"RAY_gcs_rpc_server_reconnect_timeout_s": "15"}
"""Seconds after which a cluster that does not answer counts as gone; Ray waits for four times as long."""

Line = Annotated[str, Meta(max_length=2_000)]


@dataclass(frozen=True, kw_only=True)
class ClusterMachine:
    """A machine that measures a sweep for others.

    Attributes:
        host: name in the cluster.
        machine_id: hash of the hardware; machines of one type have the same.
        cpu: name of the processor.
        devices: names of the devices on which it can train.
        state: its current state.
        question: name of its sweep; only earlier versions report it.
        message: one sentence, or empty.
        doing: the point under measurement, e.g. `hidden size 512`; empty between points.
        done: number of finished points.
        total: number of points of the sweep; 0 if a search chooses them.
        left_s: estimated seconds for the rest on this machine alone; None while there is no estimate.
        own_id: `machine_id` of its rows if every machine measures all points; empty in reports of earlier versions.
        threads: number of usable processor threads; 0 in reports of earlier versions.
    """

    host: Annotated[str, Meta(pattern=r"^[\w.-]{1,100}$")]
    machine_id: Line
    cpu: Line
    devices: tuple[Line, ...]
    state: State = "free"
    question: Line = ""
    message: Line = ""
    doing: Line = ""
    done: documents.Count = 0
    total: documents.Count = 0
    left_s: documents.Seconds | None = None
    own_id: Line = ""
    threads: documents.Count = 0


class Machines(Protocol):
    """Interface that starts a process on machines, and transfers lines to and from it."""

    def find(self) -> set[str]:
        """Return the present machines, by their names in the cluster."""

    def start(self, node: str) -> None:
        """Start the Crossover process on a machine without one."""

    def ask(self, node: str, line: str) -> None:
        """Send a line to the process of a machine."""

    def read(self, timeout_s: float) -> list[tuple[str, list[str] | None]]:
        """Return the new lines of machines; None for a machine that lost its process."""

    def stop(self, node: str) -> None:
        """End the process of a machine."""


class RayMachines:
    """The machines of a Ray cluster, with at most one actor of Crossover on each."""

    def __init__(self, address: str, module: str) -> None:
        """Store a cluster; nothing is connected yet.

        Args:
            address: `ray` for the cluster that this machine belongs to, or `ray://HOST:PORT`.
            module: module to run on each machine.
        """
        self._address, self._module = "auto" if address == "ray" else address, module
        self._nodes: dict[str, dict[str, Any]] = {}
        self._actors: dict[str, Any] = {}
        self._reads: dict[str, Any] = {}

    def __enter__(self) -> Self:
        os.environ.update({name: value for name, value in _SOON.items() if name not in os.environ})
        try:
            import ray
        except ImportError as error:
            raise JobError("Ray is not installed: pip install -r requirements-cluster.txt") from error
        try:
            ray.init(address=self._address, log_to_driver=False, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise JobError(f"No Ray cluster answers at {self._address}: {said}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        import ray

        if stops := [actor.stop.remote(STOP_S) for actor in self._actors.values()]:
            ray.wait(stops, num_returns=len(stops), timeout=2 * STOP_S)
        for node in list(self._actors):
            self.stop(node)
        ray.shutdown()

    def find(self) -> set[str]:
        """Return the machines that may be used."""
        import ray

        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]
        marked = {name: node for name, node in alive.items() if RESOURCE in node["Resources"]}
        self._nodes = marked or alive
        return set(self._nodes)

    def start(self, node: str) -> None:
        """Start an actor that occupies a whole machine."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = self._nodes[node]["Resources"]
        whole = {"num_cpus": 0, "resources": {RESOURCE: 1}} if RESOURCE in there else {"num_cpus": there.get("CPU", 0)}
        strategy = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        actor: Any = ray.remote(_make_actor_class()).options(max_concurrency=2, scheduling_strategy=strategy, **whole)
        made = actor.remote(self._module, str(START_FOLDER), HOME_VARIABLE)
        self._actors[node], self._reads[node] = made, made.read.remote()

    def ask(self, node: str, line: str) -> None:
        """Send a line to the process on a machine; a lost machine is only reported by the next read."""
        self._actors[node].ask.remote(line)

    def read(self, timeout_s: float) -> list[tuple[str, list[str] | None]]:
        """Read the lines that machines send within a limited time."""
        import ray

        if not self._reads:
            time.sleep(timeout_s)
            return []
        names = {read: node for node, read in self._reads.items()}
        came = ray.wait(list(names), num_returns=len(names), timeout=timeout_s)[0]
        return [(names[read], self._take(names[read], read)) for read in came]

    def _take(self, node: str, read: Any) -> list[str] | None:
        import ray

        try:
            lines: list[str] | None = ray.get(read)
        except ray.exceptions.RayError:
            lines = None
        if lines is None:
            self.stop(node)
        else:
            self._reads[node] = self._actors[node].read.remote()
        return lines

    def stop(self, node: str) -> None:
        """End the actor of a machine, and thereby its process."""
        import ray

        self._reads.pop(node, None)
        actor = self._actors.pop(node, None)
        if actor is not None:
            with suppress(ray.exceptions.RayError, ValueError):
                ray.kill(actor)


def _make_actor_class() -> type:  # noqa: C901 – its methods count together
    """Return the class that Ray starts on a machine.

    Ray sends the class itself, so it needs no Crossover code there. The process gets the environment, the processors
    and the devices with which Ray was started. Ray changes these for its own processes: it sets OMP_NUM_THREADS, and
    hides devices.
    """

    class Machine:
        def __init__(self, module: str, home: str, variable: str) -> None:
            import queue
            import subprocess
            import sys
            import threading
            from pathlib import Path

            import psutil

            mine = psutil.Process()
            owner = mine.parent() or mine
            theirs = owner.environ()
            folder = theirs.get(variable, home)
            if hasattr(mine, "cpu_affinity"):
                mine.cpu_affinity(owner.cpu_affinity())
            self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
            self.process = subprocess.Popen(
                [sys.executable, "-m", module],
                cwd=folder if variable in theirs or Path(folder).is_dir() else None,  # else it is installed
                env={name: value for name, value in theirs.items() if not name.startswith("RAY_")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            threading.Thread(target=self.collect, daemon=True).start()

        def collect(self) -> None:
            for line in self.process.stdout or ():
                self.lines.put(line)
            self.lines.put(None)

        def ask(self, line: str) -> None:
            if self.process.stdin:
                self.process.stdin.write(line + "\n")
                self.process.stdin.flush()

        def read(self) -> list[str] | None:
            import queue

            try:
                found = [self.lines.get(timeout=1.0)]
            except queue.Empty:
                return []
            while not self.lines.empty():
                found.append(self.lines.get())
            lines = [line for line in found if line is not None]
            if len(lines) < len(found):
                if not lines:
                    return None
                self.lines.put(None)
            return lines

        def stop(self, timeout_s: float) -> None:
            if self.process.stdin:
                self.process.stdin.close()
            self.process.wait(timeout_s)

    return Machine
