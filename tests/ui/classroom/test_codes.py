"""The Class page: made, found by its codes and links, and what wrong codes get."""

from core.classroom import students
from pages.classroom import access
from tests.students import QUESTION, hand_in
from tests.ui.classroom.opened import enter, labels, linked, teaching, wrong_code
from tests.ui.conftest import CPU, checked, words
from tests.ui.find import CLASS_PAGE as PAGE
from tests.ui.find import button


def test_without_a_code_one_can_join_or_make_a_class(world, classes, open_page):
    app = open_page(PAGE)
    assert {"Go to the class", "Create the class"} <= set(labels(app))


def test_a_class_is_made_on_the_page_and_its_codes_are_shown_to_the_teacher_alone(world, classes, open_page):
    app = open_page(PAGE)
    app.text_input[1].set_value("Physics 7b")
    checked(button(app, "Create the class").click().run())
    (of,) = classes.all()
    assert of.code in words(app)
    assert of.name in words(app)
    assert "For the teacher" in words(app)
    assert "teach" not in app.query_params
    (secret,) = [block.value for block in app.code if students.matches(block.value, of.secret_hash)]
    assert f"?class={of.code}&teach={secret}" in [block.value for block in app.code], "the teacher's own link"
    assert f"?class={of.code}" in [block.value for block in app.code], "the link for the class has no teacher's code"
    again = open_page(PAGE, **{"class": of.code})
    assert secret not in words(again)
    assert "For you alone" not in words(again)


def test_the_teachers_own_link_opens_the_teachers_view_leaves_the_address_bar_and_can_show_the_codes_again(
    world, classes, made, open_page
):
    of, secret = made
    hand_in(classes, of, "ada")
    assert "teach" not in teaching(open_page, of, secret.lower()).query_params
    again = open_page(PAGE, **{"class": of.code, "teach": secret})
    assert "teach" not in again.query_params, "others may see the address"
    assert again.dataframe[-1].value["Nickname"].tolist() == ["ada"]
    assert secret in [block.value for block in again.code]
    assert "Teacher's code" not in [found.label for found in again.text_input]


def test_a_wrong_teachers_code_in_a_link_opens_nothing_and_counts_once(world, made, open_page, monkeypatch):
    tried = []
    monkeypatch.setattr(students, "matches", lambda code, kept: tried.append(code))
    wrong = students.secret()
    app = open_page(PAGE, **{"class": made[0].code, "teach": wrong})
    for _ in range(3):
        checked(app.run())
    assert tried == [wrong]
    assert "Teacher's code" in [found.label for found in app.text_input]
    assert "Close the class" not in labels(app)


def test_the_teachers_code_of_one_class_does_not_go_along_to_another(world, classes, made, open_page):
    other, _ = classes.create("Physics 8", QUESTION)
    app = teaching(open_page, *made)
    app.query_params["class"] = other.code
    app = checked(app.run())
    assert other.name in words(app)
    assert "Close the class" not in labels(app)


def test_a_code_that_was_typed_differently_is_told_so_at_once_and_counts_nowhere(world, made, open_page):
    app = open_page(PAGE)
    for _ in range(30):
        app = enter(app, "KX4-M9P-QS8")
        assert "This code was mistyped" in words(app)
    app = enter(app, made[0].code.lower())
    assert made[0].name in words(app)


def test_a_wrong_code_gets_one_sentence_and_ten_of_them_a_pause_of_that_browser(
    world, made, open_page, comes_from, clock
):
    comes_from("eve")
    app = open_page(PAGE)
    for _ in range(students.CODE_RATES["visitor"].at_once):
        app = enter(app, wrong_code())
        assert "There is no class with this code" in words(app)
    app = enter(app, made[0].code)
    assert "Too many wrong codes were tried by you" in words(app)
    assert "This page tries again by itself" in words(app)
    comes_from("ada")
    assert made[0].name in words(enter(open_page(PAGE), made[0].code))
    comes_from("eve")
    clock.now_s += 6
    assert made[0].name in words(checked(app.run()))


def test_a_refused_code_stays_in_the_link_and_is_not_tried_again_by_drawing_the_page_again(
    world, made, open_page, comes_from
):
    comes_from("ada")
    code = wrong_code()
    app = open_page(PAGE, **{"class": code, "me": "0123456789abcdef.token"})
    for _ in range(20):
        app = checked(app.run())
    assert linked(app, "class") == code
    assert linked(app, "me") == "0123456789abcdef.token"
    assert "There is no class with this code" in words(app)
    assert {"Go to the class", "Create the class"} <= set(labels(app))
    assert made[0].name in words(enter(app, made[0].code))


def locked_out(comes_from):
    """Let somebody try so many codes that nobody is let in at once, from anywhere."""
    for number in range(students.CODE_RATES["all"].at_once):
        access._tried.take(students.source(f"bot {number}", f"203.0.113.{number}"))
    comes_from("ada")


def test_who_is_admitted_is_never_asked_how_many_codes_were_tried(world, classes, made, open_page, comes_from):
    of, secret = made
    world.has(CPU)
    student, token = classes.join(of, "ada")
    comes_from("ada")
    inside, teacher = open_page(PAGE, **{"class": of.code}), teaching(open_page, of, secret)
    locked_out(comes_from)
    link = {"class": of.code, "me": f"{student.id}.{token}"}
    for _ in range(3):
        app = open_page(PAGE, **link)
        assert "You are ada" in words(app).replace("*", "")
        assert linked(app, "class") == of.code
        assert linked(app, "me") == link["me"]
        assert of.name in words(checked(inside.run()))
        assert "Close the class" in labels(checked(teacher.run()))


def test_a_link_keeps_its_code_while_codes_are_looked_up_slowly_and_then_goes_on(
    world, made, open_page, comes_from, clock
):
    locked_out(comes_from)
    app = open_page(PAGE, **{"class": made[0].code})
    assert "Too many wrong codes were tried by many visitors" in words(app)
    assert made[0].name not in words(app)
    assert linked(app, "class") == made[0].code
    clock.now_s += 1
    assert made[0].name in words(checked(app.run()))


def test_a_wrong_proof_of_having_joined_counts_as_a_wrong_code_does(world, classes, made, open_page, comes_from):
    of, _ = made
    student, token = classes.join(of, "ada")
    comes_from("eve")
    for number in range(students.CODE_RATES["visitor"].at_once):
        app = open_page(PAGE, **{"class": of.code, "me": f"{student.id}.{number}"})
        assert "You are" not in words(app)
    assert "Too many wrong codes" in words(open_page(PAGE, **{"class": of.code}))
    assert "You are" in words(open_page(PAGE, **{"class": of.code, "me": f"{student.id}.{token}"}))
