"""The cache of a store at an address: what is downloaded, when the address is listed, and how much is kept."""

import pytest

from core import remote
from core.errors import StoreError
from core.remote import LocalCache, is_address, open_cache, resolve_store
from core.remote.remote_store import RemoteStore


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("s3://b/x", True),
        ("file:///x", True),
        ("ftp://x", True),
        ("/data", False),
        ("data/x", False),
        ("C:\\data", False),
    ],
)
def test_an_address_is_told_from_a_folder(text, is_one):
    assert is_address(text) is is_one


@pytest.fixture
def cache(tmp_path):
    (tmp_path / "there").mkdir()
    return LocalCache(tmp_path / "cache", RemoteStore(f"file://{tmp_path}/there"))


def test_a_folder_stands_for_its_address_and_an_ordinary_one_for_itself(tmp_path, monkeypatch):
    monkeypatch.setenv(remote.CACHES_VARIABLE, str(tmp_path / "caches"))
    (tmp_path / "there").mkdir()
    folder = resolve_store(f"file://{tmp_path}/there")
    assert folder.parent == tmp_path / "caches"
    assert remote.describe_store(folder) == f"file://{tmp_path}/there"
    assert open_cache(folder) is open_cache(folder)
    assert resolve_store(str(tmp_path / "x")) == tmp_path / "x"
    assert not (tmp_path / "x").exists()
    assert open_cache(tmp_path / "x") is None


def test_a_file_is_downloaded_once(cache, monkeypatch):
    cache.write_file("a.parquet", b"rows")
    path = cache.path_of("a.parquet")
    cache.fetch_file(path, 4)
    monkeypatch.setattr(cache.remote, "read_file", None)
    cache.fetch_file(path, 4)
    assert path.read_bytes() == b"rows"


def test_files_of_one_name_in_different_folders_are_two(cache):
    for folder in "ab":
        cache.write_file(f"rows/machine={folder}/part.parquet", folder.encode())
    files = [(cache.path_of(name), file.size) for name, file in cache.list_files().items()]
    cache.fetch_files(files)
    assert {path.read_bytes() for path, _ in files} == {b"a", b"b"}


def test_names_that_lead_elsewhere_are_not_listed(cache, tmp_path):
    for name in (".hidden.parquet", "ok.parquet", "two words.parquet"):
        (tmp_path / "there" / name).write_bytes(b"rows")
    assert set(cache.list_files()) == {"ok.parquet"}


def test_what_was_written_here_is_listed_at_once_and_what_others_write_after_a_moment(cache, monkeypatch):
    monkeypatch.setattr(remote, "LIST_EVERY_S", 3_600.0)
    assert cache.list_files() == {}
    cache.remote.write_file("theirs", b"x")
    assert cache.list_files() == {}
    before = cache.signature
    cache.write_file("mine", b"x")
    assert set(cache.list_files()) == {"mine", "theirs"}
    assert cache.signature != before


def test_a_listing_of_which_a_file_vanished_is_made_again(cache, monkeypatch):
    """A long listing may miss a new part that sorts before the files that were removed for it."""
    cache.write_file("old.parquet", b"rows")
    whole = cache.list_files()
    listings = [{}, {"new.parquet": whole["old.parquet"]}, {"new.parquet": whole["old.parquet"]}]
    monkeypatch.setattr(cache.remote, "list_files", lambda: listings.pop(0))
    assert set(cache.list_files(now=True)) == {"new.parquet"}


def test_the_last_listing_is_used_while_the_address_cannot_be_reached_and_without_one_that_is_raised(
    cache, tmp_path, monkeypatch
):
    def fail():
        raise StoreError("The store cannot be reached.")

    cache.write_file("a.parquet", b"rows")
    assert set(cache.list_files()) == {"a.parquet"}
    monkeypatch.setattr(cache.remote, "list_files", fail)
    assert set(cache.list_files(now=True)) == {"a.parquet"}
    assert cache.failure == "The store cannot be reached."
    with pytest.raises(StoreError, match="cannot be reached"):
        LocalCache(tmp_path / "other", cache.remote).list_files()


def test_the_oldest_files_make_room_and_are_downloaded_again(cache, monkeypatch):
    monkeypatch.setattr(remote, "MOST_BYTES", 8)
    for name in "abc":
        cache.write_file(name, b"1234")
        cache.fetch_files([(cache.path_of(name), 4)])
    assert [cache.path_of(name).exists() for name in "abc"] == [False, True, True]
    cache.fetch_file(cache.path_of("a"), 4)
    assert cache.path_of("a").read_bytes() == b"1234"


def test_what_was_removed_is_gone_there_and_here(cache):
    cache.write_file("a", b"1")
    cache.fetch_file(cache.path_of("a"), 1)
    cache.remove_files([cache.path_of("a")])
    assert cache.list_files() == {}
    assert not cache.path_of("a").exists()
