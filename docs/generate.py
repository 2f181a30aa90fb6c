"""Writes the parts of the docs that follow from the code: `python -m docs.generate`; with `--check` only looks.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->` in a Markdown file, and `PARTS` has a function for
each name. What is between the two lines is replaced; everything else of a file is left as it is.
"""

import argparse
import ast
import dataclasses
import functools
import itertools
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.__main__ import parser
from core.answer.lessons import cases as answers
from core.commands.arguments import OPTIONS
from core.files.project import PROJECT
from core.question import policy, published
from core.question.fields import TRAINING
from core.results import schema

COMMAND = "python -m docs.generate"
MARKED = re.compile(r"(<!-- generated: (?P<name>[a-z ]+) -->\n).*?(<!-- end -->)", re.S)
SOURCES = ("core", "pages")
SETTINGS = {"preset", "scale", *TRAINING}
COMMON, SETTINGS_TITLE, PROGRAM = "Common options", "Settings of a training", "python -m core"
SWEEP_OPTIONS = ("axis", "values", "range", "budget_s", "point_budget_s", "pairs")
VARIABLE = re.compile(r"CROSSOVER_[A-Z]+")
CAUSES_NAMED = {
    "small": "too little work per operation or step",
    "recurrent": "one call per time step, or too little work per step",
    "rows": "the part of a fit that doesn't depend on its rows",
    "host": "host time between operations",
    "waits": "reads of values",
    "loader": "loader share",
    "float64": "float64 arithmetic",
}
"""What a run names of a public thread, in words of the table of them."""


def table(header: str, *rows: tuple[str, ...]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [header, "|---" * (header.count("|") - 1) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


@functools.cache
def modules() -> tuple[tuple[Path, ast.Module], ...]:
    """Every module of the code with what it says, a room before what is in it."""
    paths = [path for source in SOURCES for path in (PROJECT / source).rglob("*.py")]
    ordered = sorted(paths, key=lambda path: (path.parent, path.stem != "__init__", path))
    return tuple((path.relative_to(PROJECT), ast.parse(path.read_text())) for path in ordered)


def summary(tree: ast.Module) -> str:
    """The first sentence or line of a module's docstring."""
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def contracts() -> str:
    """Every import contract, in its own words."""
    linter = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]
    rows = []
    for contract in linter["contracts"]:
        if contract["type"] == "layers":
            held = f"in `{contract['containers'][0]}`: {' → '.join(f'`{layer}`' for layer in contract['layers'])}"
        else:
            directly = ", itself," if contract.get("allow_indirect_imports") else ""
            held = (
                f"{_listed(contract['source_modules'])} never import{directly} {_listed(contract['forbidden_modules'])}"
            )
        rows.append((contract["name"], held))
    return table("| contract | holds |", *rows)


def _listed(modules: list[str]) -> str:
    return ", ".join(f"`{module}`" for module in modules)


def environment() -> str:
    """Every environment variable that a constant of the code names, with the docstring of the constant."""
    rows = []
    for path, tree in modules():
        for node, after in itertools.zip_longest(tree.body, tree.body[1:]):
            match node:
                case ast.Assign(value=ast.Constant(value=str(name))) if VARIABLE.fullmatch(name):
                    meaning = _docstring(after).removeprefix("Environment variable that ")
                    rows.append((f"`{name}`", meaning, f"`{path}`"))
    return table("| variable | what it does | where |", *sorted(rows))


def _docstring(node: ast.AST | None) -> str:
    """What stands below a constant, in one line; empty where nothing does."""
    match node:
        case ast.Expr(value=ast.Constant(value=str(said))):
            return " ".join(said.split())
    return ""


def settings() -> str:
    """Every key of a host's settings file: its default, the hosted example's value, its words, and what it does."""
    hosted = tomllib.loads((PROJECT / "crossover.hosted.toml").read_text())
    rows = []
    for key, field, owner in _keys():
        table_name, _, name = key.rpartition(".")
        example = (hosted.get(table_name, {}) if table_name else hosted).get(name)
        words = "; ".join(f'`"{word}"`: {meaning}' for word, meaning in policy.CHOICES.get(key, {}).items())
        said = _attributes(owner)[field.name]
        rows.append((f"`{key}`", _toml(field.default), "" if example is None else _toml(example), f"{said} {words}"))
    return table("| key | default | hosted example | what it does |", *(tuple(map(str.strip, row)) for row in rows))


def _keys() -> Iterator[tuple[str, "dataclasses.Field[Any]", type]]:
    for field in dataclasses.fields(policy.Policy):
        part = field.default_factory
        if isinstance(part, type) and dataclasses.is_dataclass(part):
            prefix = "class" if field.name == "classes" else field.name
            yield from ((f"{prefix}.{inner.name}", inner, part) for inner in dataclasses.fields(part))
        elif field.name != "fault":  # which no file says
            yield field.name, field, policy.Policy


def _attributes(owner: type) -> dict[str, str]:
    """What the docstring of a class says of its fields."""
    listed = (owner.__doc__ or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^ {8}(\w+): (.*(?:\n {10,}.*)*)", listed, re.M)
    return {name: " ".join(said.split()) for name, said in entries}


def _toml(value: object) -> str:
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case str():
            return f'`"{value}"`'
        case tuple() | list():
            return f"`{list(value)}`"
    return f"`{value:_}`" if isinstance(value, int) else f"`{value:_.0f}`"


def threads() -> str:
    """Every public thread: its cause, what stands for it here, what a run names where it agrees, and the remedy."""
    rows = []
    for case in published.load_cases().values():
        here = (case.here.training or "settings of the catalogue") if case.here else "no"
        named = CAUSES_NAMED[answers.SAME_CAUSES[case.cause][0]] if case.here else ""
        remedy = case.remedy.title if case.remedy else ""
        source = f"[{case.thread}]({case.address}), {case.date or 'undated'}"
        rows.append((source, published.CAUSES[case.cause], here, named, remedy, case.open))
    rows += [(one.thread, "", "no case", "", "", one.why) for one in published.list_skipped_threads()]
    header = "| report | cause | runs here | named by a run as | measured fix | unknown |"
    return table(header, *rows)


def commands() -> str:
    """Every command with its options, as `--help` says them."""
    return "\n".join(_commands(parser(), PROGRAM)).lstrip() + "\n"


def _commands(
    owner: argparse.ArgumentParser, name: str, listed: dict[str, dict[str, str]] | None = None
) -> Iterator[str]:
    """The sections of a command; what several have alike has sections of its own at the end."""
    listed, rows, linked = ({} if listed is None else listed), [], dict[str, list[str]]()
    for action in owner._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {entry.dest: entry.help or "" for entry in action._choices_actions}
            for word, below in action.choices.items():
                yield f"\n### `{name} {word}`\n\n{helps[word][:1].upper()}{helps[word][1:]}.\n"
                yield from _commands(below, f"{name} {word}", listed)
        elif not isinstance(action, argparse._HelpAction):
            row = (f"`{_written(action)}`", (action.help or "") % vars(action) if action.help else "")
            if section := _find_section(action, name):
                listed.setdefault(section, {})[row[0]] = row[1]
                linked.setdefault(section, []).append(f"`{action.option_strings[0]}`")
            else:
                rows.append(row)
    rows += _link_sections(linked)
    if rows and name != PROGRAM:
        yield table("| option | meaning |", *rows)
    if name == PROGRAM:
        for section in (COMMON, SETTINGS_TITLE):
            yield f"\n### {section}\n"
            yield table("| option | meaning |", *listed[section].items())


def _link_sections(linked: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """A row for each section that has options of a command."""
    for section, options in linked.items():
        names = ", ".join(options) if section != SETTINGS_TITLE else f"{len(options)} options"
        yield f"[{section.lower()}](#{section.lower().replace(' ', '-')})", names


def _find_section(action: argparse.Action, name: str) -> str:
    """The section that has an option of several commands; empty if only its command has it."""
    if name.startswith(f"{PROGRAM} class ") and action.dest in SWEEP_OPTIONS:
        return f"{PROGRAM} sweep"
    if action.dest in OPTIONS and action.help == OPTIONS[action.dest]["help"]:
        return COMMON
    is_setting = action.dest in SETTINGS and action.help and not action.help.endswith("(default: any)")
    return SETTINGS_TITLE if is_setting else ""


def _written(action: argparse.Action) -> str:
    """An option as it is typed."""
    value = "" if action.nargs == 0 else str(action.metavar or (action.dest if not action.option_strings else "VALUE"))
    if action.choices:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    return " ".join(filter(None, (", ".join(action.option_strings), value)))


PARTS: Mapping[str, Callable[[], str]] = {
    "columns": schema.dictionary,
    "contracts": contracts,
    "environment": environment,
    "settings": settings,
    "commands": commands,
    "threads": threads,
}
"""Name of a part → the function that writes it."""


def files() -> list[Path]:
    """Every Markdown file that may have parts."""
    return [PROJECT / "data" / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]


def written(text: str) -> str:
    """A file with its parts as the code has them now."""
    return MARKED.sub(lambda found: f"{found[1]}\n{PARTS[found['name']]()}\n{found[3]}", text)


def stale() -> list[Path]:
    """The files of which a part is not what the code says."""
    return [path for path in files() if written(path.read_text()) != path.read_text()]


def main(arguments: list[str]) -> int:
    """Write what is stale, or with `--check` name it; returns 1 where something is found to be stale."""
    options = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--check", action="store_true", help="only say what is stale")
    only_check, found = options.parse_args(arguments).check, stale()
    for path in found:
        print(f"{path.relative_to(PROJECT)} {'is stale: run ' + COMMAND if only_check else 'was written anew'}")
        if not only_check:
            path.write_text(written(path.read_text()))
    return int(only_check and bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
