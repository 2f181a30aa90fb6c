"""Whose turn is next, and what a person may ask for."""

import dataclasses
import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.errors import JobError, NotAllowed
from core.jobs import machine, process
from core.jobs.queue import Queue
from core.jobs.usage import Terms
from core.question.experiment import Experiment, Point
from core.results.store import Store

TODAY = "2026-11-21"


@pytest.fixture
def queue(tmp_path, monkeypatch):
    monkeypatch.setattr("core.jobs.queue._today", lambda: TODAY)  # midnight may pass while tests run
    return Queue(tmp_path / "jobs")


@pytest.fixture
def ask(queue, tmp_path):
    numbers = iter(range(1, 10_000))

    def asked(who, *, budget_s=60.0, terms=None, source=""):
        asked = Experiment(point=Point(seed=next(numbers)), budget_s=budget_s)
        store = Store(tmp_path / "results")
        return queue.submit(asked, store, asked_by=who, asked_from=source, terms=terms)

    return asked


def serve(queue):
    """Who is served, in order, until nobody waits."""
    served = []
    while job := queue.claim(process.current_process()):
        served.append(job.asked_by)
        queue.end(job.__class__(**{**vars(job), "state": "finished"}))
    return served


def test_who_submits_ten_jobs_waits_for_who_submits_one(queue, ask):
    for _ in range(10):
        ask("greedy")
    ask("ada")
    ask("bob")
    assert serve(queue) == ["greedy", "ada", "bob", *["greedy"] * 9]


@pytest.mark.slow
def test_new_names_from_one_place_take_the_turns_of_nobody_elsewhere(queue, ask):
    ask("ada", source="home")
    assert serve(queue) == ["ada"]
    for number in range(20):
        ask(f"cookie {number}", source="cellar")
    ask("ada", source="home")
    ask("bob", source="school")
    ask("cyd", source="school")
    served = serve(queue)
    assert served[:4] == ["cookie 0", "bob", "ada", "cookie 1"]
    assert served.index("cyd") == 4


def test_at_one_place_everybody_has_a_turn_before_anybody_has_a_second(queue, ask):
    for who in ("ada", "ada", "bob", "bob", "cyd"):
        ask(who, source="school")
    ask("dan", source="home")
    assert serve(queue) == ["ada", "dan", "bob", "cyd", "ada", "bob"]


@pytest.mark.slow
def test_everybody_has_a_turn_before_anybody_has_a_second(queue, ask):
    people = [f"student {number}" for number in range(12)]
    asked = [who for who in people for _ in range(3)]
    random.Random(5).shuffle(asked)
    for who in asked:
        ask(who)
    served = serve(queue)
    for turn in range(3):
        assert sorted(served[12 * turn : 12 * (turn + 1)]) == sorted(people)


def test_who_had_a_turn_comes_behind_who_had_none_although_they_asked_first(queue, ask):
    ask("ada")
    assert serve(queue) == ["ada"]
    ask("ada")
    ask("bob")
    assert serve(queue) == ["bob", "ada"]


def test_the_place_in_the_queue_is_the_order_of_turns(queue, ask):
    jobs = [ask("greedy"), ask("greedy"), ask("ada")]
    assert [queue.job(job.id).place for job in jobs] == [1, 3, 2]
    assert [job.place for job in queue.jobs()] == [1, 3, 2]


def test_one_persons_jobs_come_in_the_order_in_which_they_were_asked(queue, ask):
    jobs = [ask("ada") for _ in range(4)]
    assert [queue.claim(process.current_process()).id for _ in jobs] == [job.id for job in jobs]


def test_what_was_asked_for_and_not_used_yet_counts_so_that_tabs_are_no_way_around(queue, ask):
    terms = Terms(seconds_per_day=150)
    ask("ada", terms=terms)
    ask("ada", terms=terms)
    with pytest.raises(NotAllowed, match=r"may take 1 min, but only 30\.0 s of your 2 min 30 s for today"):
        ask("ada", terms=terms)
    ask("bob", terms=terms)


def test_of_many_who_ask_at_once_no_more_are_taken_than_the_budget_allows(queue, ask):
    def attempt(_):
        try:
            return bool(ask("ada", terms=Terms(seconds_per_day=180)))
        except NotAllowed:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(16))) == 3


def test_a_run_costs_the_time_that_it_took_and_never_more_than_it_had_asked_for(queue, ask, monkeypatch):
    ask("ada", budget_s=1)
    job = queue.claim(process.current_process())
    monkeypatch.setattr(machine.time, "monotonic", lambda: job.began.uptime_s + 3 * 3600)
    queue.end(dataclasses.replace(job, state="finished"))
    assert queue.usage.seconds_on_day("ada", TODAY) == 1
    queue.end(queue.job(job.id))
    assert queue.usage.seconds_on_day("ada", TODAY) == 1
    assert queue.usage.seconds_on_day("ada", "2020-01-01") == 0
    with pytest.raises(NotAllowed):
        ask("ada", budget_s=60, terms=Terms(seconds_per_day=60))


def test_a_waiting_job_that_is_stopped_costs_nothing(queue, ask):
    job = ask("ada", terms=Terms(seconds_per_day=60))
    queue.request_stop(job.id)
    assert queue.usage.seconds_on_day("ada", TODAY) == 0
    ask("ada", terms=Terms(seconds_per_day=60))


def test_only_so_many_jobs_of_one_person_wait_at_once(queue, ask):
    ask("ada", terms=Terms(waiting=2))
    ask("ada", terms=Terms(waiting=2))
    with pytest.raises(NotAllowed, match="You have 2 measurements waiting or running and 2 are allowed at once"):
        ask("ada", terms=Terms(waiting=2))
    ask("bob", terms=Terms(waiting=2))


@pytest.mark.parametrize(
    ("new", "there", "waiting", "said"),
    [
        (7, 0, 1, "This takes 7 measurements, and 1 is allowed at once."),
        (1, 1, 1, "You have 1 measurement waiting or running and 1 is allowed at once."),
        (2, 1, 2, "You have 1 measurement waiting or running, this would be 2 more, and 2 are allowed at once."),
        (2, 0, 2, ""),
    ],
)
def test_who_asks_for_too_much_at_once_is_told_how_much(new, there, waiting, said):
    assert Terms(waiting=waiting).refusal([60.0] * new, [60.0] * there, used_s=0) == said


def test_the_queue_is_as_long_as_the_host_lets_it_be(queue, ask):
    ask("ada", terms=Terms(queue_length=1))
    with pytest.raises(JobError, match="The queue holds 1 waiting jobs"):
        ask("bob", terms=Terms(queue_length=1))


def test_joining_somebodys_run_costs_nothing(queue, tmp_path):
    asked, store = Experiment(point=Point()), Store(tmp_path / "results")
    job = queue.submit(asked, store, asked_by="ada")
    assert queue.submit(asked, store, asked_by="bob", terms=Terms(seconds_per_day=1)).id == job.id


def test_a_job_of_an_earlier_version_is_still_read(queue, ask):
    job = ask("ada")
    folder = queue.folder / job.id
    for name, new in (("request.json", ("asked_by",)), ("status.json", ("began", "reported"))):
        data = json.loads((folder / name).read_text())
        for key in new:
            del data[key]
        (folder / name).write_text(json.dumps(data))
    old = Queue(queue.folder).job(job.id)
    assert (old.asked_by, old.began, old.state) == ("", None, "queued")
    assert serve(Queue(queue.folder)) == [""]
