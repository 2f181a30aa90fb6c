"""The Class page: join, expect, measure here or bring a file, everybody's results, and the teacher's view."""

import dataclasses

import pytest

from core.classroom import handed_in
from core.classroom.classes import Classes, Prediction
from core.classroom.question import CHALLENGER, NEVER, Question
from core.experiment import Contender
from tests import rows
from tests.ui.conftest import CPU, GPU, checked, words

PAGE = "pages/learn/class.py"
QUESTION = Question.of_preset("signal")
DEVICES = {"cpu": 1e-3, "cuda:0": 5e-4}


@pytest.fixture
def classes(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSOVER_CLASSES", str(tmp_path / "classes"))
    return Classes(tmp_path / "classes")


@pytest.fixture
def made(classes):
    return classes.create("Physics 7b", QUESTION)


def button(app, label):
    return next(found for found in app.button if found.label == label)


def labels(app):
    return [found.label for found in app.button]


def measured(crossing: float = 100.0, **changes):
    """Rows of the class's question whose GPU is faster above a hidden size."""
    found = []
    for number, point in enumerate(QUESTION.points):
        ratio = (point.hidden_size / crossing) ** 0.8
        steps = {"cpu": 1e-3, "cuda:0": 1e-3 / ratio}
        found += rows.run(steps, point=point, run_id=f"{number:012x}", outcome="timed", pairs=8, **changes)
    return found


def hand_in(classes, of, nickname, place=100, **changes):
    student, _ = classes.join(of, nickname)
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=place))
    data = handed_in.to_file(measured(**changes), code=of.code, nickname=nickname)
    assert handed_in.take(classes, of, student, data, "rows.parquet").added == 2 * len(QUESTION.points)
    return student


def test_without_a_code_one_can_join_or_make_a_class(world, classes, open_page):
    app = open_page(PAGE)
    assert {"Go to the class", "Make it"} <= set(labels(app))


def test_a_class_is_made_on_the_page_and_its_codes_are_shown_once(world, classes, open_page):
    app = open_page(PAGE)
    app.text_input[1].set_value("Physics 7b")
    checked(button(app, "Make it").click().run())
    (of,) = classes.all()
    assert of.code in words(app)
    assert of.name in words(app)
    assert "For the teacher" in words(app)
    again = open_page(PAGE, **{"class": of.code})
    assert "Teacher's code  " not in words(again)


def test_a_wrong_code_gets_one_sentence_and_ten_of_them_a_pause(world, made, open_page):
    app = open_page(PAGE, **{"class": "KX4M-9PQA"})
    assert "There is no class with this code" in words(app)
    for _ in range(10):
        app.text_input[0].set_value("WRNG-CDEX")
        checked(button(app, "Go to the class").click().run())
    assert "Too many wrong codes" in words(app)
    app.text_input[0].set_value(made[0].code)
    checked(button(app, "Go to the class").click().run())
    assert "Too many wrong codes" in words(app)


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
    field = next(found for found in app.text_input if found.label == "Teacher's code")
    field.set_value("wrong")
    checked(button(app, "Open the teacher's view").click().run())
    assert "not the right code" in words(app)
    field = next(found for found in app.text_input if found.label == "Teacher's code")
    field.set_value(secret.lower())
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
    from core.classroom import codes

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
    forged = dataclasses.replace(of, name="**bold** <img src=x>")
    classes.close(forged, closed=False)
    app = open_page(PAGE, **{"class": of.code})
    assert app.header[0].value == r"\*\*bold\*\* \<img src\=x\>"
