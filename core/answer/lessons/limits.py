"""The two limits of a training: its loader, and in small models the launches of operations. Nothing here measures.

The loader as bottleneck: one training, its data delivered in several ways, and what a faster device could bring. The
rows are of one contender and differ only in how data reach it. Each way was a separate run, so ratios between ways are
ratios of medians, and their bounds combine the intervals of both medians.

Why small models lose: operations per step times the launch cost per operation, compared with their arithmetic. The
number of operations that PyTorch dispatches follows from the layers. The time of a step, and how long an accelerator is
busy, come from rows. In eager mode the host launches every operation separately. So a step never takes less than the
number of launches times the cost per launch, even with little to compute.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ... import units
from ...errors import NotComparable
from ...question.experiment import Point, inline_name
from ...question.fields import LOADER_PATHS, value_label
from ...question.lanes import DEVICE_KINDS
from ...question.models import Network
from ...results.schema import Trial
from .. import causes, speedup
from ..causes import PART_TITLES, StepParts
from ..speedup import is_host, step_time

LOSS_TOLERANCE = 1e-4
"""Highest relative difference of two losses that rounding explains: transforms one sample at a time and on a whole
tensor round differently in the seventh digit, and training carries that on. Another order of samples causes a
difference a hundred times as large.
"""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way in which data reached the device.

    Attributes:
        epoch_s: seconds of an epoch, from the median step; `low_s` and `high_s` are its 95 % interval, if there is one.
        parts_s: seconds of each of `core.answer.causes.PART_TITLES` in an epoch, timed separately; may be empty.
        loader_share: share of the loader in the sum of the parts; None if it was not measured.
        bound: maximum speedup of an infinitely fast device; None for the reason in `bound_reason`.
    """

    data_path: str
    loader_workers: int
    title: str
    epoch_s: float
    low_s: float | None
    high_s: float | None
    parts_s: dict[str, float]
    loader_share: float | None
    bound: float | None
    bound_reason: str

    @property
    def sentence(self) -> str:
        """Distribution of the time of an epoch, and the possible gain."""
        took = f"{self.title}: an epoch takes {units.format_duration(self.epoch_s)}"
        if self.loader_share is None:
            return f"{took}; its parts were not measured."
        shared = f"{took}, and the loader is {units.format_share(self.loader_share)} of it"
        if self.bound is None:
            return f"{shared}; {self.bound_reason}."
        return f"{shared}, so even an infinitely fast device could gain at most {units.format_ratio(self.bound)}."


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """One training on one contender with its data delivered in several ways, the slowest first.

    Attributes:
        gain: epoch time of the slowest way over epoch time of the fastest, with its bounds if both have an interval.
        loss_difference: largest relative difference between the loss curves of two ways; None without two curves of the
            same segments.
    """

    contender: str
    ways: tuple[Way, ...]
    gain: float
    gain_low: float | None
    gain_high: float | None
    loss_difference: float | None

    @property
    def same_losses(self) -> bool | None:
        """Whether the loss curves are the same except for rounding; None if they cannot be compared."""
        return None if self.loss_difference is None else self.loss_difference <= LOSS_TOLERANCE

    @property
    def sentence(self) -> str:
        """Effect of another way of delivering the data on the same device, and whether it learns the same."""
        if len(self.ways) < 2:
            return f"Only one way of delivering the data was measured on {inline_name(self.contender)}."
        ends = units.format_interval(self.gain_low, self.gain_high, units.format_ratio)
        interval = f" (95 % interval {ends})" if ends else ""
        return (
            f"On {inline_name(self.contender)} the same training is {units.format_ratio(self.gain)} as "
            f"fast{interval} per epoch "
            f"with its data {_short(self.ways[-1])} as with its data {_short(self.ways[0])}{self._loss_clause()}."
        )

    def _loss_clause(self) -> str:
        if self.loss_difference is None:
            return ""
        if not self.loss_difference:
            return "; the loss curves are the same"
        apart = f"a relative difference of at most {self.loss_difference:.1g}"
        if self.same_losses:
            return f"; the loss curves are the same except for rounding ({apart})"
        return f"; but the loss curves differ ({apart})"


def find_bottleneck(trials: Sequence[Trial]) -> Bottleneck | None:
    """Return the cost of each way of delivering data, from its newest row; None if nothing was timed.

    Raises:
        NotComparable: rows differ in more than `comparable.DATA`.
    """
    timed = [trial for trial in trials if trial.block_steps]
    ordered = sorted(timed, key=lambda trial: trial.started_at)
    rows = list({(trial.data_path, trial.loader_workers): trial for trial in ordered}.values())
    if not rows:
        return None
    for row in rows[1:]:
        speedup.require_equal(rows[0], row, speedup.DELIVERY_COLUMNS)
    ways = sorted(map(summarize_way, rows), key=lambda entry: entry.epoch_s, reverse=True)
    low, high = _bounds(ways[0], ways[-1])
    return Bottleneck(
        contender=rows[0].contender,
        ways=tuple(ways),
        gain=ways[0].epoch_s / ways[-1].epoch_s,
        gain_low=low,
        gain_high=high,
        loss_difference=loss_difference(rows),
    )


def summarize_way(trial: Trial) -> Way:
    """Summarize one row's way of delivering data; raises NotComparable if no block was timed."""
    step, parts = step_time(trial), causes.step_parts(trial)
    if step.median_s is None:
        path = value_label("data_path", trial.data_path)
        raise NotComparable(f"Nothing was timed on {inline_name(trial.contender)} with the data path “{path}”.")
    bound, reason = _gain_bound(trial, parts)
    steps = trial.steps_per_epoch
    return Way(
        data_path=trial.data_path,
        loader_workers=trial.loader_workers,
        title=_way_title(trial),
        epoch_s=steps * step.median_s,
        low_s=None if step.low_s is None else steps * step.low_s,
        high_s=None if step.high_s is None else steps * step.high_s,
        parts_s={part: steps * getattr(parts, f"{part}_s") for part in PART_TITLES} if parts else {},
        loader_share=parts.share("loader") if parts else None,
        bound=bound,
        bound_reason=reason,
    )


def loss_difference(trials: Sequence[Trial]) -> float | None:
    """Return the largest relative difference between any two loss curves with the same segments.

    The order of batches depends only on the seed, so curves of different ways belong to the same training.
    """
    curves = [trial for trial in trials if trial.loss]
    if len(curves) < 2:
        return None
    shared = min(len(trial.loss) for trial in curves)
    if any(trial.loss_step[: shared - 1] != curves[0].loss_step[: shared - 1] for trial in curves):
        return None
    whole = shared if len({trial.loss_step[shared - 1] for trial in curves}) == 1 else shared - 1
    spans = [[trial.loss[segment] for trial in curves] for segment in range(whole)]
    if not spans or not all(math.isfinite(loss) for losses in spans for loss in losses):
        return None
    return max((max(losses) - min(losses)) / (statistics.fmean(losses) or 1.0) for losses in spans)


def _way_title(trial: Trial) -> str:
    path = value_label("data_path", trial.data_path)
    if trial.data_path not in LOADER_PATHS:
        return path
    return f"{path}, {_workers(trial.loader_workers)}"


def _workers(count: int) -> str:
    return units.format_quantity(count, "worker") if count else "no workers"


def _short(way: Way) -> str:
    words = {
        "resident": "copied once",
        "per_batch": "copied for every batch",
        "loader": "through the DataLoader",
        "pinned": "through the DataLoader and pinned memory",
        "tutorial": "transformed one sample at a time",
    }
    by = f" by {_workers(way.loader_workers)}" if way.loader_workers else ""
    return words.get(way.data_path, way.data_path) + by


def _gain_bound(trial: Trial, parts: StepParts | None) -> tuple[float | None, str]:
    """Return Amdahl's bound from the measured parts, if all parts except the loader take no time."""
    if parts is None:
        return None, "its parts were not measured"
    if trial.data_path == "resident":
        return None, "the device makes these batches itself, so a faster one makes them faster"
    if trial.loader_workers:
        return (
            None,
            "its workers prepare batches in parallel with the training, so waiting for them is not a fixed cost",
        )
    if not parts.loader_s:
        return None, "making a batch took no time that could be measured"
    return parts.sum_s / parts.loader_s, ""


def _bounds(slow: Way, fast: Way) -> tuple[float | None, float | None]:
    """Return the bounds of the ratio of two medians: each bound of one over the opposite bound of the other."""
    if slow.low_s is None or slow.high_s is None or fast.low_s is None or fast.high_s is None:
        return None, None
    return slow.low_s / fast.high_s, slow.high_s / fast.low_s


LOSS_OPERATIONS = 5
"""Operations of cross entropy: log-softmax and selection forward, the initial gradient, and both again backward."""


@dataclass(frozen=True, kw_only=True)
class Launches:
    """Composition of a step of one trial.

    Attributes:
        operations: operations dispatched in a step; views, which start no work, are not counted.
        step_s: seconds of an undisturbed step; `per_operation_s` is this time divided by the operations.
        busy_s: seconds of the step in which the accelerator computes; None on a CPU, which has no queue.
        flops: arithmetic operations in a step.
    """

    contender: str
    batch_size: int
    operations: int
    step_s: float
    busy_s: float | None
    per_operation_s: float
    flops: int

    @property
    def sentence(self) -> str:
        """The step in words."""
        rate = f"{units.format_operations(self.flops / self.step_s)}/s"
        lead = (
            f"A step of {units.format_count(self.batch_size)} samples on {inline_name(self.contender)} takes "
            f"{units.format_duration(self.step_s)} for {self.operations} operations, "
            f"{units.format_duration(self.per_operation_s)} each, at {rate}"
        )
        if self.busy_s is None:
            return f"{lead}."
        busy = units.format_share(min(1.0, self.busy_s / self.step_s))
        return f"{lead}; the device computes for {units.format_duration(self.busy_s)} of it ({busy})."


@dataclass(frozen=True, kw_only=True)
class TwoBatches:
    """One model at a small and a large batch on one contender: the fixed cost of a step and its cost per sample.

    Attributes:
        fixed_s: seconds of a step that do not depend on the batch, from a straight line through both points, at least
            0.
        per_sample_s: seconds per sample according to this line, at least 0.
        fixed_per_operation_s: fixed seconds per operation: the cost of a launch according to this line.
        gain: samples per second at the large batch over samples per second at the small batch.
    """

    small: Launches
    large: Launches
    fixed_s: float
    per_sample_s: float
    fixed_per_operation_s: float
    gain: float

    @property
    def fixed_share(self) -> float:
        """Share of the small batch's step that does not depend on the batch, 0 to 1."""
        return min(1.0, self.fixed_s / self.small.step_s)

    @property
    def sentence(self) -> str:
        """Effect of the larger batch, and its reason."""
        small, large = units.format_count(self.small.batch_size), units.format_count(self.large.batch_size)
        longer = units.format_ratio(self.large.step_s / self.small.step_s)
        more = units.format_ratio(self.large.batch_size / self.small.batch_size)
        each = units.format_duration(self.fixed_per_operation_s)
        return (
            f"On {inline_name(self.small.contender)} a step of {large} samples takes {longer} as long as one of "
            f"{small}, "
            f"for {more} the samples: {units.format_ratio(self.gain)} the samples per second. Fitting a line through "
            f"both, {units.format_share(self.fixed_share)} of the small step do not depend on the batch, {each} for "
            "each of "
            f"{self.small.operations} operations."
        )


def count_launches(network: Network, *, foreach: bool) -> int:
    """Count the operations that PyTorch dispatches in one eager step of cross entropy and SGD, without views.

    SGD has no momentum. A hidden layer of an MLP adds six with `foreach`, where the optimizer updates all parameters in
    one operation, and eight without; an MLP of L hidden layers has 9 + 6L or 10 + 8L.
    """
    forward_backward = sum(layer.launches for layer in network.layers) - network.first.input_launches
    updates = 1 if foreach else sum(layer.tensors for layer in network.layers)
    return LOSS_OPERATIONS + forward_backward + updates


def summarize_launches(trial: Trial) -> Launches | None:
    """Return the composition of a step of one trial; None if no block was timed, or its operations are unknown."""
    step_s = step_time(trial).median_s
    if not step_s:
        return None
    point = Point.from_row(trial)
    if any(layer.parameters and not layer.launches for layer in point.network.layers):
        return None  # the operations of a recurrent layer or an attention block depend on the device
    count = count_launches(point.network, foreach=DEVICE_KINDS[trial.device_kind].foreach)
    return Launches(
        contender=trial.contender,
        batch_size=trial.batch_size,
        operations=count,
        step_s=step_s,
        busy_s=None if is_host(trial) or not trial.busy_step_s else statistics.median(trial.busy_step_s),
        per_operation_s=step_s / count,
        flops=trial.flops_per_step,
    )


def compare_batch_sizes(one: Trial, other: Trial) -> TwoBatches | None:
    """Return the same model at two batch sizes, in either order; None if one was not timed.

    The straight line assumes that a sample costs the same in both batches. Large batches use a device better, and their
    savings per sample count as fixed cost here: the fixed part is an upper estimate.

    Raises:
        NotComparable: the rows differ in more than batch size and number of samples, or not in the batch size.
    """
    speedup.require_equal(one, other, speedup.BATCH_COLUMNS)
    if one.batch_size == other.batch_size:
        raise NotComparable(f"Both rows have a batch size of {one.batch_size}, so they show nothing about batch size.")
    small, large = map(summarize_launches, sorted((one, other), key=lambda trial: trial.batch_size))
    if small is None or large is None:
        return None
    more = large.batch_size - small.batch_size
    per_sample_s = max(0.0, (large.step_s - small.step_s) / more)
    fixed_s = min(small.step_s, max(0.0, small.step_s - per_sample_s * small.batch_size))
    return TwoBatches(
        small=small,
        large=large,
        fixed_s=fixed_s,
        per_sample_s=per_sample_s,
        fixed_per_operation_s=fixed_s / small.operations,
        gain=(large.batch_size / large.step_s) / (small.batch_size / small.step_s),
    )
