"""A student's file: whose it is, how much of it there is, what of it is kept; and all rows of a class as one file."""

import dataclasses
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.classroom import results
from core.errors import NotAllowed, StoreError
from core.results import parquet, quarantine
from core.results.parquet import to_table
from core.results.store import Store
from tests import rows
from tests.students import QUESTION
from tests.students import measured as measured_rows


@pytest.fixture
def of(classes):
    return classes.create("Physics 7b", QUESTION)[0]


@pytest.fixture
def ada(classes, of):
    return classes.join(of, "ada")[0]


def test_a_file_is_taken_and_counts_for_who_brings_it(classes, of, ada):
    data = results.build_file(measured_rows(), code=of.code.lower(), nickname="ada")
    assert classes.take_file(of, ada, data, "rows.parquet") == results.Receipt(added=10)
    assert classes.take_file(of, ada, data, "rows.parquet") == results.Receipt(duplicates=10)
    found = results.compute_result(QUESTION, ada, classes.store(of, ada).trials())
    assert found.from_file
    assert found.outcome == "crossing"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"code": "KX4M-9PQA"}, "it was measured for another class"),
        ({"nickname": "bob"}, "it was measured under the nickname 'bob', but you are 'ada' here"),
    ],
)
def test_a_file_for_another_class_or_under_another_nickname_is_noticed(classes, of, ada, said, reason):
    data = results.build_file(measured_rows(), **{"code": of.code, "nickname": "ada", **said})
    assert classes.take_file(of, ada, data, "x.parquet").refused == reason
    assert classes.store(of, ada).trials() == []


@pytest.mark.parametrize("data", [b"", b"PAR1 torn PAR1", b"x" * 1000])
def test_what_is_no_file_of_rows_is_refused_with_the_reason(classes, of, ada, data):
    assert "parquet" in classes.take_file(of, ada, data, "x.parquet").refused


def test_a_file_that_is_too_large_is_not_even_read(classes, of, ada):
    data = b"x" * (results.MAX_UPLOAD_BYTES + 1)
    assert "more than the 5,000,000 bytes" in classes.take_file(of, ada, data, "x.parquet").refused


def test_of_a_mixed_file_only_the_classs_rows_are_kept_and_the_others_named(classes, of, ada):
    strange = rows.run({"cpu": 1e-3, "cuda:0": 1e-3}, run_id="f" * 12)
    data = results.build_file([*measured_rows(), *strange], code=of.code, nickname="ada")
    receipt = classes.take_file(of, ada, data, "x.parquet")
    assert receipt.added == 10
    assert receipt.left_out[0].startswith("its dataset is 'digits', and the class measures signal")
    alone = results.build_file(strange, code=of.code, nickname="ada")
    assert "none of its rows can be pooled, because its dataset" in classes.take_file(of, ada, alone, "x").refused


def test_a_student_has_only_so_many_rows(classes, of, ada, monkeypatch):
    monkeypatch.setattr(results, "MAX_ROWS", 11)
    for row in measured_rows(50.0)[:2]:
        classes.store(of, ada).add(dataclasses.replace(row, run_id="e" * 12, trial_id=f"{'e' * 12}-{row.trial_id[-1]}"))
    data = results.build_file(measured_rows(), code=of.code, nickname="ada")
    with pytest.raises(NotAllowed, match="A student may store 11 rows of 16 MiB in a class, but these would be 12"):
        classes.take_file(of, ada, data, "x.parquet")
    monkeypatch.setattr(results, "MAX_ROWS", 1_000)
    monkeypatch.setattr(results, "MAX_EXCHANGE_BYTES", 60_000)
    with pytest.raises(NotAllowed, match=r"these would be 12 of 0\.1 MiB"):
        classes.take_file(of, ada, data, "x.parquet")


def test_a_closed_class_takes_no_file(classes, of, ada):
    classes.close(of)
    data = results.build_file(measured_rows(), code=of.code, nickname="ada")
    with pytest.raises(NotAllowed, match="closed"):
        classes.take_file(of, ada, data, "x.parquet")


def test_everything_can_be_taken_as_one_file_and_read_back(classes, of, ada, tmp_path):
    classes.take_file(of, ada, results.build_file(measured_rows(), code=of.code, nickname="ada"), "x.parquet")
    by_nickname = [("ada", classes.store(of, ada).rows()), ("-bob", to_table(measured_rows(50.0)))]
    table = pq.read_table(io.BytesIO(results.export_class(by_nickname, "parquet")))
    assert table["nickname"].to_pylist() == ["ada"] * 10 + ["-bob"] * 10
    (tmp_path / "all.parquet").write_bytes(results.export_class(by_nickname[:1], "parquet"))
    assert len(Store(tmp_path).trials()) == 10
    lines = results.export_class(by_nickname, "csv").decode().splitlines()
    assert lines[0].endswith(",nickname")
    assert lines[-1].endswith(",'-bob")


@pytest.mark.parametrize("nickname", ["ADA", " a-d-a ", "ａｄａ", "ada\u3164"])
def test_the_nickname_in_a_file_is_compared_as_it_looks(classes, of, ada, nickname):
    data = results.build_file(measured_rows(), code=of.code, nickname=nickname)
    assert classes.take_file(of, ada, data, "x.parquet").added == 10


def test_who_waits_or_was_removed_brings_no_file(classes, of, ada):
    data = results.build_file(measured_rows(), code=of.code, nickname="ada")
    classes.ask_admission(of)
    bob, _ = classes.join(of, "bob")
    with pytest.raises(NotAllowed, match="has not admitted you"):
        classes.take_file(of, bob, data, "x.parquet")
    classes.remove(of, [ada])
    with pytest.raises(NotAllowed, match="not in this class"):
        classes.take_file(of, ada, data, "x.parquet")
    with pytest.raises(NotAllowed, match="not in this class"):
        classes.require_room(of, ada)
    assert [student.nickname for student in classes.students(of)] == ["bob"]


@pytest.mark.parametrize("what", ["the student", "the class"])
def test_what_is_removed_while_a_file_is_checked_is_not_brought_back_by_it(classes, of, ada, monkeypatch, what):
    check = results.exchange.check_import

    def meanwhile(*args, **options):
        proposal = check(*args, **options)
        classes.remove(of, [ada]) if what == "the student" else classes.delete(of)
        return proposal

    monkeypatch.setattr(results.exchange, "check_import", meanwhile)
    data = results.build_file(measured_rows(), code=of.code, nickname="ada")
    with pytest.raises(StoreError, match="was removed"):
        classes.take_file(of, ada, data, "x.parquet")
    assert classes.damaged() == {}
    assert classes.students(of) == []


def many(number, runs):
    """Rows that are alike but for their names, made without as many objects."""
    table = pa.concat_tables(
        [to_table(rows.run({"cpu": 1e-3, "cuda:0": 1e-3}, point=QUESTION.points[0], outcome="timed", pairs=1))]
        * (number // 2)
    )
    of_run = [f"{index * runs // number:012x}" for index in range(number)]
    places = [of_run[:index].count(run) for index, run in enumerate(of_run)] if number <= 1_000 else of_run
    names = {"run_id": of_run, "trial_id": [f"{run}-{place}" for run, place in zip(of_run, places, strict=True)]}
    for name, values in names.items():
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), pa.array(values))
    return table


def file_of(table):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


@pytest.mark.slow
def test_a_file_of_too_many_rows_is_refused_before_any_of_it_is_an_object(classes, of, ada, monkeypatch):
    """200,000 tiny rows of 0.39 MB took 2 GB and 43 s, as they became objects before the limit was looked at."""
    data = file_of(many(20_000, runs=10_000))
    assert len(data) < 1_000_000
    monkeypatch.setattr(results, "from_table", lambda *_: pytest.fail("rows became objects"))
    monkeypatch.setattr(parquet, "_decode", lambda *_: pytest.fail("rows were decoded"))
    assert "20,000 rows" in classes.take_file(of, ada, data, "x.parquet").refused
    with pytest.raises(Exception, match="20,000 rows"):
        quarantine.check_foreign_rows(data, results.MAX_ROWS)


@pytest.mark.parametrize(
    ("number", "runs", "reason", "told"),
    [
        (1_000, 1, "it has a run of 1,000 rows, but a run has at most 8 contenders", "its column trial_id"),
        (18, 2, "it has a run of 9 rows, but a run has at most 8 contenders", "its column trial_id"),
        (102, 51, "it has 51 runs, but the class takes at most 50 at once", "it has 51 runs"),
    ],
)
def test_a_file_of_more_than_was_measured_for_a_class_is_refused(
    classes, of, ada, monkeypatch, number, runs, reason, told
):
    monkeypatch.setattr(results, "from_table", lambda *_: pytest.fail("rows became objects"))
    rows_of_it = many(number, runs)
    assert results._explain_excess(rows_of_it, of.question) == reason
    refused = classes.take_file(of, ada, file_of(rows_of_it), "x.parquet").refused
    assert refused.startswith(told)  # a run of too many rows is noticed at the door already


def test_rows_that_take_too_much_room_are_refused(classes, of, ada, monkeypatch):
    monkeypatch.setattr(results, "MAX_EXCHANGE_BYTES", 20_000)
    data = results.build_file(measured_rows(), code=of.code, nickname="ada")
    assert "its rows take more than" in classes.take_file(of, ada, data, "x.parquet").refused


def test_who_has_as_many_rows_as_is_allowed_measures_no_more(classes, of, ada, monkeypatch):
    for row in measured_rows()[:4]:
        classes.store(of, ada).add(row)
    classes.require_room(of, ada)
    monkeypatch.setattr(results, "MAX_ROWS", 4)
    with pytest.raises(NotAllowed, match="these would be 5"):
        classes.require_room(of, ada)


def test_all_rows_are_given_out_only_as_far_as_one_file_goes(monkeypatch):
    monkeypatch.setattr(results, "MOST_TAKEN_BYTES", 30_000)
    table = to_table(measured_rows())
    assert results.export_class([("ada", table)], "csv")
    with pytest.raises(StoreError, match="All rows take more than"):
        results.export_class([("ada", table), ("bob", table)], "csv")


@pytest.mark.slow
def test_of_a_store_the_newest_rows_are_read_within_bounds(tmp_path, monkeypatch):
    store = Store(tmp_path)
    for row in measured_rows():
        store.add(row)
    everything = results.read_rows(tmp_path)
    assert (len(everything.rows), everything.faults) == (10, ())
    monkeypatch.setattr(results, "MOST_ROWS", 4)
    newest = results.read_rows(tmp_path)
    assert len(newest.rows) == 4
    assert set(newest.rows) < set(everything.rows)
    assert newest.faults == ("only the newest 4 rows count",)
    monkeypatch.setattr(results, "MOST_ROWS", 100)
    monkeypatch.setattr(results, "MAX_EXCHANGE_BYTES", 10_000)
    bounded = results.read_rows(tmp_path)
    assert 0 < len(bounded.rows) < 10
    assert "only the newest rows count" in bounded.faults[0]


def test_a_folder_that_does_not_exist_has_no_rows(tmp_path):
    assert results.read_rows(tmp_path / "none") == results.Measured()
    assert results.compute_signature(tmp_path / "none") == ""


def test_the_signature_changes_with_every_file(tmp_path):
    store = Store(tmp_path)
    before = results.compute_signature(tmp_path)
    file = store.add(measured_rows()[0])
    after = results.compute_signature(tmp_path)
    assert before != after
    file.unlink()
    assert results.compute_signature(tmp_path) == before


def test_rows_are_pooled_as_they_were_handed_in(classes, of, ada):
    data = results.build_file([dataclasses.replace(row) for row in measured_rows()], code=of.code, nickname="ada")
    classes.take_file(of, ada, data, "x.parquet")
    found = results.evaluate_student(of.question, ada, classes.store(of, ada).folder)
    assert found.fault == ""
    assert found.result.from_file
