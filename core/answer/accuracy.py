"""Comparison of what devices learn: classification reports, test accuracy and differing predictions.

All results are computed from the stored counts and predictions. Predictions are called equal only if they agree on
every test item, and one run on each device shows nothing about other seeds.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .. import units
from ..errors import InvalidValue, NotComparable
from ..question import catalog
from ..question.devices import capitalize_name
from ..question.experiment import inline_name
from ..results.schema import Trial
from .comparable import require_equal
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
