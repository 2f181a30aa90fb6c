"""The loop is plain training, keeps its losses on the device, and its curve has one grid for all devices."""

import math
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from core.measure import datasets, networks
from core.measure.datasets import Split
from core.measure.training import CURVE_SEGMENTS, ROUNDINGS, LossCurve, Training, classify, nudge_weight
from core.question.experiment import Point

CPU = torch.device("cpu")
POINT = Point(samples=600, hidden_size=16, batch_size=50)


@pytest.fixture(scope="module")
def data():
    return datasets.load_dataset("digits", samples=POINT.samples, seed=0)


def started(data, *, first_step: int = 0) -> Training:
    feed = datasets.make_feed(POINT, data, data.train, CPU, first_step=first_step)
    training = Training(networks.build(POINT.network, seed=0), feed, learning_rate=0.1)
    training.rewind(feed, first_step)
    return training


def test_no_operation_joins_thousands_of_losses(data, monkeypatch):
    joined, real = [], torch.cat
    monkeypatch.setattr(torch, "cat", lambda parts: joined.append(len(parts)) or real(parts))
    training = started(data)
    training._losses = [torch.tensor(float(number)) for number in range(1_100)]
    assert training.read_losses() == list(map(float, range(1_100)))
    assert joined == [512, 512, 76, 3]


@pytest.mark.slow
def test_it_is_what_anyone_would_write_by_hand(data):
    network = networks.build(POINT.network, seed=0)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    expected = []
    for samples, labels in islice(datasets.make_feed(POINT, data, data.train, CPU).batches, 30):
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(samples), labels)
        loss.backward()
        optimizer.step()
        expected.append(loss.item())

    training = started(data)
    training.advance(30)
    assert training.read_losses() == expected
    assert all(torch.equal(a, b) for a, b in zip(training.weights(), network.parameters(), strict=True))


def test_it_learns(data):
    training = started(data)
    training.advance(120)
    predicted = classify(training.network, data.test, CPU)
    assert (predicted == data.test.labels).double().mean() > 0.8


def test_steps_in_pieces_are_the_same_training(data):
    whole, pieces = started(data), started(data)
    whole.advance(20)
    for steps in (1, 7, 12):
        pieces.advance(steps)
    assert whole.read_losses() == pieces.read_losses()
    assert (whole.steps, pieces.steps) == (20, 20)


def test_it_goes_on_from_saved_weights_as_if_nothing_had_happened(data):
    whole = started(data)
    whole.advance(12)
    resumed = started(data, first_step=12)
    resumed.set_weights(whole.weights())
    whole.read_losses()
    whole.advance(8)
    resumed.advance(8)
    assert whole.read_losses() == resumed.read_losses()


def test_weights_of_another_network_are_refused(data):
    with pytest.raises(ValueError, match="argument"):
        started(data).set_weights([torch.zeros(1)])


def test_losses_are_read_once(data):
    training = started(data)
    training.advance(3)
    assert len(training.read_losses()) == 3
    assert training.read_losses() == []


def test_nothing_is_read_from_the_device_while_it_trains(data, monkeypatch):
    """Each of these waits for an accelerator, which would put a drain into every step."""
    training = started(data)
    for name in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "nonzero"):
        monkeypatch.setattr(torch.Tensor, name, lambda *_, name=name: pytest.fail(f"Tensor.{name} synchronizes"))
    training.advance(5)


def test_an_empty_split_has_no_predictions(data):
    empty = datasets.Split(samples=data.test.samples[:0], labels=data.test.labels[:0])
    assert len(classify(started(data).network, empty, CPU)) == 0


losses = st.lists(st.floats(0, 100), min_size=1, max_size=700)


@given(losses, st.integers(1, 5_000))
def test_a_curve_is_the_mean_of_its_segments(values, total_steps):
    curve = LossCurve(total_steps=total_steps)
    curve.add(values)
    used = values[:total_steps]
    size = math.ceil(total_steps / CURVE_SEGMENTS)
    segments = [used[i : i + size] for i in range(0, len(used), size)]
    assert curve.means == pytest.approx([sum(segment) / len(segment) for segment in segments])
    assert curve.last_steps == tuple(min((i + 1) * size, len(used)) for i in range(len(segments)))
    assert len(segments) <= CURVE_SEGMENTS


@given(losses, st.integers(1, 700), st.integers(1, 1_000))
def test_it_does_not_matter_in_what_pieces_losses_arrive(values, cut, total_steps):
    whole, pieces = LossCurve(total_steps=total_steps), LossCurve(total_steps=total_steps)
    whole.add(values)
    pieces.add(values[:cut])
    pieces.add(values[cut:])
    assert whole == pieces


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_divergence_is_seen_where_it_counts(bad):
    curve = LossCurve(total_steps=3)
    curve.add([1.0, bad])
    assert curve.diverged
    beyond = LossCurve(total_steps=3)
    beyond.add([1.0, 1.0, 1.0, bad])
    assert not beyond.diverged


def test_the_curve_that_is_stored_has_two_hundred_points():
    assert [LossCurve(total_steps=steps).segment for steps in (200, 201, 1_000, 1_001)] == [1, 2, 5, 6]


def test_a_curve_that_has_no_loss_yet_is_empty():
    curve = LossCurve(total_steps=1_000)
    assert (curve.steps, curve.last_steps, curve.means, curve.diverged) == (0, (), (), False)
    curve.add([2.0, 4.0])
    assert (curve.steps, curve.last_steps, curve.means) == (2, (2,), (3.0,))


class Scarce(torch.nn.Module):
    """A network on a device with memory for so many samples at once."""

    def __init__(self, most):
        super().__init__()
        self.most, self.sizes = most, []

    def forward(self, samples):
        self.sizes.append(len(samples))
        if len(samples) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return torch.nn.functional.one_hot(samples[:, 0].long(), 10)


def numbered(count):
    return Split(samples=torch.arange(count).reshape(-1, 1) % 10, labels=torch.zeros(count, dtype=torch.int64))


@pytest.mark.parametrize(
    ("most", "sizes"),
    [
        (5_000, [4_096, 904]),
        (2_048, [4_096, 2_048, 2_048, 904]),
        (600, [4_096, 2_048, 1_024, *[512] * 9, 392]),
    ],
)
def test_samples_are_classified_in_smaller_parts_where_they_do_not_fit(most, sizes):
    network, split = Scarce(most), numbered(5_000)
    assert torch.equal(classify(network, split, CPU), split.samples[:, 0])
    assert network.sizes == sizes


def test_where_not_even_one_sample_can_be_classified_that_is_an_error():
    network = Scarce(0)
    with pytest.raises(torch.OutOfMemoryError):
        classify(network, numbered(3), CPU)
    assert network.sizes == [3, 1]


def test_an_error_that_has_nothing_to_do_with_memory_is_raised_at_once():
    with pytest.raises(ZeroDivisionError):
        classify(lambda _: 1 / 0, numbered(3), CPU)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_nudged_weight_is_some_roundings_apart_in_both_directions_and_alike_each_time(dtype):
    weight = torch.linspace(-2, 2, 1_001, dtype=dtype)
    moved = nudge_weight(weight)
    relative = ((moved - weight) / weight)[weight != 0] / (torch.finfo(dtype).eps / 2)
    assert moved.dtype == dtype
    assert torch.equal(moved, nudge_weight(weight))
    assert 2 < relative.max() <= ROUNDINGS + 2
    assert -ROUNDINGS - 2 <= relative.min() < -2
