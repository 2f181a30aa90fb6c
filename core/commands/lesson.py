"""`run_lesson`: show a demonstration, either measured now or loaded from the store."""

import argparse
import dataclasses
from typing import Any

from ..errors import InvalidValue
from ..jobs import client
from ..jobs.queue import Queue
from ..question.demonstrations import LESSON_KINDS, RECIPES, Demonstration
from ..question.experiment import Contender
from ..results import environment, exhibits
from ..results.exhibits import Exhibit
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, arguments, measuring, output

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
    contenders = measuring.choose_contenders(options.devices, queue, without=CPU_ONLY_CONTENDERS[options.lesson])
    asked = dataclasses.replace(asked, contenders=contenders)
    stored = None if options.fresh else _find_exhibit(asked, store)
    if stored:
        output.print_note(f"Answered from {store.name}: measured {stored.measured_at}. Use --fresh to measure again.")
        _print_exhibit(stored, options, from_store=True)
        return OK
    job = measuring.show_job_progress(queue, measuring.submit_question(queue, asked, store, fresh=options.fresh))
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
        output.print_note(f"{entry.name} was skipped: {entry.reason}")
    return exhibits.find_newest_exhibit(
        found, demonstration, machine_id=known.machine_id, torch_version=known.torch_version
    )


def _print_exhibit(exhibit: Exhibit, options: argparse.Namespace, *, from_store: bool) -> None:
    if options.json:
        output.print_json({**exhibit.to_json(), "from_store": from_store})
        return
    from ..answer.export import sections  # imports chart libraries, which is slow

    output.print_result(sections.exhibit_text(exhibit))
