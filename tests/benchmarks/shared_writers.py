"""Many machines write to one S3 store at once, and some are killed: is a row lost, or there twice?

    python -m tests.benchmarks.shared_writers [--writers 64] [--rows 200] [--kills 50] [--seed 16]

Each writer is a process with a copy of the store of its own, which adds rows one by one and writes down the name of
each when it was added. At random moments a writer, or one that compacts again and again, is killed and started anew.
At the end whatever waits is sent by a process that takes over each copy, a fresh copy reads everything, and every name
that was written down has to be there, once. The server is moto's, in a process of its own.

Exit status 1 if a row is lost, or is there twice.
"""

import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from core.errors import StoreError
from core.files.project import PROJECT
from core.results import compaction
from core.results.finding import mirrored
from core.results.store import Store
from tests import objects, rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--write", nargs=3, metavar=("ADDRESS", "NUMBER", "ROWS"), help=argparse.SUPPRESS)
    parser.add_argument("--compact", metavar="ADDRESS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        return _write(options.write[0], int(options.write[1]), int(options.write[2]))
    if options.compact:
        return _compact(options.compact)
    os.environ.update(objects.KEYS)
    with tempfile.TemporaryDirectory() as folder, objects.served() as server:
        return _all(Path(folder), server.address(), options)


def _all(folder: Path, address: str, options: argparse.Namespace) -> int:
    began, moments = time.monotonic(), random.Random(options.seed)
    commands = {f"w{number}": ("--write", address, str(number), str(options.rows)) for number in range(options.writers)}
    running = {name: _started(folder, name, words) for name, words in commands.items()}
    running["compaction"] = _started(folder, "compaction", ("--compact", address))
    commands["compaction"] = ("--compact", address)
    kills = 0
    while any(process.poll() is None for name, process in running.items() if name != "compaction"):
        time.sleep(moments.uniform(0.1, 1.0))
        name = moments.choice([*(name for name, process in running.items() if process.poll() is None), "compaction"])
        if kills < options.kills:
            running[name].kill()
            running[name].wait()
            running[name], kills = _started(folder, name, commands[name]), kills + 1
        elif running["compaction"].poll() is not None:
            running["compaction"] = _started(folder, "compaction", commands["compaction"])
    running["compaction"].kill()
    running["compaction"].wait()
    wrote = time.monotonic() - began
    for name in commands:
        _copy(folder, name, address)
    written = [line for name in commands for line in _lines(folder / name / "added")]
    table = _copy(folder, "reader", address).read(["trial_id"]).table
    found = collections.Counter(table["trial_id"].to_pylist())
    lost = set(written) - found.keys()
    twice = [name for name, count in found.items() if count > 1]
    print(f"{options.writers} writers, {len(set(written)):,} rows added, {kills} kills, {wrote:.0f} s of writing:")
    print(f"{len(found):,} read back, {len(lost)} lost, {len(twice)} there twice.")
    return 1 if lost or twice or len(set(written)) < options.writers * options.rows else 0


def _started(folder: Path, name: str, words: Sequence[str]) -> subprocess.Popen[bytes]:
    own = folder / name
    own.mkdir(exist_ok=True)
    environment = {**os.environ, mirrored.MIRRORS_VARIABLE: str(own)}
    with (own / "log").open("ab") as log:
        command = [sys.executable, "-m", "tests.benchmarks.shared_writers", *words]
        return subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)


def _write(address: str, number: int, count: int) -> int:
    """Add rows that are not added yet, each with its own name."""
    store = Store(mirrored.located(address))
    notes = Path(os.environ[mirrored.MIRRORS_VARIABLE]) / "added"
    done = set(_lines(notes))
    for place in range(count):
        row = rows.trial(run_id=f"{number:06x}{place:06x}", machine_id=f"{number:012x}")
        if row.trial_id not in done:
            store.add(row)
            with notes.open("a") as file:
                file.write(f"{row.trial_id}\n")
    return 0


def _compact(address: str) -> int:
    """Compact again and again; another one's lease is waited for."""
    folder = mirrored.located(address)
    while True:
        try:
            compaction.compact(folder)
        except StoreError:
            time.sleep(0.5)


def _copy(folder: Path, name: str, address: str) -> Store:
    """A machine's copy of the store, brought up to date by this process."""
    os.environ[mirrored.MIRRORS_VARIABLE] = str(folder / name)
    store = Store(mirrored.located(address))
    mirrored.bring_now(store.folder)
    if mirrored.waiting(store.folder):
        raise StoreError(f"{name} could not send everything: {mirrored.failure(store.folder)}")
    return store


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().split("\n") if line] if path.exists() else []


if __name__ == "__main__":
    sys.exit(main())
