"""How does the store scale, and how do other people's formats? Append, one crossover query, compaction; 1,000 runs.

    python -m tests.benchmarks.store_scale [--trials 10000,100000,1000000] [--runs 1000] [--epochs 50]

Append: one row into a store of that size, flushed to disk. Query: the rows of one crossover, 20 sizes on one machine,
another sweep each time, as objects, in a process of its own that has asked once before; its memory is resident memory
at the end. Compaction: of the whole store from files of 10,000 rows, and of 1,000 files of one row into it.

Then the losses of so many runs of so many epochs each, from our store compacted and not, from MLflow (its search, which
knows last values only, and with histories), TensorBoard's own event reader, and CSV. Take turns, median. MLflow is not
among the requirements: `pip install mlflow` first, or its lines are left out, which is said.
"""

import argparse
import csv
import gc
import importlib.util
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from core.files.project import PROJECT
from core.results import compaction
from core.results.schema import SCHEMA
from core.results.store import Store
from core.results.tables import to_table
from tests.benchmarks import made_up
from tests.rows import run, trial

LOOSE, APPENDS, QUERIES = 1_000, 100, 50

Losses = dict[str, list[float]]


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call."""
    gc.collect()
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


# The size of a store


def scale(trials: int, machines: int) -> dict[str, str]:
    """One line of the table: what things take in a store of that size."""
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name))
        count = 0
        for table in made_up.tables(trials, machines):
            store.add_all(table)
            count += table.num_rows
        whole_s = timed(lambda: compaction.compact(store.folder))
        asked = json.loads(in_a_process_of_its_own(store.folder, count, machines))
        appends = [timed(lambda n=n: store.add(trial(run_id=f"{n:012x}"))) for n in range(APPENDS)]
        for number in range(LOOSE // 2):
            for row in run(run_id=f"eeee{number:08x}"):
                store.add(row)
        loose_s = timed(lambda: compaction.compact(store.folder))
        size = sum(path.stat().st_size for path in store.folder.glob("*.parquet"))
    times = asked["queries_s"]
    return {
        "trials": f"{count:,}",
        "on disk": f"{size / 2**20:,.0f} MiB",
        "append, median (highest)": f"{1e3 * statistics.median(appends):.1f} ({1e3 * max(appends):.0f}) ms",
        "first query": f"{asked['first_s']:.2f} s",
        "query, median (highest)": f"{1e3 * statistics.median(times):.1f} ({1e3 * max(times):.0f}) ms",
        "memory after": f"{asked['memory_bytes'] / 2**20:,.0f} MiB",
        "compact all": f"{whole_s:.1f} s",
        f"compact {LOOSE + APPENDS:,} files": f"{loose_s:.1f} s",
    }


def in_a_process_of_its_own(folder: Path, trials: int, machines: int) -> str:
    command = [sys.executable, "-m", "tests.benchmarks.store_scale", "--ask", str(folder), str(trials), str(machines)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout


def ask(folder: Path, trials: int, machines: int) -> None:
    """Print what queries take in this process."""
    store, draw = Store(folder), random.Random(0)
    first_s = timed(lambda: query(store, 0, machines))
    sweeps = [draw.randrange(trials // made_up.ROWS) for _ in range(QUERIES)]
    queries_s = [timed(lambda sweep=sweep: query(store, sweep, machines)) for sweep in sweeps]
    memory_bytes = psutil.Process().memory_info().rss
    print(json.dumps({"first_s": first_s, "queries_s": queries_s, "memory_bytes": memory_bytes}))


def query(store: Store, sweep: int, machines: int) -> None:
    """The rows of one crossover: a question at every size, on one machine."""
    question = sweep // machines % made_up.QUESTIONS
    names = [made_up.experiment_id(question, size) for size in made_up.SIZES]
    rows = store.trials(experiment_id=names, machine_id=made_up.machine_id(sweep % machines))
    if len(rows) < made_up.ROWS or len({row.hidden_size for row in rows}) != len(made_up.SIZES):
        message = f"{len(rows)} rows were found"
        raise AssertionError(message)


# Other people's formats


def losses(runs: int, epochs: int) -> Losses:
    """Name of a run → its loss at each epoch."""
    draw = random.Random(1)
    return {f"{number:012x}": [draw.random() for _ in range(epochs)] for number in range(runs)}


def formats(folder: Path, known: Losses) -> Iterator[tuple[str, Callable[[], int]]]:
    """Name of a reader, and a call that reads all runs and returns how many; written here first."""
    loose, whole = Store(folder / "loose"), Store(folder / "whole")
    steps = tuple(range(1, len(next(iter(known.values()))) + 1))
    rows = [trial(run_id=name, loss=tuple(of), loss_step=steps) for name, of in known.items()]
    for row in rows:
        loose.add(row)
    whole.add_all(to_table(rows))
    yield "Crossover, one compacted file", lambda: ours(whole)
    yield f"the same, all {len(SCHEMA)} columns", lambda: ours(whole, SCHEMA.names)
    yield f"Crossover, {len(rows):,} files", lambda: ours(loose)
    yield from csv_files(folder, known)
    yield from tensorboard(folder / "tensorboard", known)
    if importlib.util.find_spec("mlflow"):
        yield from mlflow(folder, known)


def ours(store: Store, columns: Sequence[str] = ("run_id", "loss")) -> int:
    table = store.read(columns).table
    return len(dict(zip(table["run_id"].to_pylist(), table["loss"].to_pylist(), strict=True)))


def csv_files(folder: Path, known: Losses) -> Iterator[tuple[str, Callable[[], int]]]:
    (folder / "csv").mkdir()
    for name, of in known.items():
        with (folder / "csv" / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(enumerate(of))

    def read() -> int:
        found = {}
        for path in (folder / "csv").iterdir():
            with path.open(newline="") as file:
                found[path.stem] = [float(value) for _, value in csv.reader(file)]
        return len(found)

    yield "CSV, a file a run", read


def tensorboard(folder: Path, known: Losses) -> Iterator[tuple[str, Callable[[], int]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for name, of in known.items():
        writer = EventFileWriter(str(folder / name))
        for step, value in enumerate(of):
            writer.add_event(Event(step=step, summary=Summary(value=[Summary.Value(tag="loss", simple_value=value)])))
        writer.close()

    def read() -> int:
        found = {}
        for path in folder.iterdir():
            reader = EventAccumulator(str(path))
            reader.Reload()
            found[path.name] = [event.value for event in reader.Scalars("loss")]
        return len(found)

    yield "TensorBoard's event reader", read


def mlflow(folder: Path, known: Losses) -> Iterator[tuple[str, Callable[[], int]]]:
    import mlflow as tracking
    from mlflow.entities import Metric

    tracking.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    client = tracking.MlflowClient()
    experiment = client.create_experiment("losses", artifact_location=(folder / "artifacts").as_uri())
    for name, of in known.items():
        created = client.create_run(experiment, run_name=name)
        client.log_batch(created.info.run_id, [Metric("loss", value, 0, step) for step, value in enumerate(of)])
        client.set_terminated(created.info.run_id)

    def search() -> int:
        return len(tracking.search_runs([experiment], max_results=50_000))

    def histories() -> int:
        found = tracking.search_runs([experiment], max_results=50_000)
        return len({name: client.get_metric_history(name, "loss") for name in found["run_id"]})

    yield "MLflow's search (last values only)", search
    yield "MLflow's search and histories", histories


def compare(runs: int, epochs: int, rounds: int) -> None:
    """Print what reading all runs takes in each format."""
    with tempfile.TemporaryDirectory() as name:
        readers = dict(formats(Path(name), losses(runs, epochs)))
        times: dict[str, list[float]] = {reader: [] for reader in readers}
        for _ in range(rounds):
            for reader in random.sample(list(readers), len(readers)):
                begin = time.perf_counter()
                if readers[reader]() != runs:
                    message = f"{reader} found other runs"
                    raise AssertionError(message)
                times[reader].append(time.perf_counter() - begin)
    base = statistics.median(next(iter(times.values())))
    print(f"\n{runs:,} runs of {epochs} epochs, median of {rounds} rounds\n")
    print("| reader | median | lowest | highest | ratio |\n|---|---|---|---|---|")
    for reader, of in times.items():
        cells = " | ".join(f"{1e3 * pick(of):,.0f} ms" for pick in (statistics.median, min, max))
        print(f"| {reader} | {cells} | {statistics.median(of) / base:.1f} |")
    if not importlib.util.find_spec("mlflow"):
        print("\nMLflow is not installed: pip install mlflow, and run this again.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", default="10000,100000,1000000", help="sizes, comma-separated; empty for none")
    parser.add_argument("--machines", type=int, default=40)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ask", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        folder, trials, machines = options.ask
        ask(Path(folder), int(trials), int(machines))
        return
    lines = [scale(int(size), options.machines) for size in options.trials.split(",") if size]
    if lines:
        print("| " + " | ".join(lines[0]) + " |\n" + "|---" * len(lines[0]) + "|")
    for line in lines:
        print("| " + " | ".join(line.values()) + " |")
    compare(options.runs, options.epochs, options.rounds)


if __name__ == "__main__":
    main()
