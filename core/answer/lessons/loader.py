"""The loader as bottleneck: one training, its data delivered in several ways, and what a faster device could bring.

The rows are of one contender and differ only in how data reach it. Each way was a separate run, so ratios between ways
are ratios of medians, and their bounds combine the intervals of both medians. Nothing here measures.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ... import units
from ...errors import NotComparable
from ...question.experiment import inline_name
from ...question.fields import LOADER_PATHS, value_label
from ...results.schema import Trial
from .. import causes, comparable
from ..causes import PART_TITLES, StepParts
from ..speedup import step_time

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
        comparable.require_equal(rows[0], row, comparable.DELIVERY_COLUMNS)
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
