"""Whether a lane computed the same numbers as plain eager fp32: its first losses beside those of plain steps.

Both were trained from the same weights on the same batches on the same device, so they differ by rounding alone, if
the lane keeps the mathematics. One that does not is other mathematics, or wrong; which of the two, is said.
"""

import itertools
import math
from dataclasses import dataclass

from .. import units
from ..errors import InvalidValue
from ..question.experiment import inline_name
from ..question.lanes import Lane
from ..results.schema import Trial

TOLERANCE = 1e-4
"""Largest relative difference of a loss that rounding explains in the first steps.

fp32 rounds to 6e-8. Another order of summation changes a loss of the first step by some 1e-7, and training carries
that on: after 20 steps of the tutorials' networks, compiled steps, fused updates and micro-batches differ by 1e-7 to
2e-6. A hundred times that is still out of reach of a mistake: a learning rate that is 1 % off, a batch in another
order or inputs rounded to TF32 change a loss by 1e-3 and more."""

ROUNDING_GROWTH = 10
"""Times that a lane's losses may differ by what plain ones do whose weights were moved by some roundings at first. Some
trainings carry rounding on and on: that of a small ResNet with a learning rate of 0.1 went from 1e-7 after five steps
to 5e-4 after eight. A lane rounds at other places, so its losses go apart some steps earlier or later."""


@dataclass(frozen=True, kw_only=True)
class LaneAgreement:
    """How far a lane's first losses are from plain ones.

    Attributes:
        difference: largest relative difference of a loss; infinite where only one of both is a number.
        within: whether each loss differs by no more than rounding explains.
        same_mathematics: whether the lane promises that it is.
    """

    difference: float
    steps: int
    within: bool
    same_mathematics: bool
    sentence: str

    @property
    def broken(self) -> bool:
        """Whether a lane that promises the same mathematics did not keep it."""
        return self.same_mathematics and not self.within


def check_lane(trial: Trial) -> LaneAgreement | None:
    """Hold a lane's first losses against plain ones; None where nothing was compared, as in the plain lane itself."""
    pairs = list(zip(trial.lane_loss, trial.reference_loss, strict=False))
    lane = find_lane(trial)
    if not pairs or lane is None:
        return None
    differences = [_difference(mine, plain) for mine, plain in pairs]
    explained = _rounding_limits(trial, len(pairs))
    within = all(found <= allowed for found, allowed in zip(differences, explained, strict=True))
    return LaneAgreement(
        difference=max(differences),
        steps=len(pairs),
        within=within,
        same_mathematics=lane.has_same_numerics,
        sentence=_lane_sentence(trial, lane, max(differences), len(pairs), within=within),
    )


def _rounding_limits(trial: Trial, steps: int) -> list[float]:
    """By how much rounding explains that each of the first losses differs."""
    apart = map(_difference, trial.nudged_loss, trial.reference_loss)
    carried = [*itertools.accumulate(apart, max)]
    known = [max(TOLERANCE, ROUNDING_GROWTH * found) if math.isfinite(found) else math.inf for found in carried]
    return [*known, *[TOLERANCE] * steps][:steps]


def find_lane(trial: Trial) -> Lane | None:
    """The lane of a row; None where this version does not know it."""
    try:
        return Lane.from_row(trial)
    except InvalidValue:
        return None


def lane_title(trial: Trial) -> str:
    """The lane of a row for people; empty for the plain one, and for one that this version does not know."""
    lane = find_lane(trial)
    return lane.title if lane else ""


def lane_warning(*trials: Trial) -> str:
    """What a verdict has to mention of its lanes, in one or more sentences; empty if there is nothing."""
    found = [(trial, check_lane(trial)) for trial in trials]
    told = [known.sentence for _, known in found if known and (known.broken or not known.same_mathematics)]
    return " ".join(told)


def _difference(loss: float, plain_loss: float) -> float:
    if loss == plain_loss or (math.isnan(loss) and math.isnan(plain_loss)):
        return 0.0
    found = abs(loss - plain_loss) / max(abs(plain_loss), 1e-12)
    return found if math.isfinite(found) else math.inf


def _lane_sentence(trial: Trial, lane: Lane, difference: float, steps: int, *, within: bool) -> str:
    on = f"Training on {inline_name(trial.contender)}"
    first, differ = (f"the first {steps} losses", "differ") if steps > 1 else ("the first loss", "differs")
    if lane.has_same_numerics and within:
        carried = "" if difference <= TOLERANCE else "; plain steps that begin some roundings apart differ as much"
        return (
            f"{on} computes what plain steps compute: {first} {differ} by {_difference_text(difference)} at "
            f"most{carried}."
        )
    if lane.has_same_numerics:
        return (
            f"{on} does not compute what plain steps compute: {first} {differ} by up to "
            f"{_difference_text(difference)}, where rounding explains {_difference_text(TOLERANCE)}, so its times "
            "are of another training."
        )
    return (
        f"{on} uses other mathematics: {first} {differ} from {'plain ones' if steps > 1 else 'the plain one'} by up to "
        f"{_difference_text(difference)}."
    )


def _difference_text(difference: float) -> str:
    """A relative difference for people: 1.2e-7 → "1 part in 8,300,000"."""
    if not math.isfinite(difference):
        return "more than any number"
    if difference >= 0.01:
        return units.format_share(difference)
    return f"1 part in {float(f'{1 / difference:.1e}'):,.0f}" if difference else "nothing"
