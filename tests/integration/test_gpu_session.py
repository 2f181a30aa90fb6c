"""The session for a rented accelerator, tried on the CPU: what fits is done, and it may be ended anywhere."""

import contextlib
import dataclasses
import json
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import psutil
import pyarrow.parquet as pq
import pytest

from core.commands import arguments
from core.commands.run import build_sweep
from core.files.project import PROJECT
from core.jobs.machine import LOCK_VARIABLE
from core.question.experiment import Contender, Experiment
from core.results.store import Store
from tests import nodes, rows
from tests.gpu import session as session_module
from tests.gpu import steps as listed
from tests.gpu.session import ENDING_S, Session, exit_status
from tests.gpu.steps import CALL_S, Step, steps
from tests.integration.following import until

TWO = {"cuda:0": (), "cuda:1": ("tf32", "benchmark")}
"""Accelerators of a machine with two, each with the lanes that it refuses."""

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


@pytest.mark.parametrize(("mode", "dismissed"), [(0, 0), (3, 1)])
def test_a_gpu_for_one_process_at_a_time_is_freed_before_a_step_that_uses_it_itself(
    session, monkeypatch, mode, dismissed
):
    card = SimpleNamespace(
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetComputeMode=lambda _: mode,
        NVML_COMPUTEMODE_EXCLUSIVE_PROCESS=3,
    )
    monkeypatch.setattr(session_module.gpu, "nvml", lambda: card)
    freed = []
    monkeypatch.setattr(session, "dismiss", lambda: freed.append(True))
    served = Step(name="served", command=(listed.PYTHON, "-m", "core", "devices"), cap_s=CAP_S, value="a test")
    session.run([step("itself", "pass"), served], SECONDS)
    assert len(freed) == dismissed


@pytest.mark.parametrize("platform", [sys.platform, "win32"])
def test_a_step_that_does_not_end_is_ended_at_its_cap_with_all_that_it_started(
    session, tmp_path, monkeypatch, platform
):
    if platform != sys.platform:  # Windows has no process groups that could be signalled
        monkeypatch.delattr(session_module.os, "killpg")
    monkeypatch.setattr(session_module.sys, "platform", platform)
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


def test_a_step_at_its_cap_is_taken_up_once_after_all_others(session, tmp_path):
    endless, other = step("endless", "import time; time.sleep(999)", cap_s=0.2), step("other", "pass")
    session.run([endless], SECONDS)
    again = Session(tmp_path / "out2", tmp_path / "work2", "cpu")
    again.take_up(session.out)
    again.run([endless, other], SECONDS)
    entries = said(again.out)["steps"]
    assert {name: entry["tries"] for name, entry in entries.items()} == {"endless": 2, "other": 1}
    assert entries["endless"]["at"] >= entries["other"]["at"]
    assert again.run([endless, other], SECONDS) == 0


def test_the_status_is_not_0_where_nothing_is_begun_or_a_step_of_the_list_fails(session):
    long, well, bad = step("long", "pass", cap_s=2 * SECONDS), step("well", "pass"), step("bad", "raise SystemExit(1)")
    assert exit_status(session, [long], session.run([long], SECONDS)) == 1
    assert exit_status(session, [well, long], session.run([well, long], SECONDS)) == 0
    assert exit_status(session, [well], session.run([well], SECONDS)) == 0, "nothing is left"
    assert exit_status(session, [bad], session.run([bad], SECONDS)) == 1
    assert exit_status(session, [well], 0) == 0, "a step that is no longer asked for does not count"


def test_a_session_that_begins_nothing_says_so_and_writes_no_rows(tmp_path, capsys):
    status = session_module.main(["--device", "cpu", "--seconds", "20", "--out", str(tmp_path / "out")])
    assert status == 1
    assert "Nothing was begun: the shortest step may take 45 s. Give more with --seconds." in capsys.readouterr().out
    assert not (tmp_path / "out" / "rows.parquet").exists()


@pytest.mark.parametrize(("device", "calls"), [("cuda:0", 3), ("xpu:0", 3), ("mps", 3), ("cpu", 1)])
def test_caps_add_up_to_so_many_calls_and_the_first_does_all_that_is_essential(device, calls, tmp_path):
    left = steps(device, store=tmp_path, logs=tmp_path, accelerators=TWO)
    for call in range(calls):
        left_s = CALL_S - ENDING_S
        for entry in list(left):
            if entry.cap_s <= left_s:
                left_s -= entry.cap_s
                left.remove(entry)
        assert call or not any(entry.essential for entry in left)
    assert left == []


def test_the_instruments_are_tested_first_and_alone_and_compiled_lanes_last(tmp_path):
    asked = steps("cuda:0", store=tmp_path, logs=tmp_path, accelerators=TWO)
    files = [word for entry in asked for word in entry.command if word.startswith("tests/gpu/")]
    assert files[0] == "tests/gpu/test_instruments.py"
    assert asked[1].name == "instruments"
    assert "not compiled" in next(entry for entry in asked if entry.name == "lanes").command
    assert [entry.name for entry in asked[-2:]] == ["compiled", "compiled lanes"]
    assert all(PROJECT.joinpath(file).is_file() for file in files)


def test_lanes_that_a_card_refuses_are_not_asked_for(tmp_path):
    asked = {entry.name: entry for entry in steps("cuda:0", store=tmp_path, logs=tmp_path, accelerators=TWO)}
    assert "cuda:0,cuda:0+tf32,cuda:0+bf16,cuda:0+fp16" in asked["lower precision"].command
    assert "cpu,cuda:0,cuda:0+benchmark" in asked["cnn"].command
    assert "cpu,cuda:0,cuda:1" in asked["two GPUs"].command
    other = {entry.name: entry for entry in steps("cuda:1", store=tmp_path, logs=tmp_path, accelerators=TWO)}
    assert "cuda:1,cuda:1+bf16,cuda:1+fp16" in other["lower precision"].command
    assert "cpu,cuda:1" in other["cnn"].command


def test_a_session_repeats_and_sweeps_as_often_as_predictions_need(tmp_path):
    """Twelve sizes, three repeats with other steps between them, a bare script, and running out of memory."""
    asked = steps("cuda:0", store=tmp_path, logs=tmp_path, accelerators=TWO)
    names = [entry.name for entry in asked]
    assert {"untouched script", "cnn", "lower precision", "two GPUs", "other tests"} <= set(names)
    for name in ("T1", "T2", "T4", "LSTM"):
        command = asked[names.index(f"{name} at twelve sizes")].command
        (sizes,) = (word.partition("=")[2].split(",") for word in command if "=" in word)
        assert len(set(sizes)) == 12
        assert "cpu,cuda:0,cuda:0+graph10" in command
    repeats = [place for place, name in enumerate(names) if name.startswith("disc, repeat")]
    assert len(repeats) == 3
    assert all(sum(step.cap_s for step in asked[a + 1 : b]) > 60 for a, b in pairwise(repeats))
    tests = PROJECT.joinpath(files_of(asked[names.index("other tests")])).read_text()
    assert "def test_too_large_a_model_is_out_of_memory" in tests


def files_of(entry: Step) -> str:
    return next(word for word in entry.command if word.startswith("tests/gpu/"))


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
    asked = steps(device, store=tmp_path, logs=tmp_path, accelerators=TWO)
    assert len({entry.name for entry in asked}) == len(asked)
    assert {entry.command[:2] for entry in asked} == {(listed.PYTHON, "-m")}
    assert {entry.cap_s > 0 and bool(entry.value) for entry in asked} == {True}


@pytest.mark.parametrize("device", ["cuda:0", "cpu"])
def test_every_command_line_is_understood(device, tmp_path):
    from core.__main__ import parser

    commands = [entry.command[2:] for entry in steps(device, store=tmp_path, logs=tmp_path, accelerators=TWO)]
    understood = [parser().parse_args(words) for module, *words in commands if module == "core"]
    assert len(understood) > 1
    for options in understood:
        if hasattr(options, "point_budget_s"):
            contenders = tuple(map(Contender.parse, options.devices.split(",")))
            assert dataclasses.replace(build_sweep(options), contenders=contenders).points
        elif hasattr(options, "whole"):
            contenders = tuple(map(Contender.parse, options.devices.split(",")))
            assert Experiment(point=arguments.point(options), contenders=contenders)


def test_a_session_on_the_cpu_that_is_killed_is_taken_up_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "machine.lock"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    out, again = tmp_path / "out", tmp_path / "again"
    command = (sys.executable, "-m", "tests.gpu.session", "--device", "cpu", "--seconds", str(SECONDS))
    with begun(*command, "--out", out) as first:
        until(lambda: under_way(out), lambda name: name == "first run")  # the first that stores rows
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
