"""The gallery's lists: every stored trial in one light line, the studies among them, and the filters over both.

Designed for more than fifty thousand trials: blocks are read file by file for medians and noise, then dropped. This
module neither estimates nor plots.
"""

import functools
import itertools
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ... import units
from ...question.lanes import DEVICE_KINDS
from ...results import index
from ...results.exchange import CONTRIBUTED
from ...results.index import FILE, FolderIndex, Skipped, folder_index
from ...results.parquet import read_piece
from ...results.schema import SCHEMA, TRIAL_COLUMNS, Trial
from ...results.store import CUT_OFF, Store
from .. import contribution, interference, study
from ..contribution import CONFIRMED, UNCONFIRMED
from ..judgement import DECIDED, Outcome
from ..study import Study
from . import trust
from .trust import Level

if TYPE_CHECKING:
    import pandas as pd

SCALARS = tuple(c.name for c in TRIAL_COLUMNS if not pa.types.is_list(c.metadata["type"]) and c.name != "predictions")
"""Columns of a row that are copied unchanged."""

LISTS = ("block_steps", "block_begin_ns", "block_end_ns", "block_load", "block_steal", "warmup_steps", "threads_tried")
"""Columns that are read to derive values, then dropped."""

BLOCK_SUMMARY_SCHEMA = pa.schema(
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
"""Schema of the summary of a row's blocks."""

MOST_TRIALS = 100_000
"""Maximum lines of a store; they are in memory and are computed again when a row is added."""

UNIQUE_TEXTS = ("trial_id", "run_id", "started_at", "message")
"""Text columns whose values are almost unique; all others are stored as categories."""

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class Overview:
    """One line per stored trial (see `load_overview`), and the files that could not be read.

    The first page reads only `table`: the first use of `frame` imports pandas, which takes a third of a second. `newer`
    are files of a newer version, of which the known columns were read. `left_out` is the number of rows beyond
    `MOST_TRIALS`, in older files.
    """

    table: pa.Table
    skipped: tuple[Skipped, ...]
    newer: tuple[str, ...]
    left_out: int = 0

    @functools.cached_property
    def frame(self) -> "pd.DataFrame":
        """The lines as a data frame, in which dictionaries are categories."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    def list_lines(
        self, columns: Sequence[str], where: pc.Expression, equal: Mapping[str, object] | None = None
    ) -> list[Any]:
        """Return some columns of the lines that satisfy a condition and have these values, as named tuples."""
        for name, value in (equal or {}).items():
            where &= pc.field(name) == value
        return _name_columns(self.table.filter(where), columns)


@dataclass(frozen=True, kw_only=True)
class StudyLine:
    """A study as a line of a list; `core.answer.study.Study` with the same id has its rows.

    Attributes:
        sizes: values of its runs on the axis, ascending, each with its run in `run_ids`.
        trial_ids: its rows, baseline and challenger of each size in turn.
        baseline_name: display name of the baseline, as in the answer of the study; `baseline` is its written form.
        newest: start time of its newest run, ISO 8601.
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


def load_overview(stores: Sequence[tuple[Store, str]]) -> Overview:
    """Return one line per trial of some stores, without duplicates, newest run first, and the unreadable files.

    Of a store with more than `MOST_TRIALS` trials, the newest files are read; rows of the others can be found by name.

    The columns are those of `core.results.schema.Trial` in `SCALARS`, and

    - `step_s`: median seconds per step; NaN if nothing was timed,
    - `noise`: interquartile range over median of the blocks' step times; NaN below 2 blocks,
    - `spread90`: 90th percentile of the step times over their median; NaN below `busy.SPREAD_BLOCKS` blocks,
    - `pairs`: number of timed blocks,
    - `warmed`: whether there is a warm-up block,
    - `load_max`, `steal_max`: maximum over the blocks; NaN if nothing was timed,
    - `threads_tried_count`: number of thread counts that were tried,
    - `machine`: display name of the machine,
    - `source`: the label of the store, "imported", or `UNCONFIRMED` or `CONFIRMED` of contributed rows.

    Args:
        stores: stores with a label for their measurements; a trial in several stores counts for the first one.

    Raises:
        StoreError: a folder cannot be read.
    """
    indexes = [(_open_index(store).now(), source) for store, source in stores]
    limited = [(store, known) for (store, _), (known, _) in zip(stores, indexes, strict=True) if known.is_partial]
    tables = [_with_source(_drop_copies(known.table.drop_columns([FILE])), source) for known, source in indexes]
    return Overview(
        table=order_lines(_mark_contributions(pa.concat_tables([_with_source(_empty_table(), ""), *tables]))),
        skipped=tuple(entry for known, _ in indexes for entry in known.skipped),
        newer=tuple(name for known, _ in indexes for name in known.newer),
        left_out=sum(max(0, index.count_rows(store.folder) - known.table.num_rows) for store, known in limited),
    )


def _open_index(store: Store) -> FolderIndex:
    """Return the lines of a store's newest files."""
    return folder_index(store.folder, _light, _empty_table, MOST_TRIALS)


def find_study_lines(table: pa.Table, *, axis: str | None = None, least: int = 2) -> list[StudyLine]:
    """Return the studies that `core.answer.study.studies` finds in these lines, with the same ids and order."""
    lines = cast(Iterable[Trial], _name_columns(table, study.COLUMNS))
    return [_study_line(found) for found in study.studies(lines, axis=axis, least=least)]


def _name_columns(table: pa.Table, names: Sequence[str]) -> list[Any]:
    """Return lines as named tuples of these columns."""
    line: Any = namedtuple("line", names)  # type: ignore[misc]  # its fields are columns of the schema
    return list(map(line._make, zip(*(_list_values(table[name]) for name in names), strict=True)))


def _list_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column as Python objects, by NumPy: `to_pylist` makes a scalar of Arrow for each first."""
    values = column.combine_chunks()
    if values.null_count:
        return list(values.to_pylist())
    if pa.types.is_dictionary(values.type):
        return list(np.array(values.dictionary.to_pylist(), dtype=object)[values.indices.to_numpy()])
    return list(values.to_numpy(zero_copy_only=False).tolist())


# One line per trial


@functools.cache
def _empty_table() -> pa.Table:
    return pa.schema([*(SCHEMA.field(name) for name in SCALARS), *BLOCK_SUMMARY_SCHEMA]).empty_table()


def _light(file: Path) -> tuple[int, pa.Table]:
    """Return the lines of one file; raises as `read_piece` does."""
    piece = read_piece(file, columns={*SCALARS, *LISTS})
    lists = {name: piece.table[name].combine_chunks() for name in LISTS}
    known = {name: piece.table[name] for name in SCALARS} | _summarize_blocks(lists)
    return piece.version, pa.table(known, schema=_empty_table().schema)


def _summarize_blocks(lists: dict[str, pa.ListArray]) -> dict[str, pa.Array]:
    steps, begin, end = (_values(lists[name]) for name in ("block_steps", "block_begin_ns", "block_end_ns"))
    counts = _lengths(lists["block_steps"])
    times = _Ragged((end - begin) / 1e9 / steps, counts)
    median = times.quantile(0.5, at_least=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = (times.quantile(0.75, at_least=2) - times.quantile(0.25, at_least=2)) / median
        spread = times.quantile(0.9, at_least=interference.SPREAD_BLOCKS) / median
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
    return {name: pa.array(values, BLOCK_SUMMARY_SCHEMA.field(name).type) for name, values in found.items()}


class _Ragged:
    """Sorted lists of different lengths, whose quantiles are computed together.

    Args:
        values: values of all lists, concatenated.
        counts: length of each list.
    """

    def __init__(self, values: npt.NDArray[Any], counts: Places) -> None:
        place = np.repeat(np.arange(len(counts)), counts)
        self._sorted = values[np.lexsort((values, place))].astype(float)
        self._counts, self._first = counts, np.cumsum(counts) - counts

    def quantile(self, share: float, *, at_least: int) -> Numbers:
        """Return the quantile of each list, with linear interpolation.

        The result is NaN for a list with fewer values than `at_least`.
        """
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


def _mark_contributions(table: pa.Table) -> pa.Table:
    """Mark contributed rows as confirmed if another machine with the same card agrees; imported rows do not confirm."""
    contributed = pc.starts_with(table["origin"], CONTRIBUTED)
    if not pc.any(contributed).as_py():
        return table
    cards = pc.is_in(table["device_name"], table.filter(contributed)["device_name"].unique())
    vouching = pc.or_(contributed, pc.not_equal(table["source"], "imported"))
    columns = [*contribution.CONFIRMED_BY, "trial_id", "machine_id", "step_s", "noise", "pairs"]
    lines = table.filter(pc.and_(vouching, cards)).select(columns).to_pylist()
    found = pa.array(sorted(contribution.find_confirmed(lines)), pa.string())
    marks = pc.if_else(pc.is_in(table["trial_id"], found), CONFIRMED, UNCONFIRMED)
    source = pc.if_else(contributed, marks, table["source"])
    return table.set_column(table.schema.get_field_index("source"), "source", source)


def _drop_copies(table: pa.Table) -> pa.Table:
    """Return the most complete line of each trial, as `core.results.store.keep_most_complete` does."""
    if pc.count_distinct(table["trial_id"]).as_py() == table.num_rows:
        return table
    whole = pc.invert(pc.is_in(table["outcome"], pa.array(list(CUT_OFF))))
    rank = pa.table({"id": table["trial_id"], "whole": whole.cast(pa.int8()), "steps": table["steps"]})
    places = pa.array(np.arange(table.num_rows))
    order = rank.append_column("place", places).sort_by(
        [("whole", "descending"), ("steps", "descending"), ("place", "ascending")]
    )
    return table.take(pa.array(sorted(_first_places(order["id"], order["place"]))))


def _first_places(names: pa.ChunkedArray, places: pa.ChunkedArray) -> list[int]:
    """Return the first place of each name, in the order of first occurrence."""
    found: dict[str, int] = {}
    for name, place in zip(names.to_pylist(), places.to_pylist(), strict=True):
        found.setdefault(name, place)
    return list(found.values())


def order_lines(table: pa.Table) -> pa.Table:
    """Return rows or lines for a list: with display names of machines, without duplicates, newest run first.

    A text column whose values repeat is stored as a dictionary.
    """
    machine = pc.binary_join_element_wise(
        table["cpu_name"], " (", pc.utf8_slice_codeunits(table["machine_id"], 0, 6), ")", ""
    )
    table = table.append_column("machine", machine)
    names = table["trial_id"]
    if pc.count_distinct(names).as_py() < table.num_rows:
        table = table.take(pa.array(_first_places(names, pa.chunked_array([np.arange(table.num_rows)]))))
    table = table.sort_by([("started_at", "descending"), ("trial_id", "ascending")])
    for place, field in enumerate(table.schema):
        if field.type == pa.string() and field.name not in UNIQUE_TEXTS:
            table = table.set_column(place, field.name, table[field.name].combine_chunks().dictionary_encode())
    return table


# Studies


def _study_line(of: Study) -> StudyLine:
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
        baseline_name=study.study_contender_label(first, {row.threads for row in baselines}),
        challenger_name=study.study_contender_label(other, {row.threads for row in challengers}),
        newest=of.newest,
        protocol_version=first.protocol_version,
    )


FILTERS: dict[str, str] = {
    "in_machine": "machine",
    "in_kind": "device_kind",
    "in_device": "device_name",
    "in_dataset": "dataset",
    "in_model": "model",
    "in_training": "training",
    "in_protocol": "protocol_version",
    "in_trust": "trust",
    "in_source": "source",
    "in_outcome": "outcome",
}
"""Name of a filter in the link → column of the table."""

MACHINE_LINE_COLUMNS = (
    *("machine", "cores", "memory_bytes", "device_kind", "device_name", "run_id", "trust", "system"),
    *("torch_version", "source", "started_at"),
)
"""Columns that a line about a machine needs."""

MAX_MACHINE_LINES = 200
"""Maximum number of machines with a line; a line takes some milliseconds."""

ANSWERS: dict[Outcome, str] = {
    "crossing": "Crossover",
    "gpu_always": "Second device always",
    "cpu_always": "First device always",
    "several": "Several crossovers",
    "undecided": "Undecided",
    "not_measurable": "Not measurable",
}
"""Answers of a study, for people; the second device is the GPU where there is one."""

MAX_NAMES_LISTED = 3
"""Maximum names in one cell; the others are counted."""

LinePlaces = Sequence[int] | npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class GalleryData:
    """The contents of the stores, with derived data.

    Attributes:
        trials: lines of `core.answer.gallery.overview`, with `trust` (the level) and `mark` (level and count).
        studies: every study, those with the most sizes first.
        marks: trust mark of each study, where a check passes if it passes for all rows; `levels` has the level.
        row_of: index in `trials` of each row of each study; `study_of` is the index of that study in `studies`.
        options: options of each filter, ascending.
    """

    trials: "pd.DataFrame"
    studies: tuple[StudyLine, ...]
    marks: tuple[str, ...]
    levels: tuple[Level, ...]
    row_of: npt.NDArray[np.intp]
    study_of: npt.NDArray[np.intp]
    options: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class FilterResult:
    """Result of filters, as indices into the trials and studies of `GalleryData`, ascending."""

    trials: npt.NDArray[np.int32]
    studies: tuple[int, ...]


def build_gallery_data(trials: "pd.DataFrame", studies: Sequence[StudyLine]) -> GalleryData:
    """Derive the data of the gallery from the table of all trials and its studies."""
    import pandas as pd  # see Overview

    met = trust.check_matrix(trials) if len(trials) else np.ones((0, len(trust.CHECKS)), dtype=bool)
    known = trials.assign(trust=pd.Categorical(trust.mark_levels(met)), mark=pd.Categorical(trust.mark_labels(met)))
    known["protocol_version"] = pd.Categorical(known["protocol_version"].astype(str))
    places = {name: place for place, name in enumerate(known["trial_id"])}
    rows = [np.array([places[name] for name in line.trial_ids], dtype=np.intp) for line in studies]
    together = [met[group].all(axis=0) for group in rows]
    of_studies = np.array(together, dtype=bool).reshape(-1, len(trust.CHECKS))
    return GalleryData(
        trials=known,
        studies=tuple(studies),
        marks=tuple(trust.mark_labels(of_studies)),
        levels=tuple(trust.mark_levels(of_studies).tolist()),
        row_of=np.concatenate([np.zeros(0, dtype=np.intp), *rows]),
        study_of=np.repeat(np.arange(len(rows)), list(map(len, rows))),
        options={name: tuple(sorted(set(map(str, known[column].unique())))) for name, column in FILTERS.items()},
    )


def apply_filters(data: GalleryData, chosen: Mapping[str, Sequence[str]]) -> FilterResult:
    """Return the trials and studies that match the chosen values of each filter; a filter without any matches all.

    A study matches if one of its rows matches, so that filtering by a GPU finds its studies. For the quality filter,
    the mark of the study itself counts.
    """
    kept = np.ones(len(data.trials), dtype=bool)
    for name, values in chosen.items():
        if values and name in FILTERS and name != "in_trust":
            kept &= data.trials[FILTERS[name]].isin(list(values)).to_numpy()
    present = np.unique(data.study_of[kept[data.row_of]]).tolist()
    levels = set(chosen.get("in_trust", ())) or set(trust.LEVELS)
    if chosen.get("in_trust"):
        kept &= data.trials["trust"].isin(list(levels)).to_numpy()
    return FilterResult(
        trials=np.flatnonzero(kept).astype(np.int32),
        studies=tuple(place for place in present if data.levels[place] in levels),
    )


def select_studies(
    data: GalleryData, places: Sequence[int], answers: Sequence[Outcome | None], outcomes: Sequence[str] = ()
) -> tuple[int, ...]:
    """Return the studies with a wanted answer: decided ones first, then a CPU against an accelerator, then by trust.

    Of a CPU against an accelerator, a crossing comes before other answers, and the default loop before variants.
    Studies that are not measurable are left out unless requested, because runs may differ in one size by chance.

    Args:
        data: data of the gallery, with the trust level of each study.
        places: indices of studies.
        answers: answer of every study; None if its rows cannot be read or compared, or were not read yet.
        outcomes: wanted outcomes; empty for all except `not_measurable`.
    """
    unasked = {None, *ANSWERS} - {"not_measurable"}
    shown = [place for place in places if answers[place] in (set(outcomes) or unasked)]
    levels = list(trust.LEVELS)

    def rank(at: int) -> tuple[object, ...]:
        pair = (data.studies[at].baseline, data.studies[at].challenger)
        if [name.startswith("cpu") for name in pair] == [True, False]:
            group = 2 * (answers[at] != "crossing") + any("+" in name for name in pair)
        else:
            group = 4
        return answers[at] not in DECIDED, group, levels.index(data.levels[at]), at

    return tuple(sorted(shown, key=rank))


def gallery_summary(data: GalleryData) -> str:
    """Summarize the gallery for people: trials, studies, machines, and the kinds of devices."""
    if not len(data.trials):
        return "Browse and compare results of real machines."
    machines, kinds = data.trials["machine_id"].nunique(), data.trials["device_kind"].astype(str).unique()
    accelerators = sorted(DEVICE_KINDS[kind].title for kind in {*kinds} - {"cpu"} if kind in DEVICE_KINDS)
    *others, last = ["CPUs", *(f"{title.removeprefix('another ')}s" for title in accelerators)]
    devices = f"{', '.join(others)} and {last}" if others else "CPUs only"
    parts = [
        units.format_quantity(len(data.trials), "trial"),
        units.format_quantity(len(data.studies), "study", "studies"),
    ]
    return f"{parts[0]} in {parts[1]} from {units.format_quantity(machines, 'machine')}; {devices}."


def select_lines(data: GalleryData, places: LinePlaces, columns: Sequence[str]) -> "pd.DataFrame":
    """Return some columns of some lines."""
    return data.trials[list(columns)].iloc[np.asarray(places, dtype=np.intp)]


def machine_table(data: GalleryData, places: LinePlaces) -> list[dict[str, Any]]:
    """Return one line per machine, ordered by number of trials, with its facts, devices and measurements.

    At most `MAX_MACHINE_LINES` machines are returned.
    """
    rows = select_lines(data, places, MACHINE_LINE_COLUMNS)
    counts = rows["machine"].astype(str).value_counts()
    first = sorted(counts.index, key=lambda name: (-counts[name], name))[:MAX_MACHINE_LINES]
    some = rows[rows["machine"].isin(first)]
    known = {str(name): group for name, group in some.groupby("machine", observed=True, sort=False)}
    return [_machine(name, known[name]) for name in first]


def _machine(name: str, rows: "pd.DataFrame") -> dict[str, Any]:
    first = rows.iloc[0]
    accelerators = rows.loc[(rows["device_kind"] != "cpu").to_numpy(), "device_name"]
    return {
        "Machine": name,
        "Processor threads": int(first["cores"]),
        "Memory": units.format_memory(float(first["memory_bytes"])),
        "Accelerators": frequent_names(accelerators) or "none",
        "Trials": len(rows),
        "Runs": int(rows["run_id"].nunique()),
        "Fully trusted": units.format_share(float((rows["trust"] == "full").mean())),
        "System": str(first["system"]),
        "torch": frequent_names(rows["torch_version"]),
        "Source": frequent_names(rows["source"]),
        "Newest (UTC)": str(max(rows["started_at"]))[:10],
    }


def frequent_names(values: "pd.Series[Any]") -> str:
    """Return the names that occur, the most frequent first; those beyond `MAX_NAMES_LISTED` are counted."""
    names = [str(name) for name, count in values.value_counts().items() if count and name != ""]
    return ", ".join(names[:MAX_NAMES_LISTED]) + (
        f" and {len(names) - MAX_NAMES_LISTED} more" if len(names) > MAX_NAMES_LISTED else ""
    )
