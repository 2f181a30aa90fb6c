"""A place where files of others are measured, after which this process is as before."""

import gc
import random
import sys
import uuid

import pytest
import torch

from core.measure import trial
from tests import own_trainings


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Measures the text of a file; rows, or the error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    before, threads, state = set(sys.modules), torch.get_num_threads(), random.getstate()

    def measure(text, contenders=("cpu@1",), **asked):
        file = tmp_path / f"mine_{uuid.uuid4().hex[:8]}.py"
        file.write_text(text, encoding="utf-8")
        return trial.measure(own_trainings.asked(file, contenders=contenders, **asked), hooks=trial.Hooks())

    gc.freeze()  # tensors are looked for among all objects, of which other tests left hundreds of thousands
    yield measure
    gc.unfreeze()
    for name in set(sys.modules) - before:
        if name.startswith(("mine_", "own_")):
            del sys.modules[name]
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)
    random.setstate(state)
