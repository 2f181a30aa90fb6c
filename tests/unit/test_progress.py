"""What a running measurement says of itself survives its file, whoever wrote it."""

import dataclasses
import json
import math

import pytest

from core.errors import InvalidValue
from core.files import documents
from core.progress import ContenderProgress, Progress, SweepProgress

SWEEP = SweepProgress(done=2, total=9, size_label="hidden size 64", remaining_s=12.5, notes=("One did not fit.",))


@pytest.mark.parametrize("sweep", [None, SWEEP])
def test_progress_survives_its_file(sweep):
    contender = ContenderProgress(contender="cpu", losses=(0.5, math.inf), loss_steps=(10, 20), loss_seconds=(0.1, 0.2))
    told = Progress(phase="training", pairs=3, contenders=(contender,), sweep=sweep)
    assert documents.parse_json(json.dumps(dataclasses.asdict(told)), Progress) == told


def test_progress_of_an_earlier_version_knows_of_no_sweep():
    assert documents.parse_json('{"phase": "training", "contenders": []}', Progress) == Progress(phase="training")


def test_as_many_losses_as_steps_at_which_they_were_read():
    with pytest.raises(InvalidValue, match="losses"):
        ContenderProgress(contender="cpu", losses=(0.5,), loss_steps=(10, 20))


@pytest.mark.parametrize(
    ("alive", "pairs", "share"), [(0, 0, 2 / 9), (3, 6, 3 / 9), (3, 18, 5 / 9), (3, 20, 5 / 9), (9, 54, 1.0)]
)
def test_a_point_with_half_its_pairs_counts_as_half_a_point(alive, pairs, share):
    told = dataclasses.replace(SWEEP, alive=alive, pairs=pairs, pairs_each=6)
    assert Progress(phase="training", sweep=told).share == pytest.approx(share)


def training(*contenders, elapsed_s=2.0):
    return Progress(phase="training", elapsed_s=elapsed_s, budget_s=60.0, contenders=contenders)


def test_the_share_of_a_training_is_that_of_its_time():
    slow, fast = (
        ContenderProgress(contender=name, steps=100, total_steps=200, step_s=step_s)
        for name, step_s in (("cpu@1", 0.05), ("cpu@2", 0.01))
    )
    told = training(slow, fast)
    assert told.remaining_s == pytest.approx(100 * 0.06)
    assert told.share == pytest.approx(2 / 8)


def test_no_more_time_is_left_than_the_budget_has():
    told = training(ContenderProgress(contender="cpu", total_steps=10_000, step_s=1.0), elapsed_s=45.0)
    assert told.remaining_s == pytest.approx(15)
    assert told.share == pytest.approx(45 / 60)


def test_before_a_step_was_timed_the_time_left_is_not_known():
    told = training(ContenderProgress(contender="cpu", steps=10, total_steps=40))
    assert told.remaining_s is None
    assert told.share == pytest.approx(10 / 40)
