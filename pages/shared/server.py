"""What happens once, when the server starts, so that the first visitor does not wait for it or stumble over it.

Four things. Streamlit takes a folder called `pages` for its older kind of app until some session has called
`st.navigation`, and answers the first deep link with "page not found": it is told at once. The heavy imports of
the charts are made in the background. What they leave stays for good, so it is taken out of the rounds of Python's
garbage collector, each of which would hold back every visitor for some 50 ms. And, as `streamlit run` does by itself
for an app without `st.App`, a browser is opened, unless the server is headless.
"""

import asyncio
import gc
import importlib
import logging
import webbrowser
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from core import policy

CHART_MODULES = ("core.answer.charts.runs", "core.answer.charts.studies", "core.results.exchange", "core.jobs.runner")
"""What the first page imports: a second of work that is best begun before its visitor comes."""

REPORT_MODULES = ("sklearn.metrics",)
REPORT_DELAY_S = 10.0
"""What the first result imports: two seconds of work that must not compete with drawing the first page."""

_log = logging.getLogger(__name__)

BROWSER_DELAY_S = 0.5
"""From here until the server listens takes a few milliseconds; a browser that finds nobody there gives up."""


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    """Prepare the server, and leave it to Streamlit."""
    PagesManager.uses_pages_directory = False
    if fault := policy.current().fault:
        _log.error("Nothing can be run until the host's settings are mended: %s", fault)
    warming = asyncio.create_task(_warm_up())
    if not st.get_option("server.headless"):
        asyncio.get_running_loop().call_later(BROWSER_DELAY_S, webbrowser.open, _address())
    yield
    warming.cancel()


async def _warm_up() -> None:
    await asyncio.to_thread(_import, CHART_MODULES)
    gc.freeze()
    await asyncio.sleep(REPORT_DELAY_S)
    await asyncio.to_thread(_import, REPORT_MODULES)
    gc.freeze()


def _import(modules: Iterable[str]) -> None:
    for name in modules:
        importlib.import_module(name)


def _address() -> str:
    return f"http://localhost:{st.get_option('server.port')}{st.get_option('server.baseUrlPath')}"
