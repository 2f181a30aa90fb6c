"""Text that came from a file, a device or an error, made safe to stand in Markdown; and dates for people."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import streamlit as st

from core.errors import CrossoverError
from core.question import refusals
from core.text import to_page_markdown

plain = to_page_markdown
"""How pages call it; what does not go into Markdown has its own function in `core.text`."""


def bind_percent(text: str) -> str:
    """A text in which no figure is parted from its % at the end of a line."""
    return text.replace(" %", "\u00a0%").replace(" \\%", "\u00a0\\%")


@contextlib.contextmanager
def show_errors(box: Callable[[str], object] = st.error) -> Iterator[None]:
    """Say in a box what goes wrong here, in a part of a page or in a function; what comes after it is drawn."""
    try:
        yield
    except CrossoverError as error:
        box(plain(refusals.format_page_error(error)))


def parse_date(started_at: str) -> datetime | None:
    """When a row's run began; None where its file says something else."""
    try:
        return datetime.fromisoformat(started_at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def format_date(started_at: str) -> str:
    """When a row's run began, for people: "21 November 2026, 09:30 UTC"; a text that is no date as it is."""
    when = parse_date(started_at)
    return f"{when:%d %B %Y, %H:%M} UTC" if when else started_at
