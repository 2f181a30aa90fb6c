"""A store that several machines share: each has a copy of it, and all have every row once."""

import dataclasses
import threading
from pathlib import PurePosixPath

import pytest

from core.errors import StoreError
from core.files.address import read_mirror_address
from core.files.shared import mirror
from core.files.shared.lease import Lease
from core.files.shared.place import Place
from core.results import compaction
from core.results.finding import mirrored, sharing
from core.results.store import Store
from core.results.tables import to_table
from tests import rows


@pytest.fixture
def machines(shared_address, tmp_path, monkeypatch):
    """The stores of two machines that share one address."""
    monkeypatch.setattr(mirror, "BRING_EVERY_S", 0.0)
    monkeypatch.setattr(mirror, "AGAIN_S", 0.0)
    monkeypatch.setattr(mirror, "LAG_S", 0.0)

    def machine(name):
        with monkeypatch.context() as patch:
            patch.setenv(mirrored.MIRRORS_VARIABLE, str(tmp_path / name))
            return Store(mirrored.located(shared_address))

    return machine("here"), machine("there")


def row(number, **changes):
    return rows.trial(run_id=f"{number:012x}", **changes)


def names(store):
    return sorted(store.read(["trial_id"]).table["trial_id"].to_pylist())


def keys(store):
    return set(Place(read_mirror_address(store.folder)).names("rows"))


def cut_off(store, monkeypatch):
    def fail(*_, **__):
        raise StoreError("The store cannot be reached: network connection.")

    for name in ("names", "read", "write", "remove"):
        monkeypatch.setattr(mirrored.mirror_of(store.folder).place, name, fail)


def test_rows_of_one_machine_are_rows_of_the_other(machines):
    here, there = machines
    here.add(row(1))
    there.add(row(2))
    assert names(here) == names(there) == ["000000000001-0", "000000000002-0"]
    assert there.trials(run_id="000000000001") == [row(1)]


def test_files_lie_under_their_machine_and_month(machines):
    here, _ = machines
    here.add(row(1, machine_id="aaaaaaaaaaaa", started_at="2026-03-01T00:00:00+00:00"))
    [key] = keys(here)
    assert key.startswith("rows/machine=aaaaaaaaaaaa/month=2026-03/2026-03-01")


@pytest.mark.parametrize("name", ["../..", "a/b", "", "x" * 5])
def test_a_partition_is_a_plain_folder_whatever_a_row_says(name):
    first, second = mirrored.partition("a.parquet", to_table([row(1, machine_id=name)])).split("/")
    assert first.startswith("machine=")
    assert ".." not in first
    assert second == "month=2026-11"


@pytest.mark.slow
def test_compaction_on_one_machine_is_seen_by_the_other(machines):
    here, there = machines
    for number in range(6):
        (here, there)[number % 2].add(row(number))
    before = names(there)
    done = compaction.compact(here.folder)
    assert (done.merged, done.parts, done.rows) == (6, 1, 6)
    assert len(keys(here)) == 1
    assert names(here) == names(there) == before
    assert len(list(there.folder.glob("*.parquet"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["by name", "all"])
def test_a_small_part_that_another_machine_merged_meanwhile_hides_no_row(machines, monkeypatch, asked):
    here, there = machines
    monkeypatch.setattr(compaction, "OWN_ROWS", 1)
    monkeypatch.setattr(compaction, "OPEN_PARTS", 3)
    for number in range(6):
        here.add(row(number))
        if number % 2:
            compaction.compact(here.folder)
        if number == 3:
            monkeypatch.setattr(mirror, "BRING_EVERY_S", 3600.0)
            monkeypatch.setattr(mirror, "LAG_S", 3600.0)
            mirrored.bring_now(there.folder)
    assert len([key for key in keys(here) if key.endswith(".parquet")]) == 1
    runs = [row(number).run_id for number in range(4)]
    found = there.trials(run_id=runs) if asked == "by name" else there.trials()
    assert {each.run_id for each in found} >= set(runs)


def test_a_row_that_both_wrote_counts_once(machines):
    here, there = machines
    here.add(row(1))
    there.add(row(1))
    assert names(here) == names(there) == ["000000000001-0"]
    assert compaction.compact(there.folder).copies == 1
    assert names(here) == ["000000000001-0"]


@pytest.mark.slow
def test_only_one_machine_compacts_at_a_time(machines):
    here, there = machines
    here.add(row(1))
    here.add(row(2))
    with sharing.held(there.folder), pytest.raises(StoreError, match="is being compacted already"):
        compaction.compact(here.folder)
    assert compaction.compact(here.folder).merged == 2
    assert set(Place(read_mirror_address(here.folder)).names("claims")) == set()


@pytest.mark.slow
def test_a_compaction_that_cannot_send_its_part_removes_nothing(machines, monkeypatch):
    here, there = machines
    here.add(row(1))
    here.add(row(2))
    shared = mirrored.mirror_of(here.folder)
    write = shared.place.write

    def fail_for_parts(name, data):
        if "compacted" in name:
            raise StoreError("The store cannot be reached: network connection.")
        write(name, data)

    with monkeypatch.context() as patch:
        patch.setattr(shared.place, "write", fail_for_parts)
        with pytest.raises(StoreError, match="cannot be reached"):
            compaction.compact(here.folder)
    assert names(here) == names(there) == ["000000000001-0", "000000000002-0"]
    assert compaction.compact(here.folder).rows == 2
    assert names(here) == names(there) == ["000000000001-0", "000000000002-0"]


@pytest.mark.slow
def test_what_a_killed_compaction_did_not_put_beside_its_part_comes_later_and_lies_beside_it(machines, monkeypatch):
    here, there = machines
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    here.add(row(1))
    here.add(row(2))
    with monkeypatch.context() as patch:
        patch.setattr(compaction.writing, "write_names", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            compaction.compact(here.folder)
    for store in machines:
        compaction.compact(store.folder)
    part, beside = sorted(keys(here), key=lambda key: PurePosixPath(key).suffix, reverse=True)
    assert PurePosixPath(beside).with_suffix(".parquet") == PurePosixPath(part)
    assert names(here) == names(there) == ["000000000001-0", "000000000002-0"]


@pytest.mark.slow
def test_a_compaction_that_was_killed_before_it_removed_files_loses_nothing(machines, monkeypatch):
    here, there = machines
    here.add(row(1))
    here.add(row(2))
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "_is_unchanged", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            compaction.compact(here.folder)
    assert names(there) == ["000000000001-0", "000000000002-0"]
    assert compaction.compact(there.folder).copies == 2
    assert names(here) == ["000000000001-0", "000000000002-0"]
    assert len(keys(here)) == 1


def test_rows_that_wait_are_read_here_and_the_reader_is_told(machines, monkeypatch):
    here, there = machines
    with monkeypatch.context() as patch:
        cut_off(here, patch)
        here.add(row(1))
        found = here.read()
        assert found.table["trial_id"].to_pylist() == ["000000000001-0"]
        [skipped] = found.skipped
        assert skipped.name == "what other machines added lately"
        assert "cannot be reached" in skipped.reason
        assert mirrored.waiting(here.folder) == 1
    assert here.read().skipped == ()
    assert names(there) == ["000000000001-0"]
    assert mirrored.waiting(here.folder) == 0


def test_before_a_measurement_a_place_that_cannot_be_reached_is_told(machines, monkeypatch):
    here, _ = machines
    here.check_writable()
    cut_off(here, monkeypatch)
    with pytest.raises(StoreError, match="cannot be reached"):
        here.check_writable()


def test_a_copy_that_was_deleted_comes_back(machines):
    here, _ = machines
    here.add(row(1))
    for path in here.folder.glob("*.parquet"):
        path.unlink()
    mirrored.mirror_of(here.folder).bring(now=True)
    assert names(here) == ["000000000001-0"]


def test_a_damaged_file_of_another_machine_is_named_and_the_rest_is_read(machines):
    here, there = machines
    here.add(row(1))
    Place(read_mirror_address(here.folder)).write("rows/machine=x/torn.parquet", b"PAR1 not really")
    found = there.read()
    assert found.table.num_rows == 1
    assert [skipped.name for skipped in found.skipped] == ["torn.parquet"]


def test_an_ordinary_folder_is_as_it_was(tmp_path):
    assert mirrored.located(str(tmp_path / "x")) == tmp_path / "x"
    assert not (tmp_path / "x").exists()
    store = Store(tmp_path / "x")
    store.add(row(1))
    assert mirrored.mirror_of(store.folder) is None
    assert mirrored.waiting(store.folder) == 0
    assert [path.suffix for path in store.folder.iterdir()] == [".parquet"]


def test_columns_and_bytes_are_those_of_a_row_written_by_hand(machines):
    here, there = machines
    given = dataclasses.replace(row(1), message="Grüße")
    here.add(given)
    assert there.trials() == [given]


@pytest.mark.slow
def test_a_large_part_stays_in_the_place_until_a_row_of_it_is_wanted(machines, monkeypatch):
    here, there = machines
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    here.add_all(to_table([row(number) for number in range(4)]))
    here.add(row(4))
    compaction.compact(here.folder)
    there.add(row(5))
    assert there.trials(run_id="00000000000f") == []
    assert len(list(there.folder.glob("*.parquet"))) == 1, "its own row alone"
    assert there.trials(run_id="000000000002") == [row(2)]
    assert names(there) == [f"{number:012x}-0" for number in range(6)]
    compaction.compact(there.folder)
    assert names(here) == names(there)


def test_rows_that_cannot_be_reached_are_not_taken_for_none(machines, monkeypatch):
    here, there = machines
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    for number in range(2):
        here.add(row(number))
    compaction.compact(here.folder)
    assert there.trials(run_id="00000000000f") == []
    cut_off(there, monkeypatch)
    with pytest.raises(StoreError, match="cannot be reached"):
        there.trials(run_id="000000000001")
    assert "cannot be reached" in str(there.read().skipped)


def test_a_compaction_that_lost_its_lease_while_this_machine_slept_removes_nothing(machines):
    here, there = machines
    here.add(row(1))
    here.add(row(2))
    place = Place(read_mirror_address(here.folder))
    with sharing.held(here.folder) as require_held:
        [claim] = place.names("claims")
        place.remove(claim)  # as another machine does once it has lapsed
        with sharing.held(there.folder) as require_held_there:
            require_held_there()
            with pytest.raises(StoreError, match="is being compacted already"):
                require_held()


def test_a_long_compaction_goes_on_holding_its_lease(machines, monkeypatch):
    here, _ = machines
    monkeypatch.setattr(sharing, "COMPACTION_S", 0.1)
    renewed = threading.Event()
    monkeypatch.setattr(Lease, "renew", lambda _: renewed.set() or True)
    with sharing.held(here.folder):
        assert renewed.wait(240)
