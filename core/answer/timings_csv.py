"""A user's own timings as CSV: decode the table, read its numbers, and turn its columns into evidence for a crossover.

Comma, semicolon or tab; Excel's line `sep=`; lines that begin with # are left out; UTF-8 or UTF-16. Whether a comma is
that of decimals or of thousands follows from all numbers of the file together, or the file is refused.
"""

import csv
import io
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .. import units
from ..errors import ForeignFile, InvalidValue
from ..text import as_line
from . import crossover, diagnostics
from .result import Basis, Crossover, Evidence

MAX_TIMINGS_BYTES = 16 * 2**20
MAX_LINES = 300_000
MAX_ROW = 100_000
MAX_TIMINGS_COLUMNS = 1_000
"""Bounds of a file that is read, each looked at before what it bounds is built; few enough to be read in half a second
on a shared host. A row may span lines, so its letters are counted too."""

SMALLEST_NUMBER, LARGEST_NUMBER = 1e-18, 1e18
"""Numbers that are read, as seconds and as sizes: beyond the age of the universe, and an operation of any machine."""

SEPARATORS = (",", ";", "\t")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")

Mark = Literal["", ".", ","]
"""What stands before decimals; empty where no number tells."""

_EXCEL = re.compile(r'"?sep=([,;:|\t])"?\s*', re.IGNORECASE)
_SPACED = re.compile(r"\d{1,3}(?:([ \u00a0\u2009\u202f'’])\d{3})(?:\1\d{3})*(?:[.,]\d+)?")
_GROUPED = {mark: re.compile(rf"\d{{1,3}}(?:\{mark}\d{{3}})+") for mark in ",."}
_MARKED = {
    ".": re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?"),
    ",": re.compile(r"(?:\d{1,3}(?:\.\d{3})+|\d*)(?:,\d+)?(?:e[+-]?\d+)?", re.IGNORECASE),
}
_MARKS = {".": "point", ",": "comma"}
_OTHER: dict[Mark, Mark] = {".": ",", ",": "."}

TableRow = tuple[int, list[str]]
"""The line in which a row begins, and its cells."""


class TextTable:
    """The cells of a file.

    Attributes:
        header: the first row, as it stands.
    """

    def __init__(self, data: bytes, name: str) -> None:
        """Decode a file and look at its first row.

        Raises:
            ForeignFile: it is too large, no text, empty, or damaged in its first row.
        """
        self.name = name
        self._text = _decode_text(data, name)
        self._separator = _separator(self._text)
        first = next(self._parse_rows(), None)
        if first is None:
            raise ForeignFile(f"{name} is empty; it must have a first row that names its columns.")
        self.header = [cell.strip() for cell in first[1]]
        if len(self.header) > MAX_TIMINGS_COLUMNS:
            raise ForeignFile(f"{name} has {len(self.header):,} columns; at most {MAX_TIMINGS_COLUMNS:,} are read.")

    def rows(self, limit: int) -> Iterator[TableRow]:
        """Every row below the first that is not blank, as wide as that one, and not too many; may be asked for again.

        Raises:
            ForeignFile: one is not.
        """
        width = len(self.header)
        parsed = self._parse_rows()
        next(parsed)
        for number, (line, cells) in enumerate(parsed):
            if len(cells) != width:
                raise ForeignFile(
                    f"{self.name} has {len(cells)} values in line {line} and {width} columns in its first row."
                )
            if number >= limit:
                raise ForeignFile(f"{self.name} has more than {limit:,} readings, which is the most that is read.")
            yield line, cells

    @property
    def commas(self) -> bool:
        """Whether a cell may hold a comma."""
        return "," in self._text and (self._separator != "," or '"' in self._text)

    def _parse_rows(self) -> Iterator[TableRow]:
        lines = _Lines(self._text, self.name)
        reader = csv.reader(lines, delimiter=self._separator, strict=True)
        try:
            for cells in reader:
                if any(cells) and any(map(str.strip, cells)):
                    yield lines.begin, cells
                lines.row_ends()
        except csv.Error as error:
            where = f"in the row that begins in line {lines.begin}"
            raise ForeignFile(f"{self.name} is broken off or damaged {where}: {as_line(str(error))}.") from None


class _Lines:
    """The lines of a text without comments; one row may span as many as it likes, but not have too many letters."""

    def __init__(self, text: str, name: str) -> None:
        self._lines, self._name, self._letters, self._number = io.StringIO(text, newline=""), name, 0, 0
        self.begin = 1

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._number += 1
            if self._letters == 0:
                self.begin = self._number
                if line.startswith("#") or (self._number == 1 and _EXCEL.fullmatch(line)):
                    continue
            self._letters += len(line)
            if self._letters > MAX_ROW:
                raise ForeignFile(f"{self._name} has a row of more than {MAX_ROW:,} letters, which is not read.")
            yield line

    def row_ends(self) -> None:
        """Begin to count anew."""
        self._letters = 0


def find_decimal_mark(cells: Iterable[tuple[str, int, str]]) -> Mark:
    """What stands before decimals in all numbers (column, line, text) of a file together; empty where none tells.

    Raises:
        InvalidValue: some say a point and some a comma.
    """
    found: Mark = ""
    first = 0
    for column, line, cell in cells:
        if (mark := _infer_decimal_mark(cell.strip())) and found and mark != found:
            hint = f"a number above 0, with a {_MARKS[found]} where it is not whole, as in line {first}"
            raise InvalidValue(f"{column} in line {line}", cell.strip(), hint)
        if mark and not found:
            found, first = mark, line
    return found


def parse_positive_number(column: str, text: str, line: int, mark: Mark = "") -> float:
    """A number above 0, written plainly, and not so far from 1 that a chart of it would leave the range of floats.

    Raises:
        InvalidValue: it is none; says the column and the line.
    """
    try:
        value = float(text)
        if mark == "," and _GROUPED["."].fullmatch(text.strip()):
            value = float(text.replace(".", ""))
    except ValueError:
        value = _parse_localized(text.strip(), mark)
    if value > 0 and not SMALLEST_NUMBER <= value <= LARGEST_NUMBER:
        raise InvalidValue(
            f"{column} in line {line}", text.strip(), f"between {SMALLEST_NUMBER:g} and {LARGEST_NUMBER:g}"
        )
    if not value > 0 or "_" in text:
        hint = "a number above 0, with a point where it is not whole" if "," in text else "a number above 0"
        raise InvalidValue(f"{column} in line {line}", text.strip(), hint)
    return value


def _parse_localized(text: str, mark: Mark) -> float:
    """A number with a comma for its decimals, or with separators of thousands; NaN if it is neither."""
    if spaced := _SPACED.fullmatch(text):
        text = text.replace(spaced[1], "")
    twice = next((sign for sign in _OTHER if text.count(sign) > 1 and _GROUPED[sign].fullmatch(text)), "")
    if twice:
        text = text.replace(twice, "")
    elif mark and _MARKED[mark].fullmatch(text):
        text = text.replace(_OTHER[mark], "").replace(mark, ".")
    try:
        return float(text)
    except ValueError:
        return math.nan


def _infer_decimal_mark(text: str) -> Mark:
    """What one number says of the mark before decimals: a comma or a point alone may be that of thousands."""
    last = max(text.rfind("."), text.rfind(","))
    if last < 0:
        return ""
    mark: Mark = "," if text[last] == "," else "."
    other = _OTHER[mark]
    if text.count(mark) > 1:
        return other if _GROUPED[mark].fullmatch(text) else ""
    whole, decimals = text[:last], text[last + 1 :]
    if not decimals[:1].isdigit() or _GROUPED[mark].fullmatch(text):
        return ""
    return mark if whole.isdigit() or not whole or _GROUPED[other].fullmatch(whole) else ""


def _separator(text: str) -> str:
    """What stands between cells: as Excel says it in a line of its own, or what the first row has most of."""
    lines = io.StringIO(text)
    first = next(lines, "")
    if excel := _EXCEL.fullmatch(first):
        return excel[1]
    rows = itertools.chain([first], lines)
    header = next((line for line in rows if line.strip() and not line.startswith("#")), "")
    return max(SEPARATORS, key=header.count)


def _decode_text(data: bytes, name: str) -> str:
    if len(data) > MAX_TIMINGS_BYTES:
        raise ForeignFile(f"{name} has {len(data):,} bytes; at most {MAX_TIMINGS_BYTES:,} are read.")
    if (lines := max(map(data.count, (b"\n", b"\r")))) > MAX_LINES:
        raise ForeignFile(f"{name} has {lines:,} lines; at most {MAX_LINES:,} are read.")
    encoding = "utf-16" if data.startswith(UTF_16) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        shown = "UTF-16" if encoding == "utf-16" else "UTF-8"
        raise ForeignFile(
            f"{name} is not {shown} text in line {line}; save it as CSV with the encoding UTF-8."
        ) from None


SIZE, DEVICE_TITLE = "size", "device"

TIME_TITLES = ("seconds", "time", "duration", "elapsed", "runtime")
"""How a column of times is called where each row says whose it is; without a unit they are seconds."""

MAX_READINGS = 200_000
MAX_SIZES = 1_000
MAX_DEVICES = 100
MAX_DEVICE_NAME = 100
"""Bounds of what is read, more than any sweep has."""

UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("minute", "minutes"), 60.0),
}
"""Seconds of each unit that a column may name behind what it is called: cpu (ms), gpu_us, time [s]."""

HOST_WORD = "cpu"
"""What the name of the device has in it that the other is measured against."""

NEEDED_COLUMNS = "size, device and seconds, or size and a column of times for each device"

_UNIT = re.compile(rf"(?:(.*?)[\s_]*[\s_(\[])?({'|'.join(UNITS)})\s*[)\]]?", re.IGNORECASE)

TimingReadings = dict[str, dict[float, list[float]]]
"""Device → size → seconds of each reading."""


@dataclass(frozen=True, kw_only=True)
class Timings:
    """What a file holds.

    Attributes:
        evidence: of each size, ascending; a size that only one of the two has carries that as its obstacle.
        notes: what was read and not used, and what was taken for granted, a sentence each.
    """

    devices: tuple[str, ...]
    baseline: str
    challenger: str
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...] = ()


class RolesUnclear(InvalidValue):
    """The names of a table's devices do not say which is set against which; whoever brings it is asked."""

    def __init__(self, devices: Sequence[str]) -> None:
        self.devices = tuple(devices)
        unnamed = "" if len(devices) > 2 else f", since not one of the two names has {HOST_WORD} in it"
        super().__init__("devices", "not given", f"a baseline and a challenger out of {', '.join(devices)}{unnamed}")


@dataclass(frozen=True, kw_only=True)
class _Column:
    """One column of times.

    Attributes:
        title: as the table names it, without its unit.
        unit_s: seconds of its unit.
        named: whether the table names the unit.
    """

    at: int
    title: str
    unit_s: float = 1.0
    named: bool = False


@dataclass(kw_only=True)
class _Reader:
    """Readings as they are checked; lean, because a file may have many rows."""

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

    def add(self, device: str, size: float, column: _Column, text: str, line: int) -> None:
        if (by_size := self.readings.get(device)) is None:
            by_size = self.readings[_check_new_device(device, line, self.readings)] = {}
        by_size.setdefault(size, []).append(parse_positive_number(column.title, text, line, self.mark) * column.unit_s)
        self.count += 1


def read_timings(data: bytes, name: str, *, devices: tuple[str, str] | None = None) -> Timings:
    """The timings in a file.

    Args:
        data: its bytes.
        name: of the file, for messages.
        devices: the two to compare, the baseline first. If one of the two has `cpu` in its name it is the baseline in
            any case, because outcomes are named for it.

    Raises:
        ForeignFile: it is not a table of these columns, or too large.
        RolesUnclear: `devices` is not given, and the names do not tell.
        InvalidValue: a value in it is none that can be.
    """
    table = TextTable(data, name)
    titles = [" ".join(cell.split()) for cell in table.header]
    lowered = [title.lower() for title in titles]
    times = [column for at, title in enumerate(titles) if (column := _column(at, title)).title.lower() in TIME_TITLES]
    if DEVICE_TITLE in lowered or times:
        return _long(table, lowered, times, devices)
    return _wide(table, titles, lowered, devices)


def timings_crossover(timings: Timings, *, axis: str = SIZE, basis: Basis = "as_given") -> Crossover:
    """Where the faster of the two devices changes, marked where the readings spread as on a busy machine."""
    found = crossover.locate_crossover(
        timings.evidence, axis=axis, basis=basis, baseline=timings.baseline, challenger=timings.challenger
    )
    return diagnostics.mark_interference(
        found, diagnostics.evidence_interference(timings.evidence, timings.baseline, timings.challenger)
    )


def _long(table: TextTable, names: Sequence[str], times: Sequence[_Column], roles: tuple[str, str] | None) -> Timings:
    """A row a reading."""
    _require(table, names, times)
    size_at, device_at, (column,) = names.index(SIZE), names.index(DEVICE_TITLE), times
    reader = _Reader(mark=_mark(table, (size_at, column.at)))
    for line, cells in table.rows(MAX_READINGS):
        size = reader.size(SIZE, cells[size_at], line)
        reader.add(cells[device_at].strip(), size, column, cells[column.at], line)
    unused = [name for at, name in enumerate(names) if at not in (size_at, device_at, column.at)]
    found = tuple(sorted(reader.readings))
    if not found:
        raise _no_readings_error(table)
    assumed = [] if column.named else [column.title]
    return _timings(reader.readings, found, _assign_roles(found, roles), _reading_notes(unused, assumed))


def _require(table: TextTable, names: Sequence[str], times: Sequence[_Column]) -> None:
    counts = {SIZE: names.count(SIZE), DEVICE_TITLE: names.count(DEVICE_TITLE), "seconds": len(times)}
    missing = [name for name, count in counts.items() if not count]
    doubled = [name for name, count in counts.items() if count > 1]
    if missing:
        raise _no_such(table, f"has no column {' and no column '.join(missing)}")
    if doubled:
        raise _no_such(table, f"has the column {doubled[0]} twice")


def _wide(table: TextTable, titles: Sequence[str], names: Sequence[str], roles: tuple[str, str] | None) -> Timings:
    """A row a size: the column `size`, or else the first, and beside it a column for each reading of a device."""
    size_at = names.index(SIZE) if SIZE in names else 0
    columns = [_column(at, title) for at, title in enumerate(titles) if at != size_at]
    found = tuple(sorted({column.title for column in columns if column.title}))
    if len(found) < 2 or any(not math.isnan(_parse_plain(title)) for title in titles):
        raise _no_such(table, "has no row of names that says what its columns are")
    if len(found) > MAX_DEVICES:
        raise InvalidValue(DEVICE_TITLE, f"{len(found)} different names", f"at most {MAX_DEVICES} devices")
    pair = _assign_roles([_check_new_device(device, 1, ()) for device in found], roles)
    used = [column for column in columns if column.title in pair]
    reader = _Reader(mark=_mark(table, (size_at, *(column.at for column in used))))
    for line, cells in table.rows(MAX_READINGS):
        size = reader.size(titles[size_at] or SIZE, cells[size_at], line)
        for column in used:
            if text := cells[column.at].strip():  # a size that was not timed so often
                reader.add(column.title, size, column, text, line)
        if reader.count > MAX_READINGS:
            raise ForeignFile(f"{table.name} has more than {MAX_READINGS:,} readings, which is the most that is read.")
    if not reader.sizes:
        raise _no_readings_error(table)
    unused = [column.title for column in columns if column.title not in pair]
    assumed = list(dict.fromkeys(column.title for column in used if not column.named))
    return _timings(
        {device: reader.readings.get(device, {}) for device in pair}, found, pair, _reading_notes(unused, assumed)
    )


def _no_such(table: TextTable, fault: str) -> ForeignFile:
    shown = ", ".join(table.header)
    return ForeignFile(f"{table.name} {fault}: its first row is {shown!r:.80}, and it must name {NEEDED_COLUMNS}.")


def _no_readings_error(table: TextTable) -> ForeignFile:
    return ForeignFile(f"{table.name} has no readings: after the first row, each row must be one.")


def _column(index: int, title: str) -> _Column:
    """A column with the unit that it names: "cpu (ms)" is cpu, in milliseconds, and "ms" is a time."""
    told = _UNIT.fullmatch(title)
    if told is None:
        return _Column(at=index, title=title)
    return _Column(at=index, title=(told[1] or "seconds").strip(), unit_s=UNITS[told[2].lower()], named=True)


def _mark(table: TextTable, places: Sequence[int]) -> Mark:
    """What stands before decimals in these columns; only looked for where a cell may hold a comma."""
    if not table.commas:
        return ""
    rows = table.rows(MAX_READINGS)
    return find_decimal_mark((table.header[at], line, cells[at]) for line, cells in rows for at in places)


def _parse_plain(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _check_new_device(device: str, line: int, readings: TimingReadings | tuple[()]) -> str:
    """The name of a device that was not seen before."""
    if not device or len(device) > MAX_DEVICE_NAME or not device.isprintable():
        hint = f"a name of at most {MAX_DEVICE_NAME} printable characters, such as cpu or cuda:0"
        raise InvalidValue(f"device in line {line}", device, hint)
    if len(readings) == MAX_DEVICES:
        raise InvalidValue(DEVICE_TITLE, f"{MAX_DEVICES + 1} different names", f"at most {MAX_DEVICES} devices")
    return device


def _assign_roles(devices: Sequence[str], roles: tuple[str, str] | None) -> tuple[str, str]:
    """Baseline and challenger."""
    if roles is None and len(devices) == 1:
        raise InvalidValue(
            DEVICE_TITLE, devices[0], "at least two different names, so that there is something to compare"
        )
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
    readings: TimingReadings, devices: tuple[str, ...], pair: tuple[str, str], notes: Iterator[str]
) -> Timings:
    unused = [device for device in readings if device not in pair]
    return Timings(
        devices=devices,
        baseline=pair[0],
        challenger=pair[1],
        evidence=_build_evidence(readings, *pair),
        notes=(*notes, *([_note_of_unused("device", sorted(unused))] if unused else [])),
    )


def _build_evidence(readings: TimingReadings, baseline: str, challenger: str) -> tuple[Evidence, ...]:
    """Readings in ascending order, so that the order of rows changes nothing."""
    evidence = []
    for size in sorted(readings[baseline].keys() | readings[challenger].keys()):
        base, other = (tuple(sorted(readings[device].get(size, ()))) for device in (baseline, challenger))
        obstacle = "" if base and other else f"only timed on {baseline if base else challenger}"
        evidence.append(Evidence(size=size, baseline_s=base, challenger_s=other, paired=False, obstacle=obstacle))
    return tuple(evidence)


def _reading_notes(unused: Sequence[str], assumed: Sequence[str]) -> Iterator[str]:
    if unused:
        yield _note_of_unused("column", [name[:MAX_DEVICE_NAME] or "without a name" for name in unused])
    if assumed:
        yield f"No unit is named for {' and '.join(assumed)}, so the times are taken as seconds."


def _note_of_unused(noun: str, entries: Sequence[str]) -> str:
    shown = ", ".join(entries[:8]) + (f" and {units.format_count(len(entries) - 8)} more" if len(entries) > 8 else "")
    return f"The {noun} {shown} was not used." if len(entries) == 1 else f"The {noun}s {shown} were not used."
