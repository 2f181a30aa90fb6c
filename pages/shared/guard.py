"""ASGI middleware in front of Streamlit's routes: security headers, closed routes, and limits of addresses and files.

Streamlit sends no security headers, shows the names and sizes of its caches to everybody, and keeps any number of files
of any session for as long as the session. So each session has a share, and if all together are too many, the files of
the session that has brought none for longest go first. How many connections are let in, and how slow they may be, is
the business of a proxy (docs/hosting.md). The content of a page or a file is not looked at here.
"""

import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from typing import Any

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.websockets import WebSocket
from streamlit import runtime

from pages.shared import links, permits

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

FILES_PER_SESSION = 4
SESSION_BYTES = 20 * 2**20
"""What one session may have here: as many of the largest files."""

UPLOADED_BYTES = 256 * 2**20
"""What all sessions may have here, with what is on its way."""

Sizes = dict[str, dict[str, int]]
"""Session -> file -> bytes."""

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

_CLOSED = re.compile(r"/_stcore/+metrics(/|$)")
_UPLOAD = re.compile(r"/_stcore/+upload_file/+([^/]+)/")


class Guard:
    """Stands before Streamlit's own routes."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._uploads = Uploads()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is refused, hand on the rest, and put the headers on both."""
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
        """Hand on an upload if there is room for it; Streamlit bounds the size of each."""
        size = read_size(Headers(scope=scope))
        status, reason = self._uploads.refusal(session_id, size)
        if reason:
            headers = {"connection": "close"}  # nobody reads what it goes on to send
            await PlainTextResponse(reason, status_code=status, headers=headers)(scope, receive, send)
            return
        with self._uploads.expect(session_id, size):
            await self._app(scope, receive, send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on a websocket unless its address is too long."""
        if _is_too_long(scope):
            await WebSocket(scope, receive, send).close()
        else:
            await self._app(scope, receive, send)


class Uploads:
    """Files that are on their way, and those that have come."""

    def __init__(self) -> None:
        self._coming: list[tuple[str, int]] = []
        self._seen: dict[str, float] = {}

    def refusal(self, session_id: str, size: int) -> tuple[int, str]:
        """Why a session may not bring a file of some bytes now, as a status of HTTP and a sentence; empty if it may."""
        if reason := permits.may_upload():
            return 403, reason
        if not runtime.exists() or not runtime.get_instance().is_active_session(session_id):
            return 400, "There is no such session."
        stored = _stored_bytes()
        own = list(stored.get(session_id, {}).values())
        coming = [bytes_ for name, bytes_ in self._coming if name == session_id]
        if len(own) + len(coming) >= FILES_PER_SESSION or sum(own) + sum(coming) + size > SESSION_BYTES:
            return 429, f"There are {FILES_PER_SESSION} files of yours here already; reload the page to begin anew."
        if not self._make_room(size, session_id, stored):
            return 503, "The server takes as many files as it can; try again in a minute."
        return 200, ""

    @contextlib.contextmanager
    def expect(self, session_id: str, size: int) -> Iterator[None]:
        """Count a file for as long as it is on its way."""
        entry = (session_id, size)
        self._coming.append(entry)
        try:
            yield
        finally:
            self._coming.remove(entry)
            self._seen[session_id] = time.monotonic()

    def _make_room(self, size: int, session_id: str, stored: Sizes) -> bool:
        """Let files go until one more of some bytes fits beside what is kept and on its way; whether it does."""
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
    """Return the bytes that an upload announces, at most those of the largest one, which also stands for none."""
    largest = int(st.get_option("server.maxUploadSize")) * 2**20
    text = headers.get("content-length", "")
    return min(int(text), largest) if text.isascii() and text.isdigit() and len(text) < 20 else largest


def _stored_bytes() -> Sizes:
    """What Streamlit keeps."""
    kept = list(_files().file_storage.items())
    return {name: {file_id: len(file.data) for file_id, file in list(files.items())} for name, files in kept}


def _files() -> Any:
    return runtime.get_instance().uploaded_file_mgr


def _refusal(scope: Scope) -> Response | None:
    """The answer to what is not let in; None to what is."""
    if _is_too_long(scope):
        return PlainTextResponse("This address is longer than any that this app uses.", status_code=414)
    if _CLOSED.search(scope["path"]):
        return PlainTextResponse("Not found", status_code=404)
    return None


def _is_too_long(scope: Scope) -> bool:
    return len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"]) > links.MAX_LETTERS


def _add_headers(send: Send) -> Send:
    """Puts the headers on an answer."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


MIDDLEWARE = (Middleware(Guard),)
"""What `st.App` is given."""
