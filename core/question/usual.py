"""Who contends where nobody said, on a page, on the command line and in a class alike, and how long a run goes on."""

from collections.abc import Iterable

from core.question.experiment import Contender

LOOKS = (10, 12, 14, 16, 20, 25, 30, 40, 50, 60)
"""Pairs of blocks after which a run looks whether its verdict is certain, and ends if so; after the last it ends at all
events. Each look is paid for (`core.answer.run.certainty`): more of them would make each need more pairs."""


def contenders(devices: Iterable[str], cores: int) -> tuple[Contender, ...]:
    """The CPU against the first accelerator; without one, one thread of the CPU against all of them.

    Both numbers of threads are said: a `cpu` that tries several may find that one thread is the fastest, and the two
    would be one and the same.

    Args:
        devices: of this machine.
        cores: that the measuring process may use; where it is one, there is nobody to contend with.
    """
    for device in devices:
        if device != "cpu":
            return Contender(), Contender(device=device)
    return tuple(Contender(threads=count) for count in sorted({1, cores}))
