"""Who may do something, among machines that share a place alone."""

import os
import threading
import time

import pytest

from core.errors import StoreError
from core.files.shared import lease
from core.files.shared.lease import Lease
from core.files.shared.place import Place

LASTS_S = 3_600
"""For how long a claim counts whose age is made up: far longer than any machine takes between two lines of a test."""


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
    dead, next_ = Lease(place, "x", LASTS_S), Lease(place, "x", LASTS_S)
    assert dead.take()
    [claim] = (tmp_path / "claims/x").iterdir()
    before = time.time() - LASTS_S - 60
    os.utime(claim, (before, before))
    assert next_.take()
    assert not dead.renew()
    assert not claim.exists()


def test_a_claim_that_is_renewed_does_not_lapse(tmp_path):
    place = Place(f"file://{tmp_path}")
    holder = Lease(place, "x", LASTS_S)
    assert holder.take()
    age(tmp_path, LASTS_S - 600)
    assert holder.renew()
    age(tmp_path, LASTS_S - 600)
    assert not Lease(place, "x", LASTS_S).take()


def test_a_holder_that_slept_for_longer_than_its_claim_counts_does_not_hold_it_though_nobody_came(tmp_path):
    place = Place(f"file://{tmp_path}")
    holder = Lease(place, "x", LASTS_S)
    assert holder.take()
    age(tmp_path, LASTS_S + 60)
    assert not holder.renew()
    assert place.names("claims") == {}


@pytest.mark.parametrize("wrong_s", [-86_400.0, 86_400.0])
def test_the_clock_of_a_machine_is_not_asked(tmp_path, monkeypatch, wrong_s):
    place = Place(f"file://{tmp_path}")
    first, second = (Lease(place, "x", 60) for _ in range(2))
    assert first.take()
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + wrong_s)
    assert not second.take()
    assert first.renew()


def test_who_could_not_find_out_whether_they_hold_it_leaves_no_claim(tmp_path, monkeypatch):
    place = Place(f"file://{tmp_path}")

    def fail(_):
        raise StoreError("The store cannot be reached.")

    with monkeypatch.context() as patch:
        patch.setattr(place, "names", fail)
        with pytest.raises(StoreError, match="cannot be reached"):
            Lease(place, "x", 60).take()
    assert Lease(place, "x", 60).take()


def age(folder, seconds):
    """Let the only claim have been written so long before by the clock of the place."""
    [claim] = (folder / "claims/x").iterdir()
    before = time.time() - seconds
    os.utime(claim, (before, before))


@pytest.mark.slow
def test_what_is_no_claim_of_ours_is_left_for_people(tmp_path):
    place = Place(f"file://{tmp_path}")
    place.write("claims/x/notes.txt", b"do not touch")
    before = time.time() - 10**9
    os.utime(tmp_path / "claims/x/notes.txt", (before, before))
    assert not Lease(place, "x", 60).take()
    assert (tmp_path / "claims/x/notes.txt").exists()
