"""A sweep on the machines of a Ray cluster: `python -m core.jobs.cluster`, the driver of the jobs of one queue.

`core.jobs.client` starts the driver as it starts a worker, so that a page or a command line may come and go. On every
machine of the cluster, Ray starts `core.jobs.cluster_node`, which occupies the whole machine. The driver sends it
single points or a whole sweep, and writes the returned rows to the store. If a machine is lost before it returned its
rows, another machine measures them. Stored points are not measured again, so a new driver continues the work of a
killed one. Ray ends a process that loses its cluster.
"""

import argparse
import dataclasses
import hashlib
import json
import logging
import secrets
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, Timeout

from .. import units
from ..answer import search, speedup, study
from ..errors import CrossoverError, JobError
from ..files import documents
from ..files.project import locate_module
from ..progress import Progress, SweepProgress
from ..question.experiment import PROTOCOL_VERSION, Experiment, Point
from ..question.sweep import Sweep
from ..results.schema import Trial
from ..results.store import CUT_OFF, LocalMachine, Store
from ..text import LogFormatter
from . import process, recovery
from .cluster_machine import ENDED, HOME_VARIABLE, ClusterMachine, Machines, RayMachines
from .cluster_node import NodeFacts, Report, Request, pack_rows, unpack_rows
from .job import Job, RemoteTarget
from .machine import Serving
from .queue import Queue
from .worker import sweep
from .worker.reporter import Reporter

LOOK_S = 0.5
"""Seconds between two checks for a requested stop and for reports of machines."""

AGAIN_S = 10.0
"""Seconds after which a machine gets a new process, if it lost its process or refused to start one."""

STORE_AGAIN_S = 5.0
"""Seconds after which rows are sent again to a store that refused them."""

ABSENT_S = 600.0
"""Seconds to wait for a cluster without any machine."""

MOST_LOSSES = 3
"""Limit of losses: of a point with the machine that measures it, and of failed starts of the process on one machine."""

GATHER_S = 60.0
"""Seconds to wait for the first reports of machines: each must load PyTorch."""

NODE_MODULE = locate_module(__package__, "cluster_node")
"""Module that runs on each machine."""

NOBODY = "waiting for a machine of the cluster"
GONE = f"The cluster had no machine for {units.format_duration(ABSENT_S)}. Start Ray on a machine, then run it again."
LOST = "The cluster lost this machine."
SILENT = (
    f"Crossover's process ended there without a message. In the environment of its Ray, {HOME_VARIABLE} names the "
    "folder of Crossover on that machine, and Ray needs the Python of Crossover's own environment."
)
LOST_OFTEN = f"it was lost {MOST_LOSSES} times, each time with the machine measuring it."
BUSY = "This machine is measuring something else."
OTHERS = "Other machines measure what is left."
KILLED = "The system may have run out of memory."
PROTOCOL = "Its version of Crossover uses protocol {0}, but this one uses {1}. Install the same version."


@dataclass
class _Group:
    """Machines whose rows count as those of one: one machine, or all of a kind that share the points.

    Attributes:
        rows_id: `machine_id` of their rows.
        is_whole: whether its only machine measures the whole sweep, with points in turns.
        known: rows of each measured point.
        failed: reason for each point without rows, in a sentence.
        under_way: points under measurement.
        losses: number of times that a point was lost with its machine.
        seconds: durations of points.
        is_over: whether no work is left.
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
    """A machine with a Crossover process and its current request; `machine` is None before its first report."""

    machine: ClusterMachine | None = None
    facts: NodeFacts | None = None
    group: _Group | None = None
    points: tuple[Point, ...] = ()
    began: float = 0.0


class ClusterSweep:
    """One job of a queue, measured by the machines of a cluster."""

    def __init__(self, queue: Queue, job: Job, sweep: Sweep, elsewhere: RemoteTarget, machines: Machines) -> None:
        """Prepare the measurement of a job; no request is sent yet."""
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
        """The job as last stored."""
        return self._reporter.job

    def run(self) -> Job:
        """Let the machines measure all points unless a stop is requested; return the ended job.

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
        """Process the reports of machines, and write their rows to the store."""
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
        except (CrossoverError, ValueError, RecursionError) as error:  # its report is not Crossover's
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
        """Process the facts that a machine reports, and load its stored rows.

        Raises:
            StoreError: the store cannot be read.
        """
        node.facts, node.machine = facts, make_machine(facts, self._salt)
        if any(
            other.machine and other.machine.host == facts.host for other in self._nodes.values() if other is not node
        ):
            node.machine = replace(node.machine, host=f"{facts.host}-{name[:6]}")  # two have been given the same name
        lacking = [contender.device for contender in self._sweep.contenders if contender.device not in facts.devices]
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
        """Return the stored rows of a machine or of its type; of a fresh sweep, only rows since its submission."""
        here = LocalMachine(machine_id=rows_id, torch_version=facts.torch_version, device_names=dict(facts.devices))
        since = self.job.created_at if self.job.fresh else ""
        found = self._store.answers(self._experiments.values(), here, since=since, accepted=speedup.answers_experiment)
        self._reporter.count_cached_rows([row for rows in found.values() for row in rows])
        return {self._points[name]: rows for name, rows in found.items()}

    def _take_rows(self, node: _Node, rows: Sequence[Trial]) -> None:
        """Accept rows of a machine, except those of points that were measured meanwhile."""
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
        """Handle the end of a machine's request."""
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
        """Return why a point has no rows; if its process was killed, with the point."""
        said = report.message or f"The measurement has {report.state}."
        if report.state != "crashed":
            return said
        return f"{sweep.describe_point(self._sweep, point).capitalize()}: {said} {KILLED}"

    def _lose(self, name: str, why: str) -> None:
        """Mark a machine as lost: its points become free for other machines, and for itself if it returns."""
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
        """Free points that were lost with a machine, up to a maximum number of losses."""
        group.under_way -= set(points)
        group.losses.update(points)
        often = [point for point in points if group.losses[point] >= MOST_LOSSES and point not in group.known]
        if group.is_whole:
            if often:
                group.is_whole = False
                group.losses.clear()
            return
        for point in often:
            group.failed[point] = f"{sweep.describe_point(self._sweep, point).capitalize()}: {LOST_OFTEN}"

    def _save_rows(self) -> None:
        """Write rows to the store, repeatedly while it refuses them; the job's folder has a copy."""
        now = time.monotonic()
        if not self._unsaved or (self._refusal and now - self._tried < STORE_AGAIN_S):
            return
        self._tried = now
        saved, self._refusal = recovery.save(self._files, self.job, self._unsaved, again=bool(self._refusal))
        self._reporter.job = saved
        if not self._refusal:
            self._unsaved.clear()

    def _assign(self, node: _Node) -> None:
        """Assign the next work to an idle machine."""
        group = node.group
        if group is None or node.machine is None or node.points or node.machine.state in ENDED:
            return
        if group.is_whole:
            self._assign_whole(node, group)
            return
        left = self._choose_points(group)
        if free := [point for point in left if point not in group.under_way]:
            self._show(node, doing=sweep.describe_point(self._sweep, free[0]))
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
        """Return points to measure: all open points of a grid, or the next one of a search."""
        if not self._sweep.adaptive:
            return [point for point in self._points.values() if point not in group.known and point not in group.failed]
        sizes = {self._sweep.size(point): point for point in self._points.values()}
        wanted = search.next_step(tuple(sizes), study.sweep_evidence(self._sweep, group.known, group.failed)).size
        return [] if wanted is None else [sizes[wanted]]

    def _ask(self, node: _Node, group: _Group, question: Experiment | Sweep, points: Sequence[Point]) -> None:
        name = next(name for name, other in self._nodes.items() if other is node)
        node.points, node.began = tuple(points), time.monotonic()
        group.under_way |= set(points)
        if isinstance(question, Sweep):
            machine_id = node.facts.machine_id if node.facts else ""
            known = [replace(row, machine_id=machine_id) for rows in group.known.values() for row in rows]
            request = Request(sweep=question.to_json(), rows=pack_rows(known))
        else:
            request = Request(experiment=question.to_json())
        self._show(node, state="measuring", message="")
        self._machines.ask(name, json.dumps(dataclasses.asdict(request)))

    def _show(self, node: _Node, **changes: Any) -> None:
        """Change fields of the displayed status of a machine, as in `ClusterMachine`."""
        if node.machine is not None:
            node.machine = replace(node.machine, **changes)
            self._shown[node.machine.host] = node.machine

    def _estimate_s(self, group: _Group) -> float | None:
        """Estimate the seconds until the machines that share points finish; None while that cannot be estimated."""
        at_work = sum(node.group is group for node in self._nodes.values())
        if self._sweep.adaptive or not group.seconds or not at_work:
            return None
        return statistics.median(group.seconds) * len(self._choose_points(group)) / at_work

    def _report(self) -> None:
        """Write the current progress to the job's files."""
        for node in self._nodes.values():
            if node.group is not None and not node.group.is_whole:
                left_s = self._estimate_s(node.group) if node.points else None
                self._show(node, left_s=left_s, done=len(node.group.known))
        shown = self._list_machines()
        over = sum(machine.state in ENDED for machine in shown)
        phase = f"{over} of {units.format_quantity(len(shown), 'machine')} done" if shown else NOBODY
        self._reporter.job = replace(self.job, machines=shown)
        at_it = [machine for machine in shown if machine.state != "failed"]
        left_s = max((machine.left_s for machine in at_it if machine.left_s is not None), default=None)
        done, total = sum(machine.done for machine in at_it), sum(machine.total for machine in at_it)
        self._reporter.sweep_progress(SweepProgress(done=done, total=total, remaining_s=left_s))
        self._reporter.progress(Progress(phase=self._refusal or phase, elapsed_s=time.monotonic() - self._began))

    def _list_machines(self) -> tuple[ClusterMachine, ...]:
        return tuple(self._shown[host] for host in sorted(self._shown))

    def _is_over(self) -> bool:
        """Return whether all present machines have finished, and every row is in the store."""
        if self._unsaved or self._machines.find() - self._nodes.keys():
            return False
        states = [node.machine.state if node.machine else "waiting" for node in self._nodes.values()]
        if not states:
            return bool(self._groups) and all(group.is_over for group in self._groups.values())
        return all(state in ENDED for state in states)

    def _end_job(self, state: str) -> Job:
        """Return the ended job, with its failures."""
        shown = self._list_machines()
        if state == "stopped":
            runs = self.job.run_ids
            kept = f"{units.format_quantity(len(runs), 'run')} saved" if runs else "nothing was measured"
            over = tuple(machine if machine.state in ENDED else replace(machine, state="stopped") for machine in shown)
            return replace(self.job, state="stopped", machines=over, message=f"The machines were stopped; {kept}.")
        done = {self._identify(machine) for machine in shown if machine.state == "finished"}
        failed = [machine for machine in shown if machine.state == "failed" and self._identify(machine) not in done]
        missing = tuple(f"{machine.host}: {machine.message or 'it failed.'}" for machine in failed)
        job = replace(self.job, machines=shown, missing=missing)
        return recovery.finish_job(job, "" if job.trial_ids else "No machine has measured anything.")

    def _identify(self, machine: ClusterMachine) -> str:
        """Return the `machine_id` of a machine's rows."""
        return machine.machine_id if self._is_shared else machine.own_id


def list_machines(machines: Machines, timeout_s: float = GATHER_S) -> list[ClusterMachine]:
    """Return the machines of a cluster, by name; one that does not report in time is marked."""
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
    late = f"It did not answer within {units.format_duration(timeout_s)}: it is starting, or measuring another sweep."
    found |= {node: name_silent(node, late) for node in nodes - found.keys()}
    return sorted(found.values(), key=lambda machine: machine.host)


def make_machine(facts: NodeFacts, salt: str) -> ClusterMachine:
    """Return the status of a machine for its job."""
    return ClusterMachine(
        host=facts.host,
        machine_id=facts.machine_id,
        cpu=facts.cpu,
        devices=tuple(facts.devices.values()),
        own_id=hashlib.sha256(f"{salt} {facts.name} {facts.machine_id}".encode()).hexdigest()[:12],
        threads=facts.threads,
    )


def name_silent(node: str, message: str) -> ClusterMachine:
    """Return the entry of a machine that has not reported anything."""
    return ClusterMachine(host=f"node-{node[:8]}", machine_id="", cpu="", devices=(), state="failed", message=message)


def read_salt(queue: Queue) -> str:
    """Return the salt for hashing names of machines, so that exported rows don't reveal where they were measured."""
    file = queue.folder / "cluster-salt"
    with suppress(FileNotFoundError):
        return file.read_text(encoding="ascii")
    salt = secrets.token_hex(16)
    documents.write_bytes(file, salt.encode())
    return salt


def serve(queue: Queue) -> None:
    """Measure waiting jobs for a cluster until none is left; return at once if another driver is running."""
    served, me = queue.driver_file, process.current_process()
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


def _measure_job(queue: Queue, job: Job, sweep: Sweep, elsewhere: RemoteTarget) -> Job:
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
    """Return the machines that `--on` names."""
    return RayMachines(on, NODE_MODULE)


def _leave(queue: Queue, lock: BaseFileLock) -> bool:
    """Release the queue's lock if no job waits; a later job finds it free. Return whether it was released."""
    with queue.guard():
        if queue.waiting(elsewhere=True):
            return False
        lock.release()
        queue.driver_file.leave(process.current_process())
        return True


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the queue named on the command line."""
    parser = argparse.ArgumentParser(
        prog=locate_module(__package__, "cluster"), description="Measure sweeps on a Ray cluster."
    )
    parser.add_argument("--jobs", type=Path, required=True, help="folder of jobs; it tells this process from others")
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    serve(Queue(parser.parse_args(arguments).jobs))


if __name__ == "__main__":
    main()
