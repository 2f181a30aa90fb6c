"""Is the list of studies linear? Its parts at 1,000, 10,000 and 100,000 rows, and for the rows of one endless run.

    python -m tests.benchmarks.study_list [--rounds 5]

Processor time of this process, the quickest of the rounds, sizes in turns; the store is made up (see `made_up`) and
compacted, so that reading is that of whole parts. `usual`: sweeps of a CPU and a GPU. `eights`: runs of as many
contenders as a run may have, so that there are 28 pairs to every 8 rows; made in memory. `one run`: rows that all say
that they are of one run, as no file through the door has them; only as many as a run may have are paired.
"""

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from core.answer.gallery import overview
from core.answer.gallery import overview as gallery_table
from core.question.experiment import MAX_CONTENDERS
from core.results.store import Store, compact
from tests.benchmarks import made_up

SIZES = (1_000, 10_000, 100_000)
MACHINES = 40


def frames(folder: Path) -> dict[int, tuple[Store, pd.DataFrame]]:
    """By number of rows: a store, and its lines."""
    found = {}
    for rows in SIZES:
        store = Store(folder / str(rows))
        for table in made_up.tables(rows, MACHINES):
            store.add_all(table)
        compact(store.folder)
        found[rows] = store, gallery_table.load_overview([(store, "here")]).frame
    return found


def in_eights(frame: pd.DataFrame) -> pd.DataFrame:
    """The same lines as runs of as many contenders as a run may have."""
    runs = np.arange(len(frame)) // MAX_CONTENDERS
    places = np.arange(len(frame)) % MAX_CONTENDERS
    names = [f"{run:012x}" for run in runs]
    return frame.assign(
        run_id=names,
        trial_id=[f"{name}-{place}" for name, place in zip(names, places, strict=True)],
        contender=pd.Categorical([f"cpu@{place + 1}" for place in places]),
        hidden_size=16 << runs % 20 // 2,
        seed=runs // 20,
        machine_id=pd.Categorical(["feedfacecafe"] * len(frame)),
        **{name: frame[name].iloc[0] for name in ("depth", "batch_size")},
        **{name: pd.Categorical([frame[name].iloc[0]] * len(frame)) for name in ("dataset", "dataset_hash")},
    )


def of_one_run(frame: pd.DataFrame) -> pd.DataFrame:
    """The same lines as if all were of one run."""
    return frame.assign(run_id="f" * 12)


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def parts(store: Store, frame: pd.DataFrame) -> Iterable[tuple[str, Callable[[], object]]]:
    """What is done for the list, by name."""
    whole, eights, one = map(pa.Table.from_pandas, (frame, in_eights(frame), of_one_run(frame)))
    lines = gallery_table.find_study_lines(whole)
    yield "reading every line", lambda: _read_anew(store)
    yield "finding the studies", lambda: gallery_table.find_study_lines(whole)
    yield "finding them, `eights`", lambda: gallery_table.find_study_lines(eights)
    yield "finding them, `one run`", lambda: gallery_table.find_study_lines(one)
    yield "marks and filters", lambda: overview.build_gallery_data(frame, lines)


def _read_anew(store: Store) -> None:
    """As a server does that has just started."""
    gallery_table.folder_index.cache_clear()
    gallery_table.load_overview([(store, "here")])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = {rows: dict(parts(*known)) for rows, known in frames(Path(name)).items()}
        found: dict[str, dict[int, list[float]]] = {what: {rows: [] for rows in SIZES} for what in work[SIZES[0]]}
        for _ in range(options.rounds):
            for what, times in found.items():
                for rows in SIZES:
                    times[rows].append(seconds(work[rows][what]))
    print(f"| processor time | {' | '.join(f'{rows:,} rows' for rows in SIZES)} | ratios |")
    print(f"|---|{'---|' * len(SIZES)}---|")
    for what, times in found.items():
        best = [min(times[rows]) for rows in SIZES]
        spread = max(max(times[rows]) / statistics.median(times[rows]) for rows in SIZES)
        cells = " | ".join(f"{1e3 * each:,.0f} ms" for each in best)
        ratios = " and ".join(f"{after / before:.1f}" for before, after in itertools.pairwise(best))
        print(f"| {what} | {cells} | {ratios} (slowest round {spread:.1f} of the median) |")


if __name__ == "__main__":
    main()
