"""Sizes that are dealt out to the students of one host, and the one curve that they make of it."""

import dataclasses

import pytest

from core.classroom import results
from core.classroom.classes import Student
from core.classroom.question import ClassQuestion
from core.errors import InvalidValue
from core.question.experiment import Contender
from core.results.parquet import to_table
from core.results.store import Store
from tests.students import QUESTION, measured

ADA = Student(id="a" * 16, nickname="ada", joined_at="2026-11-21T09:00:00+00:00")
PAIR = (Contender.parse("cpu"), Contender.parse("cuda:0"))


def deal_to(count):
    """The sizes that so many students get one after the other."""
    taken = {}
    for _ in range(count):
        size = QUESTION.deal_size(taken)
        taken[size] = taken.get(size, 0) + 1
    return taken


def test_every_size_is_dealt_before_one_is_dealt_twice():
    assert deal_to(len(QUESTION.dealt_sizes)) == dict.fromkeys(QUESTION.dealt_sizes, 1)
    assert set(deal_to(30).values()) == {30 // len(QUESTION.dealt_sizes)}


def test_the_first_students_cover_the_range():
    assert list(deal_to(2)) == [QUESTION.dealt_sizes[0], QUESTION.dealt_sizes[-1]]
    assert list(deal_to(3))[2] == QUESTION.dealt_sizes[2]


def test_repeats_go_to_sizes_that_are_still_uncertain():
    everywhere = dict.fromkeys(QUESTION.dealt_sizes, 2)
    assert QUESTION.deal_size(everywhere, uncertain={1_000}) == 1_000
    assert QUESTION.deal_size(everywhere | {10: 1}, uncertain={1_000}) == 10


def test_a_dealt_size_is_one_training_of_the_class():
    asked = QUESTION.with_size(100, PAIR)
    assert (asked.point.hidden_size, asked.contenders) == (100, PAIR)
    with pytest.raises(InvalidValue, match="one of the class's sizes"):
        QUESTION.with_size(101, PAIR)


@pytest.mark.parametrize("preset", ["mnist-linear", "fashion-cnn"])
def test_nothing_is_dealt_where_there_is_no_single_axis(preset):
    assert ClassQuestion.from_preset(preset).dealt_sizes == ()


def rows_of(size, rows):
    return [row for row in rows if row.hidden_size == size]


def test_one_size_each_makes_the_curve_of_the_class():
    every = measured()
    found = results.pool_rows(QUESTION, every)
    assert found.sizes == QUESTION.dealt_sizes
    assert results.pool_rows(QUESTION, []) is None
    assert results.pool_rows(QUESTION, rows_of(100, every)).sizes == (100,)


def repeated(rows, number, **changes):
    """The same rows as another student measured them later."""
    names = {"started_at": f"2026-11-22T10:{number:02}:00.000+00:00", **changes}
    return [
        dataclasses.replace(
            row, run_id=f"{number:02}{row.run_id[2:]}", trial_id=f"{number:02}{row.trial_id[2:]}", **names
        )
        for row in rows
    ]


def at_size(study, size):
    """What the curve says at a size."""
    return next(found for found in study.crossover().sizes if found.size == size)


def test_repeats_of_a_size_pool_and_narrow_its_interval():
    every = measured()
    again = [row for number in (1, 2, 3) for row in repeated(rows_of(100, every), number)]
    once, pooled = (results.pool_rows(QUESTION, rows) for rows in (every, every + again))
    readings = {found.size: found.readings for found in pooled.crossover().sizes}
    assert readings == dict.fromkeys(QUESTION.dealt_sizes, 8) | {100: 32}
    before, after = at_size(once, 100), at_size(pooled, 100)
    assert after.high / after.low < before.high / before.low


def test_the_newest_repeat_does_not_replace_what_others_measured():
    every = measured()
    again = [row for number in (1, 2) for row in repeated(rows_of(100, every), number)]
    apart = repeated(rows_of(100, measured(1_000.0)), 9)
    found, alone = (results.pool_rows(QUESTION, rows) for rows in (every + again + apart, every))
    assert at_size(found, 100).speedup == pytest.approx(at_size(alone, 100).speedup, rel=0.05)


@pytest.mark.parametrize("outcome", ["interrupted", "stopped"])
def test_a_repeat_that_was_cut_off_is_not_pooled(outcome):
    every = measured()
    found = results.pool_rows(QUESTION, every + repeated(rows_of(100, every), 1, outcome=outcome))
    assert found.repeats == ()
    assert {entry.readings for entry in found.crossover().sizes} == {8}


def test_a_student_with_one_size_has_a_speedup_there_and_no_crossover():
    found = results.compute_result(QUESTION, ADA, rows_of(1_000, measured()))
    assert (found.estimate, found.sizes, found.place(QUESTION)) == (None, 1, None)
    assert found.speedup_low < (1_000 / 200) ** 0.6 < found.speedup_high
    assert found.sentence.startswith("At a hidden size of 1,000: ")


def test_rows_that_a_file_brought_are_not_of_the_host(tmp_path):
    brought = [dataclasses.replace(row, origin="file") for row in measured()]
    Store(tmp_path).add_all(to_table(brought))
    found = results.evaluate_student(QUESTION, ADA, tmp_path)
    assert found.result is not None
    assert found.rows == ()


def test_the_nearest_prediction_is_nearest_as_a_ratio():
    assert results.find_nearest({"ada": 100, "bob": 1_000, "eve": 5}, 400) == ["bob"]
    assert results.find_nearest({"ada": 100, "bob": 400}, 200) == ["ada", "bob"]
    assert results.find_nearest({}, 200) == []
