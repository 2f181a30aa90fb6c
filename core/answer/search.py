"""Adaptive search for a crossover: which size to measure next, and when to stop.

The search has four phases. It begins in the middle of the range. It gallops towards sizes where the other device should
win, until the sign changes or the range ends. It measures at the middle and the ends of the interval until the interval
is narrow. Finally it checks sentinels on either side and any other place where the curve allows a second crossing. If
the readings leave open how often the faster device changes, the neighbours of the most informative size are measured.
The search is a pure function of the results so far, so an interrupted search continues as if it had not been
interrupted. Distances are in ninths of the range; one ninth is an octave for the usual range of hidden sizes.

The method resembles probabilistic bisection (Waeber, Frazier & Henderson, SIAM J. Control Optim. 51(3), 2013), but uses
magnitudes instead of signs. A second crossing narrower than the gap between two sentinels cannot be detected.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import units
from .crossover import decide_crossover, log_speedups
from .curve_estimate import SpeedupCurve
from .judgement import Crossing, Crossover, Evidence, Size, judge_readings

NARROW_RATIO = 1.3
"""Ratio of the ends of the interval below which it counts as narrow: about a third of a doubling."""

STRIDES_PER_RANGE = 9
"""Number of strides in the range."""

GALLOP = 2.0
SENTINELS = (1.4, 2.5)
ASIDE_STRIDES = 0.6
SAME_PLACE_STRIDES = 0.3
REACHES = (0.6, 1.2, 2.4, 4.8)
"""Distances of the search, in strides.

- `GALLOP`: length of a gallop.
- `SENTINELS`: distance of the sentinels from the crossover.
- `ASIDE_STRIDES`: distance from the interval beyond which a second crossing is searched for.
- `SAME_PLACE_STRIDES`: distance within which a size counts as already measured.
- `REACHES`: distances from an undecided size at which the next sizes are tried; noisier sizes need larger distances.
"""

HIDDEN_CHANCE = 0.2
"""Probability that the other device wins, by the curve, above which a size outside the interval is measured."""

ENOUGH_NEAR = 5
"""Number of sizes measured near a contradicting size, or near an undecided end of the range, before their common result
is accepted: at a noise of 10 % per reading, three sizes leave a dip of 1.4 times unresolved in every fourth search.
"""

USUAL_SEARCH_SIZES = (6, 20)
"""Usual minimum and maximum number of sizes of a search, as in all but one of the sweeps of docs/statistics.md."""

MOST_UNDECIDED, MAX_SEARCH_SIZES = 16, 40
"""Maximum number of sizes of a search that has no winner on either side yet, and of any search."""


@dataclass(frozen=True, kw_only=True)
class SearchStep:
    """The next step of an adaptive search.

    Attributes:
        size: candidate to measure next; None if the search is over.
        reason: readable reason for this size, or for the end of the search.
    """

    size: float | None
    reason: str


def next_step(candidates: Sequence[float], evidence: Sequence[Evidence]) -> SearchStep:
    """Return the size whose measurement closes the interval soonest, or the end of the search.

    The result depends only on the arguments, not on their order. Sizes that were measured or skipped (an `obstacle`)
    are not chosen again.

    Args:
        candidates: sizes that may be chosen.
        evidence: timings so far; their sizes need not be candidates.
    """
    search = _Search(candidates, evidence)
    if not search.free:
        return SearchStep(size=None, reason="every size that fits was measured")
    if len(search.tried) >= MAX_SEARCH_SIZES:
        return SearchStep(size=None, reason=f"{MAX_SEARCH_SIZES} sizes were measured without a result")
    return search.step()


LARGEST_DIVISOR = 256
"""Largest divisor of sizes that is inferred from refused sizes."""


def select_buildable(candidates: Sequence[float], built: Sequence[float], refused: Sequence[float]) -> list[float]:
    """Return the candidates that a script can probably build, judging by the sizes it built and refused.

    Candidates must be multiples of the smallest number that divides all built sizes and no refused size. Without such a
    number, only the refused sizes are excluded.
    """
    left = [size for size in candidates if size not in refused]
    if not refused:
        return left
    for divisor in range(2, LARGEST_DIVISOR + 1):
        if not any(size % divisor for size in built) and all(size % divisor for size in refused):
            return [size for size in left if not size % divisor] or left
    return left


class _Search:
    """State of a search, computed from its evidence. Places are logarithms of sizes to base 2."""

    def __init__(self, candidates: Sequence[float], evidence: Sequence[Evidence]) -> None:
        self.timed = sorted((entry for entry in evidence if not entry.obstacle), key=lambda entry: entry.size)
        self.tried = {entry.size for entry in evidence}
        usable = max((entry.size for entry in self.timed), default=0.0)
        # The range ends at the first size beyond all timed ones that could not be measured, usually for lack of memory.
        ceiling = min((entry.size for entry in evidence if entry.obstacle and entry.size > usable), default=math.inf)
        inside = [size for size in sorted(candidates) if size < ceiling]
        self.free = [size for size in inside if size not in self.tried]
        self.low, self.high = math.log2(min(candidates)), math.log2(max(inside, default=min(candidates)))
        self.stride = max((self.high - self.low) / STRIDES_PER_RANGE, 1e-9)
        self.known = decide_crossover(evidence, Crossover(axis="size", basis="as_given", baseline="", challenger=""))
        self.sizes = [size for size in self.known.sizes if size.speedup is not None]
        self.places = [math.log2(size.size) for size in self.sizes]

    def step(self) -> SearchStep:
        if not self.sizes:
            return self._take((self.low + self.high) / 2, "the middle of the range")
        if self.known.contradicting:
            return self._look_again()
        if self.known.outcome == "several":
            return self._confirm()
        if self.known.outcome == "crossing":
            return self._close_in(self.known)
        if (place := self._find_doubtful()) is not None:
            return self._take(place, "to find how often the faster device changes")
        if len(self.sizes) >= MOST_UNDECIDED:
            noise = units.format_share(self.known.noise or 0.0)
            return SearchStep(
                size=None, reason=f"{len(self.sizes)} sizes were not enough at a noise of {noise} a reading"
            )
        return self._find_sides()

    def _close_in(self, answer: Crossover) -> SearchStep:
        """Narrow the interval, then check its neighbourhood."""
        only = answer.crossings[0]
        low, middle, high = math.log2(only.low), math.log2(only.estimate), math.log2(only.high)
        if only.high / only.low > NARROW_RATIO:
            inside = [place for place in self.places if low <= place <= high]
            targets = (middle, low, high)
            for turn in range(len(targets)):
                chosen = self._nearest(targets[(len(inside) + turn) % len(targets)])
                if low < math.log2(chosen) < high or self._is_within_bracket(math.log2(chosen)):
                    return SearchStep(size=chosen, reason="inside the interval")
        for distance, side in itertools.product(SENTINELS, (-1, 1)):
            place = middle + side * distance * self.stride
            if self.low <= place <= self.high and not self._has_neighbours(place):
                return self._take(place, "a measurement next to the crossover")
        for size, place in zip(self.sizes, self.places, strict=True):
            above = (size.speedup or 1.0) > 1
            astray = not low <= place <= high and above != ((place > high) == only.challenger_above)
            if astray and self._count_neighbours(place) < ENOUGH_NEAR:
                return self._take(place, "a second look at a size that may be on the other side")
        if (hidden := self._find_hidden_crossing(only)) is not None:
            return self._take(hidden, "a look where a second crossing could hide")
        narrow = only.high / only.low <= NARROW_RATIO
        return SearchStep(
            size=None, reason="the interval is narrow" if narrow else "no size is left to measure in between"
        )

    def _find_hidden_crossing(self, only: Crossing) -> float | None:
        """Return the likeliest place of a crossing back outside the interval, within reach of the sentinels."""
        aside, reach = ASIDE_STRIDES * self.stride, (SENTINELS[-1] + SAME_PLACE_STRIDES) * self.stride
        low, middle, high = math.log2(only.low), math.log2(only.estimate), math.log2(only.high)
        beside = [
            place
            for place in map(math.log2, self.free)
            if self.places[0] < place < self.places[-1]
            and not low - aside <= place <= high + aside
            and abs(place - middle) <= reach
            and not self._has_neighbours(place)
        ]
        if not beside:
            return None
        above = SpeedupCurve(log_speedups(self.timed), self.places[0], self.places[-1]).evaluate(np.array(beside)).above
        astray = np.where((np.array(beside) > high) == only.challenger_above, 1 - above, above)
        return beside[int(astray.argmax())] if astray.max() > HIDDEN_CHANCE else None

    def _find_doubtful(self) -> float | None:
        """Return the most informative place with an unmeasured neighbour, if the number of changes is uncertain."""
        doubtful = judge_readings(log_speedups(self.timed)).doubtful if len(self.timed) > 1 and self.known.noise else ()
        for place in doubtful:
            if abs(math.log2(self._nearest(place)) - place) <= ASIDE_STRIDES * self.stride:
                return place
        return None

    def _confirm(self) -> SearchStep:
        """With several crossings, measure again near a size with an isolated sign, which a disturbance may explain."""
        decided = [(size, place) for size, place in zip(self.sizes, self.places, strict=True) if _is_decided(size)]
        signs = [(size.speedup or 1.0) > 1 for size, _ in decided]
        for at, (_, place) in enumerate(decided):
            alone = all(signs[other] != signs[at] for other in (at - 1, at + 1) if 0 <= other < len(signs))
            if alone and self._count_neighbours(place) < ENOUGH_NEAR:
                return self._take(place, "a second look at an isolated size")
        return SearchStep(size=None, reason="the faster device changes more than once")

    def _look_again(self) -> SearchStep:
        """Measure next to contradicting sizes: a feature of the curve repeats there, the shift of a round does not."""
        for size in self.known.contradicting:
            if self._count_neighbours(math.log2(size)) < ENOUGH_NEAR:
                return self._take(math.log2(size), "a second look at a size that contradicts its neighbours")
        return SearchStep(size=None, reason="neighbouring sizes contradict each other")

    def _find_sides(self) -> SearchStep:
        """Search for a size where one device certainly wins, and for a size where the other one does."""
        signs = [(size.speedup or 1.0) > 1 for size in self.sizes]
        change = next((at for at, (a, b) in enumerate(itertools.pairwise(signs)) if a != b), None)
        if change is not None:
            return self._decide(change)
        return self._gallop(upwards=not signs[0])

    def _decide(self, before: int) -> SearchStep:
        """Measure further out on undecided sides: the readings change sides, but noise could explain the change."""
        open_sides = [(at, side) for at, side in ((before, -1), (before + 1, 1)) if not _is_decided(self.sizes[at])]
        for reach, (at, side) in itertools.product(REACHES, open_sides):
            aside = self.places[at] + side * reach * self.stride
            if self.low <= aside <= self.high and not self._has_neighbours(aside):
                return self._take(aside, "to be certain which device is faster there")
        if open_sides:
            return self._take(self.places[open_sides[0][0]], "to be certain which device is faster there")
        return self._take((self.places[before] + self.places[before + 1]) / 2, "between the two sides")

    def _gallop(self, *, upwards: bool) -> SearchStep:
        """Move to sizes where the other device should win, in both directions, since one device won at every size."""
        ahead = ((self.places[-1], self.high), (self.places[0], self.low))
        for place, end in ahead if upwards else reversed(ahead):
            if abs(end - place) > SAME_PLACE_STRIDES * self.stride or (
                abs(end - place) > 1e-9 and self._nearest(end) == 2**end
            ):
                leap = min(GALLOP * self.stride, abs(end - place))
                return self._take(
                    place + math.copysign(leap, end - place), "towards sizes where the other device should be faster"
                )
        for end in (0, -1) if self.known.outcome == "undecided" else ():
            if not _is_decided(self.sizes[end]) and self._count_neighbours(self.places[end]) < ENOUGH_NEAR:
                return self._take(self.places[end], "to decide the end of the range")
        return SearchStep(size=None, reason="no measurement up to the ends of the range suggests a crossover")

    def _take(self, place: float, reason: str) -> SearchStep:
        return SearchStep(size=self._nearest(place), reason=reason)

    def _nearest(self, place: float) -> float:
        """Return the free candidate nearest to a place; of two equally near candidates, the smaller one."""
        return min(self.free, key=lambda size: (abs(math.log2(size) - place), size))

    def _is_within_bracket(self, place: float) -> bool:
        """Return whether a place lies between the decided sizes on either side of the crossing."""
        decided = [(size, at) for size, at in zip(self.sizes, self.places, strict=True) if _is_decided(size)]
        middle = math.log2(self.known.crossings[0].estimate)
        below = max((at for _, at in decided if at <= middle), default=self.low)
        above = min((at for _, at in decided if at > middle), default=self.high)
        return below < place < above

    def _has_neighbours(self, place: float) -> bool:
        return self._count_neighbours(place) > 0

    def _count_neighbours(self, place: float) -> int:
        return sum(abs(other - place) <= SAME_PLACE_STRIDES * self.stride for other in self.places)


def _is_decided(size: Size) -> bool:
    """Return whether the readings of this size alone show the faster device, however small the difference."""
    return size.low is not None and size.high is not None and not size.low <= 1 <= size.high
