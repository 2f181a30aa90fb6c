"""A class whose server and measuring process are killed while it takes part; `tests.benchmarks.kills` does it longer.

And what is looked at afterwards is found: whatever is lost, doubled, damaged or left behind.
"""

import asyncio
import shutil
import sys

import pytest

from core.classroom.classes import Prediction
from core.classroom.question import CHALLENGER
from core.jobs import process
from core.results.parquet import to_table
from core.results.store import Store
from tests.benchmarks import kills
from tests.benchmarks.kills_house import QUESTION, SIZES, House
from tests.benchmarks.kills_pupils import Pupil, Shown
from tests.integration import scripted_worker
from tests.students import change_database

STUDENTS, KILLS = 3, 1
PLACE = float(SIZES[0])

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="this system has no SIGKILL")


def test_kills_of_server_and_worker_lose_nothing_and_double_nothing(tmp_path):
    found = asyncio.run(kills.campaign(tmp_path, students=STUDENTS, server=KILLS, worker=KILLS, look_s=0.5))
    assert found.faults == ()
    assert "begin" in (tmp_path / "journal.txt").read_text(), "the script measured, and nothing was trained"
    figures = found.figures
    assert (figures["server killed"], figures["worker killed"]) == (KILLS, KILLS)
    assert figures["joins shown"] == STUDENTS <= figures["joins stored"]
    assert figures["results shown"] >= STUDENTS
    assert figures["rows"] >= 2 * STUDENTS, "each measured one size at least, on both devices"


class Afterwards:
    """A house in which one pupil has done everything, without a server."""

    def __init__(self, folder):
        self.house = House(folder, seed=1, spread_s=0)
        classes, of = self.house.classes, self.house.of
        student, token = classes.join(of, "ada")
        classes.predict(of, student, Prediction(winner=CHALLENGER, place=PLACE))
        self.store = classes.store(of, student)
        asked = QUESTION.question
        runs = [
            scripted_worker.timed(asked.experiment(point), f"{number:012x}")
            for number, point in enumerate(asked.points)
        ]
        self.store.add_all(to_table([row for run in runs for row in run]))
        self.house.look()
        self.folder = classes.place(of, student.id)
        (known,) = classes.students(of)
        words = kills.in_words(of, known)
        self.pupil = Pupil(0, 0, of.code, self.house)
        rows = self.house.rows_of(student.id)
        self.pupil.shown = Shown(
            nickname="ada", link=f"{student.id}.{token}", expected=words, results=1, rows=set(rows)
        )

    def file(self):
        return next(iter(sorted(self.store.folder.glob("*.parquet"))))


@pytest.fixture
def afterwards(tmp_path):
    return Afterwards(tmp_path)


def double(found):
    shutil.copy(found.file(), found.file().with_name("again.parquet"))


def join_twice(found):
    found.folder.with_name("0" * 16).mkdir()
    columns = "class_id, '0000000000000000', nickname, joined_at, waiting, token_hash, results, winner, place, fault"
    change_database(found.house.classes, f"INSERT INTO students SELECT {columns} FROM students")


def go_on(found):
    queue = found.house.queue
    queue.submit(scripted_worker.experiment(scripted_worker.QUICK), Store(found.house.folder / "results"))
    queue.claim(process.current_process())


def have_seen_more(found):
    found.house.seen[found.pupil.shown.link[:16]].add("0123456789ab-7")


def leave_a_stranger(found):
    (found.folder / "results.tmp").mkdir()
    (found.folder / ".of-another-program").write_text("")


def run_sql(statement):
    return lambda found: change_database(found.house.classes, statement)


DAMAGES = {
    "all is well": (lambda found: None, ""),
    "a row is gone": (lambda found: found.file().unlink(), "ada lost the rows"),
    "a row that was seen once is gone": (have_seen_more, "ada lost the rows ['0123456789ab-7']"),
    "a row is there twice": (double, "is there twice"),
    "a student is gone": (run_sql("DELETE FROM students"), "ada has joined and is not in the class"),
    "a student is there twice": (join_twice, "'ada' is in the class twice"),
    "a prediction is damaged": (run_sql("UPDATE students SET winner = 'me'"), "the prediction is damaged"),
    "a prediction is gone": (run_sql("UPDATE students SET winner = NULL"), "None is kept"),
    "a job goes on": (go_on, "is running"),
    "something is left behind": (leave_a_stranger, "left behind"),
    "a page has failed": (lambda found: found.pupil.faults.append("ZeroDivisionError"), "page: ZeroDivisionError"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_lost_doubled_damaged_or_left_is_found(afterwards, name):
    damage, said = DAMAGES[name]
    damage(afterwards)
    faults = kills.account(afterwards.house, [afterwards.pupil]).faults
    assert any(said in fault for fault in faults) if said else faults == ()
