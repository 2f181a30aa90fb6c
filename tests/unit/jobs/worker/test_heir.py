"""What takes the place of a worker that has run code of others has nothing of what that changed."""

import subprocess
import sys
import time

import pytest

from core.files.project import PROJECT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="it is not started there")]

NEXT = "import os, sys; open(sys.argv[2] + '/next', 'w').write(f'{os.umask(0)} ' + os.environ.get('HOSTILE', 'none'))"
STARTER = f"""
import os, sys
from pathlib import Path
from core.jobs.queue import Queue
from core.jobs.worker import worker
worker.COMMAND = (sys.executable, "-c", {NEXT!r})
os.umask(0o22)
assert worker.start_successor(Queue(Path(sys.argv[1])))
os.umask(0o777)
os.environ["HOSTILE"] = "yes"
assert not os.path.exists(sys.argv[1] + "/next")
os._exit(7)
"""


def test_it_waits_until_its_starter_is_gone_and_has_the_surroundings_of_before(tmp_path):
    ended = subprocess.run([sys.executable, "-c", STARTER, str(tmp_path)], cwd=PROJECT, check=False)
    assert ended.returncode == 7
    deadline, said = time.monotonic() + 120, tmp_path / "next"
    while not (said.exists() and said.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert said.read_text() == f"{0o22} none"
