import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.errors import DamagedFile, InvalidValue
from core.files import documents
from core.files.documents import Count, Seconds


@dataclass(frozen=True, kw_only=True)
class Note:
    text: str
    times: Count = 0
    lasted_s: Seconds | None = None

    def __post_init__(self) -> None:
        if self.text == "never":
            raise InvalidValue("text", self.text, "something else")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "note.json"


def test_a_file_is_read_as_what_it_holds(file: Path) -> None:
    file.write_text('{"text": "a", "times": 3, "of a later version": [1]}', encoding="utf-8")

    assert documents.read_json(file, Note) == Note(text="a", times=3)


def test_a_file_that_is_not_there_holds_nothing(file: Path) -> None:
    assert documents.read_json(file, Note) is None
    assert documents.read_toml(file) is None


def test_a_file_that_has_not_changed_is_read_once(file: Path) -> None:
    assert documents.read_json_once(file, Note) is None
    file.write_text('{"text": "a"}', encoding="utf-8")
    first = documents.read_json_once(file, Note)
    assert first == Note(text="a")
    assert documents.read_json_once(file, Note) is first
    documents.write_bytes(file, b'{"text": "b"}')
    assert documents.read_json_once(file, Note) == Note(text="b")
    documents.write_bytes(file, b'{"text": 1}')
    with pytest.raises(DamagedFile):
        documents.read_json_once(file, Note)
    file.unlink()
    assert documents.read_json_once(file, Note) is None


def test_few_files_are_kept(tmp_path: Path) -> None:
    for number in range(2 * documents.MOST_KEPT):
        file = tmp_path / f"{number}.json"
        file.write_text(f'{{"text": "{number}"}}', encoding="utf-8")
        assert documents.read_json_once(file, Note) == Note(text=str(number))
        assert documents._read_json_cached.cache_info().currsize <= documents.MOST_KEPT


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is incomplete or not valid JSON"),
        (b'{"text": "a"', "it is incomplete or not valid JSON"),
        (b"\0\0\0\0", "it is incomplete or not valid JSON"),
        (b'{"text": "\xff"}', "it is not text"),
        (b'{"text": "\\ud800"}', "it is not text"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "Object missing required field `text`"),
        (b'{"text": 1}', "Expected `str`, got `int` - at `$.text`"),
        (b'{"text": "a", "times": true}', "Expected `int`, got `bool` - at `$.times`"),
        (b'{"text": "a", "times": -1}', "Expected `int` >= 0 - at `$.times`"),
        (b'{"text": "a", "times": 1.5}', "Expected `int`, got `float` - at `$.times`"),
        (b'{"text": "a", "lasted_s": 1' + b"0" * 400 + b"}", "Number out of range - at `$.lasted_s`"),
        (b'{"text": "a", "times": 1' + b"0" * 5_000 + b"}", "Exceeds the limit"),
        (b'{"text": "never"}', "text must be something else"),
    ],
)
def test_what_it_cannot_hold_is_named_with_its_reason(file: Path, content: bytes, reason: str) -> None:
    file.write_bytes(content)

    with pytest.raises(DamagedFile) as caught:
        documents.read_json(file, Note)

    assert str(caught.value).startswith("note.json is damaged: ")
    assert caught.value.reason.startswith(reason)


def test_a_file_beyond_its_size_is_not_read(file: Path) -> None:
    file.write_text(json.dumps({"text": "a" * 100}), encoding="utf-8")

    with pytest.raises(DamagedFile, match="more than the 50 bytes"):
        documents.read_json(file, Note, most_bytes=50)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(file: Path) -> None:
    os.mkfifo(file)

    with pytest.raises(DamagedFile, match="not a regular file"):
        documents.read_json(file, Note)


def test_a_link_to_itself_and_a_folder_are_named(file: Path) -> None:
    file.symlink_to(file)
    with pytest.raises(DamagedFile, match="cannot be read"):
        documents.read_json(file, Note)
    file.unlink()
    file.mkdir()
    with pytest.raises(DamagedFile, match=r"not a regular file|cannot be read"):
        documents.read_json(file, Note)


def test_toml_is_read_with_the_same_care(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("a = 1\n[b]\nc = 2\n", encoding="utf-8")
    assert documents.read_toml(file) == {"a": 1, "b": {"c": 2}}

    for content, reason in (
        (b"a = ", "not valid TOML"),
        (b"a = '\xff'", "not text"),
        (b"a = " + b"[" * 100_000, "nested"),
    ):
        file.write_bytes(content)
        with pytest.raises(DamagedFile, match=reason):
            documents.read_toml(file)
