"""The order of turns: who goes first, and after whom, in how many rounds."""

import itertools
from collections import Counter

import pytest

from core.measure.trial import Orders


def rounds(takers: str, count: int, seed: str = "seed") -> list[str]:
    orders = Orders[str](seed)
    return ["".join(orders.next(takers)) for _ in range(count)]


def test_each_of_two_goes_first_in_one_of_two_rounds():
    drawn = rounds("ab", 20)
    assert all({first, second} == {"ab", "ba"} for first, second in zip(drawn[::2], drawn[1::2], strict=True))


@pytest.mark.parametrize("takers", ["ab", "abc", "abcd", "abcde", "abcdefgh"])
def test_in_every_two_rounds_each_of_any_two_goes_before_the_other_once(takers):
    drawn = rounds(takers, 4 * len(takers))
    for first, second in zip(drawn[::2], drawn[1::2], strict=True):
        assert second == first[::-1]
        assert sorted(first) == list(takers)


@pytest.mark.parametrize("takers", ["ab", "abc", "abcd", "abcde", "abcdefgh"])
def test_over_a_square_each_is_in_every_place_and_after_every_other_equally_often(takers):
    square = rounds(takers, len(takers) * (1 + len(takers) % 2))
    each = 1 + len(takers) % 2
    places = Counter((place, taker) for order in square for place, taker in enumerate(order))
    assert set(places.values()) == {each}
    followed = Counter(pair for order in square for pair in itertools.pairwise(order))
    assert set(followed.values()) == {each}
    assert len(followed) == len(takers) * (len(takers) - 1)


def test_the_first_order_is_drawn_and_the_same_for_the_same_seed():
    assert {rounds("ab", 1, seed=str(seed))[0] for seed in range(20)} == {"ab", "ba"}
    assert rounds("abcd", 30) == rounds("abcd", 30)


def test_who_goes_is_left_out_from_the_next_round_on():
    orders = Orders[str]("seed")
    orders.next("abc")
    assert sorted(orders.next("ac")) == ["a", "c"]
    assert sorted(orders.next("a")) == ["a"]
