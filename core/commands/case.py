"""`run_case`: a public thread about a GPU that was not faster, and the results of its training on this machine."""

import argparse
from typing import Any

from ..answer.lessons import cases
from ..errors import InvalidValue
from ..jobs import client
from ..jobs.queue import Queue
from ..question import policy, published
from ..question.experiment import Contender, Experiment
from ..results import environment
from ..results.schema import Trial
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, arguments, measuring, output


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
        output.print_answer(options, {"cases": list(known)}, cases.case_list_text(list(known.values())))
        return OK
    shown = published.find_case(options.name)
    runs, complete = _find_or_measure_rows(shown, options) if shown.runnable else ([], not options.run)
    before, after = (*runs, [], [])[:2]
    output.print_answer(options, cases.case_document(shown, before, after), cases.case_text(shown, before, after))
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
        return measuring.choose_contenders(options.devices, queue)
    known = measuring.require_machine(queue) if options.run else client.load_machine(queue)
    return case.contenders(known.device_names if known else (), environment.read_environment().cores_usable)


def _find_or_measure_run(
    experiment: Experiment, store: Store, queue: Queue, options: argparse.Namespace
) -> list[Trial]:
    stored = [] if options.fresh else store.find(experiment, measuring.find_local_machine(queue))
    if stored or not options.run:
        return stored
    return client.load_job_rows(
        queue,
        measuring.show_job_progress(queue, measuring.submit_question(queue, experiment, store, fresh=options.fresh)),
    )
