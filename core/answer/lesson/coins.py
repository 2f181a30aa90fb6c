"""The binomial with chance 1/2, of any number of coins: whole numbers of a million digits take minutes, floats do not.

Summed from the largest term down, as far as a float can tell; the relative error is below 1e-8 up to a million coins.
"""

import math
import sys
from statistics import NormalDist


def at_most(heads: int, coins: int) -> float:
    """Probability that of so many coins at most so many show heads, which are no more than half of them."""
    if heads < 0:
        return 0.0
    total = term = 1.0
    for place in range(heads, 0, -1):
        term *= place / (coins - place + 1)
        total += term
        if term < sys.float_info.epsilon * total:
            break
    ways = math.lgamma(coins + 1) - math.lgamma(heads + 1) - math.lgamma(coins - heads + 1)
    return total * math.exp(ways - coins * math.log(2))


def most_within(share: float, coins: int) -> int:
    """Most heads for which `at_most` is no more than a share below one half; -1 if there are none."""
    heads = math.floor((coins + NormalDist().inv_cdf(share) * math.sqrt(coins)) / 2)  # the normal distribution is near
    while heads >= 0 and at_most(heads, coins) > share:
        heads -= 1
    while at_most(heads + 1, coins) <= share:
        heads += 1
    return heads
