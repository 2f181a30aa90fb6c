"""What happens once, when the server starts, so that the first visitor does not wait for it or stumble over it.

Streamlit takes a folder called `pages` for its older kind of app until some session has called
`st.navigation`, and answers the first deep link with "page not found": it is told at once. The heavy imports of
the charts are made in the background, and what is stored is read for lists while the first browser still loads the
app. What imports leave stays for good, so it is taken out of the rounds of Python's garbage collector, each of which
would hold back every visitor for some 50 ms. As `streamlit run` does by itself for an app without `st.App`, a browser
is opened, unless the server is headless. And what whoever runs the server should know is said once, a line each.
How many visitors are let in, and how long each may take, is the business of a proxy (docs/hosting.md).
"""

import asyncio
import contextlib
import gc
import importlib
import time
import webbrowser
from collections.abc import AsyncIterator, Iterable
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from streamlit.logger import get_logger
from streamlit.runtime.pages_manager import PagesManager

from core.errors import CrossoverError
from core.question import policy
from core.text import clean_logs, to_terminal
from pages.shared import queries

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

MOST_DESCRIPTORS = 16_384
"""Open files to which the limit is raised where the system allows more; one process is too slow for more visitors."""

MACOS_DESCRIPTORS = 10_240
"""macOS reports no limit, and refuses more than this."""

CHART_MODULES = (
    "core.answer.charts.run_charts",
    "core.answer.charts.study_charts",
    "core.results.exchange",
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
    raise_descriptor_limit()
    _say()
    warming = asyncio.create_task(_warm_up())
    if not st.get_option("server.headless"):
        address = f"http://localhost:{st.get_option('server.port')}{st.get_option('server.baseUrlPath')}"
        asyncio.get_running_loop().call_later(BROWSER_DELAY_S, webbrowser.open, address)
    yield
    warming.cancel()


def raise_descriptor_limit() -> None:
    """Let this process open as many files as the system allows: each visitor takes up to four."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in (MOST_DESCRIPTORS, MACOS_DESCRIPTORS):
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return


def _say() -> None:
    if fault := policy.load_policy().fault:
        _log.error("Nothing can be run until the host's settings are mended: %s", to_terminal(fault))
    if policy.find_policy_file() and not st.get_option("server.allowedHosts"):
        _log.warning(ANY_NAME)


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


HEALTH_S = 5.0
"""How long an answer on the server's health is given again: asking must cost nothing, the disk is written for it."""

_health: tuple[float, dict[str, Any]] = (-HEALTH_S, {})


def health(_request: Request) -> JSONResponse:
    """Whether measurements can be asked for and kept."""
    global _health
    asked_at, found = _health
    if time.monotonic() - asked_at >= HEALTH_S:
        found = state_of_server()
        _health = (time.monotonic(), found)
    return JSONResponse(found, status_code=200 if found["ok"] else 503, headers={"cache-control": "no-store"})


def state_of_server() -> dict[str, Any]:
    """The store, the worker and the queue, in words and counts.

    The worker leaves when there is nothing to do and is started when there is: that it is away is no fault, unless
    somebody waits for it.
    """
    store = queue = "well"
    waiting, worker = 0, "away"
    try:
        queries.open_store().check_writable()
    except CrossoverError:
        store = "cannot be written"
    try:
        jobs = queries.open_queue().jobs()
        waiting = sum(job.state == "queued" for job in jobs)
        serving = queries.open_queue().worker_file.serving
        if serving and serving.process.alive:
            worker = "ready" if serving.ready else "starting"
    except (CrossoverError, OSError):
        queue = "cannot be read"
    stuck = waiting > 0 and worker == "away"
    ok = store == queue == "well" and not stuck
    return {"ok": ok, "store": store, "queue": queue, "waiting": waiting, "worker": worker}


ROUTES = (Route("/health", health),)
"""What `st.App` is given."""
