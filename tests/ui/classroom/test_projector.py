"""The projector's view of a class: no secret, the predictions, and after Reveal the curve and who was nearest."""

from core import units
from core.classroom.classes import Prediction
from core.classroom.question import CHALLENGER
from core.results.parquet import to_table
from pages.classroom import findings, teacher
from tests.students import QUESTION, measured
from tests.ui.classroom.opened import labels, teaching
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import CLASS_PAGE as PAGE
from tests.ui.find import button


def take_part(classes, of, nickname, place, sizes):
    """A student who predicts and measures some sizes on the host."""
    student, _ = classes.join(of, nickname)
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=place))
    rows = [row for row in measured(200.0) if row.hidden_size in sizes]
    classes.store(of, student).add_all(to_table(rows))


def test_the_projector_shows_codes_and_predictions_and_no_secret(world, classes, made, open_page):
    of, secret = made
    world.has(CPU)
    take_part(classes, of, "ada", 100, QUESTION.places)
    app = open_page(PAGE, **{"class": of.code, "view": "projector"})
    shown = words(app)
    codes = [part.proto.body for part in app.get("html")]
    assert any('alt="QR code of the address of this class"' in body for body in codes)
    assert any(of.code in body for body in codes)
    assert [metric.value for metric in app.metric] == ["1", "1", "1"]
    assert "Predicted winner at the largest size" in shown
    assert "faster than" not in shown, "nothing is revealed yet"
    assert secret not in shown
    assert {"Reveal", "Measure here", "Close the class"}.isdisjoint(labels(app))


def test_a_teacher_reveals_the_curve_of_the_class_and_who_was_nearest(world, classes, made, open_page):
    of, secret = made
    world.has(CPU, GPU)
    for nickname, place, size in zip("abcde", (100, 5, 1_000, 10, 2_000), QUESTION.places, strict=True):
        take_part(classes, of, nickname * 3, place, {size})
    app = teaching(open_page, of, secret)
    app = checked(button(app, "Projector view").click().run())
    assert app.query_params["view"] in ("projector", ["projector"])
    app = checked(button(app, "Reveal").click().run())
    assert "5 of 5 sizes measured by the class on this host" in words(app)
    assert "faster than" in words(app)
    assert app.success[0].value.startswith("Closest prediction to ")
    assert "aaa" in app.success[0].value
    anybody = open_page(PAGE, **{"class": of.code, "view": "projector"})
    assert "faster than" in words(anybody)
    app = checked(button(app, "Hide the result").click().run())
    app = checked(button(app, "Leave the projector view").click().run())
    assert "Close the class" in labels(app)


def test_the_code_that_phones_scan_is_the_address(monkeypatch):
    drawn = teacher.draw_qr_code("https://host/class?class=ABC")
    assert drawn.startswith("data:image/svg+xml")
    assert drawn != teacher.draw_qr_code("https://host/class?class=XYZ")


def test_students_who_follow_get_other_sizes(world, classes, made, open_page):
    of, _ = made
    world.has(CPU, GPU)
    take_part(classes, of, "ada", 100, {QUESTION.places[0]})
    student, token = classes.join(of, "bob")
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=100))
    app = open_page(PAGE, **{"class": of.code, "me": f"{student.id}.{token}"})
    assert "Your size: hidden size 2,000." in words(app)
    checked(button(app, "Measure here").click().run())
    (job,) = world.queue.jobs()
    assert job.question.point.hidden_size == 2_000


def test_who_waits_is_shown_how_long_at_most_and_sees_the_curve_of_the_class_grow(world, classes, made, open_page):
    of, _ = made
    world.has(CPU, GPU)
    students = [classes.join(of, name) for name in ("ada", "bob", "eve")]
    pages = []
    for student, token in students:
        classes.predict(of, student, Prediction(winner=CHALLENGER, place=100))
        app = open_page(PAGE, **{"class": of.code, "me": f"{student.id}.{token}"})
        pages.append(checked(button(app, "Measure here").click().run()))
    longest = sum(job.question.budget_s for job in world.queue.jobs()[:2])
    assert f"At most {units.format_rough_time(longest)} until yours starts." in words(pages[2])
    assert "The class on this host" not in words(pages[2])
    rows = [row for row in measured(200.0) if row.hidden_size in QUESTION.places[:2]]
    classes.store(of, students[0][0]).add_all(to_table(rows))
    findings.changed(of)
    grown = words(checked(pages[2].run()))
    assert "The class on this host" in grown
    assert "until yours starts" in grown
