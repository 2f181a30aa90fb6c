"""Who contends where nobody said, on a page, on the command line and in a class alike."""

from collections.abc import Iterable

from core.question.experiment import Contender


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
