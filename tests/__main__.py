"""Every check of the project in one command: `python -m tests`.

Lint, format, types and import contracts first, since they are quick; then all tests with branch coverage of `core`.
Arguments are passed on to pytest, and then only pytest runs.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPTS = Path(sysconfig.get_path("scripts"))

CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("lint-imports",),
)
TESTS = (sys.executable, "-m", "pytest")
COVERAGE = ("--cov", "--cov-report=term:skip-covered")


def main(arguments: list[str]) -> int:
    """Run what was asked for; returns the first exit status that is not 0."""
    if arguments:
        return _run((*TESTS, *arguments))
    for name, *rest in CHECKS:
        if status := _run((str(SCRIPTS / name), *rest)):
            return status
    return _run((*TESTS, *COVERAGE))


def _run(command: tuple[str, ...]) -> int:
    print("$", Path(command[0]).name, *command[1:], flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
