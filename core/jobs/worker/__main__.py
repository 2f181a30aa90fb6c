"""The measuring process: `python -m core.jobs.worker --jobs FOLDER`, as `core.jobs.client` starts it.

The one place where jobs and the measuring half meet: `load_backend` hands the functions of `core.measure` to a worker.
"""

import argparse
import contextlib
import faulthandler
import importlib.abc
import logging
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from ...answer import speedup
from ...question import policy
from ...question.demonstrations import Demonstration
from ...question.experiment import Experiment
from ...results.exhibits import Exhibit
from ...results.schema import Trial
from ...text import LogFormatter
from ..job import SILENCE_S, SILENT_BUDGETS
from ..machine import Machine
from ..queue import Queue
from .reporter import Reporter
from .sweep import Measurement
from .worker import IDLE_S, MeasurementBackend, serve

UNWANTED = frozenset({"pandas", "sklearn", "altair", "streamlit"})
"""A second OpenMP runtime, or memory and threads for nothing. pyarrow would import pandas, only to look at a list."""


def run_worker(arguments: Sequence[str] | None = None) -> None:
    """Serve the queue named on the command line with real measurements."""
    parser = argparse.ArgumentParser(prog=__package__, description="Measure the jobs of one queue.")
    parser.add_argument("--jobs", type=Path, required=True, help="folder of jobs; it tells the worker from others")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds without work after which to leave")
    asked = parser.parse_args(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    _offer_to_be_killed_first()
    sys.meta_path.insert(0, _ImportBlocker())
    serve(Queue(asked.jobs), load_backend, idle_s=asked.idle)
    if not any(
        isinstance(finder, _ImportBlocker) for finder in sys.meta_path
    ):  # threads of one's own training may go on
        logging.shutdown()
        os._exit(0)


def load_backend() -> MeasurementBackend:
    """The measuring half of this project; imports torch."""
    from ...measure import devices, missing_gpu, preflight, trial
    from ...measure.demonstrations import run_demonstration
    from ...results import environment

    def measure(experiment: Experiment, reporter: Reporter) -> list[Trial]:
        _allow_imports(experiment)
        hooks = trial.Hooks(
            progress=reporter.progress,
            should_stop=reporter.should_stop,
            keep=reporter.keep,
            enough=speedup.is_certain,
        )
        return trial.measure(experiment, hooks=hooks, run_id=reporter.job.derive_run_id(experiment))

    def begin(experiment: Experiment, reporter: Reporter) -> Measurement:
        _allow_imports(experiment)
        hooks = trial.Hooks(progress=reporter.progress, should_stop=reporter.should_stop)
        return trial.Measurement(experiment, hooks, reporter.job.derive_run_id(experiment))

    def demonstrate(demonstration: Demonstration, reporter: Reporter) -> Exhibit | None:
        hooks = trial.Hooks(progress=reporter.progress, should_stop=reporter.should_stop)
        return run_demonstration(demonstration, hooks=hooks)

    def survey() -> Machine:
        return Machine(environment=environment.read_environment(), devices=devices.discover(), hint=missing_gpu.hint())

    return MeasurementBackend(
        measure=measure,
        begin=begin,
        fit=preflight.can_fit_in_memory,
        demonstrate=demonstrate,
        survey=survey,
        initialise=devices.initialise,
    )


class _ImportBlocker(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Lets none of `UNWANTED` into the process; who would have liked to import one does without, as if uninstalled."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Take charge of the unwanted, which may be looked for; for all others, let Python look elsewhere."""
        return ModuleSpec(fullname, self) if fullname in UNWANTED else None

    def exec_module(self, module: ModuleType) -> None:
        """Refuse to load the module."""
        message = f"{module.__name__} has no place in the measuring process"
        raise ModuleNotFoundError(message, name=module.__name__)


def _allow_imports(experiment: Experiment) -> None:
    """Let code that is not ours import what it likes, and end a step that never does: this process is its last.

    Raises:
        NotAllowed: a file here makes this machine a host.
    """
    if experiment.point.training or experiment.point.is_fit:
        policy.check_custom_allowed(experiment)
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _ImportBlocker)]
        faulthandler.dump_traceback_later(SILENT_BUDGETS * experiment.budget_s + SILENCE_S, exit=True)


def _offer_to_be_killed_first() -> None:
    """Where memory runs out, Linux shall end the measurement and not the page's server."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    run_worker()
