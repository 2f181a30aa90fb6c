"""The database of classes: damaged, foreign, newer, written by many at once, and who may read its file."""

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.classroom import classes as module
from core.classroom.classes import Classes, Prediction
from core.classroom.database import APPLICATION_ID, FILE_NAME, FIRST_TABLES, Database
from core.classroom.question import CHALLENGER, ClassQuestion
from core.errors import NotAllowed, StoreError
from core.files.project import PROJECT
from tests.students import change_database

QUESTION = ClassQuestion.from_preset("disc")


def tear(path):
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * 4096 + content[8192:])


def put_pipe(path):
    path.unlink()
    os.mkfifo(path)


def put_link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def run_sql(*statements):
    def change(path):
        with sqlite3.connect(path) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    return change


DAMAGES = {
    "text": (lambda path: path.write_text("no database " * 1_000), "file is not a database"),
    "torn": (tear, "malformed"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:5_000]), "malformed"),
    "pipe": (put_pipe, "it is not a regular file"),
    "link": (put_link, "it is not a regular file"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "it is not a regular file"),
    "another program": (run_sql("PRAGMA application_id = 7"), "it belongs to another program"),
    "newer": (run_sql("PRAGMA user_version = 3"), "it was written by a newer version of Crossover; update Crossover"),
    "another table": (run_sql("CREATE TABLE notes (text TEXT)"), "its tables are not those of schema 2"),
    "trigger": (
        run_sql("CREATE TRIGGER evil AFTER INSERT ON students BEGIN DELETE FROM classes; END"),
        "its tables are not those of schema 2",
    ),
    "endless cell": (run_sql("UPDATE classes SET name = CAST(zeroblob(9000000) AS TEXT)"), "too big"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_file_that_cannot_be_used_is_named_in_one_sentence_and_left_as_it_is(classes, of, name):
    student, _ = classes.join(of, "ada")
    damage, reason = DAMAGES[name]
    path = classes.folder / FILE_NAME
    damage(path)
    before = path.read_bytes() if path.is_file() else b""
    for attempt in (classes.all, lambda: classes.find(of.code), lambda: classes.create("Other", QUESTION)):
        with pytest.raises(StoreError, match=reason) as caught:
            attempt()
        assert f"The class database {path} cannot be used: " in str(caught.value)
        assert "\n" not in str(caught.value)
    assert path.exists()
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert classes.place(of, student.id).exists()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("question", text) for text in ("", "{}", "null", '{"sweep": {}}', "[" * 100_000)),
        *(("code", text) for text in ("", "KX4-M9P-QS7")),
        *(("expires_at", text) for text in ("", "now", "0", "2000-01-01", "2000-01-01T00:00:00", "0000-00-00T00:00Z")),
    ],
)
def test_a_class_that_cannot_be_read_is_named_and_never_deleted(classes, of, column, value, caplog):
    other, _ = classes.create("Other", QUESTION)
    change_database(classes, f"UPDATE classes SET {column} = ? WHERE id = ?", value, of.id)
    with pytest.raises(StoreError, match="Nothing of this class is lost, but its record is damaged"):
        classes.find(of.code)
    assert classes.all() == [other]
    assert classes.damaged().keys() == {of.id}
    assert classes.prune() == 2
    assert of.id in caplog.text
    assert classes.delete_by_code(of.code) == "Physics 7b"
    assert classes.prune() == 1


def test_a_prediction_that_is_none_is_named_with_the_student_who_can_predict_again(classes, of):
    ada, token = classes.join(of, "ada")
    change_database(classes, "UPDATE students SET winner = 'me', place = 4")
    (found,) = classes.students(of)
    assert found.fault.startswith("the prediction is damaged: winner must be ")
    healed = classes.predict(of, found, Prediction(winner=CHALLENGER, place=4))
    assert classes.recognise(of, ada.id, token) == healed


@pytest.mark.parametrize(("column", "value"), [("id", "../../../precious"), ("results", "../../../precious")])
def test_no_name_of_a_folder_leads_out_of_the_class(classes, of, tmp_path, column, value):
    ada, token = classes.join(of, "ada")
    (tmp_path / "precious").mkdir()
    change_database(classes, f"UPDATE students SET {column} = ?", value)
    with pytest.raises(StoreError, match="a folder with a name that is not allowed"):
        classes.students(of)
    with pytest.raises((StoreError, NotAllowed)):
        classes.recognise(of, value if column == "id" else ada.id, token)
    classes.delete(of)
    assert (tmp_path / "precious").exists()


def test_only_the_owner_may_look_at_the_files(classes, of):
    assert stat.S_IMODE(classes.folder.stat().st_mode) == 0o700
    with sqlite3.connect(classes.folder / FILE_NAME) as reader:
        reader.execute("SELECT * FROM classes").fetchall()
        classes.join(of, "ada")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in classes.folder.glob(f"{FILE_NAME}*")}
    reader.close()
    assert modes == {f"{FILE_NAME}{ending}": 0o600 for ending in ("", "-wal", "-shm")}


def test_who_only_looks_makes_no_file(tmp_path):
    classes = Classes(tmp_path / "classes")
    assert (classes.all(), classes.damaged(), classes.prune()) == ([], {}, 0)
    with pytest.raises(NotAllowed):
        classes.delete_by_code("KX4-M9P-QS7")
    assert not classes.folder.exists()


def test_there_is_a_last_class_and_a_last_student(classes, of, monkeypatch):
    monkeypatch.setattr(module, "MAX_CLASSES", 1)
    monkeypatch.setattr(module, "MAX_STUDENTS", 1)
    with pytest.raises(NotAllowed, match="1 classes"):
        classes.create("Other", QUESTION)
    classes.join(of, "ada")
    with pytest.raises(NotAllowed, match="1 students"):
        classes.join(of, "bob")
    assert [student.nickname for student in classes.students(of)] == ["ada"]


@pytest.mark.slow
def test_thirty_who_join_at_once_are_all_in_and_of_one_nickname_one_is(classes, of):
    def join(number):
        try:
            return classes.join(of, f"student {number % 30}")
        except NotAllowed:
            return None

    with ThreadPoolExecutor(16) as pool:
        joined = list(pool.map(join, range(90)))
    assert sum(entry is not None for entry in joined) == 30
    assert {student.nickname for student in classes.students(of)} == {f"student {n}" for n in range(30)}


WRITE = """
import sys
from pathlib import Path
from core.classroom.database import Database, insert_row
for number in range(20):
    with Database(Path(sys.argv[1])).write() as connection:
        insert_row(connection, "classes", id=f"{sys.argv[2]} {number}", **dict.fromkeys(sys.argv[3:], 0))
"""


def test_processes_that_write_first_and_at_once_lose_nothing(tmp_path):
    columns = ["code", "name", "question", "created_at", "expires_at", "closed", "admission", "secret_hash"]
    commands = [[sys.executable, "-c", WRITE, str(tmp_path / "classes"), name, *columns] for name in "abcdef"]
    writers = [subprocess.Popen(command, cwd=PROJECT) for command in commands]
    assert [writer.wait() for writer in writers] == [0] * 6
    with Database(tmp_path / "classes").read() as connection:
        assert connection.execute("SELECT count(*) FROM classes").fetchone()[0] == 120


def test_a_folder_that_cannot_be_written_is_said_in_one_sentence(tmp_path):
    (tmp_path / "classes").write_text("a file")
    with pytest.raises(StoreError, match=r"The folder of classes .* cannot be written"):
        Classes(tmp_path / "classes").create("Physics", QUESTION)


def test_what_is_changed_rests_on_how_the_class_stands_now(classes, of):
    classes.ask_admission(of)
    classes.close(of)
    now = classes.find(of.code)
    assert (now.admission, now.closed) == (True, True)
    classes.delete(of)
    with pytest.raises(NotAllowed, match="has ended"):
        classes.close(of)
    assert not (classes.folder / of.id).exists()


def test_who_waits_to_be_admitted_takes_no_part(classes):
    of, _ = classes.create("Physics", QUESTION, admission=True)
    student, token = classes.join(of, "ada")
    assert student.waiting
    assert classes.recognise(of, student.id, token) == student
    with pytest.raises(NotAllowed, match="has not admitted you"):
        classes.predict(of, student, Prediction(winner=CHALLENGER, place=4))


def test_who_waits_takes_nobodys_place_and_there_is_a_last_one_who_waits(classes, of, monkeypatch):
    monkeypatch.setattr(module, "MAX_STUDENTS", 2)
    monkeypatch.setattr(module, "MAX_WAITING", 3)
    classes.join(of, "ada")
    classes.ask_admission(of)
    for number in range(3):
        classes.join(of, f"bot {number}")
    with pytest.raises(NotAllowed, match="3 students wait to be admitted"):
        classes.join(of, "bot 3")
    classes.ask_admission(of, asked=False)
    assert not classes.join(of, "bob")[0].waiting


def test_a_database_of_the_first_version_gets_the_table_that_came_later(tmp_path):
    path = tmp_path / "classes.sqlite3"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in FIRST_TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    classes = Classes(tmp_path)
    made, _ = classes.create("Physics", ClassQuestion.from_preset("disc"))
    assert not classes.find(made.code).revealed
    assert classes.reveal(made).revealed
    assert Classes(tmp_path).find(made.code).revealed
    assert not classes.reveal(made, revealed=False).revealed
    classes.delete(classes.reveal(made))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM revealed").fetchone() == (0,)
