"""Students: what is stored about one, what they may predict, and the rules for the names that people choose.

A name must show all of its characters, and no nickname may pass for another. After Unicode's UTS 39 (Security
Mechanisms): names are normalised, of one script, and compared by how they look.

Class codes: easy to read out and to type, and stored so that they cannot be read back.

A join code ends in a check letter, so that a mistyped code is reported at once. It does not count as a guess and is
looked up nowhere (`core.classroom.limits` counts the others). How long guessing takes: there are 31^8 join codes, and
all visitors together can try `limits.CODES`, ten a second, for long. So one of a hundred classes is found once in
27 years, and one chosen class once in 2,700. Codes of earlier versions have eight letters and no check letter: as many,
and found as seldom. Secret codes, of which there are 31^20, are not found.
"""

import hashlib
import hmac
import re
import secrets
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
"""Scripts of nicknames in addition to `MIXED`: those that UAX 31 recommends, then others in use today.

Scripts whose letters have the shapes of Latin capitals are excluded.
"""

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
    """A student's prediction: the winner at the largest size, and from which size on (a size, `NEVER`, or None)."""

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
        """Whether the student's identity is lost; at most their results are left."""
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


LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Letters of codes, without 0 and O, and without 1, I and L, to avoid typing errors. There are 31, which is a prime."""

JOIN_LENGTH, EARLIER_LENGTH, SECRET_LENGTH = 9, 8, 20
"""Letters of a join code, of one of an earlier version, and of a secret code."""

ID_LENGTH = 16
"""Hexadecimal digits of the id of a class or student."""

JOIN_GROUP, GROUP = 3, 4
"""Letters per group in a join code, and in all others."""

EXAMPLE = "KX4-M9P-QS7"
"""An example of a join code."""

MISTYPED = (
    f"This code was mistyped. A join code has {JOIN_LENGTH} letters and digits, "
    f"such as {EXAMPLE}, and no 0, O, 1, I or L."
)

_TYPED_LENGTH = 100
_WORK = 2**14
"""Cost of one check of a secret, some 50 ms: nobody waits for it, who tries many does."""


def join_code() -> str:
    """Return a new code to join a class by: `EXAMPLE`."""
    free = _random(JOIN_LENGTH - 1)
    return next(code for letter in LETTERS if _checks(code := format_code(free + letter)))


def secret() -> str:
    """Return a new secret code for a teacher, in five groups of four."""
    return format_code(_random(SECRET_LENGTH))


def format_code(code: str) -> str:
    """Return a code as it was given out, however it was typed."""
    letters = "".join(letter for letter in _normalize_input(code) if letter in LETTERS)[:SECRET_LENGTH]
    group = JOIN_GROUP if len(letters) == JOIN_LENGTH else GROUP
    return "-".join(letters[start : start + group] for start in range(0, len(letters), group))


def may_join(code: str) -> bool:
    """Return whether a text can be a join code; if not it was mistyped, and need not be looked up."""
    letters = "".join(letter for letter in _normalize_input(code) if letter.isalnum())
    if not set(letters) <= set(LETTERS):
        return False
    return len(letters) == EARLIER_LENGTH or (len(letters) == JOIN_LENGTH and _checks(letters))


def hash_code(code: str) -> str:
    """Return the salted hash of a secret code, from which the code cannot be read back."""
    salt = secrets.token_bytes(16)
    return f"scrypt${salt.hex()}${_digest(code, salt).hex()}"


def may_match(code: str) -> bool:
    """Return whether a text has as many letters as a secret code; if not, it matches no stored hash."""
    return len(format_code(code).replace("-", "")) == SECRET_LENGTH


def matches(code: str, stored_hash: str) -> bool:
    """Return whether a secret code matches a stored hash."""
    try:
        _, salt, digest = stored_hash.split("$")
        return hmac.compare_digest(_digest(code, bytes.fromhex(salt)), bytes.fromhex(digest))
    except ValueError:
        return False


def class_id(code: str) -> str:
    """Return the id of the class with a join code; it is also the name of the folder with its results."""
    return hash_text(f"class {format_code(code)}")[:ID_LENGTH]


def is_id(text: str) -> bool:
    """Return whether a text has the form of the id of a class or student; nothing else becomes part of a path."""
    return len(text) == ID_LENGTH and set(text) <= set("0123456789abcdef")


def hash_text(text: str) -> str:
    """Return the hash of a text in 64 hexadecimal digits; for what is too long to guess."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _normalize_input(code: str) -> str:
    """In capitals, and as its characters are meant: some keyboards write Latin letters in full width."""
    return unicodedata.normalize("NFKC", code[:_TYPED_LENGTH]).upper()


def _random(length: int) -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(length))


def _checks(code: str) -> bool:
    """Return whether the letters of a code go together: each counts by its place, and the sum is a multiple of 31.

    31 is a prime, and neither a place nor a difference of letters or places is a multiple of it: every single wrong
    letter shows, and every two that changed places.
    """
    letters = code.replace("-", "")
    return sum(place * LETTERS.index(letter) for place, letter in enumerate(letters, start=1)) % len(LETTERS) == 0


def _digest(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(format_code(code).encode(), salt=salt, n=_WORK, r=8, p=1, dklen=32)
