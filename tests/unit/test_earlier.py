"""Stores, exhibits, jobs and classes of version 0.1.0 are read by today's code, whatever room it has moved to."""

import datetime
import math

import pytest

from core.answer import speedup, study
from core.classroom import classes, results
from core.classroom.classes import Classes
from core.classroom.question import CHALLENGER
from core.jobs import client
from core.jobs.queue import Queue
from core.results import exhibits
from core.results.store import Store
from tests.earlier_files import NAMES, lay_out
from tests.students import QUESTION

THEN = datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """Everything that was written, on the day after."""
    monkeypatch.setattr(classes, "read_clock", lambda: THEN)
    lay_out(tmp_path)
    return tmp_path


def test_every_row_is_read_and_says_what_it_said(earlier):
    store = Store(earlier / "results")
    assert (store.check().rows, store.check().files, store.check().skipped) == (18, 4, ())
    run = store.trials(run_id="0123456789ab")
    assert math.isclose(speedup.speedup(*run).value, 4.0, rel_tol=0.02)
    named = study.find_study(NAMES["study"], store.trials(), "hidden_size")
    assert named.crossover().outcome == "several"
    assert [trial.device_name for trial in Store(earlier / "gallery").trials()] == ["Test CPU", "NVIDIA Test GPU"]


def test_every_exhibit_is_read(earlier):
    found, skipped = exhibits.read_exhibits(earlier / "results")
    assert not skipped
    assert {exhibit.id: exhibit.kind for exhibit in found} == {
        "0" * 12: "clock",
        "1" * 12: "moving",
        "2" * 12: "first_step",
    }


def test_every_job_is_read_with_its_rows(earlier):
    queue = Queue(earlier / "jobs")
    jobs = {name: queue.job(job_id) for name, job_id in NAMES["jobs"].items()}
    assert {name: (job.state, job.damage) for name, job in jobs.items()} == {
        "run": ("finished", ""),
        "sweep": ("finished", ""),
        "lesson": ("finished", ""),
        "stopped": ("stopped", ""),
    }
    assert [trial.contender for trial in client.load_job_rows(queue, jobs["run"])] == ["cpu", "cuda:0"]
    rows = client.load_job_rows(queue, jobs["sweep"])
    assert [(row.hidden_size, row.batch_size) for row in rows[::2]] == [(16, 16), (16, 100), (32, 16), (32, 100)]
    assert client.exhibit(queue, jobs["lesson"]).kind == "clock"
    assert jobs["sweep"].sweep.experiment(jobs["sweep"].sweep.points[0]).id == rows[0].experiment_id
    assert client.load_machine(queue).device_names == {"cpu": "Test CPU", "cuda:0": "NVIDIA Test GPU"}
    assert not client.load_machine(queue).live


def test_a_class_is_found_by_its_code_with_its_students_and_what_they_found(earlier):
    classes = Classes(earlier / "classes")
    found = classes.find(NAMES["code"])
    assert (found.name, found.question) == ("Physics 7b", QUESTION)
    ada = classes.recognise(found, NAMES["student"], NAMES["token"])
    assert (ada.nickname, ada.fault) == ("Ada", "")
    expected = {student.nickname: student.prediction for student in classes.students(found)}
    assert {name: (said.winner, said.place) for name, said in expected.items()} == {
        "Ada": (CHALLENGER, 100),
        "Grete": (CHALLENGER, 10),
    }
    result = results.compute_result(QUESTION, ada, classes.store(found, ada).trials())
    assert (result.outcome, result.place(QUESTION)) == ("crossing", 1_000)
