"""Loss curves of two contenders against the band that other seeds draw: is the device's share of the scatter visible?

The band is the lowest and highest loss of the baseline over its seeds, segment by segment. Nothing here decides
whether two learn the same: that is `core.answer.lesson.equivalence`, on the test items.
"""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from core import units
from core.answer.lesson.equivalence import seed_pairs
from core.errors import NotComparable
from core.question.experiment import inline_name
from core.results.schema import Trial

SegmentLosses = tuple[float, ...]

BAND_ROUNDING = 1e-4
"""Relative distance past the band's end that still counts as inside: the seed that makes the end lies there itself on
the other contender, but for rounding."""


@dataclass(frozen=True, kw_only=True)
class SeedBand:
    """Loss curves of two contenders over the same seeds; those of the baseline make the band.

    Attributes:
        steps: last step of each segment of the curves.
        low: lowest loss of the baseline's seeds, for each segment (nats); `high` the highest.
        inside: share of the challenger's segments, over all seeds, that lie in the band, give or take `BAND_ROUNDING`.
        same_seed: median relative distance of the two contenders' losses with the same seed, over all segments;
            `seed_to_seed` the same between two seeds of the baseline.
    """

    baseline: str
    challenger: str
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    low: SegmentLosses
    high: SegmentLosses
    inside: float
    same_seed: float
    seed_to_seed: float
    sentence: str


def find_seed_band(trials: Sequence[Trial], *, baseline: str, challenger: str) -> SeedBand | None:
    """The band, and where the challenger's curves lie; None below two seeds, which make no band.

    Raises:
        NotComparable: rows differ in more than the seed, or their curves have other segments.
    """
    pairs = seed_pairs(trials, baseline, challenger)
    if len(pairs) < 2 or not pairs[0][0].loss:
        return None
    steps = common_segments([trial for pair in pairs for trial in pair])
    if not steps:
        raise NotComparable("The loss curves cannot be laid over each other: their segments end at different steps.")
    ours, theirs = ([pair[which].loss[: len(steps)] for pair in pairs] for which in (0, 1))
    low, high = (tuple(map(end, zip(*ours, strict=True))) for end in (min, max))
    inside = statistics.fmean(
        bottom * (1 - BAND_ROUNDING) <= loss <= top * (1 + BAND_ROUNDING)
        for curve in theirs
        for loss, bottom, top in zip(curve, low, high, strict=True)
    )
    same = _median_distance(list(zip(ours, theirs, strict=True)))
    other = _median_distance(list(combinations(ours, 2)))
    return SeedBand(
        baseline=baseline,
        challenger=challenger,
        seeds=tuple(pair[0].seed for pair in pairs),
        steps=steps,
        low=low,
        high=high,
        inside=inside,
        same_seed=same,
        seed_to_seed=other,
        sentence=(
            f"With the same seed the losses on {inline_name(challenger)} and on {inline_name(baseline)} are "
            f"{_percent(same)} "
            f"apart (median), with two seeds those on {inline_name(baseline)} alone {_percent(other)}; "
            f"{units.format_share(inside)} of the curves of {inline_name(challenger)} lie within the band of "
            f"{len(pairs)} seeds."
        ),
    )


def common_segments(trials: Sequence[Trial]) -> tuple[int, ...]:
    """Last steps of the segments that all loss curves have, from the first on; a budget ends each after another."""
    columns = zip(*(trial.loss_step for trial in trials), strict=False)
    return tuple(ends[0] for ends in itertools.takewhile(lambda ends: len(set(ends)) == 1, columns))


def _median_distance(curves: Sequence[tuple[SegmentLosses, SegmentLosses]]) -> float:
    """Median relative distance of the losses of each pair of curves; segments where both are 0 do not differ."""
    return statistics.median(
        2 * abs(x - y) / (x + y) if x + y else 0.0 for one, other in curves for x, y in zip(one, other, strict=True)
    )


def _percent(share: float) -> str:
    """Shares from 1e-7 to 1 are all of interest here."""
    return "0 %" if share == 0 else f"{100 * share:.2g} %"
