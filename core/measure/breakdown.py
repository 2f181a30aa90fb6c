"""After the blocks: step breakdown, device busy time, the time of a whole epoch, and what the network learned.

These passes synchronize the device between parts, so they disturb what they measure. Therefore each pass runs after the
headline blocks, never instead of them. The sum of the parts is compared with the undisturbed step.

The raw values of one contender are here too, as its row stores them, with nothing derived from them.
"""

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..errors import LaneUnavailable
from ..question.experiment import Contender, Point
from ..results.environment import LoadReading
from . import devices
from .datasets import Data, Split
from .execution import Recorder
from .timer import MIN_BLOCK_S, Reading, Timer
from .training import Classifier, Training, classify, nudge_weight


@dataclass(kw_only=True)
class RawValues:
    """Raw values of one contender, named like their columns."""

    device_power_limit_w: float | None = None
    device_clock_limit_mhz: float | None = None
    device_ecc_errors: int | None = None
    fp32_precision: str = ""
    threads: int = 0
    threads_tried: list[int] = field(default_factory=list)
    threads_tried_step_s: list[float] = field(default_factory=list)
    lead_in_steps: int = 0
    warmup_steps: list[int] = field(default_factory=list)
    warmup_s: list[float] = field(default_factory=list)
    block_pair: list[int] = field(default_factory=list)
    block_round: list[int] = field(default_factory=list)
    block_first_step: list[int] = field(default_factory=list)
    block_steps: list[int] = field(default_factory=list)
    block_begin_ns: list[int] = field(default_factory=list)
    block_end_ns: list[int] = field(default_factory=list)
    block_load: list[float] = field(default_factory=list)
    block_steal: list[float] = field(default_factory=list)
    block_switches: list[int | None] = field(default_factory=list)
    block_waiting: list[float | None] = field(default_factory=list)
    block_other_use: list[float | None] = field(default_factory=list)
    block_clock_before_mhz: list[float | None] = field(default_factory=list)
    block_clock_mhz: list[float | None] = field(default_factory=list)
    block_power_w: list[float | None] = field(default_factory=list)
    block_temperature_c: list[float | None] = field(default_factory=list)
    block_throttle: list[int | None] = field(default_factory=list)
    block_throttled_s: list[float | None] = field(default_factory=list)
    block_use_before: list[float | None] = field(default_factory=list)
    block_other_processes: list[int | None] = field(default_factory=list)
    machine_shift: float | None = None
    machine_run_shift: float | None = None
    machine_repeats: int = 0
    startup_device_s: float | None = None
    startup_device_readings_s: tuple[float, ...] = ()
    startup_fresh: bool = False
    startup_build_s: float | None = None
    startup_transfer_s: float | None = None
    startup_compile_s: float | None = None
    startup_compile_served: bool = False
    startup_first_step_s: float | None = None
    lane_loss: tuple[float, ...] = ()
    reference_loss: tuple[float, ...] = ()
    nudged_loss: tuple[float, ...] = ()
    turns_step_s: tuple[float, ...] = ()
    float32_step_s: tuple[float, ...] = ()
    doubled_step_s: tuple[float, ...] = ()
    epoch_check_s: float | None = None
    breakdown_loader_s: tuple[float, ...] = ()
    breakdown_transfer_s: tuple[float, ...] = ()
    breakdown_forward_s: tuple[float, ...] = ()
    breakdown_backward_s: tuple[float, ...] = ()
    breakdown_optimizer_s: tuple[float, ...] = ()
    breakdown_step_s: tuple[float, ...] = ()
    busy_step_s: tuple[float, ...] = ()
    own_operations: tuple[int, ...] = ()
    own_waits: tuple[int, ...] = ()
    own_waits_at: str = ""
    own_syncs: tuple[int, ...] = ()
    own_syncs_at: str = ""
    own_copies: tuple[int, ...] = ()
    own_elsewhere: tuple[int, ...] = ()
    own_float64: tuple[int, ...] = ()
    own_kept: tuple[int, ...] = ()
    own_inside_s: tuple[float, ...] = ()
    own_float64_s: tuple[float, ...] = ()
    own_between_s: tuple[float, ...] = ()
    own_floor_s: tuple[float, ...] = ()
    own_given_s: tuple[float, ...] = ()
    own_workers0_s: tuple[float, ...] = ()
    own_workers2_s: tuple[float, ...] = ()
    own_pinned_s: tuple[float, ...] = ()
    own_resident_s: tuple[float, ...] = ()
    own_larger_s: tuple[float, ...] = ()
    own_single_s: tuple[float, ...] = ()
    own_heavy_at: str = ""
    own_first_at: str = ""
    own_printed: int = 0
    own_threads_set: bool = False
    own_learns: bool | None = None
    own_first_loss: float | None = None
    own_evaluation: float | None = None
    train_accuracy: float | None = None
    validation_accuracy: float | None = None
    tested_step: int = 0
    confusion: tuple[int, ...] = ()
    predictions: tuple[int, ...] = ()

    def columns(self) -> dict[str, Any]:
        """Return the values for a row: lists as tuples, predictions as bytes; a list with an unknown value is empty."""
        values = {name: _tuple(v) if isinstance(v, list) else v for name, v in dataclasses.asdict(self).items()}
        return {**values, "predictions": bytes(self.predictions)}

    @property
    def step_s(self) -> float | None:
        """Median seconds per step of the blocks, or of the last warm-up block before the first one."""
        if self.block_steps:
            readings = zip(self.block_begin_ns, self.block_end_ns, self.block_steps, strict=True)
            return statistics.median((end - begin) / 1e9 / steps for begin, end, steps in readings)
        return self.warmup_s[-1] / self.warmup_steps[-1] if self.warmup_s else None

    def choose_threads(self, step_s: Mapping[int, float]) -> None:
        """Use the fastest of the thread counts that were tried."""
        self.threads = min(step_s, key=step_s.__getitem__)
        self.threads_tried, self.threads_tried_step_s = list(step_s), list(step_s.values())

    def add_first_uses(self, readings: tuple[float, ...]) -> None:
        """Use the median of first uses in fresh processes in place of the one in this process, if there are any."""
        if readings:
            self.startup_device_readings_s, self.startup_fresh = readings, True
            self.startup_device_s = statistics.median(readings)

    def add_block(
        self,
        pair: int,
        first_step: int,
        steps: int,
        reading: Reading,
        load: LoadReading,
        card: Mapping[str, float | None],
    ) -> None:
        """Add a timed block of the round `pair`; the values of `card` have the names of its columns."""
        self.block_pair.append(pair)
        self.block_first_step.append(first_step)
        self.block_steps.append(steps)
        self.block_begin_ns.append(reading.begin_ns)
        self.block_end_ns.append(reading.end_ns)
        self.block_load.append(load.load)
        self.block_steal.append(load.steal)
        self.block_switches.append(load.switches)
        self.block_waiting.append(load.waiting)
        self.block_other_use.append(load.other_use)
        for name, value in card.items():
            getattr(self, name).append(value)


def _tuple(values: list[Any]) -> tuple[Any, ...]:
    return () if None in values else tuple(values)


EPOCH_LIMIT_S = 2.0
EPOCH_SHARE = 0.1
"""Maximum duration of a whole epoch in one piece: in seconds, and as a share of the budget."""

PASS_S = 0.5
"""Target duration of the breakdown pass, in seconds."""

PASS_STEPS = (3, 50)
"""Minimum and maximum number of steps of the breakdown pass."""

TURNS = (3, 5)
"""Minimum and maximum number of turns of a step and another form of it; their total time has the limit of an epoch."""

BUSY_REPEATS = 5
"""Measurements of filler alone and of filler with steps; every difference is stored."""

BUSY_WORK_S = 0.01
BUSY_STEPS = (1, 50)
"""Minimum and maximum duration of the steps behind the filler, in seconds of undisturbed training."""

FILLER_SIZE, FILLER_MOST_SIZE = 2048, 16_384
"""Number of rows of the square matrices whose product keeps an accelerator busy; doubled if many products would be
queued.
"""

FILLER_LAUNCHES = 100
"""Approximate maximum number of products in the filler.

The queue of a device is bounded, in CUDA at 1,024 launches according to public reports. The host waits if the queue is
full, and the steps then come too late.
"""

FILLER_LEAD = 2.0
"""Duration of the filler relative to the longest time that queueing the steps may take."""

FILLER_MIN_S = 0.005


BREAKDOWN_PARTS = ("loader", "transfer", "forward", "backward", "optimizer")


def measure_breakdown(training: Training, timer: Timer, *, step_s: float) -> dict[str, tuple[float, ...]]:
    """Time each of `BREAKDOWN_PARTS` in steps that synchronize the device and read the clock after every part.

    Args:
        training: training to continue; its weights change.
        timer: timer of the training's device.
        step_s: seconds of an undisturbed step, which decide the number of steps.

    Returns:
        Seconds of each part, one entry per step. Empty if a step cannot be divided: the parts of a compiled or recorded
        step cannot be timed, and they differ from the parts of an eager step.
    """
    if training.lane.execution != "eager":
        return {}
    return dict(zip(BREAKDOWN_PARTS, time_parts(lambda: _one_step(training, timer), step_s), strict=True))


def time_parts(one_step: Callable[[], tuple[float, ...]], step_s: float) -> list[tuple[float, ...]]:
    """Return the seconds of each part of a step, with one entry per step, for as many steps as fit into the pass."""
    steps = clamp(PASS_STEPS, PASS_S / step_s)
    rows = [one_step() for _ in range(steps + 1)][1:]  # the first warms up the synchronized steps
    return list(zip(*rows, strict=True))


def time_alternately(
    training: Training, other: Training, timer: Timer, *, step_s: float, budget_s: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the seconds per step of two alternating trainings, one entry per turn; empty if the budget is too short.

    The other training is new, runs on the same device, and is warmed up first.
    """
    steps = max(1, math.ceil(MIN_BLOCK_S / step_s))
    fewest, most = TURNS
    turns = int(max(EPOCH_LIMIT_S, EPOCH_SHARE * budget_s) / (2 * steps * step_s)) - 1
    if turns < fewest:
        return (), ()
    other.advance(steps)
    rows = []
    for _ in range(min(turns, most)):
        rows.append([timer.time(partial(each.advance, steps)).seconds / steps for each in (training, other)])
        training.read_losses()
        other.read_losses()
    as_it_is, otherwise = zip(*rows, strict=True)
    return as_it_is, otherwise


def epoch_s(
    training: Training, timer: Timer, *, steps: int, lead_in_steps: int, step_s: float, budget_s: float
) -> float | None:
    """Return the seconds of a whole epoch of `steps` steps, or None if it would take too long for `budget_s`.

    The timed piece has as many epochs as needed for whole calls of the variant. The training continues, first for
    `lead_in_steps` untimed steps.
    """
    each = training.lane.steps_per_call
    in_step = each // math.gcd(each, steps)
    expected_s = steps * step_s
    epochs = math.ceil(MIN_BLOCK_S / expected_s / in_step) * in_step
    if max(1, in_step) * expected_s > max(EPOCH_LIMIT_S, EPOCH_SHARE * budget_s):
        return None
    training.advance(lead_in_steps)
    return timer.time(lambda: training.advance(epochs * steps)).seconds / epochs


Record = Callable[[Callable[[], object]], Callable[[], object]]
"""Function that records work of a device and returns a function that replays it in one launch."""

QUEUE_TOO_SHORT = "Its launches could not all be queued before the device started: the queue may hold fewer."


def busy_step_s(
    training: Training, timer: Timer, device: torch.device, *, step_s: float, record: Record | None = None
) -> tuple[float, ...]:
    """Return the seconds for which an accelerator is busy with one step when it never waits for the host.

    Filler work first keeps the device busy while the host queues some steps, which then run without a gap. Their time
    is the time of filler and steps minus the time of the filler alone. This needs one host clock and no events, so it
    works on any accelerator. The batch is already on the device, so loader and transfer are excluded. Fewer steps are
    queued if the filler ends before the host has queued all of them, for example because the queue is full. If not even
    one step is queued in time, the step is recorded, if possible, and replayed in one launch.

    Returns:
        One value per repeat, 0 if noise made the difference negative; empty on a CPU, which has no queue.

    Raises:
        LaneUnavailable: not even one call can be queued in time, and it cannot be recorded.
    """
    if device.type == "cpu":
        return ()
    work, each = training.rehearsal(), training.lane.steps_per_call
    times = _time_behind_filler(work, timer, device, step_s=step_s, each=each)
    if not times and record is not None:
        times = _time_behind_filler(record(work), timer, device, step_s=step_s, each=each)
    if not times:
        raise LaneUnavailable(QUEUE_TOO_SHORT)
    return times


def _time_behind_filler(
    work: Callable[[], object], timer: Timer, device: torch.device, *, step_s: float, each: int
) -> tuple[float, ...]:
    """Return the seconds per step of work queued behind filler, one per repeat; empty if the filler ended too early."""
    calls = math.ceil(clamp(BUSY_STEPS, BUSY_WORK_S / step_s) / each)
    while calls:
        fill = _filler(timer, device, seconds=max(FILLER_MIN_S, FILLER_LEAD * calls * each * step_s))
        fill_and_step = partial(_one_after_another, [fill, *[work] * calls])
        fill_and_step()
        if _queueing_s(fill_and_step, timer) < timer.time(fill).seconds:
            differences = (timer.time(fill_and_step).seconds - timer.time(fill).seconds for _ in range(BUSY_REPEATS))
            return tuple(max(0.0, difference / (calls * each)) for difference in differences)
        calls //= 2
    return ()


def _one_after_another(parts: Sequence[Callable[[], object]]) -> None:
    for part in parts:
        part()


def _queueing_s(work: Callable[[], object], timer: Timer) -> float:
    """Return the seconds that the host needs to queue some work."""
    begin_ns = timer.read()
    work()
    return (timer.clock() - begin_ns) / 1e9


def _one_step(training: Training, timer: Timer) -> tuple[float, ...]:
    """Return the seconds of the five parts of one step; clearing the gradients belongs to the optimizer."""
    step, read = training.parts, timer.read
    begin = read()
    drawn = training.draw()
    made = read()
    batch = training.place(drawn)
    placed = read()
    training.optimizer.zero_grad()
    cleared = read()
    forward_ns = backward_ns = 0
    pieces = step.pieces(batch)
    for piece in pieces:
        before = read()
        loss = step.loss(piece, len(pieces))
        forwarded = read()
        step.go_backward(loss)
        forward_ns, backward_ns = forward_ns + forwarded - before, backward_ns + read() - forwarded
    backwarded = read()
    step.update()
    parts_ns = (made - begin, placed - made, forward_ns, backward_ns, cleared - placed + read() - backwarded)
    return tuple(part / 1e9 for part in parts_ns)


def _filler(timer: Timer, device: torch.device, *, seconds: float) -> Callable[[], None]:
    """Return work that keeps `device` busy for about `seconds` but is queued much faster, in few launches."""
    size = FILLER_SIZE
    while True:
        multiply, one_s = _product(timer, device, size)
        if seconds <= FILLER_LAUNCHES * one_s or size == FILLER_MOST_SIZE:
            return partial(multiply, int(seconds / one_s) + 1)
        size *= 2


def _product(timer: Timer, device: torch.device, size: int) -> tuple[Callable[[int], None], float]:
    """Return a function that multiplies square matrices repeatedly, and the seconds of one product."""
    matrix, result = (torch.ones(size, size, device=device) for _ in range(2))

    def multiply(times: int) -> None:
        for _ in range(times):
            torch.mm(matrix, matrix, out=result)

    multiply(2)
    return multiply, timer.time(lambda: multiply(4)).seconds / 4


def clamp(bounds: tuple[int, int], value: float) -> int:
    """Return the largest whole number within bounds that does not exceed a value, or the lower bound."""
    fewest, most = bounds
    return int(max(fewest, min(most, value)))


TRAIN_ACCURACY_SAMPLES = 10_000
"""Number of training samples to classify: enough for a resolution of 1 %, and fast on a slow device."""


def examine(network: Classifier, classes: int, data: Data, device: torch.device, raw: RawValues) -> None:
    """Classify with a network, and store accuracies, predictions and the confusion matrix in `raw`."""
    trained = _share_right(network, data.train, device, at_most=TRAIN_ACCURACY_SAMPLES)
    validated = _share_right(network, data.validation, device)
    predicted = classify(network, data.test, device)
    counts = torch.bincount(data.test.labels * classes + predicted, minlength=classes * classes)
    raw.train_accuracy, raw.validation_accuracy = trained, validated
    raw.confusion, raw.predictions = tuple(counts.tolist()), tuple(predicted.tolist())


def _share_right(
    network: Classifier, split: Split, device: torch.device, *, at_most: int | None = None
) -> float | None:
    """Return the accuracy; None without samples."""
    predicted = classify(network, split, device, at_most=at_most)
    return float((predicted == split.labels[:at_most]).double().mean()) if len(predicted) else None


CHECKED_STEPS = 20
"""Number of first steps of a variant that are compared with eager fp32.

The number is large enough to show a wrong update, and small enough that rounding has not yet grown.
"""


@dataclass(kw_only=True)
class PostRunMeasurements:
    """Measurements of one contender after its blocks; the results go into its raw values.

    Attributes:
        device: device whose memory is released after a failure.
        left_out: measurements that failed and the reasons, in sentences.
    """

    contender: Contender
    point: Point
    data: Data
    timer: Timer
    device: devices.Device
    raw: RawValues
    left_out: list[str] = field(default_factory=list)

    def attempt(self, subject: str, work: Callable[[], object]) -> None:
        """Do work that may fail, and record a failure in a sentence.

        The sentence starts with `subject`, followed by the reason.
        """
        if failed := devices.attempt(work, partial(devices.ending, self.contender)):
            outcome, why = failed
            self.left_out.append(f"{subject} unknown: {'out of memory.' if outcome == 'out_of_memory' else why}")
            self.device.release()

    def profile(self, training: Training, budget_s: float, *, whole_epoch: bool) -> None:
        """Time a whole epoch in one piece, the parts of a step, and the busy time of the device."""
        if whole_epoch:
            self.attempt("The time of a whole epoch is", lambda: self._run_epoch(training, budget_s))
        self.attempt("The step breakdown is", lambda: self._profile_step(training))
        self.attempt("The busy time of the device in a step is", lambda: self._find_busy_time(training))

    def take_turns(self, training: Training, other: Callable[[], Training], column: str, budget_s: float) -> None:
        """Time another form of the step, alternating with this one, and store its seconds in `column`."""

        def measure() -> None:
            step_s = self.raw.step_s or math.inf
            timed = time_alternately(training, other(), self.timer, step_s=step_s, budget_s=budget_s)
            self.raw.turns_step_s = timed[0]
            setattr(self.raw, column, timed[1])

        self.attempt("The time of the alternative step is", measure)

    def examine(self, training: Training, weights: list[Tensor]) -> None:
        """Classify with the given weights."""
        self.attempt("The classification report is", lambda: self._classify(training, weights))

    def compare(self, training: Training, plain: Callable[[], Training]) -> None:
        """Train the first steps in this variant and in eager fp32, from the same weights and batch; store both losses.

        Variants with the same numerics differ by rounding, which some trainings amplify. Eager steps from slightly
        perturbed weights show how much.
        """
        steps = min(CHECKED_STEPS, self.point.total_steps)
        training.advance(training.lane.round_up_to_calls(steps))
        lane_loss = tuple(training.read_losses()[:steps])
        devices.use_strict_fp32()
        torch.backends.cudnn.benchmark = False
        reference = plain()
        reference.advance(steps)
        self.raw.lane_loss, self.raw.reference_loss = lane_loss, tuple(reference.read_losses())
        if training.lane.has_same_numerics:
            other = plain()
            other.set_weights([nudge_weight(weight) for weight in other.weights("cpu")])
            other.advance(steps)
            self.raw.nudged_loss = tuple(other.read_losses())

    def _run_epoch(self, training: Training, budget_s: float) -> None:
        steps, lead_in, step_s = self.point.steps_per_epoch, self.raw.lead_in_steps, self.raw.step_s or 0.0
        self.raw.epoch_check_s = epoch_s(
            training, self.timer, steps=steps, lead_in_steps=lead_in, step_s=step_s, budget_s=budget_s
        )
        training.read_losses()

    def _profile_step(self, training: Training) -> None:
        for part, values in measure_breakdown(training, self.timer, step_s=self.raw.step_s or 0.0).items():
            setattr(self.raw, f"breakdown_{part}_s", values)

    def _find_busy_time(self, training: Training) -> None:
        step_s, device = self.raw.step_s or 0.0, self.device.torch
        record = self._record if device.type == "cuda" and training.lane.execution == "eager" else None
        self.raw.busy_step_s = busy_step_s(training, self.timer, device, step_s=step_s, record=record)

    def _record(self, step: Callable[[], object]) -> Callable[[], object]:
        recorder = Recorder(self.device.torch)
        recorder.warm_up(step)
        return recorder.record(step)

    def _classify(self, training: Training, weights: list[Tensor]) -> None:
        training.set_weights(weights)
        examine(training.network, self.point.network.classes, self.data, self.device.torch, self.raw)
