"""Somebody's own timings, as CSV, with cells, rows or bytes changed: refused in a sentence, or answered."""

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from core import __main__ as command_line
from core.answer import timings_csv
from core.answer.charts import study_charts
from core.answer.judgement import Crossover, Evidence
from pages.explore import view
from tests.fuzz import entries, mutations, oddities
from tests.fuzz.campaign import Fuzzer, Given, Subject
from tests.fuzz.watching import Fault, Gauge, require_sentence, said

DRAWN, COMMANDED, NO_FILE = 0.05, 0.1, 0.02
"""Shares: of what is answered that is drawn, which takes most of the time; of the cases that the command line reads,
too; and of those in which something is named there that is no file."""

WORDS = (
    *(
        "nan",
        "inf",
        "-1",
        "0",
        "1e999",
        "1e-320",
        "1e308",
        "9" * 400,
        "",
        "=1+1",
        "\x00",
        "1_0",
        "٣",
        " 7 ",
        "1,5",
        "½",
    ),
    *('"', "'", "#", "1;2", "0x10", oddities.HTML),
)
"""Cells that are no number, or hardly one."""


WIDE = "size,cpu (ms),gpu_s,cpu (ms)\n" + "".join(f"{size},{size / 7},0.05,{size / 8}\n" for size in (16, 64, 256, 999))
"""The other form of a table: a row a size, and a column for each reading of a device."""

ENTRIES = tuple(name for name in entries.ENTRIES if name != "a pipe")
"""Timings may come through a pipe, and are waited for."""


class Timings:
    """The sample of the page, changed."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "mine.csv"

    def good(self) -> Given:
        """The sample itself."""
        return _given(view.SAMPLE.encode(), "the sample")

    def make(self, draw: Random) -> Given:
        """Cells, rows or bytes of it changed."""
        if draw.random() < NO_FILE:
            entry = draw.choice(ENTRIES)
            return Given(data=b"", entry=entry, what=f"{entry} instead of timings", suffix=".csv")
        lines = [line.split(",") for line in draw.choice((view.SAMPLE, WIDE)).strip().split("\n")]
        for _ in range(draw.choice((1, 1, 2, 4))):
            _change(draw, lines)
        separator, end = draw.choice((",", ",", ",", ";", "\t")), draw.choice(("\n", "\n", "\r\n", "\r"))
        text = end.join(separator.join(line) for line in lines)
        text = draw.choice(("", "", "", "sep=;" + end, "# " + end)) + text
        data = text.encode(draw.choice(("utf-8", "utf-8", "utf-16")), errors="surrogatepass")
        if draw.random() < 0.25:
            data = mutations.octets(draw, data)
        return _given(data, "changed timings")

    def take(self, given: Given, draw: Random, gauge: Gauge) -> bool:
        """Read it and find the crossover."""
        if given.entry or draw.random() < COMMANDED:
            self._command(given, gauge)
        with gauge.part("reading"):
            found = said(lambda: _located(given.data))
        if found is None:
            return False
        answer, evidence = found
        if not answer.sentence:
            raise Fault("an answer without a sentence")
        if answer.estimate is not None and not answer.sizes[0].size <= answer.estimate <= answer.sizes[-1].size:
            raise Fault(
                f"a crossover at {answer.estimate} outside of {answer.sizes[0].size} to {answer.sizes[-1].size}"
            )
        if draw.random() < DRAWN:
            with gauge.part("drawing"):
                require_harmless(study_charts.crossover_chart(answer, evidence, kinds=None))
                require_harmless(study_charts.speedup_chart(answer, kinds=None))
        return True

    def _command(self, given: Given, gauge: Gauge) -> None:
        """Read it on the command line; raises Fault where that says something else than an answer or a reason."""
        entries.remove(self._file)
        if given.entry:
            entries.put(given.entry, self._file)
        else:
            self._file.write_bytes(given.data)
        answer, reason = io.StringIO(), io.StringIO()
        with gauge.part("the command"), contextlib.redirect_stdout(answer), contextlib.redirect_stderr(reason):
            status = command_line.main(["crossover", "--csv", str(self._file), "--json"])
        if status == 0:
            json.loads(answer.getvalue(), parse_constant=_refuse)
        for line in reason.getvalue().splitlines():
            require_sentence(line)
        if status not in (0, 1, 2) or (status and not reason.getvalue()):
            raise Fault(f"the command ended with {status} and {reason.getvalue()!r}")


def require_harmless(spec: dict[str, Any]) -> None:
    """Find out whether a finished chart is JSON of finite numbers; text in it is data, which Vega never reads as HTML.

    Raises:
        ValueError: it is not.
    """
    json.dumps(spec, allow_nan=False)


def _refuse(name: str) -> None:
    raise Fault(f"{name} is no JSON")


def _located(data: bytes) -> tuple[Crossover, tuple[Evidence, ...]]:
    read = timings_csv.read_timings(data, "mine.csv")
    return timings_csv.timings_crossover(read), tuple(read.evidence)


def _given(data: bytes, what: str) -> Given:
    return Given(data=data, what=what, suffix=".csv")


def _change(draw: Random, lines: list[list[str]]) -> None:
    line = draw.choice(lines)
    change: Callable[[Random, list[str]], None] | None = draw.choice((_odd, _odd, _wide, _other, _other, None))
    if change and line:
        change(draw, line)
    elif draw.random() < 0.5:
        lines.insert(draw.randrange(len(lines)), list(line))
    elif draw.random() < 0.1:
        lines *= draw.choice((10, 300))
    else:
        draw.shuffle(lines)


def _odd(draw: Random, line: list[str]) -> None:
    line[draw.randrange(len(line))] = draw.choice(draw.choice((WORDS, WORDS, oddities.TEXTS)))


def _wide(draw: Random, line: list[str]) -> None:
    line.append("x") if draw.random() < 0.5 else line.pop()


def _other(draw: Random, line: list[str]) -> None:
    line[draw.choice((0, -1))] = repr(draw.lognormvariate(0, 20))


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[Subject]:
    yield Timings(folder)


FUZZER = Fuzzer(name="timings", about="CSV of somebody's own timings", total=4_000, opened=_opened)
