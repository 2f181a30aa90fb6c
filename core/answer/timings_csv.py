"""A user's own timings: the meaning of each column of a table, and the readings as evidence for a crossover.

Exports of benchmark programs are first converted to a table (`timing_exports`); `text_table` reads its cells.
"""

import dataclasses
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .. import units
from ..errors import ForeignFile, InvalidValue
from ..question.fields import SIZE_AXES
from . import crossover, interference, text_table
from .judgement import Basis, Crossover, Evidence
from .text_table import (
    MAX_TIMINGS_BYTES,
    UNITS,
    Mark,
    TextTable,
    find_unit_seconds,
    is_number,
    parse_duration,
    parse_positive_number,
)

SIZE, DEVICE_TITLE = "size", "device"

CRITERION_TITLE = "sample_measured_value"
"""Criterion's title for the time of all iterations of a sample."""

TIME_TITLES = (
    *("seconds", "time", "duration", "elapsed", "runtime", "latency", "total", "median", "mean", "average"),
    CRITERION_TITLE,
)
"""Titles of a column of times if each row names its device, best first; without a unit, times are in seconds."""

SECOND_BEST_TITLES = ("latency", "total", "median", "mean", "average")
"""Titles that name a time only if the table has a column of devices."""

UNIT_TITLES = ("unit", "units", "time_unit", "time unit")
ITERATION_TITLES = ("iterations", "iters", "loops", "iteration_count")
"""Titles of columns with the unit of each row's time, and with the number of iterations that a total time covers."""

REPEAT_TITLES = (
    "repeat",
    "repetition",
    "rep",
    "run",
    "run_id",
    "trial",
    "round",
    "seed",
    "iteration",
    "epoch",
    "step",
    "index",
)
"""Titles of columns that number the readings of one size and never distinguish configurations."""

SHORTEST_AXIS = 3
"""Minimum length of a column title that names the axis; `n` and `M` are too short."""

MAX_CONFIGURATIONS = 12
"""Maximum number of different values in a column that counts as a setting."""

MAX_READINGS = 200_000
MAX_SIZES = 1_000
MAX_DEVICES = 100
MAX_DEVICE_NAME = 100
"""Limits of a table of timings; no sweep reaches them."""

HOST_WORD = "cpu"
"""Word in the name of the baseline device."""

NEEDED_COLUMNS = "size, device and seconds, or size and a column of times for each device"

_UNIT = re.compile(rf"(?:(.*?)[\s_]*[\s_(\[])?({'|'.join(UNITS)})\s*[)\]]?", re.IGNORECASE)
_RATE = re.compile(
    r"(?:(?:(.*?)[\s_(\[]+)?([a-z]+)\s*(?:/\s*|[\s_]per[\s_])(?:s|secs?|seconds?)|(throughput|fps))\s*[)\]]?",
    re.IGNORECASE,
)
_WORK_RATE = re.compile(r"[kmgtp]?i?(?:flops?|bytes?|bits?|b)", re.IGNORECASE)
TimingReadings = dict[str, dict[float, list[float]]]
"""Device → size → seconds of each reading."""


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """The user's choice of columns; an empty attribute means that the table decides.

    Attributes:
        size: title of the column of sizes.
        time: title of the column of times.
        device: title of the column of devices.
        axis: name of the varied setting; a column with this title contains the sizes.
        unit: unit of times without a named unit, a key of `CELL_UNITS`.
    """

    size: str = ""
    time: str = ""
    device: str = ""
    axis: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        """Check the unit.

        Raises:
            InvalidValue: there is no such unit.
        """
        if self.unit:
            find_unit_seconds("unit", self.unit)

    @property
    def seconds(self) -> float:
        """Seconds of the unit of times without a named unit."""
        return find_unit_seconds("unit", self.unit) if self.unit else 1.0


@dataclass(frozen=True, kw_only=True)
class Timings:
    """The timings of a file.

    Attributes:
        axis: name of the varied setting, as in the table.
        evidence: timings of each size, ascending; a size that only one of the two devices has contains an obstacle.
        notes: one sentence for each unused column and each assumption.
    """

    devices: tuple[str, ...]
    baseline: str
    challenger: str
    axis: str
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...] = ()


class ColumnsUnclear(ForeignFile):
    """The first row of a table does not say which column is which."""


class RolesUnclear(InvalidValue):
    """The names of a table's devices do not show which one is the baseline."""

    def __init__(self, devices: Sequence[str]) -> None:
        self.devices = tuple(devices)
        unnamed = "" if len(devices) > 2 else f", because neither name contains {HOST_WORD}"
        super().__init__("devices", "not given", f"a baseline and a challenger out of {', '.join(devices)}{unnamed}")


@dataclass(frozen=True, kw_only=True)
class _Column:
    """One column of times.

    Attributes:
        title: title in the table, without the unit.
        unit_s: seconds of the unit.
        named: whether the table names the unit.
        counted: thing counted per second if the column contains rates; empty if it contains times.
        unit_at: index of the column with the unit of each row, or -1.
        iterations_at: index of the column with the number of iterations that a time covers, or -1.
    """

    at: int
    title: str
    unit_s: float = 1.0
    named: bool = False
    counted: str = ""
    unit_at: int = -1
    iterations_at: int = -1


@dataclass(kw_only=True)
class _Reader:
    """Collection of checked readings; lean, because a file may have many rows."""

    mark: Mark = ""
    readings: TimingReadings = field(default_factory=dict)
    sizes: set[float] = field(default_factory=set)
    count: int = 0

    def size(self, column: str, text: str, line: int) -> float:
        size = parse_positive_number(column, text, line, self.mark)
        self.sizes.add(size)
        if len(self.sizes) > MAX_SIZES:
            raise InvalidValue(SIZE, f"{MAX_SIZES + 1:,} different numbers", f"at most {MAX_SIZES:,} sizes")
        return size

    def add(self, device: str, size: float, column: _Column, cells: Sequence[str], line: int) -> None:
        if (by_size := self.readings.get(device)) is None:
            by_size = self.readings[_check_new_device(device, line, self.readings)] = {}
        by_size.setdefault(size, []).append(self._seconds(column, cells, line))
        self.count += 1

    def _seconds(self, column: _Column, cells: Sequence[str], line: int) -> float:
        text = cells[column.at].partition("±")[0]
        if (seconds := parse_duration(text)) is not None:
            return seconds
        value = parse_positive_number(column.title, text, line, self.mark)
        if column.counted:
            return 1 / value
        unit_s = column.unit_s
        if column.unit_at >= 0:
            unit_s = find_unit_seconds(f"unit in line {line}", cells[column.unit_at].strip())
        if column.iterations_at >= 0:
            value /= parse_positive_number("iterations", cells[column.iterations_at], line, self.mark)
        return value * unit_s


def read_timings(
    data: bytes, name: str, *, devices: tuple[str, str] | None = None, columns: TableColumns | None = None
) -> Timings:
    """Return the timings in a file.

    Args:
        data: bytes of the file: a table, possibly in Markdown, or the JSON export of a benchmark program.
        name: name of the file, for messages.
        devices: the two devices to compare, the baseline first. If only one of them has `cpu` in its name, it is always
            the baseline, because outcomes are named for it. If a table contains several configurations, the values of
            their columns follow the name of the device: "cuda adam".
        columns: choice of columns, where the table is unclear.

    Raises:
        ForeignFile: the file is not a table of these columns, or is too large.
        RolesUnclear: `devices` is not given, and the names do not show the baseline.
        InvalidValue: a value in the file is invalid.
    """
    columns = columns or TableColumns()
    if len(data) <= MAX_TIMINGS_BYTES:
        data = text_table.convert_export(data, name)
    table = TextTable(data, name)
    titles = [_clean_title(cell) for cell in table.header]
    lowered = [title.lower() for title in titles]
    times = _time_columns(table, titles, columns)
    if columns.device or columns.time or DEVICE_TITLE in lowered or any(_is_time_title(one) for one in times):
        return _long(table, titles, times, columns, devices)
    return _wide(table, titles, columns, devices)


def timings_crossover(timings: Timings, *, axis: str = "", basis: Basis = "as_given") -> Crossover:
    """Return the crossover of the two devices, marked if the readings spread as on a busy machine."""
    found = crossover.locate_crossover(
        timings.evidence,
        axis=axis or timings.axis,
        basis=basis,
        baseline=timings.baseline,
        challenger=timings.challenger,
    )
    return interference.mark_interference(
        found, interference.evidence_interference(timings.evidence, timings.baseline, timings.challenger)
    )


def _clean_title(cell: str) -> str:
    """Return a title without spaces around it, and without the parameter prefix of hyperfine and pytest-benchmark."""
    title = " ".join(cell.split())
    return title.removeprefix("parameter_").removeprefix("param:")


def _time_columns(table: TextTable, titles: Sequence[str], columns: TableColumns) -> list[_Column]:
    """Return the columns of times, the best title first; columns of rates only if there are no others."""
    if columns.time:
        chosen = _column(_find_title(table, titles, columns.time), columns.time, columns)
        return [dataclasses.replace(chosen, title="seconds")]
    every = [_column(at, title, columns) for at, title in enumerate(titles)]
    times = [one for one in every if one.title.lower() in TIME_TITLES and not one.counted]
    return sorted(times, key=lambda one: TIME_TITLES.index(one.title.lower())) or [
        one for one in every if one.counted and one.title.lower() in TIME_TITLES
    ]


def _is_time_title(column: _Column) -> bool:
    return column.title.lower() not in SECOND_BEST_TITLES


def _find_title(table: TextTable, titles: Sequence[str], title: str) -> int:
    """Return the index of the column with a title that the user chose."""
    lowered = [one.lower() for one in titles]
    if title.lower() not in lowered:
        raise _no_such(table, f"has no column {title}")
    return lowered.index(title.lower())


def _long(
    table: TextTable,
    titles: Sequence[str],
    times: Sequence[_Column],
    columns: TableColumns,
    roles: tuple[str, str] | None,
) -> Timings:
    """Read a table with one row per reading."""
    size_at, column, named_by = _assign_columns(table, titles, times, columns)
    reader = _Reader(mark=table.find_decimal_mark((size_at, column.at), MAX_READINGS))
    for line, cells in table.rows(MAX_READINGS):
        size = reader.size(titles[size_at] or SIZE, cells[size_at], line)
        device = " ".join(label + cells[at].strip() for at, label in named_by)
        reader.add(device, size, column, cells, line)
    helpers = (size_at, column.at, column.unit_at, column.iterations_at, *(at for at, _ in named_by))
    unused = [title for at, title in enumerate(titles) if at not in helpers]
    found = tuple(sorted(reader.readings))
    if not found:
        raise _no_readings_error(table)
    assumed = [] if column.named or column.counted or column.unit_at >= 0 or columns.unit else [column.title]
    notes = _reading_notes(unused, assumed, column.counted)
    return _timings(titles[size_at], reader.readings, found, _assign_roles(found, roles), notes)


def _assign_columns(
    table: TextTable, titles: Sequence[str], times: Sequence[_Column], columns: TableColumns
) -> tuple[int, _Column, list[tuple[int, str]]]:
    """Return the column of sizes, the column of times, and the labelled columns whose values name a device."""
    names = [title.lower() for title in titles]
    if times and names.count(times[0].title.lower()) > 1:
        raise _no_such(table, f"has the column {times[0].title} twice")
    for title in (SIZE, DEVICE_TITLE):
        if names.count(title) > 1:
            raise _no_such(table, f"has the column {title} twice")
    column = times[0] if times else None
    known = {one.at for one in times} | {
        at for at, name in enumerate(names) if name in (*UNIT_TITLES, *ITERATION_TITLES)
    }
    settings = _read_columns(
        table, [at for at in range(len(titles)) if at not in known and names[at] not in REPEAT_TITLES]
    )
    size_at = _find_size(table, titles, columns, settings)
    device_at = _find_device(table, titles, columns, settings)
    missing = [
        name
        for name, is_missing in ((SIZE, size_at < 0), (DEVICE_TITLE, device_at < 0), ("seconds", column is None))
        if is_missing
    ]
    if missing or column is None:
        raise _no_such(table, f"has no column {' and no column '.join(missing)}")
    unit_at = next((at for at, name in enumerate(names) if name in UNIT_TITLES), -1)
    iterations_at = next((at for at, name in enumerate(names) if name in ITERATION_TITLES), -1)
    is_total = "total" in table.header[column.at].lower() or names[column.at] == CRITERION_TITLE
    column = dataclasses.replace(column, unit_at=unit_at, iterations_at=iterations_at if is_total else -1)
    return size_at, column, [(device_at, ""), *_configurations(titles, settings, size_at, device_at)]


def _read_columns(table: TextTable, places: Sequence[int]) -> dict[int, list[str]]:
    """Return the cells of some columns, in one pass; equal cells share one string, as a setting has few values."""
    found: dict[int, list[str]] = {at: [] for at in places}
    known: dict[str, str] = {}
    for _, cells in table.rows(MAX_READINGS):
        for at, column in found.items():
            text = cells[at].strip()
            column.append(known.setdefault(text, text))
    return found


def _find_named_size(table: TextTable, titles: Sequence[str], columns: TableColumns) -> int:
    """Return the column of sizes that the user chose, or whose title is the axis or `size`; -1 if there is none."""
    if columns.size:
        return _find_title(table, titles, columns.size)
    names = [title.lower() for title in titles]
    return next((names.index(one) for one in (columns.axis.lower(), SIZE) if one and one in names), -1)


def _find_size(
    table: TextTable, titles: Sequence[str], columns: TableColumns, settings: Mapping[int, Sequence[str]]
) -> int:
    """Return the column of sizes: the named one, or the only column of numbers that varies; -1 if there is none.

    Columns that vary together, such as M, N and K of square matrices, count as one.
    """
    if (named := _find_named_size(table, titles, columns)) >= 0:
        return named
    names = [title.lower() for title in titles]
    numbers = {at: cells for at, cells in settings.items() if cells and all(map(is_number, cells))}
    numbers.pop(names.index(DEVICE_TITLE) if DEVICE_TITLE in names else -1, None)
    varied = {at: cells for at, cells in numbers.items() if len(set(cells)) > 1} or numbers
    shared = {at: cells for at, cells in varied.items() if min(Counter(cells).values()) > 1}
    varied = shared or varied  # each size occurs for both devices; a measured number is different in every row
    if not varied:
        return -1
    first, *others = varied
    if any(not _vary_together(varied[first], varied[other]) for other in others):
        shown = ", ".join(titles[at] for at in list(varied)[:8])
        raise ColumnsUnclear(f"{table.name} has several columns of numbers that vary: {shown}. Say which is the size.")
    return first


def _vary_together(one: Sequence[str], other: Sequence[str]) -> bool:
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


def _find_device(
    table: TextTable, titles: Sequence[str], columns: TableColumns, settings: Mapping[int, Sequence[str]]
) -> int:
    """Return the column of devices: the named one, or the only column of words; -1 if there is none."""
    names = [title.lower() for title in titles]
    if columns.device:
        return _find_title(table, titles, columns.device)
    if DEVICE_TITLE in names:
        return names.index(DEVICE_TITLE)
    words = [
        at
        for at, cells in settings.items()
        if 1 < len(set(cells)) <= MAX_CONFIGURATIONS and not any(map(is_number, cells))
    ]
    return words[0] if len(words) == 1 else -1


def _configurations(
    titles: Sequence[str], settings: Mapping[int, Sequence[str]], size_at: int, device_at: int
) -> list[tuple[int, str]]:
    """Return the columns of settings that distinguish several trainings, each with the label for its values.

    A setting has few values, each at several sizes; a measured quantity has a different value in almost every row.
    """
    found = []
    for at, cells in settings.items():
        values = set(cells)
        if at in (size_at, device_at) or not 1 < len(values) <= MAX_CONFIGURATIONS:
            continue
        at_sizes = set(zip(cells, settings.get(size_at, cells), strict=True))
        together = _vary_together(cells, settings.get(size_at, cells)) or _vary_together(
            cells, settings.get(device_at, cells)
        )
        if not together and all(sum(value == one for one, _ in at_sizes) > 1 for value in values):
            found.append((at, f"{titles[at]}=" if all(map(is_number, cells)) else ""))
    return found


def _wide(table: TextTable, titles: Sequence[str], choice: TableColumns, roles: tuple[str, str] | None) -> Timings:
    """Read a table with one row per size: the column `size` or the first, and a column per reading of a device."""
    named = _find_named_size(table, titles, choice)
    size_at = max(0, named)
    columns = [_column(at, title, choice) for at, title in enumerate(titles) if at != size_at]
    found = tuple(sorted({column.title for column in columns if column.title}))
    if len(found) < 2 or any(is_number(title) for title in titles):
        raise _no_such(table, "has no header row")
    if named < 0:
        _require_sizes_first(table, titles)
    if len(found) > MAX_DEVICES:
        raise InvalidValue(DEVICE_TITLE, f"{len(found)} different names", f"at most {MAX_DEVICES} devices")
    pair = _assign_roles([_check_new_device(device, 1, ()) for device in found], roles)
    used = [column for column in columns if column.title in pair]
    reader = _Reader(mark=table.find_decimal_mark((size_at, *(column.at for column in used)), MAX_READINGS))
    for line, cells in table.rows(MAX_READINGS):
        size = reader.size(titles[size_at] or SIZE, cells[size_at], line)
        for column in used:
            if cells[column.at].strip():  # blank if the size has fewer readings
                reader.add(column.title, size, column, cells, line)
        if reader.count > MAX_READINGS:
            raise ForeignFile(f"{table.name} has more than {MAX_READINGS:,} readings, which is the limit.")
    if not reader.sizes:
        raise _no_readings_error(table)
    unused = [column.title for column in columns if column.title not in pair]
    unnamed = [column.title for column in used if not (column.named or column.counted or choice.unit)]
    counted = next((column.counted for column in used if column.counted), "")
    notes = _reading_notes(unused, list(dict.fromkeys(unnamed)), counted)
    readings = {device: reader.readings.get(device, {}) for device in pair}
    return _timings(titles[size_at], readings, found, pair, notes)


def _require_sizes_first(table: TextTable, titles: Sequence[str]) -> None:
    """Check that the first column contains sizes, since no column of sizes was named.

    Raises:
        ColumnsUnclear: the first column contains names, or numbers the readings.
    """
    first = next((cells[0] for _, cells in table.rows(MAX_READINGS)), "0")
    if titles[0].lower() in REPEAT_TITLES or first.strip()[:1] not in (*string.digits, *"+-."):
        raise _no_such(table, "has no column size")


def _no_such(table: TextTable, fault: str) -> ColumnsUnclear:
    shown = ", ".join(table.header)
    return ColumnsUnclear(f"{table.name} {fault}: its first row is {shown!r:.80}, but it must name {NEEDED_COLUMNS}.")


def _no_readings_error(table: TextTable) -> ForeignFile:
    return ForeignFile(f"{table.name} has no readings after its header row.")


def _column(index: int, title: str, choice: TableColumns) -> _Column:
    """Return a column with the unit in its title: "cpu (ms)" is cpu in milliseconds, and "ms" is a column of times."""
    rate = _RATE.fullmatch(title)
    if rate and not _WORK_RATE.fullmatch(rate[2] or ""):
        return _Column(at=index, title=(rate[1] or "seconds").strip(), counted=rate[2] or "item")
    named = _UNIT.fullmatch(title)
    if named is None:
        return _Column(at=index, title=title, unit_s=choice.seconds)
    return _Column(at=index, title=(named[1] or "seconds").strip(), unit_s=UNITS[named[2].lower()], named=True)


def _check_new_device(device: str, line: int, readings: TimingReadings | tuple[()]) -> str:
    """Return the name of a new device if it is valid."""
    if not device or len(device) > MAX_DEVICE_NAME or not device.isprintable():
        hint = f"a name of at most {MAX_DEVICE_NAME} printable characters, such as cpu or cuda:0"
        raise InvalidValue(f"device in line {line}", device, hint)
    if len(readings) == MAX_DEVICES:
        raise InvalidValue(DEVICE_TITLE, f"{MAX_DEVICES + 1} different names", f"at most {MAX_DEVICES} devices")
    return device


def _assign_roles(devices: Sequence[str], roles: tuple[str, str] | None) -> tuple[str, str]:
    """Return the baseline and the challenger."""
    if roles is None and len(devices) == 1:
        raise InvalidValue(DEVICE_TITLE, devices[0], "at least two different names")
    for device in roles or ():
        if device not in devices:
            raise InvalidValue("devices", device, f"in the file, whose devices are {', '.join(devices)}")
    if roles and roles[0] == roles[1]:
        raise InvalidValue("devices", ", ".join(roles), "two different devices")
    first, *others = roles or devices
    hosts = [device for device in (first, *others) if HOST_WORD in device.lower()]
    if roles is None and (len(others) > 1 or len(hosts) != 1):
        raise RolesUnclear(devices)
    baseline = hosts[0] if len(hosts) == 1 else first
    return baseline, next(device for device in (first, *others) if device != baseline)


def _timings(
    axis: str, readings: TimingReadings, devices: tuple[str, ...], pair: tuple[str, str], notes: Iterator[str]
) -> Timings:
    unused = [device for device in readings if device not in pair]
    return Timings(
        devices=devices,
        baseline=pair[0],
        challenger=pair[1],
        axis=_name_axis(axis),
        evidence=_build_evidence(readings, *pair),
        notes=(*notes, *([_note_of_unused("device", sorted(unused))] if unused else [])),
    )


def _name_axis(title: str) -> str:
    """Return the name of the axis from the title of its column: a key of `SIZE_AXES`, the title, or `size`."""
    key = title.lower().replace(" ", "_")
    return key if key in SIZE_AXES else SIZE if len(title) < SHORTEST_AXIS or len(title) > MAX_DEVICE_NAME else title


def _build_evidence(readings: TimingReadings, baseline: str, challenger: str) -> tuple[Evidence, ...]:
    """Return the evidence with readings in ascending order, so that the order of rows does not matter."""
    evidence = []
    for size in sorted(readings[baseline].keys() | readings[challenger].keys()):
        base, other = (tuple(sorted(readings[device].get(size, ()))) for device in (baseline, challenger))
        obstacle = "" if base and other else f"only timed on {baseline if base else challenger}"
        evidence.append(Evidence(size=size, baseline_s=base, challenger_s=other, paired=False, obstacle=obstacle))
    return tuple(evidence)


def _reading_notes(unused: Sequence[str], assumed: Sequence[str], counted: str) -> Iterator[str]:
    if unused:
        yield _note_of_unused("column", [name[:MAX_DEVICE_NAME] or "without a name" for name in unused])
    if counted:
        thing = counted.lower().removesuffix("s")
        yield f"The column holds rates, so times are their inverse: seconds per {thing}."
    if assumed:
        yield f"No unit is named for {' and '.join(assumed)}, so the times are read as seconds."


def _note_of_unused(noun: str, entries: Sequence[str]) -> str:
    shown = ", ".join(entries[:8]) + (f" and {units.format_count(len(entries) - 8)} more" if len(entries) > 8 else "")
    return f"The {noun} {shown} was not used." if len(entries) == 1 else f"The {noun}s {shown} were not used."
