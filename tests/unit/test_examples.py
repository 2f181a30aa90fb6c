"""Trainings to begin with: every one trains at a small size, says what one learns, and needs nothing but `build`."""

import importlib.util
import re

import pytest
import torch

from core.files.project import PROJECT
from core.measure.custom.training import CustomTraining
from core.measure.custom.user_code import UserCode

FOLDER = PROJECT / "examples"
FILES = sorted(FOLDER.glob("*.py"))
NEEDED = {"accelerated": "accelerate", "lightning_module": "pytorch_lightning"}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # several would wait for each other beside other tests
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_trains_at_a_small_size_and_on_another_device_anew(file):
    if needed := NEEDED.get(file.stem):
        pytest.importorskip(needed, reason=f"{needed} is not installed: pip install -r examples/requirements.txt")
    spec = importlib.util.spec_from_file_location(f"example_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "What one learns:" in module.__doc__
    losses = []
    for _ in range(2):
        torch.manual_seed(0)
        training = CustomTraining(module.build(8, torch.device("cpu")), UserCode(file))
        training.advance(3)
        assert training.steps == 3
        assert training.learns in (True, None)
        losses.append(training.read_losses())
    assert all(torch.isfinite(torch.tensor(losses[0])))
    assert losses[0] == losses[1]


def test_the_twelve_are_listed_with_what_one_learns_as_they_say_it_themselves():
    rows = re.findall(r"^\| \[(\w+)\.py\].* \| (.+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert sorted(name for name, _ in rows) == [file.stem for file in FILES]
    assert len(rows) == 12
    for name, learned in rows:
        text = (FOLDER / f"{name}.py").read_text()
        assert learned in text.splitlines()[0].partition("What one learns: ")[2]
