"""Studies that were opened from the Gallery, alone and beside each other."""

import dataclasses
import re

import pytest

from core.answer.gallery import overview as gallery_table
from core.answer.gallery import trust
from core.question.experiment import Point
from tests.studies import rows_of, sweep
from tests.ui.conftest import checked, words
from tests.ui.find import alts
from tests.ui.gallery.seen import PAGE, linked, press, table


def test_a_study_opens_from_its_card_and_closes_again(studied, open_page):
    app = open_page(PAGE, in_machine="Other CPU (beefbe)")
    app = press(app, "Open")
    assert linked(app, "study") == studied["there"].id
    assert "Export" in words(app)
    app = press(app, "Back to the list")
    assert "study" not in app.query_params
    assert "1 of 3 studies" in words(app)


def test_an_open_study_shows_all_that_it_rests_on(studied, open_page):
    of = studied["there"]
    app = open_page(PAGE, study=of.id, lacks="true", fingerprint="true")
    said = words(app)
    assert of.crossover().sentence in said.replace(".**  \n", ". ")  # its beginning stands out
    assert trust.trust_mark(rows_of(of)).missing[0] in said
    assert "python -m core sweep" in said
    shown = alts(app)
    assert "Parts of a step by hidden size on the CPU" in shown
    assert "Parts of a step by hidden size on the GPU" in shown
    fingerprint = table(app, "As measured")
    assert "Other CPU" in list(fingerprint["As measured"])
    assert len(table(app, "Verdict")) == len(of.runs)


def test_the_classification_reports_of_any_size_can_be_looked_at(world, open_page):
    of = sweep("d", training=Point(dataset="digits", batch_size=64, epochs=10))
    world.keep(rows_of(of))
    app = open_page(PAGE, study=of.id, size="64")
    assert next(found for found in app.select_slider if found.key == "size").value == "64"
    assert len([found for found in app.dataframe if "precision" in found.value.columns]) == 2
    assert "run" in press(app, "Open its run").query_params


def test_the_same_training_on_two_machines_shares_a_chart_and_only_differences_are_listed(studied, open_page):
    app = open_page(PAGE, study=studied["here"].id, beside=studied["there"].id)
    assert {"Time per step of 2 studies", "Speedup of 2 studies"} <= set(alts(app))
    assert "2 machines, each with a fingerprint of its own" in words(app)
    differences = table(app, "What")
    assert "processor" in list(differences["What"])
    assert "dataset" not in list(differences["What"])


def test_rows_of_another_protocol_are_refused_a_place_on_the_chart(studied, open_page):
    app = open_page(PAGE, study=studied["here"].id, beside=studied["older"].id)
    assert "rows of different protocols never share a chart" in words(app)
    assert not [name for name in alts(app) if name.endswith("studies")]


def test_a_refused_study_leaves_the_others_on_the_chart(studied, open_page):
    beside = f"{studied['older'].id},{studied['there'].id}"
    app = open_page(PAGE, study=studied["here"].id, beside=beside)
    assert "is not shown" in words(app)
    assert "Time per step of 2 studies" in alts(app)


def test_only_studies_that_can_share_the_chart_are_offered_for_a_comparison(studied, open_page):
    app = open_page(PAGE, study=studied["here"].id)
    offered = next(found for found in app.multiselect if found.label == "Compare with").options
    assert len(offered) == 1
    assert "Other CPU" in offered[0] or studied["there"].runs[0][0].machine_id[:6] in offered[0]


def test_choosing_what_stands_beside_a_study_puts_it_into_the_link(studied, open_page):
    app = open_page(PAGE, study=studied["here"].id)
    next(found for found in app.multiselect if found.key == "beside").set_value([studied["there"].id])
    checked(app.run())
    assert linked(app, "beside") == studied["there"].id
    assert "Time per step of 2 studies" in alts(app)


def test_an_unknown_study_is_said_to_be_unknown(studied, open_page):
    assert "There is no study ffffffffffff here" in words(open_page(PAGE, study="f" * 12))


@pytest.mark.parametrize("link", [{"study": "<b>"}, {"run": "../../etc"}, {"view": "Nothing"}, {"beside": "x,<i>"}])
def test_a_link_that_is_wrong_opens_the_list(studied, open_page, link):
    assert "3 of 3 studies" in words(open_page(PAGE, **link))


def test_names_in_rows_are_never_markup(world, open_page):
    hostile = {"cpu_name": "<img src=x> **bold** [a](http://b)", "device_name": "$x$ :red[y] <script>"}
    world.keep(rows_of(sweep("e", **hostile)))
    app = open_page(PAGE)
    for kind in ("markdown", "caption"):
        for element in getattr(app, kind):
            unescaped = re.sub(r"\\.", "", element.value)
            assert not re.search(r"<|bold\*|\]\(|:red|\$", unescaped)


def test_classes_that_are_not_known_here_leave_the_rest_of_a_study(world, open_page):
    of = sweep("e", dataset="invented-later")
    world.keep(rows_of(of))
    said = words(open_page(PAGE, study=of.id))
    assert "(got 'invented-later')" in said
    assert "Export" in said


def test_a_study_of_two_rows_of_one_device_is_drawn_with_all_its_charts(world, open_page):
    known = sweep("a")
    world.keep(
        [
            dataclasses.replace(row, trial_id=f"{row.run_id}-{place}")
            for _, challenger in known.runs
            for place, row in enumerate([challenger] * 2)
        ]
    )
    (line,) = gallery_table.find_study_lines(gallery_table.load_overview([(world.store, "here")]).table)
    app = open_page(PAGE, study=line.id)
    assert len([chart for chart in alts(app) if chart.startswith("Parts of a step")]) == 2
    assert not app.error
