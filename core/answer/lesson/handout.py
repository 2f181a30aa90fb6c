"""A lesson on paper: what a page shows and what a student hands in, as plain pieces; as Markdown and as one HTML file.

A piece holds finished sentences, tables and charts, so that page and paper cannot differ. Names that a file or a
student wrote are escaped where they are put into Markdown or HTML. Charts go into the HTML as inline SVG; Markdown,
which has no charts of its own, carries the tables that they are drawn from. Nothing here measures or computes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from core import units
from core.answer.export import pictures
from core.errors import CrossoverError
from core.results.schema import Trial
from core.text import as_lines, in_html, in_markdown

_ADDRESS = re.compile(r"https?://[^\s<>]+")
_FENCE = re.compile(r"`{3,}")

CHART_WIDTH = 640
"""Pixels of a chart on paper; on a page it has the width of its container."""

NOT_DRAWN = "This chart cannot be drawn as a picture; the table below has its figures."

STYLE = """
body { font-family: system-ui, sans-serif; color: #1F2933; background: #FFFFFF; max-width: 46rem; margin: 2rem auto;
  padding: 0 1rem; line-height: 1.45; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.3rem; margin-top: 2rem; }
table { border-collapse: collapse; margin: 0.8rem 0; font-size: 0.9rem; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.3rem; }
th, td { border: 1px solid #DDE3E9; padding: 0.25rem 0.5rem; text-align: left; vertical-align: top; }
th { background: #F4F6F8; } pre { background: #F4F6F8; padding: 0.6rem; white-space: pre-wrap; }
svg { max-width: 100%; height: auto; } figure { margin: 1rem 0; } figcaption { font-weight: 600; }
blockquote { border-left: 4px solid #DDE3E9; margin-left: 0; padding-left: 1rem; white-space: pre-wrap; }
@media print { h2 { break-after: avoid; } figure, table { break-inside: avoid; } }
"""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text below a header.

    Attributes:
        title: what it shows.
        header: names of the columns.
        rows: as many cells each.
        prose: whether its cells are sentences, which a page shows as a list.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    prose: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A chart.

    Attributes:
        title: what it shows; also its name for who does not see it.
        spec: finished Vega-Lite specification of `core.answer.charts`, its rows inline.
    """

    title: str
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Lines of code with what they said, shown as they are.

    Attributes:
        title: what they are about.
        code: the lines.
        output: what they said.
    """

    title: str
    code: str
    output: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """One thing that is shown.

    Attributes:
        title: heading.
        sentences: paragraphs.
        figures: charts.
        tables: what the charts are drawn from, and what has no chart.
        listings: code and output.
        notes: what has to be known beside it, in small print.
    """

    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    listings: tuple[Listing, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A question with what the student said to it.

    Attributes:
        question: as it was asked.
        text: the reply; empty if there is none.
    """

    question: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Handout:
    """What a student hands in.

    Attributes:
        title: of the lesson.
        student: name, as written.
        date: when it was put together, for people.
        link: address of the page that shows it.
        predictions: made before anything was shown.
        sections: what was shown.
        answers: written after it.
        machine: facts on where it was measured, name and value.
    """

    title: str
    student: str
    date: str
    link: str
    predictions: tuple[Reply, ...]
    sections: tuple[Section, ...]
    answers: tuple[Reply, ...]
    machine: tuple[tuple[str, str], ...]


def fingerprint(trials: Sequence[Trial]) -> tuple[tuple[str, str], ...]:
    """Where rows were measured: a line for each fact in which they agree, all values where they do not."""
    columns: dict[str, list[str]] = {
        "Processor": [trial.cpu_name for trial in trials],
        "Threads usable": [f"{trial.cores_usable} of {trial.cores}" for trial in trials],
        "Memory": [units.memory(trial.memory_bytes) for trial in trials],
        "System": [trial.system for trial in trials],
        "Devices": [f"{trial.contender}: {trial.device_name}" for trial in trials],
        "torch": [trial.torch_version for trial in trials],
        "Crossover": [f"{trial.app_version} {trial.app_commit}".strip() for trial in trials],
        "Machine id": [trial.machine_id for trial in trials],
        "Measured": [min(t.started_at for t in trials), max(t.started_at for t in trials)] if trials else [],
        "Runs": [trial.run_id for trial in trials],
    }
    return tuple((name, ", ".join(dict.fromkeys(values))) for name, values in columns.items() if any(values))


def markdown(handout: Handout) -> str:
    """The handout as Markdown."""
    parts = [f"# {in_markdown(handout.title)}", in_markdown(_byline(handout)), _link(handout.link)]
    parts += _replies("Expected beforehand", handout.predictions)
    for section in handout.sections:
        parts += [f"## {in_markdown(section.title)}", *map(in_markdown, section.sentences)]
        parts += [f"Chart: {in_markdown(figure.title)} (drawn in the HTML version)." for figure in section.figures]
        for table in section.tables:
            parts += [f"**{in_markdown(table.title)}**", _table(table.header, table.rows)]
        for listing in section.listings:
            parts += [
                f"**{in_markdown(listing.title)}**",
                _fenced(listing.code, "python"),
                _fenced(listing.output, "text"),
            ]
        parts += [f"*{in_markdown(note)}*" for note in section.notes]
    parts += _replies("Answers", handout.answers)
    parts += ["## Measured on", _table(("Fact", "Value"), handout.machine)]
    return "\n\n".join(part for part in parts if part) + "\n"


def html(handout: Handout) -> str:
    """The handout as one HTML file that loads nothing from elsewhere and runs no script."""
    body = [
        f"<h1>{in_html(handout.title)}</h1>",
        f"<p>{in_html(_byline(handout))}</p>",
        f"<p>{in_html(handout.link)}</p>",
    ]
    body += _html_replies("Expected beforehand", handout.predictions)
    drawn = iter(_drawn([figure for section in handout.sections for figure in section.figures]))
    for section in handout.sections:
        body += _html_section(section, [next(drawn) for _ in section.figures])
    body += _html_replies("Answers", handout.answers)
    body += ["<h2>Measured on</h2>", _html_table("", ("Fact", "Value"), handout.machine)]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{in_html(handout.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _drawn(figures: Sequence[Figure]) -> list[str]:
    """Charts as SVG, with the width of a page of paper; a sentence in place of each if they cannot be drawn."""
    try:
        return pictures.drawings([figure.spec for figure in figures], CHART_WIDTH)
    except CrossoverError:
        return [f"<p>{NOT_DRAWN}</p>"] * len(figures)


def _byline(handout: Handout) -> str:
    return f"{handout.student.strip() or 'No name given'}, {handout.date}"


def _html_section(section: Section, drawn: Sequence[str]) -> list[str]:
    """A section with its charts as they were drawn."""
    found = [f"<h2>{in_html(section.title)}</h2>", *(f"<p>{in_html(text)}</p>" for text in section.sentences)]
    for figure, picture in zip(section.figures, drawn, strict=True):
        found.append(f"<figure><figcaption>{in_html(figure.title)}</figcaption>\n{picture}</figure>")
    found += [_html_table(table.title, table.header, table.rows) for table in section.tables]
    for listing in section.listings:
        found.append(f"<p><b>{in_html(listing.title)}</b></p>")
        found += [f"<pre>{in_html(text)}</pre>" for text in (listing.code, listing.output)]
    return [*found, *(f"<p><small>{in_html(note)}</small></p>" for note in section.notes)]


def _html_replies(title: str, replies: Iterable[Reply]) -> list[str]:
    found = [
        f"<p><b>{in_html(reply.question)}</b></p>\n"
        f"<blockquote>{in_html(reply.text.strip() or 'No reply.')}</blockquote>"
        for reply in replies
    ]
    return [f"<h2>{title}</h2>", *found] if found else []


def _html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"<caption>{in_html(title)}</caption>"] if title else []
    lines.append("<tr>" + "".join(f"<th>{in_html(cell)}</th>" for cell in header) + "</tr>")
    lines += ["<tr>" + "".join(f"<td>{in_html(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _replies(title: str, replies: Iterable[Reply]) -> list[str]:
    found = []
    for reply in replies:
        lines = [line for line in as_lines(reply.text).splitlines() if line.strip()] or ["No reply."]
        found += [f"**{in_markdown(reply.question)}**", "\n>\n".join(f"> {in_markdown(line)}" for line in lines)]
    return [f"## {title}", *found] if found else []


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head, *body = [f"| {' | '.join(map(in_markdown, line))} |" for line in (header, *rows)]
    return "\n".join([head, f"|{'---|' * len(header)}", *body])


def _fenced(text: str, language: str) -> str:
    """Lines between fences that are longer than any in them."""
    shown = as_lines(text)
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCE.findall(shown))])
    return f"{fence}{language}\n{shown}\n{fence}"


def _link(address: str) -> str:
    """An address to be followed; anything else as it is."""
    return f"Link: <{address}>" if _ADDRESS.fullmatch(address) else in_markdown(f"Link: {address}")
