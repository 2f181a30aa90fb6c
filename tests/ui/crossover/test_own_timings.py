"""Timings of one's own on the Crossover page."""

import pytest

from pages.explore import view
from tests.ui.conftest import CPU, checked
from tests.ui.crossover.asked import PAGE
from tests.ui.find import alts, table


def upload(app, data, name="mine.csv"):
    return checked(app.file_uploader[0].upload(name, data, "text/csv").run())


def test_own_timings_get_the_same_answer(world, open_page):
    world.has(CPU)
    app = upload(open_page(PAGE), view.SAMPLE.encode())
    assert "gpu" in app.success[0].value
    assert "Time against size for cpu and gpu" in alts(app)
    assert list(table(app, "Verdict")["Size"]) == [100, 400, 1600, 6400]


def test_their_speedup_is_drawn_and_a_link_that_opened_it_is_still_read(world, open_page):
    world.has(CPU)
    assert "Speedup against size" in alts(upload(open_page(PAGE), view.SAMPLE.encode()))
    assert "Speedup against size" in alts(upload(open_page(PAGE, own_speedup="true"), view.SAMPLE.encode()))


def test_a_table_whose_names_do_not_say_which_is_the_cpu_is_asked_about_and_not_guessed(world, open_page):
    world.has(CPU)
    rows = [f"{size};{size / 10:.1f};{0.8 + size / 1e5}".replace(".", ",") for size in (64, 128, 256)]
    app = upload(open_page(PAGE), "\n".join(["size;Xeon (ms);A100 (ms)", *rows]).encode("utf-16"))
    assert "Time against size for Xeon and A100" not in alts(app)
    assert not app.error
    baseline, challenger = (box for box in app.selectbox if box.key in ("timings_baseline", "timings_challenger"))
    assert baseline.options == ["A100", "Xeon"]
    baseline.select("Xeon")
    app = checked(challenger.select("A100").run())
    assert "Time against size for Xeon and A100" in alts(app)


def test_own_timings_can_be_pasted(world, open_page):
    world.has(CPU)
    app = open_page(PAGE)
    checked(app.text_area[0].set_value(view.SAMPLE).run())
    assert "Time against size for cpu and gpu" in alts(app)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is empty"),
        (b"\xff\xfe\x00", "not UTF-16"),
        (b"a,\xff,c\n1,2,3\n", "not UTF-8"),
        (b"a,device,c\n1,2,3\n", "has no column seconds"),
        (b"size,device,seconds\n1,cpu,-2\n", "seconds"),
        (b"size,device,seconds\n1,cpu,<b>quick</b>\n", "seconds"),
        (b"size,device,seconds\n1,cpu,2\n", "at least two different"),
    ],
)
def test_a_bad_file_gets_its_one_sentence(world, open_page, data, sentence):
    world.has(CPU)
    app = upload(open_page(PAGE), data)
    assert [sentence in error.value.replace("\\", "") for error in app.error] == [True]
    assert "<b>" not in app.error[0].value


def test_a_fault_of_what_was_pasted_is_a_whole_sentence(world, open_page):
    world.has(CPU)
    app = open_page(PAGE)
    checked(app.text_area[0].set_value("hello\nworld").run())
    assert app.error[0].value.startswith("The text has no header row")
