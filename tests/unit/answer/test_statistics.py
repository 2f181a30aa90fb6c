import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.answer import statistics


def exactly(heads: int, of: int) -> Fraction:
    return Fraction(sum(math.comb(of, place) for place in range(heads + 1)), 2**of)


@given(st.integers(0, 300), st.data())
def test_a_chance_is_that_of_whole_numbers(of, data):
    heads = data.draw(st.integers(0, of // 2))
    assert statistics.heads_at_most(heads, of) == pytest.approx(float(exactly(heads, of)), rel=1e-10)
    assert statistics.heads_at_most(-1, of) == 0


@given(st.integers(0, 400))
def test_as_many_are_within_a_share_as_by_whole_numbers(of):
    found = statistics.most_heads(1 / 40, of)
    assert found == -1 or exactly(found, of) <= Fraction(1, 40)
    assert exactly(found + 1, of) > Fraction(1, 40)


@pytest.mark.parametrize("of", [5_000, 100_000, 1_000_000])
def test_of_very_many_coins_few_terms_are_summed(of, monkeypatch):
    """A run of a day has 864,000 blocks; in whole numbers the interval of their median took a minute."""
    summed = []
    monkeypatch.setattr(
        statistics, "range", lambda *ends: (summed.append(at) or at for at in range(*ends)), raising=False
    )
    found = statistics.most_heads(1 / 40, of)
    assert statistics.heads_at_most(found, of) <= 1 / 40 < statistics.heads_at_most(found + 1, of)
    assert found == pytest.approx(of / 2 - 0.98 * math.sqrt(of), abs=2)
    assert len(summed) < 100 * math.sqrt(of)
