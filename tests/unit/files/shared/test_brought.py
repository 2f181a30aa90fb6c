"""Files that were brought because they were wanted take so much room and no more."""

import os
import time
from pathlib import Path

import pytest

from core.files.shared import brought


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(brought, "MOST_BYTES", 30)
    return tmp_path / "copy.brought"


def hours_ago(path: Path, hours: float) -> None:
    os.utime(path, (time.time() - 3600 * hours,) * 2)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_was_not_wanted_for_longest_makes_room(folder):
    for hours, name in ((1, "a"), (3, "b"), (2, "c")):
        brought.keep(folder / name, b"x" * 10)
        hours_ago(folder / name, hours)
    assert names(folder) == {"a", "b", "c"}
    brought.keep(folder / "d", b"x" * 10)
    assert names(folder) == {"a", "c", "d"}
    brought.keep(folder / "e", b"x" * 20)
    assert names(folder) == {"d", "e"}


def test_what_is_wanted_again_stays(folder):
    for hours, name in ((3, "a"), (2, "b"), (1, "c")):
        brought.keep(folder / name, b"x" * 10)
        hours_ago(folder / name, hours)
    assert brought.wanted(folder / "a")
    brought.keep(folder / "d", b"x" * 10)
    assert names(folder) == {"a", "c", "d"}


def test_what_is_larger_than_all_the_room_is_kept_alone(folder):
    brought.keep(folder / "a", b"x" * 10)
    brought.keep(folder / "b", b"x" * 99)
    assert names(folder) == {"b"}
    assert (folder / "b").read_bytes() == b"x" * 99


def test_what_is_not_there_is_not_wanted_in_vain(folder):
    assert not brought.wanted(folder / "a")
    assert not folder.exists()


def test_what_cannot_be_removed_keeps_no_other_from_being_kept(folder, monkeypatch):
    brought.keep(folder / "a", b"x" * 30)
    real = Path.unlink

    def unlink(path, **what):
        if path.name == "a":
            raise PermissionError("it is open")
        real(path, **what)

    monkeypatch.setattr(Path, "unlink", unlink)
    brought.keep(folder / "b", b"x" * 10)
    assert names(folder) == {"a", "b"}
