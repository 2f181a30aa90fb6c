"""Names of functions read whole: at most a few are a participle, an adjective or a preposition alone."""

import ast
import collections
from collections.abc import Iterator

import pytest

from core.files.project import PROJECT

MAX_FRAGMENT_SHARE = 0.04
"""Well-kept packages of the same size have 1 to 3 % (pyperf, httpx, datasette)."""

MAX_DEFINITIONS = 3
"""Modules that may define the same name; more say that the name leaves out what it is about."""

CONVENTIONS = {"_log", "T", "__all__"}
"""Names that every module gives to the same thing."""

PREPOSITIONS = {
    "of",
    "in",
    "on",
    "at",
    "by",
    "with",
    "within",
    "without",
    "beside",
    "beyond",
    "before",
    "after",
    "from",
    "to",
    "under",
    "over",
    "along",
    "against",
    "between",
    "among",
    "apart",
    "onward",
    "elsewhere",
    "here",
    "there",
    "now",
    "once",
    "else",
    "but",
    "beneath",
    "across",
    "through",
    "together",
    "alike",
    "aside",
    "near",
    "outside",
    "inside",
    "around",
}
PARTICIPLES = {
    "held",
    "kept",
    "told",
    "said",
    "known",
    "found",
    "made",
    "taken",
    "given",
    "brought",
    "left",
    "begun",
    "written",
    "built",
    "shown",
    "drawn",
    "chosen",
    "lent",
    "met",
    "put",
    "read",
    "set",
    "sent",
    "seen",
    "spoken",
    "done",
    "gone",
    "come",
    "came",
    "lost",
    "sworn",
    "bound",
    "worn",
    "spent",
    "taught",
    "felt",
    "heard",
    "meant",
    "hidden",
    "grown",
    "lain",
    "led",
    "cut",
}
ADJECTIVES = PARTICIPLES | {
    "whole",
    "alone",
    "own",
    "plain",
    "like",
    "same",
    "different",
    "open",
    "free",
    "fit",
    "fits",
    "single",
    "several",
    "many",
    "few",
    "ready",
    "big",
    "small",
    "full",
    "fresh",
    "complete",
    "foreign",
    "alive",
    "ours",
    "new",
    "usual",
    "busy",
    "live",
    "clear",
    "close",
    "true",
    "false",
    "older",
    "newer",
    "newest",
    "largest",
    "latest",
    "lately",
    "unlike",
    "comparable",
    "certain",
    "enough",
    "least",
    "most",
    "current",
    "normal",
    "common",
    "typical",
    "fastest",
    "missing",
    "stock",
    "unread",
    "blank",
    "pressed",
}
NOUNS_IN_ED = {"need", "seed", "speed", "feed", "bed", "embed"}
VERBS = {"read", "set", "put", "cut", "open", "clear", "complete", "free", "fit", "close", "like"}
HABITS = {"to", "from", "on", "with"}
"""Prepositions with which Python's own names begin: `to_json`, `from_row`, `on_change`, `with_name`."""


def is_participle(word: str) -> bool:
    return word in PARTICIPLES or (word.endswith("ed") and word not in NOUNS_IN_ED)


def is_fragment(name: str) -> bool:
    words = name.strip("_").split("_")
    if words[0] in VERBS or (words[0] in HABITS and len(words) > 1):
        return False
    if len(words) == 1:
        return words[0] in PREPOSITIONS or words[0] in ADJECTIVES or is_participle(words[0])
    if words[0] in PREPOSITIONS or words[-1] in PREPOSITIONS or is_participle(words[0]):
        return True
    return all(word in PREPOSITIONS | ADJECTIVES or word.endswith("ed") for word in words)


def trees(folder: str) -> Iterator[ast.Module]:
    for path in sorted((PROJECT / folder).rglob("*.py")):
        yield ast.parse(path.read_text())


def function_names(tree: ast.Module) -> Iterator[str]:
    """Names of all functions but properties and those that Python itself calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            decorators = {getattr(each, "id", "") or getattr(each, "attr", "") for each in node.decorator_list}
            if not decorators & {"property", "cached_property"}:
                yield node.name


def module_level_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("folder", ["core", "pages"])
def test_names_of_functions_read_whole(folder):
    names = [name for tree in trees(folder) for name in function_names(tree)]
    fragments = collections.Counter(filter(is_fragment, names))
    assert fragments.total() <= MAX_FRAGMENT_SHARE * len(names), fragments.most_common(20)


def test_no_name_is_defined_in_more_than_three_modules():
    names = collections.Counter(
        name for folder in ("core", "pages") for tree in trees(folder) for name in module_level_names(tree)
    )
    assert {name: count for name, count in names.items() if count > MAX_DEFINITIONS and name not in CONVENTIONS} == {}


@pytest.mark.parametrize("name", ["told", "_of_rows", "found_rows", "kept", "beside", "_named"])
def test_a_fragment_is_recognized(name):
    assert is_fragment(name)


@pytest.mark.parametrize("name", ["read_rows", "to_json", "_on_change", "seed", "crossover_sentence", "is_served"])
def test_a_whole_name_is_recognized(name):
    assert not is_fragment(name)
