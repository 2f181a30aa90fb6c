"""Rules that tests keep."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from core.files.project import PROJECT

FILES = sorted((PROJECT / "tests").rglob("*.py"))
TEST_FILES = [path for path in FILES if path.name.startswith("test_")]

CHECKING = ("raises", "warns", "fail", "expect", "deprecated_call")
"""Calls that fail where something is wrong, as those do whose names begin with a word of `CHECKING_VERBS`."""
CHECKING_VERBS = ("require", "assert", "check_", "validate_")


def name(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def imported(path: Path) -> Iterator[str]:
    """Modules that a file imports, also those that a text in it does, as a child process runs it."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    yield from re.findall(r"(?:from|import) (tests\.[\w.]+(?: import \w+)?)", text)


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def checks(node: ast.AST, known: dict[str, ast.FunctionDef], deep: bool = True) -> bool:
    """Whether a function can fail by itself, or calls one of its file that can."""
    for part in ast.walk(node):
        if isinstance(part, ast.Assert):
            return True
        if not isinstance(part, ast.Call):
            continue
        called = ast.unparse(part.func).rpartition(".")[2]
        if called in CHECKING or called.startswith(CHECKING_VERBS):
            return True
        if deep and called in known and checks(known[called], known, deep=False):
            return True
    return False


def test_no_module_imports_from_a_test():
    strays = []
    for path in FILES:
        own = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        tests = [module for module in imported(path) if re.match(r"tests\..*\btest_", module)]
        strays += [(name(path), module) for module in tests if not module.replace(" import ", ".").startswith(own)]
    assert strays == []


def test_every_test_can_fail():
    idle = []
    for path in TEST_FILES:
        known = functions(path)
        tests = [(test, node) for test, node in known.items() if test.startswith("test_")]
        idle += [f"{name(path)}: {test}" for test, node in tests if not checks(node, known)]
    assert idle == []


def test_every_benchmark_stands_in_the_one_table_with_its_command():
    folder = PROJECT / "tests" / "benchmarks"
    programs = {path.stem for path in folder.glob("*.py") if "ArgumentParser" in path.read_text()} | {"disc_claim"}
    table = [line for line in (folder / "README.md").read_text().splitlines() if "`python -m" in line]
    assert {found for line in table for found in re.findall(r"`python -m tests\.benchmarks\.(\w+)", line)} == programs
    assert len(table) == len(programs)
