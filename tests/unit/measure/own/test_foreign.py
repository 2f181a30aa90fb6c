"""A file as it would be run by itself: its arguments, and what it printed before it ended."""

import sys

import pytest
import torch

from core.errors import OwnTrainingFailed
from core.measure.own.foreign import builder
from core.measure.own.training import OwnTraining
from tests.own_trainings import FUNCTION, asked

PARSES = "import argparse\nparser = argparse.ArgumentParser()\n"


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Imports the text of a file and builds what is in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["worker", "--queue", "of-ours"])

    def build(text):
        file = tmp_path / f"mine_{abs(hash(text))}.py"
        file.write_text(text, encoding="utf-8")
        point = asked(file).point
        foreign, function = builder(str(tmp_path), point.training, point.source_hash)
        return OwnTraining(function(8, torch.device("cpu")), foreign)

    before = set(sys.modules)
    yield build
    for name in set(sys.modules) - before:
        if name.startswith("mine_"):
            del sys.modules[name]


def test_a_file_that_parses_arguments_finds_none_of_ours(built):
    training = built(f"{PARSES}parser.add_argument('--epochs', type=int, default=3)\nparser.parse_args()\n{FUNCTION}")
    training.advance(1)
    assert training.steps == 1


def test_arguments_that_a_file_insists_on_are_named(built):
    with pytest.raises(OwnTrainingFailed, match="required: --dataset"):
        built(f"{PARSES}parser.add_argument('--dataset', required=True)\nparser.parse_args()\n{FUNCTION}")
