"""Reads file after file in a process of its own, since a broken one may end the process that reads it.

Takes lines of JSON: `file`, and `how` it is to be read: `quarantine`, as the child of `core.results.quarantine`
reads one, or `store`, as it lies in a store's folder. Answers each with a line before it begins and one when it is
done.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa

from core.answer.gallery import overview as gallery_table
from core.classroom import results
from core.errors import ForeignFile
from core.results import quarantine
from core.results.schema import SCHEMA
from core.results.store import Store
from tests.fuzz.watching import Gauge

GOOD_RUN = "a" * 12
"""In every store that is read here."""

MAX_SINGLE_RUNS = 8
"""Runs of a store that are also read one by one: a page reads one at a time, and a gallery has more than fifty."""


def quarantined(file: Path) -> str:
    """Why a file is refused; empty where it is taken, and then its rows lie beside it."""
    try:
        table = quarantine.check_foreign_rows(file.read_bytes())
    except ForeignFile as error:
        return str(error)
    with pa.ipc.new_stream(str(file.with_suffix(".rows")), SCHEMA) as stream:
        stream.write_table(table)
    return ""


def in_store(file: Path) -> str:
    """Why a file of a store is passed over; empty where it is read. What lies beside it is read all the same."""
    store = Store(file.parent)
    contents = store.read()
    reasons = [skipped.reason for skipped in contents.skipped if skipped.name == file.name]
    store.check()
    shown = gallery_table.load_overview([(store, "here")])
    mine = store.trials(run_id=GOOD_RUN)
    students = results.read_rows(store.folder)
    rows = (contents.table["run_id"].to_pylist(), [row.run_id for row in mine], [row.run_id for row in students.rows])
    if any(GOOD_RUN not in names for names in rows) or GOOD_RUN not in set(shown.frame["run_id"]):
        message = f"the rows beside it are not read any more: {rows}"
        raise AssertionError(message)
    for run_id in sorted(set(contents.table["run_id"].to_pylist()))[:MAX_SINGLE_RUNS]:
        store.trials(run_id=run_id)
    return reasons[0] if reasons else ""


HOW = {"quarantine": quarantined, "store": in_store}


def main() -> None:
    """Serve until nothing more is asked."""
    for line in sys.stdin:
        asked, gauge = json.loads(line), Gauge()
        if asked["how"] == "quarantine":
            quarantine._limit()
        print(json.dumps({"begun": asked["file"]}), flush=True)
        with gauge.part("reading"):
            reason = HOW[asked["how"]](Path(asked["file"]))
        cost = gauge.costs[0]
        done = {"done": asked["file"], "reason": reason, "cpu_s": cost.cpu_s, "grown_bytes": cost.grown_bytes}
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
