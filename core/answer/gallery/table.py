"""Every stored trial in one light line, and the studies among them: for stores of fifty thousand trials and more.

Scalars as they are stored, and of the lists of blocks what a list of trials shows: medians, noise, how many. Blocks are
read for that, file by file, and dropped; whole rows are read by whoever opens one. Nothing here estimates or draws.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from core.answer import comparable
from core.answer.run import busy
from core.answer.study import study
from core.question.experiment import MAX_CONTENDERS
from core.results.finding import lookup, mirrored
from core.results.finding.index import FILE, FolderIndex, Skipped, folder_index
from core.results.reading import read_piece
from core.results.reuse import CUT_OFF
from core.results.schema import COLUMNS, SCHEMA, Trial
from core.results.store import Store

SCALARS = tuple(c.name for c in COLUMNS if not pa.types.is_list(c.metadata["type"]) and c.name != "predictions")
"""Columns of a row that are kept as they are."""

LISTS = ("block_steps", "block_begin_ns", "block_end_ns", "block_load", "block_steal", "warmup_steps", "threads_tried")
"""Columns that are read for what follows from them, and dropped."""

DERIVED = pa.schema(
    {
        "step_s": pa.float64(),
        "noise": pa.float64(),
        "spread90": pa.float64(),
        "pairs": pa.int64(),
        "warmed": pa.bool_(),
        "load_max": pa.float64(),
        "steal_max": pa.float64(),
        "threads_tried_count": pa.int64(),
    }
)
"""What follows from them."""

MOST_TRIALS = 100_000
"""Lines of a store: they are in memory, and worked out anew when a row comes. Nobody reads so many in a list."""

TEXTS_OF_THEIR_OWN = ("trial_id", "run_id", "started_at", "message")
"""Texts that hardly two rows share; all others are kept as categories."""

NAMED = ("run_id", "trial_id", "started_at", "threads", "machine")
"""Columns of every row of a study that its line needs."""

Texts = npt.NDArray[np.object_]
Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class Overview:
    """Everything that can be looked at, a line a trial (see `whole`), and the files that could not be read.

    Of files of a newer version the known columns were read. `left_out`: rows of older files, beyond `MOST_TRIALS`.
    """

    frame: pd.DataFrame
    skipped: tuple[Skipped, ...]
    newer: tuple[str, ...]
    left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class StudyLine:
    """A study as a list shows it; `core.answer.study.study.Study` with the same id has its rows.

    Attributes:
        sizes: places of its runs on the axis, ascending, each with its run in `run_ids`.
        trial_ids: its rows, baseline and challenger of each size in turn.
        baseline_name: the baseline for people, as in the answer of the study; `baseline` has it as asked for.
        newest: when its newest run began, ISO 8601.
    """

    id: str
    axis: str
    baseline: str
    challenger: str
    sizes: tuple[float, ...]
    run_ids: tuple[str, ...]
    trial_ids: tuple[str, ...]
    dataset: str
    model: str
    training: str
    source_hash: str
    machine: str
    baseline_name: str
    challenger_name: str
    newest: str
    protocol_version: int


def whole(stores: Sequence[tuple[Store, str]]) -> Overview:
    """One line for every trial of some stores, none twice, newest run first, and the files that could not be read.

    Of a store of more than `MOST_TRIALS`, those of its newest files; whole rows of all others are found by name.

    Columns are those of `core.results.schema.Trial` in `SCALARS`, and

    - `step_s`: median seconds a step; NaN if nothing was timed,
    - `noise`: interquartile range over median of the blocks' step times; NaN below 2 blocks,
    - `spread90`: their 90th percentile over their median; NaN below `busy.SPREAD_BLOCKS` blocks,
    - `pairs`: number of timed blocks,
    - `warmed`: whether there is a warm-up block,
    - `load_max`, `steal_max`: largest of the blocks; NaN if nothing was timed,
    - `threads_tried_count`: number of thread counts that were tried,
    - `machine`: the machine for people,
    - `source`: the word that was given for the store, or "imported".

    Args:
        stores: with a word for what was measured there; of a trial that is in several the first counts.

    Raises:
        StoreError: a folder cannot be read.
    """
    indexes = [(index_of(store).now(), source) for store, source in stores]
    limited = [(store, known) for (store, _), (known, _) in zip(stores, indexes, strict=True) if known.older]
    tables = [_with_source(_each_once(known.table.drop_columns([FILE])), source) for known, source in indexes]
    return Overview(
        frame=framed(pa.concat_tables([_with_source(_empty(), ""), *tables])),
        skipped=tuple(entry for known, _ in indexes for entry in known.skipped),
        newer=tuple(name for known, _ in indexes for name in known.newer),
        left_out=sum(max(0, lookup.count(store.folder) - known.table.num_rows) for store, known in limited),
    )


def index_of(store: Store) -> FolderIndex:
    """The lines of a store's newest files, and which files are older than those."""
    return folder_index(store.folder, _light, _empty, MOST_TRIALS)


def studies(frame: pd.DataFrame, *, axis: str | None = None, least: int = 2) -> list[StudyLine]:
    """The studies that `core.answer.study.study.studies` finds in the rows of `frame`, with the same ids and order."""
    if frame.empty:
        return []
    pairs, columns = _pairs(frame), {name: frame[name].to_numpy(dtype=object) for name in NAMED}
    found = (line for name in study.axes(axis) for line in _along(frame, columns, pairs, name, least))
    return sorted(found, key=study.rank, reverse=True)


# One line a trial


@functools.cache
def _empty() -> pa.Table:
    return pa.schema([*(SCHEMA.field(name) for name in SCALARS), *DERIVED]).empty_table()


def _light(file: Path) -> tuple[int, pa.Table]:
    """The lines of one file; raises as `read_piece` does."""
    piece = read_piece(mirrored.here(file), columns={*SCALARS, *LISTS})
    lists = {name: piece.table[name].combine_chunks() for name in LISTS}
    known = {name: piece.table[name] for name in SCALARS} | _derived(lists)
    return piece.version, pa.table(known, schema=_empty().schema)


def _derived(lists: dict[str, pa.ListArray]) -> dict[str, pa.Array]:
    steps, begin, end = (_values(lists[name]) for name in ("block_steps", "block_begin_ns", "block_end_ns"))
    counts = _lengths(lists["block_steps"])
    times = _Ragged((end - begin) / 1e9 / steps, counts)
    median = times.quantile(0.5, at_least=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = (times.quantile(0.75, at_least=2) - times.quantile(0.25, at_least=2)) / median
        spread = times.quantile(0.9, at_least=busy.SPREAD_BLOCKS) / median
    found = {
        "step_s": median,
        "noise": np.where(np.isfinite(noise), noise, np.nan),
        "spread90": np.where(np.isfinite(spread), spread, np.nan),
        "pairs": counts,
        "warmed": _lengths(lists["warmup_steps"]) > 0,
        "load_max": _Ragged(_values(lists["block_load"]), counts).quantile(1.0, at_least=1),
        "steal_max": _Ragged(_values(lists["block_steal"]), counts).quantile(1.0, at_least=1),
        "threads_tried_count": _lengths(lists["threads_tried"]),
    }
    return {name: pa.array(values, DERIVED.field(name).type) for name, values in found.items()}


class _Ragged:
    """Lists of different lengths, sorted, for their quantiles.

    Args:
        values: of all lists, one behind the other.
        counts: length of each.
    """

    def __init__(self, values: npt.NDArray[Any], counts: Places) -> None:
        place = np.repeat(np.arange(len(counts)), counts)
        self._sorted = values[np.lexsort((values, place))].astype(float)
        self._counts, self._first = counts, np.cumsum(counts) - counts

    def quantile(self, share: float, *, at_least: int) -> Numbers:
        """The quantile of each list, between values in proportion; NaN for those of fewer values than `at_least`."""
        found = np.full(len(self._counts), np.nan)
        known = self._counts >= at_least
        place = share * (self._counts[known] - 1)
        low = np.floor(place).astype(np.intp)
        below = self._sorted[self._first[known] + low]
        above = self._sorted[self._first[known] + np.ceil(place).astype(np.intp)]
        found[known] = below + (above - below) * (place - low)
        return found


def _lengths(lists: pa.ListArray) -> Places:
    lengths: Places = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.intp)
    return lengths


def _values(lists: pa.ListArray) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = pc.list_flatten(lists).to_numpy(zero_copy_only=False)
    return values


def _with_source(table: pa.Table, source: str) -> pa.Table:
    imported = pc.not_equal(table["origin"], "")
    return table.append_column("source", pc.if_else(imported, "imported", source).cast(pa.string()))


def _each_once(table: pa.Table) -> pa.Table:
    """Of lines of the same trial the most complete, as `core.results.store.each_once` has it."""
    if pc.count_distinct(table["trial_id"]).as_py() == table.num_rows:
        return table
    whole = pc.invert(pc.is_in(table["outcome"], pa.array(list(CUT_OFF))))
    rank = pd.DataFrame({"id": table["trial_id"], "whole": whole, "steps": table["steps"]})
    best = rank.sort_values(["whole", "steps"], ascending=False, kind="stable").drop_duplicates("id")
    return table.take(pa.array(np.sort(best.index.to_numpy())))


def framed(table: pa.Table) -> pd.DataFrame:
    """Rows, or lines, as a list has them: with the machine for people, none twice, newest run first."""
    machine = pc.binary_join_element_wise(
        table["cpu_name"], " (", pc.utf8_slice_codeunits(table["machine_id"], 0, 6), ")", ""
    )
    table = table.append_column("machine", machine)
    texts = [field.name for field in table.schema if field.type == pa.string()]
    frame: pd.DataFrame = table.to_pandas(categories=[name for name in texts if name not in TEXTS_OF_THEIR_OWN])
    frame = frame.drop_duplicates("trial_id")
    ordered = frame.sort_values("trial_id").sort_values("started_at", ascending=False, kind="stable")
    return ordered.reset_index(drop=True)


# Studies


def _pairs(frame: pd.DataFrame) -> tuple[Places, Places]:
    """Lines of the baselines and of the challengers that `core.answer.study.study` pairs.

    Of those of one size the last counts: what was cut off comes first, then the oldest run.
    """
    key = pd.DataFrame({"run": frame["run_id"], "accelerator": frame["device_kind"] != "cpu", "id": frame["trial_id"]})
    key = key.sort_values(["run", "id"])
    key = key[key.groupby("run", sort=False).cumcount() < MAX_CONTENDERS]
    order = key.sort_values(["run", "accelerator"], kind="stable").index.to_numpy()
    runs = key["run"].loc[order].to_numpy()
    first, second = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    for apart in range(1, min(MAX_CONTENDERS, len(order))):
        same = np.flatnonzero(runs[apart:] == runs[:-apart])
        first.append(same)
        second.append(same + apart)
    low, high = np.concatenate(first), np.concatenate(second)
    by_run = np.lexsort((high, low))
    low, high = order[low[by_run]], order[high[by_run]]
    by_age = frame["started_at"].to_numpy()[low].argsort(kind="stable")
    low, high = low[by_age], high[by_age]
    cut_off = frame["outcome"].isin(CUT_OFF).to_numpy()
    whole_last = (~(cut_off[low] | cut_off[high])).argsort(kind="stable")
    return low[whole_last], high[whole_last]


def _along(
    frame: pd.DataFrame, columns: Mapping[str, Texts], pairs: tuple[Places, Places], axis: str, least: int
) -> list[StudyLine]:
    """Studies along an axis: pairs that agree in all else, the newest of each size."""
    sized = frame[axis].to_numpy()[pairs[0]] != 0
    base, other = (lines[sized] for lines in pairs)
    group = pd.DataFrame({"size": frame[axis].to_numpy()[base], "baseline": base, "challenger": other})
    shared, devices = comparable.along(comparable.STUDY, axis), comparable.DEVICE
    keys = [
        *(_codes(frame[name])[base] for name in (*shared, *devices)),
        *(_codes(frame[name])[other] for name in devices),
    ]
    group["study"] = group.groupby(keys, sort=False).ngroup()
    newest = group.drop_duplicates(["study", "size"], keep="last").sort_values(["study", "size"])
    counts = newest.groupby("study")["size"].transform("size").to_numpy()
    shown = newest[counts >= least]
    if shown.empty:
        return []
    starts = np.flatnonzero(shown["study"].diff().to_numpy() != 0)
    first = zip(*(light(frame, shown[side].to_numpy()[starts]) for side in ("baseline", "challenger")), strict=True)
    split = (np.split(shown[name].to_numpy(), starts[1:]) for name in ("size", "baseline", "challenger"))
    return [_line(columns, axis, *study_of) for study_of in zip(first, *split, strict=True)]


def _codes(column: pd.Series) -> npt.NDArray[Any]:
    """The column in a form that groups fast."""
    return column.cat.codes.to_numpy() if isinstance(column.dtype, pd.CategoricalDtype) else column.to_numpy()


def _line(
    columns: Mapping[str, Texts], axis: str, first: tuple[Trial, Trial], sizes: Numbers, *places: Places
) -> StudyLine:
    names = [study.name(trial, set(columns["threads"][rows])) for trial, rows in zip(first, places, strict=True)]
    return StudyLine(
        id=study.identity(first, axis),
        axis=axis,
        baseline=first[0].contender,
        challenger=first[1].contender,
        sizes=tuple(map(float, sizes)),
        run_ids=tuple(columns["run_id"][places[0]]),
        trial_ids=tuple(columns["trial_id"][np.column_stack(places).ravel()]),
        dataset=first[0].dataset,
        model=first[0].model,
        training=first[0].training,
        source_hash=first[0].source_hash,
        machine=columns["machine"][places[0][0]],
        baseline_name=names[0],
        challenger_name=names[1],
        newest=max(columns["started_at"][places[0]]),
        protocol_version=first[0].protocol_version,
    )


def light(frame: pd.DataFrame, places: Places) -> list[Trial]:
    """Lines as rows without their lists, for whatever needs none of them."""
    columns = {name: np.asarray(frame[name].array[places]).tolist() for name in SCALARS}
    optional = [c.name for c in COLUMNS if c.default is None]
    for name in optional:
        columns[name] = [None if value != value else value for value in columns[name]]
    return [Trial(**dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]
