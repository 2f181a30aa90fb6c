import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.jobs import files
from tests import rows


def test_what_is_written_is_read_back_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "status.json"
    files.write_json(path, {"losses": [1.5, None]})
    files.write_json(path, {"losses": []})
    assert files.read_json(path) == {"losses": []}
    assert [entry.name for entry in tmp_path.iterdir()] == ["status.json"]


@given(cut=st.integers(min_value=0, max_value=40))
def test_torn_json_reads_as_nothing(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("torn") / "status.json"
    text = json.dumps({"state": "running", "message": "a sentence"})
    path.write_text(text[:cut])
    assert files.read_json(path) is None


@pytest.mark.parametrize("content", [b"[1, 2]", b"\xff\xfe", b""])
def test_json_that_is_not_an_object_reads_as_nothing(tmp_path, content):
    path = tmp_path / "status.json"
    path.write_bytes(content)
    assert files.read_json(path) is None


def test_a_missing_file_reads_as_nothing(tmp_path):
    assert files.read_json(tmp_path / "none.json") is None
    assert files.read_rows(tmp_path / "none.parquet") == []


def test_rows_are_read_back_equal_and_torn_ones_read_as_none(tmp_path):
    path, trials = tmp_path / "partial.parquet", rows.run()
    files.write_rows(path, trials)
    assert files.read_rows(path) == trials
    path.write_bytes(path.read_bytes()[:-50])
    assert files.read_rows(path) == []


def test_a_writer_that_fails_leaves_the_old_content_and_no_temporary_file(tmp_path):
    path = tmp_path / "status.json"
    files.write_json(path, {"state": "queued"})
    with pytest.raises(TypeError):
        files.write_json(path, {"state": object()})
    assert files.read_json(path) == {"state": "queued"}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_reader_that_blocks_the_replacement_for_a_moment_only_delays_it(tmp_path, monkeypatch):
    refusals, replace = iter([True, True, False]), Path.replace

    def as_on_windows(self, target):
        if next(refusals):
            raise PermissionError("in use")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", as_on_windows)
    files.write_json(tmp_path / "status.json", {"state": "queued"})
    assert files.read_json(tmp_path / "status.json") == {"state": "queued"}


def test_a_replacement_that_is_refused_for_good_is_an_error(tmp_path, monkeypatch):
    def refuse(self, target):
        raise PermissionError("in use")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError):
        files.write_json(tmp_path / "status.json", {})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_the_name_of_a_file_is_put_aside_and_nothing_in_it_is_lost(tmp_path):
    path = tmp_path / "worker.json"
    path.mkdir()
    (path / "kept").write_text("kept")
    files.write_json(path, {"a": 1})
    assert json.loads(path.read_text()) == {"a": 1}
    assert (tmp_path / "worker.damaged" / "kept").read_text() == "kept"
