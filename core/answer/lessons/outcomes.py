"""Results of the demonstrations of lessons, in figures and sentences, and whether a prediction was right.

Every sentence with a number is computed from its exhibit.

A section has sentences, charts, tables, code and notes of a tutorial, a lesson or a case. Pages, students' reports and
the command line show the same sections.
"""

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ... import units
from ...errors import CrossoverError
from ...question.experiment import inline_name
from ...question.lanes import capitalize_name
from ...question.presets import Preset
from ...results.exhibits import Clock, Exhibit, FirstStep, Variant
from ...results.schema import Trial
from ...text import align_columns, as_lines
from .. import accuracy, speedup, study, wording
from ..judgement import Crossover
from . import limits


@dataclass(frozen=True, kw_only=True)
class SectionTable:
    """Rows of text below a header; with `prose`, the cells are sentences and a page shows a list."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    prose: bool = False


@dataclass(frozen=True, kw_only=True)
class SectionFigure:
    """A chart: its title, which is also its name for screen readers, and a specification of `core.answer.charts`."""

    title: str
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SectionListing:
    """Lines of code with their output, shown unchanged."""

    title: str
    code: str
    output: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section: paragraphs, charts, the tables behind them, code, and notes in small print."""

    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[SectionFigure, ...] = ()
    tables: tuple[SectionTable, ...] = ()
    listings: tuple[SectionListing, ...] = ()
    notes: tuple[str, ...] = ()


def sections_text(sections: Iterable[Section]) -> str:
    """Return sections for a terminal; a chart is left out, since its figures are in the tables."""
    return "\n\n".join("\n".join(_section_lines(section)) for section in sections)


def _section_lines(section: Section) -> Iterator[str]:
    yield section.title
    yield from section.sentences
    for table in section.tables:
        yield from ("", table.title)
        lines = [": ".join(row) for row in table.rows] if table.prose else align_columns([table.header, *table.rows])
        yield from (f"  {line}" for line in lines)
    for listing in section.listings:
        yield from ("", listing.title)
        yield from (f"    {line}" for line in as_lines(listing.code).splitlines())
        yield from (f"  → {line}" for line in as_lines(listing.output).splitlines())
    yield from section.notes


GRADIENT_ROUNDING = 1e-5
"""Largest relative difference of a gradient that another order of summation in fp32 usually gives, …"""

SUSPICIOUS_DIFFERENCE = 1e-3
"""… and the difference beyond which there must be another cause: a bug, or a precision below fp32."""


@dataclass(frozen=True, kw_only=True)
class ClockReading:
    """One clock compared with Crossover's.

    Attributes:
        epoch_s: median seconds of an epoch by this clock; `against_ours` is its ratio to the median of Crossover's
            clock.
        spread: largest reading over smallest; None for a single reading.
        within: whether this median lies between the smallest and the largest reading of Crossover's clock, so that the
            difference may be due to chance.
    """

    variant: Variant
    epoch_s: float
    against_ours: float
    spread: float | None
    within: bool

    @property
    def sentence(self) -> str:
        """The comparison in words."""
        if self.variant.name == "ours":
            return f"An epoch takes {units.format_duration(self.epoch_s)}."
        says = f"“{self.variant.title}” says {units.format_duration(self.epoch_s)}"
        above = self.against_ours >= 1
        amount = units.format_ratio(self.against_ours) if above else f"{units.format_share(self.against_ours)} of"
        chance = ", which is within the noise of Crossover's readings" if self.within else ""
        return f"{says}, {amount} Crossover's time{chance}."


def compare_clocks(clock: Clock, contender: str) -> tuple[ClockReading, ...]:
    """Compare each clock of one contender with Crossover's, which is the first; empty without readings."""
    variants = clock.select_variants(contender)
    medians = [statistics.median(variant.epoch_s) for variant in variants]
    ours = variants[0].epoch_s if variants else ()
    return tuple(
        ClockReading(
            variant=variant,
            epoch_s=median,
            against_ours=median / medians[0],
            spread=max(variant.epoch_s) / min(variant.epoch_s) if len(variant.epoch_s) > 1 else None,
            within=min(ours) <= median <= max(ours),
        )
        for variant, median in zip(variants, medians, strict=True)
    )


def clock_speedups(clock: Clock, baseline: str, challenger: str) -> dict[str, float]:
    """Return the challenger's speedup by clock, for the clocks that both contenders have."""
    ours, theirs = (
        {entry.variant.name: entry.epoch_s for entry in compare_clocks(clock, contender)}
        for contender in (baseline, challenger)
    )
    return {name: ours[name] / theirs[name] for name in ours if name in theirs}


def first_step_sentence(first_step: FirstStep) -> str:
    """Return the meaning of the differences, in a sentence."""
    one, other = map(inline_name, first_step.contenders)
    if first_step.largest == 0 == first_step.loss_difference:
        return f"{capitalize_name(one)} and {other} agree to the last bit after the first step."
    loss = f"by {units.format_power(first_step.loss_difference)}" if first_step.loss_difference else "not at all"
    most = units.format_power(first_step.largest)
    differ = f"The gradients of {one} and {other} differ by at most {most} after the first step, the loss {loss}"
    if first_step.largest <= GRADIENT_ROUNDING:
        return f"{differ}: that is rounding, because they add the same numbers in a different order."
    if first_step.largest <= SUSPICIOUS_DIFFERENCE:
        return f"{differ}: more than rounding usually causes, less than a lower precision would."
    return f"{differ}: too much for rounding; one of them uses a lower precision, or is wrong."


FASTER_EDGES = (1 / 1.1, 1.1, 2.0, 5.0)
"""Boundaries of the speedup between the answers: slower, about the same, up to twice, up to five times as fast,
more.
"""

SHARE_EDGES = (0.1, 0.5, 0.9)
"""Boundaries of the loader's share between the answers."""

LONGER_EDGES = (1.5, 10.0, 100.0)
"""Boundaries of the ratio of step times between the answers: about as long, up to 10, up to 100 times, more."""


RIGHT_ON_GPU = "Right for a GPU; this machine has none, so here it made no difference."


@dataclass(frozen=True, kw_only=True)
class PredictionOutcome:
    """A measurement, compared with the answers to a question.

    Attributes:
        fits: indices of the answers that it agrees with; None if it does not decide.
        fact: what was measured, in sentences.
        open: indices of the answers that it can neither confirm nor refute.
        right_on_gpu: indices of the answers that are right for a GPU, if this machine has none.
        is_recorded: whether it was measured on another machine.
    """

    fits: tuple[int, ...] | None
    fact: str
    open: tuple[int, ...] = ()
    right_on_gpu: tuple[int, ...] = ()
    is_recorded: bool = False

    def is_right(self, place: int) -> bool:
        """Return whether an answer is the only one that fits, here or on a GPU that this machine lacks."""
        return self.fits == (place,) or place in self.right_on_gpu

    def verdict(self, options: Sequence[str], place: int) -> str:
        """Return the prediction and whether it was right."""
        predicted = f"You predicted: {options[place]}."
        if place in self.right_on_gpu:
            return f"{predicted} {RIGHT_ON_GPU}"
        if self.fits is None or place in self.open:
            return f"{predicted} The measurement does not decide that."
        if self.is_right(place):
            return f"{predicted} You were right."
        if place in self.fits:
            return f"{predicted} The measurement agrees, but also fits another answer."
        instead = f" The matching answer: {_either([options[each] for each in self.fits])}." if self.fits else ""
        return f"{predicted} The measurement disagrees.{instead}"

    def sentence(self, options: Sequence[str], place: int) -> str:
        """Return the prediction, whether it was right, and the measurement."""
        return f"{self.verdict(options, place)} {self.fact}"


def _either(answers: Sequence[str]) -> str:
    """Return several answers as a choice, in quotation marks if one contains a comma."""
    if len(answers) > 1 and any("," in answer for answer in answers):
        answers = [f"“{answer}”" for answer in answers]
    return " or ".join(answers)


def tutorial_outcome(preset: Preset, rows: Sequence[Trial], pair: tuple[str, str]) -> PredictionOutcome | None:
    """Return the size from which, or the factor by which, the second of a pair is faster; None if no run timed both."""
    both = speedup.find_timed_pairs(rows, *pair)
    if not both:
        return None
    if len(preset.axes) == 1:
        mine = [row for runs in both for row in runs]
        found = study.studies(mine, axis=preset.axes[0].name, least=1)
        return crossover_outcome(found[0].crossover(), preset.class_axes[0].values) if found else None
    return _gains(both)


def crossover_outcome(crossover: Crossover, places: Sequence[float]) -> PredictionOutcome:
    """Return the outcome for the answers "at every", "from … on" for each size except the first, and "at no".

    Where one device is faster at every decided size, answers beyond these sizes fit as well.
    """
    decided = crossover.decided_sizes or places
    match crossover.outcome:
        case "gpu_always":
            fits: tuple[int, ...] | None = tuple(range(max(1, bisect_right(places, min(decided)))))
        case "cpu_always":
            fits = tuple(range(max(1, bisect_right(places, max(decided))), len(places) + 1))
        case "crossing":
            (only,) = crossover.crossings
            found = {max(1, place) for place in _answer_places(places, only.low, only.high)}
            fits = tuple(sorted(found)) if only.challenger_above else ()
        case "several":
            fits = ()
        case _:
            fits = None
    return PredictionOutcome(fits=fits, fact=crossover.sentence)


def _gains(pairs: Sequence[tuple[Trial, Trial]]) -> PredictionOutcome | None:
    """Return how many times as fast the second is, from the interval of each cell of a grid or of one training."""
    ratios = []
    for base, other in pairs:
        try:
            ratios.append(speedup.speedup(base, other))
        except CrossoverError:
            continue
    ends = [(ratio.low, ratio.high) for ratio in ratios if ratio.low is not None and ratio.high is not None]
    if not ends:
        return PredictionOutcome(fits=None, fact=ratios[0].sentence) if ratios else None
    fits = sorted({place for low, high in ends for place in _answer_places(FASTER_EDGES, low, high)})
    if len(ends) == 1:
        return PredictionOutcome(fits=tuple(fits), fact=ratios[0].sentence)
    values = [ratio.value for ratio in ratios if ratio.value is not None]
    fact = (
        f"The speedup is {units.format_ratio(min(values))} in the cell of the grid that gains least and "
        f"{units.format_ratio(max(values))} in the one that gains most, of {len(values)}."
    )
    loaded = next((ratio for ratio in ratios if ratio.is_conditional), ratios[0])
    return PredictionOutcome(fits=tuple(fits), fact=wording.add_load(fact, loaded))


def clock_outcome(exhibits: Sequence[Exhibit]) -> PredictionOutcome | None:
    """Return the outcome for the clock that did not wait: too little, the right time or too much, at one size."""
    for shown in exhibits:
        last = shown.participants[-1]
        if not isinstance(shown.content, Clock):
            continue
        for reading in compare_clocks(shown.content, last.contender):
            if reading.variant.name == "no_drain":
                return _reading_outcome(reading, on_host=last.kind == "cpu")
    return None


def _reading_outcome(reading: ClockReading, *, on_host: bool) -> PredictionOutcome:
    if on_host:
        why = "On a CPU nothing is queued, so there is nothing to wait for, and what differs is noise."
        return PredictionOutcome(fits=(1,), fact=f"{why} {reading.sentence}", open=(3,), right_on_gpu=(0,))
    fits = 1 if reading.within else 0 if reading.against_ours < 1 else 2
    return PredictionOutcome(fits=(fits,), fact=f"{reading.sentence} One size was timed.", open=(3,))


def moving_outcome(exhibits: Sequence[Exhibit]) -> PredictionOutcome | None:
    """Return which moves in PyTorch, as the run lines show: the tensor, the module's parameters, both or neither."""
    fact = "t.to(device) returns a new tensor and leaves t where it is; m.to(device) moves the parameters of m itself."
    return PredictionOutcome(fits=(1,), fact=fact) if exhibits else None


def loader_outcome(rows: Sequence[Trial]) -> PredictionOutcome | None:
    """Return the share of the loader where samples are transformed one by one, without workers."""
    ways = [row for row in rows if (row.data_path, row.loader_workers) == ("tutorial", 0) and row.block_steps]
    if not ways:
        return None
    way = limits.summarize_way(ways[-1] if all(map(speedup.is_host, ways)) else ways[0])
    fits = None if way.loader_share is None else (bisect_left(SHARE_EDGES, way.loader_share),)
    return PredictionOutcome(fits=fits, fact=way.sentence)


def learning_outcome(rows: Sequence[Trial], pair: tuple[str, str], margin: float) -> PredictionOutcome | None:
    """Return which answer fits: equal on every item, equal on all but a few, one better, or depending on the seed."""
    if not rows:
        return None
    found = accuracy.judge_equivalence(rows, baseline=pair[0], challenger=pair[1], margin=margin)
    fact = f"{found.disagreement_sentence} {found.sentence}"
    if not found.seeds:
        return PredictionOutcome(fits=None, fact=fact)
    alike = [apart == 0 for apart in found.disagreeing]
    if all(alike):
        return PredictionOutcome(fits=(0,), fact=fact)
    if found.verdict == "different":
        return PredictionOutcome(fits=(2,), fact=fact)
    by_seed = (3,) if any(alike) else ()
    if found.verdict == "equivalent":
        return PredictionOutcome(fits=(1, *by_seed), fact=fact)
    return PredictionOutcome(fits=by_seed, fact=fact, open=(1, 2))


def batch_size_outcome(rows: Sequence[Trial]) -> PredictionOutcome | None:
    """Return how many times as long a step of the larger batch takes on the last device."""
    last = rows[-1].contender if rows else ""
    mine = sorted((row for row in rows if row.contender == last), key=lambda row: row.batch_size)
    found = limits.compare_batch_sizes(mine[0], mine[-1]) if len(mine) > 1 else None
    if found is None:
        return None
    return PredictionOutcome(
        fits=(bisect_left(LONGER_EDGES, found.large.step_s / found.small.step_s),), fact=found.sentence
    )


def outcome_or_reason(work: Callable[[], PredictionOutcome | None]) -> PredictionOutcome | None:
    """Return the outcome of the measurement, or an outcome with the reason why rows cannot be compared."""
    try:
        return work()
    except CrossoverError as error:
        return PredictionOutcome(fits=None, fact=str(error))


def _answer_places(edges: Sequence[float], low: float, high: float) -> range:
    """Return the indices of the answers between these edges that overlap an interval."""
    return range(bisect_left(edges, low), bisect_left(edges, high) + 1)
