"""Sizes that a script cannot build: points without a value, from which the search learns."""

import itertools

import pytest

from core.answer.search import select_buildable
from core.errors import SizeNotBuilt
from core.jobs import client
from core.question.sweep import Axis
from tests.integration.scripted_worker import sweep
from tests.unit.jobs.worker.points import SIZES, Bench, sizes


def refuse(experiment, record):
    raise SizeNotBuilt("mine.py", "Traceback:\nAssertionError: heads must divide the size")


class Divides(Bench):
    """Builds multiples of a number alone."""

    def __init__(self, number):
        super().__init__()
        self._number = number

    def __call__(self, experiment, record):
        if experiment.point.hidden_size % self._number:
            self.measured.append(experiment.point.hidden_size)
            return refuse(experiment, record)
        return super().__call__(experiment, record)


@pytest.mark.slow
def test_a_size_that_cannot_be_built_is_a_point_without_a_value(queue, store, serve):
    job = queue.submit(sweep(sizes=SIZES), store)
    serve(Bench(_16=refuse))
    ended = queue.job(job.id)
    assert ended.state == "finished"
    assert "1 point could not be built" in ended.message
    assert sizes(client.load_job_rows(queue, ended)) == [8, 32, 64]
    assert any(
        "could not be built: AssertionError: heads must divide the size." in n for n in ended.progress.sweep.notes
    )


@pytest.mark.slow
def test_a_script_that_builds_no_size_fails_with_its_traceback(queue, store, serve):
    job = queue.submit(sweep(sizes=SIZES), store)
    bench = Divides(1_000)
    serve(bench)
    ended = queue.job(job.id)
    assert (ended.state, len(bench.measured)) == ("failed", 3)
    assert "AssertionError: heads must divide the size" in ended.message


@pytest.mark.slow
def test_a_search_goes_on_and_learns_which_sizes_can_be_built(queue, store, serve):
    bench = Divides(4)
    job = queue.submit(sweep(sizes=tuple(range(40, 120)), adaptive=True), store)
    serve(bench)
    assert queue.job(job.id).state == "finished"
    refused = [size for size in bench.measured if size % 4]
    assert len(refused) <= 2
    assert len(bench.measured) > len(refused) + 2


def test_the_smallest_divisor_that_explains_all_refusals_is_the_rule():
    assert select_buildable((8, 9, 10, 12), (), ()) == [8, 9, 10, 12]
    assert select_buildable((8, 9, 10, 12), (8,), (9,)) == [8, 10, 12]
    assert select_buildable((8, 9, 10, 12, 14), (8,), (9, 10)) == [8, 12]
    assert select_buildable((8, 9, 10, 12), (9, 8), (10,)) == [8, 9, 12]
    assert select_buildable((9, 11), (), (13,)) == [9, 11]


def test_sizes_of_a_script_are_those_that_many_powers_of_two_divide():
    values = Axis.from_range("size", 64, 512, adaptive=True).values
    assert all(value % 8 == 0 for value in values)
    assert max(after / before for before, after in itertools.pairwise(values)) <= 1.126
    assert Axis.from_range("size", 5, 17, adaptive=True).values == (5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)
    assert Axis.from_range("hidden_size", 64, 128, adaptive=True).values == (64, 70, 76, 83, 91, 99, 108, 117, 128)
