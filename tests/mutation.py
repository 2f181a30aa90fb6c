"""Seeded mutants of the modules that decide an answer, by command: which of them do the tests of that module notice?

    python -m tests.mutation [MODULE …] [--seed S] [--count N] [--at LINE]

Works in a copy of the project in a temporary folder and never touches the working copy. Each mutant changes one place
of one module (an operator, a comparison, a boundary, a constant, a returned value, a call) and gets the tests of that
module alone, until the first fails. The same seed makes the same mutants of the same code. What survived is printed
with its line and its change; docs/mutation.md has the last figures, and what is to be said of each survivor.
"""

import argparse
import ast
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
COUNT, SEED = 30, 14

STUDY = "tests/unit/answer/study/"

TESTS = {
    "core/answer/run/speedup.py": ("tests/unit/answer/run/test_speedup.py",),
    "core/answer/study/best_lanes.py": (
        STUDY + "test_best_lanes.py",
        STUDY + "test_moved_crossover.py",
    ),
    "core/answer/study/crossover.py": (STUDY + "test_figures.py", STUDY + "test_crossover.py"),
    "core/answer/study/curve.py": (STUDY + "test_figures.py", STUDY + "test_curve.py"),
    "core/answer/study/search.py": (
        STUDY + "test_next_step.py",
        STUDY + "test_search.py",
    ),
    "core/answer/comparable.py": ("tests/unit/answer/test_comparable.py",),
    "core/answer/statistics.py": ("tests/unit/answer/test_intervals.py", "tests/unit/answer/test_statistics.py"),
    "core/results/store.py": ("tests/unit/results/test_store.py",),
    "core/results/compaction.py": ("tests/unit/results/test_compaction.py",),
    "core/measure/timer.py": ("tests/unit/measure/test_timer.py",),
    "core/measure/training.py": ("tests/unit/measure/test_training.py", "tests/unit/measure/execution"),
    "core/measure/contender.py": ("tests/unit/measure/test_contender.py",),
    "core/measure/execution/compiled.py": ("tests/unit/measure/execution",),
    "core/measure/execution/graph.py": ("tests/unit/measure/execution",),
    "core/measure/execution/step.py": ("tests/unit/measure/execution",),
}
"""Module → the tests that are its own."""

LOADED = ("pytest", "hypothesis", "numpy", "pyarrow.parquet", "msgspec", "sklearn.datasets", "torch", "torchvision")
COMPILER = ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.utils")
"""Loaded once, before a process is forked for each mutant; nothing of the project is among it."""

OPTIONS = (
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "pytest_timeout",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)

MOST_BYTES = 16 * 2**30
WALL_S = 300
"""Memory and time after which a mutant counts as noticed."""

OPERATORS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.Pow: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.Mult,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
}  # fmt: skip
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil"}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A change in one place of a module.

    Attributes:
        line: of the place.
        change: for people.
        node: number of the place among all nodes of the module.
        which: number of the change among those of the place.
    """

    line: int
    change: str
    node: int
    which: int

    def applied(self, source: str) -> str:
        """The text of the module with the change."""
        tree = ast.parse(source)
        old = list(ast.walk(tree))[self.node]
        new = list(_changes(old))[self.which]
        for parent in ast.walk(tree):
            for name, value in ast.iter_fields(parent):
                if value is old:
                    setattr(parent, name, new)
                elif isinstance(value, list) and any(each is old for each in value):
                    setattr(parent, name, [new if each is old else each for each in value])
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    tree = ast.parse(source)
    wanted = {id(node) for node in _mutable(tree)}
    found = [
        Mutant(line=getattr(node, "lineno", 0), change=f"{_said(node)} → {_said(new)}", node=place, which=which)
        for place, node in enumerate(ast.walk(tree))
        if id(node) in wanted
        for which, new in enumerate(_changes(node))
    ]
    return sorted(found, key=lambda mutant: mutant.line)


def _mutable(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it that do something: no annotation, decorator, docstring, type, assertion or wording."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "format_spec"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _inert(child):
                yield from _mutable(child)


def _inert(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id in ("Literal", "Callable")
    return isinstance(node, ast.Assert | ast.Import | ast.ImportFrom)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare():
            for at, operator in enumerate(node.ops):
                others = OPERATORS[type(operator)]
                yield from (_replaced(node, ops=[*node.ops[:at], new(), *node.ops[at + 1 :]]) for new in others)
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign():
            yield from (_replaced(node, op=other()) for other in OPERATORS.get(type(node.op), ()))
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant():
            yield from (_replaced(node, value=other) for other in _others(node.value))
        case ast.If() | ast.IfExp():
            yield _replaced(node, test=ast.UnaryOp(op=ast.Not(), operand=node.test))
        case ast.Return(value=ast.AST()) if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield ast.copy_location(ast.Return(value=ast.Constant(value=None)), node)
        case ast.Expr(value=ast.Call()):
            yield ast.copy_location(ast.Pass(), node)
        case ast.Call(func=ast.Name() | ast.Attribute()):
            yield from _other_calls(node, node.func)


def _other_calls(node: ast.Call, function: ast.Name | ast.Attribute) -> Iterator[ast.AST]:
    name = function.id if isinstance(function, ast.Name) else function.attr
    if name in FUNCTIONS:
        changed = {"id" if isinstance(function, ast.Name) else "attr": FUNCTIONS[name]}
        yield _replaced(node, func=_replaced(function, **changed))


def _others(value: object) -> Sequence[object]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, (int, float)):
        return (value + 1,) if isinstance(value, int) else (value * 1.5 or 0.5,)
    return (f"{value}_",) if isinstance(value, str) and value.isidentifier() else ()


def _replaced(node: ast.AST, **fields: object) -> ast.AST:
    return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), **fields}), node)


def _said(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split("\n")[0].split())[:90]


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
