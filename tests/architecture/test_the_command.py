"""What `python -m tests` runs, and in which order."""

import subprocess

import pytest

import tests.__main__ as command
from core.files.project import PROJECT


@pytest.fixture
def here(monkeypatch):
    """Not in CI, wherever these tests run."""
    monkeypatch.delenv("CI", raising=False)


def pytest_runs(*arguments):
    """Of the commands, those that are runs of pytest; without how it is called."""
    return [each[len(command.TESTS) :] for each in command.commands(list(arguments)) if each[:3] == command.TESTS]


def names(*arguments):
    """What is run, by name."""
    return [each[0].rpartition("/")[2].rpartition("\\")[2] for each in command.commands(list(arguments))]


@pytest.mark.usefixtures("here")
def test_all_of_it_is_every_check_and_then_what_times_nothing_in_two_workers_and_what_times_alone():
    assert names()[: len(command.CHECKS)] == ["ruff", "ruff", "codespell", "mypy", "lint-imports"]
    parallel, alone = pytest_runs()
    assert parallel[: len(command.TWO_WORKERS)] == command.TWO_WORKERS
    assert parallel[parallel.index("-m") + 1] == "not timed"
    assert alone == ("-m", "timed")


def test_no_folder_of_tests_is_left_out():
    folders = {path.parent.relative_to(PROJECT).parts[1] for path in (PROJECT / "tests").glob("**/test_*.py")}
    assert set(command.FOLDERS) == {f"tests/{folder}" for folder in folders}


@pytest.mark.usefixtures("here")
def test_quick_is_every_check_and_the_unit_tests_that_are_quick():
    assert names("--quick")[:-1] == names()[: len(command.CHECKS)]
    assert pytest_runs("--quick") == [(*command.TWO_WORKERS, "-m", "not slow and not timed", "tests/unit")]


def test_branches_are_counted_in_ci_and_nowhere_while_time_is_measured(monkeypatch):
    monkeypatch.setenv("CI", "true")
    parallel, alone = pytest_runs()
    assert set(command.COVERAGE) <= set(parallel)
    assert "--cov" not in alone
    monkeypatch.delenv("CI")
    assert not [each for each in pytest_runs() if "--cov" in each]


@pytest.mark.parametrize("arguments", [["tests/unit"], ["--quick", "-x"], ["-k", "a name"]])
def test_other_arguments_are_pytests_alone(arguments):
    assert list(command.commands(arguments)) == [(*command.TESTS, *arguments)]


@pytest.mark.parametrize(("fails_at", "ran"), [(0, 1), (3, 4), (None, 7)])
def test_the_first_that_fails_is_the_last_that_runs_and_its_status_is_ours(monkeypatch, here, fails_at, ran):
    called = []

    def run(asked, **_):
        called.append(asked)
        return subprocess.CompletedProcess(asked, 3 if len(called) - 1 == fails_at else 0)

    monkeypatch.setattr(command.subprocess, "run", run)
    assert command.main([]) == (0 if fails_at is None else 3)
    assert called == list(command.commands([]))[:ran]
