"""Which thread counts are tried, and which is taken; on processors that are made up."""

import pytest

from core.measure import preflight
from tests.made_up_processors import Processor, cases


def tried(pace, counts=(1, 2, 4, 8, 16), *, late=preflight.no_deadline):
    """The counts in the order in which they were timed, where each takes what `pace` says, and all times."""
    looks = []

    def look(count):
        looks.append(count)
        return pace(count)

    choice = preflight.choose_thread_times(counts, look, late=late)
    while True:
        try:
            next(choice)
        except StopIteration as end:
            return looks, end.value


@pytest.mark.parametrize(
    ("usable", "physical", "counts"),
    [
        (1, 1, (1,)),
        (2, 2, (1, 2)),
        (3, 3, (1, 2, 3)),
        (8, 4, (1, 2, 4, 6, 8)),
        (12, 6, (1, 2, 4, 6, 8, 12)),
        (64, 48, (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)),
    ],
)
def test_powers_of_two_what_lies_midway_the_cores_and_all_threads_are_tried(usable, physical, counts):
    assert preflight.list_thread_counts(usable, physical) == counts


@pytest.mark.parametrize(
    ("usable", "cores", "tried_too"),
    [
        (12, (12, 8, 0), 8),  # M2 Pro with 8 fast cores of 12
        (10, (10, 6, 0), 6),  # M3 Pro with 6 fast cores
        (16, (10, 6, 10), 10),  # i7-13620H: 6 fast cores, 10 in all
        (192, (96, 0, 48), 48),  # two sockets of 48 cores
        (14, (14, 10, 0), 10),  # M4 Pro with 10 fast cores
    ],
)
def test_fast_cores_and_those_of_a_socket_are_tried(usable, cores, tried_too, monkeypatch):
    named = dict(zip(("physical_cores", "performance_cores", "socket_cores"), cores, strict=True))
    for name, count in {**named, "usable_cores": usable}.items():
        monkeypatch.setattr(preflight.environment, name, lambda count=count: count)
    assert tried_too in preflight.candidate_threads()
    assert 0 not in preflight.candidate_threads()


def test_no_more_are_tried_after_two_losses_in_a_row():
    looks, times = tried(lambda count: float(count))
    assert list(times) == [1, 2, 4]
    assert looks[:3] == [1, 2, 4]


def test_one_loss_is_not_the_end():
    _, times = tried(lambda count: {2: 1.5, 4: 0.5}.get(count, 1.0))
    assert list(times) == [1, 2, 4, 8, 16]
    assert preflight.rank_thread_counts(times)[0] == 4


def test_a_little_slower_is_not_lost():
    _, times = tried(lambda count: 1 + count / 200)
    assert list(times) == [1, 2, 4, 8, 16]


def test_what_may_be_the_fastest_takes_turns_and_the_rest_is_given_up():
    looks, times = tried(lambda count: {1: 3.0, 2: 1.19, 4: 1.0, 8: 1.05, 16: 1.02}[count])
    assert looks[:5] == [1, 2, 4, 8, 16]
    assert looks[5:9] == [2, 4, 8, 16]  # one thread takes three times as long
    assert looks[9:12] == [4, 8, 16]  # at most three stay
    assert looks[12:] == [4, 8, 16] * 7
    assert {count: len(readings) for count, readings in times.items()} == {1: 1, 2: 2, 4: 10, 8: 10, 16: 10}


def test_a_disturbance_that_meets_the_fastest_once_does_not_decide():
    disturbed = iter([1.8])
    _, times = tried(lambda count: {1: 1.3, 2: 1.0}[count] * (next(disturbed, 1.0) if count == 2 else 1), (1, 2))
    assert preflight.rank_thread_counts(times)[0] == 2
    assert preflight.median_thread_times(times) == {1: 1.3, 2: 1.0}


def test_who_is_late_makes_do_with_the_first_look():
    looks, times = tried(lambda count: 1.0, late=lambda: True)
    assert looks == [1, 2, 4, 8, 16]
    assert preflight.rank_thread_counts(times) == [1, 2, 4, 8, 16]


def test_a_hand_tuner_is_faster_by_more_than_a_twentieth_in_at_most_one_of_twenty_cases():
    lost = []
    for case in cases(2, seed=1):
        processor = case.readings.processor
        counts = preflight.list_thread_counts(processor.usable, processor.physical)
        _, times = tried(case.readings, counts)
        lost.append(case.loss(preflight.rank_thread_counts(times)[0]) > 0.05)
    assert len(lost) == 792
    assert sum(lost) / len(lost) <= 1 / 20


def test_a_made_up_processor_is_slower_where_threads_share_a_core():
    (case, *_) = cases(1, seed=1)
    work, eight = case.readings.work, Processor(cores=8, siblings=2)
    assert (eight.usable, eight.physical) == (16, 8)
    assert case.loss(1) >= 0
    assert work.step_s(eight, 9) >= work.step_s(eight, 8) or work.most <= 8
