"""Classes whose files are damaged, of earlier versions, half written or too many, and whom that concerns."""

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.classroom import classes as module
from core.classroom.classes import Classes, Prediction
from core.classroom.question import CHALLENGER, ClassQuestion
from core.errors import NotAllowed, StoreError
from core.files import atomic

QUESTION = ClassQuestion.from_preset("disc")


def class_file(classes, of):
    return classes.folder / of.id / "class.json"


def student_folder(classes, of, student):
    return classes.folder / of.id / "students" / student.id


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", "null", '{"code": 1}', '{"question": {"sweep": {}}}', "[" * 100_000, "\x00" * 100),
        *('{"expires_at": "2000-01-01T00:00:00+00:00"}', '{"a later version": [1]}'),
    ],
)
def test_a_class_whose_file_cannot_be_read_is_named_and_never_deleted(classes, of, text, caplog):
    student, _ = classes.join(of, "ada")
    class_file(classes, of).write_text(text)
    with pytest.raises(StoreError, match=r"Nothing of this class is lost, but class\.json is damaged"):
        classes.find(of.code)
    assert classes.all() == []
    assert classes.damaged().keys() == {of.id}
    other, _ = classes.create("Other", QUESTION)
    assert classes.prune() == 2
    assert of.id in caplog.text
    assert (student_folder(classes, of, student) / "student.json").exists()
    assert classes.all() == [other]


def test_a_class_without_its_file_stays_too_and_can_be_deleted_by_its_code(classes, of):
    class_file(classes, of).unlink()
    assert classes.prune() == 1
    assert classes.damaged() == {of.id: "class.json is missing."}
    assert classes.delete_by_code(of.code) == of.id
    assert classes.prune() == 0
    with pytest.raises(NotAllowed, match="There is no class"):
        classes.delete_by_code(of.code)


@pytest.mark.parametrize("wrong", ["expires_at", "created_at"])
@pytest.mark.parametrize("time", ["", "now", "0", "2000-01-01", "2000-01-01T00:00:00", "0000-00-00T00:00:00+00:00", 0])
def test_a_time_that_is_none_does_not_make_a_class_one_that_is_over(classes, of, wrong, time):
    facts = json.loads(class_file(classes, of).read_text())
    class_file(classes, of).write_text(json.dumps(facts | {wrong: time}))
    assert classes.prune() == 1
    assert list(classes.damaged()) == [of.id]


def test_the_file_of_one_class_in_the_folder_of_another_is_named(classes, of):
    other, _ = classes.create("Other", QUESTION)
    class_file(classes, of).write_bytes(class_file(classes, other).read_bytes())
    assert classes.damaged() == {of.id: "class.json is damaged: it belongs to another folder."}
    assert classes.all() == [other]


def test_a_class_of_an_earlier_version_is_open_to_everybody_and_found_by_its_eight_letters(classes, of):
    facts = json.loads(class_file(classes, of).read_text())
    del facts["admission"]
    earlier = hashlib.sha256(b"class KX4M-9PQA").hexdigest()[:16]
    (classes.folder / earlier / "students").mkdir(parents=True)
    (classes.folder / earlier / "class.json").write_text(json.dumps(facts | {"code": "KX4M-9PQA"}))
    found = classes.find("kx4m 9pqa")
    assert (found.id, found.admission) == (earlier, False)
    assert not classes.join(found, "ada")[0].waiting


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("student.json", "", "student.json is damaged: it is torn, or no JSON."),
        ("student.json", None, "student.json is missing."),
        ("student.json", '{"nickname": "\\u001b[2J"}', "student.json is damaged: "),
        (
            "student.json",
            '{"nickname": "ada", "joined_at": "2026-11-22T09:00:00Z", "token_hash": "\u00e9"}',
            "student.json is damaged: Expected `str` matching regex",
        ),
        ("prediction.json", "{", "prediction.json is damaged: it is torn, or no JSON."),
        ("prediction.json", '{"winner": "me", "place": 4}', "prediction.json is damaged: winner: 'me'"),
        ("prediction.json", '{"winner": "challenger", "place": 5}', "prediction.json is damaged: place: 5"),
    ],
)
def test_a_damaged_file_of_a_student_is_named_with_the_student(classes, of, name, text, fault):
    ada, token = classes.join(of, "ada")
    classes.join(of, "bob")
    path = student_folder(classes, of, ada) / name
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)
    found = {student.id: student for student in classes.students(of)}[ada.id]
    assert found.fault.startswith(fault)
    assert found.prediction is None
    if name == "prediction.json":
        healed = classes.predict(of, classes.recognise(of, ada.id, token), Prediction(winner=CHALLENGER, place=4))
        assert classes.recognise(of, ada.id, token).prediction == healed.prediction
    elif text is not None:
        with pytest.raises(StoreError, match=r"Your results are kept, but student\.json is damaged"):
            classes.recognise(of, ada.id, token)
    assert len(classes.students(of)) == 2


def test_files_of_a_class_are_written_as_rows_are(classes, monkeypatch):
    written = []

    def spied(path, fill, *, lasting=True):
        written.append((path.name, lasting))
        write(path, fill, lasting=lasting)

    write = atomic.write_atomically
    monkeypatch.setattr(atomic, "write_atomically", spied)
    of, _ = classes.create("Physics", QUESTION)
    student, _ = classes.join(of, "ada")
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=4))
    classes.close(of)
    names = ["class.json", "student.json", "prediction.json", "class.json"]
    assert written == [(name, True) for name in names]


def test_what_writers_that_died_left_behind_goes_after_an_hour_and_nothing_else(classes, of, tmp_path):
    student, token = classes.join(of, "ada")
    at = classes.folder, classes.folder / of.id, classes.folder / of.id / "students"
    at = *at, at[-1] / student.id
    old = [folder / ".0123456789abcdef-0123456789ab" for folder in at] + [folder / ".x.json.0a.tmp" for folder in at]
    new = [folder / ".fedcba9876543210-0123456789ab" for folder in at]
    others = [folder / ".of somebody else" for folder in at]
    for path in (*old, *new, *others):
        path.mkdir() if path.suffix != ".tmp" else path.touch()
    two_hours_ago = path.stat().st_mtime - 7_200
    for path in (*old, *others):
        os.utime(path, (two_hours_ago, two_hours_ago))
    assert classes.prune() == 1
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in (*new, *others))
    assert classes.recognise(of, student.id, token) == student


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
    with pytest.raises(NotAllowed, match="over"):
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
    with pytest.raises(NotAllowed, match="3 wait to be admitted"):
        classes.join(of, "bot 3")
    classes.ask_admission(of, asked=False)
    assert not classes.join(of, "bob")[0].waiting
