"""A section: sentences, charts, tables, code and notes of a tutorial, a lesson or a case.

Pages, students' reports and the command line show the same sections. Nothing here measures or computes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...text import align_columns, as_lines


@dataclass(frozen=True, kw_only=True)
class SectionTable:
    """Rows of text below a header; with `prose`, the cells are sentences and a page shows a list."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    prose: bool = False


@dataclass(frozen=True, kw_only=True)
class SectionFigure:
    """A chart: its title, which is also its name for screen readers, and a specification of `core.answer.charts`."""

    title: str
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SectionListing:
    """Lines of code with their output, shown unchanged."""

    title: str
    code: str
    output: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section: paragraphs, charts, the tables behind them, code, and notes in small print."""

    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[SectionFigure, ...] = ()
    tables: tuple[SectionTable, ...] = ()
    listings: tuple[SectionListing, ...] = ()
    notes: tuple[str, ...] = ()


def sections_text(sections: Iterable[Section]) -> str:
    """Return sections for a terminal; a chart is left out, since its figures are in the tables."""
    return "\n\n".join("\n".join(_section_lines(section)) for section in sections)


def _section_lines(section: Section) -> Iterator[str]:
    yield section.title
    yield from section.sentences
    for table in section.tables:
        yield from ("", table.title)
        lines = [": ".join(row) for row in table.rows] if table.prose else align_columns([table.header, *table.rows])
        yield from (f"  {line}" for line in lines)
    for listing in section.listings:
        yield from ("", listing.title)
        yield from (f"    {line}" for line in as_lines(listing.code).splitlines())
        yield from (f"  → {line}" for line in as_lines(listing.output).splitlines())
    yield from section.notes
