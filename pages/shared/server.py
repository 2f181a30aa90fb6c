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
import time
import webbrowser
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

import streamlit as st
from streamlit import config, runtime
from streamlit.logger import get_logger
from streamlit.runtime.pages_manager import PagesManager

from core.errors import CrossoverError
from core.question import policy
from core.text import clean_logs, to_terminal
from pages.shared import capacity, permits, queries

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


FILES_PER_SESSION = 4
SESSION_BYTES = 20 * 2**20
"""What one session may have here: as many of the largest files."""

UPLOADED_BYTES = 256 * 2**20
"""What all sessions may have here, with what is on its way."""

AT_ONCE_EACH, AT_ONCE = 2, 32
"""Files that may be on their way, from one session and from all."""

Sizes = dict[str, dict[str, int]]
"""Session → file → bytes."""


class Uploads:
    """What is on its way, and what has come."""

    def __init__(self) -> None:
        self._under_way: list[tuple[str, int]] = []
        self._seen: dict[str, float] = {}

    def refusal(self, session_id: str, size: int) -> tuple[int, str]:
        """Why a session may not bring a file of some bytes now, as a status of HTTP and a sentence; empty if it may."""
        if reason := permits.may_upload():
            return 403, reason
        if not runtime.exists() or not runtime.get_instance().is_active_session(session_id):
            return 400, "There is no such session."
        stored = _stored_bytes()
        own = list(stored.get(session_id, {}).values())
        coming = [coming for of, coming in self._under_way if of == session_id]
        if len(own) + len(coming) >= FILES_PER_SESSION or sum(own) + sum(coming) + size > SESSION_BYTES:
            return 429, f"There are {FILES_PER_SESSION} files of yours here already; reload the page to begin anew."
        if len(coming) >= AT_ONCE_EACH:
            return 429, f"{AT_ONCE_EACH} files of yours are on their way already; try again when one has come."
        if len(self._under_way) >= AT_ONCE or not self._make_room(size, session_id, stored):
            return 503, "The server takes as many files as it can; try again in a minute."
        return 200, ""

    @contextlib.contextmanager
    def on_its_way(self, session_id: str, size: int) -> Iterator[None]:
        """For as long as a file comes, its place is taken."""
        entry = (session_id, size)
        self._under_way.append(entry)
        try:
            yield
        finally:
            self._under_way.remove(entry)
            self._seen[session_id] = time.monotonic()

    def _make_room(self, size: int, session_id: str, stored: Sizes) -> bool:
        """Let files go until one more of some bytes fits beside what is kept and on its way; whether it does."""
        self._seen = {name: at for name, at in self._seen.items() if name in stored}
        taken = sum(sum(files.values()) for files in stored.values()) + sum(coming for _, coming in self._under_way)
        excess = taken + size - UPLOADED_BYTES
        spared = {session_id, *(of for of, _ in self._under_way)}
        idle = sorted((name for name in stored if name not in spared), key=lambda name: self._seen.get(name, 0.0))
        for name in idle:
            for file_id, kept in stored[name].items():
                if excess <= 0:
                    return True
                _files().remove_file(name, file_id)
                excess -= kept
        return excess <= 0


def announced_bytes(headers: Mapping[str, str]) -> int:
    """Bytes that an upload says it has; those of the largest one where it does not say, or more, which is refused."""
    largest = int(config.get_option("server.maxUploadSize")) * 2**20
    text = headers.get("content-length", "")
    return min(int(text), largest) if text.isascii() and text.isdigit() and len(text) < 20 else largest


def _stored_bytes() -> Sizes:
    """What Streamlit keeps."""
    kept = list(_files().file_storage.items())
    return {name: {file_id: len(file.data) for file_id, file in list(files.items())} for name, files in kept}


def _files() -> Any:
    return runtime.get_instance().uploaded_file_mgr
