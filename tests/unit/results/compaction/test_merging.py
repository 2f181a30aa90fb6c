"""Merging the files of a store: what is merged with what."""

import math

import pyarrow.parquet as pq
import pytest

from core.results import parquet
from core.results import store as compaction
from core.results.parquet import to_table
from core.results.schema import SCHEMA, SCHEMA_VERSION, VERSION_KEY
from core.results.store import compact
from tests.rows import EXPERIMENT, trial
from tests.unit.results.compaction.filled import by_name, files, fill, names

pytestmark = pytest.mark.slow


def test_many_files_become_one_with_the_same_rows(store):
    rows = fill(store, 5)
    done = compact(store.folder)
    assert (done.merged, done.parts, done.rows, done.copies, done.left) == (10, 1, 10, 0, ())
    assert len(files(store)) == 1
    assert by_name(store.trials()) == by_name(rows)
    assert store.trials(run_id=names(5)[3]) == rows[6:8]
    assert len(store.trials(experiment_id=EXPERIMENT.id)) == 10


def test_a_second_time_there_is_nothing_to_do(store):
    fill(store, 3)
    compact(store.folder)
    before = files(store)
    assert compact(store.folder) == compaction.Compacted()
    assert files(store) == before


def test_an_empty_store_and_none_at_all_are_left_alone(store):
    assert compact(store.folder) == compaction.Compacted()
    assert not store.folder.exists()
    store.folder.mkdir()
    assert compact(store.folder) == compaction.Compacted()


def test_a_single_row_is_left_in_its_file(store):
    path = store.add(trial())
    compact(store.folder)
    assert files(store) == [path]


def test_small_parts_are_merged_with_what_came_later_and_large_ones_are_not(store, monkeypatch):
    fill(store, 3)
    compact(store.folder)
    (first,) = files(store)
    store.add(trial(run_id="b" * 12))
    compact(store.folder)
    (second,) = files(store)
    assert second != first
    monkeypatch.setattr(compaction, "SMALL_BYTES", second.stat().st_size)
    for name in ("c" * 12, "d" * 12):
        store.add(trial(run_id=name))
    assert compact(store.folder).merged == 2
    assert second in files(store)
    assert len(files(store)) == 2
    assert len(store.trials()) == 9


def test_parts_are_no_larger_than_readers_take(store, monkeypatch):
    rows = fill(store, 20)
    monkeypatch.setattr(parquet, "PART_ROWS", 7)
    assert compact(store.folder).parts == 8  # 40, 20, 10, 5
    assert {pq.read_metadata(path).num_rows for path in files(store)} == {4, 6}, "runs are not taken apart"
    assert by_name(store.trials()) == by_name(rows)


def test_more_rows_than_are_sorted_at_a_time_are_merged_in_several_goes(store, monkeypatch):
    rows = fill(store, 10)
    monkeypatch.setattr(compaction, "BATCH_BYTES", 3 * to_table(rows[:2]).nbytes)
    done = compact(store.folder)
    assert (done.merged, done.rows) == (20, 20)
    assert 1 < done.parts < 10
    assert by_name(store.trials()) == by_name(rows)


def test_rows_of_one_machine_data_set_and_model_lie_together_in_the_order_of_time(store, monkeypatch):
    for number, name in enumerate(names(8)):
        moment, machine = f"2026-11-{20 - number:02}T00:00:00+00:00", f"machine{number % 2}"
        store.add(trial(run_id=name, started_at=moment, machine_id=machine))
    compact(store.folder)
    found = pq.read_table(files(store)[0]).select(["machine_id", "started_at"]).to_pylist()
    assert found == sorted(found, key=lambda row: (row["machine_id"], row["started_at"]))


def test_what_was_merged_before_a_compaction_is_ended_stays_merged(store, monkeypatch):
    rows = fill(store, 5)
    monkeypatch.setattr(compaction, "BATCH_FILES", 4)
    real, begun = compaction._merge, []

    def ended(folder, batch, table, done):
        begun.append(len(batch))
        if len(begun) == 3:
            raise KeyboardInterrupt
        return real(folder, batch, table, done)

    monkeypatch.setattr(compaction, "_merge", ended)
    with pytest.raises(KeyboardInterrupt):
        compact(store.folder)
    assert begun == [4, 4, 2]
    assert len(files(store)) == 2 + 2
    assert by_name(store.trials()) == by_name(rows)


def test_files_that_come_while_a_compaction_goes_on_are_left_for_the_next(store, monkeypatch):
    fill(store, 3)
    monkeypatch.setattr(compaction, "BATCH_FILES", 2)
    real, came = compaction._merge, iter(names(100, prefix="f"))

    def beside_a_writer(folder, batch, table, done):
        for _ in range(3):
            store.add(trial(run_id=next(came)))
        return real(folder, batch, table, done)

    monkeypatch.setattr(compaction, "_merge", beside_a_writer)
    assert compact(store.folder).merged == 6
    assert len(files(store)) == 3 + 9
    assert len(store.trials()) == 6 + 9


def test_what_earlier_versions_wrote_beside_parts_is_removed(store):
    fill(store, 1)
    for suffix in (".names", ".keys"):
        (store.folder / f"compacted-2026-01-01T000000-{'a' * 12}-{'0' * 32}{suffix}").write_bytes(b"of a part")
    compact(store.folder)
    assert {path.suffix for path in store.folder.iterdir()} == {".lock", ".parquet"}


def test_a_part_has_small_row_groups_checksums_and_statistics(store, monkeypatch):
    monkeypatch.setattr(parquet, "GROUP_ROWS", 4)
    fill(store, 5)
    compact(store.folder)
    facts = pq.read_metadata(files(store)[0])
    assert [facts.row_group(index).num_rows for index in range(facts.num_row_groups)] == [4, 4, 2]
    assert facts.row_group(0).column(0).statistics.has_min_max
    assert facts.schema.to_arrow_schema().metadata[VERSION_KEY] == str(SCHEMA_VERSION).encode()


def test_numbers_that_are_none_survive(store):
    store.add(trial(outcome="diverged", pairs=2, loss=(math.nan, math.inf)))
    store.add(trial(run_id="b" * 12))
    compact(store.folder)
    (row,) = store.trials(run_id=trial().run_id)
    assert math.isnan(row.loss[0])
    assert row.loss[1] == math.inf


def test_every_column_is_where_it_was(store):
    rows = fill(store, 2)
    compact(store.folder)
    assert pq.read_schema(files(store)[0]).equals(SCHEMA)
    assert store.rows().sort_by("trial_id").equals(to_table(by_name(rows)))
