"""The Cases page: the questionnaire and its link, a case with its figures beside ours, and who may run its files."""

import dataclasses

import pytest

from core.files.project import PROJECT
from core.question import policy
from core.question.experiment import Contender
from core.question.published import CASES_FOLDER, find_case, likely, load_cases
from pages.shared import custom_files, layout, permits
from tests import rows
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import alts, button

PAGE = layout.CASES
PAIR = ("cpu@1", "cpu@4")


def opened(app):
    return [found.key.removeprefix("open-") for found in app.button if (found.key or "").startswith("open-")]


def kept(world, one, times, number=0, remedied=False):
    """Stored rows of a case of the catalogue, as if they were measured here."""
    point = one.point_with_remedy() if remedied else one.point()
    shown = rows.run(dict(zip(PAIR, times, strict=True)), point=point, run_id=f"{number:012x}", budget_s=30.0)
    world.keep([dataclasses.replace(row, threads=int(row.contender[-1])) for row in shown])


def test_every_case_is_listed_until_something_is_answered(world, open_page):
    world.has(CPU)
    app = open_page(PAGE)
    assert opened(app) == list(load_cases())
    assert "Your script" in words(app)


def test_answers_of_the_link_leave_the_cases_that_fit(world, open_page):
    world.has(CPU)
    app = open_page(PAGE, symptom="idle", kind="images", loop="files")
    answers = {"symptom": "idle", "kind": "images", "loop": "files"}
    assert opened(app) == [one.name for one in likely(answers)] == ["imagenet-loader", "turning-disk"]
    assert "2 cases that fit your answers" in words(app)


def test_an_answer_of_the_link_that_is_none_is_named(world, open_page):
    world.has(CPU)
    app = open_page(PAGE, symptom="anything")
    assert "anything" in app.warning[0].value
    assert opened(app) == list(load_cases())


def test_before_the_machine_is_known_run_is_there_and_cannot_be_pressed(open_page):
    assert button(open_page(PAGE, case="deep-q"), "Run").disabled


def test_a_case_is_opened_from_the_list_and_closed_again(world, open_page):
    world.has(CPU)
    app = open_page(PAGE, symptom="fading")
    app = checked(app.button(key="open-overheated").click().run())
    assert app.query_params["case"] == "overheated"
    assert "a GPU that overheated" in words(app)
    assert "Run" not in [found.label for found in app.button]
    app = checked(button(app, "Back to the list").click().run())
    assert "case" not in app.query_params
    assert opened(app) == ["overheated"]


def test_a_link_to_a_case_that_is_not_there_says_so_and_shows_the_list(world, open_page):
    world.has(CPU)
    app = open_page(PAGE, case="nobody")
    assert "nobody" in app.warning[0].value
    assert opened(app)


@pytest.mark.parametrize("name", ["simple-2d", "letters", "cudnn-lstm", "lightgbm-multiclass", "unsynchronised"])
def test_every_case_can_be_looked_at_with_and_without_an_accelerator(world, open_page, name):
    world.has(CPU, *([GPU] if len(name) % 2 else []))
    app = open_page(PAGE, case=name)
    told = words(app)
    assert find_case(name).title in told
    assert find_case(name).date in told
    assert f"Published: {find_case(name).title}, {find_case(name).unit}" in alts(app) or not find_case(name).figures
    assert ("Run" in [found.label for found in app.button]) == find_case(name).runnable


def test_running_a_case_asks_for_it_and_for_its_remedy(world, open_page):
    world.has(CPU)
    checked(button(open_page(PAGE, case="many-threads"), "Run").click().run())
    asked = find_case("many-threads").build_experiments((Contender(threads=1), Contender(threads=4)))
    assert [job.experiment for job in world.queue.jobs()] == list(asked)


def test_what_was_measured_stands_beside_what_was_published_with_the_cause_and_the_remedy(world, open_page):
    world.has(CPU)
    one = find_case("many-threads")
    kept(world, one, (1e-4, 2e-4))
    kept(world, one, (1e-3, 5e-4), number=1, remedied=True)
    app = open_page(PAGE, case=one.name)
    told = words(app)
    assert "Time of a step, measured here" in alts(app)
    assert "too small to benefit from more threads" in told
    assert "The thread has the same cause" in told
    assert "4 CPU threads, batches of 1,600: " in told
    assert "With it, 4 CPU threads do 2" in told


def test_another_cause_than_the_threads_is_said(world, open_page):
    world.has(CPU)
    kept(world, find_case("many-threads"), (4e-4, 1e-4))
    assert "The thread has another cause" in words(open_page(PAGE, case="many-threads"))


def test_files_that_came_with_the_app_can_be_run_on_ones_own_machine_and_are_offered_nowhere(world, open_page):
    world.has(CPU)
    app = open_page(PAGE, case="letters")
    assert not button(app, "Run").disabled
    checked(button(app, "Run").click().run())
    assert {job.experiment.folder for job in world.queue.jobs()} == {str(CASES_FOLDER)}
    assert {job.experiment.point.training for job in world.queue.jobs()} == {
        "small_steps.py:letters",
        "small_steps.py:letters_of_more",
    }
    assert not set(custom_files.list_shipped_files()) & set(custom_files.list_custom_files())


def test_on_a_host_no_file_is_run_and_the_command_is_shown(world, open_page, monkeypatch, tmp_path):
    path = tmp_path / "host.toml"
    path.write_text('who_may_run = "everybody"\n')
    monkeypatch.setenv(policy.POLICY_VARIABLE, str(path))
    world.has(CPU)
    app = open_page(PAGE, case="letters")
    assert button(app, "Run").disabled
    assert "never run on a host" in words(app)
    assert "python -m core case letters --run" in words(app)


def test_a_shipped_file_is_known_by_its_source():
    point = find_case("letters").point()
    assert custom_files.find_custom_file(point).path == PROJECT / "examples" / "cases" / "small_steps.py"
    assert custom_files.describe_file_state(point) == ""
    assert "has changed since" in custom_files.describe_file_state(dataclasses.replace(point, source_hash="0" * 16))
    assert permits.custom_files is custom_files


def test_that_no_figure_was_reported_is_said_once(world, open_page):
    app = open_page(PAGE, case="forecast")
    assert words(app).count("No figure was reported.") == 1
