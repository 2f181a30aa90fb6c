"""The Class page: who is admitted, told apart, taken out, and how often one may join or make classes."""

from core.classroom import students
from core.classroom.classes import Prediction
from core.classroom.question import CHALLENGER
from pages.classroom import access
from tests.students import QUESTION, change_database, hand_in
from tests.ui.classroom.opened import enter, field, labels, linked, teaching, wrong_code
from tests.ui.conftest import CPU, checked, words
from tests.ui.find import CLASS_PAGE as PAGE
from tests.ui.find import button


def test_who_asks_to_join_waits_until_the_teacher_admits_them(world, classes, open_page):
    of, secret = classes.create("Physics 7b", QUESTION, admission=True)
    world.has(CPU)
    app = open_page(PAGE, **{"class": of.code})
    field(app, "Nickname").set_value("ada")
    checked(button(app, "Ask to join").click().run())
    assert "You requested to join as ada" in words(app).replace("*", "")
    assert not {"Predict", "Measure here", "Upload"} & set(labels(app))
    classes.join(of, "bot")
    teacher = teaching(open_page, of, secret)
    assert "2 wait to be admitted: ada, bot" in words(teacher).replace("*", "")
    assert "0 joined" in words(teacher)
    assert teacher.dataframe[-1].value["Admitted"].tolist() == ["not yet", "not yet"]
    (ada, _) = classes.students(of)
    teacher.multiselect[0].set_value([ada.id])
    teacher = checked(teacher.run())
    checked(button(teacher, "Admit").click().run())
    checked(button(teacher, "Reject all").click().run())
    assert [(student.nickname, student.waiting) for student in classes.students(of)] == [("ada", False)]
    assert "Predict" in labels(checked(app.run()))


def test_the_teacher_asks_for_admission_later_and_lets_everybody_in(world, classes, made, open_page):
    of, secret = made
    world.has(CPU)
    app = teaching(open_page, of, secret)
    assert not app.toggle[0].value
    checked(app.toggle[0].set_value(True).run())
    assert classes.find(of.code).admission
    for nickname in ("ada", "bob"):
        classes.join(of, nickname)
    checked(app.run())
    checked(button(app, "Admit all").click().run())
    assert not any(student.waiting for student in classes.students(of))
    checked(app.toggle[0].set_value(False).run())
    assert not classes.find(of.code).admission


def test_two_who_are_one_person_are_put_together_by_the_teacher(world, classes, made, open_page):
    of, secret = made
    world.has(CPU)
    old = hand_in(classes, of, "ada")
    new, _ = classes.join(of, "ada 2")
    app = teaching(open_page, of, secret)
    app.multiselect[0].set_value([old.id, new.id])
    app = checked(app.run())
    assert app.radio[-1].label == "Nickname that remains"
    checked(button(app, "Merge").click().run())
    (kept,) = classes.students(of)
    assert (kept.nickname, kept.prediction) == ("ada 2", Prediction(winner=CHALLENGER, place=100))
    assert "1 joined · 1 predicted · 1 measured" in words(app)


def test_two_of_one_name_can_be_told_apart(world, classes, made, open_page):
    of, secret = made
    world.has(CPU)
    ada, bob = (classes.join(of, nickname)[0] for nickname in ("_x_", "bob"))
    change_database(classes, "UPDATE students SET nickname = '_x_' WHERE id = ?", bob.id)
    app = teaching(open_page, of, secret)
    assert app.multiselect[0].options == [f"_x_ ({ada.id[:6]})", f"_x_ ({bob.id[:6]})"]
    app.multiselect[0].set_value([ada.id, bob.id])
    app = checked(app.run())
    assert app.radio[-1].options == [rf"\_x\_ \({ada.id[:6]}\)", rf"\_x\_ \({bob.id[:6]}\)"]
    checked(button(app, "Merge").click().run())
    assert [student.id for student in classes.students(of)] == [bob.id]


def test_so_can_two_whose_names_are_seen_alike(world, classes, made, open_page):
    of, secret = made
    ada, bob = (classes.join(of, nickname)[0] for nickname in ("ada", "bob"))
    for student, nickname in ((ada, "ada\u3164"), (bob, "ada\u115f")):
        change_database(classes, "UPDATE students SET nickname = ? WHERE id = ?", nickname, student.id)
    app = teaching(open_page, of, secret)
    assert app.multiselect[0].options == [f"ada\ufffd ({ada.id[:6]})", f"ada\ufffd ({bob.id[:6]})"]


def test_who_was_taken_out_is_told_so_and_can_join_again(world, classes, made, open_page):
    of, _ = made
    app = open_page(PAGE, **{"class": of.code})
    field(app, "Nickname").set_value("ada")
    checked(button(app, "Join").click().run())
    classes.remove(of, classes.students(of))
    checked(app.run())
    assert "You have left this class" in words(app)
    field(app, "Nickname").set_value("ada")
    checked(button(app, "Join").click().run())
    assert [student.nickname for student in classes.students(of)] == ["ada"]


def test_one_browser_joins_a_class_only_so_often(world, classes, made, open_page, comes_from):
    of, _ = made
    comes_from("eve")
    for number in range(students.JOIN_RATES["visitor"].at_once + 1):
        app = open_page(PAGE, **{"class": of.code})
        field(app, "Nickname").set_value("no name <b>")
        checked(button(app, "Join").click().run())  # what is refused does not count
        field(app, "Nickname").set_value(f"bot {number}")
        checked(button(app, "Join").click().run())
    assert "Too many students joined this class by you" in words(app)
    assert len(classes.students(of)) == students.JOIN_RATES["visitor"].at_once
    comes_from("ada")
    app = open_page(PAGE, **{"class": of.code})
    field(app, "Nickname").set_value("ada")
    checked(button(app, "Join").click().run())
    assert len(classes.students(of)) == students.JOIN_RATES["visitor"].at_once + 1


def test_one_browser_makes_only_so_many_classes(world, classes, open_page, comes_from, monkeypatch):
    comes_from("eve")
    monkeypatch.setitem(access._made.rates, "visitor", students.Rate(at_once=2, every_s=60))
    for _ in range(3):
        app = open_page(PAGE)
        field(app, "Class name").set_value("Physics")
        checked(button(app, "Create the class").click().run())
    assert "Too many classes were created by you" in words(app)
    assert len(classes.all()) == 2


def test_who_goes_on_to_another_class_leaves_the_proof_for_the_first_behind(world, classes, made, open_page):
    of, _ = made
    other, _ = classes.create("Other", QUESTION)
    student, token = classes.join(other, "ada")
    classes.delete(other)
    app = open_page(PAGE, **{"class": other.code, "me": f"{student.id}.{token}"})
    enter(app, of.code)
    assert linked(app, "class") == of.code
    assert "me" not in app.query_params


def test_who_mistyped_the_code_of_their_own_link_is_recognised_by_it(world, classes, made, open_page):
    of, _ = made
    student, token = classes.join(of, "ada")
    app = open_page(PAGE, **{"class": wrong_code(), "me": f"{student.id}.{token}"})
    assert "You are ada" in words(enter(app, of.code)).replace("*", "")
