"""Texts that would do something wherever they are not taken for text, and what they would be seen to do.

A page's Markdown is read as Streamlit's front end reads it: parsed, then searched, piece of text by piece of text, for
addresses, icons and emoji, which it finds in escaped text too (its remark-gfm and its own plug-ins).
"""

import csv
import io
import re

from markdown_it import MarkdownIt

STRANGER = "evil.example"
"""A host that is not ours; every address in `TEXTS` is of it."""

TEXTS = (
    f"https://{STRANGER}/a (HTTP://{STRANGER}/b)",
    f"www.{STRANGER} mailto:ada@{STRANGER} <ada@{STRANGER}>",
    f"![x](https://{STRANGER}/x.png) [y](https://{STRANGER}/y) <https://{STRANGER}/z>",
    f'<script>alert(1)</script><img src="https://{STRANGER}/x.png" onerror=alert(2)>',
    ":red[x] :small[y] :material/home: :material_home: :streamlit: :heart: :+1: a :help[b]",
    "$x$ $$y$$ *a* _b_ `c` ~~d~~ [^1] | e | a -> b -- c <= d",
    f'=HYPERLINK("http://{STRANGER}";"x")',
    "x;=cmd|' /C calc'!A0;\"=1\"; +2",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\n=1\r\n=2\r=3",
    "＝1;＠x",
    "\x1b]0;owned\x07\x1b[31mred\x1b[2J",
    "\x9b31m \x9d0;owned\x9c \x90x \x7f",
    "12\x08\x08ab",
    "\u202eabc\u202c \u2066d\u2069 \u200fe",
    "a\u2028=1\u2029b\x85=2\x0b\x0c",
    "a\u3164\u200b\u00ad\ufeff\U000e0041b\u2800",
    "half \ud83d a letter \uffff \ufdd0",
    "# x\n\n- y\n1. z\n> q\n\n    code",
    "{{x}} ${y} %s %n {0} @DATA@ \"\"\" ''' \\N{DASH} \\",
    "x" * 5_000,
)


def bundle(first: int, most: int = 400) -> str:
    """Several of them in one text of at most so many bytes, the one of this number first; no half letters."""
    found = ""
    for text in (*TEXTS[first:-1], *TEXTS[:first]):
        if len(found.encode()) + len(text.encode(errors="replace")) < most:
            found += text.encode(errors="replace").decode() + " "
    return found


LEGITIMATE = (
    "NVIDIA H200",
    "AMD EPYC 7B13 (64-Core)",
    "C:\\data",
    "ada-7",
    "1e-3",
    "cpu@2+compiled10",
    "cuda:0 (AMD Instinct MI300X, 192 GB)",
    "21 November 2026, 09:30 UTC",
    "Intel(R) Xeon(R) CPU @ 2.20GHz",
    "Linux 6.8.0-45-generic #45~22.04.1-Ubuntu",
    "50 % faster: 4.1× (3.9× to 4.3×), 1 < 2",
    "Михаил Ω ada łukasz",
    "می‌خواهم",  # Persian parts letters with U+200C
    "क्‍ष ශ්‍රී",  # as do and join Indic scripts, with U+200D
    "שלום أهلا",
    "葛\U000e0100城 東京",
    "👨‍👩‍👧 ❤️ 1️⃣ 🏳️‍🌈 👋🏽",
)
"""Texts in which nothing has to be changed to be shown."""

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\ufdd0\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What must not be in anything that is shown; spelt out, so that it is not the code's own word for it."""

_BETWEEN = ":small[]"
_MARKED = "\ue000"
GFM = MarkdownIt("commonmark", {"html": True}).enable(["strikethrough", "table"])
_IN_SOURCE = re.compile(r"(?<!\\):[a-z][a-z-]*\[|(?<!\\)\$[^$]+(?<!\\)\$|:material/\w+:|(?<!\\)\[\^")
_IN_TEXT = (
    re.compile(r"(?:https?://|www(?=\.))[-.\w]+[^ \t\r\n]*", re.IGNORECASE),
    re.compile(r"(?:^|(?<=[^\w]))[-.\w+]+@[-\w]+(?:\.[-\w]+)+"),
    re.compile(r":material_\w+:|:streamlit:"),
    re.compile(r":\+1:|:-1:|:(?!\d+:)[\w-]+:"),
    re.compile(r"(?:^|\s)(?:<->|->|<-|--|>=|<=|~=)(?:\s|$)"),
)
_MADE = {"link_open", "image", "html_inline", "html_block", "s_open", "em_open", "fence", "code_block", "code_inline"}
_MADE |= {"bullet_list_open", "ordered_list_open", "blockquote_open", "heading_open", "table_open", "hr"}


def pieces(markdown: str) -> list[str]:
    """The pieces of text that Streamlit's front end finds in Markdown."""
    found: list[str] = []
    for token in GFM.parse(markdown.replace(_BETWEEN, _MARKED)):
        for child in token.children or ():
            if child.type == "text":
                found += child.content.split(_MARKED)
            elif child.type in ("softbreak", "hardbreak"):
                found.append("\n")
    return found


def shown(markdown: str) -> str:
    """Markdown as its reader sees it."""
    return "".join(pieces(markdown))


def meanings(markdown: str) -> list[str]:
    """What Streamlit's front end makes of Markdown other than text and bold text."""
    source = markdown.replace(_BETWEEN, "")
    found = _IN_SOURCE.findall(source)
    for token in GFM.parse(source):
        for part in (token, *(token.children or ())):
            if part.type in _MADE:
                found.append(f"{part.type} {part.content} {part.attrs}")
    return found + [mark[0] for piece in pieces(markdown) for kind in _IN_TEXT for mark in kind.finditer(piece)]


def formulas(data: bytes) -> list[str]:
    """The cells of CSV that a spreadsheet would run, for one that parts cells by commas and one that uses semicolons.

    Numbers are none.
    """
    text = data.decode("utf-8-sig")
    return [
        cell
        for separator in ",;\t"
        for line in csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        for cell in line
        if re.match(r'[\s"]*[=+\-@＝＋－＠\t\r\n]', cell) and not re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell)
    ]
