"""How do other people's formats scale? The losses of a thousand runs, from our store and from theirs.

    python -m tests.benchmarks.formats [--runs 1000] [--epochs 50] [--rounds 5]

The losses of so many runs of so many epochs each, from our store compacted and not, from MLflow (its search, which
knows last values only, and with histories), TensorBoard's own event reader, and CSV. Take turns, median. MLflow is not
among the requirements: `pip install mlflow` first, or its lines are left out, which is said.
"""

import argparse
import csv
import importlib.util
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from core.results.parquet import to_table
from core.results.schema import SCHEMA
from core.results.store import Store
from tests.rows import trial

Losses = dict[str, list[float]]


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
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    compare(options.runs, options.epochs, options.rounds)


if __name__ == "__main__":
    main()
