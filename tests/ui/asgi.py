"""What stands around `Guard` in tests: a server that asks it, and a Streamlit that keeps sessions and files."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

UPLOAD = "/_stcore/upload_file/{session}/{file}"
STREAM = "/_stcore/stream"


class Host:
    """A Streamlit that keeps sessions and their files.

    Attributes:
        connected: name of each session → whether it is connected.
    """

    def __init__(self, *names: str) -> None:
        self.connected = dict.fromkeys(names, True)
        self.uploaded_file_mgr = MemoryUploadedFileManager("/")

    def is_active_session(self, name: str) -> bool:
        return self.connected.get(name, False)

    def keep(self, session: str, file: str, size: int) -> None:
        record = UploadedFileRec(file_id=file, name=file, type="", data=b"x" * size)
        self.uploaded_file_mgr.add_file(session, record)

    @property
    def kept(self) -> dict[str, list[str]]:
        stored = self.uploaded_file_mgr.file_storage
        return {session: list(files) for session, files in stored.items() if files}


async def ask(
    app: Any,
    path: str,
    method: str = "GET",
    *,
    query: bytes = b"",
    headers: Iterable[tuple[bytes, bytes]] = (),
    receive: Callable[[], Any] | None = None,
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request."""
    sent: list[Any] = []

    async def whole() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": list(headers), "query_string": query}
    await app(scope, receive or whole, send)
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


def answer(app: Any, path: str, method: str = "GET", **request: Any) -> tuple[int, dict[str, str], bytes]:
    """The same, by itself."""
    return asyncio.run(ask(app, path, method, **request))


def connect(app: Any, *named: str, query: bytes = b"") -> list[Any]:
    """What is sent to a browser that opens a websocket."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    protocol = ", ".join(("streamlit", *named)).encode()
    scope = {"type": "websocket", "path": STREAM, "query_string": query, "subprotocols": ["streamlit", *named]}
    asyncio.run(app({**scope, "headers": [(b"sec-websocket-protocol", protocol)]}, receive, send))
    return sent
