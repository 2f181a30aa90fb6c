"""The door for notebooks: the example of the guide, as written there, measures, stores and answers."""

import os
import re
import subprocess
import sys

import pytest

import core
from core.errors import InvalidValue, JobError
from core.files.project import PROJECT
from core.jobs import client
from core.jobs.queue import Queue
from core.question.experiment import Contender, Experiment, Point
from core.results.store import Store
from tests import brief, rows


def example() -> str:
    return re.search(
        r"```python\n(from core import .+?)```", (PROJECT / "docs" / "getting-started.md").read_text(), re.S
    )[1]


@pytest.fixture
def surroundings(tmp_path):
    folders = {"CROSSOVER_JOBS": str(tmp_path / "jobs"), "CROSSOVER_LOCK": str(tmp_path / "lock")}
    yield {**os.environ, **folders, "PYTHONPATH": str(PROJECT)}
    Queue(tmp_path / "jobs").worker_file.dismiss()


def test_the_example_of_the_readme_measures_stores_and_answers(surroundings, tmp_path):
    worker = f"from core.jobs import client\nclient.COMMAND = {brief.COMMAND!r}\n"
    code = worker + example() + "import sys\nprint(*sys.modules, sep=',')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    verdict, sentence, modules = done.stdout.strip().splitlines()
    trials = Store(tmp_path / "my-results").trials()
    assert {trial.hidden_size for trial in trials} == {8, 32, 128}
    assert {trial.outcome for trial in trials} == {"completed", "timed"}
    compared = core.speedup(*(trial for trial in trials if trial.outcome == "completed"))
    assert verdict == f"{compared.value} {core.verdict_sentence(compared)}"  # of a busy machine there is none
    found = [core.crossover(study) for study in core.studies(trials, axis="hidden_size")]
    assert sentence in {answer.sentence for answer in found}
    assert not {"torch", "streamlit", "altair"} & set(modules.split(","))


def test_the_example_is_at_most_ten_lines():
    assert len([line for line in example().splitlines() if line]) <= 10


def test_importing_the_door_costs_nothing_and_every_name_of_it_is_there():
    code = "import sys, core\nprint(*(name for name in sys.modules if name.startswith('core')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["core"]
    assert all(callable(getattr(core, name)) for name in core.__all__ if name != "__version__")
    assert set(core.__all__) <= set(dir(core))
    with pytest.raises(AttributeError, match="no attribute 'measured'"):
        core.measured  # noqa: B018


def test_a_measurement_that_fails_says_why(tmp_path, monkeypatch):
    queue = Queue(tmp_path / "jobs")
    monkeypatch.setattr(client, "ensure_worker", lambda queue: queue.fail_waiting("There is no torch here."))
    asked = Experiment(point=Point(dataset="disc"), contenders=(Contender(),))
    with pytest.raises(JobError, match="There is no torch here"):
        client.run(asked, Store(tmp_path / "results"), queue)


def test_a_notebook_waits_for_a_quiet_machine_at_most_an_hour(tmp_path):
    store, queue = Store(tmp_path / "results"), Queue(tmp_path / "jobs")
    with pytest.raises(InvalidValue, match=r"wait-for-quiet must be 0 to 3,600 seconds \(got 7,200\)"):
        core.run(rows.EXPERIMENT, store, queue, wait_for_quiet=7_200)


def test_what_is_no_question_never_gets_into_the_queue(tmp_path):
    queue, store = Queue(tmp_path / "jobs"), Store(tmp_path / "results")
    asked = Experiment(point=Point(dataset="disc"))
    with pytest.raises(InvalidValue, match=r"asked must be an Experiment or a Sweep"):
        client.run(asked.point, store, queue)
    with pytest.raises(InvalidValue, match=r"store must be a Store"):
        client.run(asked, str(tmp_path / "results"), queue)
    assert not (tmp_path / "jobs").exists() or not queue.jobs()


TRAINING = """
import torch


def build(size, device):
    layer = torch.nn.Linear(size, size, device=device)
    inputs = torch.randn(8, size, device=device)

    def step():
        layer(inputs).sum().backward()

    return step
"""

SHOWN = """
import core, train
from core.results.store import Store

for sizes in (16, [16, 64]):
    rows = core.run(training=train.build, sizes=sizes, devices=["cpu@1", "cpu@2"], store=Store("mine"))
    shown = rows._repr_html_()
    assert rows.sentence[:20] in shown and "<svg" in shown, shown[:400]
    assert len(rows.to_pandas()) == len(rows)
(study,) = rows.studies
assert study.sentence in study._repr_html_() and len(study.to_pandas()) == 4
assert "cpu" in set(core.devices().device)
"""


def test_a_function_is_measured_and_its_rows_show_their_answer(surroundings, tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    code = f"from core.jobs import client\nclient.COMMAND = {brief.COMMAND!r}\n" + SHOWN
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("training", [lambda size, device: None, len, "nowhere.py:build"])
def test_a_function_that_is_in_no_file_is_refused(training, tmp_path):
    with pytest.raises(InvalidValue, match="training"):
        core.run(training=training, sizes=8, store=Store(tmp_path), queue=Queue(tmp_path / "jobs"))


def test_a_training_without_a_size_and_two_questions_at_once_are_refused(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    queue, asked = Queue(tmp_path / "jobs"), Experiment(point=Point(dataset="disc"), contenders=(Contender(),))
    with pytest.raises(InvalidValue, match="sizes"):
        core.run(training=f"{tmp_path}/train.py:build", devices=["cpu@1"], store=Store(tmp_path), queue=queue)
    with pytest.raises(InvalidValue, match="question"):
        core.run(asked, training=f"{tmp_path}/train.py:build", sizes=8, queue=queue)
