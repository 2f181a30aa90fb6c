"""`run_training`: one training on several devices; `run_sweep`: one training varied on one or several axes.

Both are measured or loaded from the store. A sweep prints the crossover on its axes.
"""

import argparse
import dataclasses
import functools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tqdm import tqdm
from tqdm.auto import tqdm as notebook_tqdm

from ..answer import expectations, remedies, search, speedup, study, wording
from ..answer.export import report, run_files
from ..answer.export.run_files import trial_recording
from ..answer.judgement import Basis, Crossover
from ..answer.study import Study
from ..errors import CrossoverError, DeviceUnavailable, InvalidValue, LaneUnavailable
from ..jobs import client
from ..jobs.cluster_machine import SPREADS
from ..jobs.job import Job
from ..jobs.machine import Machine
from ..jobs.process import ExecutionContext
from ..jobs.queue import Queue
from ..question import lanes, policy, presets
from ..question.experiment import Contender, Experiment, Point, display_name
from ..question.fields import ADAPTIVE_PAIRS, AXES, GRID_PAIRS, SIZE_AXES
from ..question.policy import AnyQuestion
from ..question.presets import with_fair_lanes, with_remedies
from ..question.sweep import LIMITS as BOUNDS
from ..question.sweep import Axis, Sweep
from ..results import environment
from ..results.schema import Trial
from ..results.store import LocalMachine, Store
from ..text import as_line, to_terminal
from . import COMMAND_HELP, FAILED, OK, arguments, print_json, print_note, print_result

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
        print_note("The measuring process is restarted, with the environment variables of this shell.")
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
                    print_note(as_line(_phase(now)))
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
        print_note(ended.message)
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
        run_files.require_event_folder(options.tensorboard)


def record(options: argparse.Namespace, trials: Sequence[Trial]) -> None:
    """Write the rows as event files if requested; call this after printing, so that a StoreError hides no rows."""
    if options.tensorboard is not None:
        files = run_files.write_event_files(options.tensorboard, map(trial_recording, trials))
        print_note(f"{len(files)} TensorBoard run{'' if len(files) == 1 else 's'} written to {options.tensorboard}.")


def add_run_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("run", help=COMMAND_HELP["run"])
    arguments.add_point(parser)
    arguments.add_options(parser, "training", "size", "devices", "fair")
    text = "also measure the variants that may help each device, alternating with its default loop (default: off)"
    parser.add_argument("--remedies", action="store_true", help=text)
    budget = f"time limit of the training (default: {Experiment.budget_s:g}, or the preset's)"
    parser.add_argument("--budget", dest="budget_s", type=arguments.parse_number_option, metavar="SECONDS", help=budget)
    arguments.add_options(parser, "store")
    whole = "train every epoch and test the model (default: stop once one device is clearly faster)"
    parser.add_argument("--whole", action="store_true", help=whole)
    arguments.add_options(parser, "fresh", "wait-for-quiet", "tensorboard", "json")
    parser.set_defaults(command=run_training)


def run_training(options: argparse.Namespace) -> int:
    """Print the times and results of the devices; measure them first unless the store has them."""
    point, queue, store = arguments.point(options), Queue(), Store(options.store)
    check_tensorboard_option(options)
    contenders, here = choose_contenders(options.devices, queue), find_local_machine(queue)
    if options.devices is None and arguments.say_nothing(options):
        known = functools.partial(store.answers, local_machine=here, accepted=speedup.answers_experiment)
        point = expectations.first_training(contenders, known)
    contenders = with_lanes(contenders, options, [point], queue)
    if options.remedies:
        contenders = with_remedies(contenders, point, require_machine(queue).refusals)
    folder = arguments.folder(options)
    whole, budget_s = options.whole, _budget_s(options)
    asked = Experiment(point=point, contenders=contenders, budget_s=budget_s, folder=folder, whole=whole)
    policy.check_custom_allowed(asked)
    stored = [] if options.fresh else store.find(asked, here, accepted=speedup.answers_experiment)
    if stored:
        print_note(f"Answered from {store.name}: measured {stored[0].started_at}. Use --fresh to measure again.")
        _print_trials(stored, options, from_store=True)
        return OK
    if not options.fresh and (busy := store.find(asked, here)):
        print_note(f"The measurement of {busy[0].started_at} is not conclusive, so it is measured again.")
    quiet_s = options.wait_for_quiet
    submitted = submit_question(queue, asked, store, fresh=options.fresh, quiet_s=quiet_s)
    job = show_job_progress(queue, submitted)
    trials = client.load_job_rows(queue, job)
    if trials:
        _print_trials(trials, options, from_store=False)
    return OK if job.complete else FAILED


def _budget_s(options: argparse.Namespace) -> float:
    """Return the requested budget in seconds; else the preset's at its scale, or the default."""
    if options.budget_s is not None:
        budget_s: float = options.budget_s
        return budget_s
    limits = arguments.limits(options)
    return limits.budget_s if limits else Experiment.budget_s


def _print_trials(trials: Sequence[Trial], options: argparse.Namespace, *, from_store: bool) -> None:
    if options.json:
        print_json(report.run_document(trials, from_store=from_store))
    else:
        print_result(report.run_text(trials))
    record(options, trials)


LIMITS = ("budget_s", "point_budget_s", "pairs")
"""Fields of a sweep that are options; their defaults are those of the sweep."""


def add_sweep_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("sweep", help=COMMAND_HELP["sweep"])
    arguments.add_point(parser)
    arguments.add_options(parser, "training", "size")
    add_axes(parser)
    built = parser.add_mutually_exclusive_group()
    text = "with --range: only multiples of this number, as in 8 (default: all whole numbers)"
    built.add_argument("--multiples-of", type=arguments.parse_integer_option, metavar="NUMBER", help=text)
    text = "with --range: only powers of two (default: all whole numbers)"
    built.add_argument("--powers-of-two", action="store_true", help=text)
    parser.add_argument(
        "--adaptive",
        action="store_true",
        help="search for the crossover instead of measuring every size (default: off)",
    )
    arguments.add_options(parser, "devices", "fair")
    add_limits(parser)
    arguments.add_options(parser, "basis", "store", "fresh", "wait-for-quiet")
    add_machine_options(parser)
    arguments.add_options(parser, "tensorboard", "json")
    parser.set_defaults(command=run_sweep)


def add_axes(parser: argparse.ArgumentParser) -> None:
    """Add the options that define what is varied."""
    parser.add_argument(
        "--axis",
        action="append",
        metavar="NAME[=VALUES]",
        help=f"setting to vary: {', '.join(AXES)}. Repeat it with values for a grid, as in batch_size=8,16 "
        "(default: the axis of the preset)",
    )
    values = parser.add_mutually_exclusive_group()
    values.add_argument("--values", help="values of the axis, as in 8,16,32 (default: the preset's)")
    values.add_argument("--range", help="lowest and highest value of the axis, as in 8:8192 (default: the preset's)")


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options that limit the time of a sweep and its points."""
    of_preset = "or the preset's"
    budget = f"time after which no further size is started (default: {Sweep.budget_s:g}, {of_preset})"
    parser.add_argument("--budget", dest="budget_s", type=arguments.parse_number_option, metavar="SECONDS", help=budget)
    point = f"time limit of one size; longer ones are skipped (default: {Sweep.point_budget_s:g}, {of_preset})"
    parser.add_argument(
        "--point-budget", dest="point_budget_s", type=arguments.parse_number_option, metavar="SECONDS", help=point
    )
    pairs = f"pairs of blocks timed at each size (default: {GRID_PAIRS}, adaptive {ADAPTIVE_PAIRS})"
    parser.add_argument("--pairs", type=arguments.parse_integer_option, help=pairs)


def run_sweep(options: argparse.Namespace) -> int:
    """Print the points and the crossover; first measure points that the store does not have."""
    queue, store = Queue(), Store(options.store)
    asked = build_sweep(options)
    check_tensorboard_option(options)
    if options.on is not None:
        from . import machines  # imports cluster code, which a local sweep does not need

        machines.require_cluster_question(options)
    contenders = choose_contenders(options.devices, queue)
    contenders = with_lanes(contenders, options, asked.points, queue)
    asked = dataclasses.replace(asked, contenders=contenders)
    if options.on is not None:
        return machines.measure_on_cluster(asked, options, queue, store)
    stored = [] if options.fresh else _find_stored_rows(asked, store, queue)
    if stored:
        print_note(f"Answered from {store.name}: every point is stored. Use --fresh to measure again.")
        _print_sweep(asked, stored, options, from_store=True)
        record(options, stored)
        return OK
    quiet_s = options.wait_for_quiet
    submitted = submit_question(queue, asked, store, fresh=options.fresh, quiet_s=quiet_s)
    job = show_job_progress(queue, submitted)
    rows = client.load_job_rows(queue, job)
    notes = job.progress.sweep.notes if job.progress and job.progress.sweep else ()
    if rows:
        _print_sweep(asked, rows, options, notes=notes, state=job.state)
        record(options, rows)
    return OK if job.complete else FAILED


def build_sweep(options: argparse.Namespace) -> Sweep:
    """Return the sweep that the options describe, without devices; raises InvalidValue if they do not describe one."""
    usual, limits = arguments.limits(options), dict[str, Any]()
    if usual:
        limits = {"budget_s": usual.sweep_budget_s, "point_budget_s": usual.point_budget_s}
    limits |= {name: given for name in LIMITS if (given := getattr(options, name)) is not None}
    if options.pairs == Sweep.pairs:  # means the default, and is not valid as an option
        raise InvalidValue("pairs", options.pairs, "between {:,} and {:,}".format(*BOUNDS["pairs"]))
    anyone = (Contender(), Contender(threads=1))
    axes = _axes(options)
    asked = Sweep(
        point=arguments.point(options),
        axes=axes,
        contenders=anyone,
        adaptive=options.adaptive,
        folder=arguments.folder(options),
        **limits,
    )
    policy.check_custom_allowed(asked)
    return asked


def _axes(options: argparse.Namespace) -> tuple[Axis, ...]:
    given, values = options.axis or [], options.values or options.range
    training = getattr(options, "training", None)  # a class has no such option
    if training is not None and not given:
        raise InvalidValue("axis", "", "size, with its values: --axis size --values 64,128 or --range 64:4096")
    if training is not None and options.size is not None:
        raise InvalidValue("size", options.size, "omitted where --axis size varies it")
    if not given and values is not None:
        raise InvalidValue("axis", "", "one of {}, with its values in --values or --range", AXES)
    if not given:
        return _axes_of_preset(options)
    if len(given) == 1 and "=" not in given[0]:
        if values is None:
            raise InvalidValue("axis", given[0], "given with its values, in --values 8,16,32 or --range 8:8192")
        if (":" in values) != (options.range is not None):
            name, right = ("range", "8:8192") if options.range is not None else ("values", "8,16,32")
            raise InvalidValue(name, values, f"written like {right}")
        return (_restrict(Axis.parse(_axis_name(given[0]), values, adaptive=options.adaptive), options),)
    if values is not None or not all("=" in text for text in given):
        raise InvalidValue("axis", " ".join(given), "given with the values of each: --axis NAME=8,16 --axis NAME=1:64")
    parts = [text.partition("=") for text in given]
    return tuple(Axis.parse(_axis_name(name), text, adaptive=options.adaptive) for name, _, text in parts)


def _restrict(axis: Axis, options: argparse.Namespace) -> Axis:
    """Return the axis with the values that the options allow; raises InvalidValue if there are none."""
    number, powers = getattr(options, "multiples_of", None), getattr(options, "powers_of_two", False)  # not of a class
    if number is None and not powers:
        return axis
    if options.range is None:
        raise InvalidValue("values", options.values, "omitted; give --range with --multiples-of or --powers-of-two")
    if number is not None and number < 1:
        raise InvalidValue("multiples-of", number, "at least 1")
    return axis.restrict(multiples_of=number or 1, powers_of_two=powers)


def _axis_name(text: str) -> str:
    """Return the name of the axis, which may be written like the option of the same name."""
    return text.strip().replace("-", "_")


def _axes_of_preset(options: argparse.Namespace) -> tuple[Axis, ...]:
    """Return the axes of the preset; an adaptive sweep may choose any size between their ends."""
    if options.preset is None:
        raise InvalidValue("axis", "", "one of {}, unless a preset is given that varies one", AXES)
    axes = presets.preset(options.preset).axes_at_scale(arguments.scale(options))
    if not axes:
        raise InvalidValue("preset", options.preset, "given with an --axis, because its tutorial varies nothing")
    if options.adaptive and len(axes) == 1:
        values = axes[0].values
        return (Axis.from_range(axes[0].name, values[0], values[-1], adaptive=True),)
    return axes


def _find_stored_rows(sweep: Sweep, store: Store, queue: Queue) -> list[Trial]:
    """Return rows of every required point, in the order of points; empty if a point must be measured."""
    experiments = {point: sweep.experiment(point) for point in sweep.points}
    answers = store.answers(experiments.values(), find_local_machine(queue), accepted=speedup.answers_experiment)
    found = {point: answers[experiment.id] for point, experiment in experiments.items() if experiment.id in answers}
    complete = _is_search_finished(sweep, found) if sweep.adaptive else len(found) == len(experiments)
    return [row for rows in found.values() for row in rows] if complete else []


def _is_search_finished(sweep: Sweep, stored: Mapping[Point, Sequence[Trial]]) -> bool:
    """Return whether an adaptive sweep with these points would measure no further point."""
    return (
        search.next_step([sweep.size(point) for point in sweep.points], study.sweep_evidence(sweep, stored)).size
        is None
    )


def _answer_axes(sweep: Sweep, rows: Sequence[Trial], basis: Basis) -> list[tuple[Study, Crossover]]:
    """Compare every contender with the first, on every size axis.

    A failure is printed as a note, so that the measured times are still shown.
    """
    found: list[tuple[Study, Crossover]] = []
    baseline = str(sweep.contenders[0])
    for axis in (axis.name for axis in sweep.axes if axis.name in SIZE_AXES):
        try:
            entries = [
                entry for entry in study.studies(rows, axis=axis) if baseline in (entry.baseline, entry.challenger)
            ]
            entries.sort(key=lambda entry: tuple(report.other_axis_values(sweep, entry).values()))
            found += [(entry, entry.crossover(basis)) for entry in entries]
        except CrossoverError as error:
            print_note(str(error))
    return found


def _print_sweep(
    sweep: Sweep,
    rows: Sequence[Trial],
    options: argparse.Namespace,
    *,
    notes: Sequence[str] = (),
    state: str = "finished",
    from_store: bool = False,
) -> None:
    answers = _answer_axes(sweep, rows, options.basis or "steady")
    best_answers = _best(rows, answers, options)
    if options.json:
        facts = {"sweep_id": sweep.id, **sweep.to_json(), "state": state, "from_store": from_store}
        crossovers = [
            report.crossover_document(answer) | {"study": entry.id, "held": report.other_axis_values(sweep, entry)}
            for entry, answer in answers
        ]
        points = report.sweep_documents(sweep, rows)
        found = {"points": points, "notes": list(notes), "crossovers": crossovers}
        best = [report.crossover_document(answer) | {"lanes": _lanes(picked)} for picked, answer in best_answers]
        print_json(facts | found | ({"best_against_best": best} if best else {}))
    elif len(sweep.axes) == 1 and answers:
        print_result("\n".join(report.crossover_text(answer) for _, answer in answers))
    else:
        print_result(report.grid_text(sweep, rows))
        for entry, answer in answers:
            if entry.axis == answers[0][0].axis:  # for other axes there would be a sentence per value
                print_result(f"\nWith {report.other_axes_text(sweep, entry)}: {answer.sentence}")
    for picked, answer in () if options.json else best_answers:
        lanes = "; ".join(
            f"{size}: {' against '.join(map(display_name, names))}" for size, names in _lanes(picked).items()
        )
        print_result(f"\nBest variants: {answer.sentence} {remedies.CHOSEN_SEPARATELY}. {lanes}.")


def _best(
    rows: Sequence[Trial], answers: Sequence[tuple[Study, Crossover]], options: argparse.Namespace
) -> list[tuple[tuple[remedies.LanePick, ...], Crossover]]:
    """Return the crossover of the best variants for each crossover of the default loop, if a device has several."""
    found: list[tuple[tuple[remedies.LanePick, ...], Crossover]] = []
    basis: Basis = options.basis or "steady"
    for entry, _ in answers:
        picked = remedies.pick_lanes(entry, rows, basis) if all(map(remedies.is_plain, entry.runs[-1])) else ()
        try:
            found += [(picked, remedies.best_lanes_crossover(entry, picked, basis)[0])] if picked else []
        except CrossoverError as error:
            print_note(str(error))
    return found


def _lanes(picked: Sequence[remedies.LanePick]) -> dict[str, list[str]]:
    """Return the selected contenders of both sides by size."""
    return {
        wording.format_size(of.size): [row.contender for row in (of.challenger, of.baseline) if row] for of in picked
    }
