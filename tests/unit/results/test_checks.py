"""The door: what a row may say, column by column and together, in the store and in a file from elsewhere."""

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from core.errors import ForeignFile, StoreError
from core.question.custom import CUSTOM
from core.question.experiment import MAX_CONTENDERS
from core.question.fields import DATA_PATHS
from core.results import parquet, validation
from core.results.exchange import export, import_file
from core.results.parquet import to_table
from core.results.schema import SCHEMA, SCHEMA_VERSION, TRIAL_COLUMNS, VERSION_KEY, Trial
from core.results.store import GALLERY, Store
from tests import possible
from tests.rows import RUN_ID, plant, run, trial

EARLIER = Path(__file__).parent / "earlier"


def test_a_row_of_a_system_that_does_not_count_switches_is_read(tmp_path):
    store = Store(tmp_path / "store")
    store.add(trial(block_switches=()))
    assert [row.block_switches for row in store.trials()] == [()]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a device that cannot be parsed": ({"contender": "cpu@abc"}, "column contender says 'cpu@abc', which is not"),
    "five thousand digits of threads": ({"contender": f"cpu@{'1' * 5_000}"}, "column contender has a text of more"),
    "more threads than can be asked for": ({"contender": "cpu@9999", "threads": 9999}, "contender says 'cpu@9999'"),
    "more threads than there can be": ({"threads": 2**17}, "threads has a value above 65,536"),
    "a device that there is not": ({"contender": "tpu", "device": "tpu"}, "column device says 'tpu'"),
    "a lane that there is not": ({"contender": "cpu+warp"}, "column contender says 'cpu+warp'"),
    "a lane in another order": (
        {"contender": "cpu+bf16+compiled", "execution": "compiled", "precision": "bf16"},
        "equal to its columns device and lane",
    ),
    "another lane than its columns": ({"contender": "cpu+bf16"}, "equal to its columns device and lane"),
    "a lane that contradicts itself": (
        {"contender": "cpu+compiled+fused", "execution": "compiled", "optimizer": "fused"},
        "column contender says 'cpu+compiled+fused'",
    ),
    "another device than its column": (
        {"contender": "cuda:0", "device": "cpu"},
        "equal to its columns device and lane",
    ),
    "other threads than its column": ({"contender": "cpu@2", "threads": 3}, "equal to its column threads: 3"),
    "another kind than its device": ({"device_kind": "cuda"}, "column device_kind says 'cuda', which is not the kind"),
    "a device without its number": ({"contender": "cuda", "device": "cuda", "device_kind": "cuda"}, "column device"),
    "a way to get data that there is not": ({"data_path": "by post"}, "column data_path has a value other than"),
    "an execution that there is not": ({"execution": "by hand"}, "column execution has a value other than"),
    "a data set without a name": ({"dataset": ""}, "column dataset says ''"),
    "markup for a data set": ({"dataset": "<b>"}, "column dataset says '<b>'"),
    "markup for a model": ({"model": "[a](http://x)"}, "column model says"),
    "a run that no link can name": ({"run_id": "X" * 12}, "column run_id says"),
    "a row that is not named for its run": ({"trial_id": f"{'f' * 12}-0"}, "trial_id has the name of another run"),
    "a row beyond all contenders": ({"trial_id": f"{RUN_ID}-{MAX_CONTENDERS}"}, "column trial_id says"),
    "a machine with a path": ({"machine_id": "../x"}, "column machine_id says '../x'"),
    "a question that is none": ({"experiment_id": "'; --"}, "column experiment_id says"),
    "no date": ({"started_at": "yesterday"}, "column started_at says 'yesterday'"),
    "a day that there is not": ({"started_at": "2026-02-30T00:00:00+00:00"}, "which is not a date"),
    "the beginning of all tables": ({"started_at": "0001-01-01T00:00:00+00:00"}, "between the years"),
    "the end of all tables": ({"started_at": "9999-12-31T23:59:59+00:00"}, "between the years"),
    "a time of nowhere": ({"started_at": "2026-11-21T09:30:00"}, "column started_at says"),
    "more epochs than can be asked for": ({"epochs": 2**40}, "column epochs has a value above 10,000"),
    "more samples than can be asked for": ({"samples": 2**40}, "column samples has a value above 1,000,000"),
    "more steps than samples": ({"samples": 10, "steps_per_epoch": 11}, "more steps than there are samples"),
    "a share above all": ({"train_accuracy": 1.5}, "column train_accuracy has a value above 1"),
    "a long list of threads": (
        {"threads_tried": (1,) * 1_001, "threads_tried_step_s": (1.0,) * 1_001},
        "list threads_tried has more than 1,000 entries",
    ),
    "threads tried without their times": ({"threads_tried": (1, 2)}, "threads_tried, threads_tried_step_s are not"),
    "a name without end": ({"cpu_name": "x" * 501}, "column cpu_name has a text of more than 500 bytes"),
    "counts that are no square": ({"confusion": (1, 2, 3)}, "confusion is not a square"),
    "counts of other classes": ({"confusion": (0,) * 8 + (270,)}, "confusion does not have the 10 classes of digits"),
    "counts beyond memory": ({"confusion": (2**50,) * 100}, "column confusion has a value above 1,000,000"),
    "counts of other items": ({"confusion": (1,) * 100}, "confusion does not count the test samples"),
    "predictions of other items": ({"predictions": b"\x00"}, "predictions does not have one for each"),
    "a prediction of no class": ({"predictions": bytes([10]) * 270}, "predictions names a class that does not exist"),
}


def faulty(changes: dict[str, Any]) -> Trial:
    return dataclasses.replace(trial(), **changes)


@pytest.mark.parametrize("case", REFUSED)
def test_what_could_not_be_read_later_is_refused_at_the_door_in_words(tmp_path, case):
    changes, reason = REFUSED[case]
    store = Store(tmp_path / "rows")
    bad = plant(store, faulty(changes))
    good = trial(run_id="b" * 12)
    store.add(good)
    (skipped,) = store.read().skipped
    assert skipped.name == bad.name
    assert reason in skipped.reason
    assert store.trials() == [good]


@pytest.mark.parametrize("case", REFUSED)
def test_what_could_not_be_read_later_cannot_be_stored(tmp_path, case):
    changes, reason = REFUSED[case]
    store = Store(tmp_path / "rows")
    with pytest.raises(StoreError, match="refused rows that could not be read again") as refused:
        store.add(faulty(changes))
    assert reason in str(refused.value)
    with pytest.raises(StoreError):
        store.add_all(to_table([*run(), faulty(changes)]))
    assert not store.folder.exists()


@pytest.mark.parametrize("column", ["busy_step_s", "breakdown_forward_s", "startup_first_step_s"])
def test_a_negative_time_is_refused_on_both_sides_by_the_same_words(tmp_path, column):
    row = faulty({column: -1e-6 if column.startswith("startup") else (-1e-6, 1e-3)})
    store = Store(tmp_path / "rows")
    plant(store, row)
    (skipped,) = store.read().skipped
    assert parquet.find_refusal(row) == skipped.reason == f"its column {column} has a negative value"


def test_a_text_that_grows_as_it_is_read_is_measured_as_it_is_read(tmp_path):
    row = faulty({"message": "\u200b" * 600})
    plant(Store(tmp_path), row)
    assert parquet.find_refusal(row) == ""
    assert len(Store(tmp_path).trials()) == 1
    row = faulty({"message": "\x01" * 1_000})
    assert parquet.find_refusal(row) == "its column message has a text of more than 2,000 bytes"


@pytest.mark.parametrize("changes", [{"steps": "many"}, {"steps": 2**70}, {"message": "\ud83d"}, {"parameters": None}])
def test_what_no_column_takes_has_a_reason_too(changes):
    assert parquet.find_refusal(faulty(changes))


def test_a_row_that_is_refused_in_the_store_is_refused_where_rows_come_in(tmp_path):
    data = export(to_table([*run(), faulty({"contender": "cpu@abc", "trial_id": f"{RUN_ID}-5"})]), "parquet")
    (refused,) = import_file(data, "lab.parquet", Store(tmp_path)).refused
    assert refused.name == "lab.parquet"
    assert "'cpu@abc'" in refused.reason


def test_a_reason_holds_nothing_that_a_terminal_would_obey():
    with pytest.raises(ForeignFile) as found:
        validation.validate_rows(to_table([faulty({"contender": "cpu\x1b]0;x\x07\u202e"})]))
    assert str(found.value).isprintable()
    assert str(found.value).isascii()


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(row=possible.rows())
def test_any_row_that_can_be_comes_through(row):
    validation.validate_rows(to_table([row]))


@pytest.mark.slow
@pytest.mark.parametrize("folder", [GALLERY, EARLIER], ids=["gallery", "earlier versions"])
def test_every_row_that_was_ever_measured_comes_through(folder):
    assert Store(folder).read().skipped == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"started_at": "1970-01-01T00:00:07.000+00:00"},
        {"threads": 1_536, "threads_tried": (1, 768, 1_536), "threads_tried_step_s": (3.0, 2.0, 1.0), "cores": 1_536},
        {"outcome": "interrupted", "confusion": (), "predictions": b"", "threads": 0},
        {"confusion": (), "predictions": b"", "test_samples": 0},
        {"dataset": "invented-later", "model": "invented-later", "confusion": (270,), "predictions": b"\x00" * 270},
    ],
    ids=[
        "a clock that was never set",
        "a very large machine",
        "cut off early",
        "nothing to test",
        "of a later version",
    ],
)
def test_what_is_odd_and_can_be_comes_through(changes):
    validation.validate_rows(to_table([faulty(changes)]))


def test_many_rows_are_checked_as_a_few_are(monkeypatch):
    rows = to_table([row for number in range(20) for row in run(run_id=f"{number:012x}", pairs=2)])
    bad = to_table([faulty({"contender": "cpu@2", "threads": 3, "run_id": "f" * 12, "trial_id": f"{'f' * 12}-0"})])
    for few in (1, 1_000):
        monkeypatch.setattr(validation, "SHORT_TABLE_ROWS", few)
        validation.validate_rows(rows)
        with pytest.raises(ForeignFile, match="equal to its column threads"):
            validation.validate_rows(pa.concat_tables([rows, bad]))


@pytest.mark.parametrize("column", sorted(validation.MAY_BE_NEWER))
def test_a_newer_version_may_know_more_words_but_no_markup(column):
    later, markup = (to_table([trial(**{column: word})]) for word in ("invented-later", "<b>"))
    validation.validate_rows(later, newer=True)
    with pytest.raises(ForeignFile, match=column):
        validation.validate_rows(later)
    with pytest.raises(ForeignFile, match=column):
        validation.validate_rows(markup, newer=True)


def test_a_newer_version_may_know_more_lanes(tmp_path):
    store = Store(tmp_path / "rows")
    path = store.add(trial())
    table = to_table([dataclasses.replace(trial(), contender="cpu+fp8", precision="fp8")])
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION + 1).encode()}), path)
    assert store.trials()[0].contender == "cpu+fp8"


def test_every_text_is_bounded_and_every_word_of_the_table_is_a_column():
    names = {column.name for column in TRIAL_COLUMNS}
    assert names.issuperset({*validation.FORMS, *validation.WORDS, *validation.AT_LEAST_ONE, *validation.ANY_NUMBER})
    assert validation.AT_MOST.keys() <= names
    assert validation.WORDS["data_path"] == (*DATA_PATHS, CUSTOM)
    texts = [field.name for field in SCHEMA if field.type == pa.string()]
    for name in texts:
        with pytest.raises(ForeignFile, match=name):
            validation.validate_rows(to_table([dataclasses.replace(trial(), **{name: "x" * 30_000})]))


def test_of_rows_that_are_written_together_only_those_that_readers_refuse_are_left_out():
    rows = [trial(), faulty({"busy_step_s": (-1e-6,)}), trial()]
    assert parquet.readable(rows) == [rows[0], rows[2]]
    assert (parquet.readable(rows[:1]), parquet.readable([])) == (rows[:1], [])
