"""`sweep`: one training varied along one or several axes, and the crossover along it."""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from core.answer.export import sweep_report
from core.answer.run import certainty, remedies
from core.answer.study import best_lanes, search, study, wording
from core.answer.study.result import Basis, Crossover
from core.answer.study.study import Study
from core.commands import FAILED, HELP, OK, arguments, measuring, output, recorder
from core.errors import CrossoverError, InvalidValue
from core.jobs import client
from core.jobs.queue import Queue
from core.question import policy, presets
from core.question.experiment import Contender, Point, titled
from core.question.fields import ADAPTIVE_PAIRS, AXES, GRID_PAIRS, SIZE_AXES
from core.question.sweep import LIMITS as BOUNDS
from core.question.sweep import Axis, Sweep
from core.results.schema import Trial
from core.results.store import Store

LIMITS = ("budget_s", "point_budget_s", "pairs")
"""Fields of a sweep that are options; left out, its defaults hold."""


def add(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("sweep", help=HELP["sweep"])
    arguments.add_point(parser)
    arguments.add(parser, "training", "size")
    add_axes(parser)
    parser.add_argument("--adaptive", action="store_true", help="measure only the sizes that narrow the interval")
    arguments.add(parser, "devices", "fair")
    add_limits(parser)
    arguments.add(parser, "basis", "store", "fresh")
    measuring.add_on(parser)
    arguments.add(parser, "tensorboard", "json")
    parser.set_defaults(command=sweep)


def add_axes(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is varied."""
    parser.add_argument(
        "--axis",
        action="append",
        metavar="NAME[=VALUES]",
        help=f"what is varied: {', '.join(AXES)}; several with values each (batch_size=8,16 or hidden_size=8:4096) "
        "make a grid; left out, what the preset's tutorial varies",
    )
    values = parser.add_mutually_exclusive_group()
    values.add_argument("--values", help="values of the axis: 8,16,32")
    values.add_argument("--range", help="lowest and highest value of the axis: 8:8192")


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how long a sweep and its points may take."""
    of_preset = "of a preset as its scale needs"
    budget = f"seconds after which no further point is begun (default {Sweep.budget_s:g}, {of_preset})"
    parser.add_argument("--budget", dest="budget_s", type=arguments.number, metavar="SECONDS", help=budget)
    point = f"seconds that one point may take (default {Sweep.point_budget_s:g}, {of_preset}); longer ones are skipped"
    parser.add_argument("--point-budget", dest="point_budget_s", type=arguments.number, metavar="SECONDS", help=point)
    pairs = f"pairs of blocks timed at each point (default {GRID_PAIRS}, adaptive {ADAPTIVE_PAIRS})"
    parser.add_argument("--pairs", type=arguments.whole, help=pairs)


def sweep(options: argparse.Namespace) -> int:
    """Print the points and the crossover; measure those first that the store does not know."""
    queue, store = Queue(), Store(options.store)
    asked = asked_for(options)
    recorder.require(options)
    if options.on is not None:
        from core.commands import machines  # with what asking others takes, which a sweep here need not load

        machines.require(options)
    contenders = measuring.contenders(options.devices, queue)
    contenders = measuring.with_lanes(contenders, options, asked.points, queue)
    asked = dataclasses.replace(asked, contenders=contenders)
    if options.on is not None:
        return machines.measure(asked, options, queue, store)
    stored = [] if options.fresh else _stored(asked, store, queue)
    if stored:
        output.say(f"Answered from {options.store}: every point is stored. Use --fresh to measure again.")
        _show(asked, stored, options, from_store=True)
        recorder.record(options, stored)
        return OK
    job = measuring.follow(queue, queue.submit(asked, store, fresh=options.fresh))
    rows = client.rows(queue, job)
    notes = job.progress.sweep.notes if job.progress and job.progress.sweep else ()
    if rows:
        _show(asked, rows, options, notes=notes, state=job.state)
        recorder.record(options, rows)
    return OK if job.complete else FAILED


def asked_for(options: argparse.Namespace) -> Sweep:
    """The sweep that the options describe, on anybody's devices; raises InvalidValue where they make none."""
    usual, limits = arguments.limits(options), dict[str, Any]()
    if usual:
        limits = {"budget_s": usual.sweep_budget_s, "point_budget_s": usual.point_budget_s}
    limits |= {name: given for name in LIMITS if (given := getattr(options, name)) is not None}
    if options.pairs == Sweep.pairs:  # which stands for the usual number, and is no number to ask for
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
    policy.check_own(asked)
    return asked


def _axes(options: argparse.Namespace) -> tuple[Axis, ...]:
    given, values = options.axis or [], options.values or options.range
    training = getattr(options, "training", None)  # a class has none
    if training is not None and not given:
        raise InvalidValue("axis", "", "size, with its values: --axis size --values 64,128 or --range 64:4096")
    if training is not None and options.size is not None:
        raise InvalidValue("size", options.size, "left out where --axis size varies it")
    if not given and values is not None:
        raise InvalidValue("axis", "", "one of {}, of which --values or --range give the values", AXES)
    if not given:
        return _axes_of_preset(options)
    if len(given) == 1 and "=" not in given[0]:
        if values is None:
            raise InvalidValue("axis", given[0], "given with its values, in --values 8,16,32 or --range 8:8192")
        if (":" in values) != (options.range is not None):
            name, right = ("range", "8:8192") if options.range is not None else ("values", "8,16,32")
            raise InvalidValue(name, values, f"written like {right}")
        return (Axis.parse(_name(given[0]), values, adaptive=options.adaptive),)
    if values is not None or not all("=" in text for text in given):
        raise InvalidValue("axis", " ".join(given), "given with the values of each: --axis NAME=8,16 --axis NAME=1:64")
    parts = [text.partition("=") for text in given]
    return tuple(Axis.parse(_name(name), text, adaptive=options.adaptive) for name, _, text in parts)


def _name(text: str) -> str:
    """An axis may be written like the option of the same name."""
    return text.strip().replace("-", "_")


def _axes_of_preset(options: argparse.Namespace) -> tuple[Axis, ...]:
    """What the tutorial varies; an adaptive sweep may choose any size between its ends."""
    if options.preset is None:
        raise InvalidValue("axis", "", "one of {}, unless a preset is given that varies one", AXES)
    axes = presets.preset(options.preset).axes_at(arguments.scale(options))
    if not axes:
        raise InvalidValue("preset", options.preset, "given with an --axis, because its tutorial varies nothing")
    if options.adaptive and len(axes) == 1:
        values = axes[0].values
        return (Axis.between(axes[0].name, values[0], values[-1], adaptive=True),)
    return axes


def _stored(asked: Sweep, store: Store, queue: Queue) -> list[Trial]:
    """Rows of every point that is needed, in the order of points; none if one must be measured."""
    experiments = {point: asked.experiment(point) for point in asked.points}
    answers = store.answers(experiments.values(), measuring.here(queue), accepted=certainty.answers)
    found = {point: answers[experiment.id] for point, experiment in experiments.items() if experiment.id in answers}
    complete = _search_is_over(asked, found) if asked.adaptive else len(found) == len(experiments)
    return [row for rows in found.values() for row in rows] if complete else []


def _search_is_over(asked: Sweep, found: Mapping[Point, Sequence[Trial]]) -> bool:
    """Whether an adaptive sweep that knows these points would measure no other."""
    return search.next_step([asked.size(point) for point in asked.points], study.of_sweep(asked, found)).size is None


def _answers(asked: Sweep, rows: Sequence[Trial], basis: Basis) -> list[tuple[Study, Crossover]]:
    """Every contender against the first, along every size axis.

    If this cannot be had, the measured times are shown all the same.
    """
    found: list[tuple[Study, Crossover]] = []
    baseline = str(asked.contenders[0])
    for axis in (axis.name for axis in asked.axes if axis.name in SIZE_AXES):
        try:
            entries = [
                entry for entry in study.studies(rows, axis=axis) if baseline in (entry.baseline, entry.challenger)
            ]
            entries.sort(key=lambda entry: tuple(sweep_report.held(asked, entry).values()))
            found += [(entry, study.crossover(entry, basis)) for entry in entries]
        except CrossoverError as error:
            output.say(str(error))
    return found


def _show(
    asked: Sweep,
    rows: Sequence[Trial],
    options: argparse.Namespace,
    *,
    notes: Sequence[str] = (),
    state: str = "finished",
    from_store: bool = False,
) -> None:
    answers = _answers(asked, rows, options.basis or "steady")
    best_answers = _best(rows, answers, options)
    if options.json:
        facts = {"sweep_id": asked.id, **asked.to_json(), "state": state, "from_store": from_store}
        crossovers = [
            sweep_report.document(answer) | {"study": entry.id, "held": sweep_report.held(asked, entry)}
            for entry, answer in answers
        ]
        points = sweep_report.points(asked, rows)
        found = {"points": points, "notes": list(notes), "crossovers": crossovers}
        best = [sweep_report.document(answer) | {"lanes": _lanes(picked)} for picked, answer in best_answers]
        output.show_json(facts | found | ({"best_against_best": best} if best else {}))
    elif len(asked.axes) == 1 and answers:
        output.show("\n".join(sweep_report.text(answer) for _, answer in answers))
    else:
        output.show(sweep_report.grid_text(asked, rows))
        for entry, answer in answers:
            if entry.axis == answers[0][0].axis:  # along the others too it would be a sentence for each value of each
                output.show(f"\nWith {sweep_report.held_text(asked, entry)}: {answer.sentence}")
    for picked, answer in () if options.json else best_answers:
        lanes = "; ".join(f"{size}: {' against '.join(map(titled, names))}" for size, names in _lanes(picked).items())
        output.show(f"\nBest lanes: {answer.sentence} {best_lanes.CHOSEN_APART}. {lanes}.")


def _best(
    rows: Sequence[Trial], answers: Sequence[tuple[Study, Crossover]], options: argparse.Namespace
) -> list[tuple[tuple[best_lanes.Pick, ...], Crossover]]:
    """Beside each crossover of plain steps that of the best lanes, where a device has several."""
    found: list[tuple[tuple[best_lanes.Pick, ...], Crossover]] = []
    basis: Basis = options.basis or "steady"
    for entry, _ in answers:
        picked = best_lanes.picks(entry, rows, basis) if all(map(remedies.is_plain, entry.runs[-1])) else ()
        try:
            found += [(picked, best_lanes.crossover(entry, picked, basis)[0])] if picked else []
        except CrossoverError as error:
            output.say(str(error))
    return found


def _lanes(picked: Sequence[best_lanes.Pick]) -> dict[str, list[str]]:
    """By size, who was picked on either side."""
    return {wording.size(of.size): [row.contender for row in (of.challenger, of.baseline) if row] for of in picked}
