"""Everybody's results together: what counts, what a student's rows say, how they spread, what was expected."""

import dataclasses
import math

import pyarrow.parquet as pq
import pytest

from core.answer import study
from core.answer.charts import lesson_charts as charts
from core.classroom import results
from core.classroom.classes import Prediction, Student
from core.classroom.question import BASELINE, CHALLENGER, NEVER, SAME, ClassQuestion
from core.errors import InvalidValue
from core.question.experiment import Contender, Experiment
from core.question.sweep import Sweep
from core.results.parquet import to_table
from core.results.store import Store
from tests.students import QUESTION, measured

ADA = Student(id="a" * 16, nickname="ada", joined_at="2026-11-21T09:00:00+00:00")


def test_a_students_rows_become_one_crossover_with_its_interval():
    found = results.compute_result(QUESTION, ADA, measured())
    assert found.outcome == "crossing"
    assert found.low < 200 < found.high
    assert found.devices == "NVIDIA Test GPU against Test CPU"
    assert found.place(QUESTION) == 1_000
    assert found.winner == CHALLENGER


@pytest.mark.parametrize(("crossing", "place"), [(1e-3, 5), (1e6, NEVER)])
def test_who_is_faster_everywhere_or_nowhere_stands_at_an_end(crossing, place):
    found = results.compute_result(QUESTION, ADA, measured(crossing))
    assert found.estimate is None
    assert found.place(QUESTION) == place


@pytest.mark.parametrize(
    ("crossing", "measured_size", "place"),
    [(1e6, 10, None), (1e6, 2_000, NEVER), (1e-3, 5, 5), (1e-3, 10, None)],
)
def test_a_device_that_wins_at_the_sizes_measured_says_nothing_of_sizes_beyond(crossing, measured_size, place):
    rows = [row for row in measured(crossing) if row.hidden_size in (100, measured_size)]
    assert results.compute_result(QUESTION, ADA, rows).place(QUESTION) == place


def test_a_challenger_that_wins_below_a_size_is_no_answer_to_from_where_on():
    found = results.compute_result(QUESTION, ADA, measured(slope=-0.6))
    assert (found.outcome, found.estimate, found.place(QUESTION)) == ("several", None, None)


def test_one_training_gives_a_speedup():
    question = ClassQuestion.from_preset("mnist-linear")
    found = results.compute_result(question, ADA, measured(question=question))
    assert found.outcome == "gpu_always"
    assert found.speedup_low < 2 < found.speedup_high
    assert found.winner == CHALLENGER
    assert found.place(question) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"samples": 999}, "its samples is 999, and the class measures 2000"),
        ({"hidden_size": 64}, "its hidden_size is 64, and the class measures 10, 100, 1000, 2000, 5"),
        ({"precision": "bf16"}, "its precision is 'bf16', and the class measures with 'fp32'"),
        ({"drained": False}, "its drained is False"),
        ({"protocol_version": 0}, "its protocol_version is 0"),
        ({"contender": "cuda:0+graph10"}, "its device 'cuda:0+graph10' uses a variant, and a class compares"),
        ({"seed": 3}, "its seed is 3"),
    ],
)
def test_rows_that_were_measured_otherwise_are_not_pooled_and_the_reason_is_named(change, reason):
    other = [dataclasses.replace(row, **change) for row in measured()]
    assert results.select_rows(QUESTION, other)[1][0].startswith(reason)
    assert results.compute_result(QUESTION, ADA, other) is None


@pytest.mark.parametrize("contender", ["cpu@abc", "cpu@" + "9" * 5_000, "", "cpu@", "\x1b[2J", "cpu@1+nonsense", "gpu"])
def test_a_contender_that_cannot_be_parsed_harms_its_row_alone(contender):
    other = [dataclasses.replace(row, run_id="f" * 12, contender=contender) for row in measured()[:2]]
    mine, reasons = results.select_rows(QUESTION, [*other, *measured()])
    assert mine == measured()
    assert len(reasons) == 1
    assert reasons[0].endswith("cannot be read")
    assert len(reasons[0]) < 100
    assert results.compute_result(QUESTION, ADA, [*other, *measured()]) == results.compute_result(
        QUESTION, ADA, measured()
    )


def test_the_name_of_a_device_is_as_long_as_it_can_be_shown():
    found = results.compute_result(
        QUESTION, ADA, [dataclasses.replace(row, device_name="x" * 20_000) for row in measured()]
    )
    assert len(found.devices) < 200
    assert len(found.sentence) <= results.SENTENCE_LENGTH


def test_of_a_run_each_contender_counts_once_and_no_more_than_a_run_can_have():
    (baseline, challenger), rest = measured()[:2], measured()[2:]
    twice = dataclasses.replace(challenger, trial_id="another", block_end_ns=challenger.block_begin_ns)
    mine, reasons = results.select_rows(QUESTION, [baseline, challenger, twice, *rest])
    assert mine == measured()
    assert reasons == ["its run has a second row of 'cuda:0'"]
    many = [dataclasses.replace(challenger, trial_id=f"t{n}", contender=f"cuda:{n}") for n in range(20)]
    mine, reasons = results.select_rows(QUESTION, many)
    assert len(mine) == 8
    assert reasons == ["its run has more than the 8 contenders that a run can have"]


def test_what_is_worked_out_of_rows_grows_with_their_number_and_not_with_its_square(monkeypatch):
    """1,000 rows of one run took 16 s each time: half a million pairs of rows, each with its identity."""
    identities = []
    identity = study.study_identity
    monkeypatch.setattr(study, "study_identity", lambda *args: identities.append(1) or identity(*args))
    row = measured()[1]
    counts = []
    for number in (100, 1_000):
        identities.clear()
        one_run = [dataclasses.replace(row, trial_id=f"t{n}", contender=f"cuda:{n % 16}") for n in range(number)]
        many_runs = [dataclasses.replace(entry, run_id=f"{n // 8:012x}") for n, entry in enumerate(one_run)]
        results.compute_result(QUESTION, ADA, one_run)
        few = len(identities)
        assert few <= 28
        results.compute_result(QUESTION, ADA, many_runs)
        counts.append(len(identities) - few)
    assert counts[1] <= 10.5 * counts[0]


@pytest.mark.slow
def test_what_nobody_foresaw_in_a_students_rows_is_said_of_that_student(tmp_path, monkeypatch, caplog):
    store = Store(tmp_path)
    for row in measured():
        store.add(row)
    assert results.evaluate_student(QUESTION, ADA, tmp_path).result == results.compute_result(QUESTION, ADA, measured())

    def unforeseen(*_, **__):
        raise ZeroDivisionError("x" * 10_000)

    monkeypatch.setattr(study, "studies", unforeseen)
    found = results.evaluate_student(QUESTION, ADA, tmp_path)
    assert found == results.Finding(fault="these rows cannot be evaluated: ZeroDivisionError")
    assert "could not be pooled" in caplog.text


def test_a_file_that_cannot_be_read_costs_its_rows_and_is_said(tmp_path):
    store = Store(tmp_path)
    for row in measured():
        store.add(row)
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 torn")
    (tmp_path / "loop.parquet").symlink_to(tmp_path / "loop.parquet")
    table = to_table([dataclasses.replace(measured()[0], contender="cpu@abc", trial_id="odd")])
    pq.write_table(table, tmp_path / "odd.parquet")
    found = results.evaluate_student(QUESTION, ADA, tmp_path)
    assert found.result == results.compute_result(QUESTION, ADA, measured())
    assert found.fault.startswith("a file cannot be read, because ")


def test_crossovers_spread_by_device_and_are_never_averaged_over_them():
    crossings = [
        dataclasses.replace(results.compute_result(QUESTION, ADA, measured(crossing)), challenger=device)
        for crossing, device in ((100, "A"), (200, "A"), (400, "A"), (50, "B"))
    ]
    groups = results.group_by_devices(crossings)
    assert [(group.devices[0], group.results, group.crossings) for group in groups] == [("A", 3, 3), ("B", 1, 1)]
    assert groups[0].lowest < groups[0].median < groups[0].highest
    assert groups[0].lowest > 50


def test_expectations_are_counted_by_winner_and_place():
    said = [Prediction(winner=CHALLENGER, place=100), Prediction(winner=CHALLENGER, place=NEVER)]
    counted = results.count_predictions(QUESTION, [*said, Prediction(winner=SAME, place=100)])
    assert counted.students == 3
    assert counted.winners == {BASELINE: 0, CHALLENGER: 2, SAME: 1}
    assert counted.places == {5: 0, 10: 0, 100: 2, 1_000: 0, 2_000: 0, NEVER: 1}


def test_a_question_is_the_same_for_everybody_but_for_the_devices():
    asked = QUESTION.with_contenders([Contender(), Contender(device="cuda:0")])
    assert isinstance(asked, Sweep)
    assert asked.points == QUESTION.points
    assert isinstance(
        ClassQuestion.from_preset("mnist-linear").with_contenders([Contender(), Contender(threads=1)]), Experiment
    )
    with pytest.raises(InvalidValue, match="two different ones"):
        QUESTION.with_contenders([Contender()])
    assert ClassQuestion.from_json(QUESTION.to_json()) == QUESTION


def test_the_chart_has_everybody_in_their_device_s_lane_and_the_tally_behind():
    marks = [
        charts.StudentResult(
            who="ada", devices="A", kind="cuda", value=200, low=150, high=300, outcome="crossing", answer="x"
        ),
        charts.StudentResult(
            who="<img>", devices="B", kind="cpu", value=None, low=None, high=None, outcome="cpu_always", answer=""
        ),
        charts.StudentResult(
            who="?", devices="B", kind="cpu", value=None, low=None, high=None, outcome="undecided", answer=""
        ),
    ]
    spec = charts.student_crossovers_chart(marks, {5: 0, 100: 3, 2_000: 1}, "hidden size")
    values = spec["data"]["values"]
    assert [(row["size"], row["students"]) for row in values if "students" in row] == [(100, 3), (2_000, 1)]
    assert [(row["who"], row["at"], row["found"]) for row in values if "who" in row] == [
        ("ada", 200, "measured"),
        ("<img>", 2_000, "faster at no size"),
    ]
    assert spec["layer"][0]["mark"]["type"] == "rule"
    assert charts.student_speedups_chart([dataclasses.replace(marks[0], value=2.0, low=1.5, high=2.5)])["data"][
        "values"
    ]
    assert charts.student_crossovers_chart([], {5: 0, 100: 0}, "hidden size")["data"]["values"] == []


def test_one_rows_figure_does_not_flatten_the_chart_of_all():
    mark = charts.StudentResult(
        who="ada", devices="A", kind="cuda", value=2.0, low=1.5, high=2.5, outcome="gpu_always", answer=""
    )
    odd = dataclasses.replace(mark, who="eve", value=1e30, low=1e-30, high=math.inf)
    values = charts.student_speedups_chart([mark, odd])["data"]["values"]
    assert [(row["at"], row["low"], row["high"]) for row in values] == [(2.0, 1.5, 2.5), (1e4, 1e-4, 1e4)]
    values = charts.student_crossovers_chart([odd], {5: 1, 100: 0}, "hidden size")["data"]["values"]
    assert [(row["at"], row["low"], row["high"]) for row in values if "who" in row] == [(1_000, 0.5, 1_000)]
