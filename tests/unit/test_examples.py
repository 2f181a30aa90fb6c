"""Trainings to begin with: every one trains at a small size, says what one learns, and needs nothing but `build`."""

import importlib.util

import pytest
import torch

from core.files.project import PROJECT
from core.measure.own.foreign import Foreign
from core.measure.own.training import OwnTraining

FILES = sorted((PROJECT / "examples").glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_trains_at_a_small_size(file):
    spec = importlib.util.spec_from_file_location(f"example_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "What one learns:" in module.__doc__
    torch.manual_seed(0)
    training = OwnTraining(module.build(8, torch.device("cpu")), Foreign(file))
    training.advance(3)
    assert training.steps == 3
    assert training.learns in (True, None)
    assert all(torch.isfinite(torch.tensor(training.read_losses())))


def test_there_are_examples():
    assert len(FILES) >= 7
