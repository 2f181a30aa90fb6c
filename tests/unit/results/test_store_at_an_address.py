"""A store at an address, on two machines with a cache each: both have every row once."""

import dataclasses

import pytest

from core import remote as local_cache
from core.errors import StoreError
from core.remote import open_cache
from core.results import exhibits
from core.results import store as compaction
from core.results.store import Store, compact, keep_most_complete
from tests import rows
from tests.exhibited import exhibit


@pytest.fixture
def machines(shared_address, tmp_path, monkeypatch):
    """The stores of two machines at one address."""
    monkeypatch.setattr(local_cache, "LIST_EVERY_S", 0.0)
    monkeypatch.setattr(local_cache, "RETRY_AFTER_S", 0.0)

    def machine(name):
        with monkeypatch.context() as patch:
            patch.setenv(local_cache.CACHES_VARIABLE, str(tmp_path / name))
            return Store(shared_address)

    return machine("here"), machine("there")


def row(number, **changes):
    return rows.trial(run_id=f"{number:012x}", **changes)


def names(store):
    return sorted(store.read(["trial_id"]).table["trial_id"].to_pylist())


def keys(store):
    return set(open_cache(store.folder).list_files(now=True))


def cut_off(store, monkeypatch):
    def fail(*_, **__):
        raise StoreError("The store cannot be reached: network connection.")

    for name in ("list_files", "read_file", "write_file", "remove_file"):
        monkeypatch.setattr(open_cache(store.folder).remote, name, fail)


def test_rows_of_one_machine_are_rows_of_the_other(machines):
    here, there = machines
    here.add(row(1))
    there.add(row(2))
    assert names(here) == names(there) == ["000000000001-0", "000000000002-0"]
    assert there.trials(run_id="000000000001") == [row(1)]


def test_files_of_earlier_versions_lie_under_their_machine_and_month_and_are_read(machines):
    here, there = machines
    here.add(row(1))
    [name] = keys(here)
    remote = open_cache(here.folder).remote
    remote.write_file(f"rows/machine=aaaaaaaaaaaa/month=2026-03/{name}", remote.read_file(name))
    remote.write_file(f"taken/once-{name}", b"")
    remote.remove_file(name)
    assert names(here) == names(there) == ["000000000001-0"]
    assert there.read().skipped == ()
    here.add(row(2))
    assert compact(there.folder).merged == 2
    assert names(here) == names(there) == ["000000000001-0", "000000000002-0"]


@pytest.mark.slow
def test_compaction_on_one_machine_is_seen_by_the_other(machines):
    here, there = machines
    for number in range(6):
        (here, there)[number % 2].add(row(number))
    before = names(there)
    done = compact(here.folder)
    assert (done.merged, done.parts, done.rows) == (6, 1, 6)
    assert len(keys(here)) == 1
    assert names(here) == names(there) == before


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["by name", "all"])
def test_files_that_another_machine_merged_since_they_were_listed_hide_no_row(machines, monkeypatch, asked):
    here, there = machines
    for number in range(6):
        here.add(row(number))
    monkeypatch.setattr(local_cache, "LIST_EVERY_S", 3600.0)
    assert len(open_cache(there.folder).list_files(now=True)) == 6
    compact(here.folder)
    runs = [row(number).run_id for number in range(4)]
    found = there.trials(run_id=runs) if asked == "by name" else there.trials()
    assert {each.run_id for each in found} >= set(runs)


def test_a_row_that_both_wrote_counts_once(machines):
    here, there = machines
    here.add(row(1))
    there.add(row(1))
    assert names(here) == names(there) == ["000000000001-0"]
    assert compact(there.folder).copies == 1
    assert names(here) == ["000000000001-0"]


@pytest.mark.slow
def test_two_machines_that_compact_at_once_lose_no_row(machines, monkeypatch):
    here, there = machines
    for number in range(4):
        here.add(row(number))
    real = compaction._remove_files

    def remove_behind_the_other(folder, files):
        monkeypatch.setattr(compaction, "_remove_files", real)
        compact(there.folder)
        return real(folder, files)

    monkeypatch.setattr(compaction, "_remove_files", remove_behind_the_other)
    compact(here.folder)
    assert names(here) == names(there) == [f"{number:012x}-0" for number in range(4)]
    compact(there.folder)
    assert names(here) == names(there) == [f"{number:012x}-0" for number in range(4)]


@pytest.mark.slow
def test_a_compaction_that_cannot_write_its_part_removes_nothing(machines, monkeypatch):
    here, there = machines
    here.add(row(1))
    here.add(row(2))
    remote = open_cache(here.folder).remote
    write = remote.write_file

    def fail_for_parts(name, data):
        if "compacted" in name:
            raise StoreError("The store cannot be reached: network connection.")
        write(name, data)

    with monkeypatch.context() as patch:
        patch.setattr(remote, "write_file", fail_for_parts)
        with pytest.raises(StoreError, match="cannot be reached"):
            compact(here.folder)
    assert names(here) == names(there) == ["000000000001-0", "000000000002-0"]
    assert compact(here.folder).rows == 2
    assert names(here) == names(there) == ["000000000001-0", "000000000002-0"]


@pytest.mark.slow
def test_a_compaction_that_is_killed_before_it_removed_its_files_doubles_nothing(machines, monkeypatch):
    here, there = machines
    here.add(row(1))
    here.add(row(2))
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "_remove_files", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            compact(here.folder)
    assert names(there) == ["000000000001-0", "000000000002-0"]
    assert compact(there.folder).copies == 2
    assert names(here) == ["000000000001-0", "000000000002-0"]
    assert len(keys(here)) == 1


def test_rows_are_not_taken_while_the_address_cannot_be_reached_and_what_was_read_before_is_read(machines, monkeypatch):
    here, _ = machines
    here.add(row(1))
    assert names(here) == ["000000000001-0"]
    with monkeypatch.context() as patch:
        cut_off(here, patch)
        with pytest.raises(StoreError, match="cannot be reached"):
            here.add(row(2))
        assert keys(here)
        found = here.read()
        assert found.table["trial_id"].to_pylist() == ["000000000001-0"]
        [skipped] = found.skipped
        assert skipped.name == "recent additions"
        assert "cannot be reached" in skipped.reason
    assert here.read().skipped == ()


def test_before_a_measurement_an_address_that_cannot_be_reached_is_told(machines, monkeypatch):
    here, _ = machines
    here.check_writable()
    cut_off(here, monkeypatch)
    with pytest.raises(StoreError, match="cannot be reached"):
        here.check_writable()


def test_rows_that_cannot_be_reached_are_not_taken_for_none(machines, monkeypatch):
    here, there = machines
    here.add(row(1))
    cut_off(there, monkeypatch)
    with pytest.raises(StoreError, match="cannot be reached"):
        there.trials(run_id="000000000001")


def test_a_cache_that_was_deleted_comes_back(machines):
    here, _ = machines
    here.add(row(1))
    assert names(here) == ["000000000001-0"]
    open_cache(here.folder).path_of(*keys(here)).unlink()
    assert names(here) == ["000000000001-0"]


def test_a_damaged_file_of_another_machine_is_named_and_the_rest_is_read(machines):
    here, there = machines
    here.add(row(1))
    open_cache(here.folder).remote.write_file("torn.parquet", b"PAR1 not really")
    found = there.read()
    assert found.table.num_rows == 1
    assert [skipped.name for skipped in found.skipped] == ["torn.parquet"]


def test_a_file_that_is_too_large_is_not_downloaded(machines, monkeypatch):
    here, there = machines
    here.add(row(1))
    monkeypatch.setattr("core.results.index.MAX_FILE_BYTES", 100)
    [skipped] = there.read().skipped
    assert "more than the 100 that are read" in skipped.reason
    assert not list((there.folder / local_cache.FILES_FOLDER).rglob("*.parquet"))


def test_an_ordinary_folder_has_no_cache(tmp_path):
    store = Store(tmp_path / "x")
    store.add(row(1))
    assert open_cache(store.folder) is None
    assert [path.suffix for path in store.folder.iterdir()] == [".parquet"]


def test_columns_and_bytes_are_those_of_a_row_written_by_hand(machines):
    here, there = machines
    given = dataclasses.replace(row(1), message="Grüße")
    here.add(given)
    assert there.trials() == [given]
    assert keep_most_complete(there.rows()).num_rows == 1


def test_exhibits_of_one_machine_are_exhibits_of_the_other(machines):
    here, there = machines
    shown = exhibit()
    path = exhibits.add_exhibit(here.folder, shown)
    assert exhibits.read_exhibits(there.folder) == exhibits.read_exhibits(here.folder) == ([shown], ())
    assert keys(there) == {f"exhibits/{path.name}"}
    assert there.read().table.num_rows == 0
