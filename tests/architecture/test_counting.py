"""Branches are counted while quick unit tests run, and while others run nothing is, in workers too."""

import os
import subprocess
import sys

import pytest

from core.files.project import PROJECT

FILES = {
    "conftest.py": "from tests import counting\ndef pytest_configure(config): counting.begin(config)\n",
    "counted.py": """
def quick(): return sys.gettrace()

def slow():
    return sys.gettrace()

def other():
    return sys.gettrace()

import sys
""",
    "tests/unit/test_it.py": """
import os, sys
import counted, pytest
IMPORTED = sys.gettrace()

def test_quick(): assert counted.quick()

@pytest.mark.slow
def test_slow(): assert counted.slow() is None

def test_of_what_is_imported_one_worker_counts_the_lines():
    assert bool(IMPORTED) is (os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0")
""",
    "tests/ui/test_others.py": """
import counted, pytest

@pytest.fixture
def made():
    return counted.other()

def test_others(made): assert counted.other() is made is None
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "two workers"])
def test_only_quick_unit_tests_count_and_what_is_imported_for_them(tmp_path, workers):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    options = ["-q", "-p", "no:cacheprovider", "-o", "markers=slow", "--rootdir", str(tmp_path)]
    kept = {name: value for name, value in os.environ.items() if "XDIST" not in name and name != "COVERAGE_FILE"}
    counted = ["--cov", "counted", "--cov-report=term-missing"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *counted, *workers, "tests"],
        cwd=tmp_path,
        env={**kept, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    (said,) = [line.split(maxsplit=4) for line in done.stdout.splitlines() if line.startswith("counted.py")]
    assert said == ["counted.py", "6", "2", "67%", "5, 8"]
