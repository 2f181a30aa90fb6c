"""Files that visitors bring: a place for each, a share for everybody, and who gives way where there are too many."""

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from streamlit.web.server.starlette import starlette_routes

from core.question.policy import POLICY_VARIABLE
from pages.shared import server
from tests.ui.asgi import UPLOAD, Host, answer, ask

MB = 2**20


@pytest.fixture
def host(monkeypatch):
    """Four visitors, none of whom has brought a file."""
    found = Host("ada", "ben", "carl", "dora")
    monkeypatch.setattr(server.runtime, "exists", lambda: True)
    monkeypatch.setattr(server.runtime, "get_instance", lambda: found)
    return found


@pytest.fixture
def guarded(world, host):
    """A Streamlit that reads what it is brought to its end, and keeps it."""

    async def streamlit(scope: Any, receive: Any, send: Any) -> None:
        body = await Request(scope, receive).body()
        if "/upload_file/" in scope["path"]:
            _, _, session, file = scope["path"].rsplit("/", 3)
            host.keep(session, file, len(body))
        await PlainTextResponse("taken", status_code=204)(scope, receive, send)

    return server.Guard(streamlit)


def put(guarded, session, file="file", size=None, **request):
    """Status of an upload that says how large it is."""
    headers = [] if size is None else [(b"content-length", str(size).encode())]
    return answer(guarded, UPLOAD.format(session=session, file=file), "PUT", headers=headers, **request)[0]


@pytest.fixture
def real(world, host, monkeypatch):
    """Streamlit's own route for uploads, behind the guard."""
    monkeypatch.setattr(starlette_routes, "is_xsrf_enabled", lambda: False)
    routes = starlette_routes.create_upload_routes(host, host.uploaded_file_mgr, None)
    return Starlette(routes=routes, middleware=server.MIDDLEWARE)


BOUNDARY = [(b"content-type", b"multipart/form-data; boundary=end")]
FILE = b'--end\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\nabc\r\n--end--\r\n'


def test_streamlits_own_route_keeps_what_comes(real, host):
    pieces = [FILE[:70], FILE[70:]]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    path = UPLOAD.format(session="ada", file="whole")
    assert answer(real, path, "PUT", headers=BOUNDARY, receive=receive)[0] == 204
    assert [file.data for file in host.uploaded_file_mgr.file_storage["ada"].values()] == [b"abc"]


def test_a_session_may_hold_a_few_files(guarded, host):
    for number in range(server.FILES_PER_SESSION - 1):
        host.keep("ada", f"{number}", 1)
    assert put(guarded, "ada", "one more") == 204
    assert put(guarded, "ada", "too many") == 429
    assert answer(guarded, UPLOAD.format(session="ada", file="0"), "DELETE")[0] == 204
    assert put(guarded, "ben") == 204


def test_a_session_has_a_share_in_bytes(guarded, host, monkeypatch):
    monkeypatch.setattr(server, "SESSION_BYTES", 3 * MB)
    host.keep("ada", "first", 2 * MB)
    assert put(guarded, "ada", size=MB + 1) == 429
    assert put(guarded, "ada", size=MB) == 204
    assert put(guarded, "ben", size=3 * MB) == 204


def test_where_all_together_are_too_many_those_of_who_was_idle_longest_go_first(guarded, host, monkeypatch):
    monkeypatch.setattr(server, "UPLOADED_BYTES", 10 * MB)
    for session in ("carl", "ada", "ben"):
        assert put(guarded, session, "old", size=MB) == 204
    host.keep("carl", "older", 5 * MB)
    host.keep("ada", "older", 4 * MB)
    assert put(guarded, "ben", "new", size=2 * MB) == 204
    assert host.kept == {"ada": ["old", "older"], "ben": ["old", "new"]}


def test_files_of_who_asks_and_of_who_is_bringing_one_are_never_taken(guarded, host, monkeypatch):
    monkeypatch.setattr(server, "UPLOADED_BYTES", 10 * MB)
    host.keep("ada", "own", 5 * MB)
    host.keep("ben", "own", 2 * MB)

    async def both() -> tuple[int, int]:
        arrived = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await arrived.wait()
            return {"type": "http.request", "body": b"x", "more_body": False}

        path = UPLOAD.format(session="ben", file="coming")
        coming = asyncio.ensure_future(
            ask(guarded, path, "PUT", headers=[(b"content-length", b"1048576")], receive=receive)
        )
        await asyncio.sleep(0)
        wide = [(b"content-length", str(3 * MB).encode())]
        refused = await ask(guarded, UPLOAD.format(session="ada", file="more"), "PUT", headers=wide)
        arrived.set()
        return refused[0], (await coming)[0]

    assert asyncio.run(both()) == (503, 204)
    assert host.kept == {"ada": ["own"], "ben": ["own", "coming"]}


@pytest.mark.parametrize("length", [b"", b"-1", b"1e9", b"9" * 400, "²".encode("latin-1")])
def test_an_upload_that_does_not_say_how_large_it_is_counts_as_the_largest(guarded, host, monkeypatch, length):
    monkeypatch.setattr(server, "SESSION_BYTES", 5 * MB)
    host.keep("ada", "first", 1)
    headers = [(b"content-length", length)] if length else []
    assert answer(guarded, UPLOAD.format(session="ada", file="b"), "PUT", headers=headers)[0] == 429
    assert put(guarded, "ada", size=MB) == 204


def test_who_has_no_session_takes_nothing_from_anybody(guarded, host, monkeypatch):
    monkeypatch.setattr(server, "UPLOADED_BYTES", MB)
    host.keep("ada", "own", MB)
    assert put(guarded, "nobody", size=MB) == 400
    assert host.kept == {"ada": ["own"]}


def test_an_upload_that_failed_makes_room_again(world, host):
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError

    guarded = server.Guard(failing)
    for _ in range(server.FILES_PER_SESSION + 1):
        with pytest.raises(RuntimeError):
            put(guarded, "ada")


def test_a_host_that_takes_no_files_refuses_all(guarded, host, monkeypatch, tmp_path):
    settings = 'who_may_run = "nobody"\nread_only_gallery = true\n[class]\nmode = false\n'
    (tmp_path / "policy.toml").write_text(settings, encoding="utf-8")
    monkeypatch.setenv(POLICY_VARIABLE, str(tmp_path / "policy.toml"))
    assert put(guarded, "ada") == 403
