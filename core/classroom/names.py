"""Names that people choose for themselves and for their classes: what they may hold, and which of them look alike.

What everybody reads must show all of itself, and nobody may be called so that they pass for somebody else. After
Unicode's UTS 39 (Security Mechanisms): names are normalised, of one script, and compared by how they look.
"""

import unicodedata

import regex

from core.errors import InvalidValue

NICKNAME_LENGTH, NAME_LENGTH = 24, 60

SCRIPTS = (
    *("Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Ethiopic", "Georgian", "Greek", "Gujarati"),
    *("Gurmukhi", "Hebrew", "Kannada", "Khmer", "Lao", "Malayalam", "Myanmar", "Oriya", "Sinhala", "Tamil", "Telugu"),
    *("Thaana", "Thai", "Tibetan"),
    *("Adlam", "Balinese", "Cham", "Javanese", "Mongolian", "Nko", "Ol_Chiki", "Syriac", "Tifinagh", "Vai", "Yi"),
)
"""Scripts that a nickname may be written in, beside `MIXED`: those that UAX 31 recommends, then others in use today;
without those whose letters have the shapes of Latin capitals."""

MIXED = (("Latin", "Han", "Hiragana", "Katakana"), ("Latin", "Han", "Bopomofo"), ("Latin", "Han", "Hangul"))
"""Scripts that are written together, and hold no letters that pass for each other's: UTS 39's "highly restrictive"."""

MOST_MARKS = 3
"""Combining marks on one letter: Hebrew, Khmer and Tibetan need three, a pile of marks covers the lines around it."""

LOOK_ALIKE = str.maketrans(
    "авекмнорстухіјѕһԁԛԝӏ" "αβεζηικμνορτυχγ" "օսոհցզյ" "1l0",
    "abekmhopctyxijshdqwi" "abezhikmvoptuxy" "ounhgqj" "iio",
)  # fmt: skip
"""Small letters of Cyrillic, Greek and Armenian that look Latin, or whose capitals do; 1, l and I; 0 and O."""

_ALSO = " -_.'"
_HIDDEN = regex.compile(r"\p{Default_Ignorable_Code_Point}")
_PILED = regex.compile(rf"(?:^|\s)\p{{M}}|\p{{M}}{{{MOST_MARKS + 1}}}")
_SEEN = regex.compile(r"[\p{L}\p{N}\p{M}]")


def nickname(text: str) -> str:
    """A nickname as it is kept; raises InvalidValue where it is too long, or holds what a nickname may not."""
    allowed = f"1 to {NICKNAME_LENGTH} letters of one script, digits, spaces or any of - _ . '"
    name = _clean_name("nickname", text, NICKNAME_LENGTH, allowed)
    if not _ONE_SCRIPT.fullmatch(name):
        raise InvalidValue("nickname", text, allowed)
    return name


def title(text: str) -> str:
    """The name of a class as it is kept, which may mix scripts, as in "Физика 7b, group 2"; raises as `nickname`."""
    return _clean_name(
        "name", text, NAME_LENGTH, f"1 to {NAME_LENGTH} letters, digits, spaces or any of - _ . , '", ","
    )


def fold_name(name: str) -> str:
    """One text for all names that look the same, whatever they hold: earlier versions let them hold more."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name[: 10 * NAME_LENGTH]).casefold())
    return "".join(_SEEN.findall(_HIDDEN.sub("", plain))).translate(LOOK_ALIKE)


def _clean_name(field: str, text: str, length: int, allowed: str, also: str = "") -> str:
    name = " ".join(unicodedata.normalize("NFKC", text[: 10 * length]).split())
    fine = all(letter in _ALSO + also or unicodedata.category(letter)[0] in "LNM" for letter in name)
    odd = _HIDDEN.search(name) or _PILED.search(name) or not any(letter.isalnum() for letter in name)
    if not 1 <= len(name) <= length or len(text) > 10 * length or not fine or odd:
        raise InvalidValue(field, text, allowed)
    return name


def _of(*scripts: str) -> str:
    """Characters of some scripts, or of any: digits, signs, marks."""
    members = "".join(rf"\p{{Script_Extensions={script}}}" for script in (*scripts, "Common", "Inherited"))
    return f"[{members}]*"


_ONE_SCRIPT = regex.compile("|".join(_of(*scripts) for scripts in (*((script,) for script in SCRIPTS), *MIXED)))
