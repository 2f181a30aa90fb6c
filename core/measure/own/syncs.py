"""Times that CUDA makes the host wait within a step, as its own debug mode tells them.

Sees what the dispatcher does not know of: copies from memory that is not pinned, an index by a mask, what a library
asks the driver for. It misses waits that PyTorch did not mark, says PyTorch.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

SYNC_WARNING = "synchronizing CUDA operation"
"""What such a warning has in its text."""


@dataclass
class Syncs:
    """What was counted, an entry a step.

    Attributes:
        times: that the host had to wait.
        places: where, each with how often.
    """

    times: list[int] = field(default_factory=list)
    places: Counter[str] = field(default_factory=Counter)

    @property
    def place(self) -> str:
        """File and line of most of them; empty if not known."""
        return self.places.most_common(1)[0][0] if self.places else ""


def count_syncs(step: Callable[[], object], steps: int, device: torch.device, owns: Callable[[str], bool]) -> Syncs:
    """Do some steps, and count what each makes the host wait for; nothing where the device is none of CUDA's.

    Args:
        step: trains one.
        steps: how many.
        device: that it trains on.
        owns: whether a file is one of those that are told as a place.
    """
    found = Syncs()
    if device.type != "cuda" or torch.version.hip:
        return found
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        for _ in range(steps):
            _count_step_syncs(step, found, owns)
    finally:
        torch.cuda.set_sync_debug_mode(before)
    return found


def _count_step_syncs(step: Callable[[], object], syncs: Syncs, owns: Callable[[str], bool]) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        step()
    waits = [each for each in told if SYNC_WARNING in str(each.message)]
    syncs.times.append(len(waits))
    syncs.places.update(f"{Path(each.filename).name}:{each.lineno}" for each in waits if owns(each.filename))
