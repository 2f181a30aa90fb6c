"""Another user of the same machine can neither replace the request of a job nor read private files through it."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from core.files.project import PROJECT

OWNER, STRANGER = 61_001, 61_002
"""Numbers of users that no machine has."""

SECRET = b"a private key"

OWNERS_JOB = """
import os, sys
import core.jobs.client, core.jobs.client, core.results.parquet
from pathlib import Path
from core.jobs import process
from core.jobs.queue import Queue
from core.results.store import Store
from tests.unit.jobs.under_way import EXPERIMENT
folder, user, action = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
os.setgroups([]), os.setgid(user), os.setuid(user)
queue = Queue(folder / "jobs")
if action == "submit":
    queue.submit(EXPERIMENT, Store(folder / "results"))
    job = queue.claim(process.current_process())
    queue.end(core.jobs.recovery.finish_job(job, "Nothing was measured."))
else:
    queue.settle()
print(*[f"{job.id} {job.state}" for job in queue.jobs()])
"""

pytestmark = pytest.mark.skipif(
    not hasattr(os, "setuid") or os.getuid() != 0, reason="only root can act as two users of a machine"
)


@pytest.fixture
def folder():
    """A folder of the first user, whose jobs the second one can list."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        os.chown(folder, OWNER, OWNER)
        private = folder / "private"
        private.write_bytes(SECRET)
        private.chmod(0o600)
        os.chown(private, OWNER, OWNER)
        yield folder


def act(folder: Path, action: str) -> str:
    """Let the first user submit a job, or look after the queue as the measuring process does."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CROSSOVER_")}
    command = [sys.executable, "-c", OWNERS_JOB, str(folder), str(OWNER), action]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def prepare(memory: Path, folder: Path, job_id: str, **contents: str) -> None:
    """Let the second user prepare a job's files under the machine's memory, before the first one makes the place."""
    place = memory / hashlib.sha256(str(folder / "jobs").encode()).hexdigest()[:16] / job_id
    place.mkdir(parents=True)
    for name, content in contents.items():
        (place / f"{name}.json").write_text(content)
    (place / "copy").symlink_to(folder / "private")
    for path in (memory, *memory.rglob("*")):
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


@pytest.fixture
def memory():
    shared = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
    place = shared / f"crossover-{OWNER}"
    if place.exists():
        pytest.skip(f"{place} is in use")
    yield place
    subprocess.run(["rm", "-rf", str(place)], check=True)


@pytest.fixture
def job(folder, memory):
    """The folder of an ended job of the first user."""
    job_id, state = act(folder, "submit").split()
    assert state == "failed"
    return folder / "jobs" / job_id


def read_files(job: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in job.iterdir()}


def test_another_user_cannot_replace_a_jobs_request(folder, memory, job):
    before = read_files(job)
    request = json.loads(before["request.json"])
    request["experiment"]["point"] |= {"training": "/tmp/of_a_stranger.py:build"}
    prepare(memory, folder, job.name, request=json.dumps(request))
    act(folder, "settle")
    assert read_files(job)["request.json"] == before["request.json"]


def test_another_user_cannot_have_a_job_run_again(folder, memory, job):
    prepare(memory, folder, job.name, status=json.dumps({"state": "queued"}))
    assert act(folder, "settle") == f"{job.name} failed"


def test_another_user_cannot_have_a_private_file_copied_to_where_all_can_read_it(folder, memory, job):
    before = read_files(job)
    prepare(memory, folder, job.name)
    act(folder, "settle")
    assert SECRET not in read_files(job).values()
    assert read_files(job) == before
