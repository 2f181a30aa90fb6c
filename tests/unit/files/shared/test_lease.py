"""Who may do something, among machines that share a place alone."""

import os
import threading
import time

import pytest

from core.files.shared import lease
from core.files.shared.lease import Lease
from core.files.shared.place import Place


@pytest.mark.slow
def test_one_holds_it_until_it_is_given_back(shared_address):
    place = Place(shared_address)
    first, second = (Lease(place, "compaction", 60) for _ in range(2))
    assert first.take()
    assert not second.take()
    assert first.renew()
    first.release()
    assert second.take()
    assert not first.renew()


def test_names_are_held_apart(shared_address):
    place = Place(shared_address)
    assert Lease(place, "one", 60).take()
    assert Lease(place, "two", 60).take()


@pytest.mark.slow
def test_of_many_who_come_at_once_at_most_one_holds_it(shared_address, monkeypatch):
    monkeypatch.setattr(lease, "PAUSE_S", 0.01)
    place, gate, taken = Place(shared_address), threading.Barrier(8), []

    def come():
        mine = Lease(place, "x", 60)
        gate.wait()
        if mine.take():
            taken.append(mine)

    for _ in range(5):
        threads = [threading.Thread(target=come) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) <= 1
        assert len(place.names("claims")) == len(taken)
        for mine in taken:
            mine.release()
        taken.clear()


def test_what_a_dead_holder_held_lapses(tmp_path):
    place = Place(f"file://{tmp_path}")
    dead, next_ = Lease(place, "x", 60), Lease(place, "x", 60)
    assert dead.take()
    [claim] = (tmp_path / "claims/x").iterdir()
    before = time.time() - 61
    os.utime(claim, (before, before))
    assert next_.take()
    assert not dead.renew()
    assert not claim.exists()


def test_a_claim_that_is_renewed_does_not_lapse(tmp_path):
    place = Place(f"file://{tmp_path}")
    holder = Lease(place, "x", 60)
    assert holder.take()
    [claim] = (tmp_path / "claims/x").iterdir()
    before = time.time() - 61
    os.utime(claim, (before, before))
    assert holder.renew()
    assert not Lease(place, "x", 60).take()


@pytest.mark.slow
def test_what_is_no_claim_of_ours_is_left_for_people(tmp_path):
    place = Place(f"file://{tmp_path}")
    place.write("claims/x/notes.txt", b"do not touch")
    before = time.time() - 10**9
    os.utime(tmp_path / "claims/x/notes.txt", (before, before))
    assert not Lease(place, "x", 60).take()
    assert (tmp_path / "claims/x/notes.txt").exists()
