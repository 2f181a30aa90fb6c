"""How many sessions the server holds, and how it gives back what those that left had.

Each session keeps descriptors for as long as Streamlit keeps the session: its connection, and those of an event loop
that Streamlit makes for its scripts, whether they use one or not. A server that has none left cannot draw a page for
anybody any more, so it lets nobody in before that. Sessions are Streamlit's: what is read of them here, beside what
it offers for that, is the list of those that it keeps.
"""

import asyncio
import contextlib
import ctypes
import gc
import selectors
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

import psutil
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from streamlit import runtime

from core.errors import CrossoverError
from pages.shared import queries

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

MOST_DESCRIPTORS = 16_384
"""To so many the limit is raised where the system allows more: for sessions beyond it, one process is too slow."""

MACOS_DESCRIPTORS = 10_240
"""macOS says that there is no limit, and refuses to be asked for more than this."""

RESERVE, RESERVED_SHARE = 64, 16
"""Descriptors that no session gets, and one of so many beyond: for files, locks, processes that are started, and pages
on their way to a browser."""

LEAN = sys.version_info < (3, 14) and hasattr(selectors, "PollSelector")
"""Whether event loops are made lean; from 3.14 on Python does not want to be told how."""

EACH = 3 if LEAN else 4
"""Descriptors of a session: its connection, two ends of a pipe, and without lean loops one more to wait with."""

TIDY_S = 30.0
"""How often what has left is looked for."""

KEPT_S = 90.0
"""How long the state of a session that has left is kept, so that a browser that lost its connection finds it again.
Streamlit's own limit is longer (`server.disconnectedSessionTTL`): it is looked at only when the next session leaves."""


if sys.version_info < (3, 14):

    class LeanLoops(asyncio.DefaultEventLoopPolicy):
        """Makes event loops that wait by `poll`, which needs no descriptor of its own; the server's loop is another."""

        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            """A loop for who asks for one: here, each session."""
            return asyncio.SelectorEventLoop(selectors.PollSelector())


def raise_limit() -> None:
    """Let this process open as many descriptors as the system allows, and let a session take few of them."""
    if LEAN:
        asyncio.set_event_loop_policy(LeanLoops())
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


def limit() -> int | None:
    """Descriptors that this process may have; None where there is no such limit."""
    if resource is None:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def count_descriptors() -> int:
    """Descriptors that this process has."""
    return psutil.Process().num_fds()


def more_sessions() -> int | None:
    """How many sessions more there is room for; None where there is no limit."""
    most = limit()
    return None if most is None else max(0, (most - max(RESERVE, most // RESERVED_SHARE) - count_descriptors()) // EACH)


def has_room() -> bool:
    """Whether one more session fits; sessions that have left give way to it, the one that left first before the others.

    To be asked on the event loop, where no session can begin meanwhile.
    """
    left = _left()
    while more_sessions() == 0:
        gone = next(left, None)
        if gone is None:
            return False
        runtime.get_instance().close_session(gone)
    return True


def knows(session_id: str) -> bool:
    """Whether a session is kept, connected or not."""
    return session_id in _listed()


async def tidy_up() -> None:
    """End what has left long enough ago, and give its memory back, for as long as the server runs."""
    left_at: dict[str, float] = {}
    known: set[str] = set()
    while True:
        await asyncio.sleep(TIDY_S)
        now = time.monotonic()
        left_at = {name: left_at.get(name, now) for name in _left()}
        for name in [name for name, since in left_at.items() if now - since >= KEPT_S]:
            runtime.get_instance().close_session(name)
        here = set(_listed())
        if known - here:
            gc.collect()
            await asyncio.to_thread(trim)
        known = here


def trim() -> None:
    """Let the C library return to the system what was given back to it, where it can: with glibc."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def _left() -> Iterator[str]:
    """The sessions that are kept though nobody is connected to them, in the order in which they left."""
    return (name for name in _listed() if not runtime.get_instance().is_active_session(name))


def _listed() -> list[str]:
    """Every session that Streamlit keeps."""
    return [info.session.id for info in runtime.get_instance()._session_mgr.list_sessions()] if runtime.exists() else []


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


Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PIECE_S = 10.0
"""How long the next piece of a body may be away."""

WHOLE_S = 120.0
"""How long a body may take: 5 MB over a line of 350 kbit/s."""


class TooSlow(Exception):
    """A body did not come in time."""


async def bounded(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Hand a request on; one whose body stalls or takes too long is answered with 408 and its connection is closed."""
    until = asyncio.get_running_loop().time() + WHOLE_S
    complete = answered = False

    async def in_time() -> Message:
        nonlocal complete
        if complete:  # what is waited for from now on is the end of the connection
            return await receive()
        message = await _awaited(receive, until)
        complete = not message.get("more_body", False)
        return message

    async def noted(message: Message) -> None:
        nonlocal answered
        answered = True
        await send(message)

    try:
        await app(scope, in_time, noted)
    except TooSlow:
        if not answered:
            slow = PlainTextResponse("The request took too long.", status_code=408, headers={"connection": "close"})
            await slow(scope, receive, send)


async def _awaited(receive: Receive, until: float) -> Message:
    now = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout_at(min(now + PIECE_S, until)):
            return await receive()
    except TimeoutError as error:
        raise TooSlow from error
