"""The Tutorials page against real folders: before anything, while it runs, with rows, and rows from elsewhere."""

import dataclasses

import pytest

from core.files import sources
from core.jobs import process
from core.progress import Progress, SweepProgress
from core.question.experiment import Point
from core.question.presets import PRESETS, SCALES
from core.results import exhibits
from pages.tutorials import view
from tests import exhibited
from tests.studies import measured
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.drawn import texts
from tests.ui.find import alts, button

PAGE = "pages/tutorials/tutorials.py"
PAIR = ("cpu", "cuda:0")


def kept(world, name="signal", **changes):
    """Rows of a tutorial's sweep, stored."""
    return world.keep(measured(name, **changes))


def clock_of(name, scale="class", **changes):
    """The exhibit of the tutorial's own clock."""
    shown = exhibited.clock({"ours": 1.0, name: 1.7}, point=PRESETS[name].point_at_scale(scale), **changes)
    budget_s = view.CLOCK_S[scale]
    return dataclasses.replace(shown, demonstration=dataclasses.replace(shown.demonstration, budget_s=budget_s))


def expected(app, name="signal"):
    """The page after the second thing was expected."""
    radio = app.radio(key=f"predict_{name}")
    return checked(radio.set_value(radio.options[1]).run())


def skipped(app):
    """The page after who looks at it has skipped what is to be done before."""
    return checked(button(app, "Skip").click().run())


@pytest.mark.parametrize("name", PRESETS)
def test_each_tutorial_says_its_claim_and_asks_before_it_shows(world, open_page, name):
    world.has(CPU, GPU)
    app = open_page(PAGE, tutorial=name)
    assert view.state_claim(PRESETS[name]) not in words(app), "it would answer the question"
    assert not any("Published:" in str(part.value) for part in app.markdown)
    assert not button(app, "Run").disabled
    app = expected(app, name)
    assert "Run it first" in words(app)
    assert "Published: the GPU" not in words(app), (
        "what comes of it stays shut until something was run, or that is skipped"
    )
    app = words(skipped(app))
    assert "Published:" in app
    assert view.state_claim(PRESETS[name]) in app


@pytest.mark.parametrize(("name", "covered"), [("signal", True), ("disc", False), ("fashion-cnn", False)])
def test_the_published_picture_is_there_before_the_prediction_without_its_answer(world, open_page, name, covered):
    world.has(CPU, GPU)
    app = open_page(PAGE, tutorial=name)
    assert ("The GPU is covered until you predict" in words(app)) == covered
    assert "Sizes to train" in words(app)


def test_the_files_that_a_tutorial_needs_come_before_its_question(world, open_page):
    world.has(CPU, GPU)
    order = [drawn.text for drawn in texts(open_page(PAGE, tutorial="mnist-linear"))]
    question = view.TUTORIALS["mnist-linear"].question.text
    missing = next(place for place, text in enumerate(order) if "is not on this machine yet" in text)
    assert missing < order.index("Use digits instead, which need no download") < order.index(question)
    assert "or use digits" in order[missing]


def test_before_the_machine_is_known_it_can_be_read_and_not_run(world, open_page):
    app = open_page(PAGE)
    assert "Looking at this machine's devices" in app.selectbox[0].value
    assert button(app, "Run").disabled


def test_who_expects_nothing_can_see_it_all_the_same(world, open_page):
    world.has(CPU, GPU)
    app = skipped(open_page(PAGE))
    assert "Published:" in words(app)
    assert "You predicted" not in words(app)


def test_run_asks_for_the_sweep_and_for_the_tutorials_own_clock(world, open_page):
    world.has(CPU, GPU)
    checked(button(open_page(PAGE, tutorial="signal", devices=list(PAIR)), "Run").click().run())
    sweep, clock = world.queue.jobs()
    assert sweep.sweep.axes == PRESETS["signal"].class_axes
    assert sweep.sweep.point.samples == PRESETS["signal"].point_at_scale("class").samples
    assert clock.demonstration.recipes == ("ours", "signal")
    assert [str(contender) for contender in clock.demonstration.contenders] == list(PAIR)


def test_the_full_scale_asks_for_the_published_settings(world, open_page):
    world.has(CPU, GPU)
    checked(button(open_page(PAGE, tutorial="disc", scale="full"), "Run").click().run())
    job = world.queue.jobs()[0]
    assert job.sweep.axes == PRESETS["disc"].axes
    assert job.sweep.budget_s > 600


def test_a_tutorial_that_varies_nothing_is_one_training(world, open_page):
    world.has(CPU, GPU)
    checked(button(open_page(PAGE, tutorial="mnist-linear"), "Run").click().run())
    assert world.queue.jobs()[0].experiment.point == PRESETS["mnist-linear"].point_at_scale("class")


def test_one_device_is_too_few(world, open_page):
    world.has(CPU, GPU)
    app = open_page(PAGE, devices=["cpu"])
    assert "At least two devices are needed" in words(app)
    assert "Run" not in [found.label for found in app.button]


def test_published_figures_have_no_more_digits_than_were_published(world, open_page):
    world.has(CPU, GPU)
    kept(world)
    app = expected(open_page(PAGE, tutorial="signal"))
    assert "it is about 4.5× as fast." in words(app)
    assert "Published: the GPU is 4.5× as fast at a hidden size of 2,000 (± 0.5)." in words(app)
    assert app.dataframe[0].value["published: CPU x86_64"][0] == "3 min ± 15 s"
    assert "about 2× as fast." in words(skipped(open_page(PAGE, tutorial="fashion-cnn")))


def test_stored_rows_are_set_beside_what_was_published(world, open_page):
    world.has(CPU, GPU)
    kept(world)
    exhibits.add_exhibit(world.store.folder, clock_of("signal"))
    app = expected(open_page(PAGE, tutorial="signal"))
    assert alts(app) == ["Time of one training", "Speedup over the first device", "An epoch by each clock"]
    assert "Measured: The GPU (NVIDIA Test GPU) is faster than the CPU" in words(app)
    assert "“As the signal tutorial” says 1.70 ms, 1.70× Crossover's time." in words(app)
    assert (
        "You predicted: from hidden size 10 on. The measurement disagrees. The matching answer: from hidden size"
        in words(app)
    )
    assert "**Measured.** The GPU (NVIDIA Test GPU) is faster than the CPU" in words(app)
    app = checked(app.radio(key="predict_signal").set_value("from hidden size 1,000 on").run())
    assert "You predicted: from hidden size 1,000 on. You were right." in words(app)
    assert button(app, "Run again")


def test_other_rows_give_another_sentence(world, open_page):
    world.has(CPU, GPU)
    kept(world, gpu_s=1e-6)
    assert "at every size" in words(expected(open_page(PAGE, tutorial="signal")))


def test_run_again_measures_anew(world, open_page):
    world.has(CPU, GPU)
    kept(world)
    exhibits.add_exhibit(world.store.folder, clock_of("signal"))
    checked(button(open_page(PAGE, tutorial="signal"), "Run again").click().run())
    assert [job.fresh for job in world.queue.jobs()] == [True, True]


def test_what_is_stored_is_not_asked_for_again(world, open_page):
    world.has(CPU, GPU)
    kept(world)
    checked(button(open_page(PAGE, tutorial="signal"), "Run the rest").click().run())
    (job,) = world.queue.jobs()
    assert job.demonstration is not None


def test_while_it_runs_the_page_says_how_far_it_is(world, open_page):
    world.has(CPU, GPU)
    app = checked(button(open_page(PAGE, tutorial="signal"), "Run").click().run())
    progress = Progress(phase="training", sweep=SweepProgress(done=2, total=5, size_label="hidden size 100"))
    claimed = world.queue.claim(process.current_process())
    world.queue.report(dataclasses.replace(claimed, progress=progress))
    app = checked(app.run())
    assert "Part 1 of 2 · 2 of 5 points done, now hidden size 100" in app.get("progress")[0].proto.text
    assert "Run" not in [found.label for found in app.button]
    assert "Predict while it is measured." in words(app)
    assert "It is being measured. This pane then shows" in words(expected(app))


def test_stop_ends_every_part_of_the_task(world, open_page):
    world.has(CPU, GPU)
    app = checked(button(open_page(PAGE, tutorial="signal"), "Run").click().run())
    assert "Place 1 in the queue" in words(app)
    checked(button(app, "Stop").click().run())
    assert [job.state for job in world.queue.jobs()] == ["stopped", "stopped"]


def test_of_parts_that_were_stopped_together_the_one_that_had_begun_says_so(world, open_page):
    world.has(CPU, GPU)
    app = checked(button(open_page(PAGE, tutorial="signal"), "Run").click().run())
    claimed = world.queue.claim(process.current_process())
    checked(button(app, "Stop").click().run())
    world.queue.end(dataclasses.replace(claimed, state="stopped", message="Stopped after 2 of 5 points."))
    said = [warning.value for warning in checked(app.run()).warning]
    assert said == [r"Stopped after 2 of 5 points\."]


def test_a_training_that_could_not_be_run_says_why(world, open_page):
    world.has(CPU, GPU)
    app = checked(button(open_page(PAGE, tutorial="mnist-linear"), "Run").click().run())
    for job in world.queue.jobs():
        world.end(job, state="failed", message="MNIST is not on this machine.")
    shown = words(checked(app.run()))
    assert shown.count("MNIST is not on this machine.") == 1
    assert "Use digits instead," in [found.label[:19] for found in app.toggle]


def test_without_an_accelerator_recorded_rows_and_clocks_of_one_are_shown_and_marked(world, open_page):
    world.has(CPU)
    world.ship(measured("signal", machine_id="beefbeefbeef"))
    exhibits.add_exhibit(world.gallery.folder, clock_of("signal", machine_id="beefbeefbeef"))
    app = skipped(expected(open_page(PAGE, tutorial="signal")))
    shown = words(app)
    assert "Recorded on another machine (CPU: Test CPU, GPU: NVIDIA Test GPU" in shown
    assert "Published and recorded" in shown
    assert "**Recorded.** The GPU" in shown
    assert "**Measured.**" not in shown
    assert "Recorded: Its clock compared with Crossover's" in shown
    assert "Measured:" not in shown


def test_recorded_variants_are_not_taken_for_what_the_tutorial_does(world, open_page):
    world.has(CPU)
    plain = measured("signal", machine_id="beefbeefbeef")
    replayed = measured("signal", devices=("cpu", "cuda:0+graph10"), gpu_s=1e-6, machine_id="beefbeefbeef")
    variants = [row for row in replayed if row.contender != "cpu"]
    world.ship([*plain, *(dataclasses.replace(row, trial_id=f"{row.run_id}-2") for row in variants)])
    shown = words(skipped(expected(open_page(PAGE, tutorial="signal"))))
    assert "Recorded on another machine (CPU: Test CPU, GPU: NVIDIA Test GPU" in shown
    assert "graph" not in shown


def test_with_an_accelerator_nothing_recorded_is_needed(world, open_page):
    world.has(CPU, GPU)
    world.ship(measured("signal", machine_id="beefbeefbeef"))
    assert "Recorded" not in words(skipped(expected(open_page(PAGE, tutorial="signal"))))


def test_the_link_brings_tutorial_scale_devices_and_what_was_expected(world, open_page):
    world.has(CPU, GPU)
    link = {
        "tutorial": "disc",
        "scale": "full",
        "devices": ["cpu", "cpu@1"],
        "predict_disc": "from depth 8 on",
        "shown": "disc",
    }
    app = open_page(PAGE, **link)
    assert "You predicted: from depth 8 on" in words(app)
    assert "10 parameters" not in words(app)
    assert PRESETS["disc"].title in words(app)


def test_an_expectation_stays_when_another_tutorial_is_looked_at(world, open_page):
    world.has(CPU, GPU)
    app = expected(open_page(PAGE, tutorial="disc"), "disc")
    chosen = app.session_state["predict_disc"]
    control = next(found for found in app.get("button_group") if found.key == "tutorial")
    app = checked(control.set_value("signal").run())
    control = next(found for found in app.get("button_group") if found.key == "tutorial")
    app = checked(control.set_value("disc").run())
    assert app.radio(key="predict_disc").value == chosen


@pytest.mark.parametrize("name", PRESETS)
def test_where_a_tutorial_disagrees_with_itself_is_said_with_what_we_follow(name):
    said = " ".join(view.list_contradictions(view.TUTORIALS[name]))
    assert PRESETS[name].note in said


@pytest.mark.parametrize("name", ["mnist-linear", "fashion-cnn"])
def test_that_digits_stand_in_for_images_is_said_beside_the_settings_and_once_in_the_answer(world, open_page, name):
    world.has(CPU)
    app = skipped(open_page(PAGE, tutorial=name, digits="true"))
    digits = PRESETS[name].on_digits()
    assert words(app).count(digits.note) == 1
    assert digits.note not in view.list_contradictions(dataclasses.replace(view.TUTORIALS[name], preset=digits))
    assert "training images." in words(app)


def test_the_contradiction_of_text_and_figure_is_computed_from_the_published_times():
    said = view.list_contradictions(view.TUTORIALS["signal"])[0]
    assert "wins from 1,000 neurons" in said
    assert "between 100 and 1,000" in said


def test_the_claim_of_the_disc_has_the_parameters_of_its_own_model():
    parameters = Point(dataset="disc", samples=1_000, model="doubling-mlp", depth=10, batch_size=100).network.parameters
    assert f"{parameters:,} parameters" in view.state_claim(PRESETS["disc"])


def test_rows_of_a_file_cannot_write_markdown(world, open_page):
    world.has(CPU)
    named = {"device_name": "[x](http://evil)", "cpu_name": "![i](http://evil)"}
    world.ship(measured("signal", machine_id="beefbeefbeef", **named))
    app = skipped(expected(open_page(PAGE, tutorial="signal")))
    assert not any("](http" in str(part.value) for kind in ("markdown", "caption") for part in getattr(app, kind))


def test_the_report_can_be_taken_in_both_forms(world, open_page):
    world.has(CPU, GPU)
    kept(world)
    app = expected(open_page(PAGE, tutorial="signal"))
    assert not app.get("download_button")
    checked(next(button for button in app.button if button.label == "Create the report").click().run())
    labels = [found.proto.label for found in app.get("download_button")]
    assert labels == ["Report as HTML", "Report as Markdown"]


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """A folder of data sets with nothing in it."""
    monkeypatch.setenv("CROSSOVER_DATASETS", str(tmp_path / "sets"))
    return tmp_path / "sets"


@pytest.mark.parametrize(("name", "folder"), [("mnist-linear", "MNIST"), ("fashion-cnn", "FashionMNIST")])
def test_where_files_of_a_tutorial_are_missing_their_folder_is_named_before_run(
    world, open_page, offline, name, folder
):
    world.has(CPU, GPU)
    place = offline / folder / "raw"
    app = open_page(PAGE, tutorial=name)
    assert str(place) in [block.value for block in app.code]
    assert "first; digits need no network." in words(app), "and beside Run, which may be all that is in sight"
    place.mkdir(parents=True)
    for file in sources.FILES:
        (place / file).touch()
    assert str(place) not in [block.value for block in open_page(PAGE, tutorial=name).code]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["mnist-linear", "fashion-cnn"])
def test_one_press_takes_digits_which_are_there_offline(world, open_page, offline, name, scale):
    world.has(CPU, GPU)
    app = checked(open_page(PAGE, tutorial=name, scale=scale).toggle(key="digits").set_value(True).run())
    assert "Digits replace" in words(app)
    assert "is not on this machine yet" not in words(app)
    assert "digits need no network" not in words(app)
    checked(button(app, "Run").click().run())
    asked, clock = world.queue.jobs()
    training = asked.sweep.point if asked.sweep else asked.experiment.point
    assert (training.dataset, clock.demonstration.point.dataset) == ("digits", "digits")
    assert training.samples <= 1_257


def test_a_tutorial_of_drawn_data_has_no_choice_of_data(world, open_page, offline):
    world.has(CPU, GPU)
    assert not [found for found in open_page(PAGE, tutorial="signal").toggle if found.key == "digits"]
