"""A lesson on paper: what a student hands in, as Markdown and as one HTML file.

Names that a file or a student wrote are escaped as they are put in. Charts go into the HTML as inline SVG; Markdown,
which has no charts of its own, carries the tables that they are drawn from. Nothing here measures or computes.
"""

import re
from collections.abc import Sequence

from core.answer.export import pictures
from core.answer.export.template import fill_template
from core.answer.lesson.handout import Handout, HandoutFigure
from core.errors import CrossoverError
from core.text import as_lines, to_html, to_markdown

_ADDRESS = re.compile(r"https?://[^\s<>]+")
_FENCE = re.compile(r"`{3,}")

CHART_WIDTH = 640
"""Pixels of a chart on paper; on a page it has the width of its container."""

NOT_DRAWN = "This chart cannot be drawn as a picture; the table below has its figures."


def handout_markdown(handout: Handout) -> str:
    """The handout as Markdown."""
    functions = {"in_markdown": to_markdown, "lines": _lines, "fenced": _fence_code}
    return fill_template("handout.md.j2", to_markdown, handout=handout, link=_link(handout.link), **functions)


def handout_html(handout: Handout) -> str:
    """The handout as one HTML file that loads nothing from elsewhere and runs no script."""
    drawn = iter(_draw_figures([figure for section in handout.sections for figure in section.figures]))
    sections = [(section, [(figure, next(drawn)) for figure in section.figures]) for section in handout.sections]
    return fill_template("handout.html.j2", to_html, handout=handout, sections=sections)


def _draw_figures(figures: Sequence[HandoutFigure]) -> list[str]:
    """Charts as SVG, with the width of a page of paper; a sentence in place of each if they cannot be drawn."""
    try:
        return pictures.draw_svgs([figure.spec for figure in figures], CHART_WIDTH)
    except CrossoverError:
        return [f"<p>{NOT_DRAWN}</p>"] * len(figures)


def _lines(text: str) -> list[str]:
    """The lines of a reply that say something."""
    return [line for line in as_lines(text).splitlines() if line.strip()] or ["No reply."]


def _fence_code(text: str, language: str) -> str:
    """Lines between fences that are longer than any in them."""
    shown = as_lines(text)
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCE.findall(shown))])
    return f"{fence}{language}\n{shown}\n{fence}"


def _link(address: str) -> str:
    """An address to be followed; anything else as it is."""
    return f"Link: <{address}>" if _ADDRESS.fullmatch(address) else to_markdown(f"Link: {address}")
