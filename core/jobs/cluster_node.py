"""A machine of a cluster at work: `python -m core.jobs.cluster_node`, which Ray starts there for `core.jobs.cluster`.

It reads requests as lines of JSON from its standard input, and writes reports to its standard output. It submits jobs
to the queue of this machine like any user: the same measuring process, the same lock, the same settings. When its input
ends, it stops the measurement and exits.
"""

import base64
import contextlib
import dataclasses
import hashlib
import io
import json
import os
import queue as queues
import re
import socket
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from filelock import FileLock

from ..errors import CrossoverError, ForeignFile, JobError, NotAllowed
from ..files import documents
from ..progress import WAITING
from ..question.experiment import PROTOCOL_VERSION, Experiment
from ..question.sweep import Sweep
from ..results import environment
from ..results.environment import DeviceInfo
from ..results.parquet import encode_rows, from_table, read_file, readable, to_table
from ..results.schema import Trial
from ..results.store import Store
from . import client
from .job import Job
from .queue import Queue

MACHINE_VARIABLE = "CROSSOVER_MACHINE"
"""Environment variable with the name of this machine; by default the name of its host and a unique suffix."""

ASKED_BY = "cluster"
"""Requester name of jobs that this machine measures for a cluster."""

LOOK_S = 0.2
CUSTOM = "A custom training is measured on your own machine: its code is sent to no other."


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """First report of a machine, before any request.

    Attributes:
        host: name in the cluster.
        name: distinguishes it from machines of the same type; it is stored only as a hash.
        machine_id: hash of its hardware.
        cpu: name of the processor.
        threads: number of usable processor threads.
        torch_version: version of PyTorch.
        devices: device → name that it reports; empty if the measuring process did not start.
        protocol: version of the methodology.
    """

    host: str
    name: str
    machine_id: str
    cpu: str
    threads: int
    torch_version: str
    devices: Mapping[str, str] = field(default_factory=dict)
    protocol: int = PROTOCOL_VERSION


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to a machine: a point, or a whole sweep.

    Attributes:
        experiment: a point, as JSON.
        sweep: a sweep, as JSON.
        rows: rows of points that must not be measured again, from `pack_rows`.
    """

    experiment: dict[str, Any] | None = None
    sweep: dict[str, Any] | None = None
    rows: str = ""

    @property
    def question(self) -> Experiment | Sweep:
        """The requested question.

        Raises:
            CrossoverError: the question cannot be measured here.
        """
        question = Experiment.from_json(self.experiment) if self.sweep is None else Sweep.from_json(self.sweep)
        if question.point.training:
            raise NotAllowed(CUSTOM)
        return question


@dataclass(frozen=True, kw_only=True)
class Report:
    """A report of a machine.

    Attributes:
        machine: facts about the machine, in its first report.
        rows: new rows since the last report, from `pack_rows`.
        is_waiting: whether it waits for another measurement on the machine.
        doing: point under measurement.
        done: number of finished points of a sweep.
        total: number of points of a sweep.
        left_s: maximum remaining seconds of a sweep.
        state: final state of the request; empty before its end.
        message: sentence on the end.
        is_complete: whether all requested rows are present.
    """

    machine: NodeFacts | None = None
    rows: str = ""
    is_waiting: bool = False
    doing: str = ""
    done: int = 0
    total: int = 0
    left_s: float | None = None
    state: str = ""
    message: str = ""
    is_complete: bool = False


def main() -> int:
    """Measure each request until the input ends."""
    lines, sys.stdout = sys.stdout, sys.stderr  # whatever prints must not come between reports

    def send(report: Report) -> None:
        lines.write(f"{json.dumps(dataclasses.asdict(report))}\n")
        lines.flush()

    requests, is_over, queue = queues.SimpleQueue[str](), threading.Event(), Queue()
    threading.Thread(target=_read_requests, args=(requests, is_over), daemon=True).start()
    queue.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(queue.folder / "cluster.lock"):  # the operating system gives it back when its holder dies
        stop_orphans(queue)
        was_served = queue.worker_file.is_served
        send(describe_machine(queue))
        _serve(queue, requests, send, is_over)
        if not was_served:
            end_idle_worker(queue)
    return 0


def stop_orphans(queue: Queue) -> None:
    """Stop jobs of this machine for a cluster whose driver was killed, since nobody would receive their rows."""
    for job in queue.active():
        if job.asked_by == ASKED_BY:
            client.stop(queue, job.id)


def end_idle_worker(queue: Queue) -> None:
    """End an idle measuring process, because no process may remain after a Slurm job."""
    with contextlib.suppress(JobError, PermissionError), queue.guard():
        if not queue.active():
            queue.worker_file.dismiss()


def _serve(
    queue: Queue, requests: "queues.SimpleQueue[str]", send: Callable[[Report], object], is_over: threading.Event
) -> None:
    while not is_over.is_set():
        try:
            text = requests.get(timeout=LOOK_S)
        except queues.Empty:
            continue
        try:
            measure_request(queue, documents.parse_json(text, Request), send, is_over.is_set)
        except CrossoverError as error:
            send(Report(state="failed", message=str(error)))


def _read_requests(requests: "queues.SimpleQueue[str]", is_over: threading.Event) -> None:
    for line in sys.stdin:
        requests.put(line)
    is_over.set()


def describe_machine(queue: Queue) -> Report:
    """Return this machine, and why its measuring process does not start, if so."""
    about, failure, given = environment.read_environment(), "", os.environ.get(MACHINE_VARIABLE, "")
    devices: Sequence[DeviceInfo] = ()
    try:
        devices = client.await_machine(queue).devices
    except CrossoverError as error:
        failure = str(error)
    facts = NodeFacts(
        host=name_host(queue, given),
        name=given or f"{socket.gethostname()} {_read_card()}",
        machine_id=about.machine_id,
        cpu=about.cpu_name[:200],
        threads=about.cores_usable,
        torch_version=about.torch_version,
        devices={info.device: info.name for info in devices},
    )
    return Report(machine=facts, state="failed" if failure else "", message=failure)


def name_host(queue: Queue, given: str) -> str:
    """Return the name of this machine in a cluster: the given one, or the host's name with a unique suffix."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", given or socket.gethostname())[:60] or "machine"
    mark = hashlib.sha256(f"{queue.folder} {uuid.getnode():x}".encode()).hexdigest()[:6]
    return name if given else f"{name}-{mark}"


def _read_card() -> str:
    """Return the address of the network card; empty if the system reports none and Python generates a random one."""
    node = uuid.getnode()
    return "" if node >> 40 & 1 else f"{node:x}"


def measure_request(
    queue: Queue, request: Request, send: Callable[[Report], object], should_stop: Callable[[], bool]
) -> None:
    """Measure a request as a job of this machine, and report its progress until it has ended.

    Raises:
        CrossoverError: the request cannot be measured here.
    """
    question = request.question
    with tempfile.TemporaryDirectory(prefix="crossover-", ignore_cleanup_errors=True) as folder:
        store, known = Store(Path(folder)), unpack_rows(request.rows)
        if known:
            store.add_all(to_table(known))
        job = queue.submit(question, store, asked_by=ASKED_BY)
        _follow_job(queue, job, {row.trial_id for row in known}, send, should_stop)


def _follow_job(
    queue: Queue, job: Job, sent: set[str], send: Callable[[Report], object], should_stop: Callable[[], bool]
) -> None:
    last: Report | None = None
    while True:
        job = client.watch(queue, job.id)
        new = set(job.trial_ids) - sent
        report = _report_job(
            job, [row for row in client.load_job_rows(queue, job) if row.trial_id in new] if new else ()
        )
        sent |= new
        if report != last:
            send(report)
        last = report
        if not job.active:
            return
        if should_stop():
            client.stop(queue, job.id)
            return
        time.sleep(LOOK_S)


def _report_job(job: Job, rows: Sequence[Trial]) -> Report:
    report = Report(
        rows=pack_rows(rows),
        is_waiting=job.state == "queued" or (job.progress is not None and job.progress.phase == WAITING),
        state="" if job.active else job.state,
        message=job.message,
        is_complete=job.complete,
    )
    if job.progress is None or (sweep := job.progress.sweep) is None:
        return report
    far = dataclasses.replace(report, doing=sweep.size_label, done=sweep.done, total=sweep.total)
    return dataclasses.replace(far, left_s=sweep.remaining_s)


def pack_rows(rows: Sequence[Trial]) -> str:
    """Return rows as text, a parquet file in base64; empty without valid rows."""
    kept = readable(rows)
    if not kept:
        return ""
    file = io.BytesIO()
    encode_rows(to_table(kept), file)
    return base64.b64encode(file.getvalue()).decode()


def unpack_rows(text: str) -> list[Trial]:
    """Return packed rows, validated like those of any foreign file.

    Raises:
        ForeignFile: the text does not contain rows.
    """
    if not text:
        return []
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ForeignFile("it is incomplete or not a parquet file") from error
    return from_table(read_file(pa.BufferReader(data))[1])


if __name__ == "__main__":
    sys.exit(main())
