"""What the four tutorials published, as data: numbers of their authors, on their machines, in their ways of timing.

Kept apart from everything that is measured: no statistic ever takes one of these in, and none is a row of the store.
A page shows them beside one's own rows, marked as published. Where a number was read off a figure, `plus_minus` says
how far it may be off.
"""

from dataclasses import dataclass
from typing import Any, Literal

Quantity = Literal["seconds", "speedup", "accuracy", "wins_from"]
"""What a published number is of.

- seconds: time, per `per`.
- speedup: CPU time over GPU time.
- accuracy: share of right answers on the test samples, 0 to 1.
- wins_from: size on `axis` from which the GPU is said to win.
"""


@dataclass(frozen=True, kw_only=True)
class Published:
    """One published number.

    Attributes:
        preset: name in `core.question.presets`.
        quantity: what the number is of.
        value: the number itself, in the unit of its quantity.
        device: `cpu` or `gpu`; empty for a number that is about both.
        device_name: what the author names; empty if nothing.
        axis: what the tutorial varies, as in `core.question.sweep`; empty where nothing is varied.
        size: where on that axis the number was taken; None where nothing is varied, and for `wins_from`.
        plus_minus: how far the number may be off, in its own unit; 0 if it was printed, None if nothing is known.
        per: what the seconds are of: `training` or `epoch`; empty elsewhere.
        epoch: which epoch, counted from 1; None where epochs are not told apart.
        source: who published it.
        date: when, ISO 8601; empty if the page bears no date.
        note: how it was come by, in one sentence.
    """

    preset: str
    quantity: Quantity
    value: float
    source: str
    date: str
    note: str
    device: str = ""
    device_name: str = ""
    axis: str = ""
    size: float | None = None
    plus_minus: float | None = None
    per: str = ""
    epoch: int | None = None


def list_published(preset: str, quantity: Quantity | None = None) -> tuple[Published, ...]:
    """Everything that one tutorial published, or only its numbers of one quantity; empty for an unknown preset."""
    return tuple(entry for entry in PUBLISHED if entry.preset == preset and quantity in (None, entry.quantity))


_DISC: dict[str, Any] = {"preset": "disc", "source": "Penny Xu", "date": "2019-09-04"}
_SIGNAL: dict[str, Any] = {"preset": "signal", "source": "HSF Training", "date": ""}
_MNIST: dict[str, Any] = {"preset": "mnist-linear", "source": "Standalone deep-learning lab #12", "date": ""}
_FASHION: dict[str, Any] = {"preset": "fashion-cnn", "source": "deeplizard", "date": "2020-05-19"}

_READ_OFF = "Read off the published figure by eye; one run, the device was not drained before the clock was started."
_PRINTED = "Printed by the tutorial; an epoch is training, validation and test together."

_CPU_S = {5: 180.0, 10: 180.0, 100: 200.0, 1_000: 680.0, 2_000: 2_430.0}
_GPU_S = {5: 505.0, 10: 555.0, 100: 505.0, 1_000: 505.0, 2_000: 505.0}
_READ_OFF_S = 15.0
"""The signal tutorial: seconds of a training by neurons of each hidden layer, and how far a reading may be off."""

_EPOCHS_S = {"cpu": (14.4, 14.7, 15.2, 14.6, 14.4), "gpu": (14.5, 15.2, 15.8, 14.5, 14.1)}
_ACCURACY = {1: 0.884, 5: 0.907}
"""The MNIST lab: seconds of each epoch, and the test accuracy after the first and the last, on both devices."""

PUBLISHED: tuple[Published, ...] = (
    Published(
        axis="depth",
        quantity="wins_from",
        value=10,
        note="About 700,000 parameters; one run a depth, timed without draining the device.",
        **_DISC,
    ),
    *(
        Published(
            device=device,
            device_name=name,
            axis="hidden_size",
            size=size,
            quantity="seconds",
            value=seconds,
            plus_minus=_READ_OFF_S,
            per="training",
            note=_READ_OFF,
            **_SIGNAL,
        )
        for device, name, times in (("cpu", "x86_64", _CPU_S), ("gpu", "P100-PCIe", _GPU_S))
        for size, seconds in times.items()
    ),
    Published(
        axis="hidden_size",
        quantity="wins_from",
        value=1_000,
        note="The text says at least 1,000; the lines of its own figure, whose x-axis is not to scale, cross below.",
        **_SIGNAL,
    ),
    Published(
        axis="hidden_size",
        size=2_000,
        quantity="speedup",
        value=4.5,
        plus_minus=0.5,
        note="The text says 4 to 5 times.",
        **_SIGNAL,
    ),
    *(
        Published(
            device=device,
            quantity="seconds",
            value=seconds,
            plus_minus=0.0,
            per="epoch",
            epoch=epoch,
            note=_PRINTED,
            **_MNIST,
        )
        for device, times in _EPOCHS_S.items()
        for epoch, seconds in enumerate(times, start=1)
    ),
    *(
        Published(quantity="accuracy", value=share, epoch=epoch, note="About the same on both devices.", **_MNIST)
        for epoch, share in _ACCURACY.items()
    ),
    Published(
        quantity="speedup",
        value=2.0,
        note="About twice; the GPU came first at every batch size and number of workers, one epoch a run.",
        **_FASHION,
    ),
)
"""Every published number, tutorial by tutorial."""
