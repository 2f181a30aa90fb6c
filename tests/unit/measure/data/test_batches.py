"""Every data path delivers the same batches in the same order."""

from itertools import islice

import pytest
import torch

from core.measure import datasets
from core.question.experiment import Point
from core.question.fields import DATA_PATHS
from tests import idx

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = idx.write(tmp_path_factory.mktemp("data"))
    return datasets.load_dataset("mnist", samples=300, seed=0, folder=folder)


def take(point: Point, data: datasets.Data, count: int, first_step: int = 0) -> list[datasets.Batch]:
    feed = datasets.make_feed(point, data, data.train, CPU, first_step=first_step)
    return [feed.place(batch) for batch in islice(feed.batches, count)]


def point(**changes: object) -> Point:
    return Point(**{"dataset": "mnist", "samples": 300, "batch_size": 64, **changes})


def same(first: list[datasets.Batch], second: list[datasets.Batch]) -> bool:
    return all(torch.equal(a, c) and torch.equal(b, d) for (a, b), (c, d) in zip(first, second, strict=True))


@pytest.mark.parametrize("data_path", DATA_PATHS)
@pytest.mark.parametrize("shuffle", [True, False])
def test_paths_agree_over_epoch_borders(data, data_path, shuffle):
    expected = take(point(shuffle=shuffle), data, 10)
    assert same(take(point(shuffle=shuffle, data_path=data_path), data, 10), expected)


def test_workers_change_nothing(data):
    expected = take(point(), data, 6)
    assert same(take(point(data_path="loader", loader_workers=1), data, 6), expected)


@pytest.mark.parametrize("data_path", DATA_PATHS)
@pytest.mark.parametrize("first_step", [1, 4, 7])
def test_a_feed_can_begin_in_the_middle(data, data_path, first_step):
    expected = take(point(), data, 10)[first_step:]
    assert same(take(point(data_path=data_path), data, 10 - first_step, first_step), expected)


def test_batches_are_full_and_an_epoch_meets_no_sample_twice(data):
    steps = point().steps_per_epoch
    taken = take(point(), data, steps)
    assert {len(labels) for _, labels in taken} == {64}
    rows = {row.numpy().tobytes() for samples, _ in taken for row in samples}
    assert len(rows) == 64 * steps


def test_every_epoch_has_its_own_order_and_a_seed_repeats_it():
    assert not torch.equal(datasets.batch_order(point(), 0), datasets.batch_order(point(), 1))
    assert torch.equal(datasets.batch_order(point(), 3), datasets.batch_order(point(), 3))
    assert not torch.equal(datasets.batch_order(point(), 0), datasets.batch_order(point(seed=1), 0))


def test_without_shuffling_the_order_is_that_of_the_data():
    assert torch.equal(datasets.batch_order(point(shuffle=False), 5), torch.arange(256))


def test_workers_are_said_to_run_ahead(data):
    feed = datasets.make_feed(point(data_path="loader", loader_workers=2), data, data.train, CPU)
    assert feed.prefetched == 2 * datasets.PREFETCHED_PER_WORKER


@pytest.mark.parametrize("data_path", ["per_batch", "loader", "tutorial"])
def test_batches_are_made_on_the_host_and_placed_on_the_device(data, data_path):
    meta = torch.device("meta")
    feed = datasets.make_feed(point(data_path=data_path), data, data.train, meta)
    drawn = next(feed.batches)
    placed = feed.place(drawn)
    assert {tensor.device for tensor in drawn} == {CPU}
    assert {tensor.device for tensor in placed} == {meta}


@pytest.mark.parametrize(("data_path", "pins"), [("loader", False), ("pinned", True), ("tutorial", False)])
def test_batches_are_pinned_only_where_that_is_asked_for(data, monkeypatch, data_path, pins):
    """The tutorials copy from ordinary memory, and a pinned copy of a small batch costs more than it spares."""
    asked = []
    monkeypatch.setattr(datasets, "_loader", lambda *_, pinned, **__: asked.append(pinned))
    for device in ("cuda:0", "xpu:0", "mps", "cpu"):
        datasets.make_feed(point(data_path=data_path), data, data.train, torch.device(device))
    assert asked == [pins, pins, False, False]


def test_batches_that_are_joined_for_several_steps_stay_in_pinned_memory(data, monkeypatch):
    pinned, real = [], torch.empty
    monkeypatch.setattr(torch, "empty", lambda *shape, pin_memory, **how: pinned.append(shape) or real(*shape, **how))
    drawn = [(data.train.samples[place : place + 4], data.train.labels[place : place + 4]) for place in (0, 4)]
    samples, labels = datasets._join_batches(iter(drawn), 2, pinned=True)
    assert pinned == [((8, *data.train.samples.shape[1:]),), ((8,),)]
    assert torch.equal(samples, data.train.samples[:8])
    assert torch.equal(labels, data.train.labels[:8])
