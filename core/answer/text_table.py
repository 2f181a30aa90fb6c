"""Tables of text, as written by programs and people: their cells, separators, decimal marks and units.

The separator is a comma, a semicolon or a tab, or is named in Excel's line `sep=`. Lines that begin with # are ignored.
The encoding is UTF-8 or UTF-16. All numbers of a file together determine whether a comma separates decimals or
thousands; if they contradict each other, the file is refused.

Exports of benchmark programs become such a table: JSON of several programs, and tables in Markdown. Each reading
becomes a row, each parameter a column. If a benchmark has no parameters, device and size are read from its name:
`train[cuda-512]`, `cpu_128`. Only the structure of the document is checked here; the resulting table is read like any
other.
"""

import csv
import io
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from ..errors import ForeignFile, InvalidValue
from ..text import as_line

MAX_TIMINGS_BYTES = 16 * 2**20
MAX_LINES = 300_000
MAX_ROW = 100_000
MAX_TIMINGS_COLUMNS = 1_000
"""Limits of a file, each checked before anything is built; a shared host reads such a file in half a second. A row may
span several lines, so its characters are counted too."""

SMALLEST_NUMBER, LARGEST_NUMBER = 1e-18, 1e18
"""Range of accepted seconds and sizes: from less than any machine operation to more than the age of the universe."""

SEPARATORS = (",", ";", "\t")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")

Mark = Literal["", ".", ","]
"""The decimal mark; empty if no number shows it."""

_EXCEL = re.compile(r'"?sep=([,;:|\t])"?\s*', re.IGNORECASE)
_SPACED = re.compile(r"\d{1,3}(?:([ \u00a0\u2009\u202f'’])\d{3})(?:\1\d{3})*(?:[.,]\d+)?")
_GROUPED = {mark: re.compile(rf"\d{{1,3}}(?:\{mark}\d{{3}})+") for mark in ",."}
_MARKED = {
    ".": re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?"),
    ",": re.compile(r"(?:\d{1,3}(?:\.\d{3})+|\d*)(?:,\d+)?(?:e[+-]?\d+)?", re.IGNORECASE),
}
_MARKS = {".": "point", ",": "comma"}
_OTHER: dict[Mark, Mark] = {".": ",", ",": "."}

UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("minute", "minutes"), 60.0),
}
"""Seconds of each unit that may follow the name in a column title: cpu (ms), gpu_us, time [s]."""

CELL_UNITS = UNITS | dict.fromkeys(("min", "mins", "m"), 60.0) | dict.fromkeys(("h", "hour", "hours"), 3600.0)
"""Seconds of each unit that may follow a number in a cell; in a column title, "min" would mean the minimum."""

_DURATION = re.compile(
    rf"(?:\d+(?:[.,]\d+)?(?:e[+-]?\d+)?\s*(?:{'|'.join(sorted(CELL_UNITS, key=len, reverse=True))})\s*)+", re.IGNORECASE
)
_DURATION_PART = re.compile(r"(\d+(?:[.,]\d+)?(?:e[+-]?\d+)?)\s*([a-zµμ]+)", re.IGNORECASE)

TableRow = tuple[int, list[str]]
"""Number of the line in which a row begins, and the cells of the row."""


class TextTable:
    """The cells of a file.

    Attributes:
        header: the first row, unchanged.
    """

    def __init__(self, data: bytes, name: str) -> None:
        """Decode a file and look at its first row.

        Raises:
            ForeignFile: the file is too large, not text, empty, or damaged in its first row.
        """
        self.name = name
        self._text = _decode_text(data, name)
        self._separator = _separator(self._text)
        first = next(self._parse_rows(), None)
        if first is None:
            raise ForeignFile(f"{name} is empty. Its first row must name the columns.")
        self.header = [cell.strip() for cell in first[1]]
        if len(self.header) > MAX_TIMINGS_COLUMNS:
            raise ForeignFile(f"{name} has {len(self.header):,} columns; the limit is {MAX_TIMINGS_COLUMNS:,}.")

    def rows(self, limit: int) -> Iterator[TableRow]:
        """Iterate over the rows below the first one, without blank rows; can be called repeatedly.

        Raises:
            ForeignFile: a row is wider or narrower than the first, or there are more rows than the limit.
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
                raise ForeignFile(f"{self.name} has more than {limit:,} readings, which is the limit.")
            yield line, cells

    def find_decimal_mark(self, places: Sequence[int], limit: int) -> Mark:
        """Return the decimal mark of some columns; the search is skipped if no cell can contain a comma.

        Raises:
            ForeignFile: a row is damaged, or there are more rows than the limit.
            InvalidValue: some numbers have a decimal point and some a decimal comma.
        """
        if "," not in self._text or (self._separator == "," and '"' not in self._text):
            return ""
        rows = self.rows(limit)
        return _find_common_mark((self.header[at], line, cells[at]) for line, cells in rows for at in places)

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
            raise ForeignFile(f"{self.name} is incomplete or damaged {where}: {as_line(str(error))}.") from None


class _Lines:
    """The lines of a text without comments; a row may span any number of lines, but its characters are limited."""

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
                raise ForeignFile(f"{self._name} has a row of more than {MAX_ROW:,} characters, which is the limit.")
            yield line

    def row_ends(self) -> None:
        """Reset the count of characters for the next row."""
        self._letters = 0


def _find_common_mark(cells: Iterable[tuple[str, int, str]]) -> Mark:
    """Return the decimal mark that all numbers (column, line, text) of a file share; empty if none shows it.

    Raises:
        InvalidValue: some numbers have a decimal point and some a decimal comma.
    """
    found: Mark = ""
    first = 0
    for column, line, cell in cells:
        if (mark := _infer_decimal_mark(cell.strip())) and found and mark != found:
            hint = f"a number above 0, with a decimal {_MARKS[found]} if it is not whole, as in line {first}"
            raise InvalidValue(f"{column} in line {line}", cell.strip(), hint)
        if mark and not found:
            found, first = mark, line
    return found


def parse_positive_number(column: str, text: str, line: int, mark: Mark = "") -> float:
    """Return a number above 0 that is near enough to 1 for charts to stay within the range of floats.

    Raises:
        InvalidValue: the text is not such a number; the message names the column and the line.
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
        hint = "a number above 0, with a decimal point if it is not whole" if "," in text else "a number above 0"
        raise InvalidValue(f"{column} in line {line}", text.strip(), hint)
    return value


def is_number(text: str) -> bool:
    """Return whether a cell is a number with a decimal point, or a whole number."""
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def parse_duration(text: str) -> float | None:
    """Return the seconds of a cell that names its units, such as `1.2 s` or `1m 32s`; None for any other cell."""
    if not _DURATION.fullmatch(text.strip()):
        return None
    return sum(float(n.replace(",", ".")) * CELL_UNITS[unit.lower()] for n, unit in _DURATION_PART.findall(text))


def find_unit_seconds(field: str, unit: str) -> float:
    """Return the seconds of a unit, which may be a unit per operation such as `ms/op`.

    Raises:
        InvalidValue: there is no such unit.
    """
    name = unit.lower().removesuffix("/op")
    if name not in CELL_UNITS:
        raise InvalidValue(field, unit, "one of s, ms, us, ns, min, h")
    return CELL_UNITS[name]


def _parse_localized(text: str, mark: Mark) -> float:
    """Parse a number with a decimal comma or with separators of thousands; NaN if the text is neither."""
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
    """Return the decimal mark that one number shows; a single comma or point may also separate thousands."""
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
    """Return the separator of cells: from Excel's line `sep=`, or the most frequent one of the first row."""
    lines = io.StringIO(text)
    first = next(lines, "")
    if excel := _EXCEL.fullmatch(first):
        return excel[1]
    rows = itertools.chain([first], lines)
    header = next((line for line in rows if line.strip() and not line.startswith("#")), "")
    return max(SEPARATORS, key=header.count)


def _decode_text(data: bytes, name: str) -> str:
    if len(data) > MAX_TIMINGS_BYTES:
        raise ForeignFile(f"{name} has {len(data):,} bytes; the limit is {MAX_TIMINGS_BYTES:,}.")
    if (lines := max(map(data.count, (b"\n", b"\r")))) > MAX_LINES:
        raise ForeignFile(f"{name} has {lines:,} lines; the limit is {MAX_LINES:,}.")
    encoding = "utf-16" if data.startswith(UTF_16) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        shown = "UTF-16" if encoding == "utf-16" else "UTF-8"
        raise ForeignFile(
            f"{name} is not {shown} text in line {line}; save it as CSV with the encoding UTF-8."
        ) from None


MAX_EXPORT_READINGS = 200_000
"""Maximum number of readings in one document."""

TIME_TITLE = "seconds"
"""Title of the column of times."""

_NUMBER = re.compile(r"(?<![:.\d])\d+(?:\.\d+)?")  # not the 0 of cuda:0
_WORD = re.compile(r"[A-Za-z][\w:]*")
_RULE = re.compile(r":?-+:?")

Benchmark = tuple[str, dict[str, str], list[float]]
"""Name, parameters and seconds of each reading."""


def convert_export(data: bytes, name: str) -> bytes:
    """Convert an export to a table as CSV; anything that is neither JSON nor Markdown is returned unchanged.

    Args:
        data: the bytes of the file.
        name: name of the file, for messages.

    Raises:
        ForeignFile: the file is a JSON document of an unknown program, or has no readings.
    """
    begin = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if begin == b"|":
        return _convert_markdown(data)
    if begin not in (b"{", b"["):
        return data
    try:
        document = json.loads(data.decode("utf-8-sig"))
        benchmarks = [one for one in _find_benchmarks(document) if one[2]]
        rows = _name_parameters(benchmarks)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise _unknown_document(name) from error
    if sum(len(seconds) for _, _, seconds in benchmarks) > MAX_EXPORT_READINGS:
        raise ForeignFile(f"{name} has more than {MAX_EXPORT_READINGS:,} readings, which is the limit.")
    return _write_table(rows)


def _convert_markdown(data: bytes) -> bytes:
    """Return the first table of a Markdown text as CSV, without emphasis marks and the line below the titles."""
    lines = data.decode("utf-8-sig", errors="replace").strip().splitlines()
    rows = [line.strip().strip("|").split("|") for line in itertools.takewhile(lambda line: "|" in line, lines)]
    text = io.StringIO(newline="")
    for number, row in enumerate(rows):
        if number != 1 or not all(_RULE.fullmatch(cell.strip()) for cell in row):
            csv.writer(text).writerow([cell.strip().strip("*`") for cell in row])
    return text.getvalue().encode()


def _unknown_document(name: str) -> ForeignFile:
    return ForeignFile(
        f"{name} is JSON, but not an export of hyperfine, pytest-benchmark, pyperf or Google Benchmark with at least "
        "one reading. "
        "Save the timings as CSV with the columns size, device and seconds."
    )


def _find_benchmarks(document: Any) -> Iterator[Benchmark]:
    if "results" in document:  # hyperfine --export-json
        for one in document["results"]:
            times = one.get("times") or [one["mean"]]
            yield str(one.get("command", "")), _as_text(one.get("parameters") or {}), _as_seconds(times)
    elif "machine_info" in document:  # pytest --benchmark-json
        for one in document["benchmarks"]:
            times = one["stats"].get("data") or [one["stats"]["median"]]
            yield str(one["name"]), _as_text(one.get("params") or {}), _as_seconds(times)
    elif "context" in document:  # Google Benchmark --benchmark_format=json
        for one in document["benchmarks"]:
            if one.get("run_type", "iteration") == "iteration":
                unit_s = find_unit_seconds("time_unit", one.get("time_unit", "ns"))
                yield str(one.get("run_name", one["name"])), {}, [float(one["real_time"]) * unit_s]
    else:  # pyperf
        for one in document["benchmarks"]:
            metadata = document.get("metadata", {}) | one.get("metadata", {})
            if metadata.get("unit", "second") != "second":
                continue
            values = itertools.chain.from_iterable(run.get("values", ()) for run in one["runs"])
            yield str(metadata.get("name", "")), {}, _as_seconds(values)


def _as_text(parameters: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in parameters.items()}


def _as_seconds(values: Iterable[Any]) -> list[float]:
    return [float(value) for value in values]


def _name_parameters(benchmarks: Sequence[Benchmark]) -> list[tuple[dict[str, str], list[float]]]:
    """Return parameters and readings of each benchmark.

    Unless every benchmark has parameters, the sizes and devices are read from the names.
    """
    if not benchmarks:
        raise ValueError("no readings")
    if all(parameters for _, parameters, _ in benchmarks):
        return [(parameters, seconds) for _, parameters, seconds in benchmarks]
    names = [name for name, _, _ in benchmarks]
    sizes, rests = _split_names(names)
    common = set.intersection(*(set(_WORD.findall(rest)) for rest in rests))
    devices = [" ".join(word for word in _WORD.findall(rest) if word not in common) or rest for rest in rests]
    return [
        ({"size": size, "device": device}, seconds)
        for size, device, (_, _, seconds) in zip(sizes, devices, benchmarks, strict=True)
    ]


def _split_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split each name into its size and the rest, choosing the number without which the fewest names differ."""
    found = [list(_NUMBER.finditer(name)) for name in names]
    count = min(map(len, found))
    if not count:
        raise ValueError("a name without a number")
    choices = []
    for place in range(1, count + 1):
        sizes = [numbers[-place][0] for numbers in found]
        rests = [
            name[: numbers[-place].start()] + " " + name[numbers[-place].end() :]
            for name, numbers in zip(names, found, strict=True)
        ]
        choices.append((sizes, rests))
    varied = [(sizes, rests) for sizes, rests in choices if len(set(sizes)) > 1] or choices
    return min(varied, key=lambda one: len(set(one[1])))


def _write_table(benchmarks: Sequence[tuple[Mapping[str, str], Sequence[float]]]) -> bytes:
    """Return the table as CSV: a column for each parameter that every benchmark has, and a row for each reading."""
    shared = [key for key in benchmarks[0][0] if all(key in parameters for parameters, _ in benchmarks)]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([*shared, TIME_TITLE])
    for parameters, seconds in benchmarks:
        writer.writerows([*(parameters[key] for key in shared), repr(value)] for value in seconds)
    return text.getvalue().encode()
