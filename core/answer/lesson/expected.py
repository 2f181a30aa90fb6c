"""Whether what was expected of a tutorial or a lesson was so: which answers fit what was measured, and why.

The answers to a question are known here by their places alone; their words are those of the page that asks. Only what
the rows or an exhibit decide is called right or not so: an interval that reaches over two answers fits both.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core import units
from core.answer.lesson import bottleneck, equivalence, exhibition, launches
from core.answer.run import speedup
from core.answer.study import study
from core.answer.study.result import Crossover
from core.errors import CrossoverError
from core.question.presets import Preset
from core.results.exhibits.exhibit import Clock, Exhibit
from core.results.schema import Trial

FASTER_EDGES = (1 / 1.1, 1.1, 2.0, 5.0)
"""Speedups between the answers: slower, about the same, up to twice, up to five times as fast, more."""

SHARE_EDGES = (0.1, 0.5, 0.9)
"""Shares of the loader between the answers."""

LONGER_EDGES = (1.5, 10.0, 100.0)
"""How many times as long a step takes, between the answers: about as long, up to 10, up to 100 times, more."""


@dataclass(frozen=True, kw_only=True)
class PredictionOutcome:
    """What was measured, beside the answers to a question.

    Attributes:
        fits: places of the answers that it agrees with; None where it does not tell.
        fact: what was measured, in sentences.
        open: places of the answers that it can neither confirm nor refute.
    """

    fits: tuple[int, ...] | None
    fact: str
    open: tuple[int, ...] = ()

    def is_right(self, place: int) -> bool:
        """Whether an answer is the one that fits."""
        return self.fits == (place,)

    def sentence(self, options: Sequence[str], place: int) -> str:
        """What was expected, whether it was so, and what was measured."""
        expected = f"You expected: {options[place]}."
        if self.fits is None or place in self.open:
            return f"{expected} What was measured does not decide that. {self.fact}"
        if self.is_right(place):
            return f"{expected} You were right. {self.fact}"
        if place in self.fits:
            return f"{expected} That fits, and so does another answer. {self.fact}"
        instead = f" What fits is: {_either([options[each] for each in self.fits])}." if self.fits else ""
        return f"{expected} It was not so.{instead} {self.fact}"


def _either(answers: Sequence[str]) -> str:
    """Several answers as a choice; in quotation marks where one has a comma of its own."""
    if len(answers) > 1 and any("," in answer for answer in answers):
        answers = [f"“{answer}”" for answer in answers]
    return " or ".join(answers)


def tutorial_outcome(preset: Preset, rows: Sequence[Trial], pair: tuple[str, str]) -> PredictionOutcome | None:
    """From where on, or by how much, the second of a pair is faster; None if no run has timed both."""
    both = speedup.find_timed_pairs(rows, *pair)
    if not both:
        return None
    if len(preset.axes) == 1:
        mine = [row for runs in both for row in runs]
        found = study.studies(mine, axis=preset.axes[0].name, least=1)
        longest = max(found, key=lambda entry: len(entry.runs), default=None)
        return crossover_outcome(study.crossover(longest), preset.class_axes[0].values) if longest else None
    return _gains(both)


def crossover_outcome(crossover: Crossover, places: Sequence[float]) -> PredictionOutcome:
    """The answers "at every", "from … on" for each place but the first, and "at no"."""
    match crossover.outcome:
        case "gpu_always":
            fits: tuple[int, ...] | None = (0,)
        case "cpu_always":
            fits = (len(places),)
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
    """How many times as fast the second is, by the interval of each cell of a grid, or of the one training."""
    ratios = []
    for base, other in pairs:
        try:
            ratios.append(speedup.speedup(base, other))
        except CrossoverError:
            continue
    ends = [(ratio.low, ratio.high) for ratio in ratios if ratio.low is not None and ratio.high is not None]
    if not ends:
        return PredictionOutcome(fits=None, fact=speedup.verdict_sentence(ratios[0])) if ratios else None
    fits = sorted({place for low, high in ends for place in _answer_places(FASTER_EDGES, low, high)})
    if len(ends) == 1:
        return PredictionOutcome(fits=tuple(fits), fact=speedup.verdict_sentence(ratios[0]))
    values = [ratio.value for ratio in ratios if ratio.value is not None]
    fact = (
        f"The speedup is {units.format_ratio(min(values))} in the cell of the grid that gains least and "
        f"{units.format_ratio(max(values))} in the one that gains most, of {len(values)}."
    )
    return PredictionOutcome(fits=tuple(fits), fact=fact)


def clock_outcome(exhibits: Sequence[Exhibit]) -> PredictionOutcome | None:
    """What the clock says that did not wait: too little, the right time, too much; it is not told of other sizes."""
    for shown in exhibits:
        last = shown.participants[-1]
        if not isinstance(shown.content, Clock):
            continue
        for reading in exhibition.compare_clocks(shown.content, last.contender):
            if reading.variant.name == "no_drain":
                return _reading_outcome(reading, on_host=last.kind == "cpu")
    return None


def _reading_outcome(reading: exhibition.ClockReading, *, on_host: bool) -> PredictionOutcome:
    if on_host:
        why = "On a CPU nothing is queued, so there is nothing to wait for, and what differs is noise."
        return PredictionOutcome(fits=(1,), fact=f"{why} {reading.sentence}", open=(3,))
    fits = 1 if reading.within else 0 if reading.against_ours < 1 else 2
    return PredictionOutcome(fits=(fits,), fact=f"{reading.sentence} One size was timed.", open=(3,))


def moving_outcome(exhibits: Sequence[Exhibit]) -> PredictionOutcome | None:
    """The tensor, the module's parameters, both or neither: what PyTorch does, shown by the lines that were run."""
    fact = "t.to(device) gives another tensor and leaves t where it is; m.to(device) moves the parameters of m itself."
    return PredictionOutcome(fits=(1,), fact=fact) if exhibits else None


def loader_outcome(rows: Sequence[Trial]) -> PredictionOutcome | None:
    """The share of the loader where samples are transformed one by one, without workers."""
    ways = [row for row in rows if (row.data_path, row.loader_workers) == ("tutorial", 0) and row.block_steps]
    if not ways:
        return None
    way = bottleneck.summarize_way(ways[-1] if all(map(speedup.is_host, ways)) else ways[0])
    fits = None if way.loader_share is None else (bisect_left(SHARE_EDGES, way.loader_share),)
    return PredictionOutcome(fits=fits, fact=way.sentence)


def learning_outcome(rows: Sequence[Trial], pair: tuple[str, str], margin: float) -> PredictionOutcome | None:
    """Alike on every item, on all but a few, one of them better, or one thing with this seed and another with that."""
    if not rows:
        return None
    found = equivalence.judge_equivalence(rows, baseline=pair[0], challenger=pair[1], margin=margin)
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
    """How many times as long a step of the larger batch takes on the last device."""
    last = rows[-1].contender if rows else ""
    mine = sorted((row for row in rows if row.contender == last), key=lambda row: row.batch_size)
    found = launches.compare_batch_sizes(mine[0], mine[-1]) if len(mine) > 1 else None
    if found is None:
        return None
    return PredictionOutcome(
        fits=(bisect_left(LONGER_EDGES, found.large.step_s / found.small.step_s),), fact=found.sentence
    )


def outcome_or_reason(work: Callable[[], PredictionOutcome | None]) -> PredictionOutcome | None:
    """What was measured beside the answers; why it cannot be told where rows cannot be compared."""
    try:
        return work()
    except CrossoverError as error:
        return PredictionOutcome(fits=None, fact=str(error))


def _answer_places(edges: Sequence[float], low: float, high: float) -> range:
    """Places of the answers between these edges that an interval reaches."""
    return range(bisect_left(edges, low), bisect_left(edges, high) + 1)
