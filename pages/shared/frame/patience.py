"""How long a request may take to say what it has to say.

uvicorn waits for the rest of a body for as long as the connection stands. That of the head of a request, and of who
reads an answer slowly, it does not let anybody bound: that is left to a proxy (docs/hosting.md).
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import PlainTextResponse

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
