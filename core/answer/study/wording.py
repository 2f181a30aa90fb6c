"""A crossover in words. Every number in a sentence is one of the answer that it describes; nothing is computed here."""

import math
from collections.abc import Sequence

from core import units
from core.answer.statistics import TIE
from core.answer.study.result import Basis, Crossing, Crossover
from core.question.fields import FIELDS, SIZE_AXES

COUNTED: dict[Basis, str] = {
    "steady": ", counting the steps alone",
    "with_transfer": ", counting the steps and the copy of the data to the device",
    "cold_start": ", counting the steps and the whole start-up",
    "as_given": "",
}

USUAL_CAUSE = "; thresholds of threads, caches or tiles are the usual cause"

LISTED = 3
"""Sizes that a sentence names before it counts the rest."""


def sentence(found: Crossover) -> str:
    """The answer in one or two sentences."""
    match found.outcome:
        case "crossing":
            return _crossing(found)
        case "gpu_always" | "cpu_always":
            return _always(found)
        case "several":
            return f"There is no single crossover{COUNTED[found.basis]}: {found.reason}."
        case "undecided":
            return f"No crossover can be told{COUNTED[found.basis]}: {found.reason}."
    return f"Not measurable: {found.reason}."


def size(value: float) -> str:
    """A size: whole ones that were measured as they are, estimates to three digits; 1,024 and 9.43 and 562,000."""
    if value == math.floor(value):
        return f"{math.floor(value):,}"
    return f"{value:.3g}" if value < 1_000 else f"{float(f'{value:.3g}'):,.0f}"


def place(axis: str, text: str) -> str:
    """A place on an axis: "a hidden size of 147", "562,000 parameters"; on somebody else's "a size of 147"."""
    return (FIELDS[axis].place if axis in SIZE_AXES else "a size of {}").format(text)


def several(axis: str, crossings: Sequence[Crossing]) -> str:
    """Why there is no single number, to go on after a colon."""
    places = ", ".join(f"between {size(one.low)} and {size(one.high)}" for one in crossings)
    return (
        f"the faster device changes {len(crossings)} times beyond the noise, {places} ({axis.replace('_', ' ')})"
        f"{USUAL_CAUSE}"
    )


def unclear(sizes: Sequence[float], noise: float) -> str:
    """Why nothing is decided, to go on after a colon."""
    shown = ", ".join(map(size, sizes[:LISTED])) + (f" and {len(sizes) - LISTED} more" if len(sizes) > LISTED else "")
    return (
        f"at {shown} the difference is smaller than the noise ({units.share(noise)} a reading), "
        "so more readings or other sizes are needed"
    )


def single_readings(axis: str, changes: Sequence[tuple[float, float]], favoured: str) -> str:
    """What readings say of which there is one a size and device, to go on after a colon."""
    lead = "every size was read once a device, which does not tell the noise, so there is no interval"
    if not changes:
        return f"{lead}; the readings favour {favoured} everywhere"
    places = ", and between ".join(f"{size(below)} and {size(above)}" for below, above in changes)
    return f"{lead}; the readings change sides between {places} ({axis.replace('_', ' ')})"


def _crossing(found: Crossover) -> str:
    only = found.crossings[0]
    winner, loser = found.challenger, found.baseline
    if not only.challenger_above:
        winner, loser = loser, winner
    begin = place(found.axis, f"about {size(float(f'{only.estimate:.3g}'))}")
    said = (
        f"{winner} is faster than {loser} from {begin} on "
        f"(95 % interval {size(only.low)} to {size(only.high)}){COUNTED[found.basis]}."
    )
    if found.tie is None:
        return said
    low, high = map(size, found.tie)
    return f"{said} Between about {low} and {high} the difference is within {units.share(TIE - 1)}."


def _always(found: Crossover) -> str:
    timed = [(of.size, of.speedup) for of in found.sizes if of.speedup is not None]
    clear = all(of.low is None or of.high is None or not of.low <= 1 <= of.high for of in found.sizes)
    winner, loser, least = found.challenger, found.baseline, min(speedup for _, speedup in timed)
    if found.outcome == "cpu_always":
        winner, loser, least = loser, winner, 1 / max(speedup for _, speedup in timed)
    span = f"from {size(timed[0][0])} to {place(found.axis, size(timed[-1][0]))}"
    if not clear:
        return f"{winner} is faster than {loser} at every size {span} that the noise lets decide{COUNTED[found.basis]}."
    return (
        f"{winner} is faster than {loser} at every size measured {span}{COUNTED[found.basis]}: "
        f"at least {units.ratio(least)}. A crossover, if there is one, lies outside."
    )
