"""`run_sweep`: one training varied on one or several axes, and the crossover on them."""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..answer import best_variants, remedies, search, speedup, study, wording
from ..answer.export import report
from ..answer.result import Basis, Crossover
from ..answer.study import Study
from ..errors import CrossoverError, InvalidValue
from ..jobs import client
from ..jobs.queue import Queue
from ..question import policy, presets
from ..question.experiment import Contender, Point, display_name
from ..question.fields import ADAPTIVE_PAIRS, AXES, GRID_PAIRS, SIZE_AXES
from ..question.sweep import LIMITS as BOUNDS
from ..question.sweep import Axis, Sweep
from ..results.schema import Trial
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, arguments, measuring, output

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
    measuring.add_machine_options(parser)
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
    measuring.check_tensorboard_option(options)
    if options.on is not None:
        from . import machines  # imports cluster code, which a local sweep does not need

        machines.require_cluster_question(options)
    contenders = measuring.choose_contenders(options.devices, queue)
    contenders = measuring.with_lanes(contenders, options, asked.points, queue)
    asked = dataclasses.replace(asked, contenders=contenders)
    if options.on is not None:
        return machines.measure_on_cluster(asked, options, queue, store)
    stored = [] if options.fresh else _find_stored_rows(asked, store, queue)
    if stored:
        output.print_note(f"Answered from {store.name}: every point is stored. Use --fresh to measure again.")
        _print_sweep(asked, stored, options, from_store=True)
        measuring.record(options, stored)
        return OK
    quiet_s = options.wait_for_quiet
    submitted = measuring.submit_question(queue, asked, store, fresh=options.fresh, quiet_s=quiet_s)
    job = measuring.show_job_progress(queue, submitted)
    rows = client.load_job_rows(queue, job)
    notes = job.progress.sweep.notes if job.progress and job.progress.sweep else ()
    if rows:
        _print_sweep(asked, rows, options, notes=notes, state=job.state)
        measuring.record(options, rows)
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
    answers = store.answers(
        experiments.values(), measuring.find_local_machine(queue), accepted=speedup.answers_experiment
    )
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
            output.print_note(str(error))
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
        output.print_json(facts | found | ({"best_against_best": best} if best else {}))
    elif len(sweep.axes) == 1 and answers:
        output.print_result("\n".join(report.crossover_text(answer) for _, answer in answers))
    else:
        output.print_result(report.grid_text(sweep, rows))
        for entry, answer in answers:
            if entry.axis == answers[0][0].axis:  # for other axes there would be a sentence per value
                output.print_result(f"\nWith {report.other_axes_text(sweep, entry)}: {answer.sentence}")
    for picked, answer in () if options.json else best_answers:
        lanes = "; ".join(
            f"{size}: {' against '.join(map(display_name, names))}" for size, names in _lanes(picked).items()
        )
        output.print_result(f"\nBest variants: {answer.sentence} {best_variants.CHOSEN_SEPARATELY}. {lanes}.")


def _best(
    rows: Sequence[Trial], answers: Sequence[tuple[Study, Crossover]], options: argparse.Namespace
) -> list[tuple[tuple[best_variants.LanePick, ...], Crossover]]:
    """Return the crossover of the best variants for each crossover of the default loop, if a device has several."""
    found: list[tuple[tuple[best_variants.LanePick, ...], Crossover]] = []
    basis: Basis = options.basis or "steady"
    for entry, _ in answers:
        picked = best_variants.pick_lanes(entry, rows, basis) if all(map(remedies.is_plain, entry.runs[-1])) else ()
        try:
            found += [(picked, best_variants.best_lanes_crossover(entry, picked, basis)[0])] if picked else []
        except CrossoverError as error:
            output.print_note(str(error))
    return found


def _lanes(picked: Sequence[best_variants.LanePick]) -> dict[str, list[str]]:
    """Return the selected contenders of both sides by size."""
    return {
        wording.format_size(of.size): [row.contender for row in (of.challenger, of.baseline) if row] for of in picked
    }
