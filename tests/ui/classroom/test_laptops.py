"""A class of laptops: four machines of made-up speeds hand in files; the page shows how far their crossovers spread."""

import dataclasses

import pytest

from core.classroom import results
from tests.students import QUESTION, hand_in, measured
from tests.ui.classroom.opened import teaching, wrong_code
from tests.ui.conftest import CPU, words
from tests.ui.find import CLASS_PAGE as PAGE

LAPTOPS = {
    "ada": ("Fast GPU", 40.0),
    "emmy": ("Mid GPU", 120.0),
    "grete": ("Old GPU", 300.0),
    "lise": ("Tiny GPU", 700.0),
}
"""Nickname → the name of the machine's GPU, and the hidden size at which its curves are made to cross."""


def machine(name, **changes):
    """What is particular to the rows of one student's machine."""
    return {"crossing": LAPTOPS[name][1], "machine_id": name.ljust(12, "0").encode().hex()[:12], **changes}


def named(rows, gpu):
    return [dataclasses.replace(row, device_name=gpu) if row.device_kind == "cuda" else row for row in rows]


@pytest.fixture
def four(classes, made):
    """The class after all four have handed in."""
    of, _ = made
    for name, (gpu, _) in LAPTOPS.items():
        student, _ = classes.join(of, name)
        data = results.build_file(named(measured(**machine(name)), gpu), code=of.code, nickname=name)
        assert classes.take_file(of, student, data, "rows.parquet").refused == ""
    return of


def test_the_projector_shows_the_spread_of_crossovers_with_each_devices_name(world, classes, four, open_page):
    world.has(CPU)
    classes.reveal(four, revealed=True)
    app = open_page(PAGE, **{"class": four.code, "view": "projector"})
    spread = "4 students found crossovers from hidden size 40 to 684."
    assert spread in words(app)
    (chart,) = app.get("vega_lite_chart") or app.get("arrow_vega_lite_chart")
    assert all(gpu in str(chart.proto) for gpu, _ in LAPTOPS.values())
    assert spread in str(chart.proto), "for who cannot see it"


def test_a_file_with_a_wrong_code_or_name_or_with_forged_rows_is_refused(classes, four):
    mallory, _ = classes.join(four, "mallory")
    rows = measured(**machine("ada"))

    def bring(forged, *, code=four.code, nickname="mallory"):
        data = results.build_file(forged, code=code, nickname=nickname)
        return classes.take_file(four, mallory, data, "rows.parquet").refused

    assert "another class" in bring(rows, code=wrong_code())
    assert "under the nickname 'ada'" in bring(rows, nickname="ada")
    assert "its hidden_size is 7" in bring([dataclasses.replace(row, hidden_size=7) for row in rows])
    assert bring([dataclasses.replace(row, block_end_ns=row.block_begin_ns) for row in rows])
    assert classes.store(four, mallory).trials() == []


def test_students_of_one_size_each_are_in_no_table_of_crossovers(world, classes, made, open_page):
    of, secret = made
    world.has(CPU)
    hand_in(classes, of, "ada")
    student, _ = classes.join(of, "bob")
    classes.predict(of, student, classes.students(of)[0].prediction)
    for row in (row for row in measured(200.0) if row.hidden_size == QUESTION.places[0]):
        classes.store(of, student).add(row)
    app = teaching(open_page, of, secret)
    spread, students = (table.value for table in app.dataframe)
    assert spread["Students"].tolist() == [1]
    assert students["Found"].tolist()[1] == "1 of 5 sizes"
