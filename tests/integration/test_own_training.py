"""Trainings of one's own through the real worker: what is hostile in them loses nothing and disturbs no later run."""

import contextlib
import dataclasses
import re
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from core.jobs import client
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import Queue
from core.question import policy
from core.question.experiment import Contender, Experiment, Point
from core.results.store import Store
from tests import brief, nodes
from tests.own_trainings import asked, changed

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks into /proc")]

HARMLESS = Experiment(
    point=Point(dataset="disc", model="linear", epochs=1), contenders=(Contender(threads=1),), pairs=2, budget_s=600
)
ALONE = {"contenders": ("cpu@1",), "budget_s": 600}


@dataclass(frozen=True, kw_only=True)
class Hostile:
    """A training that is, and what becomes of its job.

    Attributes:
        text: of its file.
        states: in which its job may end.
        said: of its job's message.
        outcomes: of its rows.
    """

    text: str
    states: tuple[str, ...] = ("finished",)
    said: str = ""
    outcomes: tuple[str, ...] = ("timed",)


SLEEPS = "import subprocess, sys, threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); "
PROCESS = "open('child', 'w').write(str(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid))"
FLOODS = (
    "import json, os, sys; print('x' * 2**20); print('\\n'.join('y' * 2**10)); sys.stderr.write('z' * 2**20); "
    "[os.write(out, b'\\x1b]0;w\\x07' + b'w' * 2**20) for out in (1, 2)]; "
    "[os.write(1, json.dumps(said).encode() + b'\\n') for said in "
    "({'state': 'crashed', 'message': 'hostile'}, {'device_s': 1e9}, ['trial_ids'])]"
)
FORKS = "; self.forked = getattr(self, 'forked', None) or __import__('os').fork() or -1"
SEEDS = "import random, numpy; torch.manual_seed(7), random.seed(7), numpy.random.seed(7)"
SETTINGS = (
    "import gc, os, resource, signal, sys; torch.set_num_threads(7); torch.set_default_dtype(torch.float64); "
    "torch.set_grad_enabled(False); torch.use_deterministic_algorithms(True); torch.set_flush_denormal(True); "
    "torch.set_float32_matmul_precision('medium'); gc.disable(); sys.path.clear(); os.chdir('/'); os.umask(0o777); "
    "os.nice(3); os.environ.update(OMP_NUM_THREADS='7', PYTHONPATH='/hostile', TORCH_LOGS='+all', HOSTILE='1'); "
    "[signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGUSR1)]; "
    "resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); resource.setrlimit(resource.RLIMIT_NOFILE, (250, 250))"
)
EATS = (
    "import resource; now = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize(); "
    "resource.setrlimit(resource.RLIMIT_AS, (now + 2**28,) * 2); self.eaten = []; "
    "[self.eaten.append(bytearray(2**24)) for _ in range(100)]"
)
"""Takes memory until there is no more, which is a quarter of a GiB here."""

HOSTILE = {
    "raises": Hostile(
        text=changed(step="raise ValueError('mine')"), states=("failed",), said="ValueError: mine", outcomes=()
    ),
    "exits": Hostile(text=changed(step="raise SystemExit(3)"), states=("failed",), said="SystemExit", outcomes=()),
    "ends-its-process": Hostile(
        text=changed(step="import os; os._exit(7)"), states=("crashed",), said="killed", outcomes=()
    ),
    "hangs": Hostile(
        text=changed(
            step="import signal; [signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGINT)]; "
            "open('hangs', 'w').close(); __import__('time').sleep(600)"
        ),
        states=("stopped",),
        outcomes=(),
    ),
    "forks-and-seeds-in-every-step": Hostile(text=changed(step=SEEDS + FORKS, place=SEEDS)),
    "leaves-processes-and-threads-floods-and-talks-as-we-do": Hostile(
        text=changed(build=f"{SLEEPS}{PROCESS}; {FLOODS}", step='print(\'{"state": "crashed"}\')')
    ),
    "eats-memory": Hostile(text=changed(step=EATS), outcomes=("out_of_memory",)),
    "closes-files": Hostile(
        text=changed(evaluate="import os; os.closerange(3, 256)"), states=("finished", "failed", "crashed"), outcomes=()
    ),
    "takes-itself-away-and-changes-settings": Hostile(
        text=changed(
            build="import os; os.remove(__file__)",
            evaluate=f"__import__('shutil').rmtree('__pycache__', True); {SETTINGS}",
        )
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One queue and its store, whose worker is warm where the one before was not renewed."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCK_VARIABLE, str(folder / "machine.lock"))
        patch.setenv("CROSSOVER_JOBS", str(folder / "jobs"))
        patch.setattr(client, "COMMAND", brief.COMMAND)
        yield folder
        nodes.kill_machine(folder)  # also who waits to take a worker's place


def ended(place, experiment):
    """An experiment's job once it is over, its rows, and what was seen of the process while it measured."""
    queue, seen = Queue(place / "jobs"), {}
    with contextlib.chdir(place):
        job = queue.submit(experiment, Store(place / "results"), fresh=True)
    while (job := client.watch(queue, job.id)).active:
        if (place / "hangs").exists():
            (place / "hangs").unlink()
            job = client.stop(queue, job.id)
        if job.state == "running" and not seen:
            with contextlib.suppress(psutil.Error):  # it is over by now
                seen = of_the_process(job.worker)
        time.sleep(0.02)
    return job, client.load_job_rows(queue, job), seen


def of_the_row(row):
    """What a row of the same question says whenever it is measured."""
    known = dataclasses.asdict(row)
    timed = ("trial_id", "run_id", "started_at", "message", "app_commit", "steps", "resumed_at_block", "lead_in_steps")
    return {
        name: value
        for name, value in known.items()
        if name not in timed and not re.match(r"block_|drained|warmup_|startup_|breakdown_|busy_|.*_step_s$", name)
    }


def of_the_process(process):
    """What a process hands on to those that it starts, the folder of its files and its log apart."""
    told = psutil.Process(process.pid)
    status = Path(f"/proc/{process.pid}/status").read_text()
    while re.search(r"^SigBlk:\s*f{8}", status, re.MULTILINE):  # for as long as it starts a thread or a process
        status = Path(f"/proc/{process.pid}/status").read_text()
    return {
        "environment": {name: told.environ().get(name) for name in ("HOSTILE", "PYTHONPATH", "OMP_NUM_THREADS")},
        "limits": Path(f"/proc/{process.pid}/limits").read_text(),
        "nice": told.nice(),
        "folder": told.cwd(),
        "children": [each.pid for each in told.children(recursive=True)],
        **dict(re.findall(r"^(Umask|SigIgn|SigBlk|NoNewPrivs):\s*(\S+)", status, re.MULTILINE)),
    }


@pytest.fixture(scope="module")
def before(place):
    """The row of a catalogue's training before anything hostile ran, and the process that measured it."""
    _, (row,), process = ended(place, HARMLESS)
    return of_the_row(row), process


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_what_is_bad_is_gone_with_its_process_and_the_next_row_is_as_before(place, before, hostile):
    file = place / "mine.py"
    file.write_text(hostile.text, encoding="utf-8")
    stored = len(Store(place / "results").trials())
    job, rows, _ = ended(place, asked(file, **ALONE))
    assert job.state in hostile.states
    assert hostile.said in job.message
    if hostile.outcomes:
        assert tuple(row.outcome for row in rows) == hostile.outcomes

    after, (row,), process = ended(place, HARMLESS)
    assert (after.state, row.outcome) == ("finished", "timed")
    assert of_the_row(row) == before[0]
    assert process == before[1]
    assert after.worker != job.worker
    assert not job.worker.alive
    assert len(Store(place / "results").trials()) == stored + len(rows) + 1
    if (place / "child").exists():
        assert not psutil.pid_exists(int((place / "child").read_text()))
        (place / "child").unlink()
    assert [path for path in place.rglob("*") if path.name.endswith(".tmp")] == []


def test_a_host_runs_nobody_s_code(place, monkeypatch):
    file, path = place / "mine.py", place / "crossover.toml"
    file.write_text(changed(build="open('ran', 'w').close()"), encoding="utf-8")
    path.write_text('who_may_run = "everybody"\n')
    Queue(place / "jobs").worker_file.dismiss()  # whose environment is that of before
    monkeypatch.setenv(policy.POLICY_VARIABLE, str(path))
    job, rows, _ = ended(place, asked(file, **ALONE))
    assert (job.state, rows) == ("failed", [])
    assert "never run on a host" in job.message
    assert not (place / "ran").exists()
