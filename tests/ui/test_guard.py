"""What stands before Streamlit's own routes: headers on every answer, closed doors; what the server says of itself."""

import json
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from core.errors import StoreError
from core.jobs import process
from core.jobs.machine import Serving
from core.question.policy import POLICY_VARIABLE
from core.results import index
from pages.shared import links, server
from tests.ui.asgi import answer, connect


@pytest.fixture
def guarded(world):
    return server.Guard(PlainTextResponse("page"))


@pytest.mark.parametrize("path", ["/", "/_stcore/metrics", "/_stcore/upload_file/someone/a-file"])
def test_every_answer_has_the_headers(guarded, path):
    headers = answer(guarded, path)[1]
    assert headers["content-security-policy"] == server.CONTENT_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert "http:" not in server.CONTENT_POLICY
    assert "*" not in server.CONTENT_POLICY


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
    assert (status, headers["content-security-policy"]) == (414, server.CONTENT_POLICY)
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


def test_a_broken_settings_file_is_named_at_the_start(world, said, monkeypatch, tmp_path):
    (tmp_path / "policy.toml").touch()
    monkeypatch.setenv(POLICY_VARIABLE, str(tmp_path / "policy.toml"))
    assert any("policy.toml does not say who may run something" in line for line in said())


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
        (Limits(1024, 524_288), (server.MOST_DESCRIPTORS, 524_288)),
        (Limits(256, Limits.RLIM_INFINITY), (server.MOST_DESCRIPTORS, -1)),
        (Limits(256, Limits.RLIM_INFINITY, refused=server.MACOS_DESCRIPTORS + 1), (server.MACOS_DESCRIPTORS, -1)),
        (Limits(256, 4096, refused=0), (256, 4096)),
        (Limits(65_536, 524_288), (65_536, 524_288)),
        (Limits(Limits.RLIM_INFINITY, Limits.RLIM_INFINITY), (-1, -1)),
    ],
)
def test_the_limit_is_raised_as_far_as_the_system_lets_it(monkeypatch, system, expected):
    monkeypatch.setattr(server, "resource", system)
    server.raise_descriptor_limit()
    assert system.now == expected


def test_a_system_without_such_limits_is_left_alone(monkeypatch):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(server, "resource", None)
    server.raise_descriptor_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def _health(monkeypatch) -> tuple[int, dict[str, Any]]:
    monkeypatch.setattr(server, "_health", (-server.HEALTH_S, {}))
    (route,) = server.ROUTES
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


def test_a_store_that_cannot_be_read_is_not_well(world, monkeypatch):
    def refuse(_folder, *, now=False):
        raise StoreError("The folder cannot be read.")

    monkeypatch.setattr(index, "list_files", refuse)
    status, found = _health(monkeypatch)
    assert (status, found["ok"], found["store"]) == (503, False, "cannot be read")


def test_a_job_that_waits_for_a_worker_that_is_gone_is_not_well(world, monkeypatch):
    world.submit()
    assert _health(monkeypatch)[0] == 200
    world.queue.worker_file.take(Serving(process=process.Process(pid=2**22 + 1, born="before")))
    status, found = _health(monkeypatch)
    assert (status, found["waiting"], found["worker"]) == (503, 1, "away")
