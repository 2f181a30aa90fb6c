"""What `run` and `sweep` share: who contends if nothing is said, what this machine is, and following a job."""

import argparse
import sys
from collections.abc import Sequence

from tqdm import tqdm

from core.commands import output
from core.jobs import client
from core.jobs.cluster_machine import SPREADS
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.jobs.process import Surroundings
from core.jobs.queue import Queue
from core.question import usual
from core.question.experiment import Contender, Point
from core.question.usual import with_lanes_of_cpu
from core.results import environment
from core.results.reuse import Here
from core.text import as_line, on_terminal

WHERE = "ray (of which this machine is part) or ray://HOST:PORT"
"""Which cluster is asked."""


def add_on(parser: argparse.ArgumentParser) -> None:
    """Where a sweep is measured, if not here."""
    parser.add_argument("--on", metavar="CLUSTER", help=f"measure on the machines of a Ray cluster: {WHERE}")
    ways = "; ".join(f"{name}: {what}" for name, what in SPREADS.items())
    spread = f"with --on (default everywhere); {ways}"
    parser.add_argument("--spread", choices=tuple(SPREADS), default="everywhere", help=spread)


def machine(queue: Queue) -> Machine:
    """What the measuring process sees, which is started if need be; raises JobError if it does not start."""
    return client.await_machine(queue)


def here(queue: Queue) -> Here:
    """What would measure now, as far as it is known without starting anything."""
    facts, last = environment.read(), client.machine(queue)
    names = last.device_names if last and last.surroundings in (None, Surroundings.now()) else {}
    return Here(machine_id=facts.machine_id, torch_version=facts.torch_version, device_names=names)


def contenders(text: str | None, queue: Queue, *, without: tuple[str, ...] = ()) -> tuple[Contender, ...]:
    """As asked for, comma-separated; otherwise who contends where nobody says who, or `without` an accelerator these.

    Raises:
        InvalidValue: a device is misspelt.
        JobError: the measuring process does not start.
    """
    if text is not None:
        return tuple(Contender.parse(part) for part in text.split(","))
    known = machine(queue)
    if without and len(known.devices) == 1:
        return tuple(map(Contender.parse, without))
    return usual.contenders(known.device_names, environment.read().cores_usable)


def with_lanes(
    asked: tuple[Contender, ...], options: argparse.Namespace, points: Sequence[Point], queue: Queue
) -> tuple[Contender, ...]:
    """Who contends, with the lanes of the CPU where the options ask for them.

    Raises:
        InvalidValue: they do, and the CPU does not contend.
        JobError: the measuring process does not start.
    """
    if options.fair != "full":
        return asked
    return with_lanes_of_cpu(asked, points, machine(queue).refusals["cpu"])


def follow(queue: Queue, job: Job) -> Job:
    """Show progress on stderr until the job has ended; an interrupt from the keyboard stops it."""
    noted = 0
    with tqdm(total=1.0, file=sys.stderr, bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}") as bar:

        def show(now: Job) -> None:
            nonlocal noted
            for note in _notes(now)[noted:]:
                bar.write(on_terminal(note), file=sys.stderr)
                noted += 1
            bar.set_description_str(as_line(_phase(now)), refresh=False)
            bar.n = _done(now)
            bar.refresh()

        try:
            ended = client.follow(queue, job.id, show)
        except KeyboardInterrupt:
            ended = client.stop(queue, job.id)
    if ended.message and ended.message not in _notes(ended)[:noted]:
        output.say(ended.message)
    return ended


def _phase(job: Job) -> str:
    if job.state == "queued":
        return job.message or f"waiting, place {job.place} in the queue"
    progress = job.progress
    if progress is None or progress.sweep is None or not job.active:
        return progress.phase if progress and job.active else job.state
    sweep = progress.sweep
    size = f", {sweep.size_label}" if sweep.size_label else ""
    return f"{sweep.done} of {sweep.total} points{size}: {progress.phase}{sweep.left}"


def _done(job: Job) -> float:
    if not job.active:
        return 1.0
    return job.share


def _notes(job: Job) -> tuple[str, ...]:
    return job.progress.sweep.notes if job.progress and job.progress.sweep else ()
