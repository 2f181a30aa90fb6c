"""A folder of this machine that holds the files of a shared place."""

import pytest

from core.errors import StoreError
from core.files.address import read_mirror_address
from core.files.shared import mirror
from core.files.shared.mirror import Mirror
from core.files.shared.place import Place

MOST = 1_000


@pytest.fixture
def machines(shared_address, tmp_path, monkeypatch):
    """Two machines with a mirror each of one place, which they ask whenever they look."""
    monkeypatch.setattr(mirror, "BRING_EVERY_S", 0.0)
    monkeypatch.setattr(mirror, "AGAIN_S", 0.0)
    monkeypatch.setattr(mirror, "LAG_S", 0.0)

    def machine(name):
        folder = mirror.made(shared_address, tmp_path / name)
        return Mirror(folder, Place(shared_address), MOST)

    return machine("here"), machine("there")


def write(machine, name, content=b"rows", under="machine=a/month=2026-11"):
    with machine.adding(name, under):
        (machine.folder / name).write_bytes(content)


def held(machine):
    return {path.name: path.read_bytes() for path in machine.folder.glob("*.parquet")}


def cut_off(machine, monkeypatch):
    """Let the place not be reached by a machine until the patch is undone."""

    def fail(*_, **__):
        raise StoreError("The store cannot be reached.")

    for name in ("names", "read", "write", "remove"):
        monkeypatch.setattr(machine.place, name, fail)


def test_what_one_machine_writes_the_other_has(machines):
    here, there = machines
    write(here, "a.parquet", b"one")
    there.bring()
    assert held(there) == {"a.parquet": b"one"}
    assert here.waiting() == there.waiting() == []
    assert set(here.place.names()) == {"rows/machine=a/month=2026-11/a.parquet"}


def test_what_one_machine_removes_the_other_loses(machines):
    here, there = machines
    write(here, "a.parquet")
    write(here, "b.parquet")
    there.bring()
    there.remove({"a.parquet"})
    (there.folder / "a.parquet").unlink()
    here.bring()
    assert set(held(here)) == set(held(there)) == {"b.parquet"}


def test_while_the_place_cannot_be_reached_what_is_written_waits_and_is_there(machines, monkeypatch):
    here, there = machines
    with monkeypatch.context() as patch:
        cut_off(here, patch)
        write(here, "a.parquet", b"one")
        here.bring()
        assert here.failure == "The store cannot be reached."
        assert here.waiting() == ["a.parquet"]
        assert held(here) == {"a.parquet": b"one"}
    here.bring()
    assert here.failure == ""
    assert here.waiting() == []
    there.bring()
    assert held(there) == {"a.parquet": b"one"}


def test_what_waits_outlives_the_process_that_wrote_it(machines, monkeypatch):
    here, there = machines
    with monkeypatch.context() as patch:
        cut_off(here, patch)
        write(here, "a.parquet")
    Mirror(here.folder, Place(here.place.address), MOST).bring()
    there.bring()
    assert set(held(there)) == {"a.parquet"}


def test_a_file_that_could_not_be_written_does_not_wait(machines):
    here, _ = machines
    with pytest.raises(OSError, match="full"), here.adding("a.parquet", "x"):
        raise OSError("full")
    assert here.waiting() == []
    assert list(here.folder.glob(f".*{mirror.WAITING}")) == []


def test_names_that_are_not_ours_and_files_too_large_stay_where_they_are(machines):
    here, there = machines
    for name in ("rows/.hidden.parquet", "rows/notes.txt", "rows/a b.parquet"):
        here.place.write(name, b"x")
    here.place.write("rows/large.parquet", b"x" * (MOST + 1))
    there.bring()
    assert held(there) == {}


def test_a_file_is_fetched_once(machines, monkeypatch):
    here, there = machines
    write(here, "a.parquet")
    there.bring()
    monkeypatch.setattr(there.place, "read", lambda *_: pytest.fail("it is there already"))
    there.bring()
    here.bring()


def test_a_listing_from_which_something_vanished_is_made_again(machines, monkeypatch):
    here, there = machines
    write(here, "merged.parquet")
    whole = there.place.names("rows")
    listings = iter([{"rows/old.parquet": next(iter(whole.values()))}, {}, whole, whole])
    monkeypatch.setattr(there.place, "names", lambda _: next(listings))
    there.bring()
    assert set(held(there)) == {"merged.parquet"}


def test_the_place_is_not_asked_at_every_look(machines, monkeypatch):
    here, there = machines
    monkeypatch.setattr(mirror, "BRING_EVERY_S", 60.0)
    there.bring()
    write(here, "a.parquet")
    there.bring()
    assert held(there) == {}
    there.bring(now=True)
    assert set(held(there)) == {"a.parquet"}


def test_a_folder_says_of_what_it_is_the_mirror(machines, tmp_path):
    here, _ = machines
    assert read_mirror_address(here.folder) == here.place.address
    assert read_mirror_address(tmp_path) == ""
    assert mirror.of(tmp_path, MOST) is None
    assert mirror.of(here.folder, MOST) is mirror.of(here.folder, MOST)


def test_a_place_that_could_not_be_reached_is_left_alone_for_a_while(machines, monkeypatch):
    here, _ = machines
    monkeypatch.setattr(mirror, "AGAIN_S", 60.0)
    with monkeypatch.context() as patch:
        cut_off(here, patch)
        here.bring()
        patch.setattr(here.place, "names", lambda *_: pytest.fail("it was asked again at once"))
        here.bring()
    here.bring(now=True)
    assert here.failure == ""


def beside(machine, names):
    return Mirror(machine.folder, machine.place, MOST, names)


def test_what_another_file_tells_of_is_brought_when_it_is_wanted(machines):
    here, there = machines[0], beside(machines[1], ".names")
    write(here, "part.parquet", b"many rows")
    write(here, "part.names", b"whose")
    write(here, "row.parquet")
    there.bring(now=True)
    assert held(there) == {"row.parquet": b"rows"}
    assert (there.folder / "part.names").read_bytes() == b"whose"
    assert there.fetched("part.parquet").read_bytes() == b"many rows"
    assert held(there) == {"row.parquet": b"rows"}, "the folder is as it was, so that nobody lists it anew"
    with pytest.raises(FileNotFoundError):
        there.fetched("another.parquet")


def test_a_file_that_is_wanted_is_asked_for_once(machines, monkeypatch):
    here, there = machines[0], beside(machines[1], ".names")
    write(here, "part.parquet")
    write(here, "part.names")
    there.bring(now=True)
    there.fetched("part.parquet")
    cut_off(there, monkeypatch)
    assert there.fetched("part.parquet").read_bytes() == b"rows"


def test_what_tells_of_a_file_that_is_not_there_yet_is_not_brought(machines):
    here, there = machines[0], beside(machines[1], ".names")
    write(here, "part.names")
    there.bring(now=True)
    assert not (there.folder / "part.names").exists()
    write(here, "part.parquet")
    there.bring(now=True)
    assert (there.folder / "part.names").exists()


def test_a_place_that_takes_long_to_list_is_asked_more_rarely(machines, monkeypatch):
    here, now, asked, real = machines[0], [0.0], [], machines[0].place.names
    monkeypatch.setattr(mirror, "BRING_EVERY_S", 2.0)
    monkeypatch.setattr(mirror.time, "monotonic", lambda: now[0])

    def slow(under):
        asked.append(now[0])
        now[0] += 0.5
        return real(under)

    monkeypatch.setattr(here.place, "names", slow)
    here.bring()
    for now[0] in (3.0, 20.9, 21.1):
        here.bring()
    assert sorted({int(at) for at in asked}) == [0, 21]


def test_what_waits_is_sent_with_the_next_that_is_written_once_the_place_is_there_again(machines, monkeypatch):
    here, there = machines
    with monkeypatch.context() as patch:
        cut_off(here, patch)
        write(here, "a.parquet")
    write(here, "b.parquet")
    assert here.waiting() == []
    there.bring()
    assert set(held(there)) == {"a.parquet", "b.parquet"}
