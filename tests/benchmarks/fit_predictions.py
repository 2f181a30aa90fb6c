"""Fits the constants of predicted cards to published timings of operations, and writes them to `data/predict`.

    python -m tests.benchmarks.fit_predictions FOLDER        # writes constants.json and published.json
    python -m tests.benchmarks.fit_predictions FOLDER --show # prints how well they meet published trainings

The folder holds ops.parquet (operations timed on 17 cards: NeuSight, MIT; DeepBench, Apache-2.0), published.csv (steps
of whole trainings), counts.json (what those steps dispatch, counted on the meta device) and launches.csv. It is no part
of this repository. Every card is also left out in its turn, and the constants without it are written as well, so that
a test can say how well the model meets cards that it does not know.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from core.answer.predict import cards
from core.answer.predict.cards import Constants, Fit, Shape, Speed, Work
from core.question.models.operations import OPERATION_KINDS, WINOGRAD_WINDOW

SHIPPED = {
    "NeuSight labels": "MIT, sitar-lab/NeuSight at 6945927",
    "jcjohnson": "MIT, jcjohnson/cnn-benchmarks",
    "ilkarman": "MIT, ilkarman/DeepLearningFrameworks",
    "LeanRL": "MIT, pytorch-labs/LeanRL",
}
"""Sources whose rows may be shipped, with their licences; others are fitted to and linked, not copied."""

ALREADY_KNOWN = {"Xeon Phi 7250"}
"""Devices of the table that are no GPUs."""

OVERHEAD_S = 4e-6
"""Seconds of an operation before it computes: DeepBench's shortest, pipelined, less what they compute."""

HOST_RATIO, LINK_GB_S = (1.1, 4.5), (3.0, 12.0)
"""How much longer an operation takes the host on a GPU than on its CPU, of six published pairs on one host; and copies
from host to device, from pageable memory on an old bus to pinned memory on PCIe 3."""

START = {
    "matmul": (1.0, 0.5, 0.6),
    "conv": (1.1, 0.5, 0.6),
    "conv_weights": (1.0, 0.5, 0.4),
    "conv3x3": (2.0, 0.5, 0.6),
    "conv3x3_weights": (1.6, 0.5, 0.5),
}
"""Gain, emptiness and exponent of each kind to begin with; the gain of a product is 1, as a card's speed is its own."""

FLOOR, FLOOR_PART = 2.0, 0.95
"""Times below so many times the shortest of a card and source tell nothing of it; NeuSight's are single calls that the
host waits for, so that nearly all of that shortest is taken off."""


def classify(kind: pd.Series, table: pd.DataFrame) -> np.ndarray:
    """The kind of each operation in `core`; 3×3 with stride 1 is told by how often a number is read."""
    names = {"gemm": "matmul", "conv": "conv", "convw": "conv_weights"}
    found = kind.map(names).fillna("memory").to_numpy(dtype=object)
    m, n, k, bytes_ = (table[name].to_numpy(float) for name in ("m", "n", "k", "bytes"))
    alone = table["b"].to_numpy() == 1
    with np.errstate(divide="ignore", invalid="ignore"):
        taps = k * m / (bytes_ / 4 - n * k - m * n)
        taps_of_weights = n * k / (bytes_ / 4 - m * n - m * k)
    square = alone & (found == "conv") & (np.abs(taps - 9) < 0.15) & (k >= WINOGRAD_WINDOW)
    weights = alone & (found == "conv_weights") & (np.abs(taps_of_weights - 9) < 0.15) & (n >= WINOGRAD_WINDOW)
    found[square], found[weights] = "conv3x3", "conv3x3_weights"
    return found


def read_operations(folder: Path) -> pd.DataFrame:
    """Timed operations of GPUs, with their kind and the numbers that they compute."""
    table = pd.read_parquet(folder / "ops.parquet")
    table = table[~table["device"].isin(ALREADY_KNOWN) & ~table["kind"].str.startswith("rnn")].reset_index(drop=True)
    table["kind"] = classify(table["kind"], table)
    table["outputs"] = table["m"] * table["n"] * table["b"]
    return table


def fit(table: pd.DataFrame) -> tuple[dict[str, Shape], dict[str, Speed]]:
    """Constants that cards share, and the speed of each."""
    moved = table[(table["kind"] == "memory") & (table["bytes"] > 2e8)]
    bandwidths = (moved["bytes"] / moved["ms"] / 1e6).groupby(moved["device"]).median().to_dict()
    timed = table[(table["kind"] != "memory") & (table["flops"] > 0)].copy()
    shortest = timed.groupby(["source", "device"])["ms"].transform(lambda times: times.quantile(0.01))
    timed["s"] = (timed["ms"] - FLOOR_PART * shortest * (timed["source"] == "neusight")) * 1e-3
    timed = timed[timed["ms"] > FLOOR * shortest]
    names = sorted(timed["device"].unique())
    sheets = [cards.card_named(name) for name in names]
    places = timed["device"].map({name: place for place, name in enumerate(names)}).to_numpy()
    bandwidth = np.array([bandwidths.get(sheet.name, cards.REACHED_BANDWIDTH * sheet.gb_s) for sheet in sheets])
    multiprocessors = np.array([sheet.multiprocessors for sheet in sheets], dtype=float)[places]
    kinds = [kind for kind in START if (timed["kind"] == kind).any()]
    work = Work(
        timed["kind"].map(OPERATION_KINDS.index).to_numpy(np.int64),
        *(timed[name].to_numpy(float) for name in ("flops", "bytes", "outputs")),
        counts=np.ones(len(timed)),
    )
    weight = 1 / np.sqrt(timed.groupby(["device", "kind"])["ms"].transform("size").to_numpy() / 50)
    seen = np.log(timed["s"].to_numpy())

    def unpack(logs: np.ndarray) -> tuple[dict[str, Shape], np.ndarray]:
        values = iter(np.exp(logs).tolist())
        shapes = {
            kind: Shape(gain=1.0 if kind == "matmul" else next(values), emptiness=next(values), exponent=next(values))
            for kind in kinds
        }
        return shapes, np.array(list(values))

    def misfit(logs: np.ndarray) -> np.ndarray:
        shapes, tflops = unpack(logs)
        speed = Speed(tflops=tflops[places], gb_s=bandwidth[places])  # type: ignore[arg-type]
        return weight * (np.log(cards.operation_seconds(work, speed, multiprocessors, shapes, OVERHEAD_S)) - seen)

    shared = np.log([value for kind in kinds for value in START[kind][kind == "matmul" :]])
    own = np.log([0.75 * sheet.tflops for sheet in sheets])
    low, high = np.concatenate([shared - 2.5, own - 2]), np.concatenate([shared + 1.5, own + 1])
    found = least_squares(
        misfit, np.concatenate([shared, own]), loss="soft_l1", f_scale=0.2, max_nfev=60, bounds=(low, high)
    )
    shapes, tflops = unpack(found.x)
    return shapes, {
        name: Speed(tflops=float(one), gb_s=float(two)) for name, one, two in zip(names, tflops, bandwidth, strict=True)
    }


def summarize(shapes: dict[str, Shape], speeds: dict[str, Speed]) -> Fit:
    """A fit with the shares of data sheets that its cards reach, and no band yet."""
    shares: dict[bool, list[float]] = {True: [], False: []}
    for name, speed in speeds.items():
        sheet = cards.card_named(name)
        shares[sheet.low_power].append(speed.tflops / sheet.tflops)
    low, usual = (float(np.median(shares[is_low])) for is_low in (True, False))
    return Fit(shapes=shapes, share=usual, low_power_share=low, centre=1.0, half_width=1.0, wide=1.0)


def weighted_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Quantile of values with weights, with room for one more group than there are (split conformal)."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / (weights.sum() + weights.max())
    return float(values[order][min(int(np.searchsorted(reached, share)), len(values) - 1)])


def with_band(made: Fit, ratios: pd.DataFrame) -> Fit:
    """A fit with its band: published over computed seconds of cards that it does not know, sources weighted alike."""
    logs = ratios["log"].to_numpy()
    weights = 1 / ratios.groupby(["source", "gpu"])["log"].transform("size").to_numpy()
    centre = weighted_quantile(logs, weights, 0.5)
    off = np.abs(logs - centre)
    half = weighted_quantile(off, weights, 0.9)
    return Fit(
        shapes=made.shapes,
        share=made.share,
        low_power_share=made.low_power_share,
        centre=math.exp(centre),
        half_width=math.exp(half),
        wide=math.exp(max(float(off.max()), half)),
    )


def read_steps(folder: Path) -> dict[str, dict[str, Any]]:
    """What each published step dispatches: launches, and rows of kind, operations, bytes, outputs and count."""
    steps = {}
    for name, counted in json.loads((folder / "counts.json").read_text()).items():
        rows = pd.DataFrame(counted["ops"], columns=["kind", "flops", "bytes", "m", "n", "k", "b", "more", "count"])
        kinds = classify(rows["kind"], rows)
        work = [
            [OPERATION_KINDS.index(kind), int(flops), int(moved), int(m * n * b), int(count)]
            for kind, flops, moved, m, n, b, count in zip(
                kinds, *(rows[column] for column in ("flops", "bytes", "m", "n", "b", "count")), strict=True
            )
        ]
        steps[name] = {"launches": counted["total"]["ops"], "work": work}
    return steps


def fit_all(folder: Path) -> tuple[Constants, pd.DataFrame, dict[str, dict[str, Any]]]:
    """All constants, the published steps and what they dispatch."""
    table, steps = read_operations(folder), read_steps(folder)
    published = pd.read_csv(folder / "published.csv")
    launches = pd.read_csv(folder / "launches.csv")
    training = launches[launches["kind"] == "training"]["us_per_operation"]
    shapes, speeds = fit(table)
    made = summarize(shapes, speeds)
    without: dict[str, Fit] = {}
    for name in published["gpu"].unique():
        known = name in speeds
        without[name] = summarize(*fit(table[table["device"] != name])) if known else made
    base = Constants(
        overhead_s=OVERHEAD_S,
        launch_s=(math.floor(training.min()) * 1e-6, math.ceil(training.max()) * 1e-6),
        host_ratio=HOST_RATIO,
        link_gb_s=LINK_GB_S,
        largest_flops={str(kind): float(most) for kind, most in table.groupby("kind")["flops"].max().items()},
        fit=made,
        speeds=speeds,
        left_out={},
    )
    published["log"] = [_log_ratio(row, steps, without[row.gpu], base) for row in published.itertuples()]
    most = [steps[step]["launches"] * base.launch_s[1] * 1e3 for step in published["step"]]
    bound = published[published["ms"] / np.exp(published["log"]) > most]  # of which arithmetic is what counts
    left_out = {name: with_band(one, bound[bound["gpu"] != name]) for name, one in without.items()}
    whole = with_band(made, bound)
    return Constants(**{**vars(base), "fit": whole, "left_out": left_out}), published, steps


def _log_ratio(row: Any, steps: dict[str, dict[str, Any]], made: Fit, base: Constants) -> float:
    card, work = cards.card_named(row.gpu), Work.from_rows(steps[row.step]["work"])
    speed = cards.data_sheet_speed(card, made)
    each = cards.operation_seconds(work, speed, card.multiprocessors, made.shapes, base.overhead_s)
    return math.log(row.ms / 1e3 / float(each @ work.counts))


def to_plain(value: Any) -> Any:
    """Dataclasses as plain data, numbers with five digits."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: to_plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {name: to_plain(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(entry) for entry in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def write(constants: Constants, published: pd.DataFrame, steps: dict[str, dict[str, Any]]) -> None:
    """Put the constants and those published steps that may be shipped into `data/predict`."""
    (cards.FOLDER / "constants.json").write_text(json.dumps(to_plain(constants), indent=1) + "\n")
    rows = published[published["source"].isin(SHIPPED)]
    listed = [
        {
            "source": row.source,
            "family": row.family,
            "card": row.gpu,
            "ms": row.ms,
            "step": row.step,
            "note": row.note if isinstance(row.note, str) else "",
        }
        for row in rows.itertuples()
    ]
    counted = {name: steps[name] for name in sorted(set(rows["step"]))}
    lines = ",\n ".join(
        f"{json.dumps(name)}: {json.dumps(step, separators=(',', ':'))}" for name, step in counted.items()
    )
    text = (
        f'{{"licences": {json.dumps(SHIPPED, indent=1)},\n"rows": [\n '
        + ",\n ".join(map(json.dumps, listed))
        + f'\n],\n"steps": {{\n {lines}\n}}}}\n'
    )
    (cards.FOLDER / "published.json").write_text(text)


def show(constants: Constants, published: pd.DataFrame, steps: dict[str, dict[str, Any]]) -> None:
    """Print how well published steps are met, all of them and by source, with the misses."""
    met = []
    for row in published.itertuples():
        counts = cards.StepCounts(launches=steps[row.step]["launches"], work=tuple(map(tuple, steps[row.step]["work"])))
        step = cards.PublishedStep(source=row.source, family=row.family, card=row.gpu, ms=row.ms, step=row.step)
        met.append(cards.predict_published(step, counts, constants.left_out[row.gpu], constants))
    for name in ("all", "shipped", *published["source"].unique(), *published["family"].unique()):
        chosen = [
            one
            for one in met
            if name in ("all", one.row.source, one.row.family) or (name == "shipped" and one.row.source in SHIPPED)
        ]
        found = cards.Accuracy(rows=tuple(chosen))
        print(f"{name:24} {len(chosen):4} rows, {found.coverage:.1%} inside, median error {found.median_error:.1%}")
    for one in cards.Accuracy(rows=tuple(met)).misses:
        print(
            f"outside: {one.row.source}, {one.row.step} on {one.row.card}: {one.row.ms:.4g} ms, "
            f"predicted {one.low_s * 1e3:.4g} to {one.high_s * 1e3:.4g} ms"
        )
    print(
        f"half-width {constants.fit.half_width:.3f}, wide {constants.fit.wide:.3f}, centre {constants.fit.centre:.3f}"
    )


def main() -> None:
    """Fit, then write or show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    found = fit_all(options.folder)
    if options.show:
        show(*found)
    else:
        write(*found)


if __name__ == "__main__":
    main()
