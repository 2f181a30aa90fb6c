"""Thirty students with one code: half measure on the host, which has one queue, half bring files. Nothing is lost,
and nothing that was removed comes back."""

import datetime
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.classroom import results
from core.classroom.classes import Classes, Prediction
from core.classroom.question import CHALLENGER, NEVER, ClassQuestion
from core.errors import NotAllowed
from core.jobs import client
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import Queue
from core.jobs.usage import Terms
from core.question import policy
from core.question.experiment import Contender
from core.results.store import Store
from tests.integration import scripted_worker
from tests.integration.following import until
from tests.integration.scripted_worker import COMMAND, QUICK, UNTIL_RELEASED, sweep, timed

STUDENTS = 30
SIZES = (25, 50, 100, 200, 400)
ASKED = sweep(sizes=SIZES, budget_s=60.0, point_budget_s=20.0)
QUESTION = ClassQuestion(title="Hidden size", question=ASKED, words="")
CONTENDERS = (Contender(threads=1), Contender())
TERMS = Terms(seconds_per_day=120.0, waiting=1)


def today():
    return datetime.datetime.now(datetime.UTC).date().isoformat()


@pytest.fixture
def queue(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    monkeypatch.setattr(client, "COMMAND", COMMAND)
    queue = Queue(tmp_path / "jobs")
    yield queue
    queue.worker_file.dismiss()


def file_of(nickname: str, code: str) -> bytes:
    """What a student's own machine would have written."""
    rows = [
        row
        for number, point in enumerate(ASKED.points)
        for row in timed(ASKED.experiment(point), f"{number:012x}", machine_id=f"{abs(hash(nickname)):012x}"[:12])
    ]
    return results.build_file(rows, code=code, nickname=nickname)


def served(queue: Queue) -> list[str]:
    """Who was measured, in the order in which it began."""
    notes = [note.split() for note in scripted_worker.journal().read_text().splitlines()]
    order = dict.fromkeys(job_id for _, what, job_id, *_ in notes if what == "begin")
    return [queue.job(job_id).asked_by for job_id in order]


def test_thirty_students_lose_nothing_stay_within_their_budgets_and_take_turns(queue, tmp_path):
    began = today()
    classes = Classes(tmp_path / "classes")
    of, _ = classes.create("Physics 7b", QUESTION)

    for number in range(10):  # somebody was here first, with ten tabs
        quick = scripted_worker.experiment(QUICK, width=2 + number)
        queue.submit(quick, Store(tmp_path / "results"), asked_by="greedy")

    def take_part(number: int) -> str:
        mine = Classes(tmp_path / "classes")
        student, token = mine.join(mine.find(of.code), f"student {number}")
        student = mine.recognise(of, student.id, token)
        place = (*QUESTION.places, NEVER)[number % (len(SIZES) + 1)]
        mine.predict(of, student, Prediction(winner=CHALLENGER, place=place))
        if number % 2:
            receipt = mine.take_file(of, student, file_of(student.nickname, of.code), "rows.parquet")
            assert receipt == results.Receipt(added=2 * len(SIZES))
            return ""
        asked = QUESTION.with_contenders(CONTENDERS)
        job = Queue(queue.folder).submit(asked, mine.store(of, student), asked_by=student.id, terms=TERMS)
        with pytest.raises(NotAllowed):  # not a second at once, from another tab
            Queue(queue.folder).submit(
                asked, Store(tmp_path / "elsewhere" / student.id), asked_by=student.id, terms=TERMS
            )
        return job.id

    with ThreadPoolExecutor(STUDENTS) as pool:
        jobs = [job_id for job_id in pool.map(take_part, range(STUDENTS)) if job_id]
    client.ensure_worker(queue)
    until(lambda: [queue.job(job_id) for job_id in jobs], lambda found: not any(job.active for job in found))

    assert [queue.job(job_id).state for job_id in jobs] == ["finished"] * (STUDENTS // 2)
    students = classes.students(of)
    assert len({student.nickname for student in students}) == STUDENTS

    counted = results.count_predictions(QUESTION, [student.prediction for student in students if student.prediction])
    assert counted.students == STUDENTS
    assert set(counted.places.values()) == {STUDENTS // (len(SIZES) + 1)}

    everybody = [results.compute_result(QUESTION, student, classes.store(of, student).trials()) for student in students]
    assert all(found is not None and found.sizes == len(SIZES) for found in everybody)
    assert {found.from_file for found in everybody} == {True, False}
    assert all(found.low <= found.estimate <= found.high for found in everybody)
    assert all(abs(found.estimate / scripted_worker.CROSSING - 1) < 0.1 for found in everybody)
    held = sum(found.low <= scripted_worker.CROSSING <= found.high for found in everybody)
    assert held >= 0.8 * STUDENTS, "95 % intervals of noise that each host's run draws anew: one or another misses"
    (group,) = results.group_by_devices(everybody)
    assert (group.results, group.crossings) == (STUDENTS, STUDENTS)

    days = {began, today()}  # midnight may pass
    spent = [sum(queue.usage.seconds_on_day(student.id, day) for day in days) for student in students]
    assert sum(seconds > 0 for seconds in spent) == STUDENTS // 2
    assert max(spent) <= policy.question_seconds(ASKED) <= TERMS.seconds_per_day

    order = served(queue)
    in_class = [who for who in order if who != "greedy"]
    assert len(set(in_class)) == len(in_class) == STUDENTS // 2
    assert "greedy" not in order[1 : 1 + STUDENTS // 2]


@pytest.mark.parametrize("what", ["the student", "the class"])
def test_a_measurement_that_ends_after_its_student_is_gone_brings_nobody_back(queue, tmp_path, what):
    classes = Classes(tmp_path / "classes")
    of, _ = classes.create("Physics 7b", QUESTION)
    student, _ = classes.join(of, "ada")
    job = queue.submit(scripted_worker.experiment(UNTIL_RELEASED), classes.store(of, student))
    client.ensure_worker(queue)
    until(lambda: queue.job(job.id), lambda found: found.progress is not None)

    if what == "the student":
        classes.remove(of, [student])
    else:
        classes.delete(of)
    (queue.folder / scripted_worker.RELEASE).touch()
    ended = until(lambda: queue.job(job.id), lambda found: not found.active)

    assert "could not be stored" in ended.message
    assert "cannot be written" in ended.message
    assert len(client.load_job_rows(queue, ended)) == 2, "what was measured is kept with the job"
    classes.prune()
    if what == "the student":
        assert classes.students(of) == []
        assert list((classes.folder / of.id / "students").iterdir()) == []
    else:
        assert [path for path in classes.folder.iterdir() if path.is_dir()] == []
