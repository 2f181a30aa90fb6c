"""Somebody's own timings from a CSV file: columns size, device, seconds; one row a reading.

Readings of one size and device are repeats of each other, in any order. Nothing says which were taken back to back,
so they are not paired. The file is read as a whole or refused with the line that is wrong; no row is dropped, and no
value guessed. Nothing here compares the devices; that is `core.answer.study.crossover`.
"""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from core import units
from core.answer.study.result import Evidence
from core.errors import ForeignFile, InvalidValue

COLUMNS = ("size", "device", "seconds")

MAX_BYTES = 16 * 2**20
MAX_ROWS = 200_000
MAX_LINES = 300_000
MAX_ROW = 100_000
MAX_COLUMNS = 1_000
MAX_SIZES = 1_000
MAX_DEVICES = 100
MAX_NAME = 100
"""Bounds of a file that is read, each looked at before what it bounds is built: more readings than any sweep has, few
enough to be read in half a second on a shared host. A row may span lines, so its letters are counted too."""

SMALLEST, LARGEST = 1e-18, 1e18
"""Numbers that are read, as seconds and as sizes: beyond the age of the universe, and an operation of any machine."""

HOST = "cpu"
"""How the name of the device begins that the other is measured against."""

Readings = dict[str, dict[float, list[float]]]
"""Device → size → seconds of each reading."""


@dataclass(frozen=True, kw_only=True)
class Timings:
    """What a file holds.

    Attributes:
        devices: every device in it, by name.
        baseline: the device that the other is set against.
        challenger: the other.
        evidence: of each size, ascending; a size that only one of the two has carries that as its obstacle.
        notes: what was read and not used, a sentence each.
    """

    devices: tuple[str, ...]
    baseline: str
    challenger: str
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...] = ()


def read(data: bytes, name: str, *, devices: tuple[str, str] | None = None) -> Timings:
    """The timings in a file.

    Args:
        data: its bytes, UTF-8, with commas or semicolons.
        name: of the file, for messages.
        devices: the two to compare, the baseline first. A device whose name begins with `cpu` is the baseline in any
            case, because outcomes are named for it; without `devices` and without a CPU it is the first by name.

    Raises:
        ForeignFile: it is not a table of these columns, or too large.
        InvalidValue: a value in it is none that can be, or the devices cannot be told from it.
    """
    rows = _rows(_text(data, name), name)
    header = next(rows, None)
    if header is None:
        raise ForeignFile(f"{name} is empty; it must have the columns {', '.join(COLUMNS)} and a row for each reading.")
    names = [cell.strip().lower() for cell in header[1]]
    _check_columns(names, name)
    readings = _readings(rows, names, name)
    found = tuple(sorted(readings))
    baseline, challenger = _pair(found, devices)
    return Timings(
        devices=found,
        baseline=baseline,
        challenger=challenger,
        evidence=_evidence(readings, baseline, challenger),
        notes=_notes(names, found, (baseline, challenger)),
    )


def _text(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise ForeignFile(f"{name} has {len(data):,} bytes; at most {MAX_BYTES:,} are read.")
    if (lines := max(map(data.count, (b"\n", b"\r")))) > MAX_LINES:
        raise ForeignFile(f"{name} has {lines:,} lines; at most {MAX_LINES:,} are read.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ForeignFile(f"{name} is not UTF-8 text in line {line}; save it as CSV with the encoding UTF-8.") from None


def _rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of every row that is not blank; the first is the header, which also tells the separator."""
    header = next((line for line in io.StringIO(text) if line.strip()), "")
    separator = ";" if header.count(";") > header.count(",") else ","
    lines = _Lines(text, name)
    reader = csv.reader(lines, delimiter=separator, strict=True)
    line = 1
    try:
        for cells in reader:
            if any(cells) and any(map(str.strip, cells)):
                yield line, cells
            line = reader.line_num + 1
            lines.row_ends()
    except csv.Error as error:
        raise ForeignFile(f"{name} is broken off or damaged in the row that begins in line {line}: {error}.") from None


class _Lines:
    """The lines of a text; one row may span as many as it likes, but not have more letters than are read."""

    def __init__(self, text: str, name: str) -> None:
        self._lines, self._name, self._letters = io.StringIO(text, newline=""), name, 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._letters += len(line)
            if self._letters > MAX_ROW:
                raise ForeignFile(f"{self._name} has a row of more than {MAX_ROW:,} letters, which is not read.")
            yield line

    def row_ends(self) -> None:
        """Begin to count anew."""
        self._letters = 0


def _check_columns(names: Sequence[str], name: str) -> None:
    if len(names) > MAX_COLUMNS:
        raise ForeignFile(f"{name} has {len(names):,} columns; at most {MAX_COLUMNS:,} are read.")
    missing = [column for column in COLUMNS if column not in names]
    doubled = [column for column in COLUMNS if names.count(column) > 1]
    if missing or doubled:
        fault = f"has no column {' and no column '.join(missing)}" if missing else f"has the column {doubled[0]} twice"
        shown = ", ".join(names)
        raise ForeignFile(f"{name} {fault}: its first row is {shown!r:.80}, and it must name {', '.join(COLUMNS)}.")


def _readings(rows: Iterator[tuple[int, list[str]]], names: Sequence[str], name: str) -> Readings:
    """Every reading, checked; lean, because a file may have a million rows."""
    size_at, device_at, seconds_at = map(names.index, COLUMNS)
    sizes: set[float] = set()
    readings: Readings = {}
    for line, cells in _full_rows(rows, len(names), name):
        size, device = _number("size", cells[size_at], line), cells[device_at].strip()
        sizes.add(size)
        if len(sizes) > MAX_SIZES:
            raise InvalidValue("size", f"{MAX_SIZES + 1:,} different numbers", f"at most {MAX_SIZES:,} sizes")
        if (by_size := readings.get(device)) is None:
            by_size = readings[_new(device, line, readings)] = {}
        by_size.setdefault(size, []).append(_number("seconds", cells[seconds_at], line))
    if not readings:
        raise ForeignFile(f"{name} has no readings: after the first row, each row must be one.")
    return readings


def _full_rows(rows: Iterator[tuple[int, list[str]]], width: int, name: str) -> Iterator[tuple[int, list[str]]]:
    """The same rows, as long as they are as wide as the first and not too many."""
    for number, (line, cells) in enumerate(rows):
        if len(cells) != width:
            raise ForeignFile(f"{name} has {len(cells)} values in line {line} and {width} columns in its first row.")
        if number >= MAX_ROWS:
            raise ForeignFile(f"{name} has more than {MAX_ROWS:,} readings, which is the most that is read.")
        yield line, cells


def _number(column: str, text: str, line: int) -> float:
    """A number above 0, written plainly, and not so far from 1 that a chart of it would leave the range of floats."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if value > 0 and not SMALLEST <= value <= LARGEST:
        raise InvalidValue(f"{column} in line {line}", text.strip(), f"between {SMALLEST:g} and {LARGEST:g}")
    if not value > 0 or "_" in text:
        hint = "a number above 0, with a point where it is not whole" if "," in text else "a number above 0"
        raise InvalidValue(f"{column} in line {line}", text.strip(), hint)
    return value


def _new(device: str, line: int, readings: Readings) -> str:
    """The name of a device that was not seen before."""
    if not device or len(device) > MAX_NAME or not device.isprintable():
        hint = f"a name of at most {MAX_NAME} printable characters, such as cpu or cuda:0"
        raise InvalidValue(f"device in line {line}", device, hint)
    if len(readings) == MAX_DEVICES:
        raise InvalidValue("device", f"{MAX_DEVICES + 1} different names", f"at most {MAX_DEVICES} devices")
    return device


def _pair(devices: Sequence[str], asked: tuple[str, str] | None) -> tuple[str, str]:
    """Baseline and challenger."""
    if asked is not None:
        for device in asked:
            if device not in devices:
                raise InvalidValue("devices", device, f"in the file, whose devices are {', '.join(devices)}")
        if asked[0] == asked[1]:
            raise InvalidValue("devices", ", ".join(asked), "two different devices")
        baseline, challenger = sorted(asked, key=lambda device: not _is_host(device))
        return baseline, challenger
    if len(devices) == 1:
        raise InvalidValue("device", devices[0], "at least two different names, so that there is something to compare")
    if len(devices) > 2:
        raise InvalidValue("devices", "not given", f"a baseline and a challenger out of {', '.join(devices)}")
    baseline, challenger = sorted(devices, key=lambda device: (not _is_host(device), device))
    return baseline, challenger


def _is_host(device: str) -> bool:
    return device.lower().startswith(HOST)


def _evidence(readings: Readings, baseline: str, challenger: str) -> tuple[Evidence, ...]:
    """Readings in ascending order, so that the order of rows changes nothing."""
    evidence = []
    for size in sorted(readings[baseline].keys() | readings[challenger].keys()):
        base, other = (tuple(sorted(readings[device].get(size, ()))) for device in (baseline, challenger))
        obstacle = "" if base and other else f"only timed on {baseline if base else challenger}"
        evidence.append(Evidence(size=size, baseline_s=base, challenger_s=other, paired=False, obstacle=obstacle))
    return tuple(evidence)


def _notes(names: Sequence[str], devices: Sequence[str], pair: Sequence[str]) -> tuple[str, ...]:
    unused: Mapping[str, list[str]] = {
        "column": [name[:MAX_NAME] or "without a name" for name in names if name not in COLUMNS],
        "device": [name for name in devices if name not in pair],
    }
    return tuple(_note(noun, entries) for noun, entries in unused.items() if entries)


def _note(noun: str, entries: Sequence[str]) -> str:
    shown = ", ".join(entries[:8]) + (f" and {units.count(len(entries) - 8)} more" if len(entries) > 8 else "")
    return f"The {noun} {shown} was not used." if len(entries) == 1 else f"The {noun}s {shown} were not used."
