"""How well predictions meet published trainings, as a frozen figure, and that the constants are those of the fit."""

import json
from pathlib import Path

import pytest

from core.answer.predict import Comparison, cards, list_cards, load_accuracy
from core.files.project import PROJECT

TABLE = PROJECT.parent.parent / "shared" / "predict" / "data"
"""Published timings of operations, which are no part of this repository."""

LEAST_COVERAGE, MOST_MEDIAN_ERROR = 0.85, 0.35


def find_table() -> Path:
    for folder in (PROJECT.parent / "shared" / "predict" / "data", TABLE):
        if (folder / "ops.parquet").exists():
            return folder
    pytest.skip("The table of timed operations is not here: ../shared/predict/data")


def test_ranges_hold_most_published_trainings_on_cards_that_were_left_out_of_the_fit():
    found = load_accuracy()
    assert len(found.rows) == 71
    assert found.coverage >= LEAST_COVERAGE
    assert found.median_error <= MOST_MEDIAN_ERROR
    assert len(found.misses) == round((1 - found.coverage) * 71)


def test_ranges_are_not_made_wide_enough_to_hold_anything():
    constants = cards.load_constants()
    assert 1.5 < constants.fit.half_width < 2
    assert constants.fit.half_width < constants.fit.wide < 3
    assert all(fit.half_width < 2.5 for fit in constants.left_out.values())


def test_only_rows_with_a_licence_are_shipped():
    published = json.loads((cards.FOLDER / "published.json").read_text())
    assert {row["source"] for row in published["rows"]} == set(published["licences"])
    assert all(licence.startswith("MIT") for licence in published["licences"].values())


def test_every_card_that_is_offered_was_compared_with_a_named_source():
    offered = list_cards()
    assert [card.key for card in offered][:7] == [
        "v100", "a100-80gb", "h100", "l4", "gtx-1080-ti", "titan-x-pascal", "p100",
    ]  # fmt: skip
    for card in offered:
        assert card.checked
        assert all(source.startswith("http") for source in card.sources)
        assert (card.basis == "timed") <= (card.name in cards.load_constants().speeds)


@pytest.mark.slow
def test_the_program_gives_the_constants_to_one_per_cent():
    folder = find_table()
    from tests.benchmarks import fit_predictions

    made = fit_predictions.to_plain(fit_predictions.fit_all(folder)[0])
    shipped = json.loads((cards.FOLDER / "constants.json").read_text())

    def compare(one, other, place="constants"):
        if isinstance(one, dict):
            assert one.keys() == other.keys(), place
            for name in one:
                compare(one[name], other[name], f"{place}.{name}")
        elif isinstance(one, list):
            for number, (mine, theirs) in enumerate(zip(one, other, strict=True)):
                compare(mine, theirs, f"{place}.{number}")
        else:
            assert one == pytest.approx(other, rel=0.01), place

    compare(made, shipped)


@pytest.mark.parametrize(("held", "runs", "is_off"), [(6, 10, True), (7, 10, False), (0, 9, False), (13, 20, True)])
def test_a_card_whose_later_runs_were_mostly_outside_is_switched_off(held, runs, is_off):
    made = Comparison(runs=(*[(1.0, 2.0, 1.5)] * held, *[(1.0, 2.0, 3.0)] * (runs - held)))
    assert made.is_off == is_off
    assert f"{held} of {runs} later runs" in made.sentence
    assert ("switched off" in made.sentence) == is_off
