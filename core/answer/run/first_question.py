"""The training that is asked for first where nobody said which: one whose answer teaches, on this machine too."""

from collections.abc import Callable, Mapping, Sequence

from core.answer.run.speedup import speedup
from core.question.experiment import Contender, Experiment, Point
from core.results.schema import Trial

FIRST_SIZES = (1_024, 2_048, 4_096)
"""Hidden sizes to begin with, the usual one first: in the rows of the gallery all threads beat one by more than
`CLEAR_SPEEDUP` from 512 neurons on, so 1,024 are well beyond. A larger one is taken where rows of this machine say
otherwise."""

CLEAR_SPEEDUP = 1.2
"""Speedup from which a first answer is no close call, lower end of its interval."""


def first_training(
    contenders: Sequence[Contender], answers: Callable[[Sequence[Experiment]], Mapping[str, Sequence[Trial]]]
) -> Point:
    """The first training for these contenders: several threads of a CPU get a size at which threads matter.

    Args:
        contenders: who contends, by `core.question.usual`.
        answers: the stored runs of this machine by the id of the experiment, of those that have one.
    """
    if len(contenders) < 2 or not all(contender.on_host for contender in contenders):
        return Point()
    pair = tuple(contenders)
    asked = [Experiment(point=Point(hidden_size=size), contenders=pair, whole=False) for size in FIRST_SIZES]
    known = answers(asked)
    left = [experiment.point for experiment in asked if _is_clear(known.get(experiment.id, ()))]
    return left[0] if left else asked[-1].point


def _is_clear(rows: Sequence[Trial]) -> bool:
    """Whether more threads were clearly faster, or nothing says that they are not."""
    if not rows:
        return True
    low = speedup(rows[0], rows[-1]).low
    return low is not None and low >= CLEAR_SPEEDUP
