"""The session for a rented accelerator, tried on the CPU: what fits is done, and it may be ended anywhere."""

import contextlib
import json
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from core.files.project import PROJECT
from core.jobs.machine import LOCK_VARIABLE
from core.results.store import Store
from tests import nodes, rows
from tests.gpu import steps as listed
from tests.gpu.session import Session
from tests.gpu.steps import Step, steps
from tests.integration.following import until

CAP_S, SECONDS = 200.0, 1_000.0
"""Far beyond what a step and all of them take here; a busy machine is no failure."""


def step(name: str, code: str, cap_s: float = CAP_S) -> Step:
    return Step(name=name, command=(sys.executable, "-c", code), cap_s=cap_s, value="a test")


def said(out: Path) -> dict:
    return json.loads((out / "session.json").read_text())


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path / "out", tmp_path / "work", "cpu")


def test_each_step_says_how_it_ended_and_what_it_printed_is_kept(session):
    session.run([step("one", "print('a figure')"), step("two", "raise SystemExit(3)")], SECONDS)
    entries = said(session.out)["steps"]
    assert [(name, entry["ended"], entry["status"]) for name, entry in entries.items()] == [
        ("one", "well", 0),
        ("two", "failed", 3),
    ]
    assert "a figure" in (session.out / "report.md").read_text()
    with tarfile.open(session.out / "logs.tar.gz") as logs:
        assert sorted(logs.getnames()) == ["one.log", "two.log"]


def test_a_step_is_begun_only_if_it_can_end_and_shorter_ones_go_before_it(session):
    session.run([step("long", "print(1)", cap_s=2 * SECONDS), step("short", "print(2)")], SECONDS)
    assert list(said(session.out)["steps"]) == ["short"]
    assert said(session.out)["left"] == ["long"]


def test_a_step_that_does_not_end_is_ended_at_its_cap_with_all_that_it_started(session, tmp_path):
    sleeping = "[sys.executable, '-c', 'import time; time.sleep(999)']"
    number = tmp_path / "pid"
    number.touch()
    told = (
        f"import pathlib, subprocess, sys, time; child = subprocess.Popen({sleeping})\n"
        f"pathlib.Path({str(number)!r}).write_text(str(child.pid)); time.sleep(999)"
    )
    for cap_s in (2.0, 20.0, CAP_S):  # of which the first is too short for a busy machine to start anything
        if not number.read_text():
            session.run([step(f"endless for {cap_s}", told, cap_s=cap_s)], SECONDS)
    assert {entry["ended"] for entry in said(session.out)["steps"].values()} == {"at its cap"}
    until(lambda: has_ended(int(number.read_text())), bool)


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_what_was_done_is_not_done_again_and_what_failed_only_once_more(session, tmp_path):
    asked = [step("well", "pass"), step("bad", "raise SystemExit(1)")]
    session.run(asked, SECONDS)
    Store(session.store).add(rows.trial())
    session.write(asked)
    for tries in (2, 2):
        later = Session(tmp_path / f"out{tries}", tmp_path / f"work{tries}", "cpu")
        later.take_up(session.out)
        later.run(asked, SECONDS)
        later.write(asked)
        assert {name: entry["tries"] for name, entry in said(later.out)["steps"].items()} == {"well": 1, "bad": tries}
        assert pq.read_table(later.out / "rows.parquet").num_rows == 1
        session = later


def test_a_state_that_is_torn_or_not_there_is_nothing_done(session, tmp_path):
    for name in ("session.json", "rows.parquet", "exhibits.tar", "logs.tar.gz"):
        (tmp_path / name).write_bytes(b"{torn")
    session.take_up(tmp_path)
    session.take_up(tmp_path / "none")
    assert session.done == {}


@pytest.mark.parametrize("device", ["cuda:0", "xpu:0", "mps", "cpu"])
def test_names_of_steps_are_unique_and_every_command_is_a_program_of_ours(device, tmp_path):
    asked = steps(device, store=tmp_path, junit=tmp_path / "junit.xml")
    assert len({entry.name for entry in asked}) == len(asked)
    assert {entry.command[:2] for entry in asked} == {(listed.PYTHON, "-m")}
    assert {entry.cap_s > 0 and bool(entry.value) for entry in asked} == {True}


@pytest.mark.parametrize("device", ["cuda:0", "cpu"])
def test_every_command_line_is_understood(device, tmp_path):
    from core.__main__ import parser

    commands = [entry.command[2:] for entry in steps(device, store=tmp_path, junit=tmp_path / "junit.xml")]
    understood = [parser().parse_args(words) for module, *words in commands if module == "core"]
    assert len(understood) > 1


def test_a_session_on_the_cpu_that_is_killed_is_taken_up_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    out, again = tmp_path / "out", tmp_path / "again"
    command = (sys.executable, "-m", "tests.gpu.session", "--device", "cpu", "--seconds", str(SECONDS))
    with begun(*command, "--out", out) as first:
        until(lambda: under_way(out), lambda name: name not in ("", "facts"))
        first.kill()
    [work] = tmp_path.glob("crossover-session-*")
    nodes.kill_machine(work)  # what it had begun goes on otherwise
    cut = under_way(out)
    assert (_steps(out)["facts"]["ended"], _steps(out)[cut]["ended"]) == ("well", "cut off")
    with begun(*command, "--out", again, "--state", out) as second:
        until(lambda: _steps(again).get(cut, {}).get("status"), lambda status: status is not None)
        [work] = {*tmp_path.glob("crossover-session-*")} - {work}
        second.send_signal(signal.SIGINT)
        second.wait()
    nodes.kill_machine(work)  # a measuring process that had hardly started
    assert (_steps(again)["facts"]["tries"], _steps(again)[cut]["tries"]) == (1, 2)
    assert _steps(again)[cut]["ended"] in ("well", "failed", "at its cap")
    assert {path.name for path in again.iterdir()} >= {"session.json", "report.md", "rows.parquet", "logs.tar.gz"}
    assert len(list(again.iterdir())) <= 8


@contextlib.contextmanager
def begun(*command) -> Iterator[subprocess.Popen]:
    """A session in a process of its own, which does not outlive the test."""
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def under_way(out: Path) -> str:
    """The step that was begun and of which it is not said how it ended; empty if there is none."""
    return next((name for name, entry in _steps(out).items() if entry["status"] is None), "")


def _steps(out: Path) -> dict:
    path = out / "session.json"
    return json.loads(path.read_text())["steps"] if path.exists() else {}
