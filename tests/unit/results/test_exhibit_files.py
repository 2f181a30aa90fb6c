import json
import os
from typing import Any

import pytest

from core.errors import StoreError
from core.question.experiment import Contender
from core.results import exhibits
from core.results.store import Store
from tests import exhibited, rows


def test_a_folder_that_does_not_exist_is_empty(tmp_path):
    assert exhibits.read_exhibits(tmp_path / "nowhere") == ([], ())


def test_exhibits_are_read_back_by_age_and_written_twice_are_one(tmp_path):
    new = exhibited.exhibit(measured_at="2026-03-01T00:00:00.000+00:00")
    old = exhibited.exhibit(exhibited.MOVING, measured_at="2026-02-01T00:00:00.000+00:00")
    for shown in (new, old, new):
        exhibits.add_exhibit(tmp_path, shown)
    assert exhibits.read_exhibits(tmp_path) == ([old, new], ())
    assert len(list((tmp_path / exhibits.EXHIBITS_FOLDER).iterdir())) == 2, "nothing temporary is left behind"


def test_rows_and_exhibits_of_a_store_do_not_get_in_each_others_way(tmp_path):
    store = Store(tmp_path)
    store.add(rows.trial())
    exhibits.add_exhibit(tmp_path, exhibited.exhibit())
    assert len(store.trials()) == 1
    assert store.read().skipped == ()
    assert len(exhibits.read_exhibits(tmp_path)[0]) == 1


def changed(field: str, value: object) -> dict[str, Any]:
    """An exhibit whose question says something else."""
    data = exhibited.exhibit().to_json()
    return {**data, "demonstration": {**data["demonstration"], field: value}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"id": ' + b"9" * 10_000 + b"}",
        json.dumps({**exhibited.exhibit().to_json(), "id": "<script>"}).encode(),
        b" " * (exhibits.MAX_BYTES + 1),
        json.dumps(changed("budget_s", 10**400)).encode(),
        json.dumps(changed("recipes", [[]])).encode(),
        b'{"id": ' * 100_000,
        json.dumps({**exhibited.exhibit().to_json(), "cpu_name": "\ud800"}).encode(),
    ],
    ids=(
        *("empty", "torn", "null", "list", "no text", "deep", "huge number", "markup", "too large"),
        *("endless budget", "no recipe", "deep objects", "half a letter"),
    ),
)
def test_a_torn_or_hostile_file_is_named_and_skipped_and_the_rest_loads(tmp_path, content):
    shown = exhibited.exhibit()
    exhibits.add_exhibit(tmp_path, shown)
    (tmp_path / exhibits.EXHIBITS_FOLDER / "bad.json").write_bytes(content)
    found, skipped = exhibits.read_exhibits(tmp_path)
    assert found == [shown]
    assert [entry.name for entry in skipped] == ["bad.json"]
    assert skipped[0].reason


def test_other_files_are_left_alone(tmp_path):
    folder = tmp_path / exhibits.EXHIBITS_FOLDER
    (folder / "folder.json").mkdir(parents=True)
    (folder / "README.md").write_text("about")
    assert exhibits.read_exhibits(tmp_path) == ([], ())


@pytest.mark.skipif(os.name == "nt", reason="making links needs rights on Windows")
def test_what_cannot_be_looked_at_is_named_and_hides_no_other(tmp_path):
    shown = exhibited.exhibit()
    folder = exhibits.add_exhibit(tmp_path, shown).parent
    (folder / "loop.json").symlink_to(folder / "loop.json")
    (folder / "nowhere.json").symlink_to(folder / "nothing")
    os.mkfifo(folder / "pipe.json")
    found, skipped = exhibits.read_exhibits(tmp_path)
    assert found == [shown]
    assert [entry.name for entry in skipped] == ["loop.json", "nowhere.json", "pipe.json"]
    assert "symbolic links" in skipped[0].reason
    assert skipped[2].reason == "it is not a regular file"


def test_files_are_read_until_they_have_too_many_bytes_together(tmp_path, monkeypatch):
    first, last = (exhibited.exhibit(measured_at=f"2026-0{month}-01T00:00:00.000+00:00") for month in (1, 2))
    size = [exhibits.add_exhibit(tmp_path, shown).stat().st_size for shown in (first, last)][1]
    monkeypatch.setattr(exhibits, "MAX_TOTAL_BYTES", size)
    found, (skipped,) = exhibits.read_exhibits(tmp_path)
    assert found == [last]
    assert skipped.name.startswith("20260101")


def test_an_exhibit_that_comes_late_does_not_bring_back_what_was_deleted(tmp_path):
    with pytest.raises(StoreError, match="cannot be written"):
        exhibits.add_exhibit(tmp_path / "class" / "results", exhibited.exhibit())
    assert list(tmp_path.iterdir()) == []


def test_only_so_many_files_are_read_and_the_newest_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(exhibits, "MAX_FILES", 2)
    for month in (1, 2, 3):
        exhibits.add_exhibit(tmp_path, exhibited.exhibit(measured_at=f"2026-0{month}-01T00:00:00.000+00:00"))
    found, (skipped,) = exhibits.read_exhibits(tmp_path)
    assert [shown.measured_at[:7] for shown in found] == ["2026-02", "2026-03"]
    assert skipped.name.startswith("20260101")


def test_a_store_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        exhibits.add_exhibit(tmp_path / "file", exhibited.exhibit())
    with pytest.raises(StoreError, match="cannot be read"):
        exhibits.read_exhibits(tmp_path / "file")


def test_a_time_by_another_hand_does_not_lead_out_of_the_folder(tmp_path):
    file = exhibits.add_exhibit(tmp_path, exhibited.exhibit(measured_at="../../../../x"))
    assert file.parent == tmp_path / exhibits.EXHIBITS_FOLDER


def test_the_newest_exhibit_that_shows_what_is_asked_here_is_found():
    asked = exhibited.CLOCK
    other = type(asked)(kind="clock", contenders=(Contender(),))
    shown = [
        exhibited.exhibit(asked, id="00000000000a", measured_at="2026-01-02"),
        exhibited.exhibit(asked, id="00000000000b", measured_at="2026-01-01"),
        exhibited.exhibit(asked, id="00000000000c", measured_at="2026-01-09", machine_id="elsewhere"),
        exhibited.exhibit(asked, id="00000000000d", measured_at="2026-01-09", torch_version="1.0"),
        exhibited.exhibit(other, id="00000000000e", measured_at="2026-01-09"),
    ]
    here = {"machine_id": rows.MACHINE_ID, "torch_version": rows.TORCH_VERSION}
    assert exhibits.find_newest_exhibit(shown, asked, **here).id == "00000000000a"
    assert exhibits.find_newest_exhibit([], asked, **here) is None
