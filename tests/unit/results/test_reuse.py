import dataclasses
from pathlib import Path

import pytest

from core.question.experiment import Contender, Experiment
from core.results.schema import Trial
from core.results.store import LocalMachine, Store, newest_answers
from tests.rows import EXPERIMENT, MACHINE_ID, TORCH_VERSION, run, trial

OTHER_RUN = "ba9876543210"
HERE = LocalMachine(machine_id=MACHINE_ID, torch_version=TORCH_VERSION)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rows")


def _found(store: Store, experiment: Experiment = EXPERIMENT) -> list[Trial]:
    return store.find(experiment, HERE)


def _fill(store: Store, rows: list[Trial]) -> list[Trial]:
    for row in rows:
        store.add(row)
    return rows


def test_an_empty_store_answers_nothing(store):
    assert _found(store) == []


def test_a_complete_run_answers_in_the_order_of_the_contenders(store):
    experiment = dataclasses.replace(EXPERIMENT, contenders=tuple(reversed(EXPERIMENT.contenders)))
    rows = _fill(store, [trial(contender=str(name), experiment=experiment) for name in experiment.contenders])
    assert [row.contender for row in rows] == ["cuda:0", "cpu"]
    assert _found(store, experiment) == rows
    assert _found(store, EXPERIMENT) == []


@pytest.mark.parametrize(("card", "answers"), [("NVIDIA Test GPU", True), ("NVIDIA Other GPU", False)])
def test_rows_of_a_card_that_was_replaced_do_not_answer(store, card, answers):
    rows = _fill(store, run())
    now = dataclasses.replace(HERE, device_names={"cuda:0": card, "cpu": "Test CPU"})
    assert store.find(EXPERIMENT, now) == (rows if answers else [])


def test_the_newest_run_answers(store):
    newer = run(run_id=OTHER_RUN, started_at="2026-11-21T10:00:00+00:00")
    _fill(store, [*newer, *run()])
    assert _found(store) == newer


def test_an_older_run_answers_where_the_newest_was_cut_off(store):
    _fill(store, [*run(), *run(run_id=OTHER_RUN, started_at="2026-11-21T10:00:00+00:00", outcome="stopped")])
    assert _found(store) == run()


@pytest.mark.parametrize(
    ("outcome", "spent_s", "offered_s", "answers"),
    [
        ("completed", 10.0, 600.0, True),
        ("diverged", 10.0, 600.0, True),
        ("budget_spent", 60.0, 60.0, True),
        ("budget_spent", 600.0, 60.0, True),
        ("budget_spent", 10.0, 60.0, False),
        ("stopped", 60.0, 60.0, False),
        ("interrupted", 60.0, 60.0, False),
        ("out_of_memory", 60.0, 60.0, False),
    ],
)
def test_an_outcome_answers_or_does_not(store, outcome, spent_s, offered_s, answers):
    _fill(store, [dataclasses.replace(run()[0], outcome=outcome, budget_s=spent_s), run()[1]])
    assert bool(_found(store, dataclasses.replace(EXPERIMENT, budget_s=offered_s))) is answers


@pytest.mark.parametrize(
    "change",
    [
        {"machine_id": "another"},
        {"torch_version": "1.0"},
        {"experiment_id": "a" * 16},
        {"origin": "imported.parquet"},
        {"outcome": "interrupted"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_run_of_which_one_row_does_not_fit_does_not_answer(store, change):
    first, second = run()
    _fill(store, [first, dataclasses.replace(second, **change)])
    assert _found(store) == []


# Finding the answer to a question for times alone

TIMES = dataclasses.replace(EXPERIMENT, pairs=6, budget_s=20.0)
UNTESTED = {"confusion": (), "predictions": b"", "train_accuracy": None, "validation_accuracy": None}
SHORT = {"steps_per_block": 10, **UNTESTED}  # of 1,900 steps far from all are trained


@pytest.mark.parametrize(
    ("outcome", "pairs", "spent_s", "answers"),
    [
        ("timed", 6, 1.0, True),
        ("timed", 7, 1.0, True),
        ("timed", 5, 600.0, False),
        ("completed", 20, 1.0, True),
        ("completed", 5, 600.0, False),
        ("budget_spent", 6, 1.0, True),
        ("budget_spent", 1, 20.0, True),
        ("budget_spent", 1, 19.0, False),
        ("diverged", 6, 1.0, True),
        ("diverged", 1, 20.0, True),
        ("diverged", 1, 19.0, False),
        ("out_of_memory", 0, 1.0, True),
        ("stopped", 20, 600.0, False),
        ("interrupted", 20, 600.0, False),
        ("interrupted", 0, 1.0, True),
    ],
)
def test_a_question_for_times_is_answered_by_pairs_enough_or_by_a_budget_that_was_spent(
    store, outcome, pairs, spent_s, answers
):
    other = trial(contender="cuda:0", outcome="timed", **SHORT)
    _fill(store, [trial(outcome=outcome, pairs=pairs, budget_s=spent_s, **SHORT), other])
    assert bool(_found(store, TIMES)) is answers


@pytest.mark.parametrize(
    ("outcome", "steps", "spent_s", "answers"),
    [
        ("timed", 10_000, 600.0, False),
        ("budget_spent", 100, 600.0, False),
        ("diverged", 100, 1.0, False),
        ("diverged", 1_900, 1.0, True),
        ("diverged", 100, 60.0, True),
    ],
)
def test_a_question_for_a_whole_training_is_not_answered_by_times_alone(store, outcome, steps, spent_s, answers):
    _fill(store, run(outcome=outcome, steps=steps, budget_s=spent_s, **UNTESTED))
    assert bool(_found(store, EXPERIMENT)) is answers


def test_many_questions_are_answered_at_once_each_by_its_newest_run():
    other = dataclasses.replace(EXPERIMENT, point=dataclasses.replace(EXPERIMENT.point, hidden_size=64))
    unanswered = dataclasses.replace(EXPERIMENT, point=dataclasses.replace(EXPERIMENT.point, hidden_size=32))
    newer = run(run_id=OTHER_RUN, started_at="2026-11-21T10:00:00+00:00")
    elsewhere = run(run_id="c" * 12, point=other.point)
    found = newest_answers([*newer, *reversed(elsewhere), *run()], [EXPERIMENT, other, unanswered], HERE)
    assert found == {EXPERIMENT.id: newer, other.id: elsewhere}


@pytest.mark.parametrize(
    ("since", "answers"),
    [
        ("", True),
        ("2026-11-21T09:30:00+00:00", True),
        ("2026-11-21T09:30:00.001+00:00", False),
        ("2026-11-21T10:30:00+01:00", True),
        ("2026-11-21T09:30:00-01:00", False),
    ],
)
def test_only_runs_that_began_since_a_moment_answer_if_one_is_given(since, answers):
    assert bool(newest_answers(run(), [EXPERIMENT], HERE, since=since)) is answers


def test_the_newest_run_that_is_accepted_answers():
    newer = run(run_id=OTHER_RUN, started_at="2026-11-21T10:00:00+00:00")
    both = [*newer, *run()]
    assert newest_answers(both, [EXPERIMENT], HERE)[EXPERIMENT.id] == newer
    older = newest_answers(both, [EXPERIMENT], HERE, accepted=lambda asked, rows: rows[0].run_id != OTHER_RUN)
    assert older == {EXPERIMENT.id: run()}
    assert newest_answers(both, [EXPERIMENT], HERE, accepted=lambda *_: False) == {}


@pytest.mark.parametrize("whole", [True, False])
def test_times_alone_answer_only_who_did_not_ask_for_the_whole_training(store, whole):
    _fill(store, run(outcome="timed", **UNTESTED))
    assert bool(_found(store, dataclasses.replace(EXPERIMENT, whole=whole))) is not whole


def test_a_run_whose_time_cannot_be_read_did_not_begin_since():
    rows = run(started_at="some day")
    assert newest_answers(rows, [EXPERIMENT], HERE)
    assert not newest_answers(rows, [EXPERIMENT], HERE, since="2026-11-21T09:30:00+00:00")


def test_contenders_of_two_runs_do_not_answer_together(store):
    _fill(store, [run()[0], run(run_id=OTHER_RUN)[1]])
    assert _found(store) == []


def test_another_question_is_not_answered(store):
    _fill(store, run())
    other = dataclasses.replace(EXPERIMENT, contenders=(Contender(),))
    assert _found(store, other) == []
