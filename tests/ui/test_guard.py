"""What stands before Streamlit's own routes: headers on every answer, closed doors; what the server says of itself."""

import json
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from core.jobs import process
from core.jobs.worker_file import Serving
from core.question.policy import POLICY_VARIABLE
from pages.shared import capacity, guard, links, server
from tests.ui.asgi import answer, connect


@pytest.fixture
def guarded(world):
    return guard.Guard(PlainTextResponse("page"))


@pytest.mark.parametrize("path", ["/", "/_stcore/metrics", "/_stcore/upload_file/someone/a-file"])
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


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/_stcore/upload_file/someone/file"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_an_address_that_is_longer_than_any_of_ours_is_refused_at_the_door(guarded, path, method):
    status, headers, _ = answer(guarded, path, method, query=b"lock=" + b"x" * links.MAX_LETTERS)
    assert (status, headers["content-security-policy"]) == (414, guard.CONTENT_POLICY)
    assert answer(guarded, path + "x" * links.MAX_LETTERS, method)[0] == 414
    assert answer(guarded, "/", query=b"text=" + b"x" * (links.MAX_LETTERS - 6))[0] == 200


def test_a_websocket_with_such_an_address_is_refused_before_it_opens(guarded):
    (refused,) = connect(guarded, query=b"x" * links.MAX_LETTERS)
    assert refused["type"] == "websocket.close"


@pytest.fixture
def said(monkeypatch):
    """What the server says as it starts, where it answers under some names."""
    lines: list[str] = []
    for level in ("info", "warning", "error"):
        monkeypatch.setattr(server._log, level, lambda line, *values: lines.append(line % values if values else line))

    def start(**options: Any) -> list[str]:
        monkeypatch.setattr(server.st, "get_option", {"server.allowedHosts": [], **options}.get)
        lines.clear()
        server._say()
        return lines

    return start


def test_a_hosted_server_that_answers_under_every_name_says_so_at_its_start(world, said, monkeypatch, tmp_path):
    assert not [line for line in said() if "allowedHosts" in line]
    (tmp_path / "policy.toml").write_text('who_may_run = "nobody"')
    monkeypatch.setenv(POLICY_VARIABLE, str(tmp_path / "policy.toml"))
    assert [line for line in said() if "allowedHosts" in line] == [server.ANY_NAME]
    assert not [line for line in said(**{"server.allowedHosts": ["crossover.example"]}) if "allowedHosts" in line]


def test_a_server_says_at_its_start_how_many_sessions_it_holds(world, said, monkeypatch):
    monkeypatch.setattr(server.capacity, "more_sessions", lambda: 1_234)
    monkeypatch.setattr(server.capacity, "limit", lambda: 4_096)
    assert said() == ["Room for 1,234 sessions at once, with 4,096 descriptors."]
    monkeypatch.setattr(server.capacity, "more_sessions", lambda: None)
    assert said() == []


def test_a_broken_settings_file_is_named_at_the_start(world, said, monkeypatch, tmp_path):
    (tmp_path / "policy.toml").touch()
    monkeypatch.setenv(POLICY_VARIABLE, str(tmp_path / "policy.toml"))
    assert any("policy.toml does not say who may run something" in line for line in said())


def _health(monkeypatch) -> tuple[int, dict[str, Any]]:
    monkeypatch.setattr(capacity, "_health", (-capacity.HEALTH_S, {}))
    (route,) = capacity.ROUTES
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
    world.queue.worker_file.take(Serving(process=process.Process(pid=2**22 + 1, born="before")))
    status, found = _health(monkeypatch)
    assert (status, found["waiting"], found["worker"]) == (503, 1, "away")
