"""Many processes write to one store at once, and some are killed: is a row lost, or there twice?

    python -m tests.benchmarks.shared_writers [--writers 64] [--rows 200] [--kills 50] [--seed 16] [--store s3://…]

Each writer adds rows one by one and notes the name of each when it was added. At random moments a writer or, every
second time, a process that compacts again and again is killed and started anew. At the end everything is read, once
before and once after a last compaction, and every name that was noted has to be there. The store is a temporary folder,
or a folder or an empty address that is given; at an address each process has a cache of its own.

Exit status 1 if a row is lost, or is there twice.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence, Set
from pathlib import Path

from core import remote
from core.errors import StoreError
from core.files.project import PROJECT
from core.results import index
from core.results.store import Store, compact
from tests import rows

TRIES = 100
"""Attempts to add a row at an address whose server is busy."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--store", help="another folder or an empty address; credentials are the environment's")
    parser.add_argument("--write", nargs=3, metavar=("STORE", "NUMBER", "ROWS"), help=argparse.SUPPRESS)
    parser.add_argument("--compact", metavar="STORE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        return _write(options.write[0], int(options.write[1]), int(options.write[2]))
    if options.compact:
        return _compact(options.compact)
    with tempfile.TemporaryDirectory() as folder:
        return _measure(Path(folder), options.store or f"{folder}/store", options)


def _measure(folder: Path, store: str, options: argparse.Namespace) -> int:
    began, moments = time.monotonic(), random.Random(options.seed)
    commands = {f"w{number}": ("--write", store, str(number), str(options.rows)) for number in range(options.writers)}
    commands["compaction"] = ("--compact", store)
    running = {name: _start(folder, name, words) for name, words in commands.items()}
    kills = 0
    kill_at = sorted(moments.randrange(options.writers * options.rows) for _ in range(options.kills))
    while at_work := [name for name, each in running.items() if each.poll() is None and name != "compaction"]:
        time.sleep(moments.uniform(0.0, 0.2))
        if kills < len(kill_at) and sum(map(_count_added, folder.glob("w*"))) >= kill_at[kills]:
            name = moments.choice(at_work) if kills % 2 == 0 else "compaction"
            running[name].kill()
            running[name].wait()
            running[name], kills = _start(folder, name, commands[name]), kills + 1
    running["compaction"].kill()
    running["compaction"].wait()
    written = {line for name in commands for line in _lines(folder / name / "added")}
    print(f"{len(written):,} rows of {options.writers} writers, {kills} kills, {time.monotonic() - began:.0f} s")
    print(f"{len(_lines(folder / 'compaction' / 'log'))} compactions merged files beside the writers")
    os.environ[remote.CACHES_VARIABLE] = str(folder / "reader")
    read = Store(store)
    is_wrong = len(written) < options.writers * options.rows or _is_wrong(read, written)
    compact(read.folder)
    return int(_is_wrong(read, written) or is_wrong)


def _is_wrong(store: Store, written: Set[str]) -> bool:
    """Say what a store holds of what was written; return whether that is wrong."""
    files = len(index.list_files(store.folder, now=True))
    found = Counter(store.read(["trial_id"]).table["trial_id"].to_pylist())
    lost, twice = written - found.keys(), [name for name, count in found.items() if count > 1]
    stored = index.count_rows(store.folder)
    print(f"{len(found):,} read of {stored:,} rows in {files:,} files: {len(lost)} lost, {len(twice)} twice")
    return bool(lost or twice)


def _start(folder: Path, name: str, words: Sequence[str]) -> subprocess.Popen[bytes]:
    own = folder / name
    own.mkdir(exist_ok=True)
    environment = {**os.environ, remote.CACHES_VARIABLE: str(own)}
    with (own / "log").open("ab") as log:
        command = [sys.executable, "-m", "tests.benchmarks.shared_writers", *words]
        return subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)


def _write(store: str, number: int, count: int) -> int:
    """Add rows that are not noted yet, each with its own name."""
    opened, notes = Store(store), Path(os.environ[remote.CACHES_VARIABLE]) / "added"
    done = set(_lines(notes))
    for turn in range(count):
        row = rows.trial(run_id=f"{number:06x}{turn:06x}", machine_id=f"{number:012x}")
        for _ in range(0 if row.trial_id in done else TRIES):
            with contextlib.suppress(StoreError):
                opened.add(row)
                with notes.open("a") as file:
                    file.write(f"{row.trial_id}\n")
                break
            time.sleep(1.0)
    return 0


def _compact(store: str) -> int:
    """Compact again and again."""
    folder = remote.resolve_store(store)
    while True:
        with contextlib.suppress(StoreError):
            if (done := compact(folder)).merged:
                print(f"{done.merged} files made {done.parts}, {done.copies} copies dropped", flush=True)
        time.sleep(0.5)


def _count_added(own: Path) -> int:
    """Rows that a writer has noted."""
    notes = own / "added"
    return notes.stat().st_size // len("000000000000-0\n") if notes.exists() else 0


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().split("\n") if line] if path.exists() else []


if __name__ == "__main__":
    sys.exit(main())
