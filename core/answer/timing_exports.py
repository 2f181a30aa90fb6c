"""Exports of benchmark programs as a table of timings: JSON of several programs, and tables in Markdown.

Each reading becomes a row, each parameter a column. If a benchmark has no parameters, device and size are read from its
name: `train[cuda-512]`, `cpu_128`. Only the structure of the document is checked here; the resulting table is read like
any other.
"""

import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import ForeignFile
from .text_table import find_unit_seconds

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
