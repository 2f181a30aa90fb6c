"""Public threads as data: each with its source, a cause and a training that can be asked for; and the questionnaire."""

import datetime
import re

import pytest

from core.errors import InvalidValue
from core.files.project import PROJECT
from core.question.experiment import Contender
from core.question.published import (
    BUDGET_S,
    CASES_FOLDER,
    CAUSES,
    FIT_BUDGET_S,
    QUESTIONS,
    find_case,
    likely,
    load_cases,
)

PAIR = (Contender(threads=1), Contender(threads=2))
ALL = list(load_cases().values())
by_name = pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
runnable = pytest.mark.parametrize("one", [one for one in ALL if one.runnable], ids=lambda one: one.name)


def test_there_are_as_many_as_were_promised():
    assert len(ALL) >= 20
    assert sum(one.runnable for one in ALL) >= 14
    assert len({one.address for one in ALL}) == len(ALL)


@by_name
def test_each_has_a_source_a_date_and_a_known_cause(one):
    assert re.fullmatch(r"[a-z][a-z0-9-]{1,40}", one.name)
    assert re.fullmatch(r"https://[\w.-]+/[\w./-]+", one.address)
    assert one.cause in CAUSES
    assert all((one.title, one.thread, one.model, one.devices, one.reported, one.found, one.remedied))
    if one.date:
        assert datetime.date.fromisoformat(one.date) < datetime.date(2026, 12, 1)
    else:
        assert "date" in one.open
    assert bool(one.figures) == bool(one.unit)
    assert one.figures or one.open or one.cause == "small", "what was not told is said"


@by_name
def test_each_says_whom_it_fits_in_words_of_the_questionnaire(one):
    assert one.fits
    for question, answers in one.fits.items():
        assert set(answers) <= set(QUESTIONS[question][1])


@pytest.mark.slow
@runnable
def test_what_runs_in_its_place_is_a_question_with_and_without_the_remedy(one):
    asked = one.build_experiments(PAIR)
    assert len({experiment.id for experiment in asked}) == 2
    assert one.remedy.title
    assert one.more_work >= 1
    for experiment in asked:
        assert experiment.contenders == PAIR
        assert bool(experiment.folder) == bool(experiment.point.training)


@runnable
def test_its_files_ship_with_the_project_and_have_the_functions_that_it_names(one):
    for setting in (one.here, one.remedy):
        if setting.training:
            file, _, function = setting.training.partition(":")
            assert f"\ndef {function}(size, device):" in (CASES_FOLDER / file).read_text()
    assert CASES_FOLDER.is_relative_to(PROJECT)


def test_trees_that_know_no_accelerator_contend_on_the_cpu_alone():
    devices = ("cpu", "cuda:0")
    assert [str(one) for one in find_case("xgboost-credit").contenders(devices, 4)] == ["cpu@1", "cpu@4"]
    assert [str(one) for one in find_case("many-threads").contenders(devices, 4)] == ["cpu", "cuda:0"]
    assert find_case("xgboost-credit").build_experiments(find_case("xgboost-credit").contenders(devices, 4))


def test_a_case_without_a_training_cannot_be_asked_for():
    with pytest.raises(InvalidValue, match="a training that can be run here"):
        find_case("overheated").build_experiments(PAIR)


def test_an_unknown_case_is_refused_with_the_names_of_all():
    with pytest.raises(InvalidValue, match="simple-2d"):
        find_case("nobody")


def test_without_an_answer_every_case_is_as_likely():
    assert likely({}) == likely({"symptom": ""}) == tuple(ALL)


def test_answers_leave_the_cases_that_they_do_not_contradict_the_best_first():
    found = likely({"symptom": "idle", "kind": "images", "loop": "files"})
    assert {one.name for one in found} == {"imagenet-loader", "turning-disk"}
    trees = likely({"symptom": "slower", "kind": "trees"})
    assert {one.cause for one in trees} == {"rows"}
    assert likely({"symptom": "fading"})[0].name == "overheated"
    assert likely({"symptom": "doubt"})[0].name == "unsynchronised"


def test_every_answer_leads_somewhere():
    for question, (_, answers) in QUESTIONS.items():
        for answer in answers:
            assert likely({question: answer}), (question, answer)
            assert any(answer in one.fits.get(question, ()) for one in ALL), (question, answer)


@runnable
def test_fits_have_longer_as_their_threads_wait_for_each_other_where_others_use_the_machine(one):
    budgets = {asked.budget_s for asked in one.build_experiments(PAIR)}
    assert budgets == {FIT_BUDGET_S if one.point().is_fit else BUDGET_S}
