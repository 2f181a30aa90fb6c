"""What a network learned: its share of right answers on each split, and what it takes each test sample for."""

import torch

from core.measure.data.datasets import Data, Split
from core.measure.readings.raw_values import RawValues
from core.measure.training import Classifier, classify

TRAIN_ACCURACY_SAMPLES = 10_000
"""Training samples that are classified; enough for 1 % and quick on a slow device."""


def examine(network: Classifier, classes: int, data: Data, device: torch.device, raw: RawValues) -> None:
    """Classify with a network, and keep the shares, predictions and counts of true and predicted classes in `raw`."""
    trained = _share_right(network, data.train, device, at_most=TRAIN_ACCURACY_SAMPLES)
    validated = _share_right(network, data.validation, device)
    predicted = classify(network, data.test, device)
    counts = torch.bincount(data.test.labels * classes + predicted, minlength=classes * classes)
    raw.train_accuracy, raw.validation_accuracy = trained, validated
    raw.confusion, raw.predictions = tuple(counts.tolist()), tuple(predicted.tolist())


def _share_right(
    network: Classifier, split: Split, device: torch.device, *, at_most: int | None = None
) -> float | None:
    """Share of right answers, None where there is nothing to answer."""
    predicted = classify(network, split, device, at_most=at_most)
    return float((predicted == split.labels[:at_most]).double().mean()) if len(predicted) else None
