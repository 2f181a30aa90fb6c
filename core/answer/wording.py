"""Sentences on a crossover. Every number in a sentence comes from the answer; nothing is computed here."""

import itertools
import math
from collections.abc import Sequence

from .. import units
from ..question.fields import FIELDS, SIZE_AXES
from ..question.lanes import capitalize_name, does, inline_device_name
from ..question.models.families import field_of_answer_axis
from .judgement import Assumed, Basis, Clear, Crossing, Crossover, Size
from .statistics import TIE
from .verdict import INCONCLUSIVE, QUIET_NOTE, Verdict

BASIS_CLAUSES: dict[Basis, str] = {
    "steady": ", counting the steps alone",
    "with_transfer": ", counting the steps and the copy of the data to the device",
    "cold_start": ", counting the steps and the whole start-up",
    "as_given": "",
}

NOWHERE_APART = (
    f"the difference is within {units.format_share(TIE - 1)} at every size with a verdict, too small to matter"
)
"""Reason why a device that is faster throughout is not named the winner."""

USUAL_CAUSE = "; thresholds of threads, caches or tile sizes are the usual cause"

MOST_WHOLE = 100
"""Highest estimate on an axis of integers that is rounded up to a whole one; above it, three digits are enough."""

CERTAIN_SPAN = 2
"""Width of an interval of integers up to which its estimate is stated without "about"."""

MAX_SIZES_LISTED = 3
"""Maximum number of sizes that a sentence names; it counts the others."""


def crossover_sentence(answer: Crossover) -> str:
    """Return the answer in some sentences, including sizes that are not compared, and its cautions."""
    return " ".join(filter(None, (_outcome_sentence(answer), _excluded_sizes_sentence(answer), *answer.cautions)))


def _excluded_sizes_sentence(answer: Crossover) -> str:
    """Return the measured sizes that the answer excludes, with the reason if it is the same for all."""
    excluded = [size for size in answer.sizes if size.speedup is None]
    if len(excluded) in (0, len(answer.sizes)):
        return ""
    reasons = {size.reason for size in excluded}
    reason = f" ({reasons.pop()})" if len(reasons) == 1 else "; the table says why"
    return f"Not compared: {place_on_axis(answer.axis, _list_sizes([size.size for size in excluded]))}{reason}."


def add_load(sentence: str, answer: Crossover | Verdict) -> str:
    """Add the load of the machine to a sentence; the load comes first if the answer is valid only for this load."""
    if not answer.condition:
        return f"{sentence} {answer.busy}" if answer.busy else sentence
    return f"On this machine under load, {answer.condition}: {_lower_first(sentence)} {QUIET_NOTE}"


def _lower_first(sentence: str) -> str:
    """Return a sentence in the form that follows a colon; a name at its beginning stays unchanged."""
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def crossover_headline(answer: Crossover) -> str:
    """Return the answer in one short sentence, with names that fit after "training on"."""
    said = _headline(answer)
    return add_load(said, answer) if answer.condition else said


def _headline(answer: Crossover) -> str:
    crossings = answer.crossings or (answer.assumed.crossings if answer.assumed else ())
    if len(crossings) != 1:
        return _outcome_sentence(answer)
    (only,) = crossings
    winner, loser = _rank_devices(answer, challenger_faster=only.challenger_above)
    winner, loser = inline_device_name(winner), inline_device_name(loser)
    if answer.assumed and not answer.crossings:
        becomes = f"{_somewhere(answer.axis, only).capitalize()}, training on {winner} becomes faster than on {loser}"
        return f"{becomes} (if readings scatter by about {units.format_share(answer.assumed.noise)})."
    begin, interval = (
        place_on_axis(answer.axis, crossing_start(answer.axis, only)),
        " to ".join(interval_ends(answer.axis, only.low, only.high)),
    )
    return f"From {begin} on, training on {winner} is faster than on {loser} (95 % interval {interval})."


def _outcome_sentence(answer: Crossover) -> str:
    match answer.outcome:
        case "crossing":
            return _crossing_sentence(answer)
        case "gpu_always" | "cpu_always":
            return _always(answer)
        case "several":
            return f"There is no single crossover{BASIS_CLAUSES[answer.basis]}: {answer.reason}."
        case "undecided" if answer.assumed is not None:
            return f"{_assumption_sentence(answer, answer.assumed)} Not certain: {answer.reason}."
        case "undecided" if answer.clear:
            clear = capitalize_name(_clear_sentence(answer, answer.clear))
            return f"{clear}{BASIS_CLAUSES[answer.basis]}. Elsewhere inconclusive: {answer.reason}."
        case "undecided":
            return f"{INCONCLUSIVE}{BASIS_CLAUSES[answer.basis]}: {answer.reason}."
    return f"Not measurable: {answer.reason}."


def size_verdict_text(size: Size, answer: Crossover) -> str:
    """Return the text on one size in every table: the faster device, or why there is none."""
    if size.has_winner and size.speedup is not None:
        winner = short_device(answer.challenger if size.speedup > 1 else answer.baseline)
        alone = size.low is not None and size.high is not None and not size.low <= 1 <= size.high
        return capitalize_name(f"{does(winner, 'is', 'are')} faster{'' if alone else ', by the sizes around it'}")
    lead = "Not known" if size.speedup is None or size.verdict == "missing" else "No winner"
    return f"{lead}: {size.reason}" if size.reason else lead


def format_size(value: float) -> str:
    """Format a size: measured whole numbers in full, estimates to three digits.

    Examples: 1,024, 9.43 and 562,000.
    """
    if value == math.floor(value):
        return f"{math.floor(value):,}"
    return f"{value:.3g}" if value < 1_000 else f"{float(f'{value:.3g}'):,.0f}"


def short_device(device: str) -> str:
    """Return a device without its details: `cuda:0 (NVIDIA H200)` → `cuda:0`."""
    return device.partition(" (")[0]


def is_whole_axis(axis: str) -> bool:
    """Return whether only whole numbers of an axis can be built.

    An axis that is only called "size" may have any values.
    """
    axis = field_of_answer_axis(axis)
    return axis in SIZE_AXES and axis != "size" and isinstance(FIELDS[axis].default, int)


def crossing_start(axis: str, crossing: Crossing) -> str:
    """Return the size from which the other device is faster: "about 147".

    If the interval covers only a few whole numbers, "about" is omitted: "8".
    """
    certain = is_whole_axis(axis) and math.ceil(crossing.high) - math.floor(crossing.low) <= CERTAIN_SPAN
    return nearest_size(axis, crossing.estimate) if certain else f"about {nearest_size(axis, crossing.estimate)}"


def buildable_size(axis: str, estimate: float) -> float:
    """Return an estimated size, rounded up to a whole number up to `MOST_WHOLE` on an axis of whole numbers."""
    return math.ceil(estimate) if is_whole_axis(axis) and estimate <= MOST_WHOLE else estimate


def nearest_size(axis: str, estimate: float) -> str:
    """Format an estimated size, to three digits unless it must be a whole number."""
    return format_size(_round_size(buildable_size(axis, estimate)))


def round_interval_outwards(axis: str, low: float, high: float) -> tuple[float, float]:
    """Return both ends of an interval of sizes for sentences and charts; small whole numbers are rounded outwards."""
    return (math.floor(low), math.ceil(high)) if is_whole_axis(axis) and high < 1_000 else (low, high)


def interval_ends(axis: str, low: float, high: float) -> tuple[str, str]:
    """Format both ends of an interval of sizes, rounded as in `round_interval_outwards`."""
    low, high = round_interval_outwards(axis, low, high)
    return format_size(low), format_size(high)


def place_on_axis(axis: str, text: str) -> str:
    """Return a place on an axis: "a hidden size of 147", "562,000 parameters", "32 virtual CPUs".

    On an axis without a name: "a size of 147".
    """
    if axis in SIZE_AXES:
        return FIELDS[axis].place.format(text)
    return f"a size of {text}" if axis == "size" else f"{text} {axis}"


def _range_on_axis(axis: str, low: str, high: str, words: tuple[str, str] = ("from", "to")) -> str:
    """Return a range on an axis: "from a depth of 4 to 10", "between 1,000 and 562,000 parameters"."""
    first, last = place_on_axis(axis, low), place_on_axis(axis, high)
    named = (low, last) if last.startswith(high) else (first, high)
    return " ".join(itertools.chain(*zip(words, named, strict=True)))


def _somewhere(axis: str, crossing: Crossing) -> str:
    """Return where the faster device changes, if only a range is known: "somewhere between a depth of 4 and 10"."""
    low, high = interval_ends(axis, _round_size(crossing.low), _round_size(crossing.high))
    return f"somewhere {_range_on_axis(axis, low, high, ('between', 'and'))}"


def several_crossings_reason(axis: str, crossings: Sequence[Crossing], *, disturbed: bool = False) -> str:
    """Return why there is no single crossover, as text that follows a colon; no usual cause if `disturbed`."""
    places = _join_words([f"between {' and '.join(interval_ends(axis, one.low, one.high))}" for one in crossings])
    changes = f"the faster device changes {len(crossings)} times, by more than the noise"
    return f"{changes}, {places} ({axis.replace('_', ' ')}){'' if disturbed else USUAL_CAUSE}"


def contradicting_sizes_reason(sizes: Sequence[float]) -> str:
    """Return which sizes contradict their neighbours, as text that follows a colon."""
    verb = "contradicts its neighbours" if len(sizes) == 1 else "contradict their neighbours"
    return (
        f"{_list_sizes(sizes)} {verb} by more than the noise of one run, which a temporary slowdown of the machine "
        "could explain, so measure again, in turns"
    )


def unclear_sizes_reason(sizes: Sequence[float], noise: float) -> str:
    """Return why nothing is decided, as text that follows a colon."""
    return (
        f"at {_list_sizes(sizes)} either may be faster, as the difference is smaller than the noise "
        f"({units.format_share(noise)} from one reading to the next, more when a size is measured again), so more "
        "readings or other sizes are needed"
    )


def _list_sizes(sizes: Sequence[float]) -> str:
    shown, more = [format_size(value) for value in sizes[:MAX_SIZES_LISTED]], len(sizes) - MAX_SIZES_LISTED
    if more > 0:
        return f"{', '.join(shown)} and {units.format_quantity(more, 'other size')}"
    return _join_words(shown)


def _join_words(things: Sequence[str]) -> str:
    """Join words with commas, and with "and" before the last."""
    return " and ".join((", ".join(things[:-1]), things[-1])) if len(things) > 1 else things[0]


def single_readings_reason(axis: str, changes: Sequence[tuple[float, float]], favoured: str) -> str:
    """Return the reason for an answer from one reading per size and device, as text that follows a colon."""
    lead = "every size was measured once on each device, so the noise is unknown and there is no interval"
    if not changes:
        return f"{lead}; the readings favour {favoured} everywhere"
    places = ", and between ".join(f"{format_size(below)} and {format_size(above)}" for below, above in changes)
    return f"{lead}; the readings change sides between {places} ({axis.replace('_', ' ')})"


def _crossing_sentence(answer: Crossover) -> str:
    only = answer.crossings[0]
    begin = place_on_axis(answer.axis, crossing_start(answer.axis, only))
    said = (
        f"{capitalize_name(_faster_clause(answer, challenger_faster=only.challenger_above))} from {begin} on "
        f"(95 % interval {' to '.join(interval_ends(answer.axis, only.low, only.high))}){BASIS_CLAUSES[answer.basis]}."
    )
    return f"{said}{_close_sentence(answer)}"


def _close_sentence(answer: Crossover) -> str:
    """Return a sentence with all ranges of sizes where the difference is small; empty if there are none."""
    zones = sorted((*([answer.tie] if answer.tie else []), *answer.also_close))
    places = [place for zone in zones if (place := _zone_clause(answer.axis, *zone))]
    listed = ", and ".join(places)
    return (
        f" {listed[:1].upper()}{listed[1:]} the difference is within {units.format_share(TIE - 1)}." if places else ""
    )


def _zone_clause(axis: str, low: float, high: float) -> str:
    """Return the text of a range of sizes; empty if an axis of whole numbers has no value in it."""
    if not is_whole_axis(axis) or high > MOST_WHOLE:
        return f"between about {nearest_size(axis, low)} and {nearest_size(axis, high)}"
    first, last = math.ceil(low), math.floor(high)
    return "" if first > last else f"at {format_size(first)}" if first == last else f"from {first} to {last}"


def _faster_clause(answer: Crossover, *, challenger_faster: bool) -> str:
    winner, loser = _rank_devices(answer, challenger_faster=challenger_faster)
    return f"{does(winner, 'is', 'are')} faster than {inline_device_name(loser)}"


def _rank_devices(answer: Crossover, *, challenger_faster: bool) -> tuple[str, str]:
    """Return the two devices by name, the faster one first."""
    return (answer.challenger, answer.baseline) if challenger_faster else (answer.baseline, answer.challenger)


def _clear_sentence(answer: Crossover, clear: Sequence[Clear]) -> str:
    """Return where one device is certainly faster: from a size on, up to a size, or between two sizes."""
    timed = [each.size for each in answer.sizes if each.speedup is not None]
    return ", and ".join(_clear_part(answer, one, timed) for one in clear)


def _clear_part(answer: Crossover, one: Clear, timed: Sequence[float]) -> str:
    if one.begin == one.end:
        where = f"at {place_on_axis(answer.axis, format_size(one.begin))}"
    elif one.end == timed[-1]:
        where = f"from {place_on_axis(answer.axis, format_size(one.begin))} on"
    elif one.begin == timed[0]:
        where = f"up to {place_on_axis(answer.axis, format_size(one.end))}"
    else:
        where = _range_on_axis(answer.axis, format_size(one.begin), format_size(one.end))
    ratios = units.format_ratio(one.least) + (f" to {units.format_ratio(one.most)}" if one.most > one.least else "")
    return f"{_faster_clause(answer, challenger_faster=one.challenger_faster)} {where} ({ratios})"


def _assumption_sentence(answer: Crossover, assumed: Assumed) -> str:
    """Return the answer from single readings, beginning with the assumption about their noise."""
    lead = f"If readings scatter by about {units.format_share(assumed.noise)}, "
    if assumed.outcome == "crossing":
        (only,) = assumed.crossings
        winner, loser = _rank_devices(answer, challenger_faster=only.challenger_above)
        becomes = f"{does(winner, 'becomes', 'become')} faster than {inline_device_name(loser)}"
        return f"{lead}{becomes} {_somewhere(answer.axis, only)}{BASIS_CLAUSES[answer.basis]}."
    if assumed.outcome in ("gpu_always", "cpu_always"):
        faster = _faster_clause(answer, challenger_faster=assumed.outcome == "gpu_always")
        return f"{lead}{faster} at every size of the table{BASIS_CLAUSES[answer.basis]}."
    if assumed.outcome == "several":
        return f"{lead}the faster device changes {len(assumed.crossings)} times{BASIS_CLAUSES[answer.basis]}."
    if assumed.clear:
        return f"{lead}{_clear_sentence(answer, assumed.clear)}{BASIS_CLAUSES[answer.basis]}."
    return f"{lead}it is inconclusive{BASIS_CLAUSES[answer.basis]}."


def _round_size(value: float) -> float:
    return float(f"{value:.3g}")


def _always(answer: Crossover) -> str:
    timed = [size for size in answer.sizes if size.speedup is not None]
    challenger_faster = answer.outcome == "gpu_always"
    speedups = [size.speedup or 1.0 for size in timed if size.has_winner]
    least = min(speedups) if challenger_faster else 1 / max(speedups)
    faster = capitalize_name(_faster_clause(answer, challenger_faster=challenger_faster))
    span = _range_on_axis(answer.axis, format_size(timed[0].size), format_size(timed[-1].size))
    done = "measured" if len(timed) == len(answer.sizes) else "compared"
    if len(speedups) < len(timed):
        return (
            f"{faster} at {len(speedups)} of the {len(timed)} sizes {done} {span}{BASIS_CLAUSES[answer.basis]}, by "
            f"at least {units.format_ratio(least)}; at the others the difference is within the noise or "
            f"{units.format_share(TIE - 1)}."
        )
    return (
        f"{faster} at every size {done} {span}{BASIS_CLAUSES[answer.basis]}: "
        f"at least {units.format_ratio(least)}. A crossover, if any, is outside this range."
    )
