"""Samples that every lane trains on."""

import pytest

from core.measure import datasets
from tests.unit.measure.execution.trained import POINT


@pytest.fixture(scope="module")
def data():
    return datasets.load_dataset("digits", samples=POINT.samples, seed=0)
