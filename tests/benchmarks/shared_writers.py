"""Many machines write to one S3 store at once, and some are killed: is a row lost, or there twice?

    python -m tests.benchmarks.shared_writers [--writers 64] [--rows 200] [--kills 50] [--seed 16] [--store s3://…]

Each writer is a process with a copy of the store of its own, which adds rows one by one and writes down the name of
each when it was added. At random moments of the writing a writer or, every second time, one that compacts again and
again is killed and started anew; the latter in the midst of merging. At the end whatever waits is sent by a process
that takes over each copy, a fresh copy reads everything, once before and once after a last compaction, and every name
that was written down has to be there, once. The server is moto's, in a process of its own, or the one at an empty
address that is given.

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
from collections.abc import Collection, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq

from core.answer.study.keys import STUDIES
from core.errors import StoreError
from core.files.project import PROJECT
from core.files.shared import mirror, place
from core.files.shared.mirror import Mirror
from core.files.shared.place import Place
from core.remote import local_cache
from core.results import compaction
from core.results.finding import sharing
from core.results.index import SUFFIX
from core.results.parquet import MAX_FILE_BYTES
from core.results.store import Store
from tests import objects, rows

LEASE_S = 10
"""Seconds after which a compaction counts as dead here, so that the next goes on soon; they meet more often so."""

ANSWER_S = 60.0
"""Seconds in which the server has to answer who compacts and reads back; with so many at once, moto's takes long."""

TRIES = 20

MERGING = "merging"
"""Name of the file that says that a compaction has begun to merge."""

MERGES_S = 3.0
"""Seconds of merging after which it is killed, at most."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--store", help="address of an empty place; credentials are the environment's")
    parser.add_argument("--write", nargs=3, metavar=("ADDRESS", "NUMBER", "ROWS"), help=argparse.SUPPRESS)
    parser.add_argument("--compact", metavar="ADDRESS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        return _write(options.write[0], int(options.write[1]), int(options.write[2]))
    if options.compact:
        return _compact(options.compact)
    with tempfile.TemporaryDirectory() as folder:
        if options.store:
            return _all(Path(folder), options.store, options)
        os.environ.update(objects.KEYS)
        with objects.served_apart() as server:
            return _all(Path(folder), server.address(), options)


def _all(folder: Path, address: str, options: argparse.Namespace) -> int:
    place.ANSWER_S = ANSWER_S
    began, moments = time.monotonic(), random.Random(options.seed)
    commands = {f"w{number}": ("--write", address, str(number), str(options.rows)) for number in range(options.writers)}
    running = {name: _started(folder, name, words) for name, words in commands.items()}
    running["compaction"] = _started(folder, "compaction", ("--compact", address))
    commands["compaction"] = ("--compact", address)
    kills = 0
    kill_at = sorted(moments.randrange(options.writers * options.rows) for _ in range(options.kills))
    while any(process.poll() is None for name, process in running.items() if name != "compaction"):
        time.sleep(moments.uniform(0.0, 0.2))
        at_work = [name for name, process in running.items() if process.poll() is None and name != "compaction"]
        due = kills < len(kill_at) and sum(map(_added, folder.glob("w*"))) >= kill_at[kills]
        name = moments.choice(at_work) if at_work and kills % 2 == 0 else "compaction"
        if due and (name != "compaction" or (folder / name / MERGING).exists()):
            time.sleep(moments.uniform(0.0, MERGES_S) if name == "compaction" else 0.0)
            running[name].kill()
            running[name].wait()
            (folder / name / MERGING).unlink(missing_ok=True)
            running[name], kills = _started(folder, name, commands[name]), kills + 1
        elif running["compaction"].poll() is not None:
            running["compaction"] = _started(folder, "compaction", commands["compaction"])
    running["compaction"].kill()
    running["compaction"].wait()
    wrote = time.monotonic() - began
    waited = len(list(folder.glob(f"*/*/.*{mirror.WAITING}")))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: _send(folder, name, address), commands))
    sent = time.monotonic() - began - wrote
    written = {line for name in commands for line in _lines(folder / name / "added")}
    print(f"{options.writers} writers, {len(written):,} rows added, {kills} kills, {wrote:.0f} s of writing,")
    print(f"{waited:,} rows waited then, and took {sent:.0f} s to be sent.", flush=True)
    parts = [name for name in Place(address).names(mirror.ROWS) if compaction.PREFIX in name and name.endswith(SUFFIX)]
    ended = sum(" made " in line and line[0] != "0" for line in _lines(folder / "compaction" / "log"))
    print(f"{ended} compactions merged files beside the writers and came to their end; {len(parts)} parts were there.")
    wrong = len(written) < options.writers * options.rows
    for name in ("reader", "compacted"):
        before = time.monotonic()
        wrong |= _read_back(_located(folder, name, address), written)
        print(f"in {time.monotonic() - before:.0f} s by a machine that had no copy ({name}).", flush=True)
        sharing.COMPACTION_S = LEASE_S
        while name == "reader" and not _compacted(_located(folder, name, address)):
            time.sleep(1.0)
    return int(wrong)


def _read_back(copy: Path, written: Set[str]) -> bool:
    """Say what a copy that is brought up to date holds of what was written; returns whether that is wrong."""
    local_cache.bring_now(copy)
    if failure := local_cache.failure(copy):
        raise StoreError(failure)
    found = Counter(Store(copy).read(["trial_id"]).table["trial_id"].to_pylist())
    here = [path for folder in (copy, copy.with_name(copy.name + mirror.BROUGHT)) for path in folder.glob("*.parquet")]
    files = Counter(pq.read_metadata(path).num_rows for path in here)
    lost, twice = written - found.keys(), [name for name, count in found.items() if count > 1]
    held = sum(rows * count for rows, count in files.items())
    print(
        f"{len(found):,} read back of {held:,} rows in {files.total():,} files, {len(lost)} lost, {len(twice)} twice,"
    )
    return bool(lost or twice)


def _started(folder: Path, name: str, words: Sequence[str]) -> subprocess.Popen[bytes]:
    own = folder / name
    own.mkdir(exist_ok=True)
    environment = {**os.environ, local_cache.CACHES_VARIABLE: str(own)}
    with (own / "log").open("ab") as log:
        command = [sys.executable, "-m", "tests.benchmarks.shared_writers", *words]
        return subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)


def _write(address: str, number: int, count: int) -> int:
    """Add rows that are not added yet, each with its own name."""
    place.ANSWER_S = ANSWER_S
    store = Store(local_cache.resolve_store(address))
    notes = Path(os.environ[local_cache.CACHES_VARIABLE]) / "added"
    done = set(_lines(notes))
    for turn in range(count):
        row = rows.trial(run_id=f"{number:06x}{turn:06x}", machine_id=f"{number:012x}")
        if row.trial_id not in done:
            store.add(row)
            with notes.open("a") as file:
                file.write(f"{row.trial_id}\n")
    return 0


def _compact(address: str) -> int:
    """Compact again and again; another one's lease is waited for."""
    sharing.COMPACTION_S, place.ANSWER_S = LEASE_S, ANSWER_S
    folder = local_cache.resolve_store(address)
    real, begun = sharing.require_sent, Path(os.environ[local_cache.CACHES_VARIABLE]) / MERGING

    def merging(paths: Collection[Path]) -> None:
        begun.touch()
        real(paths)

    sharing.require_sent = merging
    while True:
        if not _compacted(folder):
            time.sleep(0.5)
        begun.unlink(missing_ok=True)


def _compacted(folder: Path) -> bool:
    """Whether a compaction came to its end."""
    try:
        done = compaction.compact(folder, STUDIES)
    except StoreError as error:
        print(error, flush=True)
        return False
    print(f"{done.merged} files made {done.parts}, {done.copies} copies dropped", flush=True)
    return True


def _located(folder: Path, name: str, address: str) -> Path:
    """A machine's copy of the store."""
    os.environ[local_cache.CACHES_VARIABLE] = str(folder / name)
    return local_cache.resolve_store(address)


def _send(folder: Path, name: str, address: str) -> None:
    """Send what a machine left behind; many at once, so nothing is said of it by the environment."""
    copy = Mirror(mirror.made(address, folder / name), Place(address), MAX_FILE_BYTES)
    for _ in range(TRIES):
        with contextlib.suppress(StoreError):
            copy.send()
            return
        time.sleep(1.0)
    raise StoreError(f"{name} could not send everything.")


def _added(own: Path) -> int:
    """Rows that a writer has written down."""
    notes = own / "added"
    return notes.stat().st_size // len("000000000000-0\n") if notes.exists() else 0


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().split("\n") if line] if path.exists() else []


if __name__ == "__main__":
    sys.exit(main())
