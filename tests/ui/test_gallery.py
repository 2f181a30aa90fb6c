"""The Gallery page: empty, its three lists, what is opened from them, and files that cannot be read."""

import dataclasses
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.answer.gallery import table as gallery_table
from core.answer.gallery import trust
from core.answer.gallery.published_studies import published_studies
from core.answer.study import study, wording
from core.question.experiment import Point
from core.results.schema import SCHEMA, VERSION_KEY
from core.results.tables import object_bytes, to_table
from pages.gallery import lists, stock
from pages.shared.data import shelf
from pages.shared.frame import navigation
from tests import rows
from tests.studies import OTHER_MACHINE, sweep
from tests.ui.conftest import CPU, checked, words
from tests.ui.find import alts

PAGE = navigation.GALLERY
CHARTS = "Time per step by parameters"


@pytest.fixture
def stocked(world):
    """Two runs measured here, one imported, one that ships: no study."""
    world.keep(rows.run(run_id="a" * 12, started_at="2026-11-01T00:00:00+00:00"))
    world.keep(rows.run(run_id="b" * 12, point=Point(dataset="mnist", hidden_size=32)))
    world.keep(rows.run({"cpu": 1e-3}, run_id="c" * 12, origin="friend.parquet", machine_id="1" * 12))
    for trial in rows.run({"cpu": 1e-3, "mps": 1e-3}, run_id="d" * 12):
        world.gallery.add(trial)
    return world


@pytest.fixture
def studied(world):
    """The same study of two machines, and of a third by another protocol."""
    known = {
        "here": sweep("a"),
        "there": sweep("b", pairs=3, **OTHER_MACHINE),
        "older": sweep("c", protocol_version=99, machine_id="c" * 12),
    }
    for of in known.values():
        for run in of.runs:
            world.keep(list(run))
    return known


def listed(app):
    """The table of trials."""
    return next(table.value for table in app.dataframe if "Step (ms)" in table.value.columns)


def table(app, column):
    return next(table.value for table in app.dataframe if column in table.value.columns)


def marks(chart):
    return pa.ipc.open_stream(chart.proto.data.data).read_all().num_rows


def linked(app, name):
    """The value of a parameter of the link, which AppTest has as text or as a list of one."""
    value = app.query_params[name]
    return value if isinstance(value, str) else value[0]


def press(app, label):
    next(found for found in app.button if found.label == label).click()
    return checked(app.run())


def test_an_empty_gallery_says_how_to_fill_it(world, open_page):
    assert "No trial is stored yet" in words(open_page(PAGE))


def test_what_is_here_is_said_in_one_line(studied, open_page):
    assert "18 trials in 3 studies from 3 machines; CPUs and NVIDIA GPUs." in words(open_page(PAGE))


# Trials


def test_it_lists_every_trial_newest_first_and_draws_them(stocked, open_page):
    app = open_page(PAGE, view="Trials")
    assert "7 of 7 trials" in words(app)
    assert list(listed(app)["Source"]).count("imported") == 1
    assert list(listed(app)["Source"]).count("gallery") == 2
    assert listed(app)["Measured (UTC)"].is_monotonic_decreasing
    assert alts(app) == [CHARTS]


def test_the_rows_of_a_page_can_be_downloaded(stocked, open_page):
    app = open_page(PAGE, view="Trials")
    assert not app.get("download_button")
    labels = {found.label for found in press(app, "Prepare 7 rows as files").get("download_button")}
    assert any("7 rows" in label for label in labels)


def test_single_runs_without_any_study_are_shown_at_once(stocked, open_page):
    app = open_page(PAGE)
    assert "No study is stored yet" in words(app)
    assert len(listed(app)) == 7


@pytest.mark.parametrize(
    ("link", "count"),
    [
        ({"in_dataset": ["mnist"]}, 2),
        ({"in_kind": ["cuda", "mps"]}, 3),
        ({"in_device": ["NVIDIA Test GPU"]}, 2),
        ({"in_source": ["imported"]}, 1),
        ({"in_dataset": ["mnist"], "in_kind": ["cpu"]}, 1),
        ({"in_outcome": ["completed"]}, 7),
        ({"in_trust": ["full"]}, 7),
        ({"in_protocol": [str(rows.trial().protocol_version)]}, 7),
    ],
)
def test_a_link_filters(stocked, open_page, link, count):
    app = open_page(PAGE, view="Trials", **link)
    assert f"{count} of 7 trials, filtered by " in words(app)
    assert len(listed(app)) == count


def test_filters_that_leave_nothing_leave_no_chart(stocked, open_page):
    app = open_page(PAGE, view="Trials", in_source="imported", in_kind="mps")
    assert not app.get("vega_lite_chart")
    assert "The filters let nothing through" in words(app)


def test_many_trials_are_few_marks_and_come_in_pages(world, open_page):
    number = lists.LINES // 2 + 5
    for place in range(number):
        world.keep(rows.run(run_id=f"{place:012x}", pairs=6, point=Point(hidden_size=place + 1)))
    app = open_page(PAGE, view="Trials")
    assert len(listed(app)) == lists.LINES
    assert marks(app.get("vega_lite_chart")[0]) < number
    app = open_page(PAGE, view="Trials", trials_page="2")
    assert len(listed(app)) == 2 * number - lists.LINES


def test_a_link_opens_a_run(stocked, open_page):
    assert "Take it along" not in words(open_page(PAGE))
    app = open_page(PAGE, run="b" * 12)
    assert "The GPU trains" in words(app)
    assert "hidden size 32" in words(app)
    assert "Trust: full, 9 of 9" in words(app)


def test_what_a_rows_mark_lacks_is_said_with_its_figure(world, open_page):
    world.keep(rows.run(app_commit="", pairs=4))
    said = words(open_page(PAGE, run=rows.RUN_ID, lacks="true"))
    assert "Trust: partly, 7 of 9" in said
    for sentence in trust.of(rows.run(app_commit="", pairs=4)).missing:
        assert sentence in said


def test_a_second_run_is_set_beside_the_first_with_only_what_differs(stocked, open_page):
    app = open_page(PAGE, run="a" * 12, beside="b" * 12)
    differences = table(app, "What")
    settings = dict(zip(differences["What"], differences[f"Run {'b' * 12}"], strict=True))
    assert settings["data set"] == "MNIST (70,000 images)"
    assert "processor" not in settings
    assert "other things are the same on both sides" in words(app)


def test_an_unknown_run_is_said_to_be_unknown(stocked, open_page):
    assert "There is no run ffffffffffff here" in words(open_page(PAGE, run="f" * 12))


def test_a_run_can_be_set_up_in_compare(stocked, open_page):
    stocked.has(CPU)
    app = press(open_page(PAGE, run="b" * 12), "Set this up in Compare")
    assert app.title[0].value == "Compare"
    assert next(found for found in app.selectbox if found.key == "dataset").value == "mnist"
    assert next(found for found in app.select_slider if found.key == "hidden_size").value == 32


def test_a_row_of_something_that_this_version_does_not_offer_is_shown_but_cannot_be_set_up(world, open_page):
    world.keep([dataclasses.replace(trial, model="transformer") for trial in rows.run()])
    app = open_page(PAGE, run=rows.RUN_ID)
    assert "cannot repeat the run" in words(app)
    assert app.get("download_button")
    assert "Set this up in Compare" not in [found.label for found in app.button]


def test_of_a_data_set_that_is_not_known_here_all_but_its_classes_is_shown(world, open_page):
    world.keep(rows.run(dataset="invented-later"))
    app = open_page(PAGE, run=rows.RUN_ID)
    assert "Data set: 'invented-later' is not possible" in words(app)
    assert "The GPU trains" in words(app)
    assert "Take it along" in words(app)


# Studies


def test_each_study_is_a_card_with_its_chart_its_answer_and_its_mark(studied, open_page):
    app = open_page(PAGE)
    assert len(alts(app)) == len(studied)
    said = words(app)
    for of in studied.values():
        assert wording.headline(study.crossover(of)) in said
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


def test_filters_that_leave_no_study_show_the_trials(world, studied, open_page):
    world.keep(rows.run())
    app = open_page(PAGE, in_dataset="digits")
    assert "The filters leave no study. These are the trials." in words(app)
    assert len(listed(app)) == 2


def many_studies(world, number):
    for place in range(number):
        for run in sweep(f"{place:x}", sizes=(16, 64), pairs=6, machine_id=f"{place:012x}").runs:
            world.keep(list(run))


def test_of_very_many_studies_those_on_the_screen_and_a_fixed_number_are_worked_out(world, open_page, monkeypatch):
    asked = []
    crossover = study.crossover
    monkeypatch.setattr(study, "crossover", lambda of: asked.append(of.id) or crossover(of))
    monkeypatch.setattr(stock, "MOST_ANSWERED", 2)
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
    for of in known.values():
        for run in of.runs:
            world.keep(list(run))
    return known


def test_a_filter_of_a_link_that_nothing_here_has_is_named(answered, open_page):
    app = open_page(PAGE, in_dataset=["cats"], in_model=["dogs"])
    said = [found.value for found in app.warning]
    assert any("Data set cats" in sentence for sentence in said)
    assert any("Model dogs" in sentence for sentence in said)
    assert "2 of 3 studies" in words(app)


def test_filters_say_words_for_people_and_the_link_those_of_rows(answered, open_page):
    app = open_page(PAGE, in_dataset=["signal"])
    control = next(found for found in app.multiselect if found.key == "in_dataset")
    assert control.value == ["signal"]
    assert "Signal and background" in control.options[0]
    control.set_value([])
    assert "in_dataset" not in checked(app.run()).query_params


def test_filters_hold_while_another_page_is_looked_at(answered, open_page):
    app = open_page(PAGE, in_answer=["crossing"])
    app.query_params.clear()
    app.switch_page(navigation.DEVICES).run()
    app = checked(app.switch_page(PAGE).run())
    assert cards(app) == [answered["crosses"].id]


def test_a_link_without_what_was_open_shows_the_list_as_the_browsers_back_does(studied, open_page):
    app = open_page(PAGE, study=studied["here"].id)
    del app.query_params["study"]
    assert "3 of 3 studies" in words(checked(app.run()))


def cards(app):
    return [found.key.removeprefix("open-") for found in app.button if found.label == "Open"]


def test_what_two_runs_cannot_say_is_no_study_unless_it_is_asked_for(answered, open_page):
    assert answered["none"].id not in cards(open_page(PAGE))
    assert cards(open_page(PAGE, in_answer=["not_measurable"])) == [answered["none"].id]


@pytest.mark.parametrize(("word", "name"), [("crossing", "crosses"), ("cpu_always", "never")])
def test_studies_are_found_by_their_answer(answered, open_page, word, name):
    app = open_page(PAGE, in_answer=[word])
    assert cards(app) == [answered[name].id]
    assert "1 of 3 studies, filtered by answer" in words(app)


# Published


def test_published_studies_have_a_list_of_their_own_in_an_empty_gallery_too(world, open_page):
    app = open_page(PAGE, view="Published")
    said = words(app)
    assert "11 of 11 published studies" in said
    assert said.count("Not measured here.") == 11
    assert "Szilard Pafka, GBM-perf, 2024-06-06" in said
    assert all(name.startswith("Published: ") for name in alts(app))


def test_they_are_found_by_answer_and_by_who_published_them_and_decided_ones_come_first(studied, open_page):
    app = open_page(PAGE, view="Published", in_publisher=["Szilard Pafka, GBM-perf"])
    assert cards(app) == ["xgboost", "lightgbm", "catboost"]
    app = open_page(PAGE, view="Published", in_answer=["cpu_always"])
    assert set(cards(app)) == {"lightgbm", "bilstm-imdb"}
    assert cards(open_page(PAGE, view="Published"))[-1] in ("catboost", "mlp-mnist", "lstm-characters")


def test_no_count_selection_or_list_of_measured_rows_has_one(studied, open_page):
    app = open_page(PAGE)
    assert "3 of 3 studies" in words(app)
    assert set(cards(app)) == {of.id for of in studied.values()}
    beside = next(found for found in open_page(PAGE, study=studied["here"].id).multiselect if found.key == "beside")
    assert not any("GBM" in option for option in beside.options)


@pytest.mark.parametrize("name", ["xgboost", "signal"])
def test_a_link_opens_a_published_study_with_its_source_and_what_can_be_taken(world, open_page, name):
    app = open_page(PAGE, study=name)
    shown = next(one for one in published_studies() if one.name == name)
    said = words(app)
    for sentence in (shown.title, shown.headline, shown.source.cited, shown.source.cpu, shown.source.gpu):
        assert sentence in said
    assert "if readings scatter by about 5 %" in said
    assert {"Figures as csv", "Report as HTML"} <= {found.label for found in app.get("download_button")}
    assert f"study={name}" in said


def test_a_published_study_opens_from_its_card_and_closes_again(studied, open_page):
    app = open_page(PAGE, view="Published", in_publisher=["Szilard Pafka, GBM-perf"])
    app = press(app, "Open")
    assert linked(app, "study") == "xgboost"
    app = press(app, "Back to the list")
    assert "3 of 11 published studies" in words(app)


@pytest.mark.parametrize("first", ["measured", "published"])
def test_a_measured_and_a_published_study_stand_beside_each_other_as_two_pictures(studied, open_page, first):
    here = studied["here"].id
    pair = (here, "xgboost") if first == "measured" else ("xgboost", here)
    app = open_page(PAGE, study=pair[0])
    next(found for found in app.selectbox if found.key == "against").set_value(pair[1])
    app = checked(app.run())
    assert linked(app, "against") == pair[1]
    drawn = [name for name in alts(app) if "Gradient boosting with XGBoost" in name]
    assert len(drawn) == 1
    assert "Time" in "".join(name for name in alts(app) if name not in drawn)
    assert "Not measured here." in words(app)
    assert words(open_page(PAGE, study=pair[0], against=pair[1])) == words(app)


def test_a_study_opens_from_its_card_and_closes_again(studied, open_page):
    app = open_page(PAGE, in_machine="Other CPU (beefbe)")
    app = press(app, "Open")
    assert linked(app, "study") == studied["there"].id
    assert "Take it along" in words(app)
    app = press(app, "Back to the list")
    assert "study" not in app.query_params
    assert "1 of 3 studies" in words(app)


def test_an_open_study_shows_all_that_it_rests_on(studied, open_page):
    of = studied["there"]
    app = open_page(PAGE, study=of.id, lacks="true", fingerprint="true")
    said = words(app)
    assert study.crossover(of).sentence in said
    assert trust.of([row for run in of.runs for row in run]).missing[0] in said
    assert "python -m core sweep" in said
    shown = alts(app)
    assert "Parts of a step by hidden size on the CPU" in shown
    assert "Parts of a step by hidden size on the GPU" in shown
    fingerprint = table(app, "As measured")
    assert "Other CPU" in list(fingerprint["As measured"])
    assert len(table(app, "Verdict")) == len(of.runs)


def test_the_classification_reports_of_any_size_can_be_looked_at(world, open_page):
    of = sweep("d", training=Point(dataset="digits", batch_size=64, epochs=10))
    for run in of.runs:
        world.keep(list(run))
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
    assert "is not drawn" in words(app)
    assert "Time per step of 2 studies" in alts(app)


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
    for run in sweep("e", **hostile).runs:
        world.keep(list(run))
    app = open_page(PAGE)
    for kind in ("markdown", "caption"):
        for element in getattr(app, kind):
            unescaped = re.sub(r"\\.", "", element.value)
            assert not re.search(r"<|bold\*|\]\(|:red|\$", unescaped)


def test_classes_that_are_not_known_here_leave_the_rest_of_a_study(world, open_page):
    of = sweep("e", dataset="invented-later")
    for run in of.runs:
        world.keep(list(run))
    said = words(open_page(PAGE, study=of.id))
    assert "Data set: 'invented-later' is not possible" in said
    assert "Take it along" in said


# What cannot be read, or takes too much


@pytest.mark.skipif(os.name == "nt", reason="making links needs rights on Windows")
def test_what_cannot_be_looked_at_is_named_and_hides_neither_the_rest_nor_what_comes_later(stocked, open_page):
    folder = stocked.store.folder
    (folder / "loop.parquet").symlink_to(folder / "loop.parquet")
    (folder / "dead.parquet").symlink_to(folder / "nothing")
    app = open_page(PAGE, view="Trials", unread="true")
    assert len(listed(app)) == 7
    assert table(app, "Reason")["File"].tolist() == ["dead.parquet", "loop.parquet"]
    stocked.keep(rows.run(run_id="e" * 12))
    assert len(listed(checked(app.run()))) == 9


def test_a_store_that_is_no_folder_leaves_a_page_that_says_so(world, open_page):
    world.store.folder.write_text("in the way")
    app = open_page(PAGE)
    assert "cannot be read" in words(app)
    assert app.error


def test_rows_that_are_refused_at_the_door_are_named_and_the_rest_is_shown(stocked, open_page):
    bad = rows.plant(stocked.store, dataclasses.replace(rows.trial(run_id="e" * 12), contender="cpu@abc"))
    app = open_page(PAGE, view="Trials", unread="true")
    assert len(listed(app)) == 7
    assert table(app, "Reason")["File"].tolist() == [bad.name]
    assert "cpu@abc" in table(app, "Reason")["Reason"][0]


def test_a_study_whose_rows_take_too_much_is_named_and_the_others_are_shown(world, open_page, monkeypatch):
    usual, large = sweep("a"), sweep("f", pairs=2_000, loss=(), loss_step=(), **OTHER_MACHINE)
    for run in (*usual.runs, *large.runs):
        world.keep(list(run))
    size = object_bytes(to_table([row for run in large.runs for row in run]))
    monkeypatch.setattr(shelf, "MOST_BYTES", size // 2)
    app = open_page(PAGE)
    assert "more than a page reads at once" in words(app)
    assert len(alts(app)) == 1
    assert "take more than" in words(open_page(PAGE, study=large.id))
    assert "are not read at once" in words(open_page(PAGE, study=usual.id, beside=large.id))
    assert "take more than" in words(open_page(navigation.CROSSOVER, study=large.id))


def test_rows_that_turn_out_not_to_be_readable_when_they_are_opened_are_named_then(studied, open_page, world):
    bad = rows.plant(world.store, rows.trial(run_id="e" * 12, lane_loss=(1.0,) * 5_000))
    app = open_page(PAGE, run="e" * 12, unread="true")
    assert "cannot be read" in words(app)
    app = open_page(PAGE, unread="true")
    assert table(app, "Reason")["File"].tolist() == [bad.name]
    assert "lane_loss has more than 1,000 entries" in table(app, "Reason")["Reason"][0]


def test_two_rows_with_one_contender_make_a_study_that_can_be_opened(world, open_page):
    for run in sweep("e").runs:
        first, second = run
        again = {"contender": first.contender, "device": first.device, "device_kind": first.device_kind}
        world.keep([first, dataclasses.replace(second, **again, threads=first.threads)])
    (line,) = gallery_table.studies(gallery_table.whole([(world.store, "here")]).frame)
    assert "Take it along" in words(open_page(PAGE, study=line.id))
    assert "Take it along" in words(open_page(PAGE, run=line.run_ids[0]))


# Machines


def test_each_machine_has_a_line(studied, open_page):
    app = open_page(PAGE, view="Machines")
    lines = table(app, "Accelerators")
    assert sorted(lines["Machine"]) == ["Other CPU (beefbe)", "Test CPU (cccccc)", "Test CPU (feedfa)"]
    assert set(lines["Trials"]) == {6}


def test_a_study_of_two_rows_of_one_device_is_drawn_with_all_its_charts(world, open_page):
    known = sweep("a")
    for of in known.runs:
        world.keep(
            [dataclasses.replace(row, trial_id=f"{row.run_id}-{place}") for place, row in enumerate([of[1]] * 2)]
        )
    (line,) = gallery_table.studies(gallery_table.whole([(world.store, "here")]).frame)
    app = open_page(PAGE, study=line.id)
    assert len([chart for chart in alts(app) if chart.startswith("Parts of a step")]) == 2
    assert not app.error


# Files


def test_files_that_cannot_be_read_are_named_with_the_reason_and_the_rest_loads(stocked, open_page):
    (stocked.store.folder / "torn <b>.parquet").write_bytes(b"PAR1 torn")
    app = open_page(PAGE, unread="true")
    assert "7 of 7 trials" in words(app)
    assert list(table(app, "File")["File"]) == ["torn <b>.parquet"]


def test_of_very_many_trials_the_newest_are_listed_and_the_older_ones_counted(world, open_page, monkeypatch):
    monkeypatch.setattr(gallery_table, "MOST_TRIALS", 2)
    for number in range(4):
        world.store.add(rows.trial(run_id=f"{number:012x}", started_at=f"2026-11-0{number + 1}T00:00:00+00:00"))
    app = open_page(PAGE, view="Trials")
    assert "These are the newest 2 trials. 2 older ones are kept, and open by the link of their run." in words(app)
    assert len(listed(app)) == 2


def test_a_file_of_a_newer_version_is_named_and_read(stocked, open_page):
    newer = to_table([rows.trial(run_id="e" * 12)]).replace_schema_metadata({VERSION_KEY: b"999"})
    assert SCHEMA.metadata[VERSION_KEY] != b"999"
    pq.write_table(newer, stocked.store.folder / "newer.parquet")
    app = open_page(PAGE)
    assert "newer.parquet was written by a newer version" in words(app)
    pq.write_table(newer, stocked.store.folder / "other.parquet")
    assert "newer.parquet and 1 more file were" in words(open_page(PAGE))
    assert "8 of 8 trials" in words(app)


def test_a_running_and_a_failed_job_do_not_disturb_it(stocked, open_page):
    stocked.end(stocked.run(), state="failed", message="No.")
    stocked.run()
    assert "7 of 7 trials" in words(open_page(PAGE))
