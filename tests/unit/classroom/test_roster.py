"""What a teacher does with students: admitted, taken out, put together; also while a result is on its way."""

import contextlib

import pytest

from core.classroom import classes as module
from core.classroom import results
from core.classroom.classes import Prediction
from core.classroom.question import BASELINE, CHALLENGER, NEVER
from core.errors import NotAllowed, StoreError
from tests import rows

AT_4, NEVERMORE = Prediction(winner=CHALLENGER, place=4), Prediction(winner=BASELINE, place=NEVER)


def named(classes, of):
    return {student.nickname: student for student in classes.students(of)}


def measures(classes, of, student, *names):
    for name in names:
        classes.store(of, student).add(rows.trial(run_id=name * 12))


def ids(classes, of, student):
    return sorted(trial.run_id[0] for trial in classes.store(of, student).trials())


def test_who_is_admitted_takes_part_from_then_on(classes, of):
    classes.ask_admission(of)
    ada, token = classes.join(of, "ada")
    bob, _ = classes.join(of, "bob")
    assert classes.admit(of, [ada]) == 1
    assert classes.predict(of, classes.recognise(of, ada.id, token), AT_4).prediction == AT_4
    assert classes.recognise(of, ada.id, token).joined_at == ada.joined_at
    assert named(classes, of)["bob"].waiting
    assert classes.admit(of, classes.students(of)) == 1
    assert not any(student.waiting for student in classes.students(of))
    assert bob.waiting


def test_nobody_is_admitted_to_a_class_that_is_full(classes, of, monkeypatch):
    monkeypatch.setattr(module, "MAX_STUDENTS", 1)
    classes.ask_admission(of)
    waiting = [classes.join(of, name)[0] for name in ("ada", "bob")]
    with pytest.raises(NotAllowed, match="1 students"):
        classes.admit(of, waiting)
    assert [student.waiting for student in classes.students(of)] == [False, True]


def test_who_is_taken_out_is_not_known_any_more_and_may_join_again(classes, of):
    ada, token = classes.join(of, "ada")
    bob, _ = classes.join(of, "bob")
    classes.predict(of, ada, AT_4)
    measures(classes, of, ada, "a")
    classes.remove(of, [ada])
    assert list(named(classes, of)) == ["bob"]
    for attempt in (
        lambda: classes.recognise(of, ada.id, token),
        lambda: classes.predict(of, ada, AT_4),
        lambda: classes.require_part(of, ada),
    ):
        with pytest.raises(NotAllowed, match="not in this class"):
            attempt()
    again, _ = classes.join(of, "ada")
    assert again.prediction is None
    assert ids(classes, of, again) == []
    with pytest.raises(NotAllowed, match="not in this class"):
        classes.require_part(of, ada)  # one of the same name is not the same one
    assert bob in classes.students(of)


def test_a_late_result_brings_nobody_back_and_goes_to_nobody_else(classes, of):
    ada, _ = classes.join(of, "ada")
    late = classes.store(of, ada)
    classes.remove(of, [ada])
    with pytest.raises(StoreError, match="cannot be written"):
        late.add(rows.trial())
    assert classes.students(of) == []
    again, _ = classes.join(of, "ada")
    with contextlib.suppress(StoreError):
        late.add(rows.trial())
    assert ids(classes, of, again) == []
    bob, _ = classes.join(of, "bob")
    classes.merge(of, again, bob)
    assert ids(classes, of, bob) == []


def test_a_removal_that_was_interrupted_is_finished_later(classes, of, monkeypatch):
    ada, _ = classes.join(of, "ada")
    with monkeypatch.context() as during:
        during.setattr(module.shutil, "rmtree", lambda *_, **__: None)
        classes.remove(of, [ada])
    assert classes.students(of) == []
    assert len(list((classes.folder / of.id / "students").iterdir())) == 1
    classes.prune()
    assert list((classes.folder / of.id / "students").iterdir()) == []


def test_the_rows_of_one_go_to_the_other_whose_expectation_stays(classes, of):
    old, _ = classes.join(of, "ada")
    new, token = classes.join(of, "ada again")
    old, new = classes.predict(of, old, AT_4), classes.predict(of, new, NEVERMORE)
    measures(classes, of, old, "a", "b")
    measures(classes, of, new, "c")
    classes.merge(of, old, new)
    (kept,) = classes.students(of)
    assert (kept.nickname, kept.prediction) == ("ada again", NEVERMORE)
    assert ids(classes, of, kept) == ["a", "b", "c"]
    assert classes.recognise(of, kept.id, token) == kept


def test_who_left_meanwhile_is_not_put_together_with_anybody(classes, of):
    old, _ = classes.join(of, "ada")
    new, _ = classes.join(of, "bob")
    measures(classes, of, old, "a")
    classes.remove(of, [new])
    with pytest.raises(NotAllowed, match="not in this class"):
        classes.merge(of, old, new)
    assert ids(classes, of, old) == ["a"]


def test_what_the_one_who_goes_expected_is_kept_where_the_other_expects_nothing(classes, of):
    old, _ = classes.join(of, "ada")
    new, _ = classes.join(of, "bob")
    classes.merge(of, classes.predict(of, old, AT_4), new)
    assert named(classes, of)["bob"].prediction == AT_4


def test_who_lost_their_link_and_waits_again_is_in_by_being_put_together(classes, of):
    old, _ = classes.join(of, "ada")
    classes.ask_admission(of)
    new, _ = classes.join(of, "bob")
    classes.merge(of, old, new)
    assert not named(classes, of)["bob"].waiting


def test_an_interrupted_merge_is_finished_by_doing_it_again(classes, of, monkeypatch):
    old, _ = classes.join(of, "ada")
    new, _ = classes.join(of, "bob")
    measures(classes, of, old, "a", "b", "c")
    rename, moved = module.Path.rename, []

    def once(path, target):
        if moved:
            raise OSError(28, "No space left on device")
        moved.append(path)
        return rename(path, target)

    with monkeypatch.context() as during:
        during.setattr(module.Path, "rename", once)
        with pytest.raises(StoreError, match="No space left"):
            classes.merge(of, old, new)
    assert sorted(ids(classes, of, old) + ids(classes, of, new)) == ["a", "b", "c"]
    classes.merge(of, old, new)
    assert ids(classes, of, new) == ["a", "b", "c"]


def test_nobody_is_put_together_with_themselves_or_gets_too_many_rows(classes, of, monkeypatch):
    ada, _ = classes.join(of, "ada")
    bob, _ = classes.join(of, "bob")
    with pytest.raises(NotAllowed, match="two students"):
        classes.merge(of, ada, ada)
    measures(classes, of, ada, "a")
    measures(classes, of, bob, "b")
    monkeypatch.setattr(results, "MAX_ROWS", 1)
    with pytest.raises(NotAllowed, match="A student may store 1 rows of 16 MiB in a class, but these would be 2"):
        classes.merge(of, ada, bob)
    assert ids(classes, of, ada) == ["a"]
