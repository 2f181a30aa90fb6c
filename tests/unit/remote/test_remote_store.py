"""Files at an address, in a folder and on a server that speaks S3."""

import os

import boto3
import pytest

from core.errors import InvalidValue, StoreError
from core.remote import is_address
from core.remote.remote_store import RemoteStore


def test_what_was_written_is_listed_and_read(shared_address):
    remote = RemoteStore(shared_address)
    remote.write_file("rows/a/one.parquet", b"one")
    remote.write_file("rows/b/two.parquet", b"two!")
    remote.write_file("claims/x/1-ab", b"")
    assert {name: found.size for name, found in remote.list_files().items()} == {
        "rows/a/one.parquet": 3,
        "rows/b/two.parquet": 4,
        "claims/x/1-ab": 0,
    }
    assert remote.read_file("rows/b/two.parquet") == b"two!"


def test_a_file_written_anew_replaces_the_one_before_and_is_newer(shared_address):
    remote = RemoteStore(shared_address)
    remote.write_file("claims/x", b"before")
    first = remote.list_files()["claims/x"].written_ns
    remote.write_file("claims/x", b"after")
    assert remote.read_file("claims/x") == b"after"
    assert remote.list_files()["claims/x"].written_ns >= first > 1.7e18


def test_what_is_not_there_is_no_error(shared_address):
    remote = RemoteStore(shared_address)
    assert remote.list_files() == {}
    with pytest.raises(FileNotFoundError):
        remote.read_file("rows/none")
    remote.remove_file("rows/none")


def test_what_was_removed_is_gone(shared_address):
    remote = RemoteStore(shared_address)
    remote.write_file("x", b"x")
    remote.remove_file("x")
    assert remote.list_files() == {}


def test_trying_a_place_leaves_nothing_behind(shared_address):
    remote = RemoteStore(shared_address)
    remote.check_writable()
    assert remote.list_files() == {}


def test_a_half_written_file_is_not_listed(tmp_path):
    remote = RemoteStore(f"file://{tmp_path}")
    remote.write_file("rows/x", b"x")
    (tmp_path / "rows/.0123456789abcdef0123456789abcdef.tmp").write_bytes(b"half")
    assert set(remote.list_files()) == {"rows/x"}


def test_a_bucket_that_is_not_there_is_named_in_a_sentence(object_store):
    address = object_store.address().replace("s3://lab", "s3://nolab")
    with pytest.raises(StoreError, match=r"^The store s3://nolab.* cannot be reached: no such bucket\.$"):
        RemoteStore(address).check_writable()


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_named_in_a_sentence(object_store):
    address = object_store.address().replace(object_store.endpoint, "127.0.0.1:9")
    with pytest.raises(StoreError, match=r"cannot be reached: network connection\.$"):
        RemoteStore(address).list_files()


def test_a_folder_that_cannot_be_written_is_named_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreError, match="cannot be reached"):
        RemoteStore(f"file://{tmp_path}/file/inside").check_writable()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ftp://host/x", "an address with s3://"),
        ("s3://", "a bucket or folder"),
        ("file://relative/x", "a bucket or folder"),
        ("s3://bucket/x?retries=3", "known settings"),
        ("file:///x?region=eu", "known settings"),
    ],
)
def test_an_address_that_is_none_is_refused(address, said):
    with pytest.raises(InvalidValue, match=said.replace("?", r"\?")):
        RemoteStore(address)


@pytest.mark.parametrize(
    "secret",
    [
        "s3://key:hunter2@bucket/x",
        "S3://key:hunter2@bucket/x",
        "gs://hunter2@bucket/x",
        "abfs://hunter2:x@account/x",
        "https://key:hunter2@bucket/x",
        "s3://bucket/x?secret_key=hunter2",
        "s3://bucket/x?hunter2",
        "s3://bucket/x?endpoint_override=key:hunter2@host",
        "s3://bucket/x?region=eu hunter2",
        "s3://bucket/x#hunter2",
        "s3://[hunter2/x",
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(secret):
    assert is_address(secret)
    with pytest.raises(InvalidValue) as refused:
        RemoteStore(secret)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("kind", ["s3", "gs", "abfs", "file"])
@pytest.mark.parametrize("setting", ["access_key", "secret_key", "session_token", "sas_token", "anonymous", "retries"])
def test_settings_of_an_address_are_a_closed_list(kind, setting):
    with pytest.raises(InvalidValue, match="known settings"):
        RemoteStore(f"{kind}://bucket/x?{setting}=hunter2")


def test_a_place_of_azure_lies_in_its_container():
    there = RemoteStore("abfs://container@account.dfs.core.windows.net/my lab")
    assert there._path("rows") == "container/my lab/rows"


@pytest.mark.skipif(os.name == "nt", reason="making links needs rights on Windows")
def test_links_in_a_shared_folder_are_neither_listed_nor_followed(tmp_path):
    shared, private = tmp_path / "shared", tmp_path / "private"
    for folder in (shared / "rows", private):
        folder.mkdir(parents=True)
    (private / "secret.parquet").write_bytes(b"secret")
    (shared / "rows/link.parquet").symlink_to(private / "secret.parquet")
    (shared / "linked").symlink_to(private)
    remote = RemoteStore(f"file://{shared}")
    remote.write_file("rows/own.parquet", b"own")
    assert set(remote.list_files()) == {"rows/own.parquet"}


def test_an_object_with_an_empty_part_in_its_key_hides_no_other(object_store):
    remote = RemoteStore(object_store.address())
    remote.write_file("rows/a.parquet", b"a")
    client = boto3.client("s3", endpoint_url=f"http://{object_store.endpoint}", region_name="us-east-1")
    bucket = remote.address.removeprefix("s3://").partition("/")[0].partition("?")[0]
    prefix = remote._root.partition("/")[2]
    client.put_object(Bucket=bucket, Key=f"{prefix}/rows//b.parquet".lstrip("/"), Body=b"b")
    assert set(remote.list_files()) == {"rows/a.parquet"}
    with pytest.raises(StoreError, match="cannot be used"):
        remote.read_file("rows//b.parquet")
