"""The settings of the Compare page: machines, links, good and bad, and what pressing Run asks."""

import dataclasses

import pytest

from core.jobs import process
from core.jobs.machine import Serving
from core.question.experiment import Experiment, Point, display_name
from pages.explore.settings import FIRST
from tests.ui import every_setting
from tests.ui.conftest import CPU, GPU, HINT, checked, words
from tests.ui.find import THREADS, button, control, drawn


def test_before_the_machine_is_known_the_cost_is_shown_and_what_is_waited_for(world, open_page):
    app = open_page(model="mlp")
    assert "26,122" in words(app)
    assert any("Looking at" in str(box.value) for box in app.selectbox)
    world.queue.worker_file.take(Serving(process=process.current_process()))
    assert "PyTorch is being loaded." in words(checked(app.run()))


def test_run_can_be_pressed_before_the_machine_is_known_and_begins_once_it_is(world, open_page):
    app = open_page(hidden_size="256")
    checked(button(app, "Run").click().run())
    assert "It starts as soon as this machine's devices are known." in words(app)
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
    world.queue.worker_file.report(dataclasses.replace(known, loading_s=2.5), process.current_process())
    world.queue.worker_file.take(Serving(process=process.current_process()))
    assert "PyTorch is being loaded, which took 2.50 s last time." in words(open_page(job=world.submit().id))


def test_without_an_accelerator_one_thread_meets_all_of_them_and_the_page_says_what_is_missing(world, open_page):
    world.has(CPU)
    app = open_page(model="mlp")
    assert control(app, "devices").value == ["cpu@1", "cpu@4"]
    assert HINT in words(app)
    assert "With a GPU" in words(app)
    assert not button(app, "Run").disabled


def test_a_page_that_is_asked_nothing_begins_with_the_question_of_the_first_tutorial(world, open_page):
    app = open_page()
    assert (control(app, "dataset").value, control(app, "depth").value) == ("disc", 11)
    world.has(CPU)
    app = checked(app.run())
    assert control(app, "depth").value == 11
    assert {"dataset", "model", "depth", "batch_size", "shuffle"} <= set(app.query_params)
    checked(button(app, "Run").click().run())
    (job,) = world.queue.jobs()
    assert job.question == Experiment(point=FIRST, contenders=THREADS, whole=False)
    assert not app.error


@pytest.mark.parametrize(("link", "size"), [({"depth": "3"}, 128), ({"text": "Try it"}, 128), ({"lock": "all"}, 128)])
def test_a_page_that_is_asked_something_keeps_the_usual_size(world, open_page, link, size):
    world.has(CPU)
    assert control(open_page(**link), "hidden_size").value == size


def test_a_size_that_was_set_before_the_machine_was_known_stays(world, open_page):
    app = open_page(model="mlp")
    checked(control(app, "hidden_size").set_value(256).run())
    world.has(CPU)
    assert control(checked(app.run()), "hidden_size").value == 256


@pytest.mark.parametrize("devices", [(CPU,), (CPU, GPU)])
@pytest.mark.parametrize(("page", "key"), [("compare", "devices"), ("crossover", "contenders")])
def test_every_contender_that_is_offered_can_be_chosen_and_is_asked_for(world, open_page, devices, page, key):
    world.has(*devices)
    app = open_page(f"/{page}", **({"axis": "depth"} if page == "crossover" else {}))
    others = ["cuda:0"] if len(devices) == 2 else ["cpu@4"]
    names = {display_name(text): text for text in ("cpu", "cpu@1", *others)}
    assert set(control(app, key).options) == set(names)
    for text in names.values():
        other = next(name for name in names.values() if name != text)
        app = checked(control(app, key).set_value([text, other]).run())
        assert set(control(app, key).value) == {text, other}
        assert not app.error


def test_with_an_accelerator_the_cpu_meets_it(world, open_page):
    world.has(CPU, GPU)
    app = open_page(model="mlp")
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
    app = open_page(model="mlp")
    assert "loader_workers" not in drawn(app)
    assert "loader_workers" in drawn(checked(control(app, "data_path").set_value("loader").run()))


def test_moving_a_slider_changes_the_cost_at_once(world, open_page):
    world.has(CPU)
    app = open_page(model="mlp")
    checked(control(app, "hidden_size").set_value(1024).run())
    assert f"{Point(hidden_size=1024).network.parameters:,}" in words(app)


LINK = {**every_setting.LINK, "devices": ["cpu", "cpu@2"], "budget_s": "25"}


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
        ({"epochs": "0"}, "Epochs must be a whole number between 1 and 10,000 (got 0)."),
        ({"epochs": "many"}, "Epochs must be a whole number (got 'many')."),
        ({"learning_rate": "nan"}, "(got nan)"),
        ({"dataset": "cifar"}, "Data set must be one of Disc (synthetic),"),
        ({"batch_size": "4096"}, "Batch size must be at most the 1,257"),
        ({"budget_s": "1e9"}, "(got 1,000,000,000.0)"),
        ({"devices": ["toaster"]}, "(got 'toaster')"),
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
    app = open_page(model="mlp")
    checked(control(app, "batch_size").set_value(4096).run())
    assert [error.value.replace("\\", "") for error in app.error] == [
        "Batch size must be at most the 1,257 training samples (got 4,096)."
    ]
    assert button(app, "Run").disabled


def test_no_device_is_refused_in_one_sentence(world, open_page):
    world.has(CPU)
    app = open_page(model="mlp")
    checked(control(app, "devices").set_value([]).run())
    assert "between 1 and 8 different devices" in words(app)
    assert button(app, "Run").disabled


def test_run_queues_what_the_controls_say_and_shows_the_job(world, open_page):
    world.has(CPU)
    app = open_page(**LINK)
    checked(button(app, "Run").click().run())
    (job,) = world.queue.jobs()
    assert job.experiment.point == every_setting.POINT
    assert list(map(str, job.experiment.contenders)) == ["cpu", "cpu@2"]
    assert job.experiment.budget_s == 25
    assert app.query_params["job"] in (job.id, [job.id])
    assert "Place 1 in the queue" in words(app)


def test_the_order_of_clicking_devices_does_not_make_another_question(world, open_page):
    world.has(CPU, GPU)
    app = open_page(model="mlp")
    checked(control(app, "devices").set_value(["cuda:0", "cpu"]).run())
    checked(button(app, "Run").click().run())
    assert list(map(str, world.queue.jobs()[0].experiment.contenders)) == ["cpu", "cuda:0"]


def test_the_settings_are_said_in_a_line_for_a_phone_where_they_are_folded(world, open_page):
    world.has(CPU, GPU)
    assert "Digits · Fully connected · CPU, GPU" in words(open_page(model="mlp"))
    laned = words(open_page(devices=["cpu", "cuda:0+compiled10"]))
    assert "Digits · Fully connected · CPU; GPU, compiled, 10 steps a call" in laned
    fit = words(open_page(model="xgboost", dataset="signal", devices=["cpu@1", "cpu"]))
    assert fit.count("XGBoost") == 1
    assert "1 CPU thread" in fit


NINE = [f"cpu@1+{lane}" for lane in ("fused", "kept", "foreach", "bf16")]
NINE += ["cpu", "cpu@1", "cpu+fused", "cpu+kept", "cpu+foreach"]
SIX = ["depth", "batch_size", "samples", "learning_rate", "parameters", "loader_workers"]


@pytest.mark.parametrize(
    ("page", "link", "said"),
    [
        ("/compare", {"devices": NINE}, "The link names 9 devices; the first 8 are chosen."),
        ("/crossover", {"contenders": NINE}, "The link names 9 devices; the first 8 are chosen."),
        ("/crossover", {"also": SIX}, "The link names 6 settings to vary; the first "),
    ],
)
def test_a_link_that_names_more_than_a_control_takes_gets_the_first_of_them_and_a_sentence(
    world, open_page, page, link, said
):
    world.has(CPU)
    assert said in words(open_page(page, **link))


def test_the_eight_devices_that_a_link_with_nine_leaves_can_be_measured(world, open_page):
    world.has(CPU)
    app = open_page("/compare", devices=NINE)
    assert control(app, "devices").value == NINE[:8]
    checked(button(app, "Run").click().run())
    (job,) = world.queue.jobs()
    assert len(job.experiment.contenders) == 8


def test_one_step_per_epoch_is_one_step(world, open_page):
    world.has(CPU)
    assert "**1** step per epoch" in words(open_page(dataset="disc", model="mlp", samples="100", batch_size="100"))
