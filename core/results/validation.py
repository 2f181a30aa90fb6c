"""Validation of rows before any of them is used: first single columns, then combinations.

All values of a row that are used later are checked here: devices, dates, variants, counts that are multiplied, lists
that belong together. So later code meets no text that cannot be parsed, and no excessive number. An error names the
column and the value. Only the columns of the given table are checked, because a query may decode a few. Nothing here
opens a file.
"""

import datetime
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ForeignFile, InvalidValue
from ..question import catalog, custom, lanes
from ..question.experiment import MAX_CONTENDERS, Contender
from ..question.fields import DATA_PATHS, DTYPES, FIELDS, TRAINING
from ..question.lanes import DEVICE_KINDS, DEVICES, NUMBERED, SINGLE
from .schema import OUTCOMES, TRIAL_COLUMNS

# Allowed values of a row


MAX_LIST = 1_000_000
"""Maximum entries of a list of blocks: the longest budget, a day, has 864,000 blocks of a tenth of a second."""

SHORT_LIST = 1_000
"""Limit of the entries of any other list; a loss curve of Crossover has 200 at most, a step breakdown 50."""

MAX_TEXT_BYTES = 500
"""Limit of the bytes of a text; the longest of Crossover are names of processors and drivers."""

MAX_CLASSES = 256
"""Maximum classes of a data set, because a prediction is one byte."""

MAX_ITEMS = 1_000_000
"""Maximum test items, because arrays computed from their counts have one entry per item."""

LARGEST = 2**60
"""Upper bound of counts, times and sizes, so that values computed from them do not overflow."""

YEARS = (1970, 2199)
"""First and last year of a date: a clock that was never set starts in the first, and date tables end after the last."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """Required form of a text.

    Attributes:
        pattern: pattern of the complete text.
        meaning: description after "which is not".
    """

    pattern: str
    meaning: str


WORD = Form(pattern=r"[a-z0-9][a-z0-9_.-]{0,63}", meaning="a name of small letters and digits")
_NAME = Form(pattern=r"[0-9A-Za-z_.-]{1,64}", meaning="a name of letters and digits")

FORMS: Mapping[str, Form] = {
    "run_id": Form(pattern=r"[0-9a-f]{12}", meaning="a name of 12 hexadecimal digits"),
    "trial_id": Form(
        pattern=rf"[0-9a-f]{{12}}-[0-{MAX_CONTENDERS - 1}]",
        meaning=f"the name of its run with its place in it, 0 to {MAX_CONTENDERS - 1}",
    ),
    "experiment_id": Form(pattern=r"[0-9a-f]{1,64}", meaning="a name of hexadecimal digits"),
    "machine_id": _NAME,
    "dataset": WORD,
    "dataset_hash": _NAME,
    "training": Form(pattern=rf"({custom.NAME.pattern})?", meaning="a Python file with a function"),
    "source_hash": Form(pattern=rf"({custom.SOURCE.pattern})?", meaning="16 hexadecimal digits"),
    "model": WORD,
    "device": Form(
        pattern=rf"{'|'.join(SINGLE)}|({'|'.join(NUMBERED)}):[0-9]{{1,2}}",
        meaning=DEVICES,
    ),
    "contender": Form(
        pattern=r"[a-z]{1,8}(:[0-9]{1,2})?(@[0-9]{1,4})?([+][0-9a-z_]{1,32}){0,8}", meaning="a device with its variant"
    ),
    "started_at": Form(
        pattern=r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.]\d{1,6})?(Z|[+]00:00)", meaning="a time in ISO 8601 and UTC"
    ),
}
"""Forms of texts that are parsed, or become part of a link or a file name.

The name of a row includes its position in the run, and one row per name counts. So a run has at most as many rows as
contenders.
"""

WORDS: Mapping[str, Collection[str]] = {
    "outcome": tuple(OUTCOMES),
    "device_kind": DEVICE_KINDS,
    "data_path": (*DATA_PATHS, custom.CUSTOM),
    "dtype": tuple(DTYPES),
    **lanes.LANE_WORDS,
}
"""Columns whose text is one of a few words."""

MAY_BE_NEWER = frozenset(WORDS) - {"outcome", "device_kind"}
"""Columns whose words a newer version may extend; for such a version any name is valid."""

LONG_TEXTS = {"message": 2_000}
"""Maximum bytes of longer texts: the reason of an end is a sentence."""

ANY_NUMBER = ("loss", "lane_loss", "reference_loss", "nudged_loss", "own_first_loss", "own_evaluation")
"""Columns that may be NaN or infinite: losses and a custom script's own values. Only these may be negative."""

AT_LEAST_ONE = (
    *("block_steps", "warmup_steps", "steps_per_epoch", "samples", "epochs"),
    *("steps_per_call", "cores", "cores_usable", "protocol_version"),
)

AT_MOST: Mapping[str, float] = {
    **{name: FIELDS[name].high for name in (*TRAINING, "budget_s") if FIELDS[name].is_number},
    "test_samples": MAX_ITEMS,
    "steps_per_epoch": FIELDS["samples"].high,
    "steps_per_call": lanes.MAX_STEPS_PER_CALL,
    "micro_batch": lanes.MAX_MICRO_BATCH,
    **dict.fromkeys(("cores", "cores_usable", "threads", "threads_tried"), 2**16),
    "protocol_version": 10_000,
    "block_use_before": 1,
    "block_other_use": 1,
    "confusion": MAX_ITEMS,
    "train_accuracy": 1,
    "validation_accuracy": 1,
}
"""Highest value of numbers that are multiplied, used as a count, or shown as a share; settings have separate ranges."""

OF_CARDS = tuple(
    f"block_{entry}"
    for entry in (
        *("clock_before_mhz", "clock_mhz", "power_w", "temperature_c"),
        *("throttle", "throttled_s", "use_before", "other_processes"),
    )
)
"""Readings of a GPU around each block; empty if it cannot be read."""

_BLOCK_LISTS = tuple(c.name for c in TRIAL_COLUMNS if c.name.startswith("block_") and c.name not in OF_CARDS)
EQUALLY_LONG = (
    _BLOCK_LISTS,
    ("warmup_steps", "warmup_s"),
    ("loss_step", "loss"),
    ("threads_tried", "threads_tried_step_s"),
)
"""Lists whose entries belong together."""

UNCOUNTED = ("block_switches", "block_waiting", "block_other_use", "block_round")
"""Lists of `EQUALLY_LONG` that are empty if the system does not count them, or if a run has no rounds."""

LONGEST: Mapping[str, int] = {
    **dict.fromkeys((*_BLOCK_LISTS, *OF_CARDS), MAX_LIST),
    "confusion": MAX_CLASSES**2,
}


# Checks


SHORT_TABLE_ROWS = 500
"""Maximum rows of a short table, such as a row group or a file from one measurement."""

_QUOTED = 60
"""Maximum quoted characters of a value."""

_LANE = tuple(lanes.FIELDS)


def validate_rows(table: pa.Table, *, newer: bool = False) -> None:
    """Check that a measurement can have written these rows.

    Args:
        table: some columns of `core.results.schema.SCHEMA`.
        newer: whether a newer version wrote them, which may use unknown words.

    Raises:
        ForeignFile: a column is invalid; the message names the first one.
    """
    for field in table.schema:
        _require_column(field, table[field.name])
    present = set(table.column_names)
    for name in (name for name in FORMS if name in present):
        _require_form(name, table[name], FORMS[name])
    for name in (name for name in WORDS if name in present):
        _require_words(name, table[name], newer=newer)
    for names in EQUALLY_LONG:
        _require_equal_lengths(table, [name for name in names if name in present])
    for columns, check in TOGETHER.items():
        if present.issuperset(columns):
            check(table, newer)


# One column


def _require_column(field: pa.Field, column: pa.ChunkedArray) -> None:
    kind = field.type
    if column.null_count == len(column):
        return
    if pa.types.is_list(kind):
        most = LONGEST.get(field.name, SHORT_LIST)
        if (pc.max(pc.list_value_length(column)).as_py() or 0) > most:
            raise ForeignFile(f"its list {field.name} has more than {most:,} entries")
        column, kind = pc.list_flatten(column), kind.value_type
        if column.null_count:
            raise ForeignFile(f"its list {field.name} has an entry without a value")
        if not len(column):
            return
    if pa.types.is_string(kind):
        most = LONG_TEXTS.get(field.name, MAX_TEXT_BYTES)
        if (pc.max(pc.binary_length(column)).as_py() or 0) > most:
            raise ForeignFile(f"its column {field.name} has a text of more than {most:,} bytes")
    elif (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and field.name not in ANY_NUMBER:
        _require_range(field.name, column)


def _require_range(name: str, column: pa.ChunkedArray) -> None:
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise ForeignFile(f"its column {name} has a value that is not a finite number")
    ends = pc.min_max(column).as_py()
    low, high = ends["min"] or 0, ends["max"] or 0
    if low < 0:
        raise ForeignFile(f"its column {name} has a negative value")
    if name in AT_LEAST_ONE and ends["min"] is not None and low < 1:
        raise ForeignFile(f"its column {name} has a value below 1")
    if high > LARGEST:
        raise ForeignFile(f"its column {name} has a value beyond all that is measured")
    if high > AT_MOST.get(name, math.inf):
        raise ForeignFile(f"its column {name} has a value above {AT_MOST[name]:,}")


def _require_form(name: str, column: pa.ChunkedArray, form: Form) -> None:
    fits = re.compile(form.pattern, re.ASCII).fullmatch
    for text in occurring(column):
        if not fits(text):
            raise _wrong(name, text, form.meaning)


def _require_words(name: str, column: pa.ChunkedArray, *, newer: bool) -> None:
    if newer and name in MAY_BE_NEWER:
        _require_form(name, column, WORD)
    elif not set(WORDS[name]).issuperset(occurring(column)):
        raise ForeignFile(f"its column {name} has a value other than {', '.join(WORDS[name])}")


def _wrong(name: str, value: object, meaning: str) -> ForeignFile:
    return ForeignFile(f"its column {name} says {ascii(value)[:_QUOTED]}, which is not {meaning}")


# Columns that belong together


def _require_equal_lengths(table: pa.Table, names: Collection[str]) -> None:
    lengths = [pc.list_value_length(table[name]) for name in names]
    for place, name in enumerate(names):
        if name in UNCOUNTED:
            lengths[place] = pc.if_else(pc.equal(lengths[place], 0), lengths[0], lengths[place])
    if any(pc.any(pc.not_equal(lengths[0], other)).as_py() for other in lengths[1:]):
        raise ForeignFile(f"its lists {', '.join(names)} are not equally long")


def _require_name_of_run(table: pa.Table, newer: bool) -> None:
    begins = pc.utf8_slice_codeunits(table["trial_id"], 0, 12)
    if not pc.all(pc.equal(begins, table["run_id"]), min_count=0).as_py():
        raise ForeignFile("its column trial_id has the name of another run")


def _require_dates(table: pa.Table, newer: bool) -> None:
    for text in occurring(table["started_at"]):
        try:
            found = datetime.datetime.fromisoformat(text)
        except ValueError:
            raise _wrong("started_at", text, "a date") from None
        if not YEARS[0] <= found.year <= YEARS[1]:
            raise _wrong("started_at", text, f"between the years {YEARS[0]} and {YEARS[1]}")


def _require_kinds(table: pa.Table, newer: bool) -> None:
    for device, kind in _distinct(table, ("device", "device_kind")):
        if device.partition(":")[0] != DEVICE_KINDS[kind].torch_type:
            raise _wrong("device_kind", kind, f"the kind of the device {device}")


def _require_contenders(table: pa.Table, newer: bool) -> None:
    """Check that each contender can be parsed, and that device, threads and variant agree with it."""
    if newer:
        return
    for written, device, threads, *lane in _distinct(table, CONTENDER):
        try:
            asked = Contender.parse(written)
        except InvalidValue:
            raise _wrong("contender", written, "a device with its threads and variant") from None
        columns = dict(zip(_LANE, lane, strict=True))
        if str(asked) != written or (asked.device, asked.lane.columns) != (device, columns):
            raise _wrong("contender", written, "equal to its columns device and lane")
        if asked.threads not in (threads, 0):
            raise _wrong("contender", written, f"equal to its column threads: {threads}")


def _require_clock(table: pa.Table, newer: bool) -> None:
    begin, end = (pc.list_flatten(table[name]) for name in _CLOCK)
    if pc.any(pc.less_equal(end, begin), min_count=0).as_py():
        raise ForeignFile("it has a block that does not end after it begins")


def _require_epochs(table: pa.Table, newer: bool) -> None:
    if pc.any(pc.greater(table["steps_per_epoch"], table["samples"]), min_count=0).as_py():
        raise ForeignFile("its column steps_per_epoch has more steps than there are samples")


def _require_counts(table: pa.Table, newer: bool) -> None:
    """Check that confusion counts form a square matrix of the data set's classes, and sum to the test items."""
    lengths = _lengths(table["confusion"])
    classes = np.sqrt(lengths).round().astype(np.int64)
    if (classes**2 != lengths).any():
        raise ForeignFile("its list confusion is not a square of classes")
    for name, facts in catalog.DATASETS.items() if not newer else ():
        tested = pc.equal(table["dataset"], name).to_numpy() & (lengths > 0)
        if (classes[tested] != len(facts.classes)).any():
            raise ForeignFile(f"its list confusion does not have the {len(facts.classes)} classes of {name}")
    items = _reduce_lists(np.add, pc.list_flatten(table["confusion"]).to_numpy(), lengths)
    if ((items != table["test_samples"].to_numpy()) & (lengths > 0)).any():
        raise ForeignFile("its list confusion does not count the test samples")


def _require_predictions(table: pa.Table, newer: bool) -> None:
    """Check that every test item has a prediction of an existing class, if there are predictions."""
    column = table["predictions"]
    items = pc.binary_length(column).to_numpy().astype(np.int64)
    tested, classes = table["test_samples"].to_numpy(), np.sqrt(_lengths(table["confusion"])).round()
    if ((items > 0) & (items != tested)).any():
        raise ForeignFile("its column predictions does not have one for each of the test samples")
    highest = _reduce_lists(np.maximum, np.frombuffer(b"".join(column.to_pylist()), np.uint8).astype(np.int64), items)
    if ((items > 0) & (highest >= classes)).any():
        raise ForeignFile("its column predictions names a class that does not exist")


_CLOCK = ("block_begin_ns", "block_end_ns")
CONTENDER = ("contender", "device", "threads", *_LANE)
TOGETHER: Mapping[tuple[str, ...], Callable[[pa.Table, bool], None]] = {
    ("trial_id", "run_id"): _require_name_of_run,
    ("started_at",): _require_dates,
    ("device", "device_kind"): _require_kinds,
    CONTENDER: _require_contenders,
    _CLOCK: _require_clock,
    ("steps_per_epoch", "samples"): _require_epochs,
    ("dataset", "confusion", "test_samples"): _require_counts,
    ("confusion", "predictions", "test_samples"): _require_predictions,
}
"""Checks of several columns together, by names of the columns."""


def occurring(column: pa.ChunkedArray) -> Collection[Any]:
    """Return every value of a column; short columns are not deduplicated, which is faster."""
    values: list[Any] = (column if len(column) <= SHORT_TABLE_ROWS else column.unique()).to_pylist()
    return values


def _distinct(table: pa.Table, names: Collection[str]) -> set[tuple[Any, ...]]:
    """Return the distinct combinations of values of some columns."""
    part = (
        table.select(names)
        if len(table) <= SHORT_TABLE_ROWS
        else table.select(names).group_by(list(names)).aggregate([])
    )
    return set(zip(*(part[name].to_pylist() for name in names), strict=True))


def _lengths(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.asarray(pc.list_value_length(column).to_numpy(), np.int64)


def _reduce_lists(
    reduce: np.ufunc, values: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Reduce concatenated lists to one number each; 0 for an empty one."""
    found = np.zeros(len(lengths), np.int64)
    some = lengths > 0
    if some.any():
        begins = (np.cumsum(lengths) - lengths)[some]
        found[some] = reduce.reduceat(values, begins)
    return found
