"""Seeded mutants of the modules that decide an answer, by command: which of them do the tests of that module notice?

    python -m tests.mutation [MODULE …] [--seed S] [--count N] [--at LINE]

Works in a copy of the project in a temporary folder and never touches the working copy. Each mutant changes one place
of one module (an operator, a comparison, a boundary, a constant, a returned value, a call) and gets the tests of that
module alone, until the first fails. The same seed makes the same mutants of the same code. What survived is printed
with its line and its change; docs/internal/results.md has the last figures, and what is to be said of each survivor.
"""

import argparse
import contextlib
import gc
import importlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parent.parent.parent
COUNT, SEED = 30, 14

UNIT, STUDY, LANES = "tests/unit/", "tests/unit/answer/study/", "tests/unit/measure/execution"
RECORDED = STUDY + "test_recorded_answers.py"
AFTERWARDS = UNIT + "measure/test_contender_afterwards.py"
CONTENDER = (UNIT + "measure/test_contender.py", AFTERWARDS, UNIT + "measure/test_contender_settings.py")

TESTS = {
    "core/answer/speedup.py": (
        *(UNIT + f"answer/run/test_{name}.py" for name in ("speedup", "run_times", "obstacles")),
        UNIT + "answer/test_comparable.py",
    ),
    "core/answer/remedies.py": (STUDY + "test_best_lanes.py", STUDY + "test_moved_crossover.py"),
    "core/answer/crossover.py": tuple(
        STUDY + f"test_{name}.py"
        for name in ("figures", "crossover", "crossover_properties", "open_answers", "recorded_answers")
    ),
    "core/answer/curve_estimate.py": (
        STUDY + "test_figures.py",
        STUDY + "estimate/test_curve.py",
        STUDY + "estimate/test_noise.py",
        RECORDED,
    ),
    "core/answer/judgement.py": (STUDY + "test_figures.py", STUDY + "estimate/test_judging.py", RECORDED),
    "core/answer/search.py": (STUDY + "test_next_step.py", STUDY + "test_search.py"),
    "core/answer/statistics.py": (UNIT + "answer/test_intervals.py", UNIT + "answer/test_statistics.py"),
    "core/results/store.py": (
        *(UNIT + f"results/test_{name}.py" for name in ("store", "store_writing", "refused_files")),
        UNIT + "results/compaction",
    ),
    "core/measure/timer.py": (UNIT + "measure/readings/test_timer.py",),
    "core/measure/training.py": (UNIT + "measure/test_training.py", LANES),
    "core/measure/contender.py": CONTENDER,
    "core/measure/breakdown.py": (
        UNIT + "measure/readings/test_raw_values.py",
        UNIT + "measure/afterwards/test_examination.py",
        UNIT + "measure/afterwards/test_phases.py",
        *CONTENDER,
    ),
    "core/measure/startup.py": (
        UNIT + "measure/preparing/test_startup.py",
        *CONTENDER,
    ),
    "core/measure/preflight.py": (
        UNIT + "measure/preparing/test_threads.py",
        UNIT + "measure/preparing/test_room.py",
    ),
    "core/measure/trial.py": (UNIT + "measure/preparing/test_order.py",),
    "core/measure/execution.py": (LANES,),
}
"""Module → the tests that are its own."""

LOADED = ("pytest", "hypothesis", "numpy", "pyarrow.parquet", "msgspec", "sklearn.datasets", "torch", "torchvision")
COMPILER = ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.utils")
"""Loaded once, before a process is forked for each mutant; nothing of the project is among it."""

QUIETLY = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout", *QUIETLY)

MOST_BYTES = 16 * 2**30
WALL_S = 300
"""Memory and time after which a mutant counts as noticed."""


def _loaded() -> None:
    """Load what takes long to load, with one thread and without a memory of earlier examples."""
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for name in (*LOADED, *COMPILER):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    import hypothesis

    hypothesis.settings.register_profile("mutation", database=None, derandomize=True, deadline=None)
    hypothesis.settings.load_profile("mutation")
    gc.freeze()  # what is loaded is not looked through again by each process, which took half of its time


def _noticed(tests: Sequence[str], seconds: float) -> str:
    """Run tests in a process of their own; why they noticed something, empty if they all passed."""
    begin, child = time.monotonic(), os.fork()
    if not child:
        try:
            os._exit(_run_tests(tests, seconds))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    while time.monotonic() < begin + WALL_S:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "" if status == 0 else "failed" if os.WIFEXITED(status) else "killed"
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def _run_tests(tests: Sequence[str], seconds: float) -> int:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    log = os.open("mutant.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("core", "pages", "tests")]:
        del sys.modules[name]
    import pytest

    return int(pytest.main([*OPTIONS, *tests]))


def _tried(module: str, *, seed: int, count: int, at: int | None) -> tuple[int, list[Mutant]]:
    """Try mutants of one module; how many there were, and those that nobody noticed."""
    file = Path(module)
    source, tests = file.read_text("utf-8"), TESTS[module]
    begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if why := _noticed(tests, WALL_S):
        sys.exit(f"The tests of {module} do not pass as it is ({why}):\n{Path('mutant.log').read_text()[-2000:]}")
    usual_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin
    possible = [mutant for mutant in mutants(source) if at in (None, mutant.line)]
    chosen = random.Random(f"{seed} {module}").sample(possible, min(count, len(possible)))
    survived = []
    for mutant in sorted(chosen, key=lambda mutant: mutant.line):
        file.write_text(mutant.applied(source), "utf-8")
        why = _noticed(tests, 10 + 4 * usual_s)
        if not why:
            survived.append(mutant)
        print(f"{module}:{mutant.line}: {mutant.change}: {why or 'SURVIVED'}", flush=True)
    file.write_text(source, "utf-8")
    return len(chosen), survived


def _copied(folder: Path) -> None:
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def main(arguments: list[str]) -> int:
    """Try mutants of some modules; 0 if each was noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Seeded mutants, and who survives.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="all that decide an answer unless named")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT, help="mutants of each module")
    parser.add_argument("--at", type=int, help="of this line only")
    asked = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        _copied(Path(folder))
        os.chdir(folder)
        sys.path[:] = [folder, *(path for path in sys.path if path and Path(path).resolve() != ROOT)]
        _loaded()
        for module in asked.modules or [name for name in TESTS if Path(name).exists()]:
            begin = time.monotonic()
            tried, survived = _tried(module, seed=asked.seed, count=asked.count, at=asked.at)
            rows.append((module, tried, survived, time.monotonic() - begin))
    print("\n| module | mutants | killed | survived | seconds |\n| --- | --- | --- | --- | --- |")
    for module, tried, survived, seconds in rows:
        print(f"| {module} | {tried} | {tried - len(survived)} | {len(survived)} | {seconds:.0f} |")
    for module, _, survived, _ in rows:
        print(*(f"- {module}:{mutant.line} `{mutant.change}`" for mutant in survived), sep="\n")
    return int(any(survived for _, _, survived, _ in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
