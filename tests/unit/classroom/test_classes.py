"""Classes: codes, names, what is expected, and how a class ends."""

import contextlib
import datetime
import sqlite3
from dataclasses import replace

import pytest

from core.classroom import classes as module
from core.classroom import students
from core.classroom.classes import Classes, Prediction
from core.classroom.database import FILE_NAME
from core.classroom.question import BASELINE, CHALLENGER, NEVER, ClassQuestion
from core.errors import InvalidValue, NotAllowed, StoreError
from tests import rows
from tests.students import change_database

QUESTION = ClassQuestion.from_preset("disc")


def joined_earlier(classes, of, nickname):
    """A student as an earlier version made one, whose nicknames followed another rule."""
    student, token = classes.join(of, "somebody")
    change_database(classes, "UPDATE students SET nickname = ? WHERE id = ?", nickname, student.id)
    return student.id, token


def later(monkeypatch, **time):
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(**time)
    monkeypatch.setattr(module, "read_clock", lambda: moment)


def everything_in(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def folders_in(folder):
    return [path.name for path in folder.iterdir() if path.is_dir()]


def test_a_class_is_found_by_its_code_however_typed_and_only_by_it(classes):
    of, secret = classes.create("  Physics   7b ", QUESTION)
    assert of.name == "Physics 7b"
    assert Classes(classes.folder).find(of.code.lower().replace("-", " ")) == of
    with pytest.raises(NotAllowed, match="There is no class with this code"):
        classes.find(students.join_code())
    assert students.matches(secret, of.secret_hash)
    assert secret.encode() not in everything_in(classes.folder)


@pytest.mark.parametrize("code", ["", "../../etc", "0" * 16, "KX4M-9PQA" * 100, "\0"])
def test_a_code_that_is_none_finds_no_class(classes, of, code):
    with pytest.raises(NotAllowed):
        classes.find(code)


def test_a_code_that_somebody_makes_up_costs_no_look_at_every_class(classes, of, monkeypatch):
    monkeypatch.setattr(module, "_list_classes", lambda *_: pytest.fail("every class was read"))
    with pytest.raises(NotAllowed):
        classes.find(students.join_code())


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "<b>bold</b>", "a\u202eb", "*.*", "--", "a/b", "=1+1"])
def test_names_have_letters_and_bounds(classes, name):
    with pytest.raises(InvalidValue, match=r"name must be 1 to 60 letters"):
        classes.create(name, QUESTION)


def test_a_nickname_is_kept_as_it_is_shown(classes, of):
    student, token = classes.join(of, "  Zoe\u0308  ")
    assert classes.recognise(of, student.id, token) == student
    assert [entry.nickname for entry in classes.students(of)] == ["Zoë"]


@pytest.mark.parametrize("second", ["ada", "ADA", " Ada ", "ａｄａ", "a-da", "a d a"])
def test_a_nickname_that_looks_the_same_is_not_given_twice(classes, of, second):
    classes.join(of, "ada")
    with pytest.raises(NotAllowed, match="is already in use in this class"):
        classes.join(of, second)


@pytest.mark.parametrize("second", ["ada\u3164", "\u3164", "ada\u115f", "аdа"])
def test_a_nickname_that_passes_for_another_is_none(classes, of, second):
    classes.join(of, "ada")
    with pytest.raises(InvalidValue, match="letters of one script"):
        classes.join(of, second)
    assert len(classes.students(of)) == 1


@pytest.mark.parametrize("nickname", ["Ada L.", "a-d-a", "ada\u3164", "Аня K"])
def test_who_joined_under_an_earlier_rule_is_recognised_and_keeps_their_name(classes, of, nickname):
    student = classes.recognise(of, *joined_earlier(classes, of, nickname))
    assert (student.nickname, student.waiting) == (nickname, False)
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=4))
    classes.store(of, student).add(rows.trial())
    assert len(Classes(classes.folder).store(of, student).trials()) == 1
    plain = "".join(letter for letter in nickname if letter.isascii())
    if plain == nickname:
        with pytest.raises(NotAllowed, match="already"):
            classes.join(of, nickname.replace(" ", "").lower())


def test_only_the_token_says_who_one_is_and_only_its_hash_is_kept(classes, of):
    student, token = classes.join(of, "ada")
    assert token.encode() not in everything_in(classes.folder)
    for student_id, given in ((student.id, "x"), (student.id, ""), ("0" * 16, token), ("../x", token), ("", "")):
        with pytest.raises(NotAllowed, match="not in this class"):
            classes.recognise(of, student_id, given)


def test_nothing_personal_is_kept_but_the_nickname(classes, of):
    student, _ = classes.join(of, "ada")
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=NEVER))
    with contextlib.closing(sqlite3.connect(classes.folder / FILE_NAME)) as connection:
        columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(students)")}
    assert columns == {
        *("class_id", "id", "nickname", "joined_at", "waiting", "token_hash"),
        *("results", "winner", "place", "fault"),
    }


def test_what_is_expected_is_kept_and_can_be_changed_until_there_is_a_result(classes, of):
    student, _ = classes.join(of, "ada")
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=4))
    student = classes.predict(of, student, Prediction(winner=BASELINE, place=NEVER))
    assert classes.students(of) == [student]
    classes.store(of, student).add(rows.trial())
    with pytest.raises(NotAllowed, match="Your result is already in"):
        classes.predict(of, student, Prediction(winner=CHALLENGER, place=4))


@pytest.mark.parametrize(
    "wrong", [{"winner": "me"}, {"place": 5}, {"place": None}, {"place": "4"}, {"place": "<script>"}]
)
def test_only_the_questions_own_answers_can_be_expected(classes, of, wrong):
    student, _ = classes.join(of, "ada")
    with pytest.raises(InvalidValue):
        classes.predict(of, student, replace(Prediction(winner=CHALLENGER, place=4), **wrong))


def test_one_training_has_no_place_to_expect(classes):
    of, _ = classes.create("Images", ClassQuestion.from_preset("mnist-linear"))
    student, _ = classes.join(of, "ada")
    assert classes.predict(of, student, Prediction(winner=CHALLENGER)).prediction.place is None


def test_a_closed_class_takes_nothing_until_it_is_opened_again(classes, of):
    student, _ = classes.join(of, "ada")
    classes.close(of)
    for attempt in (
        lambda: classes.join(of, "bob"),
        lambda: classes.predict(of, student, Prediction(winner=CHALLENGER, place=4)),
    ):
        with pytest.raises(NotAllowed, match="This class is closed"):
            attempt()
    classes.close(of, closed=False)
    classes.join(of, "bob")


def test_a_class_whose_time_is_over_is_not_found_and_dropped(classes, of, monkeypatch):
    classes.join(of, "ada")
    later(monkeypatch, days=31)
    with pytest.raises(NotAllowed):
        classes.find(of.code)
    with pytest.raises(NotAllowed, match="has ended"):
        classes.join(of, "bob")
    assert classes.prune() == 0
    assert folders_in(classes.folder) == []


def test_a_deleted_class_is_gone_with_everything_in_it(classes, of):
    other, _ = classes.create("Other", QUESTION)
    classes.join(of, "a remarkable name")
    classes.join(other, "bob")
    reader = sqlite3.connect(classes.folder / FILE_NAME)  # so that the log is not emptied by closing
    reader.execute("SELECT count(*) FROM students").fetchall()
    assert b"a remarkable name" in everything_in(classes.folder)
    classes.delete(of)
    assert folders_in(classes.folder) == [other.id]
    assert classes.all() == [other]
    written = everything_in(classes.folder)
    assert b"a remarkable name" not in written
    assert of.code.encode() not in written
    assert b"bob" in written
    reader.close()


def test_a_late_result_does_not_bring_a_deleted_class_back(classes, of):
    student, _ = classes.join(of, "ada")
    store = classes.store(of, student)
    (classes.folder / "my notes").mkdir()
    classes.delete(of)
    with pytest.raises(StoreError, match="cannot be written"):
        store.add(rows.trial())
    with pytest.raises(StoreError, match="its student or class was removed"):
        store.check_writable()
    classes.prune()
    assert folders_in(classes.folder) == ["my notes"]


def test_a_removal_that_was_interrupted_is_finished_by_the_next_look(classes, of, monkeypatch):
    classes.join(of, "ada")
    with monkeypatch.context() as during:
        during.setattr(module.shutil, "rmtree", lambda *_, **__: None)  # killed before anything is removed
        classes.delete(of)
    (left,) = folders_in(classes.folder)
    assert classes.all() == []
    with pytest.raises(NotAllowed):
        classes.find(of.code)
    assert (classes.folder / left / "students").exists()
    assert classes.prune() == 0
    assert folders_in(classes.folder) == []


def test_a_deletion_that_was_killed_before_it_was_written_down_leaves_all_as_it_was(classes, of, monkeypatch):
    student, _ = classes.join(of, "ada")
    classes.store(of, student).add(rows.trial())
    with monkeypatch.context() as during:
        during.setattr(module.documents, "flush_folder", lambda folder: during.undo() or 1 / 0)
        with pytest.raises(ZeroDivisionError):
            classes.delete(of)
    assert classes.prune() == 1
    assert len(classes.store(of, student).trials()) == 1


def test_a_class_that_cannot_be_removed_stays_as_it_is(classes, of, monkeypatch):
    classes.join(of, "ada")

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as during:
        during.setattr(module.Path, "rename", refused)
        with pytest.raises(StoreError, match="cannot be written: Permission denied"):
            classes.delete(of)
    assert classes.find(of.code) == of
