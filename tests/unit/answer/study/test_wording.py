"""How sizes and places are written."""

from dataclasses import replace

import pytest

from core.answer import wording
from core.answer.judgement import Crossing, Crossover


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
    assert wording.format_size(size) == text


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        ("hidden_size", "a hidden size of 8"),
        ("parameters", "8 parameters"),
        ("rows", "8 rows"),
        ("size", "a size of 8"),
    ],
)
def test_a_place_names_its_axis(axis, text):
    assert wording.place_on_axis(axis, "8") == text


def crossing(axis, estimate, low, high, tie=None):
    only = Crossing(estimate=estimate, low=low, high=high, challenger_above=True)
    return Crossover(
        axis=axis,
        basis="steady",
        baseline="1 CPU thread",
        challenger="2 CPU threads",
        outcome="crossing",
        estimate=estimate,
        low=low,
        high=high,
        tie=tie,
        crossings=(only,),
    )


@pytest.mark.parametrize(
    ("axis", "ends", "said"),
    [
        ("depth", (7.52, 7.02, 7.98), "from a depth of 8 on (95 % interval 7 to 8)"),
        ("depth", (8.0, 8.0, 8.0), "from a depth of 8 on (95 % interval 8 to 8)"),
        ("depth", (5.2, 3.9, 8.1), "from a depth of about 6 on (95 % interval 3 to 9)"),
        ("hidden_size", (147.3, 99.7, 185.2), "from a hidden size of about 147 on (95 % interval 99 to 186)"),
        ("parameters", (562_345.6, 410_000.4, 703_142.0), "from about 562,000 parameters on (95 % interval 410,000 to"),
        ("size", (7.52, 7.02, 7.98), "from a size of about 7.52 on (95 % interval 7.02 to 7.98)"),
    ],
)
def test_where_only_whole_numbers_can_be_built_a_crossing_is_one_and_its_interval_is_rounded_outwards(axis, ends, said):
    found = crossing(axis, *ends)
    assert said in wording.crossover_sentence(found)
    assert said.partition(" on ")[0].replace("from", "From") in wording.crossover_headline(found)


@pytest.mark.parametrize(
    ("tie", "said"),
    [
        ((7.1, 7.9), "the steps alone."),
        ((6.8, 7.9), "At 7 the difference is within 10 %."),
        ((6.8, 9.3), "From 7 to 9 the difference is within 10 %."),
        ((86.1, 116.4), "Between about 87 and 116 the difference is within 10 %."),
    ],
)
def test_a_tie_names_the_whole_numbers_that_are_in_it(tie, said):
    assert wording.crossover_sentence(crossing("depth", 7.52, 7.02, 7.98, tie)).endswith(said)


def test_every_range_of_sizes_in_which_devices_are_close_is_named():
    found = replace(crossing("parameters", 500.0, 400.0, 600.0, tie=(450.0, 550.0)), also_close=((2_000.0, 3_000.0),))
    close = "Between about 450 and 550, and between about 2,000 and 3,000 the difference is within 10 %."
    assert wording.crossover_sentence(found).endswith(close)
