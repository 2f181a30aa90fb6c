"""A tutorial's published claims and numbers, and the runs measured here that answer them.

Published numbers are shown and never computed with, except for the ratio of two that were published together.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ... import units
from ...errors import CrossoverError
from ...question.demonstrations import RECIPES, SHORTCUTS
from ...question.experiment import display_name, inline_name
from ...question.fields import AXES
from ...question.presets import PRESETS, Preset, Scale
from ...question.published import Published, list_published
from ...question.sweep import size_on_axis
from ...results.schema import Trial
from .. import accuracy, speedup, study, training_cost, wording
from ..judgement import Crossover, Size
from ..verdict import Verdict
from .outcomes import SectionTable

Origin = Literal["published", "measured", "recorded"]

CLAIM_DEVICE_KINDS = {"cpu": "cpu", "gpu": "cuda"}
"""Published device → device kind; every GPU of the tutorials was NVIDIA's."""


@dataclass(frozen=True, kw_only=True)
class ChartNumber:
    """One number on a chart: seconds, or a speedup, with the ends of its interval.

    Attributes:
        series: name of its series, for a legend.
        kind: device kind, for its colour; empty for a number that refers to both devices.
        place: position on the axis, and `label` in words; None for a number that refers to the whole axis.
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
    """Return the tutorial's published claims, in sentences; every number in them is from `core.question.published`."""
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
    """Return the published seconds, each at its position on the axis."""
    return [_claim_number(entry) for entry in list_published(preset.name, "seconds")]


def clock_shortcut_sentences(preset: Preset) -> tuple[str, ...]:
    """Return the differences between the tutorial's clock and Crossover's, one sentence each."""
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
    """Return published device → median seconds per epoch; empty where epochs were not published."""
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
    """Return the ratios of times that were published together, and speedups that refer to the whole axis."""
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


AxisKind = Literal["log", "linear", "names"]


@dataclass(frozen=True, kw_only=True)
class PublishedComparison:
    """Published and measured results side by side: times in seconds per training or epoch (`per`), and speedups.

    `wins_from` is the published place from which the GPU wins, if any; `differences` lists how the two trainings
    differ.
    """

    axis: str
    axis_kind: AxisKind
    per: str
    times: tuple[ChartNumber, ...]
    speedups: tuple[ChartNumber, ...]
    wins_from: float | None
    table: SectionTable
    sentences: tuple[str, ...]
    differences: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TutorialPair:
    """The two rows of one run that are compared at one position of the axis.

    `label` is the position for an axis or a table with a title, such as "10 × 1"; `name` is its form for a sentence.
    """

    place: float
    label: str
    name: str
    baseline: Trial
    challenger: Trial

    @property
    def speedup(self) -> Verdict | None:
        """Verdict on the challenger against the baseline; None if the rows cannot be compared."""
        try:
            return speedup.speedup(self.baseline, self.challenger)
        except CrossoverError:
            return None


def compare_with_published(
    preset: Preset, scale: Scale, rows: Sequence[Trial], *, baseline: str, challenger: str, origin: Origin = "measured"
) -> PublishedComparison | None:
    """Compare measured results with published ones; return None if no run has both devices.

    The rows are of the tutorial's training or sweep at this scale, from one machine. Devices are given in written form.
    """
    pairs = _tutorial_pairs(preset, scale, rows, baseline, challenger)
    if not pairs:
        return None
    entries = list_published(preset.name)
    axis, kind = _axis(preset, scale)
    per = next((entry.per for entry in entries if entry.per), "epoch" if kind == "names" else "training")
    measured = _epoch_numbers(pairs[0], origin) if not preset.axes else _training_numbers(pairs, per, origin)
    theirs = claim_times(preset)
    crossover = _find_crossover(preset, pairs)
    at_size = {entry.size: entry for entry in crossover.sizes} if crossover else {}
    figures = {pair.place: at_size.get(pair.place) or pair.speedup for pair in pairs} if preset.axes else {}
    speedups = [mark for pair in pairs if (mark := _speedup_mark(pair, figures.get(pair.place), origin))]
    return PublishedComparison(
        axis=axis,
        axis_kind=kind,
        per=per,
        times=(*theirs, *measured),
        speedups=(*claim_speedups(preset), *speedups) if speedups else (),
        wins_from=next((entry.value for entry in entries if entry.quantity == "wins_from"), None),
        table=_comparison_table(axis, theirs, measured, figures, origin),
        sentences=(
            *claim_sentences(preset),
            *(f"{origin.capitalize()}: {said}" for said in _claim_answers(preset, pairs, crossover)),
        ),
        differences=_difference_sentences(preset, scale, pairs),
    )


def cover_published(preset: Preset, scale: Scale) -> PublishedComparison | None:
    """Return only the published times of the CPU, to ask about the GPU; None if no times were published."""
    theirs = [mark for mark in claim_times(preset) if mark.kind == "cpu" and mark.place is not None]
    if not theirs:
        return None
    axis, kind = _axis(preset, scale)
    per = next((entry.per for entry in list_published(preset.name) if entry.per), "training")
    return PublishedComparison(
        axis=axis,
        axis_kind=kind,
        per=per,
        times=tuple(theirs),
        speedups=(),
        wins_from=None,
        table=SectionTable(title="Published", header=(), rows=()),
        sentences=(),
        differences=(),
    )


def _axis(preset: Preset, scale: Scale) -> tuple[str, AxisKind]:
    axes = preset.axes_at_scale(scale)
    if not axes:
        return "epoch", "linear"
    if len(axes) > 1:
        return " × ".join(axis.title for axis in axes), "names"
    return axes[0].title, "linear" if axes[0].name == "depth" else "log"


def _tutorial_pairs(
    preset: Preset, scale: Scale, rows: Sequence[Trial], baseline: str, challenger: str
) -> list[TutorialPair]:
    names = [axis.name for axis in preset.axes_at_scale(scale)]
    both = speedup.find_timed_pairs(rows, baseline, challenger)
    placed = [(tuple(size_on_axis(base, name) for name in names), base, other) for base, other in both]
    return [
        TutorialPair(
            place=sizes[0] if len(names) == 1 else float(number),
            label=" × ".join(map(wording.format_size, sizes)),
            name=", ".join(
                f"{AXES[name]} {wording.format_size(size)}" for name, size in zip(names, sizes, strict=True)
            ),
            baseline=base,
            challenger=other,
        )
        for number, (sizes, base, other) in enumerate(sorted(placed, key=lambda entry: entry[0]))
    ]


def _training_s(row: Trial, per: str) -> float:
    """Return the seconds of an epoch or of the requested training, from the median step."""
    step_s = statistics.median(row.step_s)
    return step_s * row.steps_per_epoch * (row.epochs if per == "training" else 1)


def _training_numbers(pairs: Sequence[TutorialPair], per: str, origin: Origin) -> list[ChartNumber]:
    rows = [*((pair, pair.baseline) for pair in pairs), *((pair, pair.challenger) for pair in pairs)]
    return [_time_number(row, _training_s(row, per), origin, pair.place, pair.label) for pair, row in rows]


def _epoch_numbers(pair: TutorialPair, origin: Origin) -> list[ChartNumber]:
    """Return the numbers of each epoch for a tutorial that varies nothing."""
    return [
        _time_number(row, seconds, origin, number, str(number))
        for row in (pair.baseline, pair.challenger)
        for number, seconds in enumerate(training_cost.epoch_times(row), start=1)
    ]


def _time_number(row: Trial, seconds: float, origin: Origin, place: float, label: str) -> ChartNumber:
    series = f"{origin}: {display_name(row.contender)}"
    return ChartNumber(series=series, origin=origin, kind=row.device_kind, value=seconds, place=place, label=label)


Figure = Verdict | Size
"""A speedup with its interval: of one run, or of a size of a study, whose noise is pooled over all sizes."""


def _find_crossover(preset: Preset, pairs: Sequence[TutorialPair]) -> Crossover | None:
    """Return the crossover of a tutorial with one axis; None for other tutorials, and for incomparable rows."""
    if len(preset.axes) != 1:
        return None
    rows = [row for pair in pairs for row in (pair.baseline, pair.challenger)]
    found = study.studies(rows, axis=preset.axes[0].name, least=1)
    return found[0].crossover() if found else None


def _value(ratio: Figure | None) -> float | None:
    return ratio.speedup if isinstance(ratio, Size) else ratio.value if ratio else None


def _speedup_mark(pair: TutorialPair, ratio: Figure | None, origin: Origin) -> ChartNumber | None:
    value = _value(ratio)
    if ratio is None or value is None:
        return None
    return ChartNumber(
        series=f"{origin}: {display_name(pair.challenger.contender)}",
        origin=origin,
        kind=pair.challenger.device_kind,
        value=value,
        place=pair.place,
        label=pair.label,
        low=ratio.low,
        high=ratio.high,
    )


def _comparison_table(
    axis: str,
    published_numbers: Sequence[ChartNumber],
    measured_numbers: Sequence[ChartNumber],
    figures: Mapping[float, Figure | None],
    origin: Origin,
) -> SectionTable:
    """Return a line for each position: the speedup, if readings give one, and measured and published times.

    The most important columns are first: a narrow window shows only these.
    """
    marks = [*measured_numbers, *published_numbers]
    series = list(dict.fromkeys(mark.series for mark in marks))
    places = {mark.place: mark.label for mark in marks if mark.place is not None}
    cells = {(mark.series, mark.place): _time(mark) for mark in marks}
    lines = []
    for place in sorted(places):
        said = (_speedup_text(figures.get(place)),) if figures else ()
        lines.append((places[place], *said, *(cells.get((name, place), "") for name in series)))
    header = (axis.capitalize(), *((f"speedup, {origin}",) if figures else ()), *series)
    return SectionTable(title=f"Published and {origin}", header=header, rows=tuple(lines))


def _time(mark: ChartNumber) -> str:
    off_s = None if mark.high is None else mark.high - mark.value
    spread = "" if off_s is None else f" ± {units.format_duration(off_s, 2)}"
    return f"{units.format_duration(mark.value)}{spread}"


def _speedup_text(ratio: Figure | None) -> str:
    value = _value(ratio)
    if ratio is None or value is None or ratio.low is None or ratio.high is None:
        return "" if ratio is None else f"unknown: {ratio.reason}"
    return f"{units.format_ratio(value)} ({units.format_interval(ratio.low, ratio.high, units.format_ratio)})"


def _claim_answers(preset: Preset, pairs: Sequence[TutorialPair], crossover: Crossover | None) -> tuple[str, ...]:
    """Return how the rows answer the tutorial's claim."""
    if len(preset.axes) == 1:
        return (crossover.sentence if crossover else "the rows cannot be compared.",)
    if preset.axes:
        return (_grid_sentence(pairs),)
    ratio = pairs[0].speedup
    alone = ratio.sentence if ratio else "the rows cannot be compared."
    return (alone, *_accuracies(pairs[0]))


def _grid_sentence(pairs: Sequence[TutorialPair]) -> str:
    known = {pair.name: ratio.value for pair in pairs if (ratio := pair.speedup) and ratio.value is not None}
    names = f"{display_name(pairs[0].challenger.contender)} against {display_name(pairs[0].baseline.contender)}"
    if not known:
        return f"no cell of the grid gives a speedup of {names} yet."
    low, high = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    return (
        f"{names}, from {units.format_ratio(known[low])} ({low}) to {units.format_ratio(known[high])} ({high}) over "
        f"{units.format_quantity(len(known), 'cell')} of the grid."
    )


def _accuracies(pair: TutorialPair) -> tuple[str, ...]:
    shares = {inline_name(row.contender): accuracy.accuracy(row) for row in (pair.baseline, pair.challenger)}
    known = [f"{100 * share:.1f} % on {name}" for name, share in shares.items() if share is not None]
    epochs = pair.baseline.epochs
    return (f"a test accuracy of {' and '.join(known)} after epoch {epochs}.",) if known else ()


def _difference_sentences(preset: Preset, scale: Scale, pairs: Sequence[TutorialPair]) -> tuple[str, ...]:
    """Return why the numbers may differ: hardware, year and size."""
    entries, (base, other) = list_published(preset.name), (pairs[0].baseline, pairs[0].challenger)
    named = list(dict.fromkeys(entry.device_name for entry in entries if entry.device_name))
    theirs = f"on {' and '.join(named)}" if named else "on unnamed devices"
    date = entries[0].date if entries and entries[0].date else "without a date"
    differences = [
        f"Hardware and year: published {theirs}, {date}; these rows are from {base.started_at[:10]}, "
        f"{speedup.contender_label(base)} and {speedup.contender_label(other)}, torch {base.torch_version}."
    ]
    if speedup.is_host(other):
        threads = " and ".join(dict.fromkeys(units.format_quantity(row.threads, "thread") for row in (base, other)))
        differences.append(
            f"No accelerator took part: {inline_name(base.contender)} and {inline_name(other.contender)} are one "
            "processor with "
            f"{threads}, so these rows can neither confirm nor refute a claim on GPUs."
        )
    if base.dataset != PRESETS[preset.name].point.dataset:
        differences.append(f"Data: {preset.note}")
    if scale == "class":
        differences.append(f"Size: these rows were measured at the class scale. {preset.class_note}")
    return tuple(differences)
