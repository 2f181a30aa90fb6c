"""What the server lets in and out besides pages: headers, uploads, and what it says of itself.

Streamlit sends no security headers, takes any number of files from any session whether its page asks for one or not,
and tells everybody the names and sizes of its caches. Nothing here knows what is in a page or a file.
"""

import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from streamlit import runtime

from core.errors import CrossoverError
from pages.shared import loaders, permits

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        # Vega makes functions of a chart's expressions; the chart's own expressions are ours, never a row's
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",  # Streamlit styles its widgets where it draws them
        "img-src 'self' data: blob:",  # no picture of another host: none can count our visitors
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

FILES_PER_SESSION = 4
UPLOADED_BYTES = 256 * 2**20
UPLOADS_AT_ONCE = 8
"""Files that one session may have here, what all may have together, and how many may be on their way."""

HEALTH_S = 5.0
"""How long an answer on the server's health is given again: asking must cost nothing, the disk is written for it."""

_CLOSED = re.compile(r"/_stcore/+metrics(/|$)")
_UPLOAD = re.compile(r"/_stcore/+upload_file/+([^/]+)/")


class Guard:
    """Stands before Streamlit's own routes."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._on_their_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is refused, hand on the rest, and put the headers on both."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def dressed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if _CLOSED.search(scope["path"]):
            await PlainTextResponse("Not found", status_code=404)(scope, receive, dressed)
        elif scope["method"] == "PUT" and (found := _UPLOAD.search(scope["path"])):
            await self._upload(found[1], scope, receive, dressed)
        else:
            await self._app(scope, receive, dressed)

    async def _upload(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on an upload if there is room for it; Streamlit bounds the size of each."""
        status, reason = refusal(session_id, self._on_their_way)
        if reason:
            await PlainTextResponse(reason, status_code=status)(scope, receive, send)
            return
        self._on_their_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._on_their_way -= 1


def refusal(session_id: str, on_their_way: int = 0) -> tuple[int, str]:
    """Why a session may not upload another file, as a status of HTTP and a sentence; empty if it may."""
    if reason := permits.may_upload():
        return 403, reason
    stored = runtime.get_instance().uploaded_file_mgr.file_storage if runtime.exists() else {}  # type: ignore[attr-defined]
    sizes = {name: [len(file.data) for file in files.values()] for name, files in list(stored.items())}
    if len(sizes.get(session_id, ())) >= FILES_PER_SESSION:
        return 429, f"There are {FILES_PER_SESSION} files of yours here already; reload the page to begin anew."
    if on_their_way >= UPLOADS_AT_ONCE or sum(map(sum, sizes.values())) >= UPLOADED_BYTES:
        return 503, "The server holds as many files as it can; try again in a few minutes."
    return 200, ""


_health: tuple[float, dict[str, Any]] = (-HEALTH_S, {})


def health(_request: Request) -> JSONResponse:
    """Whether measurements can be asked for and kept: for a proxy or a watcher, without names or paths."""
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
        loaders.results().check_writable()
    except CrossoverError:
        store = "cannot be written"
    try:
        jobs = loaders.queue().jobs()
        waiting = sum(job.state == "queued" for job in jobs)
        occupant = loaders.queue().seat.occupant
        if occupant and occupant.process.alive:
            worker = "ready" if occupant.ready else "starting"
    except (CrossoverError, OSError):
        queue = "cannot be read"
    stuck = waiting > 0 and worker == "away"
    ok = store == queue == "well" and not stuck
    return {"ok": ok, "store": store, "queue": queue, "waiting": waiting, "worker": worker}


MIDDLEWARE = (Middleware(Guard),)
ROUTES = (Route("/health", health),)
"""What `st.App` is given."""
