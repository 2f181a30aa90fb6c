"""Documents are written in plain words, and the strings of the code become so: no banned word, no sentence too long."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.files.project import PROJECT
from docs import generate

WORDS = "told|said|held|taken|brought|asked|drawn|apart|stands?|beside|along|plain|ours?|we|whoever|kept|room|lanes?"
BANNED = re.compile(
    rf"\b(?:{WORDS})\b(?!_)|\bone's\b|of before|other mathematics|is not possible; it must|\bwho asks\b|"
    r"\bdrain(?:s|ed)?\b|"
    r"(?:^|[.:] )(?:What|Who|Those|Whose|They) (?![^.?]*\?)\w+|\bno longer\b|\bat first\b|\bmiddle half\b|\bnot known\b"
)
"""Words and openings of the style guide that no document uses."""

LONGEST = 25
"""Words of a sentence; in a document a piece of code, a link's address or a number with its unit counts once."""

CODE = re.compile(r"```.*?```|<!-- generated.*?<!-- end -->|<!--.*?-->|^ {4}.*?$|^#.*?$", re.S | re.M)
LISTED_NAME = re.compile(r"^ +(?:\*{0,2}\w+: )?", re.M)
"""The indentation of a docstring's line, and the name of an argument or attribute before its description."""

CEILINGS = {"docstrings": 0, "strings": 11}
"""Texts of core and pages with a banned word or too long a sentence: the numbers may only fall."""

FILES = [
    *[PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")],
    *sorted((PROJECT / "docs").rglob("*.md")),
]


def sentences(text: str) -> Iterator[str]:
    """The sentences of a document and the cells of its tables, without code, headings and addresses."""
    text = CODE.sub("\n\n", text)
    text = re.sub(r"`[^`\n]*`", "code", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text))
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) |(?<!\\)\|", text):
        yield from re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.replace("*", "").split()))


def faults(text: str, longest: int = LONGEST) -> list[str]:
    """The sentences with a banned word, or with more words than they may have."""
    return [one for one in sentences(text) if BANNED.search(one) or len(re.findall(r"[^\W\d_]{2,}", one)) > longest]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_documents_are_in_plain_words(file: Path):
    assert faults(file.read_text()) == []


def test_texts_of_the_code_become_plain():
    found = dict.fromkeys(CEILINGS, 0)
    for _, tree in generate.modules():
        documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                kind = "docstrings" if id(node) in documented else "strings"
                found[kind] += bool(faults(LISTED_NAME.sub("", node.value) if kind == "docstrings" else node.value))
    assert all(found[kind] <= ceiling for kind, ceiling in CEILINGS.items()), found


def test_the_check_can_fail():
    for wrong in ("Rows are held against a table.", "word " * 30 + ".", "What is typed is refused."):
        assert faults(wrong)
    assert not faults("Rows are compared with a table. `held` is a name. What is a row?")
