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
from core.question.published.tutorials import Published, list_published

Origin = Literal["published", "measured", "recorded"]

CLAIM_DEVICE_KINDS = {"cpu": "cpu", "gpu": "cuda"}
"""Published device → device kind; every GPU of the tutorials was NVIDIA's."""


@dataclass(frozen=True, kw_only=True)
class ChartNumber:
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


def claim_sentences(preset: Preset) -> tuple[str, ...]:
    """What the tutorial published, in sentences; every number in them is one of `core.question.published.tutorials`."""
    said = [_claim(entry) for entry in list_published(preset.name) if entry.quantity in ("wins_from", "speedup")]
    epochs = _epoch_medians(preset)
    if epochs:
        cpu_s, gpu_s = epochs["cpu"], epochs["gpu"]
        said.append(
            f"Published: an epoch took {units.format_duration(cpu_s)} on the CPU and {units.format_duration(gpu_s)} "
            "on the GPU "
            f"(medians), so the GPU was {units.format_ratio(cpu_s / gpu_s)} as fast."
        )
    shares = list_published(preset.name, "accuracy")
    if shares:
        listed = " and ".join(f"{100 * entry.value:.1f} % after epoch {entry.epoch}" for entry in shares)
        said.append(f"Published: a test accuracy of {listed}, on both devices.")
    return tuple(said)


def claim_times(preset: Preset) -> list[ChartNumber]:
    """Published seconds, each at its place."""
    return [_claim_number(entry) for entry in list_published(preset.name, "seconds")]


def clock_shortcut_sentences(preset: Preset) -> tuple[str, ...]:
    """What the tutorial's clock does otherwise than ours, a sentence each."""
    return tuple(SHORTCUTS[name] for name in RECIPES[preset.name].switched)


def _claim(entry: Published) -> str:
    if entry.quantity == "wins_from":
        place = wording.place_on_axis(entry.axis, wording.format_size(entry.value))
        return f"Published: the GPU wins from {place} on. {entry.note}"
    where = (
        f" at {wording.place_on_axis(entry.axis, wording.format_size(entry.size))}" if entry.size is not None else ""
    )
    spread = f" (± {entry.plus_minus:g})" if entry.plus_minus else ""
    return f"Published: the GPU is {entry.value:g}× as fast{where}{spread}. {entry.note}"


def _epoch_medians(preset: Preset) -> dict[str, float]:
    """Published device → median seconds an epoch; empty where epochs were not published."""
    entries = [entry for entry in list_published(preset.name, "seconds") if entry.epoch is not None]
    by_device = {name: [entry.value for entry in entries if entry.device == name] for name in CLAIM_DEVICE_KINDS}
    return {name: statistics.median(values) for name, values in by_device.items() if values}


def _claim_number(entry: Published) -> ChartNumber:
    named = f" {entry.device_name}" if entry.device_name else ""
    place = entry.size if entry.size is not None else entry.epoch
    spread = entry.plus_minus or 0.0
    return ChartNumber(
        series=f"published: {entry.device.upper()}{named}",
        origin="published",
        kind=CLAIM_DEVICE_KINDS.get(entry.device, ""),
        value=entry.value,
        place=place,
        label=wording.format_size(place) if place is not None else "",
        low=entry.value - spread if spread else None,
        high=entry.value + spread if spread else None,
    )


def claim_speedups(preset: Preset) -> list[ChartNumber]:
    """The ratio of times that were published together, and a speedup that is about the whole axis."""
    entries = list_published(preset.name, "seconds")
    by_place = {(entry.device, entry.size): entry for entry in entries if entry.size is not None}
    ratios = [
        _ratio(cpu, gpu, size)
        for (device, size), cpu in by_place.items()
        if device == "cpu" and size is not None and (gpu := by_place.get(("gpu", size)))
    ]
    return ratios + [
        ChartNumber(series="published", origin="published", kind="", value=entry.value, place=None, label="")
        for entry in list_published(preset.name, "speedup")
        if entry.size is None
    ]


def _ratio(cpu: Published, gpu: Published, size: float) -> ChartNumber:
    off_cpu, off_gpu = cpu.plus_minus or 0.0, gpu.plus_minus or 0.0
    return ChartNumber(
        series="published",
        origin="published",
        kind="",
        value=cpu.value / gpu.value,
        place=size,
        label=wording.format_size(size),
        low=(cpu.value - off_cpu) / (gpu.value + off_gpu),
        high=(cpu.value + off_cpu) / (gpu.value - off_gpu),
    )
