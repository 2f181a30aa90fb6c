"""The command line in this process, with a folder of jobs of its own; no measuring process is started."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from core import __main__ as command_line
from core.jobs.queue import JOBS_VARIABLE


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.fixture
def command(tmp_path, monkeypatch, capsys) -> Callable[..., Done]:
    monkeypatch.setenv(JOBS_VARIABLE, str(tmp_path / "jobs"))
    monkeypatch.setattr("core.jobs.client.ensure_worker", lambda *_, **__: pytest.fail("one was started"))

    def call(*arguments: object) -> Done:
        status = command_line.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(status=status, out=captured.out, err=captured.err)

    return call
