"""How sizes and places are written."""

import pytest

from core.answer.study import wording


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (8, "8"),
        (1024.0, "1,024"),
        (703_142.0, "703,142"),
        (9.4312, "9.43"),
        (510.4, "510"),
        (0.1, "0.1"),
        (0.0123, "0.0123"),
        (1234.5, "1,230"),
        (562_345.6, "562,000"),
    ],
)
def test_measured_sizes_are_written_in_full_and_estimates_to_three_digits(size, text):
    assert wording.size(size) == text


@pytest.mark.parametrize(
    ("axis", "text"),
    [("hidden_size", "a hidden size of 8"), ("parameters", "8 parameters"), ("rows", "8 rows"), ("size", "a size of 8")],
)
def test_a_place_names_its_axis(axis, text):
    assert wording.place(axis, "8") == text
