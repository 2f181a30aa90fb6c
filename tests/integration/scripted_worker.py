"""A worker whose measurements follow a script, so that tests decide when each ends and how.

The seed of an experiment says what its measurement does. A round takes a few milliseconds; nothing is trained.
Started as `python -m tests.integration.scripted_worker --jobs FOLDER`.
"""

import argparse
import dataclasses
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.errors import DeviceUnavailable
from core.jobs import client
from core.jobs.machine import LOCK_VARIABLE, Machine
from core.jobs.queue import Queue
from core.jobs.worker.reporter import Reporter
from core.jobs.worker.worker import MeasurementBackend, serve
from core.progress import ContenderProgress, Progress
from core.question.demonstrations import Demonstration
from core.question.experiment import Contender, Experiment, Point
from core.question.sweep import Axis, Sweep
from core.results import environment
from core.results.environment import DeviceInfo
from core.results.exhibits import Exhibit
from core.results.quarantine import WithoutPandas
from core.results.schema import TRIAL_COLUMNS, Trial
from tests import exhibited, rows

QUICK, UNTIL_RELEASED, DEAF, REFUSED, BROKEN, EMPTY, CURVE, TOO_LARGE = range(8)
"""Ends after two rounds; goes on until released or stopped; the same, but never asks; raises; has a bug; no rows; ends
after the pairs that are asked for, with step times that follow curves of the hidden size; the same, but at `LARGE` the
process is killed, as a system does whose memory runs out."""

LARGE = 16

CROSSING = 100
"""Hidden size at which the two curves cross: above it the second contender of `sweep` is the faster one."""

COMMAND = (sys.executable, "-m", "tests.integration.scripted_worker")
MOST_PAIRS = 500
"""However long a measurement is held up; a store refuses rows with more than twice as many losses."""

ROUND_S = 0.005
RELEASE = "release"
SURROUNDINGS = "surroundings.txt"
"""Where measurements note on which processors they run, and which devices they see."""

DEVICES = (DeviceInfo(device="cpu", kind="cpu", name="Test CPU", memory_bytes=2**34, driver=""),)


def experiment(script: int, *, width: int = 128, contenders: int = 2) -> Experiment:
    """An experiment whose measurement follows `script`; another `width` makes it another experiment."""
    point = Point(seed=script, hidden_size=width)
    return Experiment(point=point, contenders=(Contender(), Contender(threads=1))[:contenders])


def sweep(script: int = CURVE, sizes: Sequence[int] = (8, 16, 32, 64, 128, 256, 512, 1024), **changes: Any) -> Sweep:
    """A sweep over hidden sizes, each of whose measurements follows `script`."""
    contenders = (Contender(threads=1), Contender())
    axis = Axis(name="hidden_size", values=tuple(sizes))
    return Sweep(**{"point": Point(seed=script), "axes": (axis,), "contenders": contenders, **changes})


def step_s(contender: str, size: int) -> float:
    """Seconds a step of the script `CURVE`."""
    return 1e-3 * (size / CROSSING) ** (0.3 if contender == "cpu" else 0.9)


def bench(queue: Queue) -> MeasurementBackend:
    """What stands for the measuring half."""

    def measure(experiment: Experiment, reporter: Reporter) -> list[Trial]:
        where = f" {experiment.point.hidden_size}" if reporter.job.sweep else ""
        _note(f"begin {reporter.job.id}{where}")
        with journal().with_name(SURROUNDINGS).open("a", encoding="utf-8") as file:
            processors = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
            file.write(f"{reporter.job.id} {processors} {os.environ.get('CUDA_VISIBLE_DEVICES')}\n")
        try:
            return _measure(experiment, reporter, queue.folder / RELEASE)
        finally:
            _note(f"end {reporter.job.id}{where}")

    def begin(experiment: Experiment, reporter: Reporter) -> Visited:
        return Visited(measure, experiment, reporter, round_s=ROUND_S)

    def demonstrate(demonstration: Demonstration, reporter: Reporter) -> Exhibit | None:
        return _demonstrate(demonstration, reporter, queue.folder / RELEASE)

    def survey() -> Machine:
        return Machine(environment=environment.read_environment(), devices=DEVICES, hint="No accelerator in a test.")

    return MeasurementBackend(
        measure=measure,
        begin=begin,
        fit=lambda new, alive: True,
        demonstrate=demonstrate,
        survey=survey,
        initialise=lambda _: 0.25,
    )


class Visited:
    """A point of a sweep that is measured at its first visit; its pairs come to light one a visit.

    Attributes:
        pairs: visits so far.
        released: whether its memory was given back.
    """

    def __init__(
        self,
        measure: Callable[[Experiment, Reporter], list[Trial]],
        experiment: Experiment,
        reporter: Reporter,
        *,
        round_s: float = 0.0,
    ) -> None:
        self.pairs, self.released, self.experiment = 0, False, experiment
        self._measure, self._reporter, self._round_s = measure, reporter, round_s
        self._whole: list[Trial] = []

    def run_round(self) -> bool:
        if self.pairs:
            time.sleep(self._round_s)
            self._reporter.progress(progress(self.experiment, self.pairs + 1))
        else:
            self._whole = self._measure(self.experiment, self._reporter)
        self.pairs += 1
        return self._more

    def rows(self) -> list[Trial]:
        return [_cut(row, self.pairs) for row in self._whole] if self._more else self._whole

    def release(self) -> None:
        self.released = True

    @property
    def _more(self) -> bool:
        timed = max((len(row.block_pair) for row in self._whole), default=0)
        return self.pairs < min(timed, self.experiment.pairs) and all(row.outcome != "stopped" for row in self._whole)


def journal() -> Path:
    """Where measurements of all queues note when they begin and end."""
    return Path(os.environ[LOCK_VARIABLE]).with_name("journal.txt")


def _measure(experiment: Experiment, reporter: Reporter, release: Path) -> list[Trial]:
    script = experiment.point.seed
    if script == REFUSED:
        raise DeviceUnavailable("The device cuda:7 is not on this machine.")
    if script == EMPTY:
        return []
    if script == TOO_LARGE and experiment.point.hidden_size == LARGE:
        os.kill(os.getpid(), signal.SIGKILL)
    if script in (CURVE, TOO_LARGE):
        time.sleep(ROUND_S)
        reporter.progress(progress(experiment, 1))
        return timed(experiment, reporter.job.derive_run_id(experiment))
    run_id, pairs = reporter.job.derive_run_id(experiment), 0
    while script != QUICK or pairs < 2:
        if script != DEAF and reporter.should_stop():
            return _rows(experiment, run_id, pairs, outcome="stopped", message="It was stopped.")
        time.sleep(ROUND_S)
        pairs = min(pairs + 1, MOST_PAIRS)
        if script != QUICK and pairs in (2, 4):
            reporter.keep(_rows(experiment, run_id, pairs, outcome="interrupted"))
        reporter.progress(progress(experiment, pairs))
        if script == BROKEN and pairs == 4:
            raise ZeroDivisionError("a bug")
        if release.exists():
            break
    return _rows(experiment, run_id, pairs, outcome="completed")


def demonstration(script: int) -> Demonstration:
    """A lesson about the clock that follows `script`."""
    return Demonstration(kind="clock", point=Point(seed=script), contenders=(Contender(threads=1),))


def _demonstrate(demonstration: Demonstration, reporter: Reporter, release: Path) -> Exhibit | None:
    script = demonstration.point.seed
    if script == REFUSED:
        raise DeviceUnavailable("The device cuda:7 is not on this machine.")
    if script == BROKEN:
        raise ZeroDivisionError("a bug")
    while script != QUICK and not release.exists():
        if script != DEAF and reporter.should_stop():
            return None
        reporter.progress(Progress(phase="showing"))
        time.sleep(ROUND_S)
    here = environment.read_environment()
    return exhibited.exhibit(demonstration, machine_id=here.machine_id, torch_version=here.torch_version)


def _cut(row: Trial, pairs: int) -> Trial:
    """The row as it was after so many pairs."""
    blocks = {
        entry.name: getattr(row, entry.name)[:pairs] for entry in TRIAL_COLUMNS if entry.name.startswith("block_")
    }
    outcome = "interrupted" if row.block_pair else row.outcome
    return dataclasses.replace(row, outcome=outcome, **blocks)


def timed(experiment: Experiment, run_id: str, **changes: Any) -> list[Trial]:
    """Rows of a point of `sweep` with its times."""
    size = experiment.point.hidden_size
    own = {str(contender): {"step_s": step_s(str(contender), size)} for contender in experiment.contenders}
    return _rows(experiment, run_id, experiment.pairs, own=own, **{"outcome": "timed", **_untested(), **changes})


def _untested() -> dict[str, Any]:
    return {"confusion": (), "predictions": b"", "train_accuracy": None, "validation_accuracy": None}


def _rows(
    experiment: Experiment, run_id: str, pairs: int, *, own: Mapping[str, dict[str, Any]] = {}, **changes: Any
) -> list[Trial]:
    """Rows as if measured here and now; `own` changes those of one contender."""
    here = environment.read_environment()
    facts = {
        "machine_id": here.machine_id,
        "torch_version": here.torch_version,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        **changes,
    }
    return [
        rows.trial(run_id=run_id, contender=name, experiment=experiment, pairs=pairs, **{**facts, **own.get(name, {})})
        for name in map(str, experiment.contenders)
    ]


def progress(experiment: Experiment, pairs: int) -> Progress:
    """What a measurement tells after so many pairs."""
    contenders = tuple(ContenderProgress(contender=str(entry), steps=pairs) for entry in experiment.contenders)
    return Progress(phase="training", pairs=pairs, contenders=contenders)


def _note(what: str) -> None:
    with journal().open("a", encoding="utf-8") as file:
        file.write(f"{time.monotonic_ns()} {what}\n")


def main() -> None:
    sys.meta_path.insert(0, WithoutPandas())  # nobody here needs it, and a worker is started for nearly every test
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=Path)
    queue = Queue(parser.parse_args().jobs)
    code = queue.folder / "code"
    code.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO)
    client.COMMAND = COMMAND
    serve(queue, lambda: bench(queue), idle_s=float(os.environ.get("SCRIPTED_IDLE_S", "600")), code_folder=code)


if __name__ == "__main__":
    main()
