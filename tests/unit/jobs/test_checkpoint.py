import os
import sys

import pytest
import torch

from core.jobs import checkpoint

STATE = {"weights": {"0.weight": torch.arange(6.0).reshape(2, 3)}, "steps": 7, "loss": [0.5], "run_id": "0123456789ab"}


class Hostile:
    def __reduce__(self):
        return (os.mkdir, ("hostile",))


def test_the_state_is_read_back(tmp_path):
    path = tmp_path / "checkpoints" / "a.pt"
    checkpoint.write(path, STATE)
    state = checkpoint.read(path)
    assert torch.equal(state.pop("weights")["0.weight"], STATE["weights"]["0.weight"])
    assert state == {name: value for name, value in STATE.items() if name != "weights"}


def test_without_a_file_there_is_nothing_to_continue(tmp_path):
    assert checkpoint.read(tmp_path / "none.pt") is None


@pytest.mark.parametrize("cut", [0, 10, -40])
def test_a_torn_file_is_ignored_and_removed(tmp_path, cut):
    path = tmp_path / "a.pt"
    checkpoint.write(path, STATE)
    path.write_bytes(path.read_bytes()[:cut])
    assert checkpoint.read(path) is None
    assert not path.exists()


def test_a_hostile_file_is_removed_and_nothing_in_it_is_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"state": Hostile()}, tmp_path / "a.pt")
    assert checkpoint.read(tmp_path / "a.pt") is None
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_file_is_ignored_and_removed(tmp_path):
    torch.save(torch.zeros(3), tmp_path / "a.pt")
    assert checkpoint.read(tmp_path / "a.pt") is None
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_are_dropped_when_there_are_many(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "KEPT_CHECKPOINTS", 2)
    for age, name in enumerate(("c", "b", "a")):
        path = tmp_path / f"{name}.pt"
        checkpoint.write(path, {})
        os.utime(path, ns=(age, age))
    checkpoint.write(tmp_path / "new.pt", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pt", "new.pt"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_disk_without_room_is_an_os_error_and_the_old_checkpoint_stays(tmp_path):
    import resource

    path = tmp_path / "a.pt"
    checkpoint.write(path, {"steps": 1})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match="could not write"):
            checkpoint.write(path, {"weights": torch.zeros(1_000_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert checkpoint.read(path) == {"steps": 1}
    assert len(list(tmp_path.iterdir())) == 1
