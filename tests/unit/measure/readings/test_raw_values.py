"""Raw values: what nobody has measured is empty."""

from core.measure.breakdown import RawValues


def test_nothing_is_known_before_it_was_measured():
    assert not any(RawValues().columns().values())
