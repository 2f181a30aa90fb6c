"""What stands before Streamlit's own routes: what is let in, how much of it, and the headers on every answer.

Streamlit sends no security headers, lets in as many as come until it has no descriptor left for any of them, takes
files without end, and tells everybody the names and sizes of its caches. What is in a page or a file is not known here.
"""

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.websockets import WebSocket

from pages.shared import capacity, links
from pages.shared.capacity import App, Message, Receive, Scope, Send
from pages.shared.server import Uploads, announced_bytes

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

FULL = "This server holds as many visitors as it can. This page tries again by itself in half a minute."
FULL_HEADERS = {"retry-after": "30", "refresh": "30", "cache-control": "no-store"}

TRY_AGAIN_LATER = 1013
"""Why a websocket is closed, as its protocol says it."""

_CLOSED = re.compile(r"/_stcore/+metrics(/|$)")
_UPLOAD = re.compile(r"/_stcore/+upload_file/+([^/]+)/")
_STREAM = re.compile(r"/_stcore/+stream/?$")
_PART = re.compile(r"/(_stcore|static|media|component|auth|oauth2callback|health)(/|$)|/[^/]*\.[^/]*$")
"""What a page asks for once it is open; whatever else is asked for is a page."""


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
        elif scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
        else:
            await capacity.bounded(self._app, scope, receive, send)

    async def _upload(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on an upload if there is room for it; Streamlit bounds the size of each."""
        size = announced_bytes(Headers(scope=scope))
        status, reason = self._uploads.refusal(session_id, size)
        if reason:
            headers = {"connection": "close"}  # nobody reads what it goes on to send
            await PlainTextResponse(reason, status_code=status, headers=headers)(scope, receive, send)
            return
        with self._uploads.on_its_way(session_id, size):
            await capacity.bounded(self._app, scope, receive, send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a session begin, or go on, if there is room for it.

        From here until Streamlit has made the session nothing waits, so no second one can take the same place.
        """
        visitor = WebSocket(scope, receive, send)
        if _is_too_long(scope):
            await visitor.close()
        elif not _STREAM.search(scope["path"]) or _is_reconnection(visitor.headers) or capacity.has_room():
            await self._app(scope, receive, send)
        else:
            await visitor.accept(subprotocol=next(iter(scope.get("subprotocols", ())), None))
            await visitor.close(TRY_AGAIN_LATER, "The server is full.")


def _refusal(scope: Scope) -> Response | None:
    """The answer to what is not let in; None to what is."""
    if _is_too_long(scope):
        return PlainTextResponse("This address is longer than any that this app uses.", status_code=414)
    if _CLOSED.search(scope["path"]):
        return PlainTextResponse("Not found", status_code=404)
    if scope["method"] == "GET" and not _PART.search(scope["path"]) and not capacity.has_room():
        return PlainTextResponse(FULL, status_code=503, headers=FULL_HEADERS)
    return None


def _is_too_long(scope: Scope) -> bool:
    return len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"]) > links.MAX_LETTERS


def _is_reconnection(headers: Headers) -> bool:
    """Whether a session that lost its connection asks for it again: it is named third, after what Streamlit needs."""
    named = headers.get("sec-websocket-protocol", "").split(",")
    return len(named) > 2 and capacity.knows(named[2].strip())


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
