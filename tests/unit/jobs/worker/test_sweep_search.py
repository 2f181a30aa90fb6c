"""Adaptive sweeps: what the search asks for is measured, and nothing else."""

import itertools

import pytest

from core.answer import search
from core.answer.search import SearchStep
from core.question.sweep import Axis
from core.results.store import Store
from tests.integration.scripted_worker import CROSSING, sweep
from tests.unit.jobs.worker.points import SIZES, Bench, nothing, runs


def test_an_adaptive_sweep_measures_what_the_search_asks_for_and_says_why_it_ended(queue, store, serve, monkeypatch):
    known, script = [], itertools.chain([32, 8], itertools.repeat(None))

    def next_step(candidates, evidence):
        assert sorted(candidates) == list(SIZES)
        known.append({entry.size: (len(entry.baseline_s), bool(entry.obstacle)) for entry in evidence})
        return SearchStep(size=next(script), reason="the interval is narrow")

    monkeypatch.setattr(search, "next_step", next_step)
    asked = sweep(sizes=SIZES, adaptive=True)
    job, bench = queue.submit(asked, store), Bench(_8=nothing)
    serve(bench)
    done = queue.job(job.id)
    assert bench.measured == [32, 8]
    skipped = {8: (0, True)}
    assert known == [
        {},
        {32: (1, False)},
        {32: (2, False), **skipped},  # beside a new size the one that waits longest had its turn
        {32: (3, False), **skipped},
    ]
    assert done.progress.sweep.notes[-1] == "The search ended: the interval is narrow."
    assert (done.state, done.message) == ("finished", "1 point was skipped as too slow.")
    assert (done.progress.sweep.done, done.progress.sweep.total) == (2, 4)


@pytest.mark.slow
def test_an_adaptive_sweep_finds_the_crossing_of_a_curve_and_goes_on_from_the_store(queue, store, serve, visits):
    asked = sweep(axes=(Axis.from_range("hidden_size", 8, 2048, adaptive=True),), adaptive=True)
    whole, other = Bench(), Store(store.folder.with_name("other"))
    job = queue.submit(asked, other)
    serve(whole)
    assert 2 <= len(whole.measured) < len(asked.points) / 2
    assert len(set(whole.measured)) == len(whole.measured)
    assert min(whole.measured) < CROSSING < max(whole.measured)
    assert queue.job(job.id).progress.sweep.notes

    def stop(size):
        if len(visits.log) == 12:
            queue.request_stop(job.id)

    visits.log, visits.then = [], stop
    first, second = Bench(), Bench()
    job = queue.submit(asked, store)
    serve(first)
    assert first.measured[:2] == whole.measured[:2]
    done = {size for size, pair in visits.log if pair == asked.pairs}
    assert done == set(runs(store.trials())) != set()
    queue.submit(asked, store)
    serve(second)
    assert not done & set(second.measured)


@pytest.mark.slow
def test_beside_a_size_that_a_search_chose_the_one_that_waits_longest_has_its_turn(
    queue, store, serve, visits, monkeypatch
):
    script = itertools.chain([8, 16, 32, 64], itertools.repeat(None))
    monkeypatch.setattr(search, "next_step", lambda *_: SearchStep(size=next(script), reason="the interval is narrow"))
    queue.submit(sweep(sizes=SIZES, adaptive=True), store)
    serve(Bench())
    assert visits.log[:7] == [(8, 1), (16, 1), (8, 2), (32, 1), (16, 2), (64, 1), (8, 3)]
    assert sorted(visits.log[7:10]) == [(16, 3), (32, 2), (64, 2)]
    assert sorted(visits.log[10:]) == [(32, 3), (64, 3)]
