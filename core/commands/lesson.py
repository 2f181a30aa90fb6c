"""`run_lesson`: show a demonstration, either measured now or loaded from the store.

`run_case`: a public thread about a GPU that was not faster, and the results of its training on this machine.
"""

import argparse
import dataclasses
from typing import Any

from ..answer.lessons import cases
from ..errors import InvalidValue
from ..jobs import client
from ..jobs.queue import Queue
from ..question import policy, published
from ..question.demonstrations import LESSON_KINDS, RECIPES, Demonstration
from ..question.experiment import Contender, Experiment
from ..results import environment, exhibits
from ..results.exhibits import Exhibit
from ..results.schema import Trial
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, arguments, print_answer, print_json, print_note, print_result, run

CPU_ONLY_CONTENDERS = {"clock": ("cpu",), "moving": ("cpu",), "first_step": ("cpu@1", "cpu")}
"""Contenders on a machine without an accelerator."""


def add_lesson_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("lesson", help=COMMAND_HELP["lesson"])
    parser.add_argument(
        "lesson", choices=tuple(LESSON_KINDS), help="; ".join(f"{kind}: {LESSON_KINDS[kind]}" for kind in LESSON_KINDS)
    )
    arguments.add_point(parser)
    arguments.add_options(parser, "devices")
    budget = f"time limit of the lesson (default: {Demonstration.budget_s:g})"
    parser.add_argument(
        "--budget",
        dest="budget_s",
        type=arguments.parse_number_option,
        metavar="SECONDS",
        default=Demonstration.budget_s,
        help=budget,
    )
    clocks = f"clocks of the lesson clock, comma-separated: {', '.join(RECIPES)} (default: all)"
    parser.add_argument("--clocks", help=clocks)
    arguments.add_options(parser, "store", "fresh", "json")
    parser.set_defaults(command=run_lesson)


def run_lesson(options: argparse.Namespace) -> int:
    """Print the results of the lesson; measure them first unless the store has them."""
    asked, queue, store = build_demonstration(options), Queue(), Store(options.store)
    contenders = run.choose_contenders(options.devices, queue, without=CPU_ONLY_CONTENDERS[options.lesson])
    asked = dataclasses.replace(asked, contenders=contenders)
    stored = None if options.fresh else _find_exhibit(asked, store)
    if stored:
        print_note(f"Answered from {store.name}: measured {stored.measured_at}. Use --fresh to measure again.")
        _print_exhibit(stored, options, from_store=True)
        return OK
    job = run.show_job_progress(queue, run.submit_question(queue, asked, store, fresh=options.fresh))
    shown = client.exhibit(queue, job)
    if shown:
        _print_exhibit(shown, options, from_store=False)
    return OK if shown and job.state == "finished" else FAILED


def build_demonstration(options: argparse.Namespace) -> Demonstration:
    """Return the demonstration that the options describe, without contenders.

    Raises InvalidValue if an option is out of range.
    """
    if options.clocks and options.lesson != "clock":
        raise InvalidValue("clocks", options.clocks, f"omitted, as the lesson {options.lesson} has none")
    return Demonstration(
        kind=options.lesson,
        point=arguments.point(options),
        contenders=(Contender(), Contender(threads=1)),
        budget_s=options.budget_s,
        recipes=tuple(name.strip() for name in options.clocks.split(",")) if options.clocks else (),
    )


def _find_exhibit(demonstration: Demonstration, store: Store) -> Exhibit | None:
    known = environment.read_environment()
    found, skipped = exhibits.read_exhibits(store.folder)
    for entry in skipped:
        print_note(f"{entry.name} was skipped: {entry.reason}")
    return exhibits.find_newest_exhibit(
        found, demonstration, machine_id=known.machine_id, torch_version=known.torch_version
    )


def _print_exhibit(exhibit: Exhibit, options: argparse.Namespace, *, from_store: bool) -> None:
    if options.json:
        print_json({**exhibit.to_json(), "from_store": from_store})
        return
    from ..answer.export import sections  # imports chart libraries, which is slow

    print_result(sections.exhibit_text(exhibit))


def add_case_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("case", help=COMMAND_HELP["case"])
    parser.add_argument(
        "name", nargs="?", choices=tuple(published.load_cases()), help="case to show (default: list all)"
    )
    parser.add_argument(
        "--run", action="store_true", help="measure this case and its fix on this machine (default: off)"
    )
    arguments.add_options(parser, "devices", "store", "fresh", "json")
    parser.set_defaults(command=run_case)


def run_case(options: argparse.Namespace) -> int:
    """Print the cases, or one of them with its results here; with `--run`, measure it first."""
    if options.name is None and options.run:
        raise InvalidValue("case", "", "one of {}, of which --run measures one", published.load_cases())
    if options.name is None:
        known = published.load_cases()
        print_answer(options, {"cases": list(known)}, cases.case_list_text(list(known.values())))
        return OK
    shown = published.find_case(options.name)
    runs, complete = _find_or_measure_rows(shown, options) if shown.runnable else ([], not options.run)
    before, after = (*runs, [], [])[:2]
    print_answer(options, cases.case_document(shown, before, after), cases.case_text(shown, before, after))
    return OK if complete else FAILED


def _find_or_measure_rows(case: published.Case, options: argparse.Namespace) -> tuple[list[list[Trial]], bool]:
    """Return rows of the training and of its fix, measured now or from the store.

    The second value is whether all wanted rows were found.
    """
    queue, store = Queue(), Store(options.store)
    asked = case.build_experiments(_contenders(case, options, queue))
    if options.run:
        for experiment in asked:
            policy.check_custom_allowed(experiment)
    runs = [_find_or_measure_run(experiment, store, queue, options) for experiment in asked]
    return runs, all(runs) or not options.run


def _contenders(case: published.Case, options: argparse.Namespace, queue: Queue) -> tuple[Contender, ...]:
    """Return the contenders; without a run, no process is started to find the devices."""
    if options.devices:
        return run.choose_contenders(options.devices, queue)
    known = run.require_machine(queue) if options.run else client.load_machine(queue)
    return case.contenders(known.device_names if known else (), environment.read_environment().cores_usable)


def _find_or_measure_run(
    experiment: Experiment, store: Store, queue: Queue, options: argparse.Namespace
) -> list[Trial]:
    stored = [] if options.fresh else store.find(experiment, run.find_local_machine(queue))
    if stored or not options.run:
        return stored
    return client.load_job_rows(
        queue,
        run.show_job_progress(queue, run.submit_question(queue, experiment, store, fresh=options.fresh)),
    )
