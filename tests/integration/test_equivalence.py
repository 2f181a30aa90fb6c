"""Same learning on real trainings: a CPU against itself with sums taken in another order, and what a gap looks like."""

import dataclasses
import statistics

import pytest
import torch
from torch import nn

from core.answer.accuracy import find_seed_band, judge_equivalence
from core.measure import datasets, networks
from core.measure.training import LossCurve, Training, classify
from core.question.experiment import Contender, Experiment, Point
from tests import rows

POINT = Point(dataset="digits", model="mlp", hidden_size=32, depth=1, batch_size=64, epochs=12, learning_rate=0.1)
ONE, TWO = "cpu@1", "cpu@2"
PAIR = {"baseline": ONE, "challenger": TWO}
SEEDS = range(6)


class _Backwards(nn.Module):
    """The same network, its first sums taken from the last feature to the first."""

    def __init__(self, network: nn.Sequential) -> None:
        super().__init__()
        self.flatten, first, *rest = network
        self.first = first
        with torch.no_grad():
            first.weight.copy_(first.weight.flip(1))
        self.rest = nn.Sequential(*rest)

    def forward(self, samples):
        return self.rest(self.first(self.flatten(samples).flip(1)))


def trained(seed: int, contender: str):
    """The row of a training that was done here, and its last bias; what stands for two threads sums backwards."""
    point = dataclasses.replace(POINT, seed=seed)
    data = datasets.load_dataset(point.dataset, samples=point.samples, seed=seed)
    network: nn.Module = networks.build(point.network, seed)
    if contender == TWO:
        network = _Backwards(network)
    torch.set_num_threads(1)  # two would wait for each other wherever something else runs
    cpu = torch.device("cpu")
    training = Training(network, datasets.make_feed(point, data, data.train, cpu), learning_rate=point.learning_rate)
    training.advance(point.total_steps)
    curve = LossCurve(total_steps=point.total_steps)
    curve.add(training.read_losses())
    predicted = classify(network, data.test, cpu).tolist()
    row = rows.trial(
        contender=contender,
        experiment=Experiment(point=point, contenders=(Contender.parse(ONE), Contender.parse(TWO))),
        run_id=f"{seed:012x}",
        dataset_hash=data.hash,
        test_samples=len(data.test),
        steps=point.total_steps,
        loss=curve.means,
        loss_step=curve.last_steps,
        **columns_of(data.test.labels.tolist(), predicted),
    )
    return row, list(network.parameters())[-1].detach().clone(), data.test.labels.tolist()


def columns_of(truth, predicted):
    """The two columns of a test."""
    confusion = [0] * 100
    for label, answer in zip(truth, predicted, strict=True):
        confusion[label * 10 + answer] += 1
    return {"confusion": tuple(confusion), "predictions": bytes(predicted)}


@pytest.fixture(scope="module")
def trainings():
    before = torch.get_num_threads()
    found = {(seed, contender): trained(seed, contender) for seed in SEEDS for contender in (ONE, TWO)}
    torch.set_num_threads(before)
    return found


@pytest.fixture
def trials(trainings):
    return [row for row, *_ in trainings.values()]


def test_the_sums_really_were_taken_in_another_order(trainings):
    assert any(not torch.equal(trainings[seed, ONE][1], trainings[seed, TWO][1]) for seed in SEEDS)


def test_a_cpu_against_itself_with_another_order_of_sums_is_equivalent(trials):
    found = judge_equivalence(trials, **PAIR, margin=_scatter(trials))
    assert found.verdict == "equivalent"
    assert found.seeds == tuple(SEEDS)
    assert found.sentence.startswith("Equivalent within ±")


def _scatter(trials):
    """Half a percentage point, or the standard deviation of the seeds if larger."""
    return max(0.005, statistics.stdev(ours for ours, _ in judge_equivalence(trials, **PAIR, margin=0.5).accuracies))


def test_its_loss_curves_are_nearer_to_each_other_than_those_of_two_seeds(trials):
    found = find_seed_band(trials, **PAIR)
    assert found.same_seed < found.seed_to_seed / 100
    assert found.inside == 1.0


def test_two_of_these_seeds_are_too_few(trials):
    found = judge_equivalence([trial for trial in trials if trial.seed < 2], **PAIR, margin=0.005)
    assert found.verdict == "too_few_seeds"


def test_a_gap_of_three_points_planted_into_these_trainings_is_flagged(trainings):
    planted = []
    for (_, contender), (row, _, truth) in trainings.items():
        predicted = list(row.predictions)
        right = [item for item, label in enumerate(truth) if predicted[item] == label]
        for item in right[: round(0.03 * len(truth))] if contender == TWO else ():
            predicted[item] = (predicted[item] + 1) % 10
        planted.append(dataclasses.replace(row, **columns_of(truth, predicted)))
    found = judge_equivalence(planted, **PAIR, margin=_scatter(planted))
    assert found.verdict == "different"
    assert found.mean == pytest.approx(-0.03, abs=0.005)
