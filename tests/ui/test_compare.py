"""The Compare page against real folders: nothing stored, rows stored, a running and an ended job."""

import dataclasses
import re

import pytest

from core.jobs import process
from core.jobs.worker_file import Serving
from core.progress import ContenderProgress, Progress
from core.question.experiment import Contender, Experiment, Point, titled
from core.results.schema import COLUMNS
from pages.shared.form import controls
from tests import rows
from tests.ui.conftest import CPU, GPU, HINT, checked, words
from tests.ui.find import alts, button, control, drawn


def test_before_the_machine_is_known_the_cost_is_shown_and_what_is_waited_for(world, open_page):
    app = open_page()
    assert "26,122" in words(app)
    assert any("Looking at" in str(box.value) for box in app.selectbox)
    world.queue.worker_file.take(Serving(process=process.this()))
    assert "PyTorch is being loaded." in words(checked(app.run()))


def test_run_can_be_pressed_before_the_machine_is_known_and_begins_once_it_is(world, open_page):
    app = open_page(hidden_size="256")
    checked(button(app, "Run").click().run())
    assert "It begins as soon as the devices of this machine are known." in words(app)
    assert world.queue.jobs() == []
    world.has(CPU, GPU)
    checked(app.run())
    (job,) = world.queue.jobs()
    assert job.experiment.point.hidden_size == 256
    assert list(map(str, job.experiment.contenders)) == ["cpu", "cuda:0"]
    checked(app.run())
    assert len(world.queue.jobs()) == 1


def test_a_job_that_waits_for_torch_says_how_long_that_took_last_time(world, open_page):
    world.has(CPU, GPU)
    known = world.queue.worker_file.machine
    world.queue.worker_file.report(dataclasses.replace(known, loading_s=2.5), process.this())
    world.queue.worker_file.take(Serving(process=process.this()))
    assert "PyTorch is being loaded, which took 2.50 s last time." in words(open_page(job=world.submit().id))


def test_without_an_accelerator_one_thread_meets_all_of_them_and_the_page_says_what_is_missing(world, open_page):
    world.has(CPU)
    app = open_page()
    assert control(app, "devices").value == ["cpu@1", "cpu@4"]
    assert HINT in words(app)
    assert "With an accelerator" in words(app)
    assert not button(app, "Run").disabled


THREADS = tuple(map(Contender.parse, ("cpu@1", "cpu@4")))


def test_a_page_that_is_asked_nothing_begins_with_a_size_at_which_threads_matter(world, open_page):
    app = open_page()
    assert control(app, "hidden_size").value == 128
    world.has(CPU)
    app = checked(app.run())
    assert control(app, "hidden_size").value == 1024
    assert app.query_params["hidden_size"] == "1024"
    checked(button(app, "Run").click().run())
    asked = Experiment(point=Point(hidden_size=1024), contenders=THREADS, whole=False)
    assert world.queue.jobs()[0].asked == asked


def test_where_threads_do_not_matter_at_that_size_the_page_begins_with_a_larger_one(world, open_page):
    world.has(CPU)
    point = Point(hidden_size=1024)
    world.keep(rows.run({"cpu@1": 1e-3, "cpu@4": 1e-3}, point=point))
    assert control(open_page(), "hidden_size").value == 2048


@pytest.mark.parametrize(("link", "size"), [({"depth": "3"}, 128), ({"text": "Try it"}, 128), ({"lock": "all"}, 128)])
def test_a_page_that_is_asked_something_keeps_the_usual_size(world, open_page, link, size):
    world.has(CPU)
    assert control(open_page(**link), "hidden_size").value == size


def test_a_size_that_was_set_before_the_machine_was_known_stays(world, open_page):
    app = open_page()
    checked(control(app, "hidden_size").set_value(256).run())
    world.has(CPU)
    assert control(checked(app.run()), "hidden_size").value == 256


@pytest.mark.parametrize("devices", [(CPU,), (CPU, GPU)])
@pytest.mark.parametrize(("page", "key"), [("compare", "devices"), ("crossover", "contenders")])
def test_every_contender_that_is_offered_can_be_chosen_and_is_asked_for(world, open_page, devices, page, key):
    world.has(*devices)
    app = open_page(f"pages/{page}/{page}.py", **({"axis": "depth"} if page == "crossover" else {}))
    others = ["cuda:0"] if len(devices) == 2 else ["cpu@4"]
    names = {titled(text): text for text in ("cpu", "cpu@1", *others)}
    assert set(control(app, key).options) == set(names)
    for text in names.values():
        other = next(name for name in names.values() if name != text)
        app = checked(control(app, key).set_value([text, other]).run())
        assert set(control(app, key).value) == {text, other}
        assert not app.error


def test_with_an_accelerator_the_cpu_meets_it(world, open_page):
    world.has(CPU, GPU)
    app = open_page()
    assert control(app, "devices").value == ["cpu", "cuda:0"]
    assert control(app, "hidden_size").value == 128
    assert HINT not in words(app)


@pytest.mark.parametrize(
    ("model", "sliders"),
    [
        ("linear", set()),
        ("mlp", {"hidden_size", "depth"}),
        ("doubling-mlp", {"depth"}),
        ("cnn", {"width"}),
    ],
)
def test_only_the_sizes_that_shape_a_model_have_a_slider(world, open_page, model, sliders):
    world.has(CPU)
    app = open_page(model=model)
    assert drawn(app) & {"hidden_size", "depth", "width"} == sliders


def test_loader_workers_are_asked_for_only_where_a_loader_runs(world, open_page):
    world.has(CPU)
    app = open_page()
    assert "loader_workers" not in drawn(app)
    assert "loader_workers" in drawn(checked(control(app, "data_path").set_value("loader").run()))


def test_moving_a_slider_changes_the_cost_at_once(world, open_page):
    world.has(CPU)
    app = open_page()
    checked(control(app, "hidden_size").set_value(1024).run())
    assert f"{Point(hidden_size=1024).network.parameters:,}" in words(app)


LINK = {
    "dataset": "signal",
    "samples": "12345",
    "model": "mlp",
    "hidden_size": "100",
    "depth": "3",
    "batch_size": "77",
    "epochs": "7",
    "learning_rate": "0.03",
    "data_path": "loader",
    "loader_workers": "2",
    "shuffle": "false",
    "seed": "42",
    "devices": ["cpu", "cpu@2"],
    "budget_s": "25",
}


def test_a_link_sets_every_control_also_to_values_between_the_stops(world, open_page):
    world.has(CPU)
    app = open_page(**LINK)
    shown = {name: control(app, name).value for name in LINK}
    assert {name: value if name == "devices" else str(value).lower() for name, value in shown.items()} == LINK
    assert not button(app, "Run").disabled


def test_a_number_that_a_link_spells_in_another_way_is_read_all_the_same(world, open_page):
    world.has(CPU)
    app = open_page(learning_rate="1e-2", budget_s="30.0")
    assert control(app, "learning_rate").value == 0.01
    assert control(app, "budget_s").value == 30


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"epochs": "0"}, "Epochs: 0 is not possible, it must be a whole number between 1 and 10,000."),
        ({"epochs": "many"}, "Epochs: 'many' is not possible, it must be a whole number."),
        ({"learning_rate": "nan"}, "Learning rate: nan is not possible"),
        ({"dataset": "cifar"}, "Data set: 'cifar' is not possible, it must be one of disc,"),
        ({"batch_size": "4096"}, "Batch size: 4,096 is not possible, it must be at most the 1,257"),
        ({"budget_s": "1e9"}, "Time budget: 1,000,000,000.0 is not possible"),
        ({"devices": ["toaster"]}, "'toaster' is not possible"),
        ({"devices": ["cpu", "cuda:0"]}, "The GPU is not on this machine: PyTorch sees the CPU."),
    ],
)
def test_a_link_that_asks_for_what_is_not_allowed_gets_one_sentence_and_nothing_runs(world, open_page, link, sentence):
    world.has(CPU)
    app = open_page(**link)
    assert [sentence in error.value.replace("\\", "") for error in app.error] == [True]
    assert button(app, "Run").disabled
    assert world.queue.jobs() == []


def test_the_fault_of_a_link_stays_until_the_user_takes_over(world, open_page):
    world.has(CPU)
    app = open_page(epochs="0")
    assert checked(app.run()).error
    checked(button(app, "Use the settings shown").click().run())
    assert not app.error
    assert not button(app, "Run").disabled


def test_a_batch_larger_than_the_data_is_refused_in_one_sentence(world, open_page):
    world.has(CPU)
    app = open_page()
    checked(control(app, "batch_size").set_value(4096).run())
    assert [error.value.replace("\\", "") for error in app.error] == [
        "Batch size: 4,096 is not possible, it must be at most the 1,257 training samples."
    ]
    assert button(app, "Run").disabled


def test_no_device_is_refused_in_one_sentence(world, open_page):
    world.has(CPU)
    app = open_page()
    checked(control(app, "devices").set_value([]).run())
    assert "between 1 and 8 different devices" in words(app)
    assert button(app, "Run").disabled


def test_run_queues_what_the_controls_say_and_shows_the_job(world, open_page):
    world.has(CPU)
    app = open_page(**LINK)
    checked(button(app, "Run").click().run())
    (job,) = world.queue.jobs()
    assert job.experiment.point == Point(
        dataset="signal", samples=12345, model="mlp", hidden_size=100, depth=3, batch_size=77, epochs=7,
        learning_rate=0.03, data_path="loader", loader_workers=2, shuffle=False, seed=42,
    )  # fmt: skip
    assert list(map(str, job.experiment.contenders)) == ["cpu", "cpu@2"]
    assert job.experiment.budget_s == 25
    assert app.query_params["job"] in (job.id, [job.id])
    assert "Place 1 in the queue" in words(app)


def test_the_order_of_clicking_devices_does_not_make_another_question(world, open_page):
    world.has(CPU, GPU)
    app = open_page()
    checked(control(app, "devices").set_value(["cuda:0", "cpu"]).run())
    checked(button(app, "Run").click().run())
    assert list(map(str, world.queue.jobs()[0].experiment.contenders)) == ["cpu", "cuda:0"]


def stored_run(world, **changes):
    """What the store knows about the settings that a fresh page shows on a machine with a GPU."""
    experiment = Experiment(point=controls.DEFAULTS, contenders=(Contender(), Contender(device="cuda:0")))
    return world.keep(rows.run(point=experiment.point, **changes))


def test_the_same_question_is_answered_from_the_store_and_can_be_measured_again(world, open_page):
    world.has(CPU, GPU)
    stored_run(world)
    app = open_page()
    checked(button(app, "Run").click().run())
    assert world.queue.jobs() == []
    assert "Measured before, on 21 November 2026, 09:30 UTC" in words(app)
    checked(button(app, "Measure again").click().run())
    (job,) = world.queue.jobs()
    assert job.fresh


def threads_run(world, **changes):
    """A run of one thread and of four, which other programs slowed down; without a verdict for that."""
    one, four = rows.run({"cpu@1": 1e-3, "cpu@4": 2e-3}, point=Point(hidden_size=256), **changes)
    return world.keep([one, dataclasses.replace(four, block_switches=(10_000,) * len(four.block_switches))])


def test_a_run_that_has_no_verdict_as_the_machine_was_busy_is_shown_and_not_served_as_the_answer(world, open_page):
    world.has(CPU)
    stored = threads_run(world)
    assert "too busy" in words(open_page(run=stored[0].run_id))
    app = open_page(hidden_size="256")
    checked(button(app, "Run").click().run())
    (job,) = world.queue.jobs()
    assert job.asked.point == Point(hidden_size=256)
    assert not job.fresh


@pytest.mark.parametrize(("link", "whole"), [({"whole": "true"}, True), ({"whole": "false"}, False), ({}, False)])
def test_the_whole_training_is_asked_for_by_a_switch_that_the_link_can_set(world, open_page, link, whole):
    world.has(CPU)
    app = open_page(hidden_size="256", **link)
    assert control(app, "whole").value is whole
    checked(button(app, "Run").click().run())
    assert world.queue.jobs()[0].asked.whole is whole


def test_a_run_that_ended_once_it_was_decided_answers_and_can_be_trained_to_the_end(world, open_page):
    world.has(CPU)
    point = Point(hidden_size=256)
    (first, _) = world.keep(rows.run({"cpu@1": 2e-3, "cpu@4": 1e-3}, point=point, pairs=12, outcome="timed"))
    app = open_page(hidden_size="256")
    checked(button(app, "Run").click().run())
    assert app.query_params["run"] == first.run_id
    assert world.queue.jobs() == []
    checked(button(app, "Train it to the end").click().run())
    assert world.queue.jobs()[0].asked == Experiment(point=point, contenders=THREADS)


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
    assert "The GPU trains" in said
    assert re.search(r"^## The GPU trains [\d.]+× as fast as the CPU$", said, re.MULTILINE)
    assert "95 % interval" in said
    assert "Time of a step by device" in alts(app)
    assert "launch overhead" in said
    assert "All 270 test items got the same prediction from both" in said
    assert "start-up" in said
    assert "python -m core run --dataset digits" in said
    assert f"run={rows.RUN_ID}" in said
    charts = [chart.proto.alt for chart in app.get("vega_lite_chart")]
    assert "Training loss against time of training" in charts
    assert "Confusion matrix of GPU" in charts
    assert {found.label for found in app.get("download_button")} == {
        "2 rows as parquet",
        "2 rows as csv",
        "Script that repeats it",
    }


def test_a_result_says_which_settings_it_does_not_belong_to_once_one_is_moved_and_sets_them_back(world, open_page):
    world.has(CPU, GPU)
    stored_run(world)
    app = open_page(run=rows.RUN_ID)
    assert "ask for something else" not in words(app)
    checked(control(app, "batch_size").set_value(256).run())
    assert "The settings ask for something other than what is shown: batch size 256, not 64." in words(app)
    checked(button(app, "Set them as shown").click().run())
    assert control(app, "batch_size").value == 64
    assert "ask for something else" not in words(app)


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
    assert "whole epoch" in words(app)
    assert "Threads tried for CPU, with their step: 1: 1.00 ms, 2: 707 µs, 4: 500 µs; 4 took the least." in words(app)


def test_a_run_from_another_machine_is_shown_but_not_offered_again(world, open_page):
    world.has(CPU)
    stored_run(world, machine_id="0" * 12)
    app = open_page(run=rows.RUN_ID)
    assert "Measured on another machine" in words(app)
    assert "Measure again" not in [found.label for found in app.button]


def test_a_run_of_one_device_has_figures_and_no_verdict(world, open_page):
    world.has(CPU)
    world.keep(rows.run({"cpu": 1e-3}))
    app = open_page(run=rows.RUN_ID)
    assert "as fast as" not in words(app)
    assert app.dataframe[0].value.iloc[0]["Device"] == "CPU"


def test_rows_of_every_outcome_can_be_shown(world, open_page):
    world.has(CPU)
    empty = {"confusion": (), "predictions": b"", "loss": (), "loss_step": (), "busy_step_s": ()}
    parts = {f"breakdown_{part}_s": () for part in ("loader", "transfer", "forward", "backward", "optimizer")}
    no_blocks = {column.name: () for column in COLUMNS if column.name.startswith("block_")}
    for index, outcome in enumerate(("budget_spent", "diverged", "stopped", "interrupted", "out_of_memory")):
        run_id, blocks = f"{index:012x}", no_blocks if outcome == "out_of_memory" else {}
        world.keep(rows.run(run_id=run_id, outcome=outcome, message="It ended.", **empty, **parts, **blocks))
        assert "It ended." in words(open_page(run=run_id))
    world.keep(rows.run(run_id="f" * 12, message="What it learned is not known: out of memory.", **empty, **parts))
    assert "What it learned is not known" in words(open_page(run="f" * 12)), "it was completed all the same"


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
    assert "There is no job" in words(open_page(job="0" * 20 + "-abcdef"))


def test_a_name_that_is_none_is_as_good_as_no_name(world, open_page):
    world.has(CPU)
    assert "How this works" in words(open_page(run="<script>", job="../../etc/passwd"))


PROGRESS = Progress(
    phase="training",
    elapsed_s=3.0,
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
    assert [bar.proto.text for bar in app.get("progress")] == ["**Training** · at most 950 ms left"]
    assert "**CPU** · step 950 of 1,900 · 1.00 ms a step · loss 1.00 · 2 threads" in said
    assert "**GPU** · step 0 of 1,900" in said
    assert [chart.proto.alt for chart in app.get("vega_lite_chart")] == ["Training loss so far"]
    assert app.query_params["job"] in (job.id, [job.id])


def test_settings_fold_to_a_line_while_something_is_measured_and_are_there_all_the_same(world, open_page):
    world.has(CPU, GPU)
    job = world.run(progress=PROGRESS)
    app = open_page(job=job.id)
    assert not app.toggle(key="unfold_asked").value
    (line,) = (said.value.replace("\\", "") for said in app.caption if "hidden size 128" in said.value)
    assert line.endswith("CPU, GPU")
    assert control(app, "hidden_size").value


def test_who_comes_with_settings_is_not_shown_another_measurement_unasked(world, open_page):
    world.has(CPU, GPU)
    job = world.run(progress=PROGRESS)
    app = open_page(hidden_size="32")
    assert not button(app, "Run").disabled
    assert "A measurement is under way." in words(app)
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


def test_what_was_measured_before_a_crash_is_shown(world, open_page):
    world.has(CPU, GPU)
    trials = world.keep(rows.run(outcome="interrupted", message="Killed."))
    ids = tuple(trial.trial_id for trial in trials)
    job = world.end(world.run(), state="crashed", message="Killed.", run_ids=(rows.RUN_ID,), trial_ids=ids)
    app = open_page(job=job.id)
    assert "The GPU trains" in words(app)


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
    assert "The GPU trains" in words(app)
    assert len(app.get("download_button")) == 3


def test_a_job_that_finished_becomes_a_link_to_its_run(world, open_page):
    world.has(CPU, GPU)
    trials = world.keep(rows.run())
    ids = tuple(trial.trial_id for trial in trials)
    job = world.end(world.run(), state="finished", run_ids=(rows.RUN_ID,), trial_ids=ids)
    app = open_page(job=job.id)
    assert app.query_params["run"] in (rows.RUN_ID, [rows.RUN_ID])
    assert "job" not in app.query_params
    assert "The GPU trains" in words(app)


def test_a_store_that_cannot_be_written_is_said_before_anything_is_measured(world, open_page):
    world.has(CPU)
    world.store.folder.write_text("in the way")
    app = open_page()
    checked(button(app, "Run").click().run())
    assert f"The store {world.store.folder} cannot be" in words(app)
    assert world.queue.jobs() == []


def test_two_rows_of_one_device_in_a_run_are_shown(world, open_page):
    world.has(CPU, GPU)
    world.keep(
        [dataclasses.replace(row, trial_id=f"{rows.RUN_ID}-{place}") for place, row in enumerate(rows.run() * 2)]
    )
    app = open_page(run=rows.RUN_ID)
    offered = [found.label for found in app.button if found.label.startswith("Measure what would help")]
    assert len(offered) == 4
