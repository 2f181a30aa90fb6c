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
    assert units.format_duration(seconds) == text


def test_a_duration_may_have_fewer_digits():
    assert [units.format_duration(seconds, digits=2) for seconds in (0.00698, 0.0166, 93)] == [
        "7.0 ms",
        "17 ms",
        "1 min 33 s",
    ]


@pytest.mark.parametrize(
    ("fraction", "digits", "text"),
    [(0.784, 0, "78 %"), (0.995, 0, "99.5 %"), (0.99996, 1, "99.996 %"), (1.0, 1, "100.0 %"), (1.2, 0, "120 %")],
)
def test_what_is_not_the_whole_is_never_said_to_be(fraction, digits, text):
    assert units.format_counted_share(fraction, digits) == text


def test_parts_that_floats_leave_short_of_the_whole_are_the_whole():
    assert units.format_counted_share(1 - 1e-12) == "100 %"


def test_what_is_not_known_is_left_blank():
    assert units.format_if_known(None, units.format_ratio) == ""
    assert units.format_if_known(0.0, units.format_duration) == "0 s"


@pytest.mark.parametrize(("low", "high", "text"), [(1.2, 1.4, "1.20× to 1.40×"), (None, 1.4, ""), (1.2, None, "")])
def test_an_interval_has_both_ends_or_is_left_blank(low, high, text):
    assert units.format_interval(low, high, units.format_ratio) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (4.4, "4 s"), (13.0, "15 s"), (37.2, "40 s"), (93.0, "1 min 30 s"), (400.0, "7 min")],
)
def test_an_estimate_of_a_time_is_no_finer_than_it_can_be_known(seconds, text):
    assert units.format_rough_time(seconds) == text


def test_what_is_left_ends_a_line_and_is_never_less_than_a_second():
    assert units.format_time_left(120.0) == ", about 2 min left"
    assert units.format_time_left(0.2) == ", about 1.00 s left"
    assert units.format_time_left(None) == ""


@pytest.mark.parametrize(
    ("value", "said"), [(2e-7, "2.0 × 10⁻⁷"), (9.96e-8, "1.0 × 10⁻⁷"), (3.14, "3.1"), (4e12, "4.0 × 10¹²")]
)
def test_a_number_of_any_size_is_written_without_the_e_of_programs(value, said):
    assert units.format_power(value) == said
