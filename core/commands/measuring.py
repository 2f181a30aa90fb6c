"""What `run` and `sweep` share: default contenders, this machine, following a job, and recording for TensorBoard."""

import argparse
import sys
import time
from collections.abc import Sequence

from tqdm import tqdm

from ..answer.export import tensorboard
from ..answer.export.recording import trial_recording
from ..errors import JobError
from ..jobs import client
from ..jobs.job import Job
from ..jobs.machine import Machine
from ..jobs.process import ExecutionContext
from ..jobs.queue import Queue
from ..jobs.shared.members import SPREADS
from ..question import defaults
from ..question.defaults import with_lanes_of_cpu
from ..question.experiment import Contender, Point
from ..results import environment
from ..results.schema import Trial
from ..results.store import LocalMachine
from ..text import as_line, to_terminal
from . import output

MACHINE_TIMEOUT_S = 180
"""A cold start of PyTorch from a slow disk takes a minute; after three something is wrong."""

WHERE = "workers (machines that joined with the command worker), or ray, ray://HOST:PORT or slurm:MACHINES"
"""Which machines are asked."""


def add_machine_options(parser: argparse.ArgumentParser) -> None:
    """Where a sweep is measured, if not here."""
    parser.add_argument("--on", help=f"measure on other machines, which share the store: {WHERE}")
    ways = "; ".join(f"{name}: {what}" for name, what in SPREADS.items())
    spread = f"with --on (default everywhere); {ways}"
    parser.add_argument("--spread", choices=tuple(SPREADS), default="everywhere", help=spread)


def require_machine(queue: Queue) -> Machine:
    """What the measuring process sees, which is started if need be; raises JobError if it does not start."""
    deadline = time.monotonic() + MACHINE_TIMEOUT_S
    while time.monotonic() < deadline:
        found = client.load_machine(queue)
        if found and found.live and (client.has_same_context(queue) or queue.active()):
            return found
        client.ensure_worker(queue, same_context=True)
        time.sleep(0.1)
    raise JobError(
        f"The measuring process did not start within {MACHINE_TIMEOUT_S} s; {queue.worker_file.log} says more."
    )


def find_local_machine(queue: Queue) -> LocalMachine:
    """What would measure now, as far as it is known without starting anything."""
    facts, last = environment.read_environment(), client.load_machine(queue)
    names = last.device_names if last and last.surroundings in (None, ExecutionContext.capture()) else {}
    return LocalMachine(machine_id=facts.machine_id, torch_version=facts.torch_version, device_names=names)


def choose_contenders(text: str | None, queue: Queue, *, without: tuple[str, ...] = ()) -> tuple[Contender, ...]:
    """As asked for, comma-separated; otherwise who contends where nobody says who, or `without` an accelerator these.

    Raises:
        InvalidValue: a device is misspelt.
        JobError: the measuring process does not start.
    """
    if text is not None:
        return tuple(Contender.parse(part) for part in text.split(","))
    known = require_machine(queue)
    if without and len(known.devices) == 1:
        return tuple(map(Contender.parse, without))
    return defaults.default_contenders(known.device_names, environment.read_environment().cores_usable)


def with_lanes(
    contenders: tuple[Contender, ...], options: argparse.Namespace, points: Sequence[Point], queue: Queue
) -> tuple[Contender, ...]:
    """Who contends, with the lanes of the CPU where the options ask for them.

    Raises:
        InvalidValue: they do, and the CPU does not contend.
        JobError: the measuring process does not start.
    """
    if options.fair != "full":
        return contenders
    return with_lanes_of_cpu(contenders, points, require_machine(queue).refusals["cpu"])


def show_job_progress(queue: Queue, job: Job) -> Job:
    """Show progress on stderr until the job has ended; an interrupt from the keyboard stops it."""
    noted = 0
    with tqdm(total=1.0, file=sys.stderr, bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}") as bar:

        def show(now: Job) -> None:
            nonlocal noted
            for note in _notes(now)[noted:]:
                bar.write(to_terminal(note), file=sys.stderr)
                noted += 1
            bar.set_description_str(as_line(_phase(now)), refresh=False)
            bar.n = _progress_share(now)
            bar.refresh()

        try:
            ended = client.follow_job(queue, job.id, show)
        except KeyboardInterrupt:
            ended = client.stop(queue, job.id)
    if ended.message and ended.message not in _notes(ended)[:noted]:
        output.print_note(ended.message)
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


def _progress_share(job: Job) -> float:
    if not job.active:
        return 1.0
    return job.share


def _notes(job: Job) -> tuple[str, ...]:
    return job.progress.sweep.notes if job.progress and job.progress.sweep else ()


def check_tensorboard_option(options: argparse.Namespace) -> None:
    """Refuse before anything is measured: raises StoreError if event files are asked for and cannot be written."""
    if options.tensorboard is not None:
        tensorboard.require_event_folder(options.tensorboard)


def record(options: argparse.Namespace, trials: Sequence[Trial]) -> None:
    """Write the rows, if that was asked for; they have been shown before, so that a StoreError hides none of them."""
    if options.tensorboard is not None:
        files = tensorboard.write_event_files(options.tensorboard, map(trial_recording, trials))
        output.print_note(
            f"{len(files)} TensorBoard run{'' if len(files) == 1 else 's'} written to {options.tensorboard}."
        )
