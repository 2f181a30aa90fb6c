"""Data sets: seeded, standardised, split, hashed, and honest when they are missing."""

import gc
import importlib.metadata
import socket

import numpy as np
import pytest
import torch

from core.errors import DatasetUnavailable, InvalidValue
from core.measure import datasets
from core.question import catalog
from core.question.experiment import Point
from tests import idx

BUNDLED = [name for name, facts in catalog.DATASETS.items() if facts.bundled]
IMAGES = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}


ROWS = 50
LENGTH = 12
"""Tokens of a sample."""


def few(name: str) -> int:
    """Training samples of a set: 300, or all that it has."""
    return min(300, catalog.DATASETS[name].max_samples)


@pytest.fixture
def load(tmp_path):
    def loaded(name: str, *, samples: int = 0, seed: int = 0) -> datasets.Data:
        samples = samples or few(name)
        if name in IMAGES and not (tmp_path / IMAGES[name]).exists():
            idx.write(tmp_path, loader=IMAGES[name])
        sizes = {"sequence_length": LENGTH, "embedding_rows": ROWS}
        return datasets.load_dataset(name, samples=samples, seed=seed, **sizes, folder=tmp_path)

    return loaded


@pytest.mark.parametrize("name", catalog.DATASETS)
def test_samples_have_the_shape_type_and_classes_of_the_catalog(load, name):
    data, facts = load(name), catalog.DATASETS[name]
    assert len(data.train) == few(name)
    for split in (data.train, data.validation, data.test):
        assert split.samples.shape == (len(split.labels), *facts.shape_for_length(LENGTH))
        kind = torch.int32 if facts.vocabulary else torch.float32
        assert (split.samples.dtype, split.labels.dtype) == (kind, torch.int64)
    assert set(data.train.labels.tolist()) == set(range(len(facts.classes)))


@pytest.mark.parametrize("name", [name for name, facts in catalog.DATASETS.items() if not facts.vocabulary])
def test_training_samples_are_standardised(load, name):
    samples = load(name).train.samples
    assert float(samples.mean()) == pytest.approx(0, abs=1e-4)
    assert float(samples.std()) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("name", catalog.DATASETS)
def test_equal_seeds_give_equal_data_and_another_seed_other_data(load, name):
    first, again, other = load(name), load(name), load(name, seed=1)
    assert torch.equal(first.train.samples, again.train.samples)
    assert first.hash == again.hash
    assert first.hash != other.hash


@pytest.mark.parametrize("name", catalog.DATASETS)
def test_no_sample_is_in_two_parts(load, name):
    data = load(name)
    rows = [{row.numpy().tobytes() for row in split.samples} for split in (data.train, data.validation, data.test)]
    assert not rows[0] & rows[1]
    assert not rows[0] & rows[2]
    assert not rows[1] & rows[2]


@pytest.mark.parametrize("name", catalog.DATASETS)
def test_one_by_one_gives_the_very_same_samples(load, name):
    data = load(name)
    for index in (0, 7, len(data.train) - 1):
        sample, label = data.one_by_one[index]
        assert torch.equal(sample, data.train.samples[index])
        assert label == data.train.labels[index]


def test_digits_are_scikit_learns_own(load):
    bundled = pytest.importorskip("sklearn.datasets").load_digits()
    data = load("digits", samples=1_257)
    parts = [split.labels.numpy() for split in (data.train, data.validation, data.test)]
    assert sorted(np.concatenate(parts)) == sorted(bundled.target)
    mean, std = scale(bundled.images, data)
    restored = data.test.samples.numpy() * std + mean
    known = {image.astype(np.uint8).tobytes() for image in bundled.images}
    assert all(image.round().astype(np.uint8).tobytes() in known for image in restored[:, 0])


@pytest.mark.parametrize("name", ["breast-cancer", "wine", "diabetes"])
def test_bundled_tables_are_scikit_learns_own_and_every_row_is_used_once(load, name):
    sklearn = pytest.importorskip("sklearn.datasets")
    data, facts = load(name, samples=catalog.DATASETS[name].max_samples), catalog.DATASETS[name]
    options = {"scaled": False} if name == "diabetes" else {}
    bundled = getattr(sklearn, f"load_{name.replace('-', '_')}")(**options)
    thirds = np.searchsorted((100, 184), bundled.target)
    labels = thirds if name == "diabetes" else bundled.target
    order = np.random.default_rng(0).permutation(len(labels))
    parts = (data.test, data.validation, data.train)
    assert np.concatenate([part.labels.numpy() for part in parts]).tolist() == labels[order].tolist()
    assert sum(map(len, parts)) == len(labels)
    assert facts.default_samples == facts.max_samples == len(data.train)
    samples, rows = torch.cat([part.samples for part in parts]).numpy(), bundled.data[order]
    train = rows[-len(data.train) :]
    assert np.allclose(samples, (rows - train.mean(axis=0)) / train.std(axis=0), atol=1e-3)


def test_the_thirds_of_the_diabetes_set_are_about_equally_large(load):
    data = load("diabetes", samples=308)
    counts = torch.cat([data.train.labels, data.validation.labels, data.test.labels]).bincount()
    assert counts.tolist() == [148, 147, 147]


def scale(images: np.ndarray, data: datasets.Data) -> tuple[float, float]:
    """Undo the standardisation: pixels run from 0 to 16 in the bundle."""
    low, high = float(data.train.samples.min()), float(data.train.samples.max())
    std = (images.max() - images.min()) / (high - low)
    return float(images.min() - low * std), float(std)


def test_the_disc_is_labelled_by_the_tutorials_rule():
    points, labels = datasets._disc(np.random.default_rng(0), 20_000)
    assert points.min() >= 0
    assert points.max() <= 1
    inside = points[labels == 1]
    assert (inside**2).sum(axis=1).max() < 1 / (2 * np.pi)
    assert labels.mean() == pytest.approx(1 / 8, abs=0.01)


@pytest.mark.parametrize("name", ["disc", "signal"])
def test_synthetic_data_say_that_they_are(name):
    assert catalog.DATASETS[name].summary.startswith("Synthetic")


def test_missing_files_are_named_with_their_folder_and_what_works_without(tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", offline)
    with pytest.raises(DatasetUnavailable, match="digits, which needs no download") as caught:
        datasets.load_dataset("mnist", samples=300, seed=0, folder=tmp_path)
    assert str(tmp_path / "MNIST" / "raw") in str(caught.value)


def offline(*_: object, **__: object) -> None:
    raise OSError("no network")


def test_torn_image_files_are_an_answer_too(tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", offline)
    raw = idx.write(tmp_path) / "MNIST" / "raw"
    images = raw / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:1_000])
    with pytest.raises(DatasetUnavailable, match="MNIST is not on this machine"):
        datasets.load_dataset("mnist", samples=300, seed=0, folder=tmp_path)


def test_more_samples_than_the_files_hold_is_refused(load):
    with pytest.raises(InvalidValue, match=r"samples must be at most the 400 training images"):
        load("mnist", samples=401)


def test_all_images_can_be_trained_on_and_then_none_is_left_to_validate(load):
    data = load("fashion-mnist", samples=400)
    assert (len(data.train), len(data.validation), len(data.test)) == (400, 0, 100)


def test_the_time_limit_for_downloads_is_taken_back(load):
    before = socket.getdefaulttimeout()
    load("mnist")
    assert socket.getdefaulttimeout() == before


@pytest.mark.parametrize("name", BUNDLED)
def test_what_comes_with_scikit_learn_says_what_to_install_without_it(monkeypatch, name):
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(DatasetUnavailable, match="pip install scikit-learn"):
        datasets.load_dataset(name, samples=100, seed=0)


@pytest.mark.parametrize("name", ["digits", "signal"])
def test_samples_in_float64_are_the_same_numbers_and_have_the_same_hash(load, name):
    plain, longer = load(name), datasets.load_dataset(name, samples=few(name), seed=0, dtype="float64")
    assert longer.hash == plain.hash
    for part in ("train", "validation", "test"):
        samples = getattr(longer, part).samples
        assert samples.dtype == torch.float64
        assert torch.equal(samples.float(), getattr(plain, part).samples)
    sample, label = longer.one_by_one[7]
    assert torch.equal(sample, longer.train.samples[7])
    assert label == longer.train.labels[7]
    assert len(longer.one_by_one) == len(longer.train)


def test_clicks_are_numbers_below_the_rows_that_are_asked_for_and_the_class_follows_from_the_category():
    few_rows, many = (
        datasets.load_dataset("clicks", samples=2_000, seed=0, embedding_rows=rows).train for rows in (10, 1_000_000)
    )
    assert (int(few_rows.samples.min()), int(few_rows.samples.max())) == (0, 9)
    assert torch.equal(few_rows.labels, many.labels)
    assert float(many.labels.float().mean()) == pytest.approx(0.4, abs=0.15)
    counts = many.samples[:, 0].unique(return_counts=True)[1]
    assert counts.max() > 0.03 * len(many)  # few are frequent
    assert (counts == 1).sum() > 0.5 * len(counts)  # and most are rare


@pytest.mark.slow
def test_what_is_in_use_is_not_loaded_again_and_what_is_not_is_forgotten():
    held = datasets.load_dataset("disc", samples=100, seed=5)
    assert datasets.load_dataset("disc", samples=100, seed=5) is held
    assert datasets.load_dataset("disc", samples=100, seed=6) is not held
    name = held.hash
    del held
    gc.collect()
    assert not [key for key in datasets._LOADED if key[0] == "disc" and key[2] == 5]
    assert datasets.load_dataset("disc", samples=100, seed=5).hash == name


@pytest.mark.parametrize("length", [4, 40])
def test_three_tokens_come_once_each_in_the_order_that_the_class_names(length):
    data = datasets.load_dataset("token-order", samples=200, seed=0, sequence_length=length)
    facts, names = catalog.DATASETS["token-order"], "abc"
    assert data.train.samples.shape == (200, length)
    assert int(data.train.samples.max()) < facts.vocabulary
    for sample, label in zip(data.train.samples.tolist(), data.train.labels.tolist(), strict=True):
        assert "".join(names[token] for token in sample if token < 3) == facts.classes[label]


def test_tokens_are_the_same_whatever_a_network_computes_in_and_others_of_another_length():
    plain, longer = (
        datasets.load_dataset("token-order", samples=100, seed=0, sequence_length=8, dtype=dtype)
        for dtype in ("float32", "float64")
    )
    assert torch.equal(plain.train.samples, longer.train.samples)
    assert longer.train.samples.dtype == torch.int32
    assert plain.hash == longer.hash
    assert plain.hash != datasets.load_dataset("token-order", samples=100, seed=0, sequence_length=9).hash


def test_the_data_of_a_training_are_those_of_its_own_length():
    assert datasets.load_point_data(
        Point(dataset="token-order", samples=100, sequence_length=5)
    ).train.samples.shape == (100, 5)
