"""An address that cannot be reached: its server is stopped, takes connections and says nothing, or fails a while."""

import contextlib
import socket
import threading

import pytest

from core.errors import StoreError
from core.remote import LocalCache, remote_store
from core.remote.remote_store import RemoteStore

LONG_S = 3_600.0
"""Longer than any machine takes from one line of a test to the next."""

CALLS = {
    "list": lambda at: at.list_files(),
    "read": lambda at: at.read_file("rows/x"),
    "write": lambda at: at.write_file("rows/x", b"x"),
    "remove": lambda at: at.remove_file("rows/x"),
    "check": lambda at: at.check_writable(),
}


@pytest.fixture(autouse=True)
def credentials(object_store):
    """Those of the session's server, which any server takes."""


@pytest.fixture
def silent(monkeypatch):
    """A server that takes connections and says nothing; calls wait for a second, and for long nobody tries again."""
    monkeypatch.setattr(remote_store, "ANSWER_S", 1.0)
    monkeypatch.setattr(remote_store, "RETRY_AFTER_S", LONG_S)
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server
    remote_store._open_s3.cache_clear()  # the next server at this port may take its time


def at(server: socket.socket) -> str:
    return f"s3://lab/rows?endpoint_override=127.0.0.1:{server.getsockname()[1]}&scheme=http&region=us-east-1"


@pytest.fixture
def stopped():
    """The address of a server that is not there; nobody else comes to have its port meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield at(taken)


def connections(server: socket.socket) -> int:
    """How many wait to be served."""
    server.setblocking(False)
    taken = []
    with contextlib.suppress(BlockingIOError):
        while True:
            taken.append(server.accept()[0])
    for connection in taken:
        connection.close()
    return len(taken)


@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_is_stopped_is_told_in_one_sentence(stopped, call):
    with pytest.raises(StoreError) as told:
        CALLS[call](RemoteStore(stopped))
    assert str(told.value) == f"The store {stopped} cannot be reached: network connection."


@pytest.mark.slow
@pytest.mark.parametrize("call", ["list", "write"])
def test_a_server_that_says_nothing_is_told_in_one_sentence(silent, call):
    with pytest.raises(StoreError) as told:
        CALLS[call](RemoteStore(at(silent)))
    assert str(told.value) == f"The store {at(silent)} cannot be reached: it does not answer."


@pytest.mark.slow
def test_a_server_that_says_nothing_is_left_alone_for_a_moment(silent):
    remote = RemoteStore(at(silent))
    with pytest.raises(StoreError, match="does not answer"):
        remote.list_files()
    assert connections(silent) == 1
    for call in CALLS.values():
        with pytest.raises(StoreError, match="does not answer"):
            call(remote)
    assert connections(silent) == 0


def test_what_soon_fails_for_a_reason_that_passes_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(remote_store, "PAUSE_S", 0.0)
    remote, left = RemoteStore(f"file://{tmp_path}"), [2]
    remote.write_file("x", b"x")

    class Slow:
        def __getattr__(self, name):
            if left[0]:
                left[0] -= 1
                raise OSError("When reading: AWS Error SLOW_DOWN during GetObject operation: Please reduce your rate.")
            return getattr(files, name)

    files = remote._files
    monkeypatch.setattr(remote, "_files", Slow())
    assert remote.read_file("x") == b"x"
    left[0] = remote_store.TRIES
    with pytest.raises(StoreError, match="cannot be reached: slow down"):
        remote.read_file("x")


def test_a_folder_that_is_not_mounted_is_not_created(tmp_path):
    (tmp_path / "mounted").mkdir()
    address = f"file://{tmp_path}/mounted"
    cache = LocalCache(tmp_path / "cache", RemoteStore(address))
    cache.write_file("a.parquet", b"rows")
    assert set(cache.list_files()) == {"a.parquet"}
    (tmp_path / "mounted").rename(tmp_path / "elsewhere")
    said = (
        f"The store {address} cannot be reached: the folder {tmp_path}/mounted is not there. "
        "Mount it, or create it if it is new."
    )
    assert set(cache.list_files(now=True)) == {"a.parquet"}
    assert cache.failure == said
    with pytest.raises(StoreError, match="Mount it, or create it if it is new"):
        cache.write_file("b.parquet", b"rows")
    assert not (tmp_path / "mounted").exists()
    (tmp_path / "elsewhere").rename(tmp_path / "mounted")
    assert set(cache.list_files(now=True)) == {"a.parquet"}
    assert cache.failure == ""


def test_writers_of_one_name_leave_one_of_their_files_as_a_whole(shared_address):
    remote, gate = RemoteStore(shared_address), threading.Barrier(4)

    def write(letter):
        gate.wait()
        remote.write_file("rows/same", letter * 100_000)

    writers = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    data = remote.read_file("rows/same")
    assert data[:1] * 100_000 == data


def test_an_upload_that_breaks_off_leaves_nothing_to_list(tmp_path, monkeypatch):
    remote = RemoteStore(f"file://{tmp_path}")

    def break_off(*_):
        raise OSError("the disk is full")

    remote.write_file("rows/x", b"whole")
    with monkeypatch.context() as patch:
        patch.setattr(remote, "_write", break_off)
        with pytest.raises(StoreError, match="the disk is full"):
            remote.write_file("rows/y", b"half")
    assert set(remote.list_files()) == {"rows/x"}
    assert [path.name for path in (tmp_path / "rows").iterdir()] == ["x"]


@pytest.mark.parametrize("prefix", ["my lab", "Größe/日本", "50%", "a+b&c=d"])
def test_an_address_may_have_any_letters_in_its_name(shared_address, prefix, tmp_path):
    head, question, query = shared_address.partition("?")
    if head.startswith("file"):
        (tmp_path / "shared" / prefix).mkdir(parents=True)
    address = f"{head}/{prefix.replace('%', '%25') if head.startswith('file') else prefix}{question}{query}"
    remote = RemoteStore(address)
    remote.write_file("rows/machine=a/x.parquet", b"x")
    assert set(remote.list_files()) == {"rows/machine=a/x.parquet"}
    assert remote.read_file("rows/machine=a/x.parquet") == b"x"
    remote.remove_file("rows/machine=a/x.parquet")
    assert remote.list_files() == {}
