"""Pages as somebody sees them: drawn to their end, and of what others wrote nothing but text.

Each is drawn as by a server that has just begun: nothing is kept from one to the next.
"""

import contextlib
import dataclasses
import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import streamlit as st
from streamlit.components.v2 import component_manager
from streamlit.testing.v1 import AppTest

from core.files.project import PROJECT
from pages.classroom import access, findings
from pages.shared import layout, queries
from tests import hostile
from tests.fuzz.watching import Fault, Gauge

PAGE_S = 600
"""Patience with a page, by the wall clock."""

MARKDOWN = ("markdown", "caption", "info", "warning", "error", "success", "title", "header", "subheader")
"""Elements whose text a page reads as Markdown."""

NOISY = ("caching.cache_data_api", "scriptrunner_utils.script_run_context")
"""Parts of Streamlit's runtime that say every time that there is no server."""


@dataclass(frozen=True, kw_only=True)
class View:
    """A page with a link.

    Attributes:
        page: its file.
        link: parameters.
        session: what the session knows already.
    """

    page: str
    link: dict[str, Any] = dataclasses.field(default_factory=dict)
    session: dict[str, Any] = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Let Streamlit not say, at every page, that there is no server, nor look for components, as a server does once."""
    with contextlib.ExitStack() as quiet:
        manager, looks = component_manager.BidiComponentManager, "discover_and_register_components"
        quiet.enter_context(mock.patch.object(manager, looks, return_value=None))
        for name in NOISY:
            noisy = logging.getLogger(f"streamlit.runtime.{name}")
            quiet.enter_context(mock.patch.object(noisy, "disabled", True))
        yield


def forget() -> None:
    """Let the pages begin anew: nothing is kept, and nobody has tried a code."""
    queries._open_queue.cache_clear()
    st.cache_data.clear()
    st.cache_resource.clear()
    findings._findings.clear()
    findings._pools.clear()
    for counted in (access._tried, access._secrets_tried, access._joined, access._made):
        counted._buckets.clear()
    access._brought._buckets.clear()


def opened(view: View, gauge: Gauge, part: str) -> AppTest:
    """A page, drawn by a server that knows nothing yet.

    Raises:
        Fault: it shows an exception.
    """
    forget()
    app = AppTest.from_file(str(PROJECT / "streamlit_app.py"), default_timeout=PAGE_S)
    page, link = view.page, view.link
    if page.startswith("/"):  # an address of before
        page, link = layout.EXPLORE, layout.renew_link(page[1:], link)
    for name, value in link.items():
        app.query_params[name] = value
    for name, value in view.session.items():
        app.session_state[name] = value
    app.switch_page(page)
    drawn_again(app, gauge, part)
    return app


def drawn_again(app: AppTest, gauge: Gauge, part: str) -> None:
    """Draw a page after something was done on it; raises Fault as `opened` does."""
    with gauge.part(part), contextlib.redirect_stdout(io.StringIO()):  # Streamlit prints what it shows
        app.run()
    require_shown(app, part)


def require_shown(app: AppTest, part: str) -> None:
    """Find out whether a page was drawn to its end, and makes nothing of anybody's text; raises Fault."""
    if app.exception:
        raise Fault(f"{part} shows {[f'{one.message}: {one.stack_trace}' for one in app.exception]}")
    if not app.title and not app.main.children:
        raise Fault(f"{part} is empty")
    for element in (element for kind in MARKDOWN for element in getattr(app, kind)):
        if found := [meant for meant in hostile.meanings(str(element.value)) if hostile.STRANGER in meant]:
            raise Fault(f"{part} means something by a text: {found[:3]} in {element.value[:300]!r}")
