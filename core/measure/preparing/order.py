"""In which order contenders take their turns: balanced, so that who goes first, or after whom, decides nothing.

Who follows a long block finds other caches and another clock than who follows a short one. Drawn anew each round,
orders would even that out over hundreds of rounds only; a run has twenty, a point of a sweep six.
"""

import random
from collections.abc import Sequence
from typing import Generic, TypeVar

Taker = TypeVar("Taker")


class Orders(Generic[Taker]):
    """Orders of one round after another.

    Rounds come in twos, the second the first reversed, so of any two takers each goes before the other equally often.
    The rows of a Williams square, over which each is also in every place and after every other equally often
    (Williams 1949, https://doi.org/10.1071/CH9490149), are drawn at random, and the takers are put into it at random.
    """

    def __init__(self, seed: str) -> None:
        """Begin with a first square; orders of the same seed are the same."""
        self._draw = random.Random(seed)
        self._takers: list[Taker] = []
        self._coming: list[list[Taker]] = []

    def next(self, takers: Sequence[Taker]) -> list[Taker]:
        """The order of the next round; who came or went since the last one begins another square."""
        if not self._coming or self._takers != list(takers):
            self._takers = list(takers)
            self._coming = self._square()
        return self._coming.pop()

    def _square(self) -> list[list[Taker]]:
        count = len(self._takers)
        mixed = self._draw.sample(self._takers, count)
        zigzag = [(place + 1) // 2 if place % 2 else -(place // 2) for place in range(count)]  # 0, 1, -1, 2, -2, …
        shifts = range(count if count % 2 else count // 2)  # of an even number, the other half are these reversed
        rows = ([mixed[(step + shift) % count] for step in zigzag] for shift in self._draw.sample(shifts, len(shifts)))
        return [order for row in rows for order in (row, row[::-1])]
