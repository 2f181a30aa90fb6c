"""The trainings of public cases run as they are, and each remedy trains what its case trains."""

import importlib.util
import inspect

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from core.question.published import CASES_FOLDER, load_cases

CPU = torch.device("cpu")


def loaded(file):
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def builders(module):
    found = inspect.getmembers(module, inspect.isfunction)
    return {f"{module.__name__}.py:{name}": made for name, made in found if not name.startswith("_")}


BUILDERS = {name: made for file in sorted(CASES_FOLDER.glob("*.py")) for name, made in builders(loaded(file)).items()}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # several would wait for each other beside other tests
    yield
    torch.set_num_threads(before)


def train(built):
    """Train a batch."""
    if callable(built):
        built()
    else:
        built.step(built.place(next(iter(built.batches))))


@pytest.mark.parametrize("name", BUILDERS)
def test_it_trains(name):
    built, updated = BUILDERS[name](8, CPU), []
    hook = register_optimizer_step_post_hook(lambda *_: updated.append(True))
    try:
        train(built)
    finally:
        hook.remove()
    assert updated


def test_every_training_belongs_to_a_case():
    named = {setting.training for one in load_cases().values() for setting in (one.here, one.remedy) if setting}
    assert named - {""} == set(BUILDERS)
