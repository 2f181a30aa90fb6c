"""A real server with few descriptors: beyond what it holds a plain page, and who is in goes on."""

import asyncio
import contextlib
import socket
import sys
import urllib.error
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.benchmarks import sessions

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="this system has no limit of descriptors")

DESCRIPTORS = 112
"""Room for some ten sessions."""

REFUSED = "1013"
PATIENCE_S = 240.0


@pytest.fixture
def served(tmp_path: Path):
    """Port and log of a server on which nothing is measured."""
    policy = tmp_path / "crossover.toml"
    policy.write_text('who_may_run = "nobody"', encoding="utf-8")
    own = {"CROSSOVER_JOBS": tmp_path / "jobs", "CROSSOVER_RESULTS": tmp_path / "results", "CROSSOVER_POLICY": policy}
    log = tmp_path / "server.log"
    variables = {name: str(path) for name, path in own.items()}
    with sessions.server(descriptors=DESCRIPTORS, log=log, **variables) as port:
        yield port, log


@contextlib.asynccontextmanager
async def filled(port: int):
    """As many sessions as get in; whoever is still in at the end leaves."""
    inside: list[sessions.Session] = []
    with contextlib.suppress(sessions.Refused):
        for _ in range(DESCRIPTORS):
            visitor = sessions.Session(port)
            await visitor.open()
            inside.append(visitor)
    try:
        yield inside
    finally:
        for visitor in inside:
            await visitor.close()


async def page(port: int) -> int:
    def asked() -> int:
        try:
            with urlopen(f"http://127.0.0.1:{port}/gallery") as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code

    return await asyncio.to_thread(asked)


async def let_in(port: int) -> bool:
    return await page(port) == 200


def is_app(child: psutil.Process) -> bool:
    try:
        return "streamlit" in " ".join(child.cmdline())
    except psutil.Error:  # what another test has started, and has just ended
        return False


async def exhausted(app: psutil.Process) -> bool:
    return app.num_fds() >= DESCRIPTORS - 1


async def until(condition) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():
            await asyncio.sleep(0.02)


def test_beyond_what_it_holds_a_server_refuses_and_lets_the_next_in_when_somebody_leaves(served):
    port, log = served

    async def visit() -> None:
        async with filled(port) as inside:
            assert 3 < len(inside) < DESCRIPTORS / 3
            assert await page(port) == 503
            for visitor in inside:
                await visitor.rerun()
            await inside.pop(0).close()
            await until(lambda: let_in(port))
            inside.append(sessions.Session(port))
            await inside[-1].open()
            with pytest.raises(sessions.Refused, match=REFUSED):
                await sessions.Session(port).open()
            assert [visitor.lost for visitor in inside] == [None] * len(inside)
            assert [visitor.faults for visitor in inside if visitor.faults] == []

    asyncio.run(visit())
    printed = log.read_text()
    assert "sessions at once, with 112 descriptors" in printed
    assert "Traceback" not in printed


def test_connections_that_take_every_descriptor_do_not_end_the_server(served):
    port, _ = served

    async def visit() -> None:
        async with filled(port) as inside:
            (app,) = (child for child in psutil.Process().children() if is_app(child))
            held = []
            for _ in range(DESCRIPTORS):
                with contextlib.suppress(OSError):
                    held.append(socket.create_connection(("127.0.0.1", port), timeout=5))
            await until(lambda: exhausted(app))
            for connection in held:
                connection.close()
            await inside.pop(0).close()
            await until(lambda: let_in(port))
            await inside[0].rerun()
            assert (inside[0].lost, inside[0].faults) == (None, [])

    asyncio.run(visit())
