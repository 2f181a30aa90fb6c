"""What `python -m tests` runs, and in which order."""

import os
import re
import subprocess
from types import SimpleNamespace

import pytest

import tests.__main__ as command
from core.files.project import PROJECT

TIMED = "mark." + "timed"


@pytest.fixture
def here(monkeypatch):
    """Not in CI, wherever these tests run."""
    monkeypatch.delenv("CI", raising=False)


def pytest_runs(*arguments):
    """The runs of pytest, without how it is called."""
    checks, tests = command.commands(list(arguments))
    assert not [each for each in checks if each[:3] == command.TESTS]
    assert {each[:3] for each in tests} == {command.TESTS}
    return [each[len(command.TESTS) :] for each in tests]


def checked(*arguments):
    """What is run before, by name."""
    return [each[0].rpartition("/")[2].rpartition("\\")[2] for each in command.commands(list(arguments))[0]]


@pytest.mark.usefixtures("here")
def test_all_of_it_is_every_check_and_then_all_tests_in_four_workers_but_those_that_time_alone():
    assert checked() == ["ruff", "ruff", "codespell", "mypy", "lint-imports"]
    alone, parallel = pytest_runs()
    assert parallel[: len(command.FOUR_WORKERS)] == command.FOUR_WORKERS
    assert parallel[parallel.index("-m") + 1] == "not timed"
    assert alone == ("-m", "timed", "tests/gpu")
    assert {path.parent.name for path in (PROJECT / "tests").rglob("test_*.py") if TIMED in path.read_text()} <= {"gpu"}


def test_no_folder_of_tests_is_left_out():
    folders = {path.parent.relative_to(PROJECT).parts[1] for path in (PROJECT / "tests").glob("**/test_*.py")}
    assert set(command.FOLDERS) == {f"tests/{folder}" for folder in folders}


@pytest.mark.usefixtures("here")
def test_quick_is_every_check_and_the_unit_tests_that_are_quick():
    assert checked("--quick") == checked()
    assert pytest_runs("--quick") == [(*command.TWO_WORKERS, "-m", "not slow and not timed", "tests/unit")]


def test_the_slowest_tests_are_named_in_ci_alone(monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert set(command.SLOWEST) <= set(pytest_runs()[1])
    monkeypatch.delenv("CI")
    assert not set(command.SLOWEST) & set(pytest_runs()[1])


@pytest.mark.parametrize("arguments", [["tests/unit"], ["--quick", "-x"], ["-k", "a name"]])
def test_other_arguments_are_pytests_alone(arguments):
    assert not checked(*arguments)
    assert pytest_runs(*arguments) == [tuple(arguments)]


def test_what_was_compiled_is_kept_for_the_next_process_and_threads_that_wait_sleep(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.setenv("CROSSOVER_JOBS", "there")
    assert "PYTHONDONTWRITEBYTECODE" not in command.surroundings()
    assert command.surroundings()["OMP_WAIT_POLICY"] == "PASSIVE"
    assert command.surroundings()["CROSSOVER_JOBS"] == "there"


@pytest.mark.parametrize(
    ("free_bytes", "flags", "used"),
    [(5 * 2**30, 0, True), (64 * 2**20, 0, False), (5 * 2**30, os.ST_NOEXEC, False)],
)
def test_files_of_tests_lie_in_memory_where_there_is_room(monkeypatch, tmp_path, free_bytes, flags, used):
    monkeypatch.delenv("PYTEST_DEBUG_TEMPROOT", raising=False)
    monkeypatch.setattr(command, "MEMORY", tmp_path)
    monkeypatch.setattr(command.shutil, "disk_usage", lambda _: SimpleNamespace(free=free_bytes))
    monkeypatch.setattr(command.os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    assert (command.surroundings().get("PYTEST_DEBUG_TEMPROOT") == str(tmp_path)) is used


def test_files_of_tests_lie_on_a_disk_where_no_memory_is_a_folder_or_another_place_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "MEMORY", tmp_path / "nowhere")
    monkeypatch.delenv("PYTEST_DEBUG_TEMPROOT", raising=False)
    assert "PYTEST_DEBUG_TEMPROOT" not in command.surroundings()
    monkeypatch.setattr(command, "MEMORY", tmp_path)
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", "there")
    assert command.surroundings()["PYTEST_DEBUG_TEMPROOT"] == "there"


@pytest.fixture
def ran(monkeypatch):
    """What was run, by what is run; `status` has the exit status of what fails."""
    called, status = [], {}

    def run(asked, **_):
        called.append(asked)
        return subprocess.CompletedProcess(asked, status.get(asked, 0), stdout=b"said ", stderr=b"it\n")

    monkeypatch.setattr(command.subprocess, "run", run)
    return SimpleNamespace(called=called, status=status)


def test_if_nothing_fails_everything_runs(ran, here):
    checks, tests = command.commands([])
    assert command.main([]) == 0
    assert set(ran.called[: len(checks)]) == set(checks)
    assert ran.called[len(checks) :] == list(tests)


@pytest.mark.parametrize("place", range(len(command.CHECKS)))
def test_if_a_check_fails_the_others_are_told_of_too_and_no_test_runs(ran, here, capsys, place):
    checks, _ = command.commands([])
    ran.status[checks[place]] = 3
    assert command.main([]) == 3
    assert sorted(ran.called) == sorted(checks)
    said = capsys.readouterr().out.splitlines()
    assert said[1::2] == ["said it"] * len(checks)
    assert [line.split()[1] for line in said[::2]] == checked()


def test_the_first_tests_that_fail_are_the_last_that_run_and_their_status_is_ours(ran, here):
    checks, tests = command.commands([])
    ran.status[tests[0]] = 4
    assert command.main([]) == 4
    assert ran.called[len(checks) :] == [tests[0]]


def test_ci_runs_the_readmes_command_in_two_parts_and_leaves_nothing_of_it_out():
    (command,) = re.findall(r"^.*-m tests$", (PROJECT / "README.md").read_text(), re.MULTILINE)
    parts = re.findall(r'^bash -c "(.+)"$', (PROJECT / ".ci" / "run").read_text(), re.MULTILINE)
    said = [
        subprocess.run(["bash", "-c", f'echo "{part}"'], env={"command": command}, capture_output=True, text=True)
        for part in parts
    ]
    assert " && ".join(each.stdout.strip() for each in said) == command
    assert len(said) == 2
