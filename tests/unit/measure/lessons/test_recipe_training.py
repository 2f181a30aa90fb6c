"""What a recipe looks at changes nothing of what is learned."""

import pytest
import torch

from core.measure import datasets
from core.measure.demonstrations.clock import RecipeTraining
from core.question.demonstrations import RECIPES
from tests.exhibited import DIGITS

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data():
    return datasets.load_dataset("digits", samples=DIGITS.samples, seed=DIGITS.seed)


def trained(name: str, data) -> RecipeTraining:
    training = RecipeTraining(RECIPES[name], DIGITS, data, data.train, CPU)
    training.advance(DIGITS.steps_per_epoch)
    training.end_epoch()
    training.advance(2)
    training.settle()
    return training


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_trains_the_same_network(name, data):
    ours, theirs = (trained(each, data)._training.weights() for each in ("ours", name))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(ours, theirs, strict=True))


def test_errors_are_printed_once_an_epoch_and_counted_anew(data):
    training = trained("disc", data)
    training.end_epoch()
    first, second = map(int, training._paper.getvalue().split())
    assert 0 < first <= DIGITS.samples
    assert 0 <= second <= 2 * DIGITS.batch_size


def test_the_mnist_tutorial_reads_as_many_samples_as_are_held_out(data, monkeypatch):
    read, one_by_one = [], type(data.one_by_one)
    fetch = one_by_one.__getitem__
    training = RecipeTraining(RECIPES["mnist-linear"], DIGITS, data, data.train, CPU)
    monkeypatch.setattr(one_by_one, "__getitem__", lambda self, index: (read.append(index), fetch(self, index))[1])
    training.end_epoch()
    assert len(read) == len(data.validation) + len(data.test)
