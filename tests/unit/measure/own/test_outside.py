"""What is changed of a training of one's own from outside, its code left as it is, and held against its plain steps."""

import types

import pytest
import torch
from torch import nn

from core.answer import remedies, speedup
from core.measure.custom import training
from core.results import parquet
from tests.own_trainings import FUNCTION, PLAIN


class Trainer:
    def __init__(self, model):
        self.model, self.head, self.rate = model, model[1], 0.1

    def step(self):
        return self.model


def looped(model):
    yield model


def around(model):
    return lambda: model


MODEL = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
BEGUN = looped(MODEL)
next(BEGUN)
SCRIPT = types.ModuleType("script")
SCRIPT.net = MODEL


@pytest.mark.parametrize(
    ("built", "files"),
    [(Trainer(MODEL), ()), (Trainer(MODEL).step, ()), (around(MODEL), ()), (BEGUN, ()), (lambda: None, (SCRIPT,))],
    ids=["object", "its-method", "function-around-it", "loop", "global-of-its-file"],
)
def test_the_outermost_module_that_a_training_shows_is_found(built, files):
    assert training.modules(built, files) == [MODEL]


def test_a_step_in_bf16_computes_in_it_and_leaves_the_rest_as_it_was():
    seen = []
    step = training.wrap_in_bf16(lambda batch: seen.append((batch @ batch).dtype), torch.device("cpu"))
    step(torch.eye(2))
    assert seen == [torch.bfloat16]
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.slow
def test_lanes_take_turns_with_plain_steps_and_are_held_against_their_losses(own):
    plain, kept, rounded = rows = own(PLAIN, contenders=("cpu@1", "cpu@1+kept", "cpu@1+bf16"), budget_s=300)
    assert [row.outcome for row in rows] == ["timed"] * 3
    assert [parquet.find_refusal(row) for row in rows] == [""] * 3
    assert len(kept.lane_loss) == len(kept.reference_loss) == len(kept.nudged_loss) == 20
    assert kept.lane_loss == kept.reference_loss == rounded.reference_loss != rounded.lane_loss
    assert speedup.check_lane(kept).within
    assert (len(plain.own_operations) > 0, kept.own_operations, rounded.own_operations) == (True, (), ())
    (found,) = remedies.lane_remedies(rows)
    assert [(one.title, one.standing) for one in (*found.same, *found.other)] == [
        ("memory reused", "same"),
        ("bf16", "other"),
    ]


@pytest.mark.slow
def test_what_cannot_be_compiled_says_why_and_the_others_go_on(own):
    plain, compiled = own(FUNCTION, contenders=("cpu@1", "cpu@1+compiled"))
    assert (plain.outcome, compiled.outcome) == ("timed", "interrupted") if compiled else True
    assert training.NO_MODULE in compiled.message
