"""Comparison of what devices learn: classification reports, test accuracy, differing predictions, and losses.

All results are computed from the stored counts and predictions. Predictions are called equal only if they agree on
every test item, and one run on each device shows nothing about other seeds.

Two devices learn the same if the test items agree, and if losses stay in the band of other seeds. The band is the
lowest and highest loss of the baseline over its seeds, segment by segment. The test items decide; the band shows how
much two seeds differ on one device.
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from .. import units
from ..errors import InvalidValue, NotComparable
from ..question import catalog
from ..question.experiment import inline_name
from ..question.lanes import capitalize_name
from ..results.schema import Trial
from . import speedup
from .speedup import require_equal
from .statistics import heads_at_most

SIGNIFICANT = 0.05
"""Significance level of McNemar's exact test, fixed before any run."""

Z_95 = 1.959964
"""97.5 % quantile of the normal distribution, for a two-sided 95 % interval."""


@dataclass(frozen=True, kw_only=True)
class PredictionAgreement:
    """Agreement of two trained models on the test items.

    Attributes:
        disagreeing: number of the test `items` with different predictions.
        difference: accuracy of the second model minus accuracy of the first, with its 95 % interval from `low` to
            `high`.
        p_value: McNemar's exact p, or its upper bound; see `compare_predictions`.
    """

    disagreeing: int
    items: int
    difference: float
    low: float
    high: float
    p_value: float
    sentence: str


def confusion_rows(trial: Trial) -> tuple[tuple[int, ...], ...]:
    """Return the counts of test items by true class (rows) and predicted class (columns); empty if untested.

    Raises:
        InvalidValue: the counts do not fit the classes of the data set.
    """
    if not trial.confusion:
        return ()
    classes = len(catalog.dataset(trial.dataset).classes)
    if len(trial.confusion) != classes**2:
        raise InvalidValue("confusion", len(trial.confusion), f"{classes**2} counts for {classes} classes")
    return tuple(trial.confusion[row * classes : (row + 1) * classes] for row in range(classes))


def accuracy(trial: Trial) -> float | None:
    """Return the share of correct predictions on the test items; None if the trial was not tested."""
    rows = confusion_rows(trial)
    items = sum(trial.confusion)
    return sum(row[label] for label, row in enumerate(rows)) / items if items else None


def classification(trial: Trial) -> dict[str, Any] | None:
    """Return scikit-learn's classification report as a dict, by class name; None if the trial was not tested.

    A figure that is not defined, such as the precision of a class that was never predicted, is 0.
    """
    return _report(trial, output_dict=True) if trial.confusion else None


def classification_text(trial: Trial) -> str:
    """Return scikit-learn's classification report as text, or a sentence that explains why there is none."""
    if not trial.confusion:
        return f"There is no classification report of {inline_name(trial.contender)}: its model was not tested."
    text: str = _report(trial, output_dict=False)
    return text


def compare_predictions(a: Trial, b: Trial) -> PredictionAgreement | None:
    """Compare the predictions of two trials on the same test items; None if one of them was not tested.

    McNemar's test uses the items that exactly one of the two models classified correctly (Dietterich 1998, doi
    10.1162/089976698300017197). True labels are not stored, so with more than two classes both models may be wrong on
    an item on which they disagree. Every such item is counted as correct for exactly one model, which gives the highest
    p and the widest interval. Therefore no difference is reported that the true labels could refute.

    Raises:
        NotComparable: the data sets or the numbers of trained steps differ.
    """
    if not (a.predictions and b.predictions and a.confusion and b.confusion):
        return None
    require_equal(a, b, ("dataset", "dataset_hash"))
    if final_tested_step(a) != final_tested_step(b):
        raise NotComparable(
            f"The trained models cannot be compared: training took {final_tested_step(a):,} steps on "
            f"{inline_name(a.contender)}, "
            f"but {final_tested_step(b):,} on {inline_name(b.contender)}."
        )
    items = len(a.predictions)
    if len(b.predictions) != items:
        raise NotComparable(
            f"The trained models cannot be compared: there are {items:,} predictions of {inline_name(a.contender)}, "
            f"but {len(b.predictions):,} of {inline_name(b.contender)}."
        )
    disagreeing = sum(x != y for x, y in zip(a.predictions, b.predictions, strict=True))
    gained = _right(b) - _right(a)
    if abs(gained) > disagreeing:
        raise NotComparable(
            f"The trained models cannot be compared: by their counts {inline_name(a.contender)} and "
            f"{inline_name(b.contender)} "
            f"differ on {abs(gained):,} items, by their predictions on {disagreeing:,}."
        )
    p_value, (low, high) = _mcnemar(disagreeing, gained), _accuracy_interval(disagreeing, gained, items)
    return PredictionAgreement(
        disagreeing=disagreeing,
        items=items,
        difference=gained / items,
        low=low,
        high=high,
        p_value=p_value,
        sentence=_predictions_sentence(a, b, disagreeing, items, gained / items, (low, high), p_value),
    )


def final_tested_step(trial: Trial) -> int:
    """Return the number of steps after which the model was tested.

    This is the recorded step if the contenders of the run ended after different steps. Otherwise it is the last trained
    step, at most the end of the last epoch: timed blocks may extend beyond it.
    """
    return trial.tested_step or min(trial.steps, trial.epochs * trial.steps_per_epoch)


def early_end_sentence(trials: Iterable[Trial]) -> str:
    """Describe after how many steps shortened trainings were tested; empty if all ran to the end."""
    tested = [(final_tested_step(trial), trial.epochs * trial.steps_per_epoch) for trial in trials]
    early = sorted(step for step, total in tested if step < total)
    if not early:
        return ""
    steps = units.format_count(early[0]) + (f" to {units.format_count(early[-1])}" if early[0] != early[-1] else "")
    return (
        f"The training did not run to its end: it was tested after {steps} of {units.format_count(tested[0][1])} steps."
    )


def _report(trial: Trial, *, output_dict: bool) -> Any:
    """Return scikit-learn's report on labels that are reconstructed from the counts."""
    import numpy as np  # imported here only: slow, and never needed in the measuring process
    from sklearn.metrics import classification_report

    names = catalog.dataset(trial.dataset).classes
    counts = np.array(confusion_rows(trial))
    true, predicted = np.indices(counts.shape).reshape(2, -1)
    return classification_report(
        np.repeat(true, counts.ravel()),
        np.repeat(predicted, counts.ravel()),
        labels=range(len(names)),
        target_names=names,
        output_dict=output_dict,
        zero_division=0,
    )


def _right(trial: Trial) -> int:
    return sum(row[label] for label, row in enumerate(confusion_rows(trial)))


def _discordant(disagreeing: int, gained: int) -> int:
    """Return the maximum number of items that exactly one model classified correctly; parity may exclude one."""
    return disagreeing - (disagreeing - gained) % 2


def _mcnemar(disagreeing: int, gained: int) -> float:
    """Return the exact two-sided p of McNemar's test, from the binomial distribution with probability 1/2."""
    discordant = _discordant(disagreeing, gained)
    return min(1.0, 2 * heads_at_most((discordant - abs(gained)) // 2, discordant))


def _accuracy_interval(disagreeing: int, gained: int, items: int) -> tuple[float, float]:
    """Return the 95 % interval of a paired difference of two shares, adjusted Wald (Bonett & Price 2012)."""
    discordant, adjusted = _discordant(disagreeing, gained) + 2, items + 2
    centre = gained / adjusted
    half = Z_95 * math.sqrt((discordant / adjusted - centre**2) / adjusted)
    return max(-1.0, centre - half), min(1.0, centre + half)


def _predictions_sentence(
    a: Trial,
    b: Trial,
    disagreeing: int,
    items: int,
    difference: float,
    interval: tuple[float, float],
    p_value: float,
) -> str:
    early = f" {said}" if (said := early_end_sentence((a, b))) else ""
    ours, theirs = inline_name(a.contender), inline_name(b.contender)
    if disagreeing == 0:
        return (
            f"{capitalize_name(ours)} and {theirs} gave the same prediction for all {units.format_count(items)} test "
            f"items.{early}"
        )
    low, high = (f"{100 * end:+.2f}" for end in interval)
    figures = (
        f"{ours} and {theirs} disagree on {units.format_count(disagreeing)} of {units.format_count(items)} test "
        "items, and the "
        f"accuracy of {theirs} is {100 * difference:+.2f} percentage points from that of {ours} (95 % interval {low} "
        f"to {high}; exact McNemar p at most {p_value:.2g})"
    )
    if p_value < SIGNIFICANT:
        return f"A difference was detected: {figures}; one run each cannot show that the device caused it.{early}"
    return f"No difference detected: {figures}; one run each cannot show that they are equal.{early}"


SegmentLosses = tuple[float, ...]

BAND_ROUNDING = 1e-4
"""Relative distance past the end of the band that still counts as inside, because of rounding: on the other contender,
the seed that defines the end has almost the same loss.
"""


@dataclass(frozen=True, kw_only=True)
class SeedBand:
    """Loss curves of two contenders over the same seeds; the curves of the baseline form the band.

    Attributes:
        steps: last step of each segment of the curves.
        low: lowest loss of the baseline's seeds, for each segment (nats); `high` is the highest.
        inside: share of the challenger's segments, over all seeds, that lie in the band up to `BAND_ROUNDING`.
        same_seed: median relative distance of the two contenders' losses with the same seed, over all segments;
            `seed_to_seed` is this distance between two seeds of the baseline.
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
    """Return the band and the position of the challenger's curves; None for fewer than two seeds.

    Raises:
        NotComparable: rows differ in more than the seed, or their curves have different segments.
    """
    pairs = seed_pairs(trials, baseline, challenger)
    if len(pairs) < 2 or not pairs[0][0].loss:
        return None
    steps = common_segments([trial for pair in pairs for trial in pair])
    if not steps:
        raise NotComparable("The loss curves cannot be overlaid: their segments end at different steps.")
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
            f"With the same seed the losses on {inline_name(challenger)} and on {inline_name(baseline)} differ by "
            f"{_percent(same)} (median), with two seeds those on {inline_name(baseline)} alone differ by "
            f"{_percent(other)}; "
            f"{units.format_share(inside)} of the curves of {inline_name(challenger)} lie within the band of "
            f"{len(pairs)} seeds."
        ),
    )


def common_segments(trials: Sequence[Trial]) -> tuple[int, ...]:
    """Return the last steps of the segments that all loss curves share; budgets may end curves at different steps."""
    columns = zip(*(trial.loss_step for trial in trials), strict=False)
    return tuple(ends[0] for ends in itertools.takewhile(lambda ends: len(set(ends)) == 1, columns))


def _median_distance(curves: Sequence[tuple[SegmentLosses, SegmentLosses]]) -> float:
    """Return the median relative distance of the losses of each pair of curves.

    Segments where both are 0 do not differ.
    """
    return statistics.median(
        2 * abs(x - y) / (x + y) if x + y else 0.0 for one, other in curves for x, y in zip(one, other, strict=True)
    )


def _percent(share: float) -> str:
    """Format a share with two digits, because shares from 1e-7 to 1 are relevant here."""
    return "0 %" if share == 0 else f"{100 * share:.2g} %"


EquivalenceVerdict = Literal["equivalent", "different", "too_few_seeds"]

MIN_SEEDS = 5
"""Fewest seeds for a verdict. The interval depends on the spread of the differences, and the spread of two or three is
often small by chance. With five seeds, the interval reaches about one standard deviation to either side, with two seeds
over four.
"""

CONFIDENCE = 0.90
"""Two one-sided tests at 5 % ask whether the 90 % interval lies within the margin (Lakens 2017)."""


@dataclass(frozen=True, kw_only=True)
class Equivalence:
    """Two contenders, trained from the same seeds.

    Attributes:
        verdict: whether the difference is smaller than the margin, larger, or undecided.
        seeds: seeds with which both were trained and tested, ascending.
        accuracies: (baseline, challenger) test accuracy of each seed, 0 to 1.
        mean: mean of challenger minus baseline accuracy over the seeds, with its 90 % interval; None below two seeds.
        margin: difference of accuracy up to which two are called equivalent.
        disagreeing: number of the test `items` with different predictions, for each seed.
        seed_to_seed: median number of test items on which two seeds of the baseline disagree; None if there is one
            seed, or if the seed also selects the test items.
    """

    baseline: str
    challenger: str
    verdict: EquivalenceVerdict
    seeds: tuple[int, ...]
    accuracies: tuple[tuple[float, float], ...]
    mean: float | None
    low: float | None
    high: float | None
    margin: float
    disagreeing: tuple[int, ...]
    items: int
    seed_to_seed: float | None

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        ours, theirs = inline_name(self.baseline), inline_name(self.challenger)
        names = f"{theirs} and {ours}"
        if self.mean is None:
            return f"Too few seeds to tell: no seed was trained and tested on both {ours} and {theirs}."
        mean, margin = _percentage_points(self.mean), f"{100 * self.margin:.2f}"
        seeds = units.format_quantity(len(self.seeds), "seed")
        if self.low is None or self.high is None:
            return f"Too few seeds to tell: {seeds}, a difference of {mean} percentage points; {MIN_SEEDS} are needed."
        interval = f"90 % interval {_percentage_points(self.low)} to {_percentage_points(self.high)}, {seeds}"
        figures = f"accuracy differs by {mean} percentage points ({interval})"
        if self.verdict == "equivalent":
            return f"Equivalent within ±{margin} percentage points: {names} learn the same, {figures}."
        if self.verdict == "different":
            return f"Different by more than {margin} percentage points: between {names} {figures}."
        if len(self.seeds) < MIN_SEEDS:
            return f"Too few seeds to tell: between {names} {figures}; {MIN_SEEDS} are needed."
        return (
            f"Too few seeds to tell: between {names} {figures}, "
            f"which neither lies within ±{margin} percentage points nor rules that range out."
        )

    @property
    def disagreement_sentence(self) -> str:
        """Number of test items with different predictions, compared with the number that another seed changes."""
        if not self.seeds:
            return "There are no predictions to compare."
        ours = inline_name(self.baseline)
        apart = (
            f"{capitalize_name(ours)} and {inline_name(self.challenger)} disagree on {_range(self.disagreeing)} of "
            f"{units.format_count(self.items)} test items with the same seed"
        )
        if self.seed_to_seed is None:
            return f"{apart}; the effect of another seed is unknown, because it was not tested on the same items."
        return f"{apart}, {ours} with another seed on {units.format_significant(self.seed_to_seed)} (median)."


def judge_equivalence(trials: Sequence[Trial], *, baseline: str, challenger: str, margin: float) -> Equivalence:
    """Judge whether two contenders learn the same, from rows of one training with several seeds.

    Rows of other contenders and untested rows do not count; for each seed the newest rows count. The margin is the
    difference of accuracy, as a share of the test items, up to which two contenders are equivalent.

    Raises:
        InvalidValue: the margin is not a share above 0, or the two contenders are one.
        NotComparable: rows differ in more than the seed, or were trained for different numbers of steps.
    """
    if not 0 < margin < 1:
        raise InvalidValue("margin", margin, "a share of the test items between 0 and 1")
    if baseline == challenger:
        raise InvalidValue("challenger", challenger, "a contender other than the baseline")
    pairs = seed_pairs(trials, baseline, challenger)
    accuracies = tuple((accuracy(ours) or 0.0, accuracy(theirs) or 0.0) for ours, theirs in pairs)
    differences = [theirs - ours for ours, theirs in accuracies]
    low, high = _mean_interval(differences)
    return Equivalence(
        baseline=baseline,
        challenger=challenger,
        verdict=_equivalence_verdict(len(pairs), low, high, margin),
        seeds=tuple(ours.seed for ours, _ in pairs),
        accuracies=accuracies,
        mean=statistics.fmean(differences) if differences else None,
        low=low,
        high=high,
        margin=margin,
        disagreeing=tuple(_count_disagreements(ours, theirs) for ours, theirs in pairs),
        items=len(pairs[0][0].predictions) if pairs else 0,
        seed_to_seed=_count_seed_changes([ours for ours, _ in pairs]),
    )


def seed_pairs(trials: Sequence[Trial], baseline: str, challenger: str) -> list[tuple[Trial, Trial]]:
    """Return (baseline row, challenger row) of each seed with which both were tested, ascending by seed.

    Raises:
        NotComparable: rows differ in more than the seed, or were trained for different numbers of steps.
    """
    tested = [trial for trial in trials if trial.confusion and trial.contender in (baseline, challenger)]
    newest = {(trial.contender, trial.seed): trial for trial in sorted(tested, key=lambda trial: trial.started_at)}
    for trial in newest.values():
        speedup.require_equal(next(iter(newest.values())), trial, speedup.SEED_COLUMNS)
    seeds = sorted({seed for _, seed in newest})
    both = [seed for seed in seeds if (baseline, seed) in newest and (challenger, seed) in newest]
    pairs = [(newest[baseline, seed], newest[challenger, seed]) for seed in both]
    for ours, theirs in pairs:
        compare_predictions(ours, theirs)  # refuses different data and numbers of steps
    return pairs


def student_quantile(freedom: int) -> float:
    """Return the 95 % quantile of Student's t with so many degrees of freedom."""
    from scipy import special  # takes half a second; only reports need it

    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2))


def _mean_interval(differences: Sequence[float]) -> tuple[float | None, float | None]:
    count = len(differences)
    if count < 2:
        return None, None
    half = student_quantile(count - 1) * statistics.stdev(differences) / math.sqrt(count)
    middle = statistics.fmean(differences)
    return middle - half, middle + half


def _equivalence_verdict(seeds: int, low: float | None, high: float | None, margin: float) -> EquivalenceVerdict:
    """Return the verdict, which is decided only if the interval lies within the margin or beyond it."""
    if seeds < MIN_SEEDS or low is None or high is None:
        return "too_few_seeds"
    if -margin < low and high < margin:
        return "equivalent"
    return "different" if low > margin or high < -margin else "too_few_seeds"


def _count_disagreements(a: Trial, b: Trial) -> int:
    return sum(x != y for x, y in zip(a.predictions, b.predictions, strict=True))


def _count_seed_changes(trials: Sequence[Trial]) -> float | None:
    """Count the predictions that another seed changes, for torchvision's fixed test items; elsewhere None."""
    if len(trials) < 2 or not catalog.dataset(trials[0].dataset).needs_files:
        return None
    if len({len(trial.predictions) for trial in trials}) > 1:
        raise NotComparable("The effect of another seed cannot be counted: the seeds have different test items.")
    return statistics.median(_count_disagreements(a, b) for a, b in combinations(trials, 2))


def _range(counts: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys(map(units.format_count, (min(counts), max(counts)))))


def _percentage_points(share: float) -> str:
    """Format a difference in percentage points with its sign; 0 has no sign."""
    said = f"{100 * share:+.2f}"
    return "0" if float(said) == 0 else said
