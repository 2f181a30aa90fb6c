"""What a run says is worked out once, when it is asked for."""

import dataclasses

import pytest

from core.answer import accuracy, speedup, training_cost
from core.answer.export import report
from core.answer.run import Run, RunPair, RunRow, causes
from core.answer.verdict import verdict_sentence
from core.errors import InvalidValue, NotComparable
from tests.rows import run, trial


def test_a_run_says_what_its_rows_say():
    base, other = rows = run()
    answer = Run(rows)
    (pair,) = answer.pairs
    assert [row.label for row in answer.rows] == [speedup.contender_label(base), speedup.contender_label(other)]
    assert answer.rows[1].startup_s == training_cost.startup_s(other)
    assert pair.verdict == verdict_sentence(speedup.speedup(base, other))
    assert pair.break_even == training_cost.find_break_even(base, other)
    assert pair.agreement == accuracy.compare_predictions(base, other)
    assert answer.remedies == ()
    assert answer.best_variants is None


@pytest.mark.parametrize(
    ("contender", "step_s", "policy", "line"),
    [
        ("cpu@2", 5e-3, "PASSIVE, GOMP_SPINCOUNT=3000", "OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=3000"),
        ("cpu@2", 5e-3, ", KMP_BLOCKTIME=1", "KMP_BLOCKTIME=1"),
        ("cpu@2", 5e-3, "", ""),
        ("cpu@2", 5e-2, "PASSIVE", ""),
        ("cuda:0", 5e-3, "PASSIVE", ""),
    ],
)
def test_a_run_says_how_several_cpu_threads_waited_where_it_matters(contender, step_s, policy, line):
    rows = run(steps_s={"cpu@1": step_s, contender: step_s}, omp_wait_policy=policy)
    (pair,) = Run(rows).pairs
    said = f"The CPU threads waited with {line}. Set this variable for your own script to get the same times."
    assert pair.thread_waits == (said if line else "")
    assert report.run_text(rows).count("The CPU threads waited with") == bool(line)
    assert report.run_document(rows, from_store=False)["comparisons"][0]["thread_waits"] == pair.thread_waits


def test_what_was_worked_out_is_kept(monkeypatch):
    asked = []
    monkeypatch.setattr(causes, "step_parts", lambda row: asked.append(row))
    row = RunRow(trial())
    assert asked == []
    assert (row.parts, row.parts) == (None, None)
    assert asked == [row.row]


def test_rows_that_cannot_be_compared_are_refused_where_it_is_asked():
    base, other = run()
    pair = RunPair(base, dataclasses.replace(other, batch_size=7))
    with pytest.raises(NotComparable, match="batch size"):
        _ = pair.verdict
    assert RunRow(pair.challenger).label == speedup.contender_label(other)


def test_an_accuracy_for_people_is_empty_where_there_is_none():
    row = run()[0]
    wrong = RunRow(dataclasses.replace(row, confusion=(1, 2, 3)))
    assert RunRow(row).accuracy_shown == f"{100 * accuracy.accuracy(row):.1f} %"
    assert RunRow(dataclasses.replace(row, confusion=())).accuracy_shown == ""
    assert wrong.accuracy_shown == ""
    with pytest.raises(InvalidValue):
        _ = wrong.accuracy
