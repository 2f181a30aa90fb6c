"""Every stored trial in one light line, and the studies among them: for stores of fifty thousand trials and more.

Scalars as they are stored, and of the lists of blocks what a list of trials shows: medians, noise, how many. Blocks are
read for that, file by file, and dropped; whole rows are read by whoever opens one. Nothing here estimates or draws.
"""

import functools
import itertools
from collections import namedtuple
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from core.answer.run import busy
from core.answer.study import study
from core.answer.study.study import Study
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
    columns = (np.asarray(frame[name].array).tolist() for name in study.COLUMNS)
    lines = cast(Iterable[Trial], map(Line._make, zip(*columns, strict=True)))
    return [_line(found) for found in study.studies(lines, axis=axis, least=least)]


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


Line = namedtuple("Line", study.COLUMNS)  # type: ignore[misc]  # its fields are those of the schema
"""A light line of a row, with what studies are grouped by."""


def _line(of: Study) -> StudyLine:
    baselines, challengers = zip(*of.runs, strict=True)
    first, other = of.runs[0]
    return StudyLine(
        id=of.id,
        axis=of.axis,
        baseline=of.baseline,
        challenger=of.challenger,
        sizes=of.sizes,
        run_ids=tuple(row.run_id for row in baselines),
        trial_ids=tuple(row.trial_id for row in itertools.chain.from_iterable(of.runs)),
        dataset=first.dataset,
        model=first.model,
        training=first.training,
        source_hash=first.source_hash,
        machine=f"{first.cpu_name} ({first.machine_id[:6]})",
        baseline_name=study.name(first, {row.threads for row in baselines}),
        challenger_name=study.name(other, {row.threads for row in challengers}),
        newest=of.newest,
        protocol_version=first.protocol_version,
    )
