"""A custom script within a project of its own: it finds what `python script.py` would find, and nothing is changed."""

import json
import os
import sys
import sysconfig
import time
import venv

import pytest

from core import __main__ as command_line
from core.jobs import client
from core.jobs.queue import Queue
from core.results.store import Store
from tests import nodes
from tests.own_trainings import asked

pytestmark = pytest.mark.slow

SCRIPT = """
import os, pathlib
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import core.models, crossover, pages, tests.shapes

HERE = pathlib.Path(__file__).parent

class Own:
    def __init__(self, size, device):
        for module in (core, core.models, crossover, pages, tests, tests.shapes):
            assert pathlib.Path(module.__file__).is_relative_to(HERE), module.__file__
        assert os.environ["RATE_OF_THE_PROJECT"] == "0.5"
        self.model = core.models.Net(size, int(pathlib.Path("data/classes.txt").read_text())).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=float(os.environ["RATE_OF_THE_PROJECT"]))
        data = TensorDataset(torch.randn(256, size), torch.randint(0, 3, (256,)))
        self.batches, self.device = DataLoader(data, 64, num_workers=2, persistent_workers=True), device

    def parameters(self):
        return self.model.parameters()

    def step(self, batch):
        samples, labels = (part.to(self.device) for part in batch)
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(samples), labels).backward()
        self.optimizer.step()

def build(size, device):
    return Own(size, device)
"""

FILES = {
    "core/__init__.py": "",
    "core/models.py": "from torch import nn\nclass Net(nn.Linear):\n    pass\n",
    "crossover.py": "POINTS = 2\n",
    "pages/__init__.py": "",
    "tests/__init__.py": "",
    "tests/shapes.py": "",
    "data/classes.txt": "3",
    "train.py": SCRIPT,
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with packages that are named like ours, in which somebody works."""
    folder = tmp_path / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for name, value in nodes.surroundings(tmp_path / "machine").items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    yield folder
    nodes.kill_machine(tmp_path / "machine")


def run(*words):
    return command_line.main(
        ["run", "--training", "train.py", "--size", "8", "--devices", "cpu@1", "--budget", "5", "--fresh", *words]
    )


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_project_with_packages_named_like_ours_is_measured_and_left_as_it_was(project, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RATE_OF_THE_PROJECT", "0.1")
    client.ensure_worker(Queue())
    monkeypatch.setenv("RATE_OF_THE_PROJECT", "0.5")
    before = contents(project)
    deadline = time.monotonic() + 120
    while not ((found := client.load_machine(Queue())) and found.live) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert run("--store", str(tmp_path / "results"), "--json") == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert (document["training"], document["parameters"]) == ("train.py:build", 8 * 3 + 3)
    (row,) = Store(tmp_path / "results").trials()
    assert row.breakdown_loader_s, "the loader of two workers was timed"
    assert said.err.count("The measuring process is restarted") == 1
    assert contents(project) == before
    assert not list((tmp_path / "machine" / "jobs").rglob("environment.json"))


STEPS = """
import only_of_the_project
import torch

def build(size, device):
    weights = torch.ones(size, size, device=device)
    while True:
        weights = weights @ weights / size
        yield
"""


@pytest.mark.skipif(sys.platform == "win32", reason="links to an interpreter need rights there")
def test_a_script_imports_the_packages_of_the_interpreter_that_asks(project, tmp_path, monkeypatch, capsys):
    client.ensure_worker(Queue())
    venv.create(tmp_path / "venv", symlinks=True)
    (packages,) = (tmp_path / "venv").glob("lib/*/site-packages")
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    (packages / "only_of_the_project.py").write_text("", encoding="utf-8")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "bin" / "python"))
    (project / "train.py").write_text(STEPS, encoding="utf-8")
    assert run("--store", str(tmp_path / "results")) == 0, capsys.readouterr().err


def test_environment_variables_of_a_waiting_job_are_for_its_owner_alone(project, tmp_path):
    queue = Queue()
    job = queue.submit(asked(project / "train.py"), Store(tmp_path / "results"))
    (kept,) = queue.folder.rglob("environment.json")
    assert sys.platform == "win32" or kept.stat().st_mode & 0o777 == 0o600
    assert queue.files(job.id).read_environment() == dict(os.environ)
    queue.request_stop(job.id)
    assert not kept.exists()


SLEEPS = "import time\ndef build(size, device):\n    def evaluate():\n        time.sleep(600)\n    return evaluate\n"
SWALLOWS = """
import time
def wait():
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
def build(size, device):
    return wait
"""


@pytest.mark.parametrize(("text", "said"), [(SLEEPS, "4 in evaluate, an evaluation. Leave"), (SWALLOWS, "6 in wait.")])
def test_a_first_step_that_never_ends_is_ended_with_its_line(project, tmp_path, capsys, text, said):
    (project / "train.py").write_text(text, encoding="utf-8")
    assert run("--budget", "2", "--store", str(tmp_path / "results")) == 1
    told = capsys.readouterr()
    assert " in the first step on 1 CPU thread; most of it was spent at train.py:" + said in told.err
    assert told.out == ""
