"""`run`: one training on several devices, measured or answered from the store."""

import argparse
import functools
from collections.abc import Sequence
from typing import Any

from core.answer.export import run_report
from core.answer.run import certainty, first_question
from core.commands import FAILED, HELP, OK, arguments, measuring, output, recorder
from core.jobs import client
from core.jobs.queue import Queue
from core.question import policy
from core.question.experiment import Experiment
from core.question.usual import with_remedies
from core.results.schema import Trial
from core.results.store import Store


def add(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("run", help=HELP["run"])
    arguments.add_point(parser)
    arguments.add(parser, "training", "size", "devices", "fair")
    text = "measure what would help: the lanes of each device that may take turns with its plain steps, as on the pages"
    parser.add_argument("--remedies", action="store_true", help=text)
    budget = f"seconds of training (default {Experiment.budget_s:g}, of a preset as its scale needs)"
    parser.add_argument("--budget", dest="budget_s", type=arguments.number, metavar="SECONDS", help=budget)
    arguments.add(parser, "store")
    whole = "train every epoch and test what was learned; else a run ends once it is certain which device is faster"
    parser.add_argument("--whole", action="store_true", help=whole)
    arguments.add(parser, "fresh", "tensorboard", "json")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Print what the devices took and learned; measure it first unless the store knows it."""
    point, queue, store = arguments.point(options), Queue(), Store(options.store)
    recorder.require(options)
    contenders, here = measuring.contenders(options.devices, queue), measuring.here(queue)
    if options.devices is None and arguments.say_nothing(options):
        known = functools.partial(store.answers, here=here, accepted=certainty.answers)
        point = first_question.training(contenders, known)
    contenders = measuring.with_lanes(contenders, options, [point], queue)
    if options.remedies:
        contenders = with_remedies(contenders, point, measuring.machine(queue).refusals)
    folder = arguments.folder(options)
    whole, budget_s = options.whole, _budget_s(options)
    asked = Experiment(point=point, contenders=contenders, budget_s=budget_s, folder=folder, whole=whole)
    policy.check_own(asked)
    stored = [] if options.fresh else store.find(asked, here, accepted=certainty.answers)
    if stored:
        output.say(f"Answered from {options.store}: measured {stored[0].started_at}. Use --fresh to measure again.")
        _show(stored, options, from_store=True)
        return OK
    if not options.fresh and (busy := store.find(asked, here)):
        output.say(f"What was measured {busy[0].started_at} does not settle it, so it is measured again.")
    job = measuring.follow(queue, queue.submit(asked, store, fresh=options.fresh))
    trials = client.rows(queue, job)
    if trials:
        _show(trials, options, from_store=False)
    return OK if job.complete else FAILED


def _budget_s(options: argparse.Namespace) -> float:
    """As asked for; otherwise the preset's at its scale, or the usual one."""
    if options.budget_s is not None:
        budget_s: float = options.budget_s
        return budget_s
    limits = arguments.limits(options)
    return limits.budget_s if limits else Experiment.budget_s


def _show(trials: Sequence[Trial], options: argparse.Namespace, *, from_store: bool) -> None:
    if options.json:
        output.show_json(run_report.document(trials, from_store=from_store))
    else:
        output.show(run_report.text(trials))
    recorder.record(options, trials)
