"""Whether contenders differ at all, once it is known with how many threads each trains."""

from collections.abc import Sequence

from core import units
from core.errors import SameTraining
from core.question.experiment import Contender


def check_distinct(contenders: Sequence[Contender], threads: Sequence[int]) -> None:
    """Refuse a comparison of a training with itself; `threads` are those with which each would train.

    Raises:
        SameTraining: there are several, and all train on the same device in the same lane on equally many threads.
    """
    sorts = {(one.device, one.lane, count) for one, count in zip(contenders, threads, strict=True)}
    if len(contenders) < 2 or len(sorts) > 1:
        return
    names = " and ".join(f"{one}" for one in contenders)
    raise SameTraining(
        f"Nothing was measured: {names} turned out to be the same training on "
        f"{units.format_quantity(threads[0], 'thread')}. "
        "Give each a number of threads of its own, or take a larger model, for which more threads may pay."
    )
