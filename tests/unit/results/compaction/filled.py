"""Stores with many files, and what is in them."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from core.files.project import PROJECT
from core.results.schema import Trial
from core.results.store import Store
from tests.rows import run


def names(count: int, prefix: str = "a") -> list[str]:
    return [f"{prefix}{number:011x}" for number in range(count)]


def fill(store: Store, count: int, **changes) -> list[Trial]:
    rows = [row for name in names(count) for row in run(run_id=name, pairs=4, **changes)]
    for row in rows:
        store.add(row)
    return rows


def files(store: Store) -> list[Path]:
    return sorted(store.folder.glob("*.parquet"))


def on_disk(store: Store) -> int:
    """Rows in all files, copies counted."""
    return sum(pq.read_metadata(path).num_rows for path in files(store))


def by_name(rows: list[Trial]) -> list[Trial]:
    return sorted(rows, key=lambda row: row.trial_id)


def compact_elsewhere(folder: Path) -> None:
    """As another process does; this one may be in the middle of listing."""
    code = "import sys, pathlib; from core.results.store import compact; compact(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(folder)], cwd=PROJECT, check=True)
