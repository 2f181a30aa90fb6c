"""Docs that follow from the code are as the code is, and what docs name is there."""

import ast
import re
from pathlib import Path

import pytest

import core
from core.files.project import PROJECT
from docs import generate

FILES = [
    path
    for folder in (PROJECT, PROJECT / "docs", PROJECT / "docs" / "decisions", PROJECT / "data")
    for path in sorted(folder.glob("*.md"))
]
FOLDERS = ("core", "pages", "tests", "docs", "examples")
PATH = re.compile(r"\b(?:core|pages|tests|deploy|docs)/[\w./-]*\.\w+")
DOTTED = re.compile(r"(?<![\w.])(?:core|pages|tests)(?:\.\w+)+")
MODULE = re.compile(r"(?<![\w/.*])\w+\.py\b")
LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")
ENVIRONMENT = re.compile(r'"(CROSSOVER_[A-Z]+)"')

by_file = pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(PROJECT).as_posix())


def told(file: Path) -> str:
    """What a file says; of the changes only what has not been released, as what is released may name what is gone."""
    text = file.read_text()
    return text.partition("\n## 0.1")[0] if file.name == "CHANGELOG.md" else text


def names(tree: ast.Module) -> set[str]:
    """What a module, or the classes in it, define."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def is_there(dotted: str) -> bool:
    """Whether a dotted name is that of a room, a module, or of something in one or at the door of all."""
    parts = dotted.split(".")
    if dotted.removeprefix("core.") in core.__all__:
        return True
    place = PROJECT
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if parts and (place / f"{parts[0]}.py").is_file():
        place /= f"{parts.pop(0)}.py"
    elif parts:
        place /= "__init__.py"
    return not parts or (place.is_file() and set(parts) <= names(ast.parse(place.read_text())))


def test_generated_parts_are_as_the_code_has_them():
    stale = [path.relative_to(PROJECT).as_posix() for path in generate.stale()]
    assert stale == [], f"run {generate.COMMAND}"


def test_every_generated_part_stands_in_one_place():
    marked = [found["name"] for path in generate.files() for found in generate.MARKED.finditer(path.read_text())]
    assert sorted(marked) == sorted(generate.PARTS)


def test_what_is_generated_says_all_of_it():
    code = "".join(path.read_text() for folder in generate.SOURCES for path in (PROJECT / folder).rglob("*.py"))
    variables = generate.environment()
    assert {name for name in ENVIRONMENT.findall(code) if f"| `{name}` | " not in variables} == set()
    assert "|  |" not in variables
    assert [path for path, tree in generate.modules() if not generate.summary(tree)] == []


@by_file
def test_every_file_that_is_named_is_there(file):
    text = told(file)
    assert {path for path in PATH.findall(text) if not (PROJECT / path.rstrip(".")).exists()} == set()
    modules = {path.name for folder in FOLDERS for path in (PROJECT / folder).rglob("*.py")}
    modules |= {path.name for path in PROJECT.glob("*.py")}
    examples = {"_training.py", "train.py", "script.py"}  # my_training.py, escaped, in a sentence about a user's file
    assert set(MODULE.findall(text)) - modules - examples == set()
    assert {name for name in DOTTED.findall(PATH.sub("", text)) if not is_there(name)} == set()


@by_file
def test_every_link_leads_somewhere(file):
    for target, anchor in LINK.findall(file.read_text()):
        path = (file.parent / target).resolve() if target else file
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{target}#{anchor}"


def test_the_check_names_what_is_stale(tmp_path, monkeypatch, capsys):
    file = tmp_path / "docs" / "one.md"
    file.parent.mkdir()
    file.write_text("before\n<!-- generated: columns -->\nold\n<!-- end -->\nafter\n")
    monkeypatch.setattr(generate, "files", lambda: [file])
    monkeypatch.setattr(generate, "PROJECT", tmp_path)
    monkeypatch.setattr(generate, "PARTS", {"columns": lambda: "new\n"})
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out == f"docs/one.md is stale: run {generate.COMMAND}\n"
    assert "old" in file.read_text()
    assert generate.main([]) == 0
    assert file.read_text() == "before\n<!-- generated: columns -->\n\nnew\n\n<!-- end -->\nafter\n"
    assert generate.main(["--check"]) == 0
