"""Foreign text, made safe for its output format: a function for each format, and one definition of visible characters.

Foreign text comes from a file, a link, a visitor, a device or an error. In its output it is shown literally and has no
effect: no link, picture, colour or formula, no terminal command, no line break within a line. Invisible characters
(`replace_invisible`) are never output; a text that is too long ends in an ellipsis. Any other text stays unchanged. The
functions ignore the meaning of a text.
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
"""Visible replacement for an invisible character."""

MOST_ON_PAGE, MOST_IN_TABLE, MOST_ON_TERMINAL = 4_000, 1_000, 4_000
"""Maximum number of characters of one text; on a terminal, of one line. A text of a row has at most 2,000."""

MOST_IN_CSV = 32_000
"""Maximum number of characters of a cell; spreadsheets allow at most 32,767."""

MOST_ON_PAPER = 20_000
"""Maximum number of characters of one text in a report: ten times a student's longest answer."""

MOST_IN_LABEL, MOST_IN_PYTHON, MOST_IN_FILE_NAME = 120, 200, 80
"""Maximum number of characters of a name in a chart, in a line of source, and in a file name on any file system."""

_NEEDED = (
    r"(?<=\p{Extended_Pictographic})[\ufe0e\ufe0f]",
    r"(?<=[0-9#*])\ufe0f(?=\u20e3)",
    r"(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?)\u200d(?=\p{Extended_Pictographic})",
    r"(?<=\p{Canonical_Combining_Class=Virama})[\u200c\u200d]",
    r"(?<=[\p{Arabic}\p{Syriac}\p{Nko}\p{Mongolian}]\p{Mn}{0,3})[\u200c\u200d](?=[\p{Arabic}\p{Syriac}\p{Nko}\p{Mongolian}])",
    r"(?<=\p{Mongolian})[\u180b-\u180d\u180f]",
    r"(?<=\p{Han})[\U000e0100-\U000e01ef]",
)
"""Invisible characters in a context in which the surrounding script needs them.

Some of them select the form of an emoji or join several emoji into one (families, flags, keycaps). Others join or
separate letters of Persian and of Indic scripts, or select the form of a Mongolian or a Chinese letter. Unicode's UAX
31 allows such characters in identifiers there. Anywhere else, they would only make texts differ that look the same. Tag
characters, which some flags contain, are never allowed because they can hide whole sentences.
"""

_NEVER = (
    r"[[\p{Cc}--[\t\n\r]]"  # control characters: terminals obey them, XML cannot contain them
    r"\p{Bidi_Control}"  # change the order in which a text is displayed
    r"\p{Default_Ignorable_Code_Point}"  # zero-width characters, fillers, tags: invisible
    r"\p{Zl}\p{Zp}"  # line separators that only some programs recognize
    r"\p{Cs}\p{Noncharacter_Code_Point}\ufff9-\ufffb]"  # surrogates, noncharacters, annotation marks
    r"|(?<=\p{Mn}{8})\p{Mn}"  # stacked marks cover the lines above; no script needs so many on one letter
)

_HIDDEN = regex.compile(f"(?V1)(?P<needed>{'|'.join(_NEEDED)})|{_NEVER}")

_UNUSUAL = re.compile(
    "[^\t\n\r -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u2070-\u20cf"
    "\u2100-\u23ff\u2500-\u25ff\u3001-\u3029\u3041-\u3096\u30a1-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f\ufffd]"
)
"""Characters that need the full check; all others are always allowed. Most texts contain none of them, and this search
is a hundred times as fast as the full check.
"""

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")

_READ_LATER = re.compile(r":(?=[A-Za-z_+/-]|\d\w*:)|(?i:www)(?=\.)|@(?=[-\w]+\.[-\w])|[-<>~=](?=[-<>=])")
"""Positions in escaped text where a page still finds a link, an email address, an icon, an emoji or an arrow."""

_APART = ":small[]"
"""Streamlit's Markdown for an empty text in small letters, which is neither visible nor copied. It splits a text in
two, and a page searches each part separately for links and icons.
"""

_LEADS = "=+@＝＋－＠﹦﹢﹣﹫-"
"""Characters at the start of a cell that make a spreadsheet run it as a formula."""

_FORMULA = re.compile(rf'(?:^|(?<=;))(?=[\s"]*[{_LEADS}])')
"""Positions where a formula can begin: at the start of a cell, and after a semicolon, at which some programs start a
new cell even within quotes.
"""

_LINKED = re.compile(r"://|www\.|@[a-z\d-]+\.|@[a-z]|:[a-z+-][\w+-]*:", re.IGNORECASE)
"""Text that Markdown renderers turn into a link, a mention or an emoji, sometimes even if it is escaped."""

_WORD = re.compile(r"[^ |`]+|[|`]")
_ESCAPED = re.compile(r"([\\`*_{}\[\]#!|]|(?<=[\w-])\.(?=[A-Za-z]{2}))")
_SPELT_OUT = re.compile("[<>&~$]")
_BEGINS_A_LIST = re.compile(r"^(\d+)(?=[.)](?:\s|$))|^(?=[-+])")
"""Text that Markdown does not show literally: anywhere, also where a backslash may have no effect, and at the start of
a line.
"""


def replace_invisible(text: str) -> str:
    """Replace invisible characters of `text`. Tabs and line breaks stay."""
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
    """Return a value as a cell of a table on a page, which a click saves as a file for spreadsheets.

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
    """Formatter of log lines that contain no commands to a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with invisible characters replaced."""
        return to_terminal(super().format(record))


def align_columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of text in which the cells of each column are aligned."""
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]


def clean_logs() -> None:
    """Remove terminal commands from log lines if no log is configured; call this at the start of a process."""
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
