"""What a tutorial published: its claims in sentences, its numbers as places of a chart, and how it times.

Published numbers are shown and never computed with, but for the ratio of two that were published together.
"""

import statistics
from dataclasses import dataclass
from typing import Literal

from core import units
from core.answer.study import wording
from core.question.demonstration import RECIPES, SHORTCUTS
from core.question.presets import Preset
from core.question.published.tutorials import Published, published

Origin = Literal["published", "measured", "recorded"]

KINDS = {"cpu": "cpu", "gpu": "cuda"}
"""Published device → device kind; every GPU of the tutorials was NVIDIA's."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number on a chart: seconds, or a speedup, with the ends of what is known of it.

    Attributes:
        series: what it belongs to, for a legend.
        kind: device kind, for its colour; empty for a number that is about both devices.
        place: where on the axis, and `label` in words; None for a number that is about the whole axis.
    """

    series: str
    origin: Origin
    kind: str
    value: float
    place: float | None
    label: str
    low: float | None = None
    high: float | None = None


def sentences(preset: Preset) -> tuple[str, ...]:
    """What the tutorial published, in sentences; every number in them is one of `core.question.published.tutorials`."""
    said = [_claim(entry) for entry in published(preset.name) if entry.quantity in ("wins_from", "speedup")]
    epochs = _medians(preset)
    if epochs:
        cpu_s, gpu_s = epochs["cpu"], epochs["gpu"]
        said.append(
            f"Published: an epoch took {units.duration(cpu_s)} on the CPU and {units.duration(gpu_s)} on the GPU "
            f"(medians), so the GPU was {units.ratio(cpu_s / gpu_s)} as fast."
        )
    shares = published(preset.name, "accuracy")
    if shares:
        listed = " and ".join(f"{100 * entry.value:.1f} % after epoch {entry.epoch}" for entry in shares)
        said.append(f"Published: a test accuracy of {listed}, on both devices.")
    return tuple(said)


def times(preset: Preset) -> list[Number]:
    """Published seconds, each at its place."""
    return [_number(entry) for entry in published(preset.name, "seconds")]


def protocol(preset: Preset) -> tuple[str, ...]:
    """What the tutorial's clock does otherwise than ours, a sentence each."""
    return tuple(SHORTCUTS[name] for name in RECIPES[preset.name].switched)


def _claim(entry: Published) -> str:
    if entry.quantity == "wins_from":
        place = wording.place(entry.axis, wording.size(entry.value))
        return f"Published: the GPU wins from {place} on. {entry.note}"
    where = f" at {wording.place(entry.axis, wording.size(entry.size))}" if entry.size is not None else ""
    spread = f" (± {entry.plus_minus:g})" if entry.plus_minus else ""
    return f"Published: the GPU is {entry.value:g}× as fast{where}{spread}. {entry.note}"


def _medians(preset: Preset) -> dict[str, float]:
    """Published device → median seconds an epoch; empty where epochs were not published."""
    entries = [entry for entry in published(preset.name, "seconds") if entry.epoch is not None]
    by_device = {name: [entry.value for entry in entries if entry.device == name] for name in KINDS}
    return {name: statistics.median(values) for name, values in by_device.items() if values}


def _number(entry: Published) -> Number:
    named = f" {entry.device_name}" if entry.device_name else ""
    place = entry.size if entry.size is not None else entry.epoch
    spread = entry.plus_minus or 0.0
    return Number(
        series=f"published: {entry.device.upper()}{named}",
        origin="published",
        kind=KINDS.get(entry.device, ""),
        value=entry.value,
        place=place,
        label=wording.size(place) if place is not None else "",
        low=entry.value - spread if spread else None,
        high=entry.value + spread if spread else None,
    )


def speedups(preset: Preset) -> list[Number]:
    """The ratio of times that were published together, and a speedup that is about the whole axis."""
    entries = published(preset.name, "seconds")
    by_place = {(entry.device, entry.size): entry for entry in entries if entry.size is not None}
    ratios = [
        _ratio(cpu, gpu, size)
        for (device, size), cpu in by_place.items()
        if device == "cpu" and size is not None and (gpu := by_place.get(("gpu", size)))
    ]
    return ratios + [
        Number(series="published", origin="published", kind="", value=entry.value, place=None, label="")
        for entry in published(preset.name, "speedup")
        if entry.size is None
    ]


def _ratio(cpu: Published, gpu: Published, size: float) -> Number:
    off_cpu, off_gpu = cpu.plus_minus or 0.0, gpu.plus_minus or 0.0
    return Number(
        series="published",
        origin="published",
        kind="",
        value=cpu.value / gpu.value,
        place=size,
        label=wording.size(size),
        low=(cpu.value - off_cpu) / (gpu.value + off_gpu),
        high=(cpu.value + off_cpu) / (gpu.value - off_gpu),
    )
