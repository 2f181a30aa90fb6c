"""Every check of the project in one command: `python -m tests`.

Lint, spelling, types and import contracts first and at once, since they are quick; then, alone, the tests that time an
accelerator, which skip where there is none; at last all others, so that what is said at the end is of them. They run in
four workers: many wait for processes, whose work keeps two processors busy, and each worker more would read all tests
once more; `tests.sharing` says who gets which. Their files lie in memory where there is room for them.
Where `CI` is set, the slowest tests are named. With `--quick`, only quick unit tests run, in two workers. Other
arguments go to pytest, which then runs alone.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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
BY_FILE: Command = ("--dist", "loadfile", "--no-loadscope-reorder")
TWO_WORKERS: Command = ("-n", "2", *BY_FILE)
FOUR_WORKERS: Command = ("-n", "4", *BY_FILE)
FOLDERS = tuple(f"tests/{name}" for name in ("browser", "integration", "gpu", "xla", "architecture", "ui", "unit"))

ALONE: Command = ("-m", "timed", "tests/gpu")

SLOWEST: Command = ("--durations=40",)

MEMORY = Path("/dev/shm")
"""Files in memory, on Linux; elsewhere there is no such folder."""

ROOM_BYTES = 4 * 2**30
"""Free memory of which nobody misses what the files of all tests take, less than a tenth of it."""


def main(arguments: list[str]) -> int:
    """Run what was asked for; returns the first exit status that is not 0."""
    checks, tests = commands(arguments)
    return _run_at_once(checks) or next((status for command in tests if (status := _run(command))), 0)


def commands(arguments: list[str]) -> tuple[Sequence[Command], Sequence[Command]]:
    """What to run for these arguments: checks, all at once, and then tests, one after the other."""
    if arguments and arguments != ["--quick"]:
        return (), [(*TESTS, *arguments)]
    checks = [(str(SCRIPTS / name), *rest) for name, *rest in CHECKS]
    if arguments:
        return checks, [(*TESTS, *TWO_WORKERS, "-m", "not slow and not timed", "tests/unit")]
    slowest = SLOWEST if os.environ.get("CI") else ()
    return checks, [(*TESTS, *ALONE), (*TESTS, *FOUR_WORKERS, *slowest, "-m", "not timed", *FOLDERS)]


def _run_at_once(checks: Sequence[Command]) -> int:
    """Run every check; what each says is printed when it is done, in their order."""
    with ThreadPoolExecutor() as pool:
        ended = pool.map(lambda check: subprocess.run(check, cwd=ROOT, check=False, capture_output=True), checks)
        return next(filter(None, [_told(check, run) for check, run in zip(checks, ended, strict=True)]), 0)


def _told(command: Command, run: subprocess.CompletedProcess[bytes]) -> int:
    _announce(command)
    print((run.stdout + run.stderr).decode(errors="replace"), end="", flush=True)
    return run.returncode


def _run(command: Command) -> int:
    _announce(command)
    return subprocess.run(command, cwd=ROOT, check=False, env=surroundings()).returncode


def surroundings() -> dict[str, str]:
    """Environment in which what was compiled is kept, as some 300 processes read the same files, and threads that wait
    sleep, as in our measuring process: in several workers they would take turns at looking for work that others do.
    Files of tests go to memory, unless somebody named another place: a disk takes milliseconds to flush or remove one.
    """
    from core.jobs.client import WAITING_POLICY  # once the checks found nothing wrong with it

    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**_place_of_files(), **kept, **WAITING_POLICY}


def _place_of_files() -> dict[str, str]:
    """Memory, if there is room, and what is compiled there may be run from there, as a container often forbids."""
    if not os.access(MEMORY, os.W_OK) or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return {}
    return {"PYTEST_DEBUG_TEMPROOT": str(MEMORY)} if shutil.disk_usage(MEMORY).free > ROOM_BYTES else {}


def _announce(command: Command) -> None:
    print("$", Path(command[0]).name, *command[1:], flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
