"""Rows by name from large files: only what is needed is decoded, and what is decoded is checked."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import StoreError
from core.results import index, parquet
from core.results.parquet import object_bytes, to_table
from core.results.schema import SCHEMA, Trial
from core.results.store import Store
from tests.rows import EXPERIMENT, run, trial


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rows")


@pytest.fixture
def decoded(monkeypatch) -> list[tuple[int, ...]]:
    """Row groups of which whole rows are decoded from now on."""
    found: list[tuple[int, ...]] = []
    real = index.read_piece

    def counted(source: Path, **what: Any) -> parquet.Piece:
        if "groups" in what:
            found.append(tuple(what["groups"]))
        return real(source, **what)

    monkeypatch.setattr(index, "read_piece", counted)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 4)
    return found


def rows_of(count: int, **changes) -> list[Trial]:
    return [row for number in range(count) for row in run(run_id=f"{number:012x}", pairs=2, **changes)]


def name(number: int) -> str:
    return f"{number:012x}"


def test_only_the_row_group_of_the_rows_is_decoded(store, decoded):
    rows = rows_of(20)
    store.add_all(to_table(rows))
    assert store.trials(run_id=name(7)) == rows[14:16]
    assert decoded == [(3,)]
    assert store.trials(trial_id=[rows[0].trial_id, rows[39].trial_id]) == [rows[0], rows[39]]
    assert sorted(decoded) == [(0,), (3,), (9,)]


def test_all_three_names_find_rows_and_together_they_narrow(store, decoded):
    rows = rows_of(5)
    store.add_all(to_table(rows))
    assert len(store.trials(experiment_id=EXPERIMENT.id)) == 10
    assert store.trials(experiment_id=EXPERIMENT.id, run_id=name(2)) == rows[4:6]
    assert store.trials(experiment_id="another", run_id=name(2)) == []
    assert store.trials(run_id=name(2), trial_id=rows[5].trial_id) == [rows[5]]
    assert store.trials(run_id=[]) == []


def test_names_that_are_nowhere_decode_nothing(store, decoded):
    store.add_all(to_table(rows_of(5)))
    assert store.trials(run_id="f" * 12) == []
    assert decoded == []


def test_of_rows_of_one_name_the_best_counts_even_if_another_was_asked_for(store):
    """A name stands for one trial: what it was when it was cut off is not told once it came to its end."""
    early, late = trial(outcome="stopped", experiment_id="a"), trial(experiment_id="b")
    for row in (early, late):
        store.add(row)
    assert store.trials(experiment_id="a") == []
    assert store.trials(experiment_id="b") == [late]


def test_a_bad_value_is_found_when_its_rows_are_asked_for_and_not_before(store, decoded):
    rows = rows_of(8)
    table = to_table(rows)
    steps = pa.array([-1 if row.run_id == name(6) else row.steps for row in rows], pa.int64())
    store.folder.mkdir()
    foreign = table.set_column(SCHEMA.get_field_index("steps"), "steps", steps)
    pq.write_table(foreign, store.folder / "foreign.parquet", row_group_size=4)
    store.add(trial(run_id="f" * 12))
    assert store.trials(run_id=name(1)) == rows[2:4]
    assert store.trials(run_id=[name(6), "f" * 12]) == [trial(run_id="f" * 12)]
    assert store.trials(run_id=name(1)) == []
    assert [entry.reason for entry in store.read().skipped] == ["its column steps has a negative value"]


@pytest.mark.slow
def test_a_torn_row_group_is_not_read_and_hides_no_other_file(store, decoded):
    path = store.add_all(to_table(rows_of(40)))
    whole = path.read_bytes()
    facts = pq.read_metadata(path).row_group(15).column(SCHEMA.get_field_index("block_end_ns"))
    begin = facts.dictionary_page_offset or facts.data_page_offset
    path.write_bytes(whole[: begin + 30] + bytes(8) + whole[begin + 38 :])
    good = trial(run_id="f" * 12)
    store.add(good)
    assert store.trials(run_id=[name(30), name(31), "f" * 12])[-1] == good
    assert len(store.check().skipped) == 1


def test_a_file_that_may_not_be_read_any_more_is_left_out(store, monkeypatch):
    closed, kept = store.add(trial()), store.add(trial(run_id="f" * 12))
    real = index.read_piece

    def refused(source: Path, **what: Any) -> parquet.Piece:
        if source == closed and "groups" in what:
            raise PermissionError(13, "Permission denied", str(source))
        return real(source, **what)

    monkeypatch.setattr(index, "read_piece", refused)
    assert [row.run_id for row in store.trials(experiment_id=EXPERIMENT.id)] == ["f" * 12]
    monkeypatch.undo()
    assert len(store.trials(experiment_id=EXPERIMENT.id)) == 2
    assert kept.exists()


def test_more_rows_than_are_wanted_at_once_are_not_read_on(store, decoded):
    rows = rows_of(20)
    store.add_all(to_table(rows))
    few = object_bytes(to_table(rows[:6]))
    assert len(store.trials(run_id=[name(0), name(1)], most_bytes=few)) == 4
    with pytest.raises(StoreError, match="of memory and are not read at once"):
        store.trials(run_id=[name(number) for number in range(20)], most_bytes=few)
    assert len(decoded) < 4, "what is too much is not decoded to the end"


def test_rows_of_one_run_that_ask_for_different_things_are_each_found(store):
    """No writer of ours makes them; whoever does has not hidden one behind the other."""
    first, second = trial(run_id=name(1)), trial(run_id=name(1), trial_id=f"{name(1)}-1", experiment_id="ab")
    store.add_all(to_table([first, second]))
    assert store.trials(experiment_id="ab") == [second]
    assert store.trials(experiment_id=first.experiment_id) == [first]
