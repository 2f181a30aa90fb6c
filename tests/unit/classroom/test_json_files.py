"""Classes in the JSON files of earlier versions: imported once and whole, and what is damaged is named."""

import json
import shutil

import pytest

from core.classroom.classes import Classes, Prediction
from core.classroom.question import CHALLENGER
from core.errors import NotAllowed, StoreError
from tests import rows
from tests.earlier_files import EARLIER, NAMES
from tests.students import QUESTION

CODE = NAMES["code"]
FOLDER = "79d9256864113e45"
ADA, GRETE = f"{FOLDER}/students/{NAMES['student']}", f"{FOLDER}/students/429443334a6f38bd"


@pytest.fixture
def folder(tmp_path):
    """The class that version 0.1.0 wrote, whose time is not over yet."""
    shutil.copytree(EARLIER / "classes", tmp_path / "classes")
    change(tmp_path / "classes" / FOLDER / "class.json", expires_at="2999-01-01T00:00:00+00:00")
    return tmp_path / "classes"


def change(path, **facts):
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix != ".sqlite3" and path.is_file()
    }


def test_everything_is_imported_and_the_files_stay_as_they_are(folder):
    before = contents(folder)
    classes = Classes(folder)
    for _ in range(2):  # what was imported is not imported again
        assert classes.prune() == 1
        of = classes.find(CODE)
        assert (of.id, of.name, of.question, of.closed, of.admission) == (FOLDER, "Physics 7b", QUESTION, False, False)
        ada, grete = classes.students(of)
        assert (ada.nickname, ada.prediction) == ("Ada", Prediction(winner=CHALLENGER, place=100))
        assert (grete.nickname, grete.prediction) == ("Grete", Prediction(winner=CHALLENGER, place=10))
        assert classes.recognise(of, NAMES["student"], NAMES["token"]) == ada
        assert len(classes.store(of, ada).trials()) == 10
    assert contents(folder) == before


def test_what_is_only_looked_at_is_read_from_the_files_without_writing_any(folder):
    assert [class_.code for class_ in Classes(folder).all()] == [CODE]
    assert sorted(path.name for path in folder.iterdir()) == [FOLDER]


def test_what_changed_since_is_not_undone_by_the_files(folder):
    classes = Classes(folder)
    of = classes.close(classes.find(CODE))
    ada, grete = classes.students(of)
    classes.remove(of, [grete])
    classes.prune()
    assert classes.find(CODE).closed
    assert classes.students(of) == [ada]
    classes.delete(of)
    assert classes.prune() == 0
    with pytest.raises(NotAllowed):
        classes.find(CODE)
    assert not (folder / FOLDER).exists()


def test_an_import_that_was_killed_is_done_as_a_whole_by_the_next(folder, monkeypatch):
    with monkeypatch.context() as during:
        during.setattr("core.classroom.database._read_class", lambda folder: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Classes(folder).prune()
    assert Classes(folder).prune() == 1
    assert len(Classes(folder).students(Classes(folder).find(CODE))) == 2


def test_a_class_that_is_copied_there_later_is_imported_too(folder, tmp_path):
    classes = Classes(tmp_path / "others")
    classes.create("Other", QUESTION)
    shutil.copytree(folder / FOLDER, classes.folder / FOLDER)
    assert classes.prune() == 2
    assert len(classes.students(classes.find(CODE))) == 2


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", "null", '{"code": 1}', '{"question": {"sweep": {}}}', "[" * 100_000, "\x00" * 100),
        *('{"expires_at": "2000-01-01T00:00:00+00:00"}', '{"a later version": [1]}'),
    ],
)
def test_a_class_whose_file_cannot_be_read_is_named_and_never_deleted(folder, text, caplog):
    classes = Classes(folder)
    (folder / FOLDER / "class.json").write_text(text)
    with pytest.raises(StoreError, match=r"Nothing of this class is lost, but class\.json is damaged"):
        classes.find(CODE)
    assert classes.damaged().keys() == {FOLDER}
    other, _ = classes.create("Other", QUESTION)
    assert classes.prune() == 2
    assert FOLDER in caplog.text
    assert classes.all() == [other]
    assert (folder / ADA / "student.json").exists()
    shutil.copy(EARLIER / "classes" / FOLDER / "class.json", folder / FOLDER)
    change(folder / FOLDER / "class.json", expires_at="2999-01-01T00:00:00+00:00")
    assert classes.prune() == 2
    assert len(classes.students(classes.find(CODE))) == 2


def test_what_a_later_version_may_have_nested_deeply_is_passed_over(folder):
    file = folder / FOLDER / "class.json"
    file.write_text(file.read_text().replace('"title"', f'"later": {"[" * 900}{"]" * 900}, "title"'))
    assert Classes(folder).prune() == 1
    assert len(Classes(folder).students(Classes(folder).find(CODE))) == 2


@pytest.mark.parametrize("wrong", ["expires_at", "created_at"])
@pytest.mark.parametrize("time", ["", "now", "0", "2000-01-01", "2000-01-01T00:00:00", "0000-00-00T00:00:00+00:00", 0])
def test_a_time_that_is_none_does_not_make_a_class_one_that_is_over(folder, wrong, time):
    change(folder / FOLDER / "class.json", **{wrong: time})
    assert Classes(folder).prune() == 1
    assert list(Classes(folder).damaged()) == [FOLDER]


def test_a_class_without_its_file_stays_too_and_can_be_deleted_by_its_code(folder):
    classes = Classes(folder)
    (folder / FOLDER / "class.json").unlink()
    assert classes.prune() == 1
    assert "there is no class.json" in classes.damaged()[FOLDER]
    assert classes.delete_by_code(CODE) == FOLDER
    assert classes.prune() == 0
    with pytest.raises(NotAllowed, match="There is no class"):
        classes.delete_by_code(CODE)


def test_the_file_of_one_class_in_the_folder_of_another_is_named(folder):
    shutil.copytree(folder / FOLDER, folder / ("0" * 16))
    assert Classes(folder).damaged() == {"0" * 16: "class.json is damaged: it belongs to another folder."}
    assert [class_.id for class_ in Classes(folder).all()] == [FOLDER]


def test_a_class_of_an_earlier_version_is_open_to_everybody_and_found_by_its_eight_letters(folder):
    path = folder / FOLDER / "class.json"
    facts = json.loads(path.read_text()) | {"code": "KX4M-9PQA"}
    del facts["admission"]
    path.write_text(json.dumps(facts))
    (folder / FOLDER).rename(folder / "f73216dcece56734")
    classes = Classes(folder)
    found = classes.find("kx4m 9pqa")
    assert not found.admission
    assert not classes.join(found, "bob")[0].waiting


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("student.json", "", "student.json is damaged: it is incomplete or not valid JSON."),
        ("student.json", None, "student.json is missing."),
        ("student.json", '{"nickname": "\\u001b[2J"}', "student.json is damaged: "),
        (
            "student.json",
            '{"nickname": "ada", "joined_at": "2026-11-22T09:00:00Z", "token_hash": "\u00e9"}',
            "student.json is damaged: Expected `str` matching regex",
        ),
        ("prediction.json", "{", "prediction.json is damaged: it is incomplete or not valid JSON."),
        ("prediction.json", '{"winner": "me", "place": 4}', "prediction.json is damaged: winner must be "),
        ("prediction.json", '{"winner": "challenger", "place": 7}', "prediction.json is damaged: place must be "),
    ],
)
def test_a_damaged_file_of_a_student_is_named_with_the_student(folder, name, text, fault):
    path = folder / ADA / name
    path.unlink()
    if text is not None:
        path.write_text(text)
    classes = Classes(folder)
    classes.prune()
    of = classes.find(CODE)
    found = {student.id: student for student in classes.students(of)}[NAMES["student"]]
    assert found.fault.startswith(fault)
    assert found.prediction is None
    if name == "prediction.json":
        assert classes.recognise(of, NAMES["student"], NAMES["token"]) == found
    else:
        with pytest.raises(StoreError, match=r"Your results are saved, but student\.json is"):
            classes.recognise(of, NAMES["student"], NAMES["token"])
    assert len(classes.students(of)) == 2


def test_a_student_whose_file_is_damaged_can_be_removed_or_their_rows_given_to_another(folder):
    (folder / ADA / "student.json").write_text("{")
    (folder / GRETE / "student.json").write_text("[]")
    classes = Classes(folder)
    of = classes.find(CODE)
    bob, _ = classes.join(of, "bob")
    ada, grete = (student for student in classes.students(of) if student.is_unreadable)
    assert classes.admit(of, [ada]) == 0
    with pytest.raises(NotAllowed, match="Nothing can be given to unreadable"):
        classes.merge(of, bob, ada)
    for student in (ada, grete):
        classes.merge(of, student, bob)
    assert len(classes.store(of, bob).trials()) == 10
    assert [student.nickname for student in classes.students(of)] == ["bob"]
    classes.store(of, bob).add(rows.trial(run_id="f" * 12))
    classes.remove(of, classes.students(of))
    assert classes.students(of) == []
