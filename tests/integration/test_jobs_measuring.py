"""A job with the real worker: torch, a training, and rows in the store."""

import subprocess
import sys
from pathlib import Path

import pytest

from core.jobs import client
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import Queue
from core.question.experiment import Contender, Experiment, Point
from core.results.store import Store

ALONE = (Contender(threads=1),)


@pytest.fixture
def queue(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    queue = Queue(tmp_path / "jobs")
    yield queue
    queue.worker_file.dismiss()


def test_the_worker_trains_reports_and_stores_and_names_itself(queue, tmp_path):
    store = Store(tmp_path / "results")
    point = Point(dataset="digits", model="linear", epochs=2)
    job = queue.submit(Experiment(point=point, contenders=ALONE, budget_s=600), store)
    phases = []
    done = client.follow_job(queue, job.id, lambda now: phases.append(now.progress.phase if now.progress else ""))
    assert (done.state, done.message) == ("finished", "")
    assert "training" in phases
    (trial,) = client.load_job_rows(queue, done)
    assert trial.outcome == "completed"
    assert trial.steps >= point.total_steps
    assert (trial.trial_id, trial.experiment_id) == (done.trial_ids[0], job.experiment.id)
    assert trial.omp_wait_policy == "PASSIVE, GOMP_SPINCOUNT=3000"

    score = Path(f"/proc/{done.worker.pid}/oom_score_adj")
    if sys.platform == "linux":
        assert score.read_text().strip() == "1000"

    found = client.load_machine(queue)
    assert found.devices[0].device == "cpu"
    assert found.startup_s["cpu"] == trial.startup_device_s
    assert found.environment.machine_id == trial.machine_id

    refused = queue.submit(Experiment(point=point, contenders=(Contender(device="cuda:99"),)), store)
    failed = client.follow_job(queue, refused.id, lambda _: None)
    assert failed.state == "failed"
    assert "cuda:99" in failed.message


def test_nothing_unwanted_gets_into_the_measuring_process_by_a_side_door(tmp_path):
    """Writing a row, pyarrow tries pandas; a warm worker would keep it for the next measurement."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from core.jobs.worker import __main__ as worker\n"
        "from core.results.store import Store\n"
        "from tests.rows import trial\n"
        "sys.meta_path.insert(0, worker._ImportBlocker())\n"
        f"Store(Path({str(tmp_path)!r})).add(trial())\n"
        "print(sorted(worker.UNWANTED & set(sys.modules)))\n"
        "import sklearn\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=client.START_FOLDER, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]"
    assert "sklearn has no place in the measuring process" in done.stderr
    assert len(Store(tmp_path).trials()) == 1
