"""What a run says is worked out once, when it is asked for."""

import dataclasses

import pytest

from core.answer import accuracy, speedup, training_time
from core.answer.run import PairAnswer, RowAnswer, RunAnswer, causes
from core.errors import InvalidValue, NotComparable
from tests.rows import run, trial


def test_a_run_says_what_its_rows_say():
    base, other = rows = run()
    answer = RunAnswer(rows)
    (pair,) = answer.pairs
    assert [row.label for row in answer.rows] == [speedup.contender_label(base), speedup.contender_label(other)]
    assert answer.rows[1].startup_s == training_time.startup_s(other)
    assert pair.verdict == speedup.verdict_sentence(speedup.speedup(base, other))
    assert pair.break_even == training_time.find_break_even(base, other)
    assert pair.agreement == accuracy.compare_predictions(base, other)
    assert answer.remedies == ()
    assert answer.best_variants is None


def test_what_was_worked_out_is_kept(monkeypatch):
    asked = []
    monkeypatch.setattr(causes, "step_parts", lambda row: asked.append(row))
    row = RowAnswer(trial())
    assert asked == []
    assert (row.parts, row.parts) == (None, None)
    assert asked == [row.row]


def test_rows_that_cannot_be_compared_are_refused_where_it_is_asked():
    base, other = run()
    pair = PairAnswer(base, dataclasses.replace(other, batch_size=7))
    with pytest.raises(NotComparable, match="batch size"):
        _ = pair.verdict
    assert RowAnswer(pair.challenger).label == speedup.contender_label(other)


def test_an_accuracy_for_people_is_empty_where_there_is_none():
    row = run()[0]
    wrong = RowAnswer(dataclasses.replace(row, confusion=(1, 2, 3)))
    assert RowAnswer(row).accuracy_shown == f"{100 * accuracy.accuracy(row):.1f} %"
    assert RowAnswer(dataclasses.replace(row, confusion=())).accuracy_shown == ""
    assert wrong.accuracy_shown == ""
    with pytest.raises(InvalidValue):
        _ = wrong.accuracy
