"""The Gallery's cards of studies, and filters."""

import pytest

from core.answer import wording
from core.answer.study import Study
from core.question.experiment import Point
from pages.gallery import lists
from pages.shared import layout
from tests import rows
from tests.studies import OTHER_MACHINE, rows_of, sweep
from tests.ui.conftest import checked, words
from tests.ui.find import alts
from tests.ui.gallery.conftest import STUDIES
from tests.ui.gallery.seen import PAGE, cards, linked, listed


def test_each_study_is_a_card_with_its_chart_its_answer_and_its_mark(studied, open_page):
    app = open_page(PAGE)
    assert len(alts(app)) == len(studied)
    said = words(app)
    for of in studied.values():
        assert wording.crossover_headline(of.crossover()) in said
    assert said.count("Trust: full, 9 of 9") == 2
    assert "Trust: partly, 8 of 9" in said
    assert "protocol 99" in said


@pytest.mark.parametrize(
    ("link", "count"),
    [
        ({"in_machine": ["Other CPU (beefbe)"]}, 1),
        ({"in_protocol": ["99"]}, 1),
        ({"in_trust": ["full"]}, 2),
        ({"in_kind": ["cuda"]}, 3),
        ({"in_dataset": ["signal"], "in_trust": ["partly"]}, 1),
    ],
)
def test_filters_choose_studies_by_their_rows_and_their_own_mark(studied, open_page, link, count):
    app = open_page(PAGE, **link)
    assert f"{count} of 3 studies" in words(app)
    assert len(alts(app)) == count


def test_filters_that_leave_no_study_show_the_trials(world, open_page):
    world.keep([*rows_of(*STUDIES.values()), *rows.run()])
    app = open_page(PAGE, in_dataset="digits")
    assert "No study matches the filters. These are the trials." in words(app)
    world.keep(rows.run({"cpu": 1e-3, "cpu@1": 2e-3}, run_id="e" * 12, point=Point(dataset="disc", model="linear")))
    nothing = {"in_dataset": "digits", "in_model": "linear"}
    assert "These are the trials." not in words(open_page(PAGE, **nothing))
    said = words(open_page(PAGE, view="Machines", **nothing))
    assert "Nothing matches the filters." in said
    assert "Select one" not in said
    assert "trials, filtered by answer" not in words(open_page(PAGE, in_answer="several"))
    assert len(listed(app)) == 2


def many_studies(world, number):
    known = (sweep(f"{n:x}", sizes=(16, 64), pairs=6, machine_id=f"{n:012x}") for n in range(number))
    world.keep(rows_of(*known))


def test_of_very_many_studies_those_on_the_screen_and_a_fixed_number_are_worked_out(world, open_page, monkeypatch):
    asked = []
    crossover = Study.crossover
    monkeypatch.setattr(Study, "crossover", lambda self, *basis: asked.append(self.id) or crossover(self, *basis))
    monkeypatch.setattr(lists, "MAX_ANSWERED", 2)
    many_studies(world, lists.CARDS + 1)
    assert len(alts(open_page(PAGE))) == lists.CARDS
    assert lists.CARDS <= len(set(asked)) == len(asked) <= lists.CARDS + 1
    assert len(alts(open_page(PAGE, studies_page="2"))) == 1


@pytest.fixture
def answered(world):
    """Three studies: one in which the GPU never wins, one that crosses, and two runs that are none."""
    known = {
        "never": sweep("a", sizes=(2, 4, 8, 16)),
        "crosses": sweep("b", sizes=(8, 16, 32, 128, 256, 512), **OTHER_MACHINE),
    }
    known["none"] = sweep("c", sizes=(16, 64), pairs=0, outcome="out_of_memory", machine_id="d" * 12)
    world.keep(rows_of(*known.values()))
    return known


def test_a_filter_of_a_link_that_nothing_here_has_is_named(answered, open_page):
    app = open_page(PAGE, in_dataset=["cats"], in_model=["dogs"])
    said = [found.value.replace("\\", "") for found in app.warning]
    assert said == ["These filters of the link match nothing here and were dropped. Data set: cats; Model: dogs."]
    assert "2 of 3 studies" in words(app)


def test_filters_say_words_for_people_and_the_link_those_of_rows(answered, open_page):
    app = open_page(PAGE, in_dataset=["signal"])
    control = next(found for found in app.multiselect if found.key == "in_dataset")
    assert control.value == ["signal"]
    assert "Signal and background" in control.options[0]
    control.set_value([])
    assert "in_dataset" not in checked(app.run()).query_params


def test_a_machine_that_is_chosen_in_its_list_is_a_filter_and_in_the_link(studied, open_page):
    app = open_page(PAGE, view="Machines")
    for name, value in (("in_machine", ["Other CPU (beefbe)"]), ("view", "Studies")):  # as a click on its line does
        app.session_state[name] = value
    app = checked(app.run())
    assert "1 of 3 studies, filtered by machine" in words(app)
    assert linked(app, "in_machine") == "Other CPU (beefbe)"


def test_filters_hold_while_another_page_is_looked_at(answered, open_page):
    app = open_page(PAGE, in_answer=["crossing"])
    app.query_params.clear()
    app.switch_page(layout.DEVICES).run()
    app = checked(app.switch_page(PAGE).run())
    assert cards(app) == [answered["crosses"].id]


def test_a_link_without_what_was_open_shows_the_list_as_the_browsers_back_does(studied, open_page):
    app = open_page(PAGE, study=studied["here"].id)
    del app.query_params["study"]
    assert "3 of 3 studies" in words(checked(app.run()))


def test_what_two_runs_cannot_say_is_no_study_unless_it_is_asked_for(answered, open_page):
    assert answered["none"].id not in cards(open_page(PAGE))
    assert cards(open_page(PAGE, in_answer=["not_measurable"])) == [answered["none"].id]


@pytest.mark.parametrize(("word", "name"), [("crossing", "crosses"), ("cpu_always", "never")])
def test_studies_are_found_by_their_answer(answered, open_page, word, name):
    app = open_page(PAGE, in_answer=[word])
    assert cards(app) == [answered[name].id]
    assert "1 of 3 studies, filtered by answer" in words(app)
