"""How many sessions there is room for, who gives way to whom, and what is given back when they have left."""

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pages.shared import capacity, guard
from tests.ui.asgi import Host, answer, connect


class Descriptors:
    """As many as the sessions of a host take, of few."""

    def __init__(self, host: Host, sessions: int, others: int = 20) -> None:
        self._host, self._others = host, others
        self.limit = others + capacity.RESERVE + sessions * capacity.EACH

    def opened(self) -> int:
        return self._others + sum(capacity.EACH - (not here) for here in self._host.connected.values())


@pytest.fixture
def house(monkeypatch):
    """Room for two sessions, which are in."""
    host = Host("ada", "ben")
    descriptors = Descriptors(host, sessions=2)
    monkeypatch.setattr(capacity, "limit", lambda: descriptors.limit)
    monkeypatch.setattr(capacity, "count_descriptors", descriptors.opened)
    monkeypatch.setattr(capacity.runtime, "exists", lambda: True)
    monkeypatch.setattr(capacity.runtime, "get_instance", lambda: host)
    return host


@pytest.fixture
def guarded(world, house):
    """Streamlit behind the guard: each websocket that gets through is a session."""

    async def streamlit(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            house.connected["new"] = True
        else:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"page"})

    return guard.Guard(streamlit)


@pytest.mark.parametrize("path", ["/", "/gallery", "/base/crossover", "/nowhere"])
def test_a_new_visitor_of_a_full_server_gets_a_plain_page(guarded, path):
    status, headers, body = answer(guarded, path)
    assert (status, headers["retry-after"]) == (503, "30")
    assert headers["content-type"].startswith("text/plain")
    assert headers["content-security-policy"] == guard.CONTENT_POLICY
    assert b"as many visitors as it can" in body


@pytest.mark.parametrize("path", ["/static/js/main.js", "/_stcore/health", "/health", "/media/1.png", "/favicon.png"])
def test_who_is_in_goes_on_in_a_full_server(guarded, path):
    assert answer(guarded, path)[0] == 200


def test_a_websocket_to_a_full_server_is_told_to_try_again_later(guarded, house):
    accepted, closed = connect(guarded)
    assert accepted["type"] == "websocket.accept"
    assert (closed["type"], closed["code"]) == ("websocket.close", 1013)
    assert list(house.connected) == ["ada", "ben"]


def test_who_lost_the_connection_comes_back_into_a_full_server(guarded, house):
    house.leave("ben")
    house.connected["carl"] = True
    assert [message["type"] for message in connect(guarded, "token", "ben")] == ["websocket.accept"]
    assert connect(guarded, "token", "nobody")[-1]["code"] == 1013


def test_when_somebody_leaves_the_next_gets_in(guarded, house):
    house.leave("ada")
    assert answer(guarded, "/")[0] == 200
    assert [message["type"] for message in connect(guarded)] == ["websocket.accept"]
    assert house.closed == ["ada"]
    assert list(house.connected) == ["ben", "new"]
    assert connect(guarded)[-1]["code"] == 1013


def test_who_left_first_gives_way_first_and_only_as_many_as_it_takes(house, monkeypatch):
    house.leave("ben")
    house.leave("ada")
    monkeypatch.setattr(
        capacity, "count_descriptors", lambda: capacity.limit() - 2 * len(house.closed) - capacity.RESERVE
    )
    assert capacity.has_room()
    assert house.closed == ["ben", "ada"]


def test_without_a_limit_there_is_always_room(guarded, monkeypatch):
    monkeypatch.setattr(capacity, "limit", lambda: None)
    assert answer(guarded, "/")[0] == 200
    assert [message["type"] for message in connect(guarded)] == ["websocket.accept"]


class Limits:
    """A system that keeps limits, and refuses some."""

    RLIM_INFINITY, RLIMIT_NOFILE = -1, 7

    def __init__(self, soft: int, hard: int, refused: int = 10**9) -> None:
        self.now, self._refused = (soft, hard), refused

    def getrlimit(self, _what: int) -> tuple[int, int]:
        return self.now

    def setrlimit(self, _what: int, wanted: tuple[int, int]) -> None:
        if wanted[0] >= self._refused:
            raise ValueError
        self.now = wanted


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (Limits(1024, 4096), (4096, 4096)),
        (Limits(1024, 1024), (1024, 1024)),
        (Limits(1024, 524_288), (capacity.MOST_DESCRIPTORS, 524_288)),
        (Limits(256, Limits.RLIM_INFINITY), (capacity.MOST_DESCRIPTORS, -1)),
        (Limits(256, Limits.RLIM_INFINITY, refused=capacity.MACOS_DESCRIPTORS + 1), (capacity.MACOS_DESCRIPTORS, -1)),
        (Limits(256, 4096, refused=0), (256, 4096)),
        (Limits(65_536, 524_288), (65_536, 524_288)),
        (Limits(Limits.RLIM_INFINITY, Limits.RLIM_INFINITY), (-1, -1)),
    ],
)
def test_the_limit_is_raised_as_far_as_the_system_lets_it(monkeypatch, system, expected):
    monkeypatch.setattr(capacity, "resource", system)
    monkeypatch.setattr(capacity, "LEAN", False)
    capacity.raise_limit()
    assert system.now == expected
    assert capacity.limit() == (None if expected[0] == -1 else expected[0])


def test_a_system_without_such_limits_is_left_alone(monkeypatch):
    monkeypatch.setattr(capacity, "resource", None)
    monkeypatch.setattr(capacity, "LEAN", False)
    capacity.raise_limit()
    assert capacity.limit() is None


@pytest.mark.skipif(not capacity.LEAN, reason="this system has no poll, or this Python is not told how loops are made")
def test_a_lean_loop_takes_two_descriptors():
    before = capacity.count_descriptors()
    loop = capacity.LeanLoops().new_event_loop()
    assert capacity.count_descriptors() - before == 2
    loop.close()
    assert capacity.count_descriptors() == before


def tidied(monkeypatch, house, *rounds):
    """What `tidy_up` ends in each of some rounds, at their times, before each of which somebody does something."""
    given, left = [], list(rounds)
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(capacity, "time", clock)
    monkeypatch.setattr(capacity, "trim", lambda: given.append(len(house.closed)))
    now = 0.0

    async def wait(_seconds: float) -> None:
        nonlocal now
        if not left:
            raise asyncio.CancelledError
        now, act = left.pop(0)
        act()

    monkeypatch.setattr(capacity.asyncio, "sleep", wait)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(capacity.tidy_up())
    return given


def nothing() -> None:
    """Nobody does anything."""


def test_the_state_of_who_left_is_ended_after_a_while_and_its_memory_given_back_once(house, monkeypatch):
    later = [(at, nothing) for at in (60.0, 29.0 + capacity.KEPT_S, 30.0 + capacity.KEPT_S, 1_000.0)]
    given = tidied(monkeypatch, house, (0.0, nothing), (30.0, lambda: house.leave("ada")), *later)
    assert house.closed == ["ada"]
    assert given == [1]


def test_who_comes_back_in_time_is_not_ended(house, monkeypatch):
    def away():
        house.leave("ada")

    tidied(
        monkeypatch,
        house,
        (0.0, away),
        (80.0, lambda: house.connected.update(ada=True)),
        (100.0, away),
        (150.0, nothing),
    )
    assert house.closed == []


def test_memory_goes_back_when_streamlit_itself_forgot_somebody(house, monkeypatch):
    gone = (30.0, lambda: house.connected.pop("ada"))
    assert tidied(monkeypatch, house, (0.0, nothing), gone, (60.0, nothing)) == [0]


@pytest.mark.skipif(sys.platform != "linux", reason="no other C library is asked")
def test_the_c_library_is_asked_for_its_memory_where_it_can_be(monkeypatch):
    asked = []
    monkeypatch.setattr(capacity.ctypes, "CDLL", lambda name: SimpleNamespace(malloc_trim=asked.append))
    capacity.trim()
    monkeypatch.setattr(capacity.ctypes, "CDLL", lambda name: SimpleNamespace())
    capacity.trim()
    assert asked == [0]
