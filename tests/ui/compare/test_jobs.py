"""Runs on the Compare page, waiting, running and ended."""

import dataclasses

import pytest

from core.progress import ContenderProgress, Progress
from core.question.experiment import Point
from tests import rows
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import button, control

PROGRESS = Progress(
    phase="training",
    elapsed_s=12.0,
    budget_s=60.0,
    pairs=4,
    contenders=(
        ContenderProgress(
            contender="cpu", steps=950, total_steps=1900, step_s=1e-3, threads=2,
            loss_steps=(100, 200), losses=(1.5, 1.0), loss_seconds=(0.1, 0.2),
        ),
        ContenderProgress(contender="cuda:0", total_steps=1900),
    ),
)  # fmt: skip


def test_opening_the_page_while_something_is_measured_shows_it(world, open_page):
    world.has(CPU, GPU)
    job = world.run(progress=PROGRESS)
    app = open_page()
    said = words(app).replace("\\", "")
    assert [bar.proto.text for bar in app.get("progress")] == ["**Training** · at most 1 s left"]
    assert "**CPU** · step 950 of 1,900 · 1.00 ms a step · loss 1.00 · 2 threads" in said
    assert "**GPU** · step 0 of 1,900" in said
    assert [chart.proto.alt for chart in app.get("vega_lite_chart")] == ["Training loss so far"]
    assert app.query_params["job"] in (job.id, [job.id])


def test_no_chart_is_drawn_in_the_first_seconds_because_many_runs_end_by_then(world, open_page):
    world.has(CPU, GPU)
    world.run(progress=dataclasses.replace(PROGRESS, elapsed_s=9.0))
    assert not open_page().get("vega_lite_chart")


def test_what_is_measured_is_said_in_a_line_where_the_settings_fold_and_they_are_there_all_the_same(world, open_page):
    world.has(CPU, GPU)
    job = world.run(progress=PROGRESS)
    app = open_page(job=job.id)
    assert not app.toggle(key="unfold").value
    (line,) = {said.value.replace("\\", "") for said in app.caption if "hidden size 128" in said.value}
    assert line.endswith("CPU, GPU")
    assert control(app, "hidden_size").value


def test_who_comes_with_settings_is_not_shown_another_measurement_unasked(world, open_page):
    world.has(CPU, GPU)
    job = world.run(progress=PROGRESS)
    app = open_page(hidden_size="32")
    assert not button(app, "Run").disabled
    assert "A measurement is running." in words(app)
    checked(button(app, "Watch it").click().run())
    assert app.query_params["job"] in (job.id, [job.id])


def test_the_speedup_so_far_stands_with_its_interval_while_it_runs(world, open_page):
    world.has(CPU, GPU)
    job = world.run(progress=PROGRESS)
    world.queue.files(job.id).keep_partial(rows.run(outcome="interrupted"))
    (figure,) = open_page(job=job.id).metric
    assert figure.label == "Speedup of the GPU so far"
    assert figure.value.endswith("×")
    assert figure.delta.startswith("95 %: ")
    assert figure.delta.endswith(" pairs")


def test_stop_takes_a_waiting_job_out_of_the_queue(world, open_page):
    world.has(CPU, GPU)
    job = world.submit()
    app = open_page(job=job.id)
    checked(button(app, "Stop").click().run())
    assert world.queue.job(job.id).state == "stopped"
    assert "Stopped before it began." in words(checked(app.run()))


def test_the_second_in_the_queue_sees_its_place(world, open_page):
    world.has(CPU, GPU)
    world.run(progress=PROGRESS)
    other = dataclasses.replace(rows.EXPERIMENT, budget_s=30)
    third = dataclasses.replace(rows.EXPERIMENT, budget_s=20)
    world.submit(other)
    assert "Place 2 in the queue" in words(open_page(job=world.submit(third).id))


@pytest.mark.parametrize("state", ["failed", "stopped", "crashed"])
def test_a_job_that_did_not_finish_says_why_and_can_be_run_again(world, open_page, state):
    world.has(CPU, GPU)
    job = world.end(world.run(), state=state, message="The measuring process was killed after 12 pairs.")
    app = open_page(job=job.id)
    assert "The measuring process was killed after 12 pairs." in words(app)
    checked(button(app, "Run again").click().run())
    again = world.queue.jobs()[-1]
    assert again.id != job.id
    assert again.experiment == job.experiment


def test_a_link_to_a_job_alone_sets_the_controls_as_it_was_asked_for(world, open_page):
    world.has(CPU, GPU)
    asked = dataclasses.replace(rows.EXPERIMENT, point=Point(hidden_size=512, batch_size=32))
    job = world.end(world.run(asked), state="crashed", message="Killed.")
    app = open_page(job=job.id)
    assert (control(app, "hidden_size").value, control(app, "batch_size").value) == (512, 32)
    assert control(open_page(job=job.id, batch_size="256"), "hidden_size").value == 128


def test_what_was_measured_before_a_crash_is_shown(world, open_page):
    world.has(CPU, GPU)
    trials = world.keep(rows.run(outcome="interrupted", message="Killed."))
    ids = tuple(trial.trial_id for trial in trials)
    job = world.end(world.run(), state="crashed", message="Killed.", run_ids=(rows.RUN_ID,), trial_ids=ids)
    app = open_page(job=job.id)
    assert "The GPU is" in words(app)


def test_rows_that_the_store_refused_are_shown_with_the_reason_and_can_be_downloaded(world, open_page):
    world.has(CPU, GPU)
    trials = rows.run()
    job = world.run()
    world.queue.files(job.id).keep_unsaved(trials)
    ids = tuple(trial.trial_id for trial in trials)
    refused = {"message": "The store did not take the rows.", "unsaved": True}
    world.end(job, state="finished", run_ids=(rows.RUN_ID,), trial_ids=ids, **refused)
    app = open_page(job=job.id)
    assert "The store did not take the rows." in words(app)
    assert "The GPU is" in words(app)
    assert len(app.get("download_button")) == 3


def test_a_job_that_finished_becomes_a_link_to_its_run(world, open_page):
    world.has(CPU, GPU)
    trials = world.keep(rows.run())
    ids = tuple(trial.trial_id for trial in trials)
    job = world.end(world.run(), state="finished", run_ids=(rows.RUN_ID,), trial_ids=ids)
    app = open_page(job=job.id)
    assert app.query_params["run"] in (rows.RUN_ID, [rows.RUN_ID])
    assert "job" not in app.query_params
    assert "The GPU is" in words(app)


def test_a_store_that_cannot_be_written_is_said_before_anything_is_measured(world, open_page):
    world.has(CPU)
    world.store.folder.write_text("in the way")
    app = open_page()
    checked(button(app, "Run").click().run())
    assert f"The store {world.store.folder} cannot be" in words(app)
    assert world.queue.jobs() == []
