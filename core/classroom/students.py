"""Students: what is stored about one, what they may predict, and the rules for the names that people choose.

A name must show all of its characters, and no nickname may pass for another. After Unicode's UTS 39 (Security
Mechanisms): names are normalised, of one script, and compared by how they look.
"""

import re
import unicodedata
from dataclasses import dataclass

import regex

from ..errors import InvalidValue, require_choice
from .question import NEVER, WINNERS, ClassQuestion

NICKNAME_LENGTH, NAME_LENGTH = 24, 60

RESULTS = re.compile(r"^results(-[0-9a-f]{1,32})?$")
"""Names that a student's folder of results may have; some versions gave each one a name of its own."""

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


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a student predicts: who wins at the largest size, and from which size on (a size, `NEVER`, or None)."""

    winner: str
    place: float | str | None = None

    def check(self, question: ClassQuestion) -> None:
        """Raise InvalidValue unless the prediction is one of the question's answers."""
        require_choice("winner", self.winner, WINNERS)
        places: tuple[float | str | None, ...] = (*question.places, NEVER) if question.places else (None,)
        if self.place not in places:
            raise InvalidValue("place", self.place, f"one of {', '.join(map(str, places))}")


@dataclass(frozen=True, kw_only=True)
class Student:
    """One student of a class, with everything that is stored about a person.

    Attributes:
        id: 16 hexadecimal digits; also the name of the student's folder.
        joined_at: ISO 8601, UTC; empty if unknown.
        waiting: whether the teacher has not admitted the student yet.
        results: name of the folder of results in the student's folder.
        fault: what is wrong with the stored data, in one sentence; empty if nothing is.
    """

    id: str
    nickname: str
    joined_at: str
    waiting: bool = False
    results: str = "results"
    prediction: Prediction | None = None
    fault: str = ""

    @property
    def is_unreadable(self) -> bool:
        """Whether it is not known any more who the student is; there are results at most."""
        return bool(self.fault) and not self.joined_at


def check_nickname(text: str) -> str:
    """Return a nickname as it is stored.

    Raises:
        InvalidValue: it is too long, or has characters that a nickname must not have.
    """
    allowed = f"1 to {NICKNAME_LENGTH} letters of one script, digits, spaces or any of - _ . '"
    name = _check_name("nickname", text, NICKNAME_LENGTH, allowed)
    if not _ONE_SCRIPT.fullmatch(name):
        raise InvalidValue("nickname", text, allowed)
    return name


def check_class_name(text: str) -> str:
    """Return the name of a class as it is stored, which may mix scripts, as in "Физика 7b, group 2".

    Raises:
        InvalidValue: it is too long, or has characters that a name must not have.
    """
    return _check_name(
        "name", text, NAME_LENGTH, f"1 to {NAME_LENGTH} letters, digits, spaces or any of - _ . , '", ","
    )


def fold_name(name: str) -> str:
    """Return one text for all names that look the same, including names that earlier versions allowed."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name[: 10 * NAME_LENGTH]).casefold())
    return "".join(_SEEN.findall(_HIDDEN.sub("", plain))).translate(LOOK_ALIKE)


def _check_name(field: str, text: str, length: int, allowed: str, also: str = "") -> str:
    name = " ".join(unicodedata.normalize("NFKC", text[: 10 * length]).split())
    fine = all(letter in _ALSO + also or unicodedata.category(letter)[0] in "LNM" for letter in name)
    odd = _HIDDEN.search(name) or _PILED.search(name) or not any(letter.isalnum() for letter in name)
    if not 1 <= len(name) <= length or len(text) > 10 * length or not fine or odd:
        raise InvalidValue(field, text, allowed)
    return name


def _match_scripts(*scripts: str) -> str:
    """Return a pattern of the characters of some scripts, and of those that every script uses."""
    members = "".join(rf"\p{{Script_Extensions={script}}}" for script in (*scripts, "Common", "Inherited"))
    return f"[{members}]*"


_ONE_SCRIPT = regex.compile(
    "|".join(_match_scripts(*scripts) for scripts in (*((script,) for script in SCRIPTS), *MIXED))
)
