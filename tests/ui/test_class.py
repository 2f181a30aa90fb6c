"""The Class page: join, expect, measure here or bring a file, everybody's results, and the teacher's view."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.classroom import codes, limits, pooled
from core.classroom.classes import Classes, Prediction
from core.classroom.limits import Limits
from core.classroom.question import CHALLENGER, NEVER
from core.classroom.roster import Roster
from core.question.experiment import Contender
from core.results.tables import to_table
from pages.classroom import access, findings, students, view
from pages.shared.frame import permits
from tests import rows
from tests.students import QUESTION, hand_in
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import CLASS_PAGE as PAGE
from tests.ui.find import button

DEVICES = {"cpu": 1e-3, "cuda:0": 5e-4}


class Clock:
    """Seconds that pass when told."""

    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """What is counted of codes, joins and classes begins anew with each test, by a clock of the test."""
    clock = Clock()
    for name in ("_tried", "_secrets_tried", "_joined", "_made", "_brought"):
        counted = getattr(access, name)
        monkeypatch.setattr(access, name, Limits(counted.what, counted.rates, now=clock))
    return clock


@pytest.fixture
def comes_from(monkeypatch):
    """Says where visitors come from, from now on."""
    return lambda cookie, address="192.0.2.1": monkeypatch.setattr(
        permits, "source", lambda: limits.source(cookie, address)
    )


@pytest.fixture
def classes(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSOVER_CLASSES", str(tmp_path / "classes"))
    return Classes(tmp_path / "classes")


@pytest.fixture
def made(classes):
    return classes.create("Physics 7b", QUESTION)


def field(app, label):
    return next(found for found in app.text_input if found.label == label)


def enter(app, code):
    field(app, "Join code").set_value(code)
    return checked(button(app, "Go to the class").click().run())


def teaching(open_page, of, secret, **link):
    """The class page with the teacher's view open."""
    app = open_page(PAGE, **{"class": of.code, **link})
    field(app, "Teacher's code").set_value(secret)
    return checked(button(app, "Open the teacher's view").click().run())


def linked(app, name):
    """A parameter of the link as it is now."""
    value = app.query_params[name]
    return value if isinstance(value, str) else value[0]


def wrong_code():
    """A code that nobody has and that could be one: it has to be looked up."""
    return codes.join_code()


def labels(app):
    return [found.label for found in app.button]


def test_without_a_code_one_can_join_or_make_a_class(world, classes, open_page):
    app = open_page(PAGE)
    assert {"Go to the class", "Make it"} <= set(labels(app))


def test_a_class_is_made_on_the_page_and_its_codes_are_shown_to_the_teacher_alone(world, classes, open_page):
    app = open_page(PAGE)
    app.text_input[1].set_value("Physics 7b")
    checked(button(app, "Make it").click().run())
    (of,) = classes.all()
    assert of.code in words(app)
    assert of.name in words(app)
    assert "For the teacher" in words(app)
    secret = linked(app, "teach")
    assert codes.matches(secret, of.secret_hash)
    assert secret in [block.value for block in app.code]
    assert f"?class={of.code}" in [block.value for block in app.code], "the link for the class has no teacher's code"
    again = open_page(PAGE, **{"class": of.code})
    assert secret not in words(again)
    assert "For you alone" not in words(again)


def test_the_teachers_own_link_keeps_the_teachers_view_and_can_show_the_codes_again(world, classes, made, open_page):
    of, secret = made
    hand_in(classes, of, "ada")
    link = teaching(open_page, of, secret.lower()).query_params["teach"]
    again = open_page(PAGE, **{"class": of.code, "teach": link})
    assert again.dataframe[-1].value["Nickname"].tolist() == ["ada"]
    assert secret in [block.value for block in again.code]
    assert "Teacher's code" not in [found.label for found in again.text_input]


def test_a_wrong_teachers_code_in_a_link_opens_nothing_and_counts_once(world, made, open_page, monkeypatch):
    tried = []
    monkeypatch.setattr(codes, "matches", lambda code, kept: tried.append(code))
    wrong = codes.secret()
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
        assert "This code was typed differently" in words(app)
    app = enter(app, made[0].code.lower())
    assert made[0].name in words(app)


def test_a_wrong_code_gets_one_sentence_and_ten_of_them_a_pause_of_that_browser(
    world, made, open_page, comes_from, clock
):
    comes_from("eve")
    app = open_page(PAGE)
    for _ in range(limits.CODES["visitor"].at_once):
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
    assert {"Go to the class", "Make it"} <= set(labels(app))
    assert made[0].name in words(enter(app, made[0].code))


def locked_out(comes_from):
    """Let somebody try so many codes that nobody is let in at once, from anywhere."""
    for number in range(limits.CODES["all"].at_once):
        access._tried.take(limits.source(f"bot {number}", f"203.0.113.{number}"))
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
    for number in range(limits.CODES["visitor"].at_once):
        app = open_page(PAGE, **{"class": of.code, "me": f"{student.id}.{number}"})
        assert "You are" not in words(app)
    assert "Too many wrong codes" in words(open_page(PAGE, **{"class": of.code}))
    assert "You are" in words(open_page(PAGE, **{"class": of.code, "me": f"{student.id}.{token}"}))


def test_who_joins_expects_first_and_then_measures_into_a_store_of_their_own(world, classes, made, open_page):
    of, _ = made
    world.has(CPU, GPU)
    app = open_page(PAGE, **{"class": of.code})
    app.text_input[0].set_value("ada")
    checked(button(app, "Join").click().run())
    assert "Measure here" not in labels(app)
    assert "shown once you have said" in words(app)
    app.radio[0].set_value(CHALLENGER)
    app.selectbox[0].set_value(100)
    checked(button(app, "This is what I expect").click().run())
    (student,) = classes.students(of)
    assert student.prediction == Prediction(winner=CHALLENGER, place=100)
    checked(button(app, "Measure here").click().run())
    (job,) = world.queue.jobs()
    assert job.asked == QUESTION.on([Contender(), Contender(device="cuda:0")])
    assert job.store == classes.store(of, student).folder
    assert job.asked_by.startswith("class-")


def test_ones_own_link_brings_one_back_and_the_code_alone_does_not(world, classes, made, open_page):
    of, _ = made
    student, token = classes.join(of, "ada")
    link = {"class": of.code, "me": f"{student.id}.{token}"}
    assert "You are ada" in words(open_page(PAGE, **link)).replace("*", "")
    assert "You are" not in words(open_page(PAGE, **{"class": of.code}))
    assert "You are" not in words(open_page(PAGE, **{**link, "me": f"{student.id}.wrong"}))


def test_what_everybody_expects_is_hidden_until_one_has_said_what_one_expects(world, classes, made, open_page):
    of, _ = made
    hand_in(classes, of, "ada")
    student, token = classes.join(of, "bob")
    link = {"class": of.code, "me": f"{student.id}.{token}"}
    world.has(CPU)
    assert "1 measured" not in words(open_page(PAGE, **link))
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=NEVER))
    app = open_page(PAGE, **link)
    assert "2 joined · 2 said what they expect · 1 measured" in words(app)
    assert "from hidden size 100 on: 1" in words(app)


def test_the_teachers_code_opens_who_has_handed_in_what(world, classes, made, open_page):
    of, secret = made
    hand_in(classes, of, "ada")
    classes.join(of, "bob")
    world.has(CPU)
    app = open_page(PAGE, **{"class": of.code})
    assert len(app.dataframe) == 0
    for code in ("wrong", codes.secret()):
        field(app, "Teacher's code").set_value(code)
        checked(button(app, "Open the teacher's view").click().run())
        assert "not the right code" in words(app)
    field(app, "Teacher's code").set_value(secret.lower())
    checked(button(app, "Open the teacher's view").click().run())
    table = app.dataframe[-1].value
    assert table["Nickname"].tolist() == ["ada", "bob"]
    assert table["As expected"].tolist() == ["yes", ""]
    assert "All rows as parquet" in [found.label for found in app.get("download_button")]


def test_a_closed_class_shows_its_results_and_takes_nothing(world, classes, made, open_page):
    of, _ = made
    hand_in(classes, of, "ada")
    classes.close(of)
    app = open_page(PAGE, **{"class": of.code})
    assert "1 measured" in words(app)
    assert "Join" not in labels(app)


def test_where_class_mode_is_off_the_page_says_how_to_turn_it_on(world, made, open_page, tmp_path, monkeypatch):
    file = tmp_path / "policy.toml"
    file.write_text('who_may_run = "everybody"\n[class]\nmode = false\n')
    monkeypatch.setenv("CROSSOVER_POLICY", str(file))
    app = open_page(PAGE, **{"class": made[0].code})
    assert "mode = true" in words(app)
    assert labels(app) == []


def test_on_a_host_with_a_code_nobody_makes_a_class_without_it(world, classes, open_page, tmp_path, monkeypatch):
    secret = codes.secret()
    file = tmp_path / "policy.toml"
    file.write_text(f'who_may_run = "everybody"\n[class]\ncreate = "code"\ncode_hash = "{codes.hashed(secret)}"\n')
    monkeypatch.setenv("CROSSOVER_POLICY", str(file))
    app = open_page(PAGE)
    for code, count in (("wrong", 0), (secret, 1)):
        app.text_input[1].set_value("Physics")
        app.text_input[2].set_value(code)
        checked(button(app, "Make it").click().run())
        assert len(classes.all()) == count


def test_markup_in_a_name_of_a_class_is_shown_as_it_is(world, classes, made, open_page):
    of, _ = made
    file = classes.folder / of.id / "class.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"name": "**bold** <img src=x>"}))
    app = open_page(PAGE, **{"class": of.code})
    assert app.header[0].value == r"\*\*bold\*\* \<img src\=x\>"


def put_odd_row(classes, of, student):
    """Store a row that passed an earlier version's checks and cannot be parsed."""
    table = to_table([rows.trial(run_id="e" * 12)])
    index = table.schema.get_field_index("contender")
    odd = table.set_column(index, table.schema.field(index), pa.array(["cpu@abc"]))
    pq.write_table(odd, classes.store(of, student).folder / "odd.parquet")


def test_one_students_file_ends_nobody_elses_page(world, classes, made, open_page):
    """A row whose contender was `cpu@abc` ended the class page for everybody, the teacher's Close and Delete too."""
    of, secret = made
    world.has(CPU)
    hand_in(classes, of, "ada")
    put_odd_row(classes, of, hand_in(classes, of, "eve", crossing=50.0))
    bob, token = classes.join(of, "bob")
    classes.predict(of, bob, Prediction(winner=CHALLENGER, place=100))
    app = open_page(PAGE, **{"class": of.code, "me": f"{bob.id}.{token}"})
    assert "Not everything can be shown. eve: a file cannot be read, because" in words(app)
    assert "cpu@abc" in words(app)
    assert "2 measured" in words(app)
    table = teaching(open_page, of, secret).dataframe[-1].value
    assert table["Nickname"].tolist() == ["ada", "eve", "bob"]
    wrong = dict(zip(table["Nickname"], table["What is wrong"], strict=True))
    assert (wrong["ada"], wrong["bob"]) == ("", "")
    assert "cpu@abc" in wrong["eve"]


def test_what_nobody_foresaw_in_one_students_rows_ends_nobody_elses_page(world, classes, made, open_page, monkeypatch):
    of, secret = made
    world.has(CPU)
    for nickname in ("ada", "eve"):
        hand_in(classes, of, nickname)
    whole = pooled._result

    def unforeseen(question, student, mine):
        if student.nickname == "eve":
            raise ZeroDivisionError
        return whole(question, student, mine)

    monkeypatch.setattr(pooled, "_result", unforeseen)
    app = teaching(open_page, of, secret)
    assert "eve: nothing can be made of these rows: ZeroDivisionError" in words(app)
    assert "1 measured" in words(app)
    checked(button(app, "Close the class").click().run())
    assert classes.find(of.code).closed


def test_close_and_delete_work_whatever_becomes_of_the_rest(world, classes, made, open_page, monkeypatch):
    of, secret = made
    app = teaching(open_page, of, secret)

    def broken(*_):
        raise RuntimeError("no part of the page foresaw this")

    monkeypatch.setattr(findings, "pool", broken)
    monkeypatch.setattr(view, "heading", broken)
    checked(app.run())
    assert "This part of the page could not be drawn" in words(app)
    checked(button(app, "Close the class").click().run())
    assert classes.find(of.code).closed
    checked(button(app, "Delete it now").click().run())
    assert classes.all() == []
    assert "There is no class with this code" in words(app)


def test_a_class_whose_file_is_damaged_is_said_to_be(world, classes, made, open_page):
    of, _ = made
    (classes.folder / of.id / "class.json").write_text("{")
    app = open_page(PAGE, **{"class": of.code})
    assert "Nothing of this class is lost, but class.json is damaged" in words(app)
    assert linked(app, "class") == of.code


def test_a_student_whose_file_is_damaged_is_told_so_and_can_be_removed(world, classes, made, open_page):
    of, secret = made
    world.has(CPU)
    ada, token = classes.join(of, "ada")
    (classes.place(of, ada) / "student.json").write_text("{")
    app = open_page(PAGE, **{"class": of.code, "me": f"{ada.id}.{token}"})
    app = checked(app.run())
    app = teaching(open_page, of, secret)
    assert "student.json is damaged" in "".join(app.dataframe[-1].value["What is wrong"])
    app.multiselect[0].set_value([ada.id])
    app = checked(app.run())
    checked(button(app, "Remove now").click().run())
    assert classes.students(of) == []


def test_who_asks_to_join_waits_until_the_teacher_admits_them(world, classes, open_page):
    of, secret = classes.create("Physics 7b", QUESTION, admission=True)
    world.has(CPU)
    app = open_page(PAGE, **{"class": of.code})
    field(app, "Nickname").set_value("ada")
    checked(button(app, "Ask to join").click().run())
    assert "You have asked to join as ada" in words(app).replace("*", "")
    assert not {"This is what I expect", "Measure here", "Bring it"} & set(labels(app))
    classes.join(of, "bot")
    teacher = teaching(open_page, of, secret)
    assert "2 wait to be admitted: ada, bot" in words(teacher).replace("*", "")
    assert "0 joined" in words(teacher)
    assert teacher.dataframe[-1].value["Admitted"].tolist() == ["not yet", "not yet"]
    (ada, _) = classes.students(of)
    teacher.multiselect[0].set_value([ada.id])
    teacher = checked(teacher.run())
    checked(button(teacher, "Admit").click().run())
    checked(button(teacher, "Turn all away").click().run())
    assert [(student.nickname, student.waiting) for student in classes.students(of)] == [("ada", False)]
    assert "This is what I expect" in labels(checked(app.run()))


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
    assert app.radio[-1].label == "Who is kept?"
    checked(button(app, "Put together now").click().run())
    (kept,) = classes.students(of)
    assert (kept.nickname, kept.prediction) == ("ada 2", Prediction(winner=CHALLENGER, place=100))
    assert "1 joined · 1 said what they expect · 1 measured" in words(app)


def test_two_of_one_name_can_be_told_apart(world, classes, made, open_page):
    of, secret = made
    world.has(CPU)
    ada, bob = (classes.join(of, nickname)[0] for nickname in ("_x_", "bob"))
    file = classes.place(of, bob) / "student.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"nickname": "_x_"}))
    app = teaching(open_page, of, secret)
    assert app.multiselect[0].options == [f"_x_ ({ada.id[:6]})", f"_x_ ({bob.id[:6]})"]
    app.multiselect[0].set_value([ada.id, bob.id])
    app = checked(app.run())
    assert app.radio[-1].options == [rf"\_x\_ \({ada.id[:6]}\)", rf"\_x\_ \({bob.id[:6]}\)"]
    checked(button(app, "Put together now").click().run())
    assert [student.id for student in classes.students(of)] == [bob.id]


def test_so_can_two_whose_names_are_seen_alike(world, classes, made, open_page):
    of, secret = made
    ada, bob = (classes.join(of, nickname)[0] for nickname in ("ada", "bob"))
    for student, nickname in ((ada, "ada\u3164"), (bob, "ada\u115f")):
        file = classes.place(of, student) / "student.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"nickname": nickname}))
    app = teaching(open_page, of, secret)
    assert app.multiselect[0].options == [f"ada\ufffd ({ada.id[:6]})", f"ada\ufffd ({bob.id[:6]})"]


def test_who_was_taken_out_is_told_so_and_can_join_again(world, classes, made, open_page):
    of, _ = made
    app = open_page(PAGE, **{"class": of.code})
    field(app, "Nickname").set_value("ada")
    checked(button(app, "Join").click().run())
    Roster(classes, of).remove(classes.students(of))
    checked(app.run())
    assert "You are not in this class any more" in words(app)
    field(app, "Nickname").set_value("ada")
    checked(button(app, "Join").click().run())
    assert [student.nickname for student in classes.students(of)] == ["ada"]


def test_one_browser_joins_a_class_only_so_often(world, classes, made, open_page, comes_from):
    of, _ = made
    comes_from("eve")
    for number in range(limits.JOINS["visitor"].at_once + 1):
        app = open_page(PAGE, **{"class": of.code})
        field(app, "Nickname").set_value("no name <b>")
        checked(button(app, "Join").click().run())  # what is refused does not count
        field(app, "Nickname").set_value(f"bot {number}")
        checked(button(app, "Join").click().run())
    assert "Too many students joined this class by you" in words(app)
    assert len(classes.students(of)) == limits.JOINS["visitor"].at_once
    comes_from("ada")
    app = open_page(PAGE, **{"class": of.code})
    field(app, "Nickname").set_value("ada")
    checked(button(app, "Join").click().run())
    assert len(classes.students(of)) == limits.JOINS["visitor"].at_once + 1


def test_one_browser_makes_only_so_many_classes(world, classes, open_page, comes_from, monkeypatch):
    comes_from("eve")
    monkeypatch.setitem(access._made.rates, "visitor", limits.Rate(at_once=2, every_s=60))
    for _ in range(3):
        app = open_page(PAGE)
        field(app, "Name of the class").set_value("Physics")
        checked(button(app, "Make it").click().run())
    assert "Too many classes were made by you" in words(app)
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


def test_rows_of_all_are_given_out_without_those_that_cannot_be_read(world, classes, made, open_page):
    of, _ = made
    ada, eve = hand_in(classes, of, "ada"), hand_in(classes, of, "eve", crossing=50.0)
    put_odd_row(classes, of, eve)
    data = findings.everything(of, findings.pool(of), "parquet")
    names = pq.read_table(io.BytesIO(data))["nickname"].to_pylist()
    assert sorted(set(names)) == ["ada", "eve"]
    assert len(names) == 20
    assert ada.nickname in students._csv([{"Nickname": "ada"}]).decode()


def test_results_that_take_long_to_read_hold_nobody_up(world, classes, made, open_page, monkeypatch):
    of, _ = made
    for nickname in ("ada", "bob"):
        hand_in(classes, of, nickname)
    classes.close(of)
    monkeypatch.setattr(findings, "READING_S", -1.0)
    app = open_page(PAGE, **{"class": of.code})
    assert "Results that are still being read: 2" in words(app)
    assert "2 joined · 2 said what they expect · 0 measured" in words(app)
    monkeypatch.setattr(findings, "READING_S", 60.0)
    findings.changed(of)
    assert "2 measured" in words(checked(app.run()))
    monkeypatch.setattr(findings, "READING_S", -1.0)  # what is known is not read again
    findings.changed(of)
    assert "2 measured" in words(checked(app.run()))


def test_everybody_who_looks_at_once_is_one_look(world, classes, made, open_page, monkeypatch):
    of, _ = made
    hand_in(classes, of, "ada")
    classes.close(of)
    looks = []
    pool = findings.pool
    monkeypatch.setattr(findings, "pool", lambda of: looks.append(of) or pool(of))
    monkeypatch.setattr(findings, "SHARED_S", 3_600.0)
    for _ in range(5):
        assert "1 measured" in words(open_page(PAGE, **{"class": of.code}))
    assert len(looks) == 1
