"""Runs that were measured, on the Compare page."""

import dataclasses
import json
import re

import pytest

from core.question.experiment import Contender, Experiment, Point
from core.results.schema import TRIAL_COLUMNS
from pages.shared import controls
from tests import rows
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import THREADS, alts, button, control


def stored_run(world, **changes):
    """What the store knows about the settings that a fresh page shows on a machine with a GPU."""
    experiment = Experiment(point=controls.DEFAULTS, contenders=(Contender(), Contender(device="cuda:0")))
    return world.keep(rows.run(point=experiment.point, **changes))


def test_the_same_question_is_answered_from_the_store_and_can_be_measured_again(world, open_page):
    world.has(CPU, GPU)
    stored_run(world)
    app = open_page(model="mlp")
    checked(button(app, "Run").click().run())
    assert world.queue.jobs() == []
    assert "Measured before, on 21 November 2026, 09:30 UTC" in words(app)
    checked(button(app, "Measure again").click().run())
    (job,) = world.queue.jobs()
    assert job.fresh


def threads_run(world, **changes):
    """A run of one thread and of four, which other programs slowed down; with a verdict for that load only."""
    one, four = rows.run({"cpu@1": 1e-3, "cpu@4": 2e-3}, point=Point(hidden_size=256), **changes)
    return world.keep([one, dataclasses.replace(four, block_switches=(10_000,) * len(four.block_switches))])


def test_a_run_of_a_loaded_machine_is_shown_with_its_load_and_not_served_as_the_answer(world, open_page):
    world.has(CPU)
    stored = threads_run(world)
    assert "On a quiet machine this can be different." in words(open_page(run=stored[0].run_id))
    app = open_page(hidden_size="256")
    checked(button(app, "Run").click().run())
    (job,) = world.queue.jobs()
    assert job.question.point == Point(hidden_size=256)
    assert not job.fresh


@pytest.mark.parametrize(("link", "whole"), [({"whole": "true"}, True), ({"whole": "false"}, False), ({}, False)])
def test_the_whole_training_is_asked_for_by_a_switch_that_the_link_can_set(world, open_page, link, whole):
    world.has(CPU)
    app = open_page(hidden_size="256", **link)
    assert control(app, "whole").value is whole
    checked(button(app, "Run").click().run())
    assert world.queue.jobs()[0].question.whole is whole


def test_a_run_that_ended_once_it_was_decided_answers_and_can_be_trained_to_the_end(world, open_page):
    world.has(CPU)
    point = Point(hidden_size=256)
    (first, _) = world.keep(rows.run({"cpu@1": 2e-3, "cpu@4": 1e-3}, point=point, pairs=12, outcome="timed"))
    app = open_page(hidden_size="256")
    checked(button(app, "Run").click().run())
    assert app.query_params["run"] == first.run_id
    assert world.queue.jobs() == []
    assert "As many pairs as wanted, or enough to tell who is faster, were timed; what was learned" in words(app)
    checked(button(app, "Train it to the end").click().run())
    assert world.queue.jobs()[0].question == Experiment(point=point, contenders=THREADS)


def test_a_run_that_was_trained_to_its_end_is_not_offered_to_be(world, open_page):
    world.has(CPU, GPU)
    stored_run(world)
    labels = [found.label for found in open_page(run="0123456789ab").button]
    assert "Train it to the end" not in labels


def test_a_link_to_a_run_shows_its_whole_answer(world, open_page):
    world.has(CPU, GPU)
    stored_run(world)
    app = open_page(run=rows.RUN_ID)
    said = words(app)
    assert "The GPU is" in said
    assert re.search(r"^## The GPU is [\d.]+× faster than the CPU$", said, re.MULTILINE)
    assert "95 % interval" in said
    assert "Time of a step by device" in alts(app)
    assert "launch overhead" in said
    assert "gave the same prediction for all 270 test items." in said
    assert "start-up" in said
    assert "python -m core run --dataset digits" in said
    assert f"run={rows.RUN_ID}" in said
    charts = [chart.proto.alt for chart in app.get("vega_lite_chart")]
    assert "Training loss against time of training" in charts
    assert "Confusion matrix of GPU" in charts
    assert {found.label for found in app.get("download_button")} == {
        "2 rows as parquet",
        "2 rows as csv",
        "Script to repeat it",
    }


def test_a_result_says_which_settings_it_does_not_belong_to_once_one_is_moved_and_sets_them_back(world, open_page):
    world.has(CPU, GPU)
    stored_run(world)
    app = open_page(run=rows.RUN_ID)
    assert "settings differ from the result" not in words(app)
    checked(control(app, "batch_size").set_value(256).run())
    assert "The settings differ from the result shown: batch size 256, not 64." in words(app)
    checked(button(app, "Use the settings of the result").click().run())
    assert control(app, "batch_size").value == 64
    assert "settings differ from the result" not in words(app)


def test_a_link_to_a_run_alone_sets_the_controls_as_it_was_measured(world, open_page):
    world.has(CPU, GPU)
    world.keep(rows.run({"cpu@1": 2e-3, "cuda:0": 1e-3}, point=Point(hidden_size=512, batch_size=32)))
    app = open_page(run=rows.RUN_ID)
    assert (control(app, "hidden_size").value, control(app, "batch_size").value) == (512, 32)
    assert control(app, "devices").value == ["cpu@1", "cuda:0"]
    assert "The settings differ from the result" not in words(app)
    said = open_page(run=rows.RUN_ID, batch_size="256")
    assert (control(said, "hidden_size").value, control(said, "batch_size").value) == (128, 256)
    assert "hidden size 128, not 512" in words(said)


def test_settings_that_a_link_to_a_run_locks_stay_as_they_are(world, open_page):
    world.has(CPU, GPU)
    world.keep(rows.run({"cpu@1": 2e-3, "cuda:0": 1e-3}, point=Point(hidden_size=512, batch_size=32)))
    app = open_page(run=rows.RUN_ID, lock="batch_size")
    assert (control(app, "hidden_size").value, control(app, "batch_size").value) == (512, Point().batch_size)


def test_a_run_that_is_not_here_is_said_above_what_one_can_do(world, open_page):
    world.has(CPU, GPU)
    said = words(open_page(run="e" * 12))
    assert "There is no run eeeeeeeeeeee here" in said
    assert "How this works" in said


def test_a_result_leads_to_the_crossover_of_its_model_with_its_settings(world, open_page):
    world.has(CPU, GPU)
    stored_run(world)
    app = open_page(run=rows.RUN_ID, batch_size="256")
    checked(button(app, "Find the crossover").click().run())
    assert control(app, "axis").value == "hidden_size"
    assert control(app, "batch_size").value == 64
    assert control(app, "contenders").value == ["cpu", "cuda:0"]
    assert not button(app, "Find the crossover").disabled


def test_parts_that_are_folded_away_are_drawn_once_the_link_or_a_click_opens_them(world, open_page):
    world.has(CPU, GPU)
    stored_run(world)
    blocks, loss = "Time per step of every timed block", "Training loss against epochs"
    charts = [chart.proto.alt for chart in open_page(run=rows.RUN_ID).get("vega_lite_chart")]
    assert not {blocks, loss} & set(charts)
    app = open_page(run=rows.RUN_ID, blocks="true", loss="true", reports="true")
    assert {blocks, loss} <= {chart.proto.alt for chart in app.get("vega_lite_chart")}
    assert sum("precision" in code.value for code in app.code) == 2
    assert "timed as a whole" in words(app)
    tried = "with the time per step: 1: 1.00 ms, 2: 707 µs, 4: 500 µs. 4 was fastest."
    assert f"Thread counts tried for CPU, {tried}" in words(app)


def test_a_race_of_two_devices_is_sent_once_it_is_opened(world, open_page):
    world.has(CPU, GPU)
    stored_run(world)
    closed, opened = (open_page(run=rows.RUN_ID, **link).get("bidi_component") for link in ({}, {"race": "true"}))
    (race,) = [one for one in opened if one.proto.component_name.endswith("timeline")]
    assert len(closed) == len(opened) - 1
    sent = json.loads(race.proto.json)
    assert sent["large"]
    assert [row["label"] for row in sent["rows"]] == ["CPU", "GPU"]
    assert "steps" in sent["says"]


def test_a_run_from_another_machine_is_shown_but_not_offered_again(world, open_page):
    world.has(CPU)
    stored_run(world, machine_id="0" * 12)
    app = open_page(run=rows.RUN_ID)
    assert "Measured on another machine" in words(app)
    assert "Measure again" not in [found.label for found in app.button]


@pytest.mark.parametrize("opened", [{}, {"run": "a" * 12}])
def test_a_store_that_cannot_be_read_is_said_once(world, open_page, opened):
    world.has(CPU)
    world.store.folder.write_text("in the way")
    app = open_page(**opened)
    said = f"The store {world.store.folder} cannot be read: Not a directory."
    assert [box.value.replace("\\", "") for box in app.error] == [said]


@pytest.mark.parametrize(("threads", "share"), [((1, 2), 0.5), ((1, 2, 4), 0.5), ((1, 2, 4, 8), 0.5), ((1,), 1.0)])
def test_no_more_than_two_reports_stand_beside_each_other_so_that_all_their_columns_are_seen(
    world, open_page, threads, share
):
    stored = world.keep(rows.run({f"cpu@{count}": 1e-3 for count in threads}))
    app = open_page(run=stored[0].run_id)
    holding = [column for column in app.columns if any("f1-score" in table.value for table in column.dataframe)]
    assert [column.weight for column in holding] == [share] * len(threads)


def test_a_run_of_one_device_has_figures_and_no_verdict(world, open_page):
    world.has(CPU)
    world.keep(rows.run({"cpu": 1e-3}))
    app = open_page(run=rows.RUN_ID)
    assert "× faster than" not in words(app)
    assert app.dataframe[0].value.iloc[0]["Device"] == "CPU"


def test_rows_of_every_outcome_can_be_shown(world, open_page):
    world.has(CPU)
    empty = {"confusion": (), "predictions": b"", "loss": (), "loss_step": (), "busy_step_s": ()}
    parts = {f"breakdown_{part}_s": () for part in ("loader", "transfer", "forward", "backward", "optimizer")}
    no_blocks = {column.name: () for column in TRIAL_COLUMNS if column.name.startswith("block_")}
    for index, outcome in enumerate(("budget_spent", "diverged", "stopped", "interrupted", "out_of_memory")):
        run_id, blocks = f"{index:012x}", no_blocks if outcome == "out_of_memory" else {}
        world.keep(rows.run(run_id=run_id, outcome=outcome, message="It ended.", **empty, **parts, **blocks))
        assert "It ended." in words(open_page(run=run_id))
    left_out = "The classification report is unknown: out of memory."
    world.keep(rows.run(run_id="f" * 12, message=left_out, **empty, **parts))
    assert "The classification report is unknown" in words(open_page(run="f" * 12)), "it was completed all the same"


def test_what_a_file_says_is_never_markup(world, open_page):
    world.has(CPU)
    evil = "![x](http://evil.example/x.png) <b>:red[bold]</b> $x$"
    stored_run(world, device_name=evil, cpu_name=evil, message=evil, outcome="stopped")
    app = open_page(run=rows.RUN_ID)
    for kind in ("markdown", "caption", "warning", "info"):
        for element in getattr(app, kind):
            assert "](http" not in element.value
            assert "<b>" not in element.value
            assert ":red[" not in element.value
    assert evil in words(app)


def test_an_unknown_run_or_job_is_said_to_be_unknown(world, open_page):
    world.has(CPU)
    assert "There is no run ffffffffffff here" in words(open_page(run="f" * 12))
    said = words(open_page(job="0" * 20 + "-abcdef"))
    assert "There is no job" in said
    assert "How this works" in said


@pytest.mark.parametrize("link", [{"run": "f" * 12}, {"job": "0" * 20 + "-abcdef"}])
def test_beside_what_is_unknown_the_measurement_that_is_under_way_can_be_watched(world, open_page, link):
    world.has(CPU, GPU)
    job = world.run()
    app = checked(button(open_page(**link), "Watch it").click().run())
    assert app.query_params["job"] == job.id


def test_a_name_that_is_none_is_as_good_as_no_name(world, open_page):
    world.has(CPU)
    assert "How this works" in words(open_page(run="<script>", job="../../etc/passwd"))


def test_two_rows_of_one_device_in_a_run_are_shown(world, open_page):
    world.has(CPU, GPU)
    world.keep(
        [dataclasses.replace(row, trial_id=f"{rows.RUN_ID}-{place}") for place, row in enumerate(rows.run() * 2)]
    )
    app = open_page(run=rows.RUN_ID)
    offered = [found.label for found in app.button if found.label.startswith("Measure what would help")]
    assert len(offered) == 4
