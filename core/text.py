"""Foreign text, made safe for its output format: a function for each format, and one definition of visible characters.

Foreign text comes from a file, a link, a visitor, a device or an error. In its output it is shown literally and has no
effect: no link, picture, colour or formula, no command to a terminal, no end of its line. Invisible characters
(`replace_invisible`) are never output; too long a text ends in an ellipsis. A text without any of these stays exactly
as it was. Nothing here knows the meaning of a text.
"""

import html
import json
import logging
import math
import re
from base64 import b64encode
from collections.abc import Sequence

import regex

REPLACEMENT = "\ufffd"
"""Stands for a letter that is never let through, so that one sees that there was one."""

MOST_ON_PAGE, MOST_IN_TABLE, MOST_ON_TERMINAL = 4_000, 1_000, 4_000
"""Letters of one text; on a terminal, of one line. The longest that a row may bring are 2,000."""

MOST_IN_CSV = 32_000
"""Letters of a cell: more than 32,767 do not fit into one of a spreadsheet."""

MOST_ON_PAPER = 20_000
"""Letters of one text in a report: ten times a student's longest answer."""

MOST_IN_LABEL, MOST_IN_PYTHON, MOST_IN_FILE_NAME = 120, 200, 80
"""Limits of a name's letters: in a chart, in a line of source, and in a file name on every file system."""

_NEEDED = (
    r"(?<=\p{Extended_Pictographic})[\ufe0e\ufe0f]",
    r"(?<=[0-9#*])\ufe0f(?=\u20e3)",
    r"(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?)\u200d(?=\p{Extended_Pictographic})",
    r"(?<=\p{Canonical_Combining_Class=Virama})[\u200c\u200d]",
    r"(?<=[\p{Arabic}\p{Syriac}\p{Nko}\p{Mongolian}]\p{Mn}{0,3})[\u200c\u200d](?=[\p{Arabic}\p{Syriac}\p{Nko}\p{Mongolian}])",
    r"(?<=\p{Mongolian})[\u180b-\u180d\u180f]",
    r"(?<=\p{Han})[\U000e0100-\U000e01ef]",
)
"""Letters without a shape of their own, where the surrounding script needs them.

These letters choose the form of an emoji and join several into one (families, flags, keycaps). Some join or part the
letters of Persian and of Indic scripts, or choose a Mongolian or a Chinese letter's form. Unicode's UAX 31 allows
such letters in identifiers there. Anywhere else they would only make two texts that look the same differ. Tags, with
which some flags are written, are allowed nowhere: whole sentences can be hidden in them.
"""

_NEVER = (
    r"[[\p{Cc}--[\t\n\r]]"  # control characters: a terminal takes orders from them, XML cannot hold them
    r"\p{Bidi_Control}"  # show a text in another order than it has
    r"\p{Default_Ignorable_Code_Point}"  # zero-width, fillers, tags: not seen at all
    r"\p{Zl}\p{Zp}"  # ends of a line that only some programs know
    r"\p{Cs}\p{Noncharacter_Code_Point}\ufff9-\ufffb]"  # half a letter, none at all, marks of other programs
    r"|(?<=\p{Mn}{8})\p{Mn}"  # piled up, marks cover the lines above; no script needs so many on one letter
)

_HIDDEN = regex.compile(f"(?V1)(?P<needed>{'|'.join(_NEEDED)})|{_NEVER}")

_UNUSUAL = re.compile(
    "[^\t\n\r -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u2070-\u20cf"
    "\u2100-\u23ff\u2500-\u25ff\u3001-\u3029\u3041-\u3096\u30a1-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f\ufffd]"
)
"""Letters that are looked at closely; all others are always let through, and nearly every text has no others, which is
found out a hundred times as fast."""

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")

_READ_LATER = re.compile(r":(?=[A-Za-z_+/-]|\d\w*:)|(?i:www)(?=\.)|@(?=[-\w]+\.[-\w])|[-<>~=](?=[-<>=])")
"""Where a page finds something in text that was escaped: a link, an address of mail, an icon, an emoji, an arrow."""

_APART = ":small[]"
"""Streamlit's Markdown for nothing in small letters. A page looks for what is meant in one piece of text at a time, and
this makes two of one; it is neither seen nor copied."""

_LEADS = "=+@＝＋－＠﹦﹢﹣﹫-"
"""Letters that make a spreadsheet run a cell that begins with them as a formula."""

_FORMULA = re.compile(rf'(?:^|(?<=;))(?=[\s"]*[{_LEADS}])')
"""Where a formula would begin: with the cell, or with another one for a program that parts cells by semicolons, within
quotes too, which it does not see there."""

_LINKED = re.compile(r"://|www\.|@[a-z\d-]+\.|@[a-z]|:[a-z+-][\w+-]*:", re.IGNORECASE)
"""Text that Markdown renderers turn into a link, a mention or an emoji, some of it whether escaped or not."""

_WORD = re.compile(r"[^ |`]+|[|`]")
_ESCAPED = re.compile(r"([\\`*_{}\[\]#!|]|(?<=[\w-])\.(?=[A-Za-z]{2}))")
_SPELT_OUT = re.compile("[<>&~$]")
_BEGINS_A_LIST = re.compile(r"^(\d+)(?=[.)](?:\s|$))|^(?=[-+])")
"""Text that Markdown does not show literally: anywhere, where a backslash may not help, and at a line's start."""


def replace_invisible(text: str) -> str:
    """Replace invisible characters of `text`. Tabs and the ends of lines stay."""
    if not _UNUSUAL.search(text):
        return text
    replaced: str = _HIDDEN.sub(lambda found: found[0] if found["needed"] else REPLACEMENT, text)
    return replaced


def as_lines(text: str, limit: int = MOST_ON_PAPER) -> str:
    """Return `text` for a place that shows it literally, in several lines."""
    return re.sub(r"\r\n?", "\n", replace_invisible(_cut(text, limit)))


def as_line(text: str, limit: int = MOST_IN_TABLE) -> str:
    """Return `text` for a place that shows it literally, in one line."""
    return " ".join(replace_invisible(_cut(text, limit)).split())


def as_label(text: str) -> str:
    """Return `text` as a name: in a chart, as a choice, as the alternative text of a picture."""
    return as_line(text, MOST_IN_LABEL)


def to_page_markdown(text: str) -> str:
    """Return `text` for Streamlit's Markdown, literally: no links, images, colours, icons, formulas or HTML."""
    parted = _READ_LATER.sub("\\g<0>\0", as_line(text, MOST_ON_PAGE))
    return _PUNCTUATION.sub(r"\\\1", parted).replace("\0", _APART)


def to_table_cell(value: object) -> object:
    """Return a value as a cell of a table on a page, which a click makes a file for spreadsheets of.

    Values that are not text stay unchanged.
    """
    return _harmless(as_line(value, MOST_IN_TABLE)) if isinstance(value, str) else value


def to_csv_cell(value: object) -> object:
    """Return a value as a cell of CSV that no spreadsheet runs as a formula, with commas or semicolons.

    Lists become JSON, with null for a number that is not finite, and bytes base64.
    """
    match value:
        case list() | tuple():
            return json.dumps([None if isinstance(item, float) and not math.isfinite(item) else item for item in value])
        case bytes():
            return _harmless(b64encode(value).decode())
        case str():
            return _harmless(as_line(value, MOST_IN_CSV))
    return value


def to_terminal(text: str) -> str:
    """Return `text` in lines without commands to a terminal."""
    lines = as_lines(text, len(text)).replace("\t", " ").split("\n")
    return "\n".join(_cut(line, MOST_ON_TERMINAL) for line in lines)


def to_html(text: str) -> str:
    """Return `text` as HTML or XML, between tags or as the value of an attribute, in several lines."""
    return html.escape(as_lines(text))


def to_markdown(text: str) -> str:
    """Return `text` in one line that Markdown renderers show literally; likely links become code."""
    escaped = _WORD.sub(lambda found: _escape_markdown_word(found[0]), as_line(text, MOST_ON_PAPER))
    return _BEGINS_A_LIST.sub(lambda found: f"{found[1] or ''}\\", escaped)


def to_python_literal(value: object) -> str:
    """Return a value as a literal of one line of Python: numbers unchanged, everything else as quoted ASCII text."""
    if isinstance(value, bool | int | float):
        return repr(value)
    return ascii(_cut(str(value), MOST_IN_PYTHON))


def to_file_name(text: str) -> str:
    """Return `text` as a part of a file name that is safe on any system: letters, digits, and - _ . within."""
    name = re.sub(r"[^\w.-]+", "-", replace_invisible(_cut(text, MOST_IN_FILE_NAME)).replace(REPLACEMENT, "-"))
    return name.strip("-.") or "unnamed"


class LogFormatter(logging.Formatter):
    """Lines of a log that give the terminal, on which they are read, no orders."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with invisible characters replaced."""
        return to_terminal(super().format(record))


def align_columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of text in which the cells of each column are aligned."""
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]


def clean_logs() -> None:
    """Let what is logged where nobody has set up a log give the terminal no orders; for who starts a process."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LogFormatter())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _harmless(cell: str) -> str:
    return _FORMULA.sub("'", cell)


def _escape_markdown_word(word: str) -> str:
    if _LINKED.search(word):
        return f"`{word}`"
    return _SPELT_OUT.sub(lambda found: f"&#{ord(found[0])};", _ESCAPED.sub(r"\\\1", word))
