"""One measurement: every contender of an experiment trained in interleaved blocks, then profiled and examined.

The training itself is timed. Contenders start from the same weights, see the same batches, and take turns block by
block. Orders are balanced, so the position of a contender and its predecessor have no effect. Rows are built here and
written elsewhere.
"""

import dataclasses
import random
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from time import perf_counter, sleep  # bound here, so that a custom script that replaces them changes no time here
from typing import Any, Generic, TypeVar

from ..errors import LaneUnavailable
from ..progress import Progress
from ..question import lanes
from ..question.experiment import BEST_THREADS, EVERY_EPOCH, PROTOCOL_VERSION, Experiment
from ..question.lanes import PLAIN
from ..question.presets import LOOKS, ROUND_PAIRS
from ..results import environment
from ..results.schema import Outcome, Trial
from . import datasets, devices, preflight, startup
from .boosting import BoostingContender
from .contender import MeasuredContender
from .custom import contender as own
from .custom.watchdog import Limits
from .datasets import Data

Taker = TypeVar("Taker")


class Orders(Generic[Taker]):
    """Orders of the contenders in each round.

    Rounds come in pairs, the second in reverse order, so each of two contenders precedes the other equally often. In a
    Williams square each contender is also in every position, and after every other contender, equally often (Williams
    1949, https://doi.org/10.1071/CH9490149). The order of its rows and the assignment of contenders are random.
    """

    def __init__(self, seed: str) -> None:
        """Start with a first square; the same seed gives the same orders."""
        self._draw = random.Random(seed)
        self._takers: list[Taker] = []
        self._coming: list[list[Taker]] = []

    def next(self, takers: Sequence[Taker]) -> list[Taker]:
        """Return the order of the next round; a changed set of contenders begins another square."""
        if not self._coming or self._takers != list(takers):
            self._takers = list(takers)
            self._coming = self._square()
        return self._coming.pop()

    def _square(self) -> list[list[Taker]]:
        count = len(self._takers)
        mixed = self._draw.sample(self._takers, count)
        zigzag = [(place + 1) // 2 if place % 2 else -(place // 2) for place in range(count)]  # 0, 1, -1, 2, -2, …
        shifts = range(count if count % 2 else count // 2)  # of an even number, the other half are these reversed
        rows = ([mixed[(step + shift) % count] for step in zigzag] for shift in self._draw.sample(shifts, len(shifts)))
        return [order for row in rows for order in (row, row[::-1])]


def final_outcome(measured: MeasuredContender, experiment: Experiment, pairs: int, *, cut: bool) -> tuple[Outcome, str]:
    """Return the outcome and the message of a contender measured to its end; `cut` if epochs are missing."""
    if measured.curve.diverged:
        return "diverged", "The loss became NaN or infinite. Try a smaller learning rate."
    if experiment.pairs != EVERY_EPOCH and pairs >= experiment.pairs:
        return "timed", ""
    budget = f"The budget of {experiment.budget_s:g} s ended after"
    if experiment.pairs != EVERY_EPOCH:
        return "budget_spent", f"{budget} {pairs} of {experiment.pairs} pairs of blocks."
    epochs = f"{measured.steps / experiment.point.steps_per_epoch:.1f} of {experiment.point.epochs} epochs"
    if cut:
        why = "Decided after" if pairs < LOOKS[-1] else "It ended after"
        return "timed", f"{why} {pairs} pairs of blocks, {epochs}; the rest was not trained, and nothing was tested."
    return ("completed", "") if measured.trained else ("budget_spent", f"{budget} {epochs}.")


def common_test_step(contenders: Sequence[MeasuredContender]) -> int:
    """Return the step after which all contenders are tested, so that their accuracies are comparable; 0 for none.

    A budget ends the contenders after different steps. The result is the one that all reach in the shortest time:
    contenders behind it continue, and those ahead train again up to it. For two contenders this takes at most a third
    of the time of their blocks.
    """

    def extra_s(step: int) -> float:
        more = ((step - one.counted if step >= one.counted else step, one.raw.step_s or 0.0) for one in contenders)
        return sum(steps * step_s for steps, step_s in more)

    return min((one.counted for one in contenders), key=extra_s, default=0)


def row(
    experiment: Experiment, measured: MeasuredContender, data: Data, outcome: Outcome, *, run_id: str, started_at: str
) -> Trial:
    """Return the row that results if the measurement ends now."""
    point = experiment.point
    return Trial(
        trial_id=f"{run_id}-{experiment.contenders.index(measured.contender)}",
        run_id=run_id,
        experiment_id=experiment.id,
        started_at=started_at,
        outcome=outcome,
        message=measured.message,
        **dataclasses.asdict(point),
        dataset_hash=data.hash,
        test_samples=len(data.test),
        **measured.facts,
        steps_per_epoch=point.steps_per_epoch,
        **_device_columns(measured),
        **dataclasses.asdict(environment.read_environment()),
        protocol_version=PROTOCOL_VERSION,
        **measured.contender.lane.columns,
        drained=True,
        budget_s=experiment.budget_s,
        steps=measured.steps,
        **measured.raw.columns(),
        loss_step=measured.curve.last_steps,
        loss=measured.curve.means,
    )


def _device_columns(measured: MeasuredContender) -> dict[str, Any]:
    info, contender = measured.info, measured.contender
    return {
        "contender": str(contender),
        "device": contender.device,
        "device_kind": info.kind,
        "device_name": info.name,
        "device_memory_bytes": info.memory_bytes,
        "device_driver": info.driver,
    }


TARGET_PAIRS = 20
"""Number of rounds of a whole training; a shorter training continues beyond its last epoch.

At a noise of 5 % twenty pairs give the speedup to about ±4 % (95 %), in about five seconds for two devices.
"""

MOST_PAIRS = LOOKS[-1]
"""Maximum number of rounds of an undecided measurement, unless all epochs were requested and some are left."""

THREADS_SHARE = 0.15
"""Share of the budget, for all contenders, after which the search for thread counts ends."""

WARM_UP_SHARE = 0.25
"""Share of the budget, for all contenders, after which slow contenders count as warm."""

SCRIPT_BUDGETS, COMPILING_S = 1.8, 300.0
"""Number of budgets that all calls of a custom script may take, and further seconds if it is compiled.

The whole measurement thus ends within two budgets, whatever the script does.
"""

PAUSE_S = 0.2
"""Pause between two rounds in seconds, in which the system may move threads and memory, and change clocks."""

ROUND_SHARE = 10
"""A round has at least the pairs so far divided by this number, so that long trainings do not pause too often."""

KEEP_EVERY_S = 5.0
"""Seconds between two copies of the rows so far, in case the measuring process is killed."""


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """Callbacks of a measurement; all are called between timed blocks.

    Attributes:
        progress: receives the progress.
        should_stop: returns whether a user requested a stop.
        keep: receives the rows so far every few seconds, with the outcome `interrupted`.
        enough: receives the rows so far from time to time, and returns whether they answer the question; not called
            before the end of a whole training.
        repeatability: columns of the rows that say how well runs repeat on this machine, with their values.
        folder: working folder of a custom script; by default the folder of its file.
        give_up: ends this process with a sentence if a custom script cannot be interrupted.
    """

    progress: Callable[[Progress], None] = lambda _: None
    should_stop: Callable[[], bool] = lambda: False
    keep: Callable[[Sequence[Trial]], None] = lambda _: None
    enough: Callable[[Sequence[Trial]], bool] = lambda _: True
    folder: str = ""
    repeatability: Mapping[str, float | int | None] = field(default_factory=dict)
    give_up: Callable[[str], None] | None = None


class _Stopped(BaseException):
    """Signals a requested stop, which is not a failure."""


class _BudgetSpent(BaseException):
    """Signals that the budget was over before the first pair was timed, which is not a failure."""


def limit_script(experiment: Experiment) -> float:
    """Return the maximum seconds for all calls of a custom script."""
    compiled = any(contender.lane.execution == "compiled" for contender in experiment.contenders)
    return SCRIPT_BUDGETS * experiment.budget_s + COMPILING_S * compiled


def measure(experiment: Experiment, *, hooks: Hooks, run_id: str = "") -> list[Trial]:
    """Measure one experiment on this machine.

    Args:
        experiment: the training, its contenders and the budget.
        hooks: report progress, request a stop, and store what is measured.
        run_id: name of the run, 12 hexadecimal digits; a new one unless given.

    Returns:
        One row per contender with measurements, in the order of the experiment.

    Raises:
        DeviceUnavailable: a contender's device is not on this machine; nothing was run.
        LaneUnavailable: its device does not support the requested variant; nothing was run.
        DatasetUnavailable: the files of the data set are missing.
        InvalidValue: more threads or samples were requested than there are.
        TooSlow: not even the first blocks could be timed within the budget; nothing was run.
        SameTraining: all contenders are the same training with the same number of threads; nothing was timed.
    """
    measurement = Measurement(experiment, hooks, run_id or uuid.uuid4().hex[:12])
    while measurement.run_round():
        pass
    return measurement.rows()


@dataclass
class Measurement:
    """A measurement made in rounds of blocks; the time between rounds does not count.

    Attributes:
        run_id: name of the run, 12 hexadecimal digits.
        started_at: start of the measurement.
        all_measured: the contenders, after the data was loaded.
    """

    experiment: Experiment
    hooks: Hooks
    run_id: str
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    pairs: int = 0
    all_measured: list[MeasuredContender] = field(default_factory=list)
    _began: float = 0.0
    _kept_at: float = 0.0
    _cut: bool = False
    _next_look: int = 0
    _round: int = 0
    _round_began: int = 0

    def __post_init__(self) -> None:
        self._next_look = 0 if self.experiment.whole else LOOKS[0]
        self._course = self._run()

    def run_round(self) -> bool:
        """Measure one more round; the first includes start-up and warm-up, the last the measurements after the blocks.

        Returns:
            Whether more rounds follow; after the last one, the memory is released.

        Raises:
            CrossoverError: as `measure`, in the first round.
        """
        return next(self._course, False)

    def rows(self) -> list[Trial]:
        """Return one row per contender with measurements.

        The outcome is `interrupted` before the end.
        """
        run = {"run_id": self.run_id, "started_at": self.started_at}
        return [
            row(self.experiment, measured, self._data, measured.outcome or "interrupted", **run)
            for measured in self.all_measured
            if measured.raw.block_steps or measured.outcome in ("out_of_memory", "interrupted")
        ]

    def release(self) -> None:
        """Release all memory of the measurement, which has ended."""
        self._course.close()

    def _run(self) -> Generator[bool, None, None]:
        self._require_contenders()
        devices.use_strict_fp32()
        try:
            self._load()
            self._prepare()
            yield from self._train()
            self._conclude()
        except _BudgetSpent:
            pass  # there is nothing to conclude; what ran out of memory still has its row
        except _Stopped:
            for measured in self._active_contenders():
                measured.end("stopped", "It was stopped before it finished.")
        except Exception:
            self._keep()
            raise
        finally:
            for measured in self.all_measured:
                measured.release()

    def _require_contenders(self) -> None:
        for contender in self.experiment.contenders:
            info = devices.find(contender.device)
            if refusal := lanes.why_not(contender.lane, info.refusals, contender.spoken):
                raise LaneUnavailable(refusal)
            preflight.require_usable(contender.threads)

    def _load(self) -> None:
        self._tell("loading data")
        point = self.experiment.point
        if point.training:
            mine, self._data = own.build_custom_contenders(self.experiment, self.hooks.folder, self._limits())
            self.all_measured = list[MeasuredContender](mine)
            return
        self._data = datasets.load_point_data(point)
        contenders = self.experiment.contenders
        sort = BoostingContender if point.is_fit else MeasuredContender
        self.all_measured = [sort(contender, point, self._data) for contender in contenders]

    def _limits(self) -> Limits:
        """Return the limits of a custom script, with the function that reports its line during long calls."""
        return Limits(seconds=limit_script(self.experiment), report=self._report, give_up=self.hooks.give_up)

    def _prepare(self) -> None:
        self._began = self._kept_at = perf_counter()
        for measured in self.all_measured:
            if self._has_rounds:
                for column, value in self.hooks.repeatability.items():
                    setattr(measured.raw, column, value)
            self._tell(f"starting up {measured.contender.spoken}")
            self._attempt(measured, partial(self._start, measured))
        if self.experiment.pairs == EVERY_EPOCH:  # sizes of a sweep may each have a number of threads of their own
            alive = self._active_contenders()
            preflight.check_distinct([one.contender for one in alive], [one.raw.threads for one in alive])
        allowance_s = WARM_UP_SHARE * self.experiment.budget_s / len(self.all_measured)
        for measured in self._active_contenders():
            self._tell(f"warming up {measured.contender.spoken}")
            self._attempt(measured, partial(self._drive, measured.warm_up(allowance_s)))

    def _start(self, measured: MeasuredContender) -> None:
        measured.require_memory()
        measured.require_pace(self.experiment.budget_s)
        if measured.contender.lane.execution == "compiled":
            self._try_threads(measured, measured.shortlist_threads)
        measured.start()
        self._require_time()
        self._try_threads(measured, measured.try_threads)

    def _try_threads(self, measured: MeasuredContender, tried: Callable[[preflight.Late], Iterator[None]]) -> None:
        if measured.raw.threads != BEST_THREADS:
            return
        self._tell(f"trying numbers of threads for {measured.contender.spoken}")
        ends_s = self._read_elapsed_s() + THREADS_SHARE * self.experiment.budget_s / len(self.all_measured)
        self._drive(tried(lambda: self._read_elapsed_s() >= ends_s))

    def _train(self) -> Generator[bool, None, None]:
        """Run rounds of blocks until every contender has the requested number; yield between them."""
        orders = Orders[MeasuredContender](self.run_id)
        while self._read_elapsed_s() < self.experiment.budget_s:
            due = self._due()
            if not due:
                return
            if self.pairs:
                spent_s = perf_counter() - self._began
                yield True
                self._began = perf_counter() - spent_s
            if self._is_round_over:
                self._begin_round(due)
                if not (due := [one for one in due if one.outcome is None]):
                    continue
                orders = Orders[MeasuredContender](f"{self.run_id} {self._round}")
            for measured in orders.next(due):
                self._attempt(measured, partial(self._time_block, measured))
                self._tell("training")
            self.pairs += 1
            self._keep_if_due()

    @property
    def _has_rounds(self) -> bool:
        """Return whether the measurement pauses between rounds; the sizes of a sweep alternate instead."""
        return self.experiment.pairs == EVERY_EPOCH

    @property
    def _is_round_over(self) -> bool:
        return self._has_rounds and self.pairs - self._round_began >= max(ROUND_PAIRS, self.pairs // ROUND_SHARE)

    def _begin_round(self, due: Sequence[MeasuredContender]) -> None:
        """Pause, and rebuild the contenders with remaining blocks, in a different order each time."""
        self._round, self._round_began = self._round + 1, self.pairs
        self._tell("pausing between rounds")
        sleep(PAUSE_S)
        for measured in random.Random(f"{self.run_id} {self._round}").sample(due, len(due)):
            self._attempt(measured, measured.begin_round)

    def _time_block(self, measured: MeasuredContender) -> None:
        measured.block(self.pairs)
        if self._has_rounds:
            measured.raw.block_round.append(self._round)

    def _due(self) -> list[MeasuredContender]:
        """Return the contenders with a remaining block.

        Rounds continue until enough is timed, and until all epochs are trained if these were requested.
        """
        asked, alive = self.experiment, self._active_contenders()
        if asked.pairs != EVERY_EPOCH:
            return alive if self.pairs < asked.pairs else []
        untrained = [measured for measured in alive if not measured.trained]
        if asked.whole and self.pairs < TARGET_PAIRS:
            return alive
        if asked.whole and untrained:
            return untrained
        if not self._is_enough():
            return alive
        self._cut = bool(untrained)
        return []

    def _is_enough(self) -> bool:
        """Return whether the pairs so far suffice.

        This is checked only from time to time, because each check makes the next one less certain.
        """
        if self.pairs >= MOST_PAIRS:
            return True
        if self.pairs < self._next_look:
            return False
        self._next_look = next((look for look in LOOKS if look > self.pairs), MOST_PAIRS)
        return self.hooks.enough(self.rows())

    @property
    def _times_suffice(self) -> bool:
        """Return whether no network is tested: only times were requested, or training ended when the times sufficed."""
        return self._cut or self.experiment.pairs != EVERY_EPOCH

    def _conclude(self) -> None:
        tested = [one for one in self._active_contenders() if not self._times_suffice and not one.curve.diverged]
        step = common_test_step(tested)
        for measured in tested:
            self._attempt(measured, partial(self._drive, measured.train_to_step(step), hurried=False))
        for measured in self._active_contenders():
            self._attempt(measured, partial(self._conclude_one, measured, step))
        if not self.experiment.point.training:
            self._measure_first_uses()

    def _conclude_one(self, measured: MeasuredContender, step: int) -> None:
        asked, times_suffice = self.experiment, self._times_suffice
        measured.close(examined=not times_suffice)
        self._tell(f"timing the parts of a step on {measured.contender.spoken}")
        if measured.raw.block_steps:
            measured.profile(asked.budget_s, whole_epoch=not times_suffice, turns=asked.pairs == EVERY_EPOCH)
        if not times_suffice and not measured.curve.diverged:
            self._tell(f"testing the model trained on {measured.contender.spoken}")
            self._drive(measured.go_back(step), hurried=False)
            measured.examine()
        if measured.raw.block_steps and measured.contender.lane != PLAIN:
            self._tell(f"comparing {measured.contender.spoken} with the default loop")
            measured.check_lane()
        measured.end(*final_outcome(measured, self.experiment, self.pairs, cut=self._cut))

    def _measure_first_uses(self) -> None:
        """Time first uses in fresh processes, on devices whose memory is free again.

        This comes last: it can take 15 seconds a device and changes no speedup, so a stop loses the least here.
        """
        for measured in self.all_measured:
            measured.release()
        for measured in self.all_measured:
            if measured.raw.block_steps and not measured.contender.on_host:
                self._tell(f"timing the first use of {measured.contender.spoken} in a new process")
                measured.raw.add_first_uses(startup.cold_s(measured.contender, self.experiment.point.network))

    def _attempt(self, measured: MeasuredContender, work: Callable[[], object]) -> None:
        """Do a part of one contender's measurement; missing memory or a failing variant ends only this contender."""
        if failed := devices.attempt(work, partial(devices.ending, measured.contender)):
            measured.end(*failed)
            measured.release()

    def _active_contenders(self) -> list[MeasuredContender]:
        return [measured for measured in self.all_measured if measured.outcome is None]

    def _drive(self, work: Iterator[None], *, hurried: bool = True) -> None:
        """Do a part of the preparation to its end; if `hurried`, end the measurement once the budget is spent."""
        for _ in work:
            self._raise_if_stopped()
            if hurried:
                self._require_time()

    def _require_time(self) -> None:
        """End the measurement if the preparation has used the whole budget."""
        if self._read_elapsed_s() >= self.experiment.budget_s:
            raise _BudgetSpent

    def _raise_if_stopped(self) -> None:
        if self.hooks.should_stop():
            raise _Stopped

    def _tell(self, phase: str) -> None:
        self._report(phase)
        self._raise_if_stopped()

    def _report(self, phase: str) -> None:
        self.hooks.progress(
            Progress(
                phase=phase,
                elapsed_s=self._read_elapsed_s(),
                budget_s=self.experiment.budget_s,
                pairs=self.pairs,
                contenders=tuple(measured.progress() for measured in self.all_measured),
            )
        )

    def _read_elapsed_s(self) -> float:
        """Return the spent seconds of the budget since the start-up, without compiling and recording."""
        if not self._began:
            return 0.0
        return perf_counter() - self._began - sum(measured.compiling_s for measured in self.all_measured)

    def _keep_if_due(self) -> None:
        if perf_counter() - self._kept_at >= KEEP_EVERY_S:
            self._keep()
            self._kept_at = perf_counter()

    def _keep(self) -> None:
        if rows := self.rows():
            self.hooks.keep(rows)
