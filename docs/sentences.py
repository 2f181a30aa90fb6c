"""The sentences that the app can say, with the function and the condition that each stands under, from the code."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

LEAST_WORDS = 4
"""Words from which a text counts as a sentence; fewer are labels."""

CODE = re.compile(r"datum\.|^<|^select |;\s*}|\bst-key\b")
"""What charts, pages and data bases read, and nobody else."""

SPEAKING = ("core", "pages")
"""Where texts for people are written."""


def listed(modules: Iterable[tuple[Path, ast.Module]]) -> str:
    """Every sentence, module by module and function by function, as Markdown."""
    lines: list[str] = []
    for path, tree in modules:
        if str(path).startswith(SPEAKING):
            said = [line for function in _functions(tree) for line in _of_function(function)]
            said = [*_constants(tree), *said]
            lines += ["", f"## {path}", "", *said] if said else []
    return "\n".join(lines[1:]) + "\n"


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node


def _of_function(function: ast.FunctionDef) -> list[str]:
    found = [line for node in function.body for line in _said(node, "")]
    doc = (ast.get_docstring(function) or "").partition("\n")[0]
    return [f"- `{function.name}`{f': {doc}' if doc else ''}", *found] if found else []


def _constants(tree: ast.Module) -> list[str]:
    """Sentences outside functions: constants, and attributes of classes that are no docstrings."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    kept = (ast.Assign, ast.AnnAssign)
    found = [line for body in bodies for node in body if isinstance(node, kept) for line in _said(node, "")]
    return ["- constants", *found] if found else []


def _said(node: ast.AST, condition: str) -> Iterator[str]:
    """Sentences below a node, in order, each with the innermost condition that it stands under."""
    text = _text(node)
    if text:
        yield f"  - {_escaped(text)}" + (f" — *if* `{condition}`" if condition else "")
    elif not text and not _skipped(node):
        for child, under in _children(node, condition):
            yield from _said(child, under)


def _skipped(node: ast.AST) -> bool:
    """Docstrings and functions within functions, which are listed by themselves, and texts that are no sentences."""
    return isinstance(node, ast.FunctionDef | ast.JoinedStr) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _children(node: ast.AST, condition: str) -> Iterator[tuple[ast.AST, str]]:
    match node:
        case ast.If(test=test, body=body, orelse=other):
            yield from ((child, ast.unparse(test)) for child in body)
            yield from ((child, f"not ({ast.unparse(test)})") for child in other)
        case ast.IfExp(test=test, body=yes, orelse=no):
            yield from ((yes, ast.unparse(test)), (no, f"not ({ast.unparse(test)})"))
        case ast.match_case(pattern=pattern, guard=guard, body=body):
            test = ast.unparse(pattern) + (f" if {ast.unparse(guard)}" if guard else "")
            yield from ((child, f"case {test}") for child in body)
        case _:
            yield from ((child, condition) for child in ast.iter_child_nodes(node))


def _text(node: ast.AST) -> str:
    """A text that is a sentence, with what is filled in in braces; empty for all else."""
    match node:
        case ast.Constant(value=str(said)):
            pass
        case ast.JoinedStr(values=values):
            said = "".join(_part(value) for value in values)
        case _:
            return ""
    words = [word for word in re.sub(r"{[^}]*}", "", said).split() if any(letter.isalpha() for letter in word)]
    return " ".join(said.split()) if len(words) >= LEAST_WORDS and not CODE.search(said) else ""


def _part(value: ast.expr) -> str:
    if isinstance(value, ast.FormattedValue):
        return "{" + ast.unparse(value.value).replace(" ", "\u00a0") + "}"
    return str(value.value) if isinstance(value, ast.Constant) else ""


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").replace("|", "\\|")
