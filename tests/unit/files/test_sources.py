"""Which files belong to a training of one's own, and when their hash is another."""

import pytest

from core.files import sources


@pytest.fixture
def file(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("from .layers import Layer\n")
    (tmp_path / "parts" / "layers.py").write_text("import torch\nfrom . import deep\nclass Layer: pass\n")
    (tmp_path / "parts" / "deep.py").write_text("import mine\n")
    (tmp_path / "data.py").write_text("")
    (tmp_path / "unused.py").write_text("")
    path = tmp_path / "mine.py"
    path.write_text("import os, data\ndef build(size, device):\n    from parts import Layer\n")
    return path


def test_all_that_is_imported_from_the_folder_belongs_to_it_and_nothing_else(file):
    names = [path.relative_to(file.parent).as_posix() for path in sources.find_source_files(file)]
    assert names == ["data.py", "mine.py", "parts/__init__.py", "parts/deep.py", "parts/layers.py"]


def test_the_hash_is_another_for_every_change_of_one_of_them_and_for_no_other(file):
    before = sources.hash_sources(file)
    (file.parent / "unused.py").write_text("1")
    assert sources.hash_sources(file) == before
    (file.parent / "parts" / "deep.py").write_text("2")
    assert sources.hash_sources(file) != before


def test_the_folder_does_not_matter(file, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere")
    for path in sources.find_source_files(file):
        copy = other / path.relative_to(file.parent)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    assert sources.hash_sources(other / file.name) == sources.hash_sources(file)


@pytest.mark.parametrize("text", ["def build(:", "\0", "import " + "a." * 3000 + "b", "from ... import x", "(" * 9999])
def test_a_file_that_cannot_be_parsed_has_a_hash_all_the_same(tmp_path, text):
    path = tmp_path / "broken.py"
    path.write_text(text)
    assert sources.find_source_files(path) == (path,)
    assert len(sources.hash_sources(path)) == sources.DIGITS


def test_a_file_that_is_not_there_has_none(tmp_path):
    with pytest.raises(OSError, match="gone"):
        sources.hash_sources(tmp_path / "gone.py")
