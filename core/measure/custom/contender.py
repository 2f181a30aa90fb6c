"""A contender that trains a custom script: the same blocks, but of unknown steps."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import TensorDataset

from ...errors import CustomTrainingFailed, LaneUnavailable, OutOfTime
from ...progress import ContenderProgress
from ...question.experiment import BEST_THREADS, Contender, Experiment, Point
from ...question.lanes import PLAIN, Lane
from .. import breakdown, preflight
from ..breakdown import CHECKED_STEPS
from ..contender import MeasuredContender
from ..datasets import Data, Feed, Split
from ..preflight import FreshTrainings
from . import loaders, op_counter
from .training import NOT_CALLED, CustomCurve, CustomTraining, StepTimes
from .user_code import UserCode, load_builder
from .watchdog import Limits, LineSampler, find_long_line

WATCHED_STEPS = (3, 12)
WATCHED_S = 0.2
"""Minimum and maximum number of steps in which operations are counted, and their target seconds without counting."""

LOADER_SHARE = 0.1
"""Share of a step spent on batches and on placing them above which other loaders are tried."""

LOADER_BUDGET_SHARE = 0.15
"""Maximum share of the budget for other loaders and larger batches, per contender."""

LINE_STEPS, LINE_LEAST_S, LINE_MOST_S, LINE_EXCESS = 40, 0.5, 3.0, 1.1
"""Search for long steps: number of steps, minimum and maximum seconds, minimum ratio of the mean step to the usual one.
"""

COMPILED = "The steps are compiled, and compiled code does not report single operations."

Build = Callable[[int, torch.device], Any]


def build_custom_contenders(
    experiment: Experiment, working_folder: str = "", limits: Limits | None = None
) -> tuple[list["CustomContender"], Data]:
    """Return the contenders of an experiment with a custom script, and empty data.

    Args:
        experiment: experiment with the script.
        working_folder: working folder of the script; by default the folder of its file.
        limits: time limits of the script.

    Raises:
        CustomTrainingFailed: the file is missing, was changed, or cannot be imported.
    """
    point = experiment.point
    foreign, build = load_builder(experiment.folder, point.training, point.source_hash, working_folder, limits)
    nothing = Split(samples=torch.empty(0), labels=torch.empty(0, dtype=torch.int64))
    none = TensorDataset(nothing.samples)
    data = Data(train=nothing, validation=nothing, test=nothing, one_by_one=none, hash=point.source_hash)
    return [CustomContender(contender, point, data, foreign, build) for contender in experiment.contenders], data


@dataclass(kw_only=True)
class CustomTrainings(FreshTrainings):
    """Builds trainings of custom scripts, which provide their batches.

    Attributes:
        build: builds a training for a size on a device.
        foreign: runs the user's code.
        now: the present training, whose batches are used.
    """

    build: Build
    foreign: UserCode
    current_training: Callable[[], CustomTraining]

    def training(self, lane: Lane) -> CustomTraining:
        """Return a new training."""
        built = self.build(self.point.size, self.device)
        return self.foreign.call(lambda: CustomTraining(built, self.foreign, lane, self.device))

    def feed(self, first_step: int) -> Feed:
        """Return the batches of the training, which continue from their present position."""
        feed = self.current_training().feed
        self.prefetched = feed.prefetched
        return feed


class CustomContender(MeasuredContender):
    """One contender in the measurement of a custom script."""

    def __init__(self, contender: Contender, point: Point, data: Data, foreign: UserCode, build: Build) -> None:
        """Store a contender whose device was found; nothing is built yet."""
        super().__init__(contender, point, data)
        self._foreign = foreign
        device = self._device.torch
        self._fresh: CustomTrainings = CustomTrainings(
            point=point,
            data=data,
            device=device,
            build=build,
            foreign=foreign,
            current_training=lambda: self.custom_training,
        )
        self._facts = {"parameters": 0, "flops_per_step": 0}
        self._compiles, self._single = False, StepTimes()
        self.curve = CustomCurve(total_steps=point.total_steps, steps_now=lambda: self.steps)

    @property
    def custom_training(self) -> CustomTraining:
        """The training, after `start`."""
        training = self.training
        if not isinstance(training, CustomTraining):
            raise TypeError("the training has not started, or is no custom script")
        return training

    @property
    def facts(self) -> dict[str, Any]:
        """Return the facts that the training reports; 0 for those that it does not report."""
        return self._facts

    def progress(self) -> ContenderProgress:
        """Return the progress; the total number of steps is unknown."""
        return dataclasses.replace(super().progress(), steps=self.steps, total_steps=0)

    def require_memory(self) -> None:
        """Do nothing: the memory of a script is unknown."""

    def require_pace(self, budget_s: float) -> None:
        """Do nothing: the speed of a script is unknown."""

    def try_threads(self, late: preflight.Late = preflight.no_deadline) -> Iterator[None]:
        """Choose the fastest thread count, on steps of a separate training."""
        yield from super().try_threads(late)
        if self.raw.threads_tried:
            self._build()
            self.curve = CustomCurve(total_steps=self._point.total_steps, steps_now=lambda: self.steps)

    def start(self) -> None:
        """Start like any other contender; read the facts that the training reports after its first step."""
        compiled_before = op_counter.count_compiled_frames()
        self._foreign.is_starting = True
        try:
            super().start()
        finally:
            self._foreign.is_starting = False
        self.raw.own_first_at = str(self._foreign.stopwatch.find_longest_place())
        self._foreign.stage = "the current block of steps"
        compiled = op_counter.count_compiled_frames() > compiled_before
        self._compiles = compiled and self.contender.lane == PLAIN
        if self.contender.lane.execution == "compiled":
            self._find_compiling(compiled)
        self.raw.own_first_loss = next(iter(self.curve.means), None)
        self._facts = {"parameters": self.custom_training.parameters, "flops_per_step": self.custom_training.flops}

    def _find_compiling(self, compiled: bool) -> None:
        """Record the extra time of the first step as compile time, because modules compile at their first call.

        Raises:
            LaneUnavailable: nothing was compiled.
        """
        if not compiled:
            raise LaneUnavailable(f"It cannot be compiled: {NOT_CALLED}.")
        first_s, second_s = (
            self.raw.startup_first_step_s or 0.0,
            self._timer.time(lambda: self.custom_training.advance(1)).seconds,
        )
        self.raw.startup_compile_s, self.raw.startup_first_step_s = max(0.0, first_s - second_s), min(first_s, second_s)
        self.compiling_s += self.raw.startup_compile_s

    def warm_up(self, allowance_s: float) -> Iterator[None]:
        """Train until warm; then clock single steps on a CPU, where a call returns when its work is done."""
        yield from super().warm_up(allowance_s)
        if self.contender.on_host:
            self.custom_training.clock_steps(self.raw.step_s or 0.0)

    def block(self, pair: int) -> None:
        """Time one block, and check whether the script has changed the number of threads."""
        training = self.custom_training
        del training.clocked_ns[:]
        super().block(pair)
        for taken_ns in training.clocked_ns[-self.raw.block_steps[-1] // max(1, training.clocked_steps) :]:
            self._single.add(taken_ns)
        self.raw.own_single_s = self._single.sample_s()
        count = self.raw.threads if self.raw.threads != BEST_THREADS else torch.get_num_threads()
        self.raw.own_threads_set = self.raw.own_threads_set or torch.get_num_threads() != count
        self.raw.own_printed = self._foreign.printed.lines

    def _rebuild(self) -> None:
        """Do nothing: the state of a script cannot be restored, so only a pause separates its rounds."""

    def profile(self, budget_s: float, *, whole_epoch: bool = True, turns: bool = True) -> None:
        """Measure after the blocks: the step breakdown, the operations of steps, and whether the script learns."""
        self._use_settings()
        self.custom_training.clocked_steps = 0
        self._attempt("The step breakdown is", self._sample)
        self._attempt("The busy time of the device in a step is", self._find_busy_time)
        if self.contender.lane == PLAIN:
            self._attempt("The work in its steps is", self._watch_steps)
            self._attempt("The code location of its long steps is", self._find_long_steps)
        self._attempt("Its evaluation is", self._ask)
        if self.contender.lane == PLAIN:
            self._attempt("The effect of other batch sizes is", lambda: self._try_batches(budget_s))

    def _find_long_steps(self) -> None:
        """Find the line that runs during steps that take several times as long as the others."""
        single_s = self.raw.own_single_s or self.raw.breakdown_step_s
        if sum(single_s) <= 0 or statistics.fmean(single_s) < LINE_EXCESS * statistics.median(single_s):
            return
        training, times_s, mean_s = self.custom_training, list[float](), statistics.fmean(single_s)

        def train() -> LineSampler:
            clock = self._timer.clock
            ends = clock() + 1e9 * min(LINE_MOST_S, max(LINE_LEAST_S, LINE_STEPS * mean_s))
            with LineSampler(self._foreign.stopwatch.owns) as sampler:
                while clock() < ends:
                    batch = training.draw()
                    begin = clock()
                    training.step(training.place(batch))
                    self._device.synchronize()
                    times_s.append((clock() - begin) / 1e9)
                    sampler.step += 1
            return sampler

        self.raw.own_heavy_at = find_long_line(training.call(train).samples, times_s)

    def _try_batches(self, budget_s: float) -> None:
        """Time larger batches alternating with those of the script, and other loaders if its loader takes long."""
        own, step_s = self.custom_training, self._step_s
        parts = (self.raw.breakdown_loader_s, self.raw.breakdown_transfer_s)
        slow = own.has_batches and sum(statistics.median(part) for part in parts if part) >= LOADER_SHARE * step_s
        tried = (
            own.call(lambda: loaders.list_alternative_loaders(own.source, self._device.torch, own.own_place))
            if slow
            else {}
        )
        tried |= own.call(lambda: loaders.list_larger_batches(own.source))
        most_s = min(loaders.MOST_S, LOADER_BUDGET_SHARE * budget_s)
        begun = loaders.select_affordable(tried, step_s, most_s)
        timed = loaders.measure(own, begun, self._timer, step_s, most_s) if begun else {}
        for name, times in timed.items():
            setattr(self.raw, f"own_{name}_s", times)
        if slow or tried:
            self._afterwards.left_out += loaders.explain_skipped_loaders(own.source, tried, begun, timed, most_s)

    def _attempt(self, subject: str, work: Callable[[], object]) -> None:
        """Do a measurement that may fail or run out of time, so that the blocks are not lost."""
        try:
            self._afterwards.attempt(subject, work)
        except OutOfTime:
            self._afterwards.left_out.append(f"{subject} unknown: the script's time limit was reached.")
        except CustomTrainingFailed as error:
            self._afterwards.left_out.append(f"{subject} unknown: {str(error).splitlines()[-1]}")

    def _sample(self) -> None:
        loader, transfer, step = self.custom_training.call(lambda: breakdown.time_parts(self._one_step, self._step_s))
        self.raw.breakdown_loader_s = loader if self.custom_training.has_batches else ()
        self.raw.breakdown_transfer_s = transfer if self.custom_training.has_place else ()
        self.raw.breakdown_step_s = step

    @property
    def _step_s(self) -> float:
        """Seconds of an undisturbed step; infinite if unknown, so that the minimum number of steps is done."""
        return self.raw.step_s or math.inf

    def _one_step(self) -> tuple[float, float, float]:
        read, training = self._timer.read, self.custom_training
        begin = read()
        drawn = training.draw()
        made = read()
        batch = training.place(drawn)
        placed = read()
        training.step(batch)
        done = read()
        return (made - begin) / 1e9, (placed - made) / 1e9, (done - placed) / 1e9

    def _find_busy_time(self) -> None:
        step_s = self.raw.step_s or 0.0
        self.raw.busy_step_s = breakdown.busy_step_s(
            self.custom_training, self._timer, self._device.torch, step_s=step_s
        )

    def _watch_steps(self) -> None:
        if self._compiles:
            raise CustomTrainingFailed(self._foreign.file.name, COMPILED)
        device, drain, clock = self._device.torch, self._device.synchronize, self._timer.clock
        steps = breakdown.clamp(WATCHED_STEPS, WATCHED_S / self._step_s)

        def build_counter() -> op_counter.OperationCounter:
            return op_counter.OperationCounter(device, self._foreign.place, drain, clock)

        plain = super(CustomTraining, self.custom_training).advance
        found = self.custom_training.call(
            lambda: op_counter.count_step_operations(build_counter, self._count_step, lambda: plain(1), steps)
        )
        for name in (*op_counter.NUMBERS, *op_counter.TIME_COLUMNS, "kept"):
            setattr(self.raw, f"own_{name}", tuple(getattr(found, name)))
        self.raw.own_waits_at = found.waits_at
        waited = self.custom_training.call(
            lambda: op_counter.count_syncs(lambda: plain(1), steps, device, self._foreign.owns)
        )
        self.raw.own_syncs, self.raw.own_syncs_at = tuple(waited.times), waited.place
        least = op_counter.measure_dispatch_overhead(device, drain, clock)
        self.raw.own_floor_s = (least.call_s, least.inside_s, least.read_s)

    def _count_step(self, one: op_counter.OperationCounter) -> None:
        """Count the operations of placing and step; loader and placing were timed before and are not timed here."""
        drawn = self.custom_training.draw()
        with one:
            batch = self.custom_training.place(drawn)
            one.begin()
            self.custom_training.step(batch)
            one.add_host_time()

    def _compare_with_plain(self) -> None:
        """Compare first losses like other contenders, but with new trainings, because a script cannot be rewound."""
        self._use_settings()
        laned = self._fresh.training(self.contender.lane)
        self.raw.lane_loss = _first_losses(laned)
        self.raw.reference_loss = _first_losses(self._fresh.training(PLAIN), laned.led_in)
        nudged = self._fresh.training(PLAIN)
        if laned.lane.has_same_numerics and nudged.nudge():
            self.raw.nudged_loss = _first_losses(nudged, laned.led_in)

    def _ask(self) -> None:
        self.raw.own_learns = self.custom_training.learns
        self.raw.own_evaluation = self.custom_training.evaluate()

    def _build(self) -> None:
        self._foreign.stage = f"build on {self.contender.spoken}"
        super()._build()

    def _use_precision(self) -> None:
        """Keep the precision that the script has set, which its training restores at each call, and record it."""
        if self._training is not None:
            precision = self.custom_training.fp32_precision
            self.raw.fp32_precision = precision.describe(on_host=self.contender.on_host)

    def _prepare(self) -> float:
        """Return 0 seconds, because nothing is compiled here; the number of prefetched batches is known from now on."""
        self._fresh.feed(0)
        self._foreign.stage = f"the first step on {self.contender.spoken}"
        return 0.0


def _first_losses(training: CustomTraining, led_in: int = 0) -> tuple[float, ...]:
    """Return the losses of the first steps, after some lead-in steps; empty if the script reports none."""
    training.advance(led_in)
    losses: list[float] = []
    for _ in range(CHECKED_STEPS):
        training.advance(1)
        losses += training.read_losses()
    return tuple(losses)
