"""A file as it would be run by itself: its arguments, and what it printed before it ended."""

import sys

import pytest
import torch

from core.errors import CustomTrainingFailed
from core.measure.custom.training import CustomTraining
from core.measure.custom.user_code import UserCode, load_builder
from tests.own_trainings import FUNCTION, asked

PARSES = "import argparse\nparser = argparse.ArgumentParser()\n"


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Imports the text of a file and builds what is in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["worker", "--queue", "of-ours"])

    def build(text, count=1, between=lambda file: None):
        file = tmp_path / f"mine_{abs(hash(text))}.py"
        file.write_text(text, encoding="utf-8")
        point = asked(file).point
        foreign, function = load_builder(str(tmp_path), point.training, point.source_hash)
        made = []
        for _ in range(count):
            made.append(CustomTraining(function(8, torch.device("cpu")), foreign))
            between(file)
        return made if count > 1 else made[0]

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
    with pytest.raises(CustomTrainingFailed, match="required: --dataset"):
        built(f"{PARSES}parser.add_argument('--dataset', required=True)\nparser.parse_args()\n{FUNCTION}")


SCRIPT = """
import pickle
import mine_shared
from mine_shared import Net
model, seen = Net(), []
def build(size, device):
    global model
    model = Net()
    while True:
        model.steps += 1
        mine_shared.TRAINED.append(size)
        pickle.dumps(model)
        yield float(model.steps + len(mine_shared.TRAINED))
"""


def test_what_is_global_in_a_script_and_in_what_it_imports_is_each_training_s_own(built, tmp_path):
    (tmp_path / "mine_shared.py").write_text("TRAINED = []\nclass Net:\n    steps = 0\n")
    one, other = built(SCRIPT, count=2)
    one.advance(5)
    other.advance(1)
    one.advance(1)
    assert one.read_losses() == [12.0]
    assert other.read_losses() == [2.0]


def test_a_file_that_is_changed_while_it_is_measured_is_measured_no_further(built):
    with pytest.raises(CustomTrainingFailed, match="changed while it was measured"):
        built(FUNCTION, count=2, between=lambda file: file.write_text(f"{FUNCTION}# changed\n"))


def test_what_is_installed_within_the_folder_of_a_file_is_none_of_its_own(tmp_path):
    foreign = UserCode(tmp_path / "mine.py")
    assert foreign.owns(str(tmp_path / "parts" / "mine_parts.py"))
    assert not foreign.owns(str(tmp_path / ".venv" / "lib" / "site-packages" / "torch" / "_tensor.py"))
    assert not foreign.owns("/elsewhere/mine.py")


def test_a_file_that_takes_itself_away_trains_all_the_same(built):
    away = FUNCTION.replace(
        "def build(size, device):", "def build(size, device):\n    __import__('os').remove(__file__)"
    )
    training = built(away)
    training.advance(1)
    assert training.steps == 1


@pytest.mark.parametrize(
    "line", ['"cuda" in device', "device.startswith('cuda')", "__import__('json').dumps({'device': device})"]
)
def test_a_device_that_is_used_as_a_string_is_explained(built, line):
    text = FUNCTION.replace("def build(size, device):\n", f"def build(size, device):\n    {line}\n")
    with pytest.raises(CustomTrainingFailed, match=r"Write str\(device\) where the script needs a string"):
        built(text)
