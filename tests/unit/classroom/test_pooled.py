"""Everybody's results together: what counts, what a student's rows say, how they spread, what was expected."""

import dataclasses
import io

import pyarrow.parquet as pq
import pytest

from core.answer.charts import classroom as charts
from core.classroom import handed_in, pooled
from core.classroom.classes import Classes, Prediction, Student
from core.classroom.question import BASELINE, CHALLENGER, NEVER, SAME, Question
from core.errors import InvalidValue, NotAllowed
from core.experiment import Contender, Experiment
from core.results.store import Store
from core.sweep import Sweep
from tests import rows

QUESTION = Question.of_preset("signal")
ADA = Student(id="a" * 16, nickname="ada", joined_at="2026-11-21T09:00:00+00:00")


def measured(crossing=200.0, *, question=QUESTION, slope=0.6, **changes):
    """Rows of the question with a GPU that is faster above a hidden size."""
    found = []
    for number, point in enumerate(question.points):
        ratio = (point.hidden_size / crossing) ** slope if point.hidden_size else 2.0
        steps = {"cpu": 1e-3, "cuda:0": 1e-3 / ratio}
        found += rows.run(steps, point=point, run_id=f"{number:012x}", outcome="timed", pairs=8, **changes)
    return found


@pytest.fixture
def classes(tmp_path):
    return Classes(tmp_path / "classes")


@pytest.fixture
def of(classes):
    return classes.create("Physics 7b", QUESTION)[0]


@pytest.fixture
def ada(classes, of):
    return classes.join(of, "ada")[0]


def test_a_students_rows_become_one_crossover_with_its_interval():
    found = pooled.result(QUESTION, ADA, measured())
    assert found.outcome == "crossing"
    assert found.low < 200 < found.high
    assert found.devices == "NVIDIA Test GPU against Test CPU"
    assert found.place(QUESTION) == 1_000
    assert found.winner == CHALLENGER


@pytest.mark.parametrize(("crossing", "place"), [(1e-3, 5), (1e6, NEVER)])
def test_who_is_faster_everywhere_or_nowhere_stands_at_an_end(crossing, place):
    found = pooled.result(QUESTION, ADA, measured(crossing))
    assert found.estimate is None
    assert found.place(QUESTION) == place


def test_a_challenger_that_wins_below_a_size_is_no_answer_to_from_where_on():
    found = pooled.result(QUESTION, ADA, measured(slope=-0.6))
    assert (found.outcome, found.estimate, found.place(QUESTION)) == ("several", None, None)


def test_one_training_gives_a_speedup():
    question = Question.of_preset("mnist-linear")
    found = pooled.result(question, ADA, measured(question=question))
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
        ({"contender": "cuda:0+graph10"}, "its contender 'cuda:0+graph10' runs in a lane of its own"),
        ({"seed": 3}, "its seed is 3"),
    ],
)
def test_rows_that_were_measured_otherwise_are_not_pooled_and_the_reason_is_named(change, reason):
    other = [dataclasses.replace(row, **change) for row in measured()]
    assert pooled.objections(QUESTION, other)[0].startswith(reason)
    assert pooled.result(QUESTION, ADA, other) is None


def test_crossovers_spread_by_device_and_are_never_averaged_over_them():
    results = [
        dataclasses.replace(pooled.result(QUESTION, ADA, measured(crossing)), challenger=device)
        for crossing, device in ((100, "A"), (200, "A"), (400, "A"), (50, "B"))
    ]
    groups = pooled.groups(results)
    assert [(group.devices[0], group.results, group.crossings) for group in groups] == [("A", 3, 3), ("B", 1, 1)]
    assert groups[0].lowest < groups[0].median < groups[0].highest
    assert groups[0].lowest > 50


def test_expectations_are_counted_by_winner_and_place():
    said = [Prediction(winner=CHALLENGER, place=100), Prediction(winner=CHALLENGER, place=NEVER)]
    counted = pooled.tally(QUESTION, [*said, Prediction(winner=SAME, place=100)])
    assert counted.students == 3
    assert counted.winners == {BASELINE: 0, CHALLENGER: 2, SAME: 1}
    assert counted.places == {5: 0, 10: 0, 100: 2, 1_000: 0, 2_000: 0, NEVER: 1}


def test_a_question_is_the_same_for_everybody_but_for_the_devices():
    asked = QUESTION.on([Contender(), Contender(device="cuda:0")])
    assert isinstance(asked, Sweep)
    assert asked.points == QUESTION.points
    assert isinstance(Question.of_preset("mnist-linear").on([Contender(), Contender(threads=1)]), Experiment)
    with pytest.raises(InvalidValue, match="two different ones"):
        QUESTION.on([Contender()])
    assert Question.from_json(QUESTION.to_json()) == QUESTION


def test_a_file_is_taken_and_counts_for_who_brings_it(classes, of, ada):
    data = handed_in.to_file(measured(), code=of.code.lower(), nickname="ada")
    assert handed_in.take(classes, of, ada, data, "rows.parquet") == handed_in.Receipt(added=10)
    assert handed_in.take(classes, of, ada, data, "rows.parquet") == handed_in.Receipt(duplicates=10)
    found = pooled.result(QUESTION, ada, classes.store(of, ada).trials())
    assert found.from_file
    assert found.outcome == "crossing"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"code": "KX4M-9PQA"}, "it was measured for another class"),
        ({"nickname": "bob"}, "it was measured under the nickname 'bob', and you are 'ada' here"),
    ],
)
def test_a_file_for_another_class_or_under_another_nickname_is_noticed(classes, of, ada, said, reason):
    data = handed_in.to_file(measured(), **{"code": of.code, "nickname": "ada", **said})
    assert handed_in.take(classes, of, ada, data, "x.parquet").refused == reason
    assert classes.store(of, ada).trials() == []


@pytest.mark.parametrize("data", [b"", b"PAR1 torn PAR1", b"x" * 1000])
def test_what_is_no_file_of_rows_is_refused_with_the_reason(classes, of, ada, data):
    assert "parquet" in handed_in.take(classes, of, ada, data, "x.parquet").refused


def test_a_file_that_is_too_large_is_not_even_read(classes, of, ada):
    data = b"x" * (handed_in.MAX_UPLOAD_BYTES + 1)
    assert "more than the 5,000,000 bytes" in handed_in.take(classes, of, ada, data, "x.parquet").refused


def test_of_a_mixed_file_only_the_classs_rows_are_kept_and_the_others_named(classes, of, ada):
    strange = rows.run({"cpu": 1e-3, "cuda:0": 1e-3}, run_id="f" * 12)
    data = handed_in.to_file([*measured(), *strange], code=of.code, nickname="ada")
    receipt = handed_in.take(classes, of, ada, data, "x.parquet")
    assert receipt.added == 10
    assert receipt.left_out[0].startswith("its dataset is 'digits', and the class measures signal")
    alone = handed_in.to_file(strange, code=of.code, nickname="ada")
    assert "none of its rows can be pooled, because its dataset" in handed_in.take(classes, of, ada, alone, "x").refused


def test_a_student_has_only_so_many_rows(classes, of, ada, monkeypatch):
    monkeypatch.setattr(handed_in, "MAX_ROWS", 9)
    data = handed_in.to_file(measured(), code=of.code, nickname="ada")
    with pytest.raises(NotAllowed, match="9 rows"):
        handed_in.take(classes, of, ada, data, "x.parquet")


def test_a_closed_class_takes_no_file(classes, of, ada):
    classes.close(of)
    data = handed_in.to_file(measured(), code=of.code, nickname="ada")
    with pytest.raises(NotAllowed, match="closed"):
        handed_in.take(classes, of, ada, data, "x.parquet")


def test_everything_can_be_taken_as_one_file_and_read_back(classes, of, ada, tmp_path):
    handed_in.take(classes, of, ada, handed_in.to_file(measured(), code=of.code, nickname="ada"), "x.parquet")
    by_nickname = {"ada": classes.store(of, ada).trials(), "-bob": measured(50.0)}
    table = pq.read_table(io.BytesIO(handed_in.everything(by_nickname, "parquet")))
    assert table["nickname"].to_pylist() == ["ada"] * 10 + ["-bob"] * 10
    (tmp_path / "all.parquet").write_bytes(handed_in.everything({"ada": by_nickname["ada"]}, "parquet"))
    assert len(Store(tmp_path).trials()) == 10
    lines = handed_in.everything(by_nickname, "csv").decode().splitlines()
    assert lines[0].endswith(",nickname")
    assert lines[-1].endswith(",'-bob")


def test_the_chart_has_everybody_in_their_device_s_lane_and_the_tally_behind():
    marks = [
        charts.Mark(who="ada", devices="A", kind="cuda", value=200, low=150, high=300, outcome="crossing", said="x"),
        charts.Mark(
            who="<img>", devices="B", kind="cpu", value=None, low=None, high=None, outcome="cpu_always", said=""
        ),
        charts.Mark(who="?", devices="B", kind="cpu", value=None, low=None, high=None, outcome="undecided", said=""),
    ]
    spec = charts.crossovers(marks, {5: 0, 100: 3, 2_000: 1}, "hidden size")
    values = spec["data"]["values"]
    assert [(row["size"], row["students"]) for row in values if "students" in row] == [(100, 3), (2_000, 1)]
    assert [(row["who"], row["at"], row["found"]) for row in values if "who" in row] == [
        ("ada", 200, "measured"),
        ("<img>", 2_000, "faster at no size"),
    ]
    assert spec["layer"][0]["mark"]["type"] == "rule"
    assert charts.speedups([dataclasses.replace(marks[0], value=2.0, low=1.5, high=2.5)])["data"]["values"]
    assert charts.crossovers([], {5: 0, 100: 0}, "hidden size")["data"]["values"] == []
