"""A machine of a cluster at work: `python -m core.jobs.cluster_node`, which Ray starts there for `core.jobs.cluster`.

It measures what its standard input asks, a line of JSON each, and tells of it on its standard output. It asks this
machine's own queue, as anybody here would: the same measuring process, the same lock, the same settings. Once its input
ends, it stops what it measures and leaves.
"""

import base64
import dataclasses
import hashlib
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
import pyarrow.parquet as pq
from filelock import FileLock

from core.errors import CrossoverError, ForeignFile, NotAllowed
from core.files import documents
from core.jobs import client
from core.jobs.job import Job
from core.jobs.queue import Queue
from core.progress import WAITING
from core.question.experiment import PROTOCOL_VERSION, Experiment
from core.question.sweep import Sweep
from core.results import environment
from core.results.environment import DeviceInfo
from core.results.reading import read_file, readable
from core.results.schema import Trial
from core.results.store import Store
from core.results.tables import from_table, to_table

MACHINE_VARIABLE = "CROSSOVER_MACHINE"
"""Environment variable that names this machine among those of its kind; hashed. Its host's name unless given."""

ASKED_BY = "cluster"
"""Who asks for a job of this machine that measures for a cluster."""

LOOK_S = 0.2
CUSTOM = "A custom training is measured on one's own machine: no other is given its code."


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """What a machine tells of itself before it is asked anything.

    Attributes:
        host: its name in the cluster.
        name: what tells it from machines of its kind; to be hashed.
        machine_id: hash of its hardware.
        cpu: processor.
        threads: of its processor that it may use.
        torch_version: that measures there.
        devices: device → the name that it gives itself; empty where the measuring process did not start.
        protocol: version of how it measures.
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
    """What a machine is asked: a point, or a whole sweep.

    Attributes:
        experiment: a point, as JSON.
        sweep: a sweep, as JSON.
        rows: of points that are known already and shall not be measured again, by `pack_rows`.
    """

    experiment: dict[str, Any] | None = None
    sweep: dict[str, Any] | None = None
    rows: str = ""

    @property
    def asked(self) -> Experiment | Sweep:
        """The question.

        Raises:
            CrossoverError: it is none that can be measured here.
        """
        asked = Experiment.from_json(self.experiment) if self.sweep is None else Sweep.from_json(self.sweep)
        if asked.point.training:
            raise NotAllowed(CUSTOM)
        return asked


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a machine tells.

    Attributes:
        machine: itself, in its first report.
        rows: that came since the last report, by `pack_rows`.
        is_waiting: whether it waits, as something else is measured there.
        doing: where the point lies that it measures.
        done: points of a sweep that are settled.
        total: points of a sweep.
        left_s: seconds that the rest of a sweep may take.
        state: how the request ended; empty before.
        message: one sentence on that.
        is_complete: whether every row is there that was asked for.
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
    """Measure what is asked until nobody asks any more."""
    lines, sys.stdout = sys.stdout, sys.stderr  # whatever prints must not come between reports

    def send(report: Report) -> None:
        lines.write(f"{json.dumps(dataclasses.asdict(report))}\n")
        lines.flush()

    requests, is_over, queue = queues.SimpleQueue[str](), threading.Event(), Queue()
    threading.Thread(target=_read_requests, args=(requests, is_over), daemon=True).start()
    queue.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(queue.folder / "cluster.lock"):  # the operating system gives it back when its holder dies
        stop_orphans(queue)
        send(describe_machine(queue))
        _serve(queue, requests, send, is_over)
    return 0


def stop_orphans(queue: Queue) -> None:
    """Stop what this machine still measures for a cluster, as whoever would have taken the rows was killed."""
    for job in queue.active():
        if job.asked_by == ASKED_BY:
            client.stop(queue, job.id)


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
    """This machine; where its measuring process does not start, also why."""
    about, failure = environment.read(), ""
    devices: Sequence[DeviceInfo] = ()
    try:
        devices = client.await_machine(queue).devices
    except CrossoverError as error:
        failure = str(error)
    facts = NodeFacts(
        host=name_host(queue),
        name=os.environ.get(MACHINE_VARIABLE) or f"{socket.gethostname()} {_read_card()}",
        machine_id=about.machine_id,
        cpu=about.cpu_name[:200],
        threads=about.cores_usable,
        torch_version=about.torch_version,
        devices={info.device: info.name for info in devices},
    )
    return Report(machine=facts, state="failed" if failure else "", message=failure)


def name_host(queue: Queue) -> str:
    """The name of this machine in a cluster: its host's, and a mark, as hosts may be called alike."""
    mark = hashlib.sha256(f"{queue.folder} {uuid.getnode():x}".encode()).hexdigest()[:6]
    return f"{re.sub(r'[^A-Za-z0-9.-]', '-', socket.gethostname())[:60] or 'machine'}-{mark}"


def _read_card() -> str:
    """The address of the network card; empty where the system tells of none, and Python makes up a number."""
    node = uuid.getnode()
    return "" if node >> 40 & 1 else f"{node:x}"


def measure_request(
    queue: Queue, request: Request, send: Callable[[Report], object], should_stop: Callable[[], bool]
) -> None:
    """Measure what is asked as a job of this machine, and tell how far it is until it has ended.

    Raises:
        CrossoverError: it cannot be measured here.
    """
    asked = request.asked
    with tempfile.TemporaryDirectory(prefix="crossover-", ignore_cleanup_errors=True) as folder:
        store, known = Store(Path(folder)), unpack_rows(request.rows)
        if known:
            store.add_all(to_table(known))
        job = queue.submit(asked, store, asked_by=ASKED_BY)
        _follow_job(queue, job, {row.trial_id for row in known}, send, should_stop)


def _follow_job(
    queue: Queue, job: Job, sent: set[str], send: Callable[[Report], object], should_stop: Callable[[], bool]
) -> None:
    last: Report | None = None
    while True:
        job = client.watch(queue, job.id)
        new = set(job.trial_ids) - sent
        report = _report_job(job, [row for row in client.rows(queue, job) if row.trial_id in new] if new else ())
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
    """Rows as text: a parquet file in base 64. Empty if there are none, or none that readers would take."""
    kept = readable(rows)
    if not kept:
        return ""
    sink = pa.BufferOutputStream()
    pq.write_table(to_table(kept), sink, compression="zstd", write_page_checksum=True)
    return base64.b64encode(sink.getvalue()).decode()


def unpack_rows(text: str) -> list[Trial]:
    """Rows that were packed, checked as those of any foreign file.

    Raises:
        ForeignFile: they are none.
    """
    if not text:
        return []
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ForeignFile("it is torn or not a parquet file") from error
    return from_table(read_file(pa.BufferReader(data))[1])


if __name__ == "__main__":
    sys.exit(main())
