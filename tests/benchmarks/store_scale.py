"""How does the store scale, on disk and in an object store?

    python -m tests.benchmarks.store_scale [--trials 100000,1000000] [--on disk,s3] [--folder DIR]

Rows are made up (`made_up`), checked as any, in large parts of one machine each, as compaction leaves them, and a tail
of files of one row. They lie in a folder of their own below `--folder`, which has to have room for them three times
(a million rows: 0.8 GB each time), and are deleted in the end. In S3 they lie behind moto's server, or at `--address`.

Each figure is of a process of its own. Opening: the first crossover that it is asked for, 20 sizes of one machine. A
crossover: another one each time, as objects; `again`: the same ones a second time, when what they need is on this
machine. One run: by its link. Memory: the largest that the process ever had. Compaction: of the tail. Gallery: server
time of the first page, first and then for new visitors. DuckDB, if it is installed
(`pip install duckdb`), answers the same questions of the same files as objects, in turns with our reader, on disk only.
"""

import argparse
import asyncio
import gc
import importlib.util
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from core.errors import StoreError
from core.files.project import PROJECT
from core.jobs.queue import Queue
from core.remote import CACHES_VARIABLE, is_address, resolve_store
from core.remote.remote_store import RemoteStore
from core.results import parquet
from core.results.parquet import from_table, to_table
from core.results.schema import SCHEMA, Trial
from core.results.store import PREFIX, Store, compact
from tests import objects
from tests.benchmarks import gallery_scale, made_up
from tests.benchmarks.sessions import server
from tests.rows import run, trial

LOOSE, QUERIES, ADDED, VISITS, UPLOADS = 1_000, 10, 20, 10, 8
COMPACTIONS = 10

Times = dict[str, list[float]]


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call."""
    gc.collect()
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


# Rows


def fill(folder: Path, trials: int, machines: int) -> None:
    """Make a store of that size."""
    folder.mkdir(parents=True)
    with ProcessPoolExecutor() as pool:
        list(pool.map(partial(_fill_machine, folder, trials, machines), range(machines)))
    for n in range(LOOSE // 2):
        for row in run(run_id=f"eeee{n:08x}"):
            Store(folder).add_all(to_table([row]))


def _fill_machine(folder: Path, trials: int, machines: int, machine: int) -> None:
    for table in made_up.parts(machine, trials, machines):
        newest = parquet.format_file_date(max(table["started_at"].to_pylist()))
        parquet.write_table(folder / f"{PREFIX}-{newest}-{uuid.uuid4().hex}.parquet", table)


def upload(folder: Path, address: str) -> None:
    """Put a store's files to an address."""
    remote = RemoteStore(address)
    with ThreadPoolExecutor(UPLOADS) as pool:
        list(pool.map(lambda path: remote.write_file(path.name, path.read_bytes()), folder.glob("*.parquet")))


# Questions


def crossover_names(sweep: int, machines: int) -> tuple[list[str], str]:
    """Experiments and machine of one crossover."""
    question = sweep // machines % made_up.QUESTIONS
    return [made_up.experiment_id(question, size) for size in made_up.SIZES], made_up.machine_id(sweep % machines)


def ours_asked(store: str) -> tuple[Callable[[list[str], str], list[Trial]], Callable[[str], list[Trial]]]:
    """Our reader: of one crossover, and of one run."""
    opened = Store(resolve_store(store))
    return (
        lambda experiments, machine: opened.trials(experiment_id=experiments, machine_id=machine),
        lambda name: opened.trials(run_id=name),
    )


def duckdb_asked(store: str) -> tuple[Callable[[list[str], str], list[Trial]], Callable[[str], list[Trial]]]:
    """DuckDB over the same files."""
    import duckdb

    opened = duckdb.connect()
    opened.execute("SET parquet_metadata_cache = true")
    columns = ", ".join(f'"{name}"' for name in SCHEMA.names)

    def rows(condition: str, *values: object) -> list[Trial]:
        query = f"SELECT {columns} FROM read_parquet('{store}/*.parquet') WHERE {condition}"
        return from_table(opened.execute(query, values).to_arrow_table())

    return (
        lambda experiments, machine: rows(
            f"machine_id = ? AND experiment_id IN ({', '.join('?' * len(experiments))})", machine, *experiments
        ),
        lambda name: rows("run_id = ?", name),
    )


READERS = {"ours": ours_asked, "duckdb": duckdb_asked}


def ask(reader: str, store: str, trials: int, machines: int) -> None:
    """Print what questions take in this process."""
    crossover, of_run = READERS[reader](store)
    draw = random.Random(0)
    sweeps = [draw.randrange(trials // made_up.ROWS) for _ in range(QUERIES)]

    def asked(sweep: int) -> None:
        rows = crossover(*crossover_names(sweep, machines))
        if len(rows) < made_up.ROWS or len({row.hidden_size for row in rows}) != len(made_up.SIZES):
            message = f"{len(rows)} rows were found"
            raise AssertionError(message)

    def one(sweep: int) -> None:
        if len(of_run(f"{sweep * len(made_up.SIZES):012x}")) != 2:
            raise AssertionError(sweep)

    times: Times = {"opening": [timed(lambda: asked(0))]}
    for name, call in (("a crossover", asked), ("again", asked), ("one run", one)):
        times[name] = [timed(lambda sweep=sweep, call=call: call(sweep)) for sweep in sweeps]
    print(json.dumps(times | {"memory": [peak_bytes()]}))


def compact_again(store: str) -> None:
    """Print what adding a row and a compaction take in this process, and a second one that has nothing to do."""
    folder = resolve_store(store)
    times: Times = {
        "adding a row": [timed(lambda n=n: Store(folder).add(trial(run_id=f"{n:012x}"))) for n in range(ADDED)]
    }
    times["compaction"] = [timed(lambda: compacted(folder))]
    times["compaction again"] = [timed(lambda: compact(folder))]
    print(json.dumps(times | {"memory of compaction": [peak_bytes()]}))


def compacted(folder: Path) -> None:
    """Merge the tail; a server that fails in between, as moto's does under load, is asked again, which is told."""
    for _ in range(COMPACTIONS):
        try:
            compact(folder)
        except StoreError as error:
            print(f"{error} Once more.", file=sys.stderr)
        else:
            return


def peak_bytes() -> int:
    """The largest resident memory that this process ever had; `getrusage` would say its parent's if that is larger."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def in_a_process_of_its_own(*words: object) -> Times:
    command = [sys.executable, "-m", "tests.benchmarks.store_scale", *map(str, words)]
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=True)
    found: Times = json.loads(done.stdout)
    return found


async def _visits(port: int) -> Times:
    times = []
    for _ in range(1 + VISITS):
        seconds, session = await gallery_scale.visit(port)
        times.append(seconds)
        if session.faults:
            raise RuntimeError(session.faults[0])
        await session.close()
    return {"gallery, first visit": times[:1], "gallery, a new visitor": times[1:]}


def gallery(store: str, folder: Path) -> Times:
    """What the Gallery's first page takes, and its server's memory."""
    with server(CROSSOVER_JOBS=str(folder / "jobs"), CROSSOVER_RESULTS=store) as port:
        times = asyncio.run(_visits(port))
        memory = gallery_scale.memory_bytes()
    Queue(folder / "jobs").worker_file.dismiss()
    return times | {"memory of the gallery's server": [memory]}


def figures(store: str, trials: int, machines: int, folder: Path, *, duckdb: bool) -> Times:
    """Everything that is asked of one store, each in a process of its own."""
    found: Times = {}
    for _ in range(2 if duckdb else 1):
        for reader in ("ours", "duckdb") if duckdb else ("ours",):
            for what, times in in_a_process_of_its_own("--ask", reader, store, trials, machines).items():
                found.setdefault(what if reader == "ours" else f"DuckDB: {what}", []).extend(times)
                print(f"  {reader}, {what}: {shown(what, times)}", file=sys.stderr)
    if is_address(store):
        copies = resolve_store(store).rglob("*")
        found["copy on this machine"] = [sum(path.stat().st_size for path in copies if path.is_file())]
    found |= in_a_process_of_its_own("--compact", store)
    print(f"  compaction: {shown('', found['compaction'])}", file=sys.stderr)
    return found | gallery(store, folder)


def scale(trials: int, options: argparse.Namespace) -> dict[str, Times]:
    """Place → what was measured there, at one size."""
    found: dict[str, Times] = {}
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        os.environ[CACHES_VARIABLE] = str(folder / "copies")
        rows = folder / "rows"
        made_s = timed(lambda: fill(rows, trials, options.machines))
        size = sum(path.stat().st_size for path in rows.iterdir())
        files = f"{len(list(rows.iterdir())):,} files of {size / 2**20:,.0f} MiB"
        print(f"{trials:,} rows: {files} in {made_s:,.0f} s", file=sys.stderr)
        if "s3" in options.on.split(","):
            address = options.address or _own_server(opened)
            sent_s = timed(lambda: upload(rows, address))
            found["S3"] = {"putting it there": [sent_s]}
            found["S3"] |= figures(address, trials, options.machines, folder, duckdb=False)
        if "disk" in options.on.split(","):
            there = bool(importlib.util.find_spec("duckdb"))
            found["disk"] = figures(str(rows), trials, options.machines, folder, duckdb=there)
            found["disk"]["on disk"] = [size]
    return found


def _own_server(opened: ExitStack) -> str:
    """The address at a server of our own; it keeps a file open for each large object."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.environ.update(objects.KEYS)
    return opened.enter_context(objects.served_apart()).address()


def shown(what: str, times: Sequence[float]) -> str:
    """A figure, or a median with the highest."""
    if "memory" in what or "disk" in what or "copy" in what:
        return f"{max(times) / 2**20:,.0f} MiB"
    if len(times) == 1:
        return f"{times[0]:.2f} s"
    return f"{1e3 * statistics.median(times):,.0f} ms ({1e3 * max(times):,.0f})"


def told(found: Mapping[str, Times]) -> None:
    """Print all figures: a line each, a column for each size and place."""
    names = list(dict.fromkeys(what for times in found.values() for what in times))
    print("| median (highest) | " + " | ".join(found) + " |\n" + "|---" * (1 + len(found)) + "|")
    for what in names:
        cells = (shown(what, times[what]) if what in times else "" for times in found.values())
        print(f"| {what} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", default="100000,1000000", help="sizes, comma-separated; empty for none")
    parser.add_argument("--on", default="disk,s3", help="disk, s3 or both")
    parser.add_argument("--address", help="an empty place of an S3 server; moto's own unless given")
    parser.add_argument(
        "--folder", type=Path, help="where the rows are made; the system's temporary folder unless given"
    )
    parser.add_argument("--machines", type=int, default=40)
    parser.add_argument("--ask", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--compact", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        reader, store, trials, machines = options.ask
        ask(reader, store, int(trials), int(machines))
        return
    if options.compact:
        compact_again(options.compact)
        return
    sizes = [int(size) for size in options.trials.split(",") if size]
    found = {f"{size:,}, {place}": of for size in sizes for place, of in scale(size, options).items()}
    told(found)


if __name__ == "__main__":
    main()
