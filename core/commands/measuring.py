"""Shared parts of `run` and `sweep`: default contenders, this machine, following a job, TensorBoard recordings."""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence

from tqdm import tqdm
from tqdm.auto import tqdm as notebook_tqdm

from ..answer.export import tensorboard
from ..answer.export.tensorboard import trial_recording
from ..errors import DeviceUnavailable, InvalidValue, LaneUnavailable
from ..jobs import client
from ..jobs.cluster_machine import SPREADS
from ..jobs.job import Job
from ..jobs.machine import Machine
from ..jobs.process import ExecutionContext
from ..jobs.queue import Queue
from ..question import lanes, presets
from ..question.experiment import Contender, Point
from ..question.policy import AnyQuestion
from ..question.presets import with_fair_lanes
from ..results import environment
from ..results.schema import Trial
from ..results.store import LocalMachine, Store
from ..text import as_line, to_terminal
from . import output

WHERE = "ray (the cluster of this machine) or ray://HOST:PORT"
"""Description of the possible clusters."""


def add_machine_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select another machine for a sweep."""
    parser.add_argument(
        "--on", metavar="CLUSTER", help=f"measure on the machines of a Ray cluster: {WHERE} (default: here)"
    )
    ways = "; ".join(f"{name}: {what}" for name, what in SPREADS.items())
    spread = f"with --on: {ways} (default: everywhere)"
    parser.add_argument("--spread", choices=tuple(SPREADS), default="everywhere", help=spread)


def require_machine(queue: Queue) -> Machine:
    """Return the machine as reported by the measuring process; start this process if necessary, or raise JobError."""
    return client.await_machine(queue)


def find_local_machine(queue: Queue) -> LocalMachine:
    """Return the identity of this machine, as far as it can be determined without starting a process."""
    facts, last = environment.read_environment(), client.load_machine(queue)
    seen = last and (last.surroundings is None or last.surroundings.suits(ExecutionContext.capture()))
    names = last.device_names if last and seen else {}
    return LocalMachine(machine_id=facts.machine_id, torch_version=facts.torch_version, device_names=names)


def choose_contenders(text: str | None, queue: Queue, *, without: tuple[str, ...] = ()) -> tuple[Contender, ...]:
    """Return the requested contenders, comma-separated; else the defaults, or `without` if there is no accelerator.

    Raises:
        InvalidValue: a device is misspelt.
        JobError: the measuring process does not start.
    """
    if text is not None:
        return tuple(Contender.parse(part) for part in text.split(","))
    known = require_machine(queue)
    if without and len(known.devices) == 1:
        return tuple(map(Contender.parse, without))
    return presets.default_contenders(known.device_names, environment.read_environment().cores_usable)


def submit_question(queue: Queue, question: AnyQuestion, store: Store, *, fresh: bool, quiet_s: float = 0.0) -> Job:
    """Queue a measurement on this machine, after checking that the devices, variants and threads are available.

    The measurement waits up to `quiet_s` seconds for a quiet machine.

    Raises:
        InvalidValue: the machine has fewer threads, or the wait is too long.
        DeviceUnavailable: PyTorch does not see a device.
        LaneUnavailable: a device cannot run a variant.
        JobError: the measuring process does not start, or the queue is full.
    """
    require_devices(question.contenders, queue)
    return queue.submit(question, store, fresh=fresh, quiet_s=quiet_s)


def require_devices(contenders: Sequence[Contender], queue: Queue) -> None:
    """Check that this machine has the devices, variants and threads; raises as `submit_question`.

    The last device list of the measuring process is used if it has all devices. Otherwise it is requested again, unless
    the system has no driver of an accelerator.
    """
    usable = environment.usable_cores()
    for contender in contenders:
        if contender.threads > usable:
            raise InvalidValue("devices", str(contender), f"a device with at most the {usable} threads of this machine")
    wanted = {contender.device for contender in contenders} - {Contender().device}
    last = client.load_machine(queue)
    if last and last.surroundings and not last.surroundings.suits(ExecutionContext.capture()):
        last = None
    if missing := wanted - set(last.device_names if last else ()):
        if not environment.has_accelerator_driver():
            raise DeviceUnavailable(_missing_device(min(missing), [Contender().device], NO_DRIVER))
        last = require_machine(queue)
        if missing := wanted - set(last.device_names):
            raise DeviceUnavailable(_missing_device(min(missing), last.device_names, last.hint))
    refusals = last.refusals if last else {}
    for contender in contenders:
        if reason := lanes.why_not(contender.lane, refusals.get(contender.device, {}), contender.spoken):
            raise LaneUnavailable(reason)


NO_DRIVER = "The system has no accelerator driver."


def _missing_device(device: str, seen: Iterable[str], hint: str) -> str:
    return f"--devices: {device} is not on this machine, which has {', '.join(seen)}. {hint}".strip()


def with_lanes(
    contenders: tuple[Contender, ...], options: argparse.Namespace, points: Sequence[Point], queue: Queue
) -> tuple[Contender, ...]:
    """Return the contenders, with the variants of each device if the options request them.

    Raises:
        InvalidValue: variants are requested, and no contender is a CPU.
        JobError: the measuring process does not start.
    """
    if options.fair != "full":
        return contenders
    return with_fair_lanes(contenders, points, require_machine(queue).refusals)


def show_job_progress(queue: Queue, job: Job, *, in_notebook: bool = False) -> Job:
    """Show progress until the job has ended; an interrupt from the keyboard stops it.

    Terminals and notebooks show a bar, which never moves backwards; a file as stderr gets a line for each phase.
    """
    noted, share, phase = 0, 0.0, ""
    has_bar = in_notebook or sys.stderr.isatty()
    if client.is_renewed_for(queue, job):
        output.print_note("The measuring process is restarted, with the environment variables of this shell.")
    make_bar = notebook_tqdm if in_notebook else tqdm
    with make_bar(total=1.0, disable=not has_bar, bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}") as bar:

        def show(now: Job) -> None:
            nonlocal noted, share, phase
            for note in _notes(now)[noted:]:
                bar.write(to_terminal(note), file=sys.stderr)
                noted += 1
            if not has_bar:
                if (begun := _phase_kind(now)) != phase:
                    phase = begun
                    output.print_note(as_line(_phase(now)))
                return
            share = max(share, _progress_share(now))
            bar.set_description_str(as_line(_phase(now)), refresh=False)
            bar.n = share
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


def _phase_kind(job: Job) -> str:
    """Return the current phase without its numbers, so that it is stable while only numbers change."""
    sweep = job.progress.sweep if job.progress else None
    return f"{sweep.done if sweep else ''} {re.sub(r'[0-9]+', '#', job.progress.phase if job.progress else job.state)}"


def _progress_share(job: Job) -> float:
    if not job.active:
        return 1.0
    return job.share


def _notes(job: Job) -> tuple[str, ...]:
    if job.progress is None:
        return ()
    return (*filter(None, [job.progress.note]), *(job.progress.sweep.notes if job.progress.sweep else ()))


def check_tensorboard_option(options: argparse.Namespace) -> None:
    """Raise StoreError before the measurement if event files are requested and cannot be written."""
    if options.tensorboard is not None:
        tensorboard.require_event_folder(options.tensorboard)


def record(options: argparse.Namespace, trials: Sequence[Trial]) -> None:
    """Write the rows as event files if requested; call this after printing, so that a StoreError hides no rows."""
    if options.tensorboard is not None:
        files = tensorboard.write_event_files(options.tensorboard, map(trial_recording, trials))
        output.print_note(
            f"{len(files)} TensorBoard run{'' if len(files) == 1 else 's'} written to {options.tensorboard}."
        )
