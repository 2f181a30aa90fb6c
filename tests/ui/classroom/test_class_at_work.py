"""The Class page while a class works: what is expected, measured and handed in, and rows that cannot be shown."""

import dataclasses
import io

import pyarrow as pa
import pyarrow.parquet as pq

from core.classroom import results, students
from core.classroom.classes import Prediction
from core.classroom.database import FILE_NAME
from core.classroom.question import CHALLENGER, NEVER
from core.jobs import process
from core.progress import Progress, SweepProgress
from core.question.experiment import Contender
from core.results.parquet import to_table
from pages.classroom import findings, teacher, view
from tests import rows
from tests.students import QUESTION, change_database, hand_in, measured
from tests.ui.classroom.opened import field, labels, linked, teaching
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import CLASS_PAGE as PAGE
from tests.ui.find import button


def test_who_joins_expects_first_and_then_measures_into_a_store_of_their_own(world, classes, made, open_page):
    of, _ = made
    world.has(CPU, GPU)
    app = open_page(PAGE, **{"class": of.code})
    app.text_input[0].set_value("ada")
    checked(button(app, "Join").click().run())
    assert "Measure here" not in labels(app)
    assert "Make your prediction to see" in words(app)
    app.radio[0].set_value(CHALLENGER)
    app.selectbox[0].set_value(100)
    checked(button(app, "Predict").click().run())
    (student,) = classes.students(of)
    assert student.prediction == Prediction(winner=CHALLENGER, place=100)
    checked(button(app, "Measure here").click().run())
    (job,) = world.queue.jobs()
    assert job.question == QUESTION.with_size(QUESTION.places[0], [Contender(), Contender(device="cuda:0")])
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
    findings.changed(of)
    app = open_page(PAGE, **link)
    assert "2 joined · 2 predicted · 1 measured" in words(app)
    assert "from hidden size 100 on (1)" in words(app)


def test_the_teachers_code_opens_who_has_handed_in_what(world, classes, made, open_page):
    of, secret = made
    hand_in(classes, of, "ada")
    classes.join(of, "bob")
    world.has(CPU)
    app = open_page(PAGE, **{"class": of.code})
    assert len(app.dataframe) == 0
    for code in ("wrong", students.secret()):
        field(app, "Teacher's code").set_value(code)
        checked(button(app, "Open the teacher's view").click().run())
        assert "not the right code" in words(app)
    field(app, "Teacher's code").set_value(secret.lower())
    checked(button(app, "Open the teacher's view").click().run())
    table = app.dataframe[-1].value
    assert table["Nickname"].tolist() == ["ada", "bob"]
    assert list(table.columns)[:3] == ["Nickname", "As predicted", "Found"]
    assert table["As predicted"].tolist() == ["yes", ""]
    assert table["Found"][0].startswith("from hidden size ")
    assert len(table["Found"][0]) < 50
    assert "is faster than" in table["In words"][0]
    assert "All rows as parquet" in [found.label for found in app.get("download_button")]


def test_what_students_found_is_written_in_whole_sizes_and_names_their_devices_once(world, classes, made, open_page):
    of, _ = made
    hand_in(classes, of, "ada", crossing=60.0)
    student, token = classes.join(of, "bob")
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=100))
    data = results.build_file(measured(60.0), code=of.code, nickname="bob")
    classes.take_file(of, student, data, "rows.parquet")
    world.has(CPU)
    app = open_page(PAGE, **{"class": of.code, "me": f"{student.id}.{token}", "results": "true"})
    spread, every = (table.value for table in app.dataframe)
    assert [spread[name][0] for name in ("Lowest", "Highest")] == ["60", "60"]
    assert every["Crossover (hidden size)"][0] == "60 (52 to 67)"
    assert app.success[0].value.count("Test GPU") == 1


def test_a_class_that_nobody_is_in_says_so_once_and_has_no_empty_columns(world, classes, open_page):
    of, secret = classes.create("Physics 8b", QUESTION, admission=True)
    world.has(CPU)
    app = teaching(open_page, of, secret)
    assert "Predictions and results appear here." in words(app)
    assert "0 predicted" not in words(app)
    assert not app.dataframe
    classes.join(of, "ada")
    app = teaching(open_page, of, secret)
    assert list(app.dataframe[0].value) == ["Nickname", "Admitted"]


def test_while_a_student_measures_the_page_says_how_far_it_is(world, classes, made, open_page):
    of, _ = made
    student, token = classes.join(of, "ada")
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=100))
    world.has(CPU, GPU)
    app = open_page(PAGE, **{"class": of.code, "me": f"{student.id}.{token}"})
    checked(button(app, "Measure here").click().run())
    claimed = world.queue.claim(process.current_process())
    for progress, said in (
        (Progress(phase="warming up"), "Warming up"),
        (Progress(phase="training", sweep=SweepProgress(done=2, total=5)), "2 of 5 points done, training"),
    ):
        world.queue.report(dataclasses.replace(claimed, progress=progress))
        assert checked(app.run()).get("progress")[0].proto.text == said


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
    secret = students.secret()
    file = tmp_path / "policy.toml"
    file.write_text(
        f'who_may_run = "everybody"\n[class]\ncreate = "code"\ncode_hash = "{students.hash_code(secret)}"\n'
    )
    monkeypatch.setenv("CROSSOVER_POLICY", str(file))
    app = open_page(PAGE)
    for code, count in (("wrong", 0), (secret, 1)):
        app.text_input[1].set_value("Physics")
        app.text_input[2].set_value(code)
        checked(button(app, "Create the class").click().run())
        assert len(classes.all()) == count


def test_markup_in_a_name_of_a_class_is_shown_as_it_is(world, classes, made, open_page):
    of, _ = made
    change_database(classes, "UPDATE classes SET name = '**bold** <img src=x>'")
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
    wrong = dict(zip(table["Nickname"], table["Problem"], strict=True))
    assert (wrong["ada"], wrong["bob"]) == ("", "")
    assert "cpu@abc" in wrong["eve"]


def test_what_nobody_foresaw_in_one_students_rows_ends_nobody_elses_page(world, classes, made, open_page, monkeypatch):
    of, secret = made
    world.has(CPU)
    for nickname in ("ada", "eve"):
        hand_in(classes, of, nickname)
    whole = results._compute_result

    def unforeseen(question, student, mine):
        if student.nickname == "eve":
            raise ZeroDivisionError
        return whole(question, student, mine)

    monkeypatch.setattr(results, "_compute_result", unforeseen)
    app = teaching(open_page, of, secret)
    assert "eve: these rows cannot be evaluated: ZeroDivisionError" in words(app)
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
    assert "This part of the page failed to load" in words(app)
    checked(button(app, "Close the class").click().run())
    assert classes.find(of.code).closed
    checked(button(app, "Delete it now").click().run())
    assert classes.all() == []
    assert "There is no class with this code" in words(app)


def test_a_class_that_is_damaged_is_said_to_be(world, classes, made, open_page):
    of, _ = made
    change_database(classes, "UPDATE classes SET question = '{'")
    app = open_page(PAGE, **{"class": of.code})
    assert "Nothing of this class is lost, but its record is damaged" in words(app)
    assert linked(app, "class") == of.code
    (classes.folder / FILE_NAME).write_text("no database")
    app = open_page(PAGE, **{"class": of.code})
    assert "file is not a database. Nothing was deleted" in words(app)
    assert linked(app, "class") == of.code


def test_a_student_whose_file_was_damaged_is_told_so_and_can_be_removed(world, classes, made, open_page):
    of, secret = made
    world.has(CPU)
    ada, token = classes.join(of, "ada")
    change_database(classes, "UPDATE students SET fault = 'student.json is damaged: it is torn.', joined_at = ''")
    app = open_page(PAGE, **{"class": of.code, "me": f"{ada.id}.{token}"})
    app = checked(app.run())
    app = teaching(open_page, of, secret)
    assert "student.json is damaged" in "".join(app.dataframe[-1].value["Problem"])
    app.multiselect[0].set_value([ada.id])
    app = checked(app.run())
    checked(button(app, "Remove now").click().run())
    assert classes.students(of) == []


def test_rows_of_all_are_given_out_without_those_that_cannot_be_read(world, classes, made, open_page):
    of, _ = made
    ada, eve = hand_in(classes, of, "ada"), hand_in(classes, of, "eve", crossing=50.0)
    put_odd_row(classes, of, eve)
    data = findings.everything(of, findings.pool(of), "parquet")
    names = pq.read_table(io.BytesIO(data))["nickname"].to_pylist()
    assert sorted(set(names)) == ["ada", "eve"]
    assert len(names) == 20
    assert ada.nickname in teacher._csv([{"Nickname": "ada"}]).decode()


def test_results_that_take_long_to_read_hold_nobody_up(world, classes, made, open_page, monkeypatch):
    of, _ = made
    for nickname in ("ada", "bob"):
        hand_in(classes, of, nickname)
    classes.close(of)
    monkeypatch.setattr(findings, "READING_S", -1.0)
    app = open_page(PAGE, **{"class": of.code})
    assert "Results that are still being read: 2" in words(app)
    assert "2 joined · 2 predicted · 0 measured" in words(app)
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
