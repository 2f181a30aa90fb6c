"""Many processes write into one store at once while it is read; nothing is lost and nothing is half seen."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

from core.files.project import PROJECT
from core.results.store import Store

PROCESSES, ROWS = 8, 25
DEADLINE_S = 300

WRITER = """
import sys
from pathlib import Path
from core.results.store import Store
from tests.rows import trial

store, process, rows = Store(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
sys.stdin.readline()
for index in range(rows):
    store.add(trial(run_id=f"{process:04x}{index:08x}", pairs=3))
"""


def _start(folder: Path, process: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(process), str(ROWS)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, text=True, cwd=PROJECT)


def test_eight_processes_that_write_25_rows_each_lose_none(tmp_path):
    store = Store(tmp_path / "rows")
    writers = [_start(store.folder, process) for process in range(PROCESSES)]
    try:
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        counts, deadline = [0], time.monotonic() + DEADLINE_S
        while any(writer.poll() is None for writer in writers) and time.monotonic() < deadline:
            began = time.monotonic()
            contents = store.read()
            assert contents.skipped == ()
            counts.append(contents.table.num_rows)
            with contextlib.suppress(subprocess.TimeoutExpired):  # leaves the processors to the writers
                writers[-1].wait(timeout=max(0.5, 3 * (time.monotonic() - began)))
        statuses = [writer.wait(timeout=10) for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert statuses == [0] * PROCESSES
    assert counts == sorted(counts)
    contents = store.read()
    assert contents.skipped == ()
    names = {f"{process:04x}{index:08x}-0" for process in range(PROCESSES) for index in range(ROWS)}
    assert set(contents.table["trial_id"].to_pylist()) == names
    assert contents.table.num_rows == PROCESSES * ROWS
    assert len(list(store.folder.iterdir())) == PROCESSES * ROWS
