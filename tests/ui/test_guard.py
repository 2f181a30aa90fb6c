"""What stands before Streamlit's own routes: headers on every answer, closed doors, bounded uploads, and the health."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from core.jobs import process
from core.jobs.seat import Occupant
from pages.shared import guard

UPLOAD = "/_stcore/upload_file/someone/a-file"


def answer(app: Any, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}
    asyncio.run(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture
def guarded(world):
    return guard.Guard(PlainTextResponse("page"))


@pytest.mark.parametrize("path", ["/", "/_stcore/metrics", UPLOAD])
def test_every_answer_has_the_headers(guarded, path):
    headers = answer(guarded, path)[1]
    assert headers["content-security-policy"] == guard.CONTENT_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert "http:" not in guard.CONTENT_POLICY
    assert "*" not in guard.CONTENT_POLICY


@pytest.mark.parametrize(
    "path", ["/_stcore/metrics", "/_stcore/metrics/", "/base/_stcore/metrics", "/_stcore//metrics"]
)
def test_what_the_server_knows_of_its_caches_is_closed(guarded, path):
    assert answer(guarded, path)[0] == 404
    assert answer(guarded, "/_stcore/health")[0] == 200


@pytest.fixture
def stored(monkeypatch):
    """The files that Streamlit holds, by session."""
    files: dict[str, dict[str, Any]] = {}
    manager = SimpleNamespace(uploaded_file_mgr=SimpleNamespace(file_storage=files))
    monkeypatch.setattr(guard.runtime, "exists", lambda: True)
    monkeypatch.setattr(guard.runtime, "get_instance", lambda: manager)
    return files


def test_a_session_may_hold_a_few_files(guarded, stored):
    stored["someone"] = {str(place): SimpleNamespace(data=b"x") for place in range(guard.FILES_PER_SESSION - 1)}
    assert answer(guarded, UPLOAD, "PUT")[0] == 200
    stored["someone"]["one more"] = SimpleNamespace(data=b"x")
    assert answer(guarded, UPLOAD, "PUT")[0] == 429
    assert answer(guarded, UPLOAD, "DELETE")[0] == 200
    assert answer(guarded, UPLOAD.replace("someone", "somebody"), "PUT")[0] == 200


def test_all_sessions_together_may_hold_no_more_than_fits(guarded, stored, monkeypatch):
    monkeypatch.setattr(guard, "UPLOADED_BYTES", 100)
    stored["others"] = {"a": SimpleNamespace(data=b"x" * 100)}
    assert answer(guarded, UPLOAD, "PUT")[0] == 503


def test_only_a_few_uploads_are_on_their_way_at_once(guarded, stored):
    assert guard.refusal("someone", guard.UPLOADS_AT_ONCE)[0] == 503


def test_an_upload_that_failed_makes_room_again(world, stored):
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError

    guarded = guard.Guard(failing)
    for _ in range(guard.UPLOADS_AT_ONCE + 1):
        with pytest.raises(RuntimeError):
            answer(guarded, UPLOAD, "PUT")


def test_a_host_that_takes_no_files_refuses_all(guarded, stored, monkeypatch, tmp_path):
    (tmp_path / "policy.toml").write_text("read_only_gallery = true\n[class]\nmode = false\n", encoding="utf-8")
    monkeypatch.setenv("CROSSOVER_POLICY", str(tmp_path / "policy.toml"))
    assert answer(guarded, UPLOAD, "PUT")[0] == 403


def test_streamlit_keeps_uploads_where_they_are_counted():
    from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
    from streamlit.runtime.uploaded_file_manager import UploadedFileRec

    manager = MemoryUploadedFileManager("/")
    manager.add_file("someone", UploadedFileRec(file_id="a", name="b", type="c", data=b"1234"))
    assert [len(file.data) for file in manager.file_storage["someone"].values()] == [4]


def _health(monkeypatch) -> tuple[int, dict[str, Any]]:
    monkeypatch.setattr(guard, "_health", (-guard.HEALTH_S, {}))
    (route,) = guard.ROUTES
    status, headers, body = answer(route.app, route.path)
    assert headers["cache-control"] == "no-store"
    return status, json.loads(body)


def test_a_server_that_is_well_says_so(world, monkeypatch):
    expected = {"ok": True, "store": "well", "queue": "well", "waiting": 0, "worker": "ready"}
    assert _health(monkeypatch) == (200, expected)


def test_a_store_that_cannot_be_written_is_not_well(world, monkeypatch, tmp_path):
    (tmp_path / "in-the-way").write_text("")
    monkeypatch.setenv("CROSSOVER_RESULTS", str(tmp_path / "in-the-way"))
    status, found = _health(monkeypatch)
    assert (status, found["ok"], found["store"]) == (503, False, "cannot be written")
    assert str(tmp_path) not in json.dumps(found)


def test_a_job_that_waits_for_a_worker_that_is_gone_is_not_well(world, monkeypatch):
    world.submit()
    assert _health(monkeypatch)[0] == 200
    world.queue.seat.take(Occupant(process=process.Process(pid=2**22 + 1, born="before")))
    status, found = _health(monkeypatch)
    assert (status, found["waiting"], found["worker"]) == (503, 1, "away")
