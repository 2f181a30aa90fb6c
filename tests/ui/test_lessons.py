"""The Lessons page against real folders: the question first, what is asked, what is shown, and what was recorded."""

import dataclasses
import json

import pytest

from core.answer.lessons.outcomes import RIGHT_ON_GPU
from core.answer.lessons.timeline import simulate_clock
from core.question.experiment import Contender
from core.results import exhibits
from pages.lessons import view
from pages.lessons.view import LESSONS
from pages.shared import elements, job_view, layout, learning, links
from pages.shared.learning import Expectation
from tests import exhibited, rows
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import LESSONS_PAGE as PAGE
from tests.ui.find import alts, button, expected, run_lesson


def as_asked(world, shown):
    """The exhibit of what the newest job asks for."""
    asked = next(job.demonstration for job in world.queue.jobs() if job.demonstration)
    return dataclasses.replace(shown, demonstration=asked)


def kept(world, jobs, steps_s, **changes):
    """Stored rows that answer the experiments of jobs, each a run."""
    for number, job in enumerate(jobs):
        if job.experiment:
            run_id = f"{number:012x}"
            times = {str(contender): steps_s[place] for place, contender in enumerate(job.experiment.contenders)}
            world.keep(rows.run(times, point=job.experiment.point, run_id=run_id, budget_s=20.0, **changes))


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_asks_first_and_can_be_run(world, open_page, name):
    world.has(CPU, GPU)
    app = open_page(PAGE, lesson=name)
    assert LESSONS[name].question.text in [radio.label for radio in app.radio]
    assert "Run it first" not in words(app)
    assert "Run it first" in words(expected(app, name))
    assert not button(app, "Run").disabled


def test_seeds_and_margin_of_a_link_are_those_that_can_be_chosen(world, open_page):
    world.has(CPU, GPU)
    app = open_page(PAGE, lesson="learning", seeds="10", margin="1.0")
    assert "must be" not in words(app)
    assert (app.button_group(key="seeds").value, app.button_group(key="margin").value) == (10, 1.0)


@pytest.mark.parametrize("name", LESSONS)
def test_before_the_machine_is_known_nothing_can_be_run(world, open_page, name):
    assert button(open_page(PAGE, lesson=name), "Run").disabled


@pytest.mark.parametrize("name", LESSONS)
def test_running_a_lesson_asks_for_what_it_says(world, open_page, name):
    world.has(CPU, GPU)
    _, jobs = run_lesson(world, open_page, name)
    kinds = [job.demonstration.kind if job.demonstration else "training" for job in jobs]
    assert (
        kinds
        == {
            "clock": ["clock"],
            "moving": ["moving"],
            "loader": ["training"] * 7,
            "learning": ["first_step", *["training"] * 5],
            "small": ["training"] * 2,
        }[name]
    )
    assert {"cuda:0"} <= {str(contender) for job in jobs for contender in job.question.contenders}


def test_the_clock_shows_the_wrong_number_beside_the_right_one(world, open_page):
    world.has(CPU, GPU)
    app, _ = run_lesson(world, open_page, "clock")
    shown = exhibited.clock({"ours": 1.0, "no_drain": 0.2})
    exhibits.add_exhibit(world.store.folder, as_asked(world, shown))
    app = checked(app.run())
    assert "Predict. This pane then shows" in words(app)
    app = expected(app, "clock")
    assert alts(app) == ["An epoch by each clock"]
    assert "On the GPU: “No synchronization” says 200 µs, 20 % of Crossover's time." in words(app)
    assert "You predicted: too little" in words(app)
    assert LESSONS["clock"].without not in words(app)


def test_the_trace_keeps_back_its_answer_until_the_prediction(world, open_page):
    world.has(CPU)
    before, after = (elements.make_timeline_data(simulate_clock(), covered=covered) for covered in (True, False))
    assert [mark["label"] for mark in before["marks"]] == ["Both clocks start"]
    assert "stops at" not in json.dumps(before)
    assert "stops at 10.0 ms" in after["says"], "the trace in words, for readers who cannot see it"
    app = open_page(PAGE, lesson="clock")
    (sent,) = app.get("bidi_component")
    assert json.loads(sent.proto.json) == before


def test_on_a_machine_without_a_gpu_the_right_answer_for_one_is_right(world, open_page):
    world.has(CPU)
    app, _ = run_lesson(world, open_page, "clock")
    shown = exhibited.clock({"ours": 1.0, "no_drain": 1.0}, contenders=("cpu@1", "cpu"))
    exhibits.add_exhibit(world.store.folder, as_asked(world, shown))
    app = expected(checked(app.run()), "clock")
    (said,) = [box.value for box in app.success]
    assert said.replace("\\", "") == f"You predicted: too little. {RIGHT_ON_GPU}"
    assert "**Measured.** On a CPU nothing is queued" in words(app)
    assert "Two clocks, one training" in words(app), "the trace in the report, which plays nothing"


def test_without_an_accelerator_a_recorded_clock_is_replayed_and_marked(world, open_page):
    world.has(CPU)
    shown = exhibited.clock({"ours": 1.0, "no_drain": 0.2}, machine_id="beefbeefbeef")
    exhibits.add_exhibit(world.gallery.folder, shown)
    app = checked(button(expected(open_page(PAGE, lesson="clock"), "clock"), "Skip").click().run())
    assert "You predicted: too little. You were right." in words(app)
    assert "**Recorded.** " in words(app)
    assert "**Measured.**" not in words(app)
    app = words(app)
    assert "**Why.** A GPU works through a queue" in app
    assert "Recorded: The wrong number compared with the right one" in app
    assert "Recorded on another machine (CPU: Test CPU, GPU: NVIDIA Test GPU" in app
    assert "21 November 2026" in app
    assert LESSONS["clock"].without in app


def test_a_recorded_clock_of_a_cpu_shows_nothing_that_this_machine_lacks(world, open_page):
    world.has(CPU)
    shown = exhibited.clock({"ours": 1.0}, contenders=("cpu", "cpu@1"), machine_id="beefbeefbeef")
    exhibits.add_exhibit(world.gallery.folder, shown)
    app = expected(open_page(PAGE, lesson="clock"), "clock")
    assert "Recorded" not in words(checked(button(app, "Skip").click().run()))


def test_with_an_accelerator_nothing_recorded_is_replayed(world, open_page):
    world.has(CPU, GPU)
    exhibits.add_exhibit(
        world.gallery.folder, exhibited.clock({"ours": 1.0, "no_drain": 0.2}, machine_id="beefbeefbeef")
    )
    app = expected(open_page(PAGE, lesson="clock"), "clock")
    assert "Recorded" not in words(checked(button(app, "Skip").click().run()))


def test_a_torn_exhibit_is_passed_over(world, open_page):
    world.has(CPU)
    folder = world.gallery.folder / exhibits.EXHIBITS_FOLDER
    folder.mkdir(parents=True)
    (folder / "20261121T093000-clock-0.json").write_text('{"id": ')
    endless = exhibited.exhibit(exhibited.CLOCK).to_json()
    endless["demonstration"]["budget_s"] = 10**400
    (folder / "20261121T093000-clock-1.json").write_text(json.dumps(endless))
    (folder / "loop.json").symlink_to(folder / "loop.json")
    for page in (PAGE, layout.TUTORIALS):
        said = words(open_page(page))
        assert "20261121T093000-clock-0.json is not shown: it is incomplete" in said
        assert "20261121T093000-clock-1.json is not shown: budget_s must be" in said
        assert "loop.json is not shown: it cannot be read" in said


def test_moving_shows_code_and_error_word_for_word(world, open_page):
    world.has(CPU, GPU)
    app, _ = run_lesson(world, open_page, "moving")
    exhibits.add_exhibit(world.store.folder, as_asked(world, exhibited.moving(contenders=("cuda:0",))))
    app = expected(checked(app.run()), "moving")
    assert [code.value for code in app.code] == ["print(here + there)", "RuntimeError: no"]


def test_the_loader_is_split_into_its_parts_on_every_way(world, open_page):
    world.has(CPU, GPU)
    app, jobs = run_lesson(world, open_page, "loader")
    assert {job.experiment.point.dataset for job in jobs} == {"digits"}
    kept(world, jobs, (2e-3, 1e-3))
    app = expected(checked(app.run()), "loader")
    assert alts(app) == ["Parts of an epoch on the CPU", "Parts of an epoch on the GPU"]
    assert "An epoch by the number of loader workers, on the CPU: 0: " in words(app)


def test_the_loader_takes_the_data_set_of_the_link(world, open_page):
    world.has(CPU, GPU)
    _, jobs = run_lesson(world, open_page, "loader", data="mnist")
    assert {job.experiment.point.dataset for job in jobs} == {"mnist"}


def test_learning_asks_for_as_many_seeds_as_the_link_says(world, open_page):
    world.has(CPU, GPU)
    _, jobs = run_lesson(world, open_page, "learning", seeds="2")
    assert [job.experiment.point.seed for job in jobs if job.experiment] == [0, 1]


def test_without_an_accelerator_two_numbers_of_threads_stand_for_two_devices(world, open_page):
    world.has(CPU)
    _, jobs = run_lesson(world, open_page, "learning")
    assert {str(contender) for job in jobs for contender in job.question.contenders} == {"cpu@1", "cpu@4"}


def test_learning_climbs_the_ladder_to_a_verdict_and_locks_the_margin(world, open_page):
    world.has(CPU, GPU)
    app, jobs = run_lesson(world, open_page, "learning")
    margin = next(found for found in app.get("button_group") if found.key == "margin")
    assert not margin.disabled
    kept(world, jobs, (1e-3, 5e-4))
    exhibits.add_exhibit(world.store.folder, as_asked(world, exhibited.first_step()))
    app = expected(checked(app.run()), "learning")
    shown = words(app)
    for step in ("1. One step", "2. Loss curves", "3. Single answers", "4. The verdict"):
        assert step in shown
    assert "that is rounding" in shown
    assert "Equivalent within ±0.50 percentage points" in shown
    assert next(found for found in app.get("button_group") if found.key == "margin").disabled


def test_trainings_of_another_machine_are_recorded_though_the_first_step_was_measured_here(world, open_page):
    world.has(CPU)
    world.ship(
        rows.run({"cpu": 1e-3, "cuda:0": 5e-4}, point=view.SAME_POINT, run_id="beef" * 3, machine_id="beefbeefbeef")
    )
    app, _ = run_lesson(world, open_page, "learning")
    exhibits.add_exhibit(world.store.folder, as_asked(world, exhibited.first_step(contenders=("cpu@1", "cpu@4"))))
    shown = words(expected(checked(app.run()), "learning"))
    assert "that is rounding" in shown, "of the exhibit that was measured here"
    assert "**Recorded.** " in shown
    assert "**Measured.**" not in shown


def test_a_first_step_alone_leaves_the_prediction_open(world, open_page):
    world.has(CPU, GPU)
    app, _ = run_lesson(world, open_page, "learning")
    exhibits.add_exhibit(world.store.folder, as_asked(world, exhibited.first_step()))
    shown = words(expected(checked(app.run()), "learning"))
    assert "that is rounding" in shown
    assert "No result decides that yet" in shown


def test_small_models_are_shown_at_both_batches(world, open_page):
    world.has(CPU, GPU)
    app, jobs = run_lesson(world, open_page, "small")
    assert [job.experiment.point.batch_size for job in jobs] == list(view.BATCHES)
    kept(world, jobs, (1e-3, 5e-4), jitter=0.0)
    app = expected(checked(app.run()), "small")
    assert alts(app) == ["The parts of a step", "Share of a step in which the device computes"]
    assert "The GPU is 2.00× faster than the CPU, at a batch of 32." in words(app)


def test_a_lesson_of_a_link_comes_up_with_what_was_expected(world, open_page):
    world.has(CPU, GPU)
    app = open_page(PAGE, lesson="small", predict_small="about as long")
    assert app.radio(key="predict_small").value == "about as long"
    assert "Run it first" in words(app)


@pytest.mark.parametrize("link", [{"lesson": "alchemy"}, {"lesson": "learning", "seeds": "7"}, {"margin": "x"}])
def test_a_link_to_what_is_not_there_opens_the_page_all_the_same(world, open_page, link):
    world.has(CPU, GPU)
    assert "Lessons" in words(open_page(PAGE, **link))


@pytest.mark.parametrize("name", LESSONS)
def test_a_question_can_be_answered_by_one_of_its_options(name):
    question = LESSONS[name].question
    assert isinstance(question, Expectation)
    assert question.name == name
    assert len(set(question.options)) == len(question.options) >= 3


def test_the_loader_lesson_differs_in_nothing_but_the_way_of_the_data():
    points = view.make_loader_points("digits")
    same = {dataclasses.replace(point, data_path="resident", loader_workers=0) for point in points}
    assert len(same) == 1
    assert len(set(points)) == len(points) == 7


def test_where_an_exhibit_is_from_is_said_whole():
    shown = exhibited.clock({"ours": 1.0})
    said = learning.describe_recording(shown)
    assert all(part in said for part in ("NVIDIA Test GPU", "Test CPU", rows.TORCH_VERSION, "21 November 2026"))
    assert learning.describe_recording(None) == ""
    assert Contender().title in learning.describe_recording(None, rows.run())


def test_every_lesson_is_in_links_and_a_job_leads_to_the_lesson_that_shows_it():
    assert tuple(LESSONS) == tuple(links.LESSON_TITLES)
    assert all(name == lesson.question.name for name, lesson in LESSONS.items())
    assert {kind: name for name, lesson in LESSONS.items() for kind in lesson.recorded} == job_view.SHOWN_IN
