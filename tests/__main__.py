"""Every check of the project in one command: `python -m tests`.

Lint, spelling, types and import contracts first, since they are quick; then all tests, in two workers what times
nothing, and alone what does. Where `CI` is set, branches of `core` are counted too, once; it doubles what tests take.
With `--quick`, of the tests only the unit tests that are quick. Other arguments are passed on to pytest, and then only
pytest runs.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPTS = Path(sysconfig.get_path("scripts"))

Command = tuple[str, ...]

CHECKS: tuple[Command, ...] = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("codespell",),
    ("mypy",),
    ("lint-imports",),
)
TESTS: Command = (sys.executable, "-m", "pytest")
TWO_WORKERS: Command = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
FOLDERS = tuple(f"tests/{name}" for name in ("browser", "integration", "gpu", "architecture", "ui", "unit"))
"""Those of the longest tests first, so that at the end no worker waits for the other."""

COVERAGE: Command = ("--cov", "--cov-report=term:skip-covered")


def main(arguments: list[str]) -> int:
    """Run what was asked for; returns the first exit status that is not 0."""
    return next((status for command in commands(arguments) if (status := _run(command))), 0)


def commands(arguments: list[str]) -> Iterator[Command]:
    """What to run for these arguments, in this order."""
    if arguments and arguments != ["--quick"]:
        yield (*TESTS, *arguments)
        return
    for name, *rest in CHECKS:
        yield (str(SCRIPTS / name), *rest)
    if arguments:
        yield (*TESTS, *TWO_WORKERS, "-m", "not slow and not timed", "tests/unit")
        return
    yield (*TESTS, *TWO_WORKERS, *(COVERAGE if os.environ.get("CI") else ()), "-m", "not timed", *FOLDERS)
    yield (*TESTS, "-m", "timed")


def _run(command: Command) -> int:
    print("$", Path(command[0]).name, *command[1:], flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
