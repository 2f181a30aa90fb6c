"""`case`: a public thread of somebody whose GPU was not faster, and what the same comes to on this machine."""

import argparse
from typing import Any

from core.answer.export import case_report
from core.commands import FAILED, HELP, OK, arguments, measuring, output
from core.errors import InvalidValue
from core.jobs import client
from core.jobs.queue import Queue
from core.question import policy
from core.question.experiment import Contender, Experiment
from core.question.published import cases
from core.results import environment
from core.results.schema import Trial
from core.results.store import Store


def add(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("case", help=HELP["case"])
    parser.add_argument("name", nargs="?", choices=tuple(cases.cases()), help="of a case; without one, all")
    parser.add_argument("--run", action="store_true", help="measure what stands for it here, and its remedy")
    arguments.add(parser, "devices", "store", "fresh", "json")
    parser.set_defaults(command=case)


def case(options: argparse.Namespace) -> int:
    """Print the cases, or one of them with what is known of it here; measure that first if asked to."""
    if options.name is None and options.run:
        raise InvalidValue("case", "", "one of {}, of which --run measures one", cases.cases())
    if options.name is None:
        known = cases.cases()
        output.answer(options, {"cases": list(known)}, case_report.listed(list(known.values())))
        return OK
    shown = cases.case(options.name)
    runs, complete = _measured(shown, options) if shown.runnable else ([], not options.run)
    before, after = (*runs, [], [])[:2]
    output.answer(options, case_report.document(shown, before, after), case_report.text(shown, before, after))
    return OK if complete else FAILED


def _measured(shown: cases.Case, options: argparse.Namespace) -> tuple[list[list[Trial]], bool]:
    """Rows of the training and of its remedy, measured now or of the store; whether all are there that were wanted."""
    queue, store = Queue(), Store(options.store)
    asked = shown.asked(_contenders(shown, options, queue))
    if options.run:
        for experiment in asked:
            policy.check_own(experiment)
    runs = [_rows(experiment, store, queue, options) for experiment in asked]
    return runs, all(runs) or not options.run


def _contenders(shown: cases.Case, options: argparse.Namespace, queue: Queue) -> tuple[Contender, ...]:
    """Who contends; without a run, nothing is started to find out which devices there are."""
    if options.devices:
        return measuring.contenders(options.devices, queue)
    known = measuring.machine(queue) if options.run else client.machine(queue)
    return shown.contenders(known.device_names if known else (), environment.read().cores_usable)


def _rows(experiment: Experiment, store: Store, queue: Queue, options: argparse.Namespace) -> list[Trial]:
    stored = [] if options.fresh else store.find(experiment, measuring.here(queue))
    if stored or not options.run:
        return stored
    return client.rows(queue, measuring.follow(queue, queue.submit(experiment, store, fresh=options.fresh)))
