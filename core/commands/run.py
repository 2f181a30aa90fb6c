"""`run_training`: one training on several devices, measured or loaded from the store."""

import argparse
import functools
from collections.abc import Sequence
from typing import Any

from ..answer import expectations, speedup
from ..answer.export import report
from ..jobs import client
from ..jobs.queue import Queue
from ..question import policy
from ..question.experiment import Experiment
from ..question.presets import with_remedies
from ..results.schema import Trial
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, arguments, measuring, output


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
    measuring.check_tensorboard_option(options)
    contenders, here = measuring.choose_contenders(options.devices, queue), measuring.find_local_machine(queue)
    if options.devices is None and arguments.say_nothing(options):
        known = functools.partial(store.answers, local_machine=here, accepted=speedup.answers_experiment)
        point = expectations.first_training(contenders, known)
    contenders = measuring.with_lanes(contenders, options, [point], queue)
    if options.remedies:
        contenders = with_remedies(contenders, point, measuring.require_machine(queue).refusals)
    folder = arguments.folder(options)
    whole, budget_s = options.whole, _budget_s(options)
    asked = Experiment(point=point, contenders=contenders, budget_s=budget_s, folder=folder, whole=whole)
    policy.check_custom_allowed(asked)
    stored = [] if options.fresh else store.find(asked, here, accepted=speedup.answers_experiment)
    if stored:
        output.print_note(f"Answered from {store.name}: measured {stored[0].started_at}. Use --fresh to measure again.")
        _print_trials(stored, options, from_store=True)
        return OK
    if not options.fresh and (busy := store.find(asked, here)):
        output.print_note(f"The measurement of {busy[0].started_at} is not conclusive, so it is measured again.")
    quiet_s = options.wait_for_quiet
    submitted = measuring.submit_question(queue, asked, store, fresh=options.fresh, quiet_s=quiet_s)
    job = measuring.show_job_progress(queue, submitted)
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
        output.print_json(report.run_document(trials, from_store=from_store))
    else:
        output.print_result(report.run_text(trials))
    measuring.record(options, trials)
