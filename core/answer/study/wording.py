"""A crossover in words. Every number in a sentence is one of the answer that it describes; nothing is computed here."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from core import units
from core.answer.run import busy
from core.answer.statistics import TIE
from core.answer.study.result import Assumed, Basis, Clear, Crossing, Crossover
from core.question.device_kinds import begun, does, in_sentence
from core.question.fields import FIELDS, SIZE_AXES
from core.question.models.boosting import axis_asked

COUNTED: dict[Basis, str] = {
    "steady": ", counting the steps alone",
    "with_transfer": ", counting the steps and the copy of the data to the device",
    "cold_start": ", counting the steps and the whole start-up",
    "as_given": "",
}

USUAL_CAUSE = "; thresholds of threads, caches or tiles are the usual cause"

MOST_WHOLE = 100
"""Up to which a place on an axis of whole numbers is told as the first whole one; beyond, three digits are as good."""

CERTAIN = 2
"""Whole numbers between the ends of an interval up to which its estimate is not said to be "about" one of them."""

LISTED = 3
"""Sizes that a sentence names before it counts the rest."""


def sentence(found: Crossover) -> str:
    """The answer in some sentences, with what speaks against it."""
    known = found.reason.startswith(busy.TOO_BUSY)  # so that it is not said twice
    cautions = [one for one in found.cautions if not (known and one.startswith(busy.MARK))]
    return " ".join(filter(None, (_claim(found), _limits(found), *cautions)))


def headline(found: Crossover) -> str:
    """The claim of the answer alone, with devices named briefly."""
    return _claim(replace(found, baseline=short(found.baseline), challenger=short(found.challenger)))


def _claim(found: Crossover) -> str:
    match found.outcome:
        case "crossing":
            return _crossing(found)
        case "gpu_always" | "cpu_always":
            return _always(found)
        case "several":
            return f"There is no single crossover{COUNTED[found.basis]}: {found.reason}."
        case "undecided" if found.assumed is not None:
            return _assumed(found, found.assumed)
        case "undecided" if found.clear:
            clear = begun(_clear(found, found.clear))
            return f"{clear}{COUNTED[found.basis]}. Elsewhere it cannot be told: {found.reason}."
        case "undecided":
            return f"No crossover can be told{COUNTED[found.basis]}: {found.reason}."
    return f"Not measurable: {found.reason}."


def size(value: float) -> str:
    """A size: whole ones that were measured as they are, estimates to three digits; 1,024 and 9.43 and 562,000."""
    if value == math.floor(value):
        return f"{math.floor(value):,}"
    return f"{value:.3g}" if value < 1_000 else f"{float(f'{value:.3g}'):,.0f}"


def short(device: str) -> str:
    """A device without what is known of it: `cuda:0 (NVIDIA H200)` → `cuda:0`."""
    return device.partition(" (")[0]


def whole(axis: str) -> bool:
    """Whether nothing can be built between two neighbouring whole numbers of an axis; a mere "size" may be anything."""
    axis = axis_asked(axis)
    return axis in SIZE_AXES and axis != "size" and isinstance(FIELDS[axis].default, int)


def begins(axis: str, at: Crossing) -> str:
    """The size from which the faster device is another: "about 147"; of few whole ones the first beyond it: "8"."""
    certain = whole(axis) and math.ceil(at.high) - math.floor(at.low) <= CERTAIN
    return nearest(axis, at.estimate) if certain else f"about {nearest(axis, at.estimate)}"


def buildable(axis: str, estimate: float) -> float:
    """A size that was estimated; of few whole numbers the first that is not below it."""
    return math.ceil(estimate) if whole(axis) and estimate <= MOST_WHOLE else estimate


def nearest(axis: str, estimate: float) -> str:
    """A size that was estimated, to three digits where it need not be a whole one."""
    return size(_rounded(buildable(axis, estimate)))


def outwards(axis: str, low: float, high: float) -> tuple[float, float]:
    """Both ends of an interval of sizes, as sentences and charts say them: few whole numbers are rounded outwards."""
    return (math.floor(low), math.ceil(high)) if whole(axis) and high < 1_000 else (low, high)


def ends(axis: str, low: float, high: float) -> tuple[str, str]:
    """Both ends of an interval of sizes, as `outwards` rounds them, written."""
    low, high = outwards(axis, low, high)
    return size(low), size(high)


def place(axis: str, text: str) -> str:
    """A place on an axis: "a hidden size of 147", "562,000 parameters", "32 virtual CPUs"; unnamed, "a size of 147"."""
    if axis in SIZE_AXES:
        return FIELDS[axis].place.format(text)
    return f"a size of {text}" if axis == "size" else f"{text} {axis}"


def _span(axis: str, low: str, high: str, words: tuple[str, str] = ("from", "to")) -> str:
    """A range on an axis: "from a depth of 4 to 10", "between 1,000 and 562,000 parameters"."""
    first, last = place(axis, low), place(axis, high)
    named = (low, last) if last.startswith(high) else (first, high)
    return " ".join(itertools.chain(*zip(words, named, strict=True)))


def _somewhere(axis: str, at: Crossing) -> str:
    """Where the faster device changes, if all that is known is a range: "somewhere between a depth of 4 and 10"."""
    low, high = ends(axis, _rounded(at.low), _rounded(at.high))
    return f"somewhere {_span(axis, low, high, ('between', 'and'))}"


def several(axis: str, crossings: Sequence[Crossing], *, disturbed: bool = False) -> str:
    """Why there is no single number, to go on after a colon; a `disturbed` machine may be the cause as well."""
    places = _joined([f"between {' and '.join(ends(axis, one.low, one.high))}" for one in crossings])
    changes = f"the faster device changes {len(crossings)} times beyond the noise"
    return f"{changes}, {places} ({axis.replace('_', ' ')}){'' if disturbed else USUAL_CAUSE}"


def contradicting(sizes: Sequence[float]) -> str:
    """Which sizes contradict their neighbours, to go on after a colon."""
    verb = "contradicts its neighbours" if len(sizes) == 1 else "contradict their neighbours"
    return (
        f"{_listed(sizes)} {verb} by more than readings of one visit scatter, and by no more than a slower spell of "
        "the machine explains, so measure again, in turns"
    )


def unclear(sizes: Sequence[float], noise: float) -> str:
    """Why nothing is decided, to go on after a colon."""
    return (
        f"at {_listed(sizes)} either may be faster, as the difference is smaller than the noise ({units.share(noise)} "
        "from one reading to the next, more when a size is measured again), so more readings or other sizes are needed"
    )


def _listed(sizes: Sequence[float]) -> str:
    shown, more = [size(value) for value in sizes[:LISTED]], len(sizes) - LISTED
    if more > 0:
        return f"{', '.join(shown)} and {units.counted(more, 'other size')}"
    return _joined(shown)


def _joined(things: Sequence[str]) -> str:
    """Things one after the other, with "and" before the last."""
    return " and ".join((", ".join(things[:-1]), things[-1])) if len(things) > 1 else things[0]


def single_readings(axis: str, changes: Sequence[tuple[float, float]], favoured: str) -> str:
    """What readings say of which there is one a size and device, to go on after a colon."""
    lead = "every size was measured once on each device, which does not tell the noise, so there is no interval"
    if not changes:
        return f"{lead}; the readings favour {favoured} everywhere"
    places = ", and between ".join(f"{size(below)} and {size(above)}" for below, above in changes)
    return f"{lead}; the readings change sides between {places} ({axis.replace('_', ' ')})"


def _crossing(found: Crossover) -> str:
    only = found.crossings[0]
    begin = place(found.axis, begins(found.axis, only))
    interval = " to ".join(ends(found.axis, only.low, only.high))
    faster = begun(_sides(found, challenger_faster=only.challenger_above))
    return f"{faster} from {begin} on (95 % interval {interval}){COUNTED[found.basis]}."


def _limits(found: Crossover) -> str:
    """What limits the claim: a small difference around a crossing, or readings that tell no noise; mostly empty."""
    if found.outcome == "undecided" and found.assumed is not None:
        return f"Not certain: {found.reason}."
    if found.outcome != "crossing":
        return ""
    zones = sorted((*([found.tie] if found.tie else []), *found.also_close))
    places = [place for zone in zones if (place := _zone(found.axis, *zone))]
    listed = ", and ".join(places)
    return f"{listed[:1].upper()}{listed[1:]} the difference is within {units.share(TIE - 1)}." if places else ""


def _zone(axis: str, low: float, high: float) -> str:
    """A range of sizes; empty where no whole number lies in it on an axis of whole numbers."""
    if not whole(axis) or high > MOST_WHOLE:
        return f"between about {nearest(axis, low)} and {nearest(axis, high)}"
    first, last = math.ceil(low), math.floor(high)
    return "" if first > last else f"at {size(first)}" if first == last else f"from {first} to {last}"


def _sides(found: Crossover, *, challenger_faster: bool) -> str:
    winner, loser = _ranked(found, challenger_faster=challenger_faster)
    return f"{does(winner, 'is', 'are')} faster than {in_sentence(loser)}"


def _ranked(found: Crossover, *, challenger_faster: bool) -> tuple[str, str]:
    """The two devices by name, the faster one first."""
    return (found.challenger, found.baseline) if challenger_faster else (found.baseline, found.challenger)


def _clear(found: Crossover, clear: Sequence[Clear]) -> str:
    """Where one device is faster for certain: from a size on, up to one, or between two."""
    timed = [each.size for each in found.sizes if each.speedup is not None]
    return ", and ".join(_clear_part(found, one, timed) for one in clear)


def _clear_part(found: Crossover, one: Clear, timed: Sequence[float]) -> str:
    if one.begin == one.end:
        where = f"at {place(found.axis, size(one.begin))}"
    elif one.end == timed[-1]:
        where = f"from {place(found.axis, size(one.begin))} on"
    elif one.begin == timed[0]:
        where = f"up to {place(found.axis, size(one.end))}"
    else:
        where = _span(found.axis, size(one.begin), size(one.end))
    ratios = units.ratio(one.least) + (f" to {units.ratio(one.most)}" if one.most > one.least else "")
    return f"{_sides(found, challenger_faster=one.challenger_faster)} {where} ({ratios})"


def _assumed(found: Crossover, assumed: Assumed) -> str:
    """What single readings say under an assumption, which is named first."""
    lead = f"If readings scatter by about {units.share(assumed.noise)}, "
    if assumed.outcome == "crossing":
        (only,) = assumed.crossings
        winner, loser = _ranked(found, challenger_faster=only.challenger_above)
        becomes = f"{does(winner, 'becomes', 'become')} faster than {in_sentence(loser)}"
        return f"{lead}{becomes} {_somewhere(found.axis, only)}{COUNTED[found.basis]}."
    if assumed.outcome in ("gpu_always", "cpu_always"):
        faster = _sides(found, challenger_faster=assumed.outcome == "gpu_always")
        return f"{lead}{faster} at every size of the table{COUNTED[found.basis]}."
    if assumed.outcome == "several":
        return f"{lead}the faster device changes {len(assumed.crossings)} times{COUNTED[found.basis]}."
    if assumed.clear:
        return f"{lead}{_clear(found, assumed.clear)}{COUNTED[found.basis]}."
    return f"{lead}no crossover can be told{COUNTED[found.basis]}."


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _always(found: Crossover) -> str:
    timed = [(of.size, of.speedup) for of in found.sizes if of.speedup is not None]
    clear = all(of.low is None or of.high is None or not of.low <= 1 <= of.high for of in found.sizes)
    challenger_faster = found.outcome == "gpu_always"
    speedups = [speedup for _, speedup in timed]
    least = min(speedups) if challenger_faster else 1 / max(speedups)
    faster = begun(_sides(found, challenger_faster=challenger_faster))
    span = _span(found.axis, size(timed[0][0]), size(timed[-1][0]))
    if not clear:
        return f"{faster} at every size {span} that the noise lets decide{COUNTED[found.basis]}."
    return (
        f"{faster} at every size measured {span}{COUNTED[found.basis]}: "
        f"at least {units.ratio(least)}. A crossover, if there is one, lies outside."
    )
