import dataclasses

import pytest
import torch

from core.measure import demonstrations
from core.measure.demonstrations.clock import Stage
from core.question.demonstrations import Demonstration
from core.question.experiment import Contender, Point
from tests.exhibited import DIGITS

PAIR = (Contender(threads=1), Contender())


def shown(point: Point = DIGITS):
    asked = Demonstration(kind="first_step", point=point, contenders=PAIR)
    return demonstrations.run_first_step_lesson(asked, Stage(demonstration=asked))


def test_every_parameter_is_compared_by_a_name_for_people():
    found = shown()
    assert [name for name, _ in found.parameters] == [
        "layer 1 weight",
        "layer 1 bias",
        "layer 2 weight",
        "layer 2 bias",
    ]
    assert found.contenders == ("cpu@1", "cpu")


def test_another_order_of_summation_differs_by_rounding_at_most():
    assert shown(dataclasses.replace(DIGITS, hidden_size=512, batch_size=300)).largest < 1e-5


def test_the_same_threads_give_the_same_bits():
    asked = Demonstration(kind="first_step", point=DIGITS, contenders=PAIR)
    stage = Stage(demonstration=asked)
    stage.use_threads = lambda *_: torch.set_num_threads(1)
    assert demonstrations.run_first_step_lesson(asked, stage).largest == 0


def test_a_planted_error_is_seen(monkeypatch):
    step, seen = demonstrations._step, []

    def one_of_them_wrong(point, contender, batch):
        loss, gradients = step(point, contender, batch)
        seen.append(contender)
        if len(seen) == 2:
            gradients["layer 2 bias"] *= 1.01
        return loss, gradients

    monkeypatch.setattr(demonstrations, "_step", one_of_them_wrong)
    differences = dict(shown().parameters)
    assert differences["layer 2 bias"] == pytest.approx(0.01, rel=1e-3)
    assert differences["layer 1 bias"] < 1e-5


def test_the_difference_is_relative_to_the_first_of_two():
    one, other = torch.tensor([3.0, 4.0]), torch.tensor([3.0, 3.0])
    assert demonstrations.relative(one, other) == pytest.approx(0.2)
    assert demonstrations.relative(one, one) == 0
    assert demonstrations.relative(torch.zeros(2), one) == 1
    assert demonstrations.relative(one, torch.tensor([3.0, float("nan")])) == 1


def test_a_cnn_on_images_is_compared_as_well():
    found = shown(dataclasses.replace(DIGITS, model="cnn", width=1))
    assert len(found.parameters) == 10
