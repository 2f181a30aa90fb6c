import json
from pathlib import Path

import pytest

from core.files import documents


def test_what_is_written_is_read_back_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "status.json"
    documents.write_json(path, {"losses": [1.5, None]})
    documents.write_json(path, {"losses": []})
    assert json.loads(path.read_text()) == {"losses": []}
    assert [entry.name for entry in tmp_path.iterdir()] == ["status.json"]


def test_a_writer_that_fails_leaves_the_old_content_and_no_temporary_file(tmp_path):
    path = tmp_path / "status.json"
    documents.write_json(path, {"state": "queued"})
    with pytest.raises(TypeError):
        documents.write_json(path, {"state": object()})
    assert json.loads(path.read_text()) == {"state": "queued"}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_reader_that_blocks_the_replacement_for_a_moment_only_delays_it(tmp_path, monkeypatch):
    refusals, replace = iter([True, True, False]), Path.replace

    def as_on_windows(self, target):
        if next(refusals):
            raise PermissionError("in use")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", as_on_windows)
    documents.write_json(tmp_path / "status.json", {"state": "queued"})
    assert json.loads((tmp_path / "status.json").read_text()) == {"state": "queued"}


def test_a_replacement_that_is_refused_for_good_is_an_error(tmp_path, monkeypatch):
    def refuse(self, target):
        raise PermissionError("in use")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError):
        documents.write_json(tmp_path / "status.json", {})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_the_name_of_a_file_is_put_aside_and_nothing_in_it_is_lost(tmp_path):
    path = tmp_path / "worker.json"
    path.mkdir()
    (path / "kept").write_text("kept")
    documents.write_json(path, {"a": 1})
    assert json.loads(path.read_text()) == {"a": 1}
    assert (tmp_path / "worker.damaged" / "kept").read_text() == "kept"
