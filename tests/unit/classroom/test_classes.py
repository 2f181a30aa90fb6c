"""Classes in a folder: made, joined, predicted in, closed, over, deleted; many at once lose nothing."""

import datetime
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from core.classroom import classes as module
from core.classroom import codes
from core.classroom.classes import Classes, Prediction
from core.classroom.question import BASELINE, CHALLENGER, NEVER, Question
from core.errors import InvalidValue, NotAllowed, StoreError
from tests import rows

QUESTION = Question.of_preset("disc")


@pytest.fixture
def classes(tmp_path):
    return Classes(tmp_path / "classes")


@pytest.fixture
def of(classes):
    return classes.create("Physics 7b", QUESTION)[0]


def everything_in(folder):
    return "".join(path.read_text() for path in folder.rglob("*.json"))


def test_a_class_is_found_by_its_code_however_typed_and_only_by_it(classes):
    of, secret = classes.create("  Physics   7b ", QUESTION)
    assert of.name == "Physics 7b"
    assert Classes(classes.folder).find(of.code.lower().replace("-", " ")) == of
    with pytest.raises(NotAllowed, match="There is no class with this code"):
        classes.find(codes.join_code())
    assert codes.matches(secret, of.secret_hash)
    assert secret not in everything_in(classes.folder)


@pytest.mark.parametrize("code", ["", "../../etc", "0" * 16, "KX4M-9PQA" * 100, "\0"])
def test_a_code_that_is_none_finds_no_class(classes, of, code):
    with pytest.raises(NotAllowed):
        classes.find(code)


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "<b>bold</b>", "a\u202eb", "*.*", "--", "a/b", "=1+1"])
def test_names_have_letters_and_bounds(classes, name):
    with pytest.raises(InvalidValue, match=r"name is .*: it must be 1 to 60 letters"):
        classes.create(name, QUESTION)


@pytest.mark.parametrize("nickname", ["ada", "Zoë", "小明", "Ada L.", "o'neil-7", "_x_"])
def test_a_nickname_can_be_of_any_script(classes, of, nickname):
    student, token = classes.join(of, nickname)
    assert classes.recognise(of, student.id, token) == student
    assert [entry.nickname for entry in classes.students(of)] == [nickname]


@pytest.mark.parametrize("second", ["ada", "ADA", " Ada ", "ａｄａ"])
def test_the_same_nickname_is_not_given_twice(classes, of, second):
    classes.join(of, "ada")
    with pytest.raises(NotAllowed, match="already; choose another nickname"):
        classes.join(of, second)


def test_only_the_token_says_who_one_is_and_only_its_hash_is_kept(classes, of):
    student, token = classes.join(of, "ada")
    assert token not in everything_in(classes.folder)
    for student_id, given in ((student.id, "x"), (student.id, ""), ("0" * 16, token), ("../x", token), ("", "")):
        with pytest.raises(NotAllowed, match="does not know you"):
            classes.recognise(of, student_id, given)


def test_nothing_personal_is_kept_but_the_nickname(classes, of):
    student, _ = classes.join(of, "ada")
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=NEVER))
    folder = classes.folder / of.id / "students" / student.id
    assert json.loads((folder / "student.json").read_text()).keys() == {"nickname", "joined_at", "token_hash"}
    assert json.loads((folder / "prediction.json").read_text()).keys() == {"winner", "place", "at"}


def test_what_is_expected_is_kept_and_can_be_changed_until_there_is_a_result(classes, of):
    student, _ = classes.join(of, "ada")
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=4))
    student = classes.predict(of, student, Prediction(winner=BASELINE, place=NEVER))
    assert classes.students(of) == [student]
    classes.store(of, student).add(rows.trial())
    with pytest.raises(NotAllowed, match="Your result is in already"):
        classes.predict(of, student, Prediction(winner=CHALLENGER, place=4))


@pytest.mark.parametrize(
    "wrong", [{"winner": "me"}, {"place": 5}, {"place": None}, {"place": "4"}, {"place": "<script>"}]
)
def test_only_the_questions_own_answers_can_be_expected(classes, of, wrong):
    student, _ = classes.join(of, "ada")
    with pytest.raises(InvalidValue):
        classes.predict(of, student, replace(Prediction(winner=CHALLENGER, place=4), **wrong))


def test_one_training_has_no_place_to_expect(classes):
    of, _ = classes.create("Images", Question.of_preset("mnist-linear"))
    student, _ = classes.join(of, "ada")
    assert classes.predict(of, student, Prediction(winner=CHALLENGER)).prediction.place is None


def test_a_closed_class_takes_nothing_until_it_is_opened_again(classes, of):
    student, _ = classes.join(of, "ada")
    classes.close(of)
    for attempt in (
        lambda: classes.join(of, "bob"),
        lambda: classes.predict(of, student, Prediction(winner=CHALLENGER, place=4)),
        lambda: classes.require_open(of),
    ):
        with pytest.raises(NotAllowed, match="This class is closed"):
            attempt()
    classes.close(of, closed=False)
    classes.join(of, "bob")


def test_a_class_whose_time_is_over_is_not_found_and_dropped(classes, of, monkeypatch):
    classes.join(of, "ada")
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=31)
    monkeypatch.setattr(module, "_now", lambda: later)
    with pytest.raises(NotAllowed):
        classes.find(of.code)
    with pytest.raises(NotAllowed, match="over"):
        classes.join(of, "bob")
    assert classes.prune() == 0
    assert list(classes.folder.iterdir()) == []


def test_a_deleted_class_is_gone_with_everything_in_it(classes, of):
    other, _ = classes.create("Other", QUESTION)
    classes.join(of, "ada")
    classes.delete(of)
    assert not (classes.folder / of.id).exists()
    assert classes.all() == [other]


def test_what_a_late_result_leaves_of_a_deleted_class_is_dropped_and_nothing_else(classes, of):
    student, _ = classes.join(of, "ada")
    classes.delete(of)
    classes.store(of, student).add(rows.trial())
    (classes.folder / "my notes").mkdir()
    classes.prune()
    assert [path.name for path in classes.folder.iterdir()] == ["my notes"]


def test_there_is_a_last_class_and_a_last_student(classes, of, monkeypatch):
    monkeypatch.setattr(module, "MAX_CLASSES", 1)
    monkeypatch.setattr(module, "MAX_STUDENTS", 1)
    with pytest.raises(NotAllowed, match="1 classes"):
        classes.create("Other", QUESTION)
    classes.join(of, "ada")
    with pytest.raises(NotAllowed, match="1 students"):
        classes.join(of, "bob")


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


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"code": 1}', '{"question": {"sweep": {}}}'])
def test_a_torn_or_foreign_class_file_is_no_class(classes, of, text):
    (classes.folder / of.id / "class.json").write_text(text)
    with pytest.raises(NotAllowed):
        classes.find(of.code)
    assert classes.all() == []
