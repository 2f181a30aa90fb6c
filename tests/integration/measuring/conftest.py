"""Measurements here have few pairs, of short blocks."""

import pytest

from core.measure import trial
from tests import brief


@pytest.fixture(autouse=True)
def few_pairs(monkeypatch):
    monkeypatch.setattr(trial, "TARGET_PAIRS", 3)
    brief.measurements(monkeypatch.setattr)
