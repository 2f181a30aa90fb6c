"""Sweeps on the Crossover page, waiting, running and ended."""

import dataclasses

import pytest

from core.progress import SweepProgress
from core.question.experiment import Contender, Point
from core.question.sweep import Axis
from pages.shared import queries
from tests import rows
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.crossover.asked import ADAPTIVE, GRID, PAGE, PROGRESS, job_of, measured
from tests.ui.find import TIMES, alts, button, chart_data, control, picture, table


def test_a_sweep_that_is_measured_shows_how_far_it_is_and_the_answer_so_far(world, open_page):
    world.has(CPU, GPU)
    kept = world.keep(measured(sizes=(16, 256, 2048)))
    job = job_of(world, ADAPTIVE, kept=kept)
    app = open_page(PAGE)
    said = words(app)
    assert app.query_params["job"] in (job.id, [job.id])
    (bar,) = app.get("progress")
    assert bar.proto.text.replace("\\", "") == (
        "**3 sizes done** · now hidden size 512, training · about 30 s to 1 min 20 s left"
    )
    assert "hidden size 2,048 was skipped." in said
    assert "**So far:**" in said
    for curve in picture(app)["curves"]:
        assert [point[0] for point in curve["points"]] == [16, 256, 2048]
    assert not app.get("vega_lite_chart")  # the picture is the chart
    assert button(app, "Stop")


def test_points_that_take_turns_are_shown_with_the_pairs_that_they_have_by_now(world, open_page):
    world.has(CPU, GPU)
    turns = SweepProgress(done=0, total=57, alive=4, pairs=8, pairs_each=3, size_label="hidden size 512")
    job = job_of(world, ADAPTIVE, progress=dataclasses.replace(PROGRESS, sweep=turns))
    world.queue.files(job.id).keep_partial(measured(outcome="interrupted"))
    app = open_page(PAGE, job=job.id)
    said = words(app)
    (bar,) = app.get("progress")
    assert "**0 sizes done, 4 under way (8 of 12 pairs)**" in bar.proto.text
    assert "**So far:**" in said
    assert world.store.trials() == []


def test_a_sweep_without_rows_yet_has_no_answer_and_no_chart(world, open_page):
    world.has(CPU, GPU)
    job_of(world, ADAPTIVE, progress=None)
    app = open_page(PAGE)
    assert button(app, "Stop")
    assert "So far" not in words(app)
    assert not alts(app)


def test_stop_takes_a_waiting_sweep_out_of_the_queue(world, open_page):
    world.has(CPU, GPU)
    job = world.submit(ADAPTIVE)
    app = open_page(PAGE, job=job.id)
    checked(button(app, "Stop").click().run())
    assert world.queue.job(job.id).state == "stopped"
    assert "Stopped before it began." in words(checked(app.run()))


@pytest.mark.parametrize("state", ["failed", "stopped", "crashed"])
def test_a_sweep_that_did_not_finish_says_why_shows_what_it_had_and_goes_on(world, open_page, state):
    world.has(CPU, GPU)
    kept = world.keep(measured(sizes=(16, 256, 2048)))
    job = world.end(job_of(world, ADAPTIVE, kept=kept), state=state, message="It was ended after 3 points.")
    app = open_page(PAGE, job=job.id)
    assert "It was ended after 3 points." in words(app)
    assert len(table(app, "Verdict")) == 3
    checked(button(app, "Run again (continues)").click().run())
    again = world.queue.jobs()[-1]
    assert again.id != job.id
    assert again.sweep == job.sweep


def test_a_link_to_a_sweep_alone_sets_the_controls_as_it_was_asked_for(world, open_page):
    world.has(CPU, GPU)
    kept = world.keep(measured(batch_size=512))
    axis = Axis.from_range("hidden_size", 16, 512)
    asked = dataclasses.replace(ADAPTIVE, point=Point(hidden_size=16, batch_size=512), axes=(axis,), adaptive=False)
    job = world.end(job_of(world, asked, kept=kept), state="crashed", message="Killed.")
    app = open_page(PAGE, job=job.id)
    assert (control(app, "batch_size").value, control(app, "hidden_size_range").value) == (512, (16, 512))
    assert (control(app, "adaptive").value, control(app, "fair").value) == (False, False)
    assert control(open_page(PAGE, job=job.id, epochs="5"), "batch_size").value == 64


def test_who_asks_keeps_the_controls_as_they_stand(world, open_page):
    world.has(CPU, GPU)
    app = open_page(PAGE)
    before = {key: control(app, key).value for key in ("contenders", "fair", "adaptive", "hidden_size_range")}
    checked(button(app, "Find the crossover").click().run())
    assert world.queue.jobs()
    assert {key: control(app, key).value for key in before} == before


def test_a_finished_sweep_shows_its_whole_answer(world, open_page):
    world.has(CPU, GPU)
    kept = world.keep(measured(third=True))
    asked = dataclasses.replace(ADAPTIVE, contenders=(Contender(), Contender(threads=1), Contender(device="cuda:0")))
    job = world.end(job_of(world, asked, kept=kept), state="finished")
    app = open_page(PAGE, job=job.id)
    assert "GPU (NVIDIA Test GPU)" in app.success[0].value.replace("\\", "")
    both = [column for column in table(app, "Costs to include") if column != "Costs to include"]
    assert both == ["GPU against CPU", "GPU against 1 CPU thread"]
    assert "python -m core sweep" in words(app)
    assert "--axis hidden_size --range 16:2048 --adaptive" in words(app)
    assert "hidden size 2,048 was skipped." in words(app)
    assert "SVG picture" in [found.label for found in app.get("download_button")]
    checked(button(app, "Measure again").click().run())
    assert world.queue.jobs()[-1].fresh


def grid_rows():
    return [*measured(batch_size=32), *measured(batch_size=64)]


def test_a_grid_has_a_map_and_a_table_by_epoch_time(world, open_page):
    world.has(CPU, GPU)
    kept = world.keep(grid_rows())
    job = world.end(job_of(world, GRID, kept=kept), state="finished")
    app = open_page(PAGE, job=job.id)
    assert {"CPU", "GPU"} <= set(chart_data(app, "Map of the faster device")["winner"])
    assert alts(app)[0] == "Map of the faster device"
    assert "not measured" not in set(chart_data(app, "Map of the faster device")["winner"])
    listed = table(app, "Epoch (s)")
    assert len(listed) == len(kept)
    assert listed["Epoch (s)"].is_monotonic_increasing
    assert set(listed["Batch size"]) == {32, 64}


def test_a_grid_that_is_stored_as_a_whole_is_answered_at_once_and_its_link_shows_it_again(world, open_page):
    world.has(CPU, GPU)
    world.keep(grid_rows())
    link = {
        "hidden_size_range": ["16", "2048"], "also": ["batch_size"], "batch_size_values": ["32", "64"], "fair": "false",
    }  # fmt: skip
    asked = dataclasses.replace(GRID, axes=(Axis.from_range("hidden_size", 16, 2_048), GRID.axes[1]))
    for size in set(asked.axes[0].values) - set(TIMES):
        for batch_size in (32, 64):
            point = Point(hidden_size=int(size), batch_size=batch_size)
            world.keep(rows.run(run_id=f"{batch_size:04x}{int(size):08x}", point=point, pairs=6))
    app = open_page(PAGE, **link)
    checked(button(app, "Find the crossover").click().run())
    assert world.queue.jobs() == []
    assert app.query_params["sweep"] in (asked.id, [asked.id])
    assert "Measured before, on" in words(app)
    fresh = open_page(PAGE, **link, sweep=asked.id)
    assert "Map of the faster device" in alts(fresh)


def test_a_link_to_a_sweep_whose_settings_were_changed_says_so(world, open_page):
    world.has(CPU, GPU)
    job = world.run(ADAPTIVE)
    app = open_page(PAGE, sweep="0" * 16)
    assert "does not name a sweep" in words(app)
    checked(button(app, "Watch it").click().run())
    assert app.query_params["job"] == job.id


def test_a_job_of_one_size_or_of_many_is_shown_at_either_address_and_sets_how_many(world, open_page):
    world.has(CPU, GPU)
    for asked, sizes in ((rows.EXPERIMENT, "one"), (ADAPTIVE, "range")):
        job = world.submit(asked)
        for address in (PAGE, "/compare"):
            app = open_page(address, job=job.id)
            assert "in the queue" in words(app)
            assert app.session_state["sizes"] == sizes


def test_what_a_file_says_is_never_markup(world, open_page):
    world.has(CPU)
    evil = "![x](http://evil.example/x.png) <b>:red[bold]</b> $x$"
    world.keep(measured(device_name=evil, cpu_name=evil))
    app = open_page(PAGE, study=queries.list_study_lines()[0].id)
    for kind in ("markdown", "caption", "warning", "info", "success"):
        for element in getattr(app, kind):
            assert "](http" not in element.value
            assert "<b>" not in element.value
            assert ":red[" not in element.value
