"""The door for notebooks: the README's example, as it stands there, measures, stores and answers."""

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
from tests import brief


def example() -> str:
    return re.search(r"```python\n(from core import .+?)```", (PROJECT / "README.md").read_text(), re.S)[1]


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


def test_what_is_no_question_never_gets_into_the_queue(tmp_path):
    queue, store = Queue(tmp_path / "jobs"), Store(tmp_path / "results")
    asked = Experiment(point=Point(dataset="disc"))
    with pytest.raises(InvalidValue, match=r"asked: .* it must be an Experiment or a Sweep"):
        client.run(asked.point, store, queue)
    with pytest.raises(InvalidValue, match=r"store: .* it must be a Store"):
        client.run(asked, str(tmp_path / "results"), queue)
    assert not (tmp_path / "jobs").exists() or not queue.jobs()
