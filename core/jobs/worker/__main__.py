"""The measuring process: `python -P core/jobs/worker/__main__.py --jobs FOLDER`, as `core.jobs.client` starts it.

Only this module connects jobs and the measuring half: `load_backend` passes the functions of `core.measure` to a
worker. It is started by its path and loads this package under a private name. Custom scripts can thus have packages
named `core`, `pages` and `tests`.
"""

# ruff: noqa: E402

import argparse
import contextlib
import faulthandler
import importlib.abc
import importlib.util
import logging
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

PRIVATE_NAME = "_crossover"
"""Name of this package in the measuring process, which no script's own package has."""

PUBLIC_NAMES = frozenset({"core", "crossover"})
"""Names under which a script may import this package; the script's packages of these names come first."""


def locate_package(name: str) -> ModuleSpec:
    """Return the import spec of this package under a name."""
    folder = Path(__file__).parents[2]
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None:
        raise ModuleNotFoundError(f"There is no package in {folder}", name=name)
    return spec


class PublicNames(importlib.abc.MetaPathFinder):
    """Finds this package under its public names, unless another package has them."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return the spec of a public name; None for all others."""
        return locate_package(fullname) if fullname in PUBLIC_NAMES else None


if not __package__:  # run by its path
    spec = locate_package(PRIVATE_NAME)
    sys.modules[PRIVATE_NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[PRIVATE_NAME])  # type: ignore[union-attr]
    sys.meta_path.append(PublicNames())
    __package__ = f"{PRIVATE_NAME}.jobs.worker"

from ...answer import speedup
from ...answer.statistics import UNKNOWN_REPEATABILITY, Repeatability
from ...errors import StoreError
from ...question import policy
from ...question.demonstrations import Demonstration
from ...question.experiment import Experiment
from ...results.exhibits import Exhibit
from ...results.schema import Trial
from ...results.store import Store
from ...text import LogFormatter
from ..job import SILENCE_S, SILENT_BUDGETS
from ..machine import Machine
from ..queue import Queue
from .reporter import Reporter
from .sweep import Measurement
from .worker import IDLE_S, MeasurementBackend, serve

UNWANTED = frozenset({"pandas", "sklearn", "altair", "streamlit"})
"""Modules that the process must not import: they load a second OpenMP runtime, or need memory and threads. pyarrow
would import pandas only to check a list.
"""


def run_worker(arguments: Sequence[str] | None = None) -> None:
    """Serve the queue named on the command line with real measurements."""
    parser = argparse.ArgumentParser(prog="worker", description="Measure the jobs of one queue.")
    parser.add_argument("--jobs", type=Path, required=True, help="folder of jobs; it tells the worker from others")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="exit after this many seconds without work")
    asked = parser.parse_args(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    _offer_to_be_killed_first()
    sys.meta_path.insert(0, _ImportBlocker())
    serve(Queue(asked.jobs), load_backend, idle_s=asked.idle)
    if not any(
        isinstance(finder, _ImportBlocker) for finder in sys.meta_path
    ):  # threads of a custom script may continue
        logging.shutdown()
        os._exit(0)


def load_backend() -> MeasurementBackend:
    """Return the measuring half of this project; imports torch."""
    from ...measure import devices, gpu, preflight, trial
    from ...measure.demonstrations import run_demonstration
    from ...results import environment

    def measure(experiment: Experiment, reporter: Reporter) -> list[Trial]:
        _allow_imports(experiment, trial.limit_script(experiment) + MARGIN_S)
        known = _read_repeatability(reporter.job.store, environment.read_environment().machine_id)
        hooks = trial.Hooks(
            progress=reporter.progress,
            should_stop=reporter.should_stop,
            keep=reporter.keep,
            enough=speedup.is_certain,
            folder=reporter.job.working_folder,
            repeatability=known.columns,
            give_up=reporter.abandon,
        )
        return trial.measure(experiment, hooks=hooks, run_id=reporter.job.derive_run_id(experiment))

    def begin(experiment: Experiment, reporter: Reporter) -> Measurement:
        _allow_imports(experiment, SILENT_BUDGETS * experiment.budget_s + SILENCE_S)
        hooks = trial.Hooks(
            progress=reporter.progress,
            should_stop=reporter.should_stop,
            folder=reporter.job.working_folder,
            give_up=reporter.abandon,
        )
        return trial.Measurement(experiment, hooks, reporter.job.derive_run_id(experiment))

    def demonstrate(demonstration: Demonstration, reporter: Reporter) -> Exhibit | None:
        hooks = trial.Hooks(progress=reporter.progress, should_stop=reporter.should_stop)
        return run_demonstration(demonstration, hooks=hooks)

    def survey() -> Machine:
        return Machine(
            environment=environment.read_environment(), devices=devices.discover(), hint=gpu.missing_gpu_hint()
        )

    return MeasurementBackend(
        measure=measure,
        begin=begin,
        fit=preflight.can_fit_in_memory,
        demonstrate=demonstrate,
        survey=survey,
        initialise=devices.initialise,
    )


MOST_REPEATS_BYTES = 64 * 2**20
"""Maximum size of the rows of this machine that are read for its repeatability; a larger store is not read."""


def _read_repeatability(store: Path, machine_id: str) -> Repeatability:
    """Return how well results on this machine repeat, from a store; unknown if it cannot be read."""
    try:
        rows = Store(store).trials(machine_id=machine_id, most_bytes=MOST_REPEATS_BYTES)
    except StoreError:
        return UNKNOWN_REPEATABILITY
    return speedup.measure_repeatability(rows, machine_id)


class _ImportBlocker(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Blocks the import of `UNWANTED`; code that tries to import one sees it as not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return a spec for an unwanted module, which may be looked for but not loaded; None for all others."""
        return ModuleSpec(fullname, self) if fullname in UNWANTED else None

    def exec_module(self, module: ModuleType) -> None:
        """Refuse to load the module."""
        message = f"{module.__name__} has no place in the measuring process"
        raise ModuleNotFoundError(message, name=module.__name__)


MARGIN_S = 30.0
"""Seconds after the limit of a script at which its process ends, even if the script lets no other thread run."""


def _allow_imports(experiment: Experiment, limit_s: float) -> None:
    """Let a custom script import any library, and end a step that never ends; this process serves no other job.

    The measurement ends a script whose time is over; this function ends one that lets no other thread run.

    Raises:
        NotAllowed: a settings file makes this machine a host.
    """
    if experiment.point.training or experiment.point.is_fit:
        policy.check_custom_allowed(experiment)
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _ImportBlocker)]
        faulthandler.dump_traceback_later(limit_s, exit=True)


def _offer_to_be_killed_first() -> None:
    """Let Linux end the measurement, and not the server of the page, if memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    run_worker()
