"""How numbers are written for people."""

import pytest

from core import units


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (1.23e-3, "1.23 ms"),
        (999.6e-6, "1.00 ms"),
        (999.4e-6, "999 µs"),
        (0.9996, "1.00 s"),
        (59.0, "59.0 s"),
        (60.0, "1 min"),
        (93.0, "1 min 33 s"),
        (3_600.0, "1 h"),
        (5_400.0, "1 h 30 min"),
        (float("inf"), "unknown"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_fits(seconds, text):
    assert units.duration(seconds) == text
