"""Parts of a page that do not take each other along: what goes wrong in one is said in its place."""

import logging
from collections.abc import Callable
from typing import ParamSpec

import streamlit as st

from core.errors import CrossoverError
from core.question.fields import refused
from pages.shared.text import plain

P = ParamSpec("P")

_log = logging.getLogger(__name__)


def draw_isolated(part: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Draw a part of a page; the rest is drawn whatever becomes of it."""
    try:
        part(*args, **kwargs)
    except CrossoverError as error:
        st.error(plain(refused.format_page_error(error)))
    except Exception:
        _log.exception("A part of a page could not be drawn")
        st.error("This part of the page could not be drawn, and the server's log says why. The rest of it works.")
