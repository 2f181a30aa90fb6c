"""Machines that are alike, where each answers a question for itself: rows of each bear a name of its own."""

import pytest

from core.jobs.job import JobFolder
from tests.integration.scripted_worker import sweep
from tests.unit.jobs.worker.points import TWO, Bench

ONE, OTHER = "b" * 12, "c" * 12


@pytest.mark.slow
def test_rows_bear_the_name_and_answer_nobody_else(queue, store, serve):
    measured = []
    for name in (ONE, OTHER, ONE):
        bench = Bench()
        queue.submit(sweep(sizes=TWO), store, measured_as=name)
        serve(bench)
        measured.append(sorted(bench.measured))
    assert measured == [list(TWO), list(TWO), []]
    assert len(store.trials(machine_id=ONE)) == len(store.trials(machine_id=OTHER)) == len(store.trials()) / 2 == 4


def test_a_measurement_under_another_name_is_another_one(queue, store):
    asked = sweep(sizes=TWO)
    first = queue.submit(asked, store, measured_as=ONE)
    assert queue.submit(asked, store, measured_as=ONE).id == first.id
    assert queue.submit(asked, store).id != first.id
    assert JobFolder(queue.folder / first.id).read().measured_as == ONE
