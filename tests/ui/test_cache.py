"""What is worked out once for all visitors: kept under the contents of what it was made of."""

import dataclasses
import gc
import weakref

from cachetools import LRUCache

from core.progress import Progress, SweepProgress
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from core.results.store import Store
from pages.shared import cache
from pages.shared.cache import cache_answers, make_key
from tests import rows


def counted(most=8):
    """A function that is kept, and the arguments with which it was really called."""
    calls = []

    @cache_answers(most)
    def made(value, _aside=None):
        calls.append((value, _aside))
        return [value]

    return made, calls


def test_what_says_the_same_is_worked_out_once_whatever_is_set_aside():
    made, calls = counted()
    assert made(["same", 1]) is made(("same", 1), _aside="other")
    made(["same", 2])
    assert calls == [(["same", 1], None), (["same", 2], None)]


def test_the_oldest_goes_first_where_there_is_no_more_room():
    made, calls = counted(most=1)
    for value in ("kept for a while", "kept", "kept for a while"):
        made(value)
    assert len(calls) == 3


def test_a_row_counts_with_all_that_it_holds():
    row = rows.run({"cpu": 1e-3})[0]
    assert make_key([row]) == make_key((dataclasses.replace(row),))
    assert make_key([row]) != make_key([dataclasses.replace(row, contender="cpu recorded")])


def test_a_store_counts_by_its_files(tmp_path):
    store = Store(tmp_path)
    before = make_key(store)
    (tmp_path / "row.parquet").write_bytes(b"rows")
    assert make_key(store) != before


def test_what_is_equal_to_itself_alone_stays_while_its_answer_does():
    class Table:
        """Everything that is stored."""

    @cache_answers(4)
    def size_of(table):
        return id(table)

    table = Table()
    known = size_of(table)
    alive = weakref.ref(table)
    del table
    gc.collect()
    assert alive() is not None
    assert size_of(alive()) == known


def test_a_sweep_that_is_measured_is_another_with_every_pair_of_its_points(world):
    asked = Sweep(point=Point(), axes=(Axis(name="hidden_size", values=(8, 16)),), contenders=(Contender(),))
    job = dataclasses.replace(world.queue.submit(asked, world.store), state="running")
    swept = SweepProgress(done=0, total=2, alive=2, pairs=3)
    first, second = (
        dataclasses.replace(job, progress=Progress(phase="training", sweep=dataclasses.replace(swept, pairs=pairs)))
        for pairs in (3, 4)
    )
    assert make_key(first) != make_key(second)
    assert make_key(dataclasses.replace(first, state="finished")) == make_key(
        dataclasses.replace(second, state="finished")
    )


def test_rows_stay_while_their_bytes_fit_and_the_oldest_go_first(monkeypatch):
    monkeypatch.setattr(cache, "_rows", LRUCache(10, getsizeof=lambda entry: entry[1]))
    loads = []

    def load(key, size):
        def read():
            loads.append(key)
            return key, size

        assert cache._keep_rows(key, read) == key

    for key in ("a", "b", "a", "c", "a", "b"):
        load(key, 5)
    assert loads == ["a", "b", "c", "b"]
    for _ in range(2):
        load("larger than all room", 11)
    assert loads[-2:] == ["larger than all room"] * 2
    assert cache._rows.currsize == 10
