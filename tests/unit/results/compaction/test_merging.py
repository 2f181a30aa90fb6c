"""Merging the files of a store: what is merged with what, and what lies beside it."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.results import compaction, writing
from core.results.compaction import compact
from core.results.finding import keys
from core.results.finding.keys import Keys
from core.results.schema import SCHEMA, SCHEMA_VERSION, VERSION_KEY
from core.results.tables import to_table
from tests.rows import EXPERIMENT, run, trial
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
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    for name in ("c" * 12, "d" * 12):
        store.add(trial(run_id=name))
    assert compact(store.folder).merged == 2
    assert second in files(store)
    assert len(files(store)) == 2
    assert len(store.trials()) == 9


def test_beside_a_large_part_lie_its_names_and_no_compaction_opens_it_again(store, monkeypatch):
    rows = fill(store, 4)
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    compact(store.folder)
    (part,) = files(store)
    assert part.with_suffix(".names").exists()
    part.with_suffix(".names").unlink()  # as versions before left it, and a kill between the two
    compact(store.folder)
    assert part.with_suffix(".names").exists()
    opened, real = [], compaction.read_piece
    monkeypatch.setattr(compaction, "read_piece", lambda path, **what: opened.append(path) or real(path, **what))
    compact(store.folder)
    assert opened == []
    assert by_name(store.trials()) == by_name(rows)
    assert store.trials(run_id=names(4)[1]) == rows[2:4]


def test_parts_are_no_larger_than_readers_take(store, monkeypatch):
    rows = fill(store, 20)
    monkeypatch.setattr(writing, "PART_ROWS", 7)
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


def test_each_machine_and_month_has_parts_of_its_own_once_it_has_enough_rows(store, monkeypatch):
    monkeypatch.setattr(compaction, "OWN_ROWS", 4)
    told = [(machine, month) for machine in "aab" for month in (1, 2)] + [("c", 1)]
    for number, (machine, month) in enumerate(told):
        store.add_all(
            to_table(
                run(run_id=f"{number:012x}", machine_id=machine * 12, started_at=f"2026-0{month}-09T00:00:00+00:00")
            )
        )
    compact(store.folder)
    held = [pq.read_table(path).to_pylist() for path in files(store)]
    kept = [{(row["machine_id"][0], int(row["started_at"][5:7])) for row in rows} for rows in held]
    assert sorted(map(sorted, kept)) == [[("a", 1)], [("a", 2)], [("b", 1), ("b", 2), ("c", 1)]]
    beside = {path.stem.split("-")[-2] for path in store.folder.glob("*.names")}
    assert beside == {"a" * 12}, "small parts of one machine are found by their names too, and those of several are not"
    assert len(store.trials()) == 14


def test_small_parts_of_a_machine_wait_for_others_and_are_then_merged_with_them(store, monkeypatch):
    monkeypatch.setattr(compaction, "OWN_ROWS", 2)
    monkeypatch.setattr(compaction, "OPEN_PARTS", 3)
    rows, read, real = [], [], compaction.read_piece
    monkeypatch.setattr(compaction, "read_piece", lambda path, **what: read.append(path) or real(path, **what))
    for turn in range(3):
        before = files(store)
        for number in range(2):
            rows += run(run_id=f"{turn:06x}{number:06x}")
            store.add_all(to_table(rows[-2:]))
        read.clear()
        done = compact(store.folder)
        if turn < 2:
            assert (done.parts, len(files(store))) == (1, turn + 1)
            assert set(before).isdisjoint(read)
    assert (done.merged, done.parts, len(files(store))) == (2 + 3, 1 + 1, 1)
    assert {path.suffix for path in store.folder.iterdir()} == {".lock", ".parquet", ".names"}
    assert len(list(store.folder.glob("*.names"))) == 1, "names of parts that are gone are gone"
    assert by_name(store.trials()) == by_name(rows)
    assert store.trials(run_id=f"{1:06x}{1:06x}") == rows[6:8]


def test_what_was_merged_before_a_compaction_is_ended_stays_merged(store, monkeypatch):
    rows = fill(store, 5)
    monkeypatch.setattr(compaction, "BATCH_FILES", 4)
    real, begun = compaction._Compaction._merge_batch, []

    def ended(self, batch, table):
        begun.append(len(batch))
        if len(begun) == 3:
            raise KeyboardInterrupt
        return real(self, batch, table)

    monkeypatch.setattr(compaction._Compaction, "_merge_batch", ended)
    with pytest.raises(KeyboardInterrupt):
        compact(store.folder)
    assert begun == [4, 4, 2]
    assert len(files(store)) == 2 + 2
    assert by_name(store.trials()) == by_name(rows)


def test_files_that_come_while_a_compaction_goes_on_are_left_for_the_next(store, monkeypatch):
    fill(store, 3)
    monkeypatch.setattr(compaction, "BATCH_FILES", 2)
    real, came = compaction._Compaction._merge_batch, iter(names(100, prefix="f"))

    def beside_a_writer(self, batch, table):
        for _ in range(3):
            store.add(trial(run_id=next(came)))
        return real(self, batch, table)

    monkeypatch.setattr(compaction._Compaction, "_merge_batch", beside_a_writer)
    assert compact(store.folder).merged == 6
    assert len(files(store)) == 3 + 9
    assert len(store.trials()) == 6 + 9


def test_keys_lie_beside_large_parts_also_beside_those_of_a_version_before(store, monkeypatch):
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    by_run = Keys(columns=("run_id",), of=lambda table: [(int(n[1:], 16), [at]) for at, n in enumerate(runs_of(table))])
    fill(store, 3)
    compact(store.folder)
    (part,) = files(store)
    assert not part.with_suffix(".keys").exists()
    compact(store.folder, by_run)
    assert keys.groups_beside(part, int(names(3)[1][1:], 16)) == [0]
    assert keys.groups_beside(part, 999) == []
    opened = []
    monkeypatch.setattr(compaction, "read_piece", lambda path, **_: opened.append(path))
    compact(store.folder, by_run)
    assert (opened, files(store)) == ([], [part])


def runs_of(table: pa.Table) -> list[str]:
    return table["run_id"].to_pylist()


def test_what_lay_beside_a_part_that_a_killed_compaction_removed_is_removed(store):
    fill(store, 1)
    for suffix in (".names", ".keys"):
        (store.folder / f"compacted-2026-01-01T000000-{'a' * 12}-{'0' * 32}{suffix}").write_bytes(b"of a part")
    compact(store.folder)
    assert {path.suffix for path in store.folder.iterdir()} == {".lock", ".parquet"}


def test_a_part_has_small_row_groups_checksums_and_statistics(store, monkeypatch):
    monkeypatch.setattr(writing, "GROUP_ROWS", 4)
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
