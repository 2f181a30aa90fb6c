"""Work of the server at its start, so that the first visitor neither waits nor gets an error.

Streamlit treats a folder called `pages` as an app of its older kind until a session has called `st.navigation`. Until
then it answers a deep link with "page not found", so that is switched off at once. Modules of all pages are imported
in the background, and the lists of stored results are read, while the first browser still loads the app. So this module
imports neither pages nor tables at its top: a server listens after a second instead of two. Imported objects are never
freed, so they are excluded from Python's garbage collection, which would otherwise delay every visitor by some 50 ms
each time. A browser is opened unless the server is headless, as `streamlit run` does for an app without `st.App`.
Warnings for the operator of the server are logged once, a line each. A proxy limits the number of visitors and the time
of each (docs/hosting.md).

The ASGI middleware in front of Streamlit's routes adds security headers, closes routes, and limits addresses and files.

Streamlit sends no security headers, and shows the names and sizes of its caches to every visitor. It also stores any
number of files of a session until the session ends. So each session has a limit. If all files together are too many,
the session without an upload for the longest time loses its files first. A proxy limits the number of connections and
slow ones (docs/hosting.md). The content of pages and files is not inspected here.
"""

import asyncio
import contextlib
import gc
import importlib.abc
import re
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from importlib.machinery import ModuleSpec
from typing import Any

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.websockets import WebSocket
from streamlit import runtime
from streamlit.logger import get_logger
from streamlit.runtime.pages_manager import PagesManager

from core.errors import CrossoverError
from core.question import policy
from core.text import clean_logs, to_terminal
from pages.shared import links

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

MOST_DESCRIPTORS = 16_384
"""Limit of open files to set if the system allows more; one process is too slow for more visitors."""

MACOS_DESCRIPTORS = 10_240
"""Largest limit that macOS accepts, although it reports none."""

IMPORTS = threading.Lock()
"""Held while pages are imported. Two threads that import the same modules at once could see one half imported."""

ANY_NAME = (
    "This server accepts every host name, so a page of another site can reach it through a name of that site. "
    "Set server.allowedHosts to the names of the server; see docs/hosting.md."
)

_log = get_logger(__name__)

BROWSER_DELAY_S = 0.5
"""Delay before the browser opens: the server listens after a few milliseconds, and an earlier browser gives up."""


@contextlib.asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    """Prepare the server, then leave it to Streamlit."""
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
        _log.error("Nothing can be run until the host's settings are fixed: %s", to_terminal(fault))
    if policy.find_policy_file() and not st.get_option("server.allowedHosts"):
        _log.warning(ANY_NAME)


async def _warm_up() -> None:
    await asyncio.to_thread(_import_pages)
    gc.freeze()
    await asyncio.to_thread(_read_results)


class _PandasBlocker(importlib.abc.MetaPathFinder):
    """Makes pandas look as if it was not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Refuse to find pandas; return None for all other modules."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not needed yet", name=fullname)
        return None


def _postpone_pandas() -> None:
    """Let pyarrow import pandas for the first data frame, not for its first list.

    It checks once whether a list is a series of pandas, and imports pandas for that: a third of a second, which the
    first page does not need. For a data frame it looks again.
    """
    import pyarrow as pa  # see the top of this module

    blocker = _PandasBlocker()
    sys.meta_path.insert(0, blocker)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(blocker)


def _import_pages() -> None:
    """Import what all pages share: half a second of work that should begin before the first visitor arrives."""
    with IMPORTS:
        _postpone_pandas()
        from pages.shared import layout  # noqa: F401


def _read_results() -> None:
    """Read what the first page shows of stored results, into the caches of all visitors."""
    from pages.shared import queries  # imported by now

    with contextlib.suppress(CrossoverError):  # pages show the error
        queries.list_study_lines()
        queries.compare_with_predictions()


HEALTH_S = 5.0
"""Seconds for which an answer on the server's health is reused: the check writes to the disk, so it must be rare."""

_health: tuple[float, dict[str, Any]] = (-HEALTH_S, {})


def health(_request: Request) -> JSONResponse:
    """Return whether measurements can be queued and stored."""
    global _health
    asked_at, found = _health
    if time.monotonic() - asked_at >= HEALTH_S:
        found = state_of_server()
        _health = (time.monotonic(), found)
    return JSONResponse(found, status_code=200 if found["ok"] else 503, headers={"cache-control": "no-store"})


def state_of_server() -> dict[str, Any]:
    """Return the state of the store, the worker and the queue, in words and counts.

    The worker exits when there is no work and is started for new work. So its absence is a fault only if a job is
    waiting.
    """
    from core.results.store import Store  # see the top of this module
    from pages.shared import queries

    store = queue = "well"
    waiting, worker = 0, "away"
    for fault, check in (("cannot be written", Store.check_writable), ("cannot be read", Store.check_readable)):
        try:
            check(queries.open_store())
        except CrossoverError:
            store = fault
            break
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
"""Routes to pass to `st.App`."""


Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

FILES_PER_SESSION = 4
SESSION_BYTES = 20 * 2**20
"""Largest total size of the files of one session: four of the largest files."""

UPLOADED_BYTES = 256 * 2**20
"""Largest total size of the files of all sessions, with the uploads that are under way."""

Sizes = dict[str, dict[str, int]]
"""Size in bytes of each file, by session and file."""

CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        # Vega makes functions of a chart's expressions; they come from the app, never from a row
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",  # Streamlit styles its widgets where it draws them
        "img-src 'self' data: blob:",  # no pictures of other hosts, which could count visitors
        "font-src 'self' data:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "frame-src 'self' blob: data:",
        "frame-ancestors 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
    )
)

HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}

_CLOSED = re.compile(r"/_stcore/+metrics(/|$)")
_UPLOAD = re.compile(r"/_stcore/+upload_file/+([^/]+)/")


class Guard:
    """Middleware in front of Streamlit's own routes."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._uploads = Uploads()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer refused requests, pass on the others, and add the headers to both."""
        match scope["type"]:
            case "http":
                await self._answer(scope, receive, _add_headers(send))
            case "websocket":
                await self._connect(scope, receive, send)
            case _:
                await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = _refusal(scope)
        if refused is not None:
            await refused(scope, receive, send)
        elif scope["method"] == "PUT" and (found := _UPLOAD.search(scope["path"])):
            await self._upload(found[1], scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _upload(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on an upload if it fits into the limits; Streamlit limits the size of each file."""
        size = read_size(Headers(scope=scope))
        status, reason = self._uploads.refusal(session_id, size)
        if reason:
            headers = {"connection": "close"}  # the rest of the upload is not read
            await PlainTextResponse(reason, status_code=status, headers=headers)(scope, receive, send)
            return
        with self._uploads.expect(session_id, size):
            await self._app(scope, receive, send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a websocket unless its address is too long."""
        if _is_too_long(scope):
            await WebSocket(scope, receive, send).close()
        else:
            await self._app(scope, receive, send)


class Uploads:
    """Files that are being uploaded, and those that have arrived."""

    def __init__(self) -> None:
        self._coming: list[tuple[str, int]] = []
        self._seen: dict[str, float] = {}

    def refusal(self, session_id: str, size: int) -> tuple[int, str]:
        """Return why a session may not upload a file now, as an HTTP status and a sentence; 200 and empty if it may."""
        from pages.shared import permits  # a session has imported it

        if reason := permits.may_upload():
            return 403, reason
        if not runtime.exists() or not runtime.get_instance().is_active_session(session_id):
            return 400, "There is no such session."
        stored = _stored_bytes()
        own = list(stored.get(session_id, {}).values())
        coming = [bytes_ for name, bytes_ in self._coming if name == session_id]
        if len(own) + len(coming) >= FILES_PER_SESSION or sum(own) + sum(coming) + size > SESSION_BYTES:
            return 429, f"There are {FILES_PER_SESSION} files of yours here already; reload the page to start again."
        if not self._make_room(size, session_id, stored):
            return 503, "The server is busy with files. Try again in a minute."
        return 200, ""

    @contextlib.contextmanager
    def expect(self, session_id: str, size: int) -> Iterator[None]:
        """Count a file during its upload."""
        entry = (session_id, size)
        self._coming.append(entry)
        try:
            yield
        finally:
            self._coming.remove(entry)
            self._seen[session_id] = time.monotonic()

    def _make_room(self, size: int, session_id: str, stored: Sizes) -> bool:
        """Remove files until a new one fits into the limit with stored and arriving ones; return whether it fits."""
        self._seen = {name: at for name, at in self._seen.items() if name in stored}
        taken = sum(sum(files.values()) for files in stored.values()) + sum(bytes_ for _, bytes_ in self._coming)
        excess = taken + size - UPLOADED_BYTES
        spared = {session_id, *(name for name, _ in self._coming)}
        idle = sorted((name for name in stored if name not in spared), key=lambda name: self._seen.get(name, 0.0))
        for name in idle:
            for file_id, kept in stored[name].items():
                if excess <= 0:
                    return True
                _files().remove_file(name, file_id)
                excess -= kept
        return excess <= 0


def read_size(headers: Mapping[str, str]) -> int:
    """Return the announced size of an upload in bytes, at most the largest allowed size.

    Without a valid size, returns the largest allowed size.
    """
    largest = int(st.get_option("server.maxUploadSize")) * 2**20
    text = headers.get("content-length", "")
    return min(int(text), largest) if text.isascii() and text.isdigit() and len(text) < 20 else largest


def _stored_bytes() -> Sizes:
    """Return the size of every file that Streamlit stores."""
    kept = list(_files().file_storage.items())
    return {name: {file_id: len(file.data) for file_id, file in list(files.items())} for name, files in kept}


def _files() -> Any:
    return runtime.get_instance().uploaded_file_mgr


def _refusal(scope: Scope) -> Response | None:
    """Return the answer to a refused request; None if it is allowed."""
    if _is_too_long(scope):
        return PlainTextResponse("This address is too long.", status_code=414)
    if _CLOSED.search(scope["path"]):
        return PlainTextResponse("Not found", status_code=404)
    return None


def _is_too_long(scope: Scope) -> bool:
    return len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"]) > links.MAX_LETTERS


def _add_headers(send: Send) -> Send:
    """Return a `send` that adds the headers to an answer."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


MIDDLEWARE = (Middleware(Guard),)
"""Middleware to pass to `st.App`."""
