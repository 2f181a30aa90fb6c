"""How a contender's measurement ends: after which step it is tested, and what its row says became of it."""

from collections.abc import Sequence

from core.measure.contender import MeasuredContender
from core.question.experiment import EVERY_EPOCH, Experiment
from core.question.usual import LOOKS
from core.results.schema import Outcome


def final_outcome(measured: MeasuredContender, experiment: Experiment, pairs: int, *, cut: bool) -> tuple[Outcome, str]:
    """Outcome of a contender that was measured to the end, and the message of its row; `cut` if not all was trained."""
    if measured.curve.diverged:
        return "diverged", "The loss became NaN or infinite; a smaller learning rate may help."
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
    """The step after which all are tested, so that what they learned can be compared; 0 for none.

    A budget ends for each after another step. Of these it is the one that all reach in the least time: who is behind
    trains on, who is ahead trains anew up to there. For two that takes at most a third of the time of their blocks.
    """

    def extra_s(step: int) -> float:
        more = ((step - one.counted if step >= one.counted else step, one.raw.step_s or 0.0) for one in contenders)
        return sum(steps * step_s for steps, step_s in more)

    return min((one.counted for one in contenders), key=extra_s, default=0)
