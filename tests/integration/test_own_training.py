"""Trainings of one's own through the real worker: what is hostile in them loses nothing and disturbs no later run."""

import time
from pathlib import Path

import psutil
import pytest

from core.jobs import client
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import Queue
from core.question import policy
from core.question.experiment import Contender, Experiment, Point
from core.results.store import Store
from tests.own_trainings import PLAIN, asked, changed

pytestmark = pytest.mark.slow

HARMLESS = Experiment(
    point=Point(dataset="disc", model="linear", epochs=1), contenders=(Contender(threads=1),), pairs=2, budget_s=20
)
ALONE = {"contenders": ("cpu@1",), "budget_s": 20}


@pytest.fixture
def queue(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    queue = Queue(tmp_path / "jobs")
    yield queue
    queue.worker_file.dismiss()


@pytest.fixture
def run(queue, tmp_path):
    """Measures the text of a file; the ended job."""

    def measure(text):
        file = tmp_path / "mine.py"
        file.write_text(text, encoding="utf-8")
        return client.follow(queue, queue.submit(asked(file, **ALONE), Store(tmp_path / "results")).id, lambda _: None)

    return measure


def test_what_is_hostile_is_gone_with_its_process_and_the_next_run_is_as_ever(queue, run, tmp_path):
    text = changed(
        build="import os, subprocess, sys, threading, time; os.environ['OMP_NUM_THREADS'] = '7'; "
        "torch.set_default_dtype(torch.float64); torch.set_default_dtype(torch.float32); torch.set_num_threads(7); "
        "threading.Thread(target=time.sleep, args=(600,)).start(); "
        "open('child', 'w').write(str(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid))",
        step="self.forked = getattr(self, 'forked', None) or __import__('os').fork() or -1",
    )
    job = run(text)
    assert (job.state, job.message) == ("finished", "")
    assert len(client.rows(queue, job)) == 1

    after = client.follow(queue, queue.submit(HARMLESS, Store(tmp_path / "results")).id, lambda _: None)
    (row,) = client.rows(queue, after)
    assert (row.outcome, row.threads, row.training) == ("timed", 1, "")
    assert after.worker != job.worker
    assert not job.worker.alive
    assert not psutil.pid_exists(int((tmp_path / "child").read_text()))
    assert len(Store(tmp_path / "results").trials()) == 2


@pytest.mark.parametrize(
    ("text", "state", "said"),
    [
        (changed(step="import os; os._exit(7)"), "crashed", "killed"),
        (changed(step="raise ValueError('mine')"), "failed", "ValueError: mine"),
    ],
    ids=["ends-the-process", "raises"],
)
def test_a_step_that_ends_its_process_or_raises_ends_its_job_and_the_next_is_measured(queue, run, text, state, said):
    job = run(text)
    assert job.state == state
    assert said in job.message
    assert run(PLAIN).state == "finished"


EATS = (
    "import resource; now = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize(); "
    "resource.setrlimit(resource.RLIMIT_AS, (now + 2**28,) * 2); self.eaten = []; "
    "[self.eaten.append(bytearray(2**24)) for _ in range(100)]"
)
"""Takes memory until there is no more, which is a quarter of a GiB here."""

CLOSES = "import os; os.closerange(3, 256)"
"""Closes every file of its process, the worker's own too."""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's limits of memory")
def test_what_eats_memory_or_closes_files_loses_no_later_run(queue, run, tmp_path):
    ate, closed = run(changed(step=EATS)), run(changed(step=CLOSES))
    assert [row.outcome for row in client.rows(queue, ate)] == ["out_of_memory"]
    assert closed.state in ("finished", "failed", "crashed")
    after = client.follow(queue, queue.submit(HARMLESS, Store(tmp_path / "results")).id, lambda _: None)
    assert (after.state, [row.outcome for row in client.rows(queue, after)]) == ("finished", ["timed"])
    assert len({ate.worker, closed.worker, after.worker}) == 3


def test_a_step_that_hangs_is_ended_by_stop(queue, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(changed(step="open('hangs', 'w').close(); __import__('time').sleep(600)"))
    job = queue.submit(asked(file, **ALONE), Store(tmp_path / "results"))

    while client.watch(queue, job.id).active and not (tmp_path / "hangs").exists():
        time.sleep(0.1)
    ended = client.stop(queue, job.id)
    assert ended.state == "stopped"


def test_a_host_runs_nobody_s_code(queue, run, tmp_path, monkeypatch):
    path = tmp_path / "crossover.toml"
    path.write_text('who_may_run = "everybody"\n')
    monkeypatch.setenv(policy.POLICY_VARIABLE, str(path))
    job = run(changed(build="open('ran', 'w').close()"))
    assert job.state == "failed"
    assert "never run on a host" in job.message
    assert not (tmp_path / "ran").exists()
