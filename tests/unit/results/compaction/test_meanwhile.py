"""Merging the files of a store while others read and write it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.results import index
from core.results.store import Store, compact
from tests.rows import trial
from tests.unit.results.compaction.filled import by_name, compact_elsewhere, fill, names, on_disk

pytestmark = pytest.mark.slow


def test_a_reader_that_listed_the_folder_before_loses_no_row(store, monkeypatch):
    rows = fill(store, 4)
    seen, real = [], index.list_files

    def listed(folder: Path, *, now: bool = False) -> set[index.File]:
        found = real(folder, now=now)
        if not seen:
            seen.append(True)
            compact_elsewhere(folder)
        return found

    reader = Store(store.folder)
    monkeypatch.setattr(index, "list_files", listed)
    assert by_name(reader.trials()) == by_name(rows)
    seen.clear()
    for row in fill(store, 4, outcome="stopped", steps=1):
        assert row
    assert reader.trials(run_id=names(4)[2]) == rows[4:6]
    assert reader.check().rows == 8


def test_a_reader_that_knows_where_rows_were_finds_where_they_went(store, monkeypatch):
    rows = fill(store, 4)
    assert store.trials(run_id=names(4)[0]) == rows[:2]
    index_now, compacted = index.FolderIndex.now, []

    def now(self: index.FolderIndex) -> index.Findings:
        found = index_now(self)
        if not compacted:
            compacted.append(True)
            compact(store.folder)
        return found

    monkeypatch.setattr(index.FolderIndex, "now", now)
    assert store.trials(run_id=names(4)[2]) == rows[4:6]


def test_a_listing_that_misses_the_new_file_and_the_removed_ones_is_made_again(store, monkeypatch):
    """A folder is not listed in one moment: entries that come and go meanwhile may both be missed."""
    rows = fill(store, 4)
    real, looks = index._scan_folder, []

    def entries(folder: Path):
        looks.append(True)
        if len(looks) == 2:
            before = {entry.name for entry in real(folder)}
            compact_elsewhere(folder)
            return [entry for entry in real(folder) if entry.name in before]
        return real(folder)

    monkeypatch.setattr(index, "_scan_folder", entries)
    assert by_name(Store(store.folder).trials()) == by_name(rows)


def test_readers_and_writers_go_on_while_compactions_run(store):
    rows, written, faults = fill(store, 10), [], []
    done = threading.Event()

    def write() -> None:
        for name in names(60, "b"):
            row = trial(run_id=name, pairs=2)
            store.add(row)
            written.append(row)

    def read() -> None:
        while not done.is_set():
            known = [row.trial_id for row in [*rows, *written]]
            found = [row.trial_id for row in store.trials(trial_id=known)]
            if sorted(found) != sorted(known):
                faults.append((known, found))

    with ThreadPoolExecutor(3) as others:
        writer, *readers = (others.submit(work) for work in (write, read, read))
        try:
            while not writer.done():
                compact(store.folder)
        finally:
            done.set()  # also where a writer or a compaction failed: readers wait for nothing else
    for other in (writer, *readers):
        other.result()
    compact(store.folder)
    assert faults == []
    assert by_name(store.trials()) == by_name([*rows, *written])
    assert on_disk(store) == len(rows) + len(written)
    assert store.check().skipped == ()
