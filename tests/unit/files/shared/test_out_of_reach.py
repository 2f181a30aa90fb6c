"""A place that cannot be reached: its server is stopped, takes connections and says nothing, or is there again."""

import contextlib
import os
import socket
import threading

import pytest

from core.errors import StoreError
from core.files.shared import mirror, place
from core.files.shared.lease import Lease
from core.files.shared.mirror import Mirror
from core.files.shared.place import Place
from tests import objects

MOST = 1_000
LONG_S = 3_600.0
"""Longer than any machine takes from one line of a test to the next."""

CALLS = {
    "list": lambda at: at.names("rows"),
    "read": lambda at: at.read("rows/x", MOST),
    "write": lambda at: at.write("rows/x", b"x"),
    "remove": lambda at: at.remove("rows/x"),
    "check": lambda at: at.check(),
    "claim": lambda at: Lease(at, "x", 60).take(),
}


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name, value in objects.KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def silent(monkeypatch):
    """A server that takes connections and says nothing; calls wait for a second, and for long nobody tries again."""
    monkeypatch.setattr(place, "ANSWER_S", 1.0)
    for where in (place, mirror):
        monkeypatch.setattr(where, "AGAIN_S", LONG_S)
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server
    place._kept_s3.cache_clear()  # the next server at this port may take its time


def at(server: socket.socket) -> str:
    return f"s3://lab/rows?endpoint_override=127.0.0.1:{server.getsockname()[1]}&scheme=http&region=us-east-1"


@pytest.fixture
def stopped():
    """The address of a place whose server is not there; nobody else comes to have its port meanwhile."""
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
        CALLS[call](Place(stopped))
    assert str(told.value) == f"The store {stopped} cannot be reached: network connection."


@pytest.mark.slow
@pytest.mark.parametrize("call", ["list", "write"])
def test_a_server_that_says_nothing_is_told_in_one_sentence(silent, call):
    with pytest.raises(StoreError) as told:
        CALLS[call](Place(at(silent)))
    assert str(told.value) == f"The store {at(silent)} cannot be reached: it does not answer."


@pytest.mark.slow
def test_a_server_that_says_nothing_is_left_alone_for_a_moment(silent):
    place_ = Place(at(silent))
    with pytest.raises(StoreError, match="does not answer"):
        place_.names()
    assert connections(silent) == 1
    for call in CALLS.values():
        with pytest.raises(StoreError, match="does not answer"):
            call(place_)
    assert connections(silent) == 0


@pytest.mark.slow
def test_rows_that_are_written_meanwhile_wait_and_only_the_first_is_tried(silent, tmp_path):
    machine = Mirror(mirror.made(at(silent), tmp_path), Place(at(silent)), MOST)
    for name in ("a.parquet", "b.parquet", "c.parquet"):
        with machine.adding(name, "machine=a"):
            (machine.folder / name).write_bytes(b"rows")
    assert machine.waiting() == ["a.parquet", "b.parquet", "c.parquet"]
    assert machine.failure.endswith("it does not answer.")
    assert connections(silent) == 1


@pytest.mark.slow
def test_rows_arrive_once_the_server_is_there_again(silent, tmp_path, object_store, monkeypatch):
    address = at(silent)
    machine = Mirror(mirror.made(address, tmp_path), Place(address), MOST)
    with machine.adding("a.parquet", "machine=a"):
        (machine.folder / "a.parquet").write_bytes(b"rows")
    there = Place(object_store.address())
    monkeypatch.setattr(machine, "place", there)
    machine.bring(now=True)
    assert machine.waiting() == []
    assert set(there.names()) == {"rows/machine=a/a.parquet"}


def test_what_soon_fails_for_a_reason_that_passes_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "PAUSE_S", 0.0)
    there, left = Place(f"file://{tmp_path}"), [2]
    there.write("x", b"x")

    class Slow:
        def __getattr__(self, name):
            if left[0]:
                left[0] -= 1
                raise OSError("When reading: AWS Error SLOW_DOWN during GetObject operation: Please reduce your rate.")
            return getattr(files, name)

    files = there._files
    monkeypatch.setattr(there, "_files", Slow())
    assert there.read("x", MOST) == b"x"
    left[0] = place.TRIES
    with pytest.raises(StoreError, match="cannot be reached: slow down"):
        there.read("x", MOST)


def test_a_place_that_has_no_rows_any_more_empties_no_copy_and_is_sent_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(mirror, "LAG_S", 0.0)
    (tmp_path / "mounted").mkdir()
    address = f"file://{tmp_path}/mounted"
    machine = Mirror(mirror.made(address, tmp_path / "copies"), Place(address), MOST)
    with machine.adding("a.parquet", "machine=a"):
        (machine.folder / "a.parquet").write_bytes(b"rows")
    (tmp_path / "mounted").rename(tmp_path / "elsewhere")
    machine.bring(now=True)
    assert machine.failure == (
        f"The store {address} cannot be reached: the folder {tmp_path}/mounted is not there. "
        "Mount it, or make it if it is new."
    )
    (tmp_path / "mounted").mkdir()
    machine.bring(now=True)
    assert machine.failure == (
        f"The store {address} has no rows any more; those in its copy {machine.folder} are kept, delete that folder "
        "if this is meant."
    )
    assert (machine.folder / "a.parquet").exists()
    monkeypatch.setattr(mirror, "AGAIN_S", 0.0)
    machine.bring(now=True)
    with machine.adding("b.parquet", "machine=a"):
        (machine.folder / "b.parquet").write_bytes(b"rows")
    assert list((tmp_path / "mounted").iterdir()) == []
    (tmp_path / "mounted").rmdir()
    (tmp_path / "elsewhere").rename(tmp_path / "mounted")
    machine.bring(now=True)
    assert machine.failure == ""
    assert machine.waiting() == []


def test_a_listing_that_lags_removes_nothing_that_was_just_written(tmp_path, monkeypatch):
    monkeypatch.setattr(mirror, "LAG_S", LONG_S)
    (tmp_path / "place").mkdir()
    address = f"file://{tmp_path}/place"
    machine = Mirror(mirror.made(address, tmp_path / "copies"), Place(address), MOST)
    for name in ("old.parquet", "new.parquet"):
        with machine.adding(name, "machine=a"):
            (machine.folder / name).write_bytes(b"rows")
    whole = machine.place.names("rows")
    late = {name: found for name, found in whole.items() if "old" in name}
    monkeypatch.setattr(machine.place, "names", lambda _: late)
    machine.bring(now=True)
    assert (machine.folder / "new.parquet").exists()
    os.utime(machine.folder / "new.parquet", (0, 0))
    machine.bring(now=True)
    assert not (machine.folder / "new.parquet").exists()


def test_two_files_of_one_name_in_different_folders_are_both_brought(tmp_path):
    (tmp_path / "place").mkdir()
    address = f"file://{tmp_path}/place"
    machine = Mirror(mirror.made(address, tmp_path / "copies"), Place(address), MOST)
    machine.place.write("rows/machine=a/part.parquet", b"one")
    machine.place.write("rows/machine=b/part.parquet", b"two")
    machine.bring(now=True)
    machine.bring(now=True)
    assert {path.read_bytes() for path in machine.folder.glob("*.parquet")} == {b"one", b"two"}
    machine.remove({path.name for path in machine.folder.glob("*.parquet")})
    assert machine.place.names("rows") == {}


def test_writers_of_one_name_leave_one_of_their_files_as_a_whole(shared_address):
    there, gate = Place(shared_address), threading.Barrier(4)

    def write(letter):
        gate.wait()
        there.write("rows/same", letter * 100_000)

    writers = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    data = there.read("rows/same", 2**20)
    assert data is not None
    assert data[:1] * 100_000 == data


def test_an_upload_that_breaks_off_leaves_nothing_to_list(tmp_path, monkeypatch):
    (tmp_path / "place").mkdir()
    there = Place(f"file://{tmp_path}/place")

    def break_off(*_):
        raise OSError("the disk is full")

    there.write("rows/x", b"whole")
    with monkeypatch.context() as patch:
        patch.setattr(there, "_put_at_once", break_off)
        with pytest.raises(StoreError, match="the disk is full"):
            there.write("rows/y", b"half")
    assert set(there.names()) == {"rows/x"}
    assert [path.name for path in (tmp_path / "place/rows").iterdir()] == ["x"]


@pytest.mark.parametrize("prefix", ["my lab", "Größe/日本", "50%", "a+b&c=d"])
def test_a_place_may_have_any_letters_in_its_name(shared_address, prefix, tmp_path):
    head, question, query = shared_address.partition("?")
    if head.startswith("file"):
        (tmp_path / "shared" / prefix).mkdir(parents=True)
    there = Place(f"{head}/{prefix.replace('%', '%25') if head.startswith('file') else prefix}{question}{query}")
    there.write("rows/machine=a/x.parquet", b"x")
    assert set(there.names("rows")) == {"rows/machine=a/x.parquet"}
    assert there.read("rows/machine=a/x.parquet", MOST) == b"x"
    there.remove("rows/machine=a/x.parquet")
    assert there.names() == {}


def test_a_full_disk_of_the_copy_is_told_and_what_others_wrote_is_brought_later(tmp_path, monkeypatch):
    (tmp_path / "place").mkdir()
    address = f"file://{tmp_path}/place"
    machine = Mirror(mirror.made(address, tmp_path / "copies"), Place(address), MOST)
    machine.place.write("rows/machine=b/a.parquet", b"rows")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(mirror.atomic, "replace", full)
        machine.bring(now=True)
    assert machine.failure == f"The copy {machine.folder} cannot be written: No space left on device."
    machine.bring(now=True)
    assert machine.failure == ""
    assert (machine.folder / "a.parquet").exists()


@pytest.mark.skipif(os.name == "nt", reason="permissions are others there")
def test_a_place_in_a_folder_that_may_only_be_read_is_read_and_what_is_written_waits(tmp_path, monkeypatch):
    (tmp_path / "place").mkdir()
    address = f"file://{tmp_path}/place"
    machine = Mirror(mirror.made(address, tmp_path / "copies"), Place(address), MOST)
    machine.place.write("rows/machine=b/a.parquet", b"rows")

    def refuse(*_, **__):
        raise PermissionError(13, "Read-only file system")

    class ReadOnly:
        create_dir = open_output_stream = move = delete_file = refuse

        def __getattr__(self, name):
            return getattr(files, name)

    files = machine.place._files
    monkeypatch.setattr(machine.place, "_files", ReadOnly())
    with machine.adding("b.parquet", "machine=a"):
        (machine.folder / "b.parquet").write_bytes(b"rows")
    assert machine.failure == f"The store {address} cannot be reached: [Errno 13] Read-only file system."
    machine.bring(now=True)
    assert sorted(path.name for path in machine.folder.glob("*.parquet")) == ["a.parquet", "b.parquet"]
    assert machine.waiting() == ["b.parquet"]
    with pytest.raises(StoreError, match="Read-only file system"):
        machine.place.check()
