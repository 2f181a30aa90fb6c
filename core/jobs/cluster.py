"""A sweep on the machines of a Ray cluster: `python -m core.jobs.cluster`, the driver of the jobs of one queue.

`core.jobs.client` starts the driver as it starts a worker, so that a page or a command line may come and go. On every
machine of the cluster Ray starts `core.jobs.cluster_node`, which takes the whole machine; the driver gives it a point
at a time, or a whole sweep, and writes the rows that come back into the store. What a machine had not brought when it
was lost is measured by another. Points that the store has are not measured again, so a driver that was killed is gone
on with. Only here is Ray ever loaded. Ray ends a process that loses its cluster.
"""

import argparse
import dataclasses
import hashlib
import json
import logging
import os
import secrets
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from filelock import BaseFileLock, Timeout

from core import units
from core.answer.run import certainty
from core.answer.study import search, study
from core.errors import CrossoverError, JobError
from core.files import atomic, documents
from core.files.project import PROJECT
from core.jobs import process, saving
from core.jobs.cluster_machine import ENDED, ClusterMachine
from core.jobs.cluster_node import NodeFacts, Report, Request, pack_rows, unpack_rows
from core.jobs.job import Elsewhere, Job
from core.jobs.queue import Queue
from core.jobs.worker import point_result
from core.jobs.worker.reporter import Reporter
from core.jobs.worker_file import Serving
from core.progress import Progress, SweepProgress
from core.question.experiment import PROTOCOL_VERSION, Experiment, Point
from core.question.sweep import Sweep
from core.results.reuse import CUT_OFF, Here
from core.results.schema import Trial
from core.results.store import Store
from core.text import LogFormatter

RESOURCE = "crossover_machine"
"""Of which a machine has 1: `ray start --resources='{"crossover_machine": 1}'`. Where some have it, others are left."""

HOME_VARIABLE = "CROSSOVER_HOME"
"""Environment variable of a machine's Ray: where Crossover lies there; as on the driver's machine unless given."""

LOOK_S = 0.5
"""How often it is looked whether a job shall stop, and what machines tell."""

AGAIN_S = 10.0
"""Seconds after which a machine that lost its process, or refused to start one, gets another."""

STORE_AGAIN_S = 5.0
"""Seconds after which rows are brought again to a store that did not take them."""

ABSENT_S = 600.0
"""For how long a cluster without any machine is waited for."""

MOST_LOSSES = 3
"""How often a point may be lost with the machine that measures it, and how often our process may not start on one."""

GATHER_S = 60.0
"""For how long machines are waited for to tell of themselves: each has to load PyTorch."""

STOP_S = 4.0
"""Seconds that machines have to stop what they measure."""

NODE_MODULE = "core.jobs.cluster_node"
"""What is run on each machine."""

NOBODY = "waiting for a machine of the cluster"
GONE = f"No machine of the cluster was there for {units.duration(ABSENT_S)}. Start Ray on some, and run it again."
LOST = "The cluster lost this machine."
SILENT = (
    f"Our process ended there before it said anything. In the environment of its Ray, {HOME_VARIABLE} names the folder "
    "of Crossover on that machine, and Ray needs the Python of Crossover's own environment."
)
LOST_OFTEN = f"it was lost {MOST_LOSSES} times with the machine that measured it."
BUSY = "Something else is measured on this machine."
OTHERS = "Other machines measure what is left."
KILLED = "A system does so when its memory runs out."
PROTOCOL = "It has another version of Crossover, which measures by protocol {0}, and this one by {1}: install the same."

_SOON = {"RAY_gcs_rpc_server_reconnect_timeout_s": "15"}
"""Seconds after which a cluster that does not answer counts as gone; Ray waits for four times as long."""


class Machines(Protocol):
    """What starts a process on machines, and carries lines to and from it."""

    def find(self) -> set[str]:
        """Machines that are there now, by their names in the cluster."""

    def start(self, node: str) -> None:
        """Start our process on a machine that has none."""

    def ask(self, node: str, line: str) -> None:
        """Hand a line to the process of a machine."""

    def read(self, timeout_s: float) -> list[tuple[str, list[str] | None]]:
        """Lines that came from machines meanwhile; None from one that lost its process."""

    def stop(self, node: str) -> None:
        """End the process of a machine."""


class RayMachines:
    """The machines of a Ray cluster, with one actor of ours at most on each."""

    def __init__(self, address: str, module: str) -> None:
        """Take a cluster; nothing is connected yet.

        Args:
            address: `ray` for the cluster that this machine is part of, or `ray://HOST:PORT`.
            module: what is run on each machine.
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
        """Machines that are there and may be used."""
        import ray

        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]
        marked = {name: node for name, node in alive.items() if RESOURCE in node["Resources"]}
        self._nodes = marked or alive
        return set(self._nodes)

    def start(self, node: str) -> None:
        """Start an actor that takes a whole machine."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = self._nodes[node]["Resources"]
        whole = {"num_cpus": 0, "resources": {RESOURCE: 1}} if RESOURCE in there else {"num_cpus": there.get("CPU", 0)}
        strategy = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        actor: Any = ray.remote(_make_actor_class()).options(max_concurrency=2, scheduling_strategy=strategy, **whole)
        made = actor.remote(self._module, str(PROJECT), HOME_VARIABLE)
        self._actors[node], self._reads[node] = made, made.read.remote()

    def ask(self, node: str, line: str) -> None:
        """Hand a line to our process on a machine; that it was lost is told when it is read from."""
        self._actors[node].ask.remote(line)

    def read(self, timeout_s: float) -> list[tuple[str, list[str] | None]]:
        """What came from machines within some time."""
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
        """End the actor of a machine; our process there ends with it."""
        import ray

        self._reads.pop(node, None)
        actor = self._actors.pop(node, None)
        if actor is not None:
            with suppress(ray.exceptions.RayError, ValueError):
                ray.kill(actor)


def _make_actor_class() -> type:  # noqa: C901 – its methods count together
    """What Ray starts on a machine. It is sent as it stands here, so it needs nothing of ours there.

    Our process gets the environment, the processors and the devices that the owner of the machine started Ray with, not
    those that Ray gives its own: it sets OMP_NUM_THREADS, and hides devices.
    """

    class Machine:
        def __init__(self, module: str, home: str, variable: str) -> None:
            import queue
            import subprocess
            import sys
            import threading

            import psutil

            mine = psutil.Process()
            owner = mine.parent() or mine
            theirs = owner.environ()
            if hasattr(mine, "cpu_affinity"):
                mine.cpu_affinity(owner.cpu_affinity())
            self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
            self.process = subprocess.Popen(
                [sys.executable, "-m", module],
                cwd=theirs.get(variable, home),
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


@dataclass
class _Group:
    """Machines whose rows count as those of one: one machine, or all of a kind that share the points.

    Attributes:
        rows_id: `machine_id` of their rows.
        is_whole: whether its one machine measures the sweep as one, whose points take turns.
        known: rows of each point that has an answer.
        failed: why a point has none, a sentence each.
        under_way: points that a machine measures now.
        losses: how often a point was lost with its machine.
        seconds: how long points took.
        is_over: whether there is nothing left to do.
    """

    rows_id: str
    is_whole: bool
    known: dict[Point, Sequence[Trial]] = field(default_factory=dict)
    failed: dict[Point, str] = field(default_factory=dict)
    under_way: set[Point] = field(default_factory=set)
    losses: Counter[Point] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    is_over: bool = False


@dataclass
class _Node:
    """A machine with our process, and what it is asked now; `machine` is None before it has told of itself."""

    machine: ClusterMachine | None = None
    facts: NodeFacts | None = None
    group: _Group | None = None
    points: tuple[Point, ...] = ()
    began: float = 0.0


class ClusterSweep:
    """One job of a queue, measured by the machines of a cluster."""

    def __init__(self, queue: Queue, job: Job, sweep: Sweep, elsewhere: Elsewhere, machines: Machines) -> None:
        """Take a job; nothing is asked yet."""
        self._queue, self._files, self._sweep, self._machines = queue, queue.files(job.id), sweep, machines
        self._reporter, self._store = Reporter(queue, job), Store(job.store)
        self._is_shared, self._salt = elsewhere.spread == "shared", read_salt(queue)
        self._experiments = {point: sweep.experiment(point) for point in sweep.points}
        self._points = {experiment.id: point for point, experiment in self._experiments.items()}
        self._nodes: dict[str, _Node] = {}
        self._groups: dict[str, _Group] = {}
        self._shown: dict[str, ClusterMachine] = {}
        self._next_start: dict[str, float] = {}
        self._silent: Counter[str] = Counter()
        self._unsaved: list[Trial] = []
        self._refusal, self._tried = "", 0.0
        self._began = self._met = time.monotonic()

    @property
    def job(self) -> Job:
        """The job as it was written down last."""
        return self._reporter.job

    def run(self) -> Job:
        """Have all points measured, or stop when somebody wants that; the job, ended.

        Raises:
            CrossoverError: no machine came, or the store cannot be read.
        """
        while not self._reporter.should_stop():
            self._start_machines()
            self._take_reports(LOOK_S)
            for node in self._nodes.values():
                self._assign(node)
            self._report()
            if self._is_over():
                return self._end_job("finished")
        self._take_reports(0.0)
        return self._end_job("stopped")

    def _take_reports(self, timeout_s: float) -> None:
        """Take over what machines tell, and bring their rows to the store."""
        for name, lines in self._machines.read(timeout_s):
            self._read_lines(name, lines)
        self._save_rows()

    def _start_machines(self) -> None:
        now = time.monotonic()
        there = self._machines.find()
        for name in sorted(there - self._nodes.keys()):
            if now >= self._next_start.get(name, 0.0):
                self._next_start[name] = now + AGAIN_S
                self._nodes[name] = _Node()
                self._machines.start(name)
        self._met = now if there else self._met
        if now - self._met >= ABSENT_S:
            raise JobError(GONE)

    def _read_lines(self, name: str, lines: Sequence[str] | None) -> None:
        if (node := self._nodes.get(name)) is None:
            return
        try:
            for line in lines or ():
                self._read_report(name, node, documents.parse_json(line, Report))
        except (CrossoverError, ValueError, RecursionError) as error:  # what it tells is nothing of ours
            self._machines.stop(name)
            self._lose(name, f"It cannot be understood: {error}")
            return
        if lines is None:
            self._lose(name, LOST)

    def _read_report(self, name: str, node: _Node, report: Report) -> None:
        if report.machine is not None:
            self._introduce(name, node, report.machine, report.message)
            return
        self._take_rows(node, unpack_rows(report.rows))
        if node.machine is None or node.group is None:
            return
        if not node.group.is_whole:
            self._show(node, state="waiting" if report.is_waiting else "measuring")
        else:
            far = {"doing": report.doing, "done": report.done, "total": report.total, "left_s": report.left_s}
            self._show(node, state="waiting" if report.is_waiting else "measuring", **far)
        self._show(node, message=BUSY if report.is_waiting else "")
        if report.state and node.points:
            self._end_request(node, node.group, report)

    def _introduce(self, name: str, node: _Node, facts: NodeFacts, failure: str) -> None:
        """Take over what a machine tells of itself, and what the store knows of it.

        Raises:
            StoreError: the store cannot be read.
        """
        node.facts, node.machine = facts, make_machine(facts, self._salt)
        lacking = [asked.device for asked in self._sweep.contenders if asked.device not in facts.devices]
        if facts.protocol != PROTOCOL_VERSION:
            failure = PROTOCOL.format(facts.protocol, PROTOCOL_VERSION)
        elif not failure and lacking:
            failure = f"The device {lacking[0]} is not on this machine, which has {', '.join(facts.devices)}."
        if failure:
            self._show(node, state="failed", message=failure)
            return
        rows_id = self._identify(node.machine)
        if rows_id not in self._groups:
            known = self._recall(facts, rows_id)
            self._groups[rows_id] = _Group(rows_id=rows_id, is_whole=not self._is_shared, known=known)
        node.group = self._groups[rows_id]
        self._show(node, done=len(node.group.known), total=0 if self._sweep.adaptive else len(self._points))

    def _recall(self, facts: NodeFacts, rows_id: str) -> dict[Point, Sequence[Trial]]:
        """What the store knows of a machine, or of its kind; of a fresh sweep only what was measured for it."""
        here = Here(machine_id=rows_id, torch_version=facts.torch_version, device_names=dict(facts.devices))
        since = self.job.created_at if self.job.fresh else ""
        found = self._store.answers(self._experiments.values(), here, since=since, accepted=certainty.answers)
        self._reporter.found([row for rows in found.values() for row in rows])
        return {self._points[name]: rows for name, rows in found.items()}

    def _take_rows(self, node: _Node, rows: Sequence[Trial]) -> None:
        """Take over rows of a machine, all but those of points that have an answer by now."""
        if node.group is None or node.facts is None:
            return
        runs: dict[Point, list[Trial]] = {}
        for row in rows:
            if (point := self._points.get(row.experiment_id)) is not None and point not in node.group.known:
                runs.setdefault(point, []).append(replace(row, machine_id=node.group.rows_id))
        for point, run in runs.items():
            self._unsaved += run
            if all(row.outcome not in CUT_OFF for row in run):
                node.group.known[point] = run
        if not node.group.is_whole:
            self._show(node, done=len(node.group.known))

    def _end_request(self, node: _Node, group: _Group, report: Report) -> None:
        """Take over how a machine ended with what it was asked."""
        points, node.points = node.points, ()
        group.under_way -= set(points)
        if not group.is_whole:
            [point] = points
            if point in group.known:
                group.seconds.append(time.monotonic() - node.began)
            else:
                group.failed[point] = self._explain(point, report)
            self._show(node, doing="")
        elif report.state == "crashed":
            group.is_whole = False  # then all but the point that is too large have an answer
        else:
            group.is_over = True
            self._show(node, state="finished" if report.is_complete else "failed", message=report.message, left_s=None)

    def _explain(self, point: Point, report: Report) -> str:
        """Why a point has no answer; where its process was killed, also which."""
        said = report.message or f"The measurement has {report.state}."
        if report.state != "crashed":
            return said
        return f"{point_result.label(self._sweep, point).capitalize()}: {said} {KILLED}"

    def _lose(self, name: str, why: str) -> None:
        """Take a machine as lost: what it measured is free for others, and for itself if it comes again."""
        node = self._nodes.pop(name)
        self._next_start[name] = time.monotonic() + AGAIN_S
        if node.machine is None:
            self._silent[name] += 1
            if self._silent[name] >= MOST_LOSSES:
                node.machine = name_silent(name, SILENT)
                self._nodes[name] = node
                self._show(node)
            return
        if node.group is not None:
            self._free_points(node.group, node.points)
        node.points = ()
        self._show(node, state="failed", message=why, doing="", left_s=None)

    def _free_points(self, group: _Group, points: Sequence[Point]) -> None:
        """Let points be measured again that were lost with a machine, but not for ever."""
        group.under_way -= set(points)
        group.losses.update(points)
        often = [point for point in points if group.losses[point] >= MOST_LOSSES and point not in group.known]
        if group.is_whole:
            if often:
                group.is_whole = False
                group.losses.clear()
            return
        for point in often:
            group.failed[point] = f"{point_result.label(self._sweep, point).capitalize()}: {LOST_OFTEN}"

    def _save_rows(self) -> None:
        """Bring rows to the store, again and again while it does not take them; they are kept beside the job."""
        now = time.monotonic()
        if not self._unsaved or (self._refusal and now - self._tried < STORE_AGAIN_S):
            return
        self._tried = now
        saved, self._refusal = saving.save(self._files, self.job, self._unsaved, again=bool(self._refusal))
        self._reporter.job = saved
        if not self._refusal:
            self._unsaved.clear()

    def _assign(self, node: _Node) -> None:
        """Give a machine that has nothing to do the next that is to be done."""
        group = node.group
        if group is None or node.machine is None or node.points or node.machine.state in ENDED:
            return
        if group.is_whole:
            self._assign_whole(node, group)
            return
        left = self._choose_points(group)
        if free := [point for point in left if point not in group.under_way]:
            self._show(node, doing=point_result.label(self._sweep, free[0]))
            self._ask(node, group, self._experiments[free[0]], free[:1])
        elif left:
            self._show(node, state="waiting", message=OTHERS, left_s=None)
        else:
            group.is_over = True
            said = " ".join(dict.fromkeys(group.failed.values()))
            self._show(node, state="failed" if group.failed else "finished", message=said, left_s=None)

    def _assign_whole(self, node: _Node, group: _Group) -> None:
        if group.is_over:
            self._show(node, state="finished", left_s=None)
        elif not group.under_way:
            self._ask(node, group, self._sweep, tuple(self._points.values()))

    def _choose_points(self, group: _Group) -> list[Point]:
        """Points that are to be measured: of a grid all without an answer, of a search the one that it wants next."""
        if not self._sweep.adaptive:
            return [point for point in self._points.values() if point not in group.known and point not in group.failed]
        sizes = {self._sweep.size(point): point for point in self._points.values()}
        wanted = search.next_step(tuple(sizes), study.of_sweep(self._sweep, group.known, group.failed)).size
        return [] if wanted is None else [sizes[wanted]]

    def _ask(self, node: _Node, group: _Group, asked: Experiment | Sweep, points: Sequence[Point]) -> None:
        name = next(name for name, other in self._nodes.items() if other is node)
        node.points, node.began = tuple(points), time.monotonic()
        group.under_way |= set(points)
        if isinstance(asked, Sweep):
            machine_id = node.facts.machine_id if node.facts else ""
            known = [replace(row, machine_id=machine_id) for rows in group.known.values() for row in rows]
            request = Request(sweep=asked.to_json(), rows=pack_rows(known))
        else:
            request = Request(experiment=asked.to_json())
        self._show(node, state="measuring", message="")
        self._machines.ask(name, json.dumps(dataclasses.asdict(request)))

    def _show(self, node: _Node, **changes: Any) -> None:
        """Change what is shown of a machine; fields as in `ClusterMachine`."""
        if node.machine is not None:
            node.machine = replace(node.machine, **changes)
            self._shown[node.machine.host] = node.machine

    def _estimate_s(self, group: _Group) -> float | None:
        """Seconds until machines that share points have done the rest; None while that is not known."""
        at_work = sum(node.group is group for node in self._nodes.values())
        if self._sweep.adaptive or not group.seconds or not at_work:
            return None
        return statistics.median(group.seconds) * len(self._choose_points(group)) / at_work

    def _report(self) -> None:
        """Write down how it stands."""
        for node in self._nodes.values():
            if node.group is not None and not node.group.is_whole:
                left_s = self._estimate_s(node.group) if node.points else None
                self._show(node, left_s=left_s, done=len(node.group.known))
        shown = self._list_machines()
        over = sum(machine.state in ENDED for machine in shown)
        phase = f"{over} of {units.counted(len(shown), 'machine')} done" if shown else NOBODY
        self._reporter.job = replace(self.job, machines=shown)
        at_it = [machine for machine in shown if machine.state != "failed"]
        left_s = max((machine.left_s for machine in at_it if machine.left_s is not None), default=None)
        done, total = sum(machine.done for machine in at_it), sum(machine.total for machine in at_it)
        self._reporter.sweep_progress(SweepProgress(done=done, total=total, remaining_s=left_s))
        self._reporter.progress(Progress(phase=self._refusal or phase, elapsed_s=time.monotonic() - self._began))

    def _list_machines(self) -> tuple[ClusterMachine, ...]:
        return tuple(self._shown[host] for host in sorted(self._shown))

    def _is_over(self) -> bool:
        """Whether all machines that are there have ended, and every row is in the store."""
        if self._unsaved or self._machines.find() - self._nodes.keys():
            return False
        states = [node.machine.state if node.machine else "waiting" for node in self._nodes.values()]
        if not states:
            return bool(self._groups) and all(group.is_over for group in self._groups.values())
        return all(state in ENDED for state in states)

    def _end_job(self, state: str) -> Job:
        """The job at its end, with what failed."""
        shown = self._list_machines()
        if state == "stopped":
            runs = self.job.run_ids
            kept = f"{units.counted(len(runs), 'run')} of theirs kept" if runs else "nothing was measured"
            over = tuple(machine if machine.state in ENDED else replace(machine, state="stopped") for machine in shown)
            return replace(self.job, state="stopped", machines=over, message=f"The machines were told to stop; {kept}.")
        done = {self._identify(machine) for machine in shown if machine.state == "finished"}
        failed = [machine for machine in shown if machine.state == "failed" and self._identify(machine) not in done]
        missing = tuple(f"{machine.host}: {machine.message or 'it failed.'}" for machine in failed)
        job = replace(self.job, machines=shown, missing=missing)
        return saving.finished(job, "" if job.trial_ids else "No machine has measured anything.")

    def _identify(self, machine: ClusterMachine) -> str:
        """The machine that its rows name."""
        return machine.machine_id if self._is_shared else machine.own_id


def list_machines(machines: Machines, timeout_s: float = GATHER_S) -> list[ClusterMachine]:
    """The machines of a cluster, by name; one that does not tell of itself in time says so."""
    nodes, found = machines.find(), dict[str, ClusterMachine]()
    for node in nodes:
        machines.start(node)
    until = time.monotonic() + timeout_s
    while nodes - found.keys() and time.monotonic() < until:
        for node, lines in machines.read(LOOK_S):
            for report in (documents.parse_json(line, Report) for line in lines or ()):
                if report.machine is not None:
                    found[node] = replace(make_machine(report.machine, ""), message=report.message)
            if lines is None:
                found.setdefault(node, name_silent(node, SILENT))
    late = f"It did not answer within {units.duration(timeout_s)}: it starts, or measures another sweep."
    found |= {node: name_silent(node, late) for node in nodes - found.keys()}
    return sorted(found.values(), key=lambda machine: machine.host)


def make_machine(facts: NodeFacts, salt: str) -> ClusterMachine:
    """A machine as a job tells of it."""
    return ClusterMachine(
        host=facts.host,
        machine_id=facts.machine_id,
        cpu=facts.cpu,
        devices=tuple(facts.devices.values()),
        own_id=hashlib.sha256(f"{salt} {facts.name} {facts.machine_id}".encode()).hexdigest()[:12],
        threads=facts.threads,
    )


def name_silent(node: str, message: str) -> ClusterMachine:
    """A machine that has told nothing of itself."""
    return ClusterMachine(host=f"node-{node[:8]}", machine_id="", cpu="", devices=(), state="failed", message=message)


def read_salt(queue: Queue) -> str:
    """What names of machines are hashed with, so that rows that are passed on say nothing of who measured them."""
    file = queue.folder / "cluster-salt"
    with suppress(FileNotFoundError):
        return file.read_text(encoding="ascii")
    salt = secrets.token_hex(16)
    atomic.write_bytes(file, salt.encode())
    return salt


def serve(queue: Queue) -> None:
    """Take what waits for a cluster until nothing does; leave at once if somebody else does."""
    served, me = queue.driver_file, process.this()
    served.folder.mkdir(parents=True, exist_ok=True)
    lock = served.lock()
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return
    with queue.guard():
        served.take(Serving(process=me, ready=True))
    while not _leave(queue, lock):
        if (job := queue.claim(me, elsewhere=True)) and job.sweep and job.elsewhere:
            queue.end(_measure_job(queue, job, job.sweep, job.elsewhere))


def _measure_job(queue: Queue, job: Job, sweep: Sweep, elsewhere: Elsewhere) -> Job:
    under_way: ClusterSweep | None = None
    try:
        with connect(elsewhere.on) as machines:
            under_way = ClusterSweep(queue, job, sweep, elsewhere, machines)
            return under_way.run()
    except CrossoverError as error:
        said = str(error)
    except Exception as error:
        logging.exception("Job %s met an unexpected error.", job.id)
        said = f"Unexpected error while a cluster measured: {type(error).__name__} ({queue.driver_file.log})."
    return replace(under_way.job if under_way else job, state="failed", message=said)


def connect(on: str) -> RayMachines:
    """The machines that `--on` names."""
    return RayMachines(on, NODE_MODULE)


def _leave(queue: Queue, lock: BaseFileLock) -> bool:
    """Give the place up if nothing waits; whoever submits a job from now on finds it empty."""
    with queue.guard():
        if queue.waiting(elsewhere=True):
            return False
        lock.release()
        queue.driver_file.leave(process.this())
        return True


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the queue named on the command line."""
    parser = argparse.ArgumentParser(prog="core.jobs.cluster", description="Have sweeps measured by a Ray cluster.")
    parser.add_argument("--jobs", type=Path, required=True, help="folder of jobs; it tells this process from others")
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    serve(Queue(parser.parse_args(arguments).jobs))


if __name__ == "__main__":
    main()
