"""What is classified to say what a network learned; `test_contender` has the figures."""

import torch

from core.measure import breakdown, datasets
from core.measure.breakdown import RawValues


def test_ten_thousand_training_samples_are_classified_at_most_and_all_others(monkeypatch):
    data, asked, raw = datasets.load_dataset("digits", samples=300, seed=0), [], RawValues()

    def classify(_, split, device, *, at_most=None):
        asked.append((split, at_most))
        return split.labels[:at_most]

    monkeypatch.setattr(breakdown, "classify", classify)
    breakdown.examine(torch.nn.Identity(), 10, data, torch.device("cpu"), raw)
    assert [at_most for _, at_most in asked] == [10_000, None, None]
    assert [split for split, _ in asked] == [data.train, data.validation, data.test]
    assert (raw.train_accuracy, raw.validation_accuracy, sum(raw.confusion[::11])) == (1.0, 1.0, len(data.test.labels))
