"""What happens once, when the server starts, so that the first visitor does not wait for it or stumble over it.

Streamlit takes a folder called `pages` for its older kind of app until some session has called
`st.navigation`, and answers the first deep link with "page not found": it is told at once. The heavy imports of
the charts are made in the background, and what is stored is read for lists while the first browser still loads the
app. What imports leave stays for good, so it is taken out of the rounds of Python's garbage collector, each of which
would hold back every visitor for some 50 ms. As `streamlit run` does by itself for an app without `st.App`, a browser
is opened, unless the server is headless. And what whoever runs the server should know is said once, a line each.
"""

import asyncio
import contextlib
import gc
import importlib
import webbrowser
from collections.abc import AsyncIterator, Iterable

import streamlit as st
from streamlit.logger import get_logger
from streamlit.runtime.pages_manager import PagesManager

from core.errors import CrossoverError
from core.question import policy
from core.text import clean_logs, to_terminal
from pages.shared import queries
from pages.shared.frame import capacity

CHART_MODULES = (
    "core.answer.charts.runs",
    "core.answer.charts.studies",
    "core.results.intake.exchange",
    "core.jobs.client",
)
"""What the first page imports: a second of work that is best begun before its visitor comes."""

REPORT_MODULES = ("sklearn.metrics",)
REPORT_DELAY_S = 10.0
"""What the first result imports: two seconds of work that must not compete with drawing the first page."""

ANY_NAME = (
    "This server answers under every name, so a page of another site can reach it through a name of its own: "
    "set server.allowedHosts to the names that it has, see docs/hosting.md."
)

_log = get_logger(__name__)

BROWSER_DELAY_S = 0.5
"""From here until the server listens takes a few milliseconds; a browser that finds nobody there gives up."""


@contextlib.asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    """Prepare the server, and leave it to Streamlit."""
    PagesManager.uses_pages_directory = False
    clean_logs()
    capacity.raise_limit()
    _say()
    chores = [asyncio.create_task(_warm_up()), asyncio.create_task(capacity.tidy_up())]
    if not st.get_option("server.headless"):
        address = f"http://localhost:{st.get_option('server.port')}{st.get_option('server.baseUrlPath')}"
        asyncio.get_running_loop().call_later(BROWSER_DELAY_S, webbrowser.open, address)
    yield
    for chore in chores:
        chore.cancel()


def _say() -> None:
    if fault := policy.load_policy().fault:
        _log.error("Nothing can be run until the host's settings are mended: %s", to_terminal(fault))
    if policy.find_policy_file() and not st.get_option("server.allowedHosts"):
        _log.warning(ANY_NAME)
    if (sessions := capacity.more_sessions()) is not None:
        _log.info("Room for %s sessions at once, with %s descriptors.", f"{sessions:,}", f"{capacity.limit():,}")


async def _warm_up() -> None:
    await asyncio.to_thread(_import, CHART_MODULES)
    gc.freeze()
    with contextlib.suppress(CrossoverError):  # whoever looks is told
        await asyncio.to_thread(queries.list_study_lines)
    await asyncio.sleep(REPORT_DELAY_S)
    await asyncio.to_thread(_import, REPORT_MODULES)
    gc.freeze()


def _import(modules: Iterable[str]) -> None:
    for name in modules:
        importlib.import_module(name)
