"""Students: their stored data, their predictions, the rules for names, class codes, and rate limits of actions.

All characters of a name must be visible, and no nickname may look like another. As in Unicode's UTS 39 (Security
Mechanisms), names are normalised, of one script, and compared by appearance.

Class codes are easy to read aloud and to type, and are stored so that they cannot be recovered.

A join code ends in a check letter, so that a mistyped code is reported at once. A mistyped code is not looked up and
does not count as a guess (the limits count the others). There are 31^8 join codes, and all visitors together can try
ten per second (`CODE_RATES`). So guessing one of a hundred classes takes 27 years on average, and guessing a specific
class 2,700 years. Codes of earlier versions have eight letters and no check letter, so there are as many of them. There
are 31^20 secret codes, so guessing one is infeasible.

Actions are limited per visitor, per network address, and for all visitors together. Each of the three has a bucket of
tokens, which refills at a fixed rate up to its size. Nobody can lock out others permanently: if the bucket of all
visitors is empty, the next token is soon available. Visitors are identified by hashes, which are in memory only. Limits
are thread-safe.
"""

import contextlib
import hashlib
import hmac
import ipaddress
import math
import re
import secrets
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import regex

from ..errors import InvalidValue, NotAllowed, require_choice
from .question import NEVER, WINNERS, ClassQuestion

NICKNAME_LENGTH, NAME_LENGTH = 24, 60

RESULTS = re.compile(r"^results(-[0-9a-f]{1,32})?$")
"""Valid names of a student's folder of results; some versions gave each folder a unique name."""

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
"""Scripts that are written together and have no letters that look alike: UTS 39's "highly restrictive" level."""

MOST_MARKS = 3
"""Maximum combining marks on one letter: Hebrew, Khmer and Tibetan need three; more marks could cover adjacent
lines.
"""

LOOK_ALIKE = str.maketrans(
    "авекмнорстухіјѕһԁԛԝӏ" "αβεζηικμνορτυχγ" "օսոհցզյ" "1l0",
    "abekmhopctyxijshdqwi" "abezhikmvoptuxy" "ounhgqj" "iio",
)  # fmt: skip
"""Lower-case letters of Cyrillic, Greek and Armenian that look Latin, or whose capitals do; 1, l and I; 0 and O."""

_ALSO = " -_.'"
_HIDDEN = regex.compile(r"\p{Default_Ignorable_Code_Point}")
_PILED = regex.compile(rf"(?:^|\s)\p{{M}}|\p{{M}}{{{MOST_MARKS + 1}}}")
_SEEN = regex.compile(r"[\p{L}\p{N}\p{M}]")


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A student's prediction: the winner at the largest size, and the size from which it wins, `NEVER`, or None."""

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
    """One student of a class, with all stored personal data.

    Attributes:
        id: 16 hexadecimal digits; also the name of the student's folder.
        joined_at: ISO 8601, UTC; empty if unknown.
        waiting: whether the teacher has not admitted the student yet.
        results: name of the folder of results in the student's folder.
        fault: error in the stored data, in one sentence; empty if there is none.
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
        """Whether the student's identity is lost, so that only results may remain."""
        return bool(self.fault) and not self.joined_at


def check_nickname(text: str) -> str:
    """Return the stored form of a nickname.

    Raises:
        InvalidValue: it is too long, or has characters that a nickname must not have.
    """
    allowed = f"1 to {NICKNAME_LENGTH} letters of one script, digits, spaces or any of - _ . '"
    name = _check_name("nickname", text, NICKNAME_LENGTH, allowed)
    if not _ONE_SCRIPT.fullmatch(name):
        raise InvalidValue("nickname", text, allowed)
    return name


def check_class_name(text: str) -> str:
    """Return the stored form of the name of a class, which may mix scripts, as in "Физика 7b, group 2".

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
    """Return a pattern of the characters of some scripts, and of the characters common to all scripts."""
    members = "".join(rf"\p{{Script_Extensions={script}}}" for script in (*scripts, "Common", "Inherited"))
    return f"[{members}]*"


_ONE_SCRIPT = regex.compile(
    "|".join(_match_scripts(*scripts) for scripts in (*((script,) for script in SCRIPTS), *MIXED))
)


LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Letters of codes, without 0 and O, and without 1, I and L, to avoid typing errors. There are 31, which is a prime."""

JOIN_LENGTH, EARLIER_LENGTH, SECRET_LENGTH = 9, 8, 20
"""Length in letters of a join code, a join code of an earlier version, and a secret code."""

ID_LENGTH = 16
"""Hexadecimal digits of the id of a class or student."""

JOIN_GROUP, GROUP = 3, 4
"""Letters per group in a join code, and in all other codes."""

EXAMPLE = "KX4-M9P-QS7"
"""An example of a join code."""

MISTYPED = (
    f"This code was mistyped. A join code has {JOIN_LENGTH} letters and digits, "
    f"such as {EXAMPLE}, and no 0, O, 1, I or L."
)

_TYPED_LENGTH = 100
_WORK = 2**14
"""Cost of one check of a secret, some 50 ms, which only delays repeated attempts."""


def join_code() -> str:
    """Return a new code to join a class, such as `EXAMPLE`."""
    free = _random(JOIN_LENGTH - 1)
    return next(code for letter in LETTERS if _checks(code := format_code(free + letter)))


def secret() -> str:
    """Return a new secret code for a teacher, in five groups of four."""
    return format_code(_random(SECRET_LENGTH))


def format_code(code: str) -> str:
    """Return the canonical form of a typed code."""
    letters = "".join(letter for letter in _normalize_input(code) if letter in LETTERS)[:SECRET_LENGTH]
    group = JOIN_GROUP if len(letters) == JOIN_LENGTH else GROUP
    return "-".join(letters[start : start + group] for start in range(0, len(letters), group))


def may_join(code: str) -> bool:
    """Return whether a text can be a join code; if not, it was mistyped and need not be looked up."""
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
    """Return the hash of a text in 64 hexadecimal digits, for texts that are too long to guess."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _normalize_input(code: str) -> str:
    """Return a code in capitals and normal width, because some keyboards type full-width Latin letters."""
    return unicodedata.normalize("NFKC", code[:_TYPED_LENGTH]).upper()


def _random(length: int) -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(length))


def _checks(code: str) -> bool:
    """Return whether the checksum of a code, the sum of its letters weighted by position, is a multiple of 31.

    31 is a prime, and neither a position nor a difference of letters or positions is a multiple of it. So every single
    wrong letter and every swap of two letters is detected.
    """
    letters = code.replace("-", "")
    return sum(place * LETTERS.index(letter) for place, letter in enumerate(letters, start=1)) % len(LETTERS) == 0


def _digest(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(format_code(code).encode(), salt=salt, n=_WORK, r=8, p=1, dklen=32)


By = Literal["visitor", "address", "all"]

MOST_BUCKETS = 20_000
"""Maximum number of buckets before full ones, which contain no information, are dropped."""


@dataclass(frozen=True, kw_only=True)
class VisitorSource:
    """Origin of a visitor, as anonymous hashes of the browser and of the network, which a school shares."""

    visitor: str
    address: str


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A rate limit: tokens in a full bucket, and seconds until one token is added."""

    at_once: int
    every_s: float


CODE_RATES: dict[By, Rate] = {
    "visitor": Rate(at_once=10, every_s=6.0),
    "address": Rate(at_once=100, every_s=0.2),
    "all": Rate(at_once=1_000, every_s=0.1),
}
"""Limits of wrong join codes. The rate for all visitors bounds guessing; `core.classroom.students` has the
calculation.
"""

SECRET_RATES: dict[By, Rate] = {
    "visitor": Rate(at_once=10, every_s=6.0),
    "address": Rate(at_once=50, every_s=1.0),
    "all": Rate(at_once=100, every_s=0.5),
}
"""Limits of wrong secret codes: guessing one is infeasible, but each check takes some 50 ms of the server."""

JOIN_RATES: dict[By, Rate] = {
    "visitor": Rate(at_once=3, every_s=60.0),
    "address": Rate(at_once=40, every_s=20.0),
}
"""Limits of joins to one class: a class of 30 can join from its school at once, but a script cannot fill it in
minutes.
"""

CLASS_RATES: dict[By, Rate] = {
    "visitor": Rate(at_once=10, every_s=360.0),
    "address": Rate(at_once=20, every_s=180.0),
    "all": Rate(at_once=100, every_s=60.0),
}
"""Limits of classes created on the page, because a host has a limited number of classes."""

FILE_RATES: dict[By, Rate] = {
    "visitor": Rate(at_once=6, every_s=10.0),
    "address": Rate(at_once=60, every_s=1.0),
}
"""Limits of files that a student uploads: each is checked by a separate process, of which few run at once."""


class TooOften(NotAllowed):
    """A bucket is empty; it has a token again in `wait_s` seconds, unless somebody else uses it."""

    def __init__(self, what: str, by: By, wait_s: float) -> None:
        self.by = by
        self.wait_s = wait_s
        whose = {"visitor": "by you", "address": "from your network", "all": "by many visitors"}[by]
        super().__init__(f"{what} {whose} in a short time; wait {math.ceil(max(1.0, wait_s))} s and try again.")


def source(cookie: str, address: str) -> VisitorSource:
    """Identify a visitor by the browser and, if known, by the network address.

    For IPv6 the network is used, because one person has more addresses than there are codes.
    """
    network = _hash_key("address", _network(address))
    return VisitorSource(
        visitor=_hash_key("browser", cookie) if cookie else _hash_key("no cookie", network), address=network
    )


class Limits:
    """Limits of one action, which `what` names in the error. Visitors without a rate have no limit."""

    def __init__(self, what: str, rates: dict[By, Rate], now: Callable[[], float] = time.monotonic) -> None:
        self.what = what
        self.rates = rates
        self._now = now
        self._lock = threading.Lock()
        self._buckets: dict[tuple[By, str], tuple[float, float]] = {}

    def take(self, source: VisitorSource, within: str = "") -> None:
        """Use a token of every bucket of this source; raises TooOften, and uses none, if one is empty."""
        with self._lock:
            keys = self._keys(source, within)
            for key in keys:
                if (left := self._left(key)) < 1:
                    raise TooOften(self.what, key[0], (1 - left) * self.rates[key[0]].every_s)
            for key in keys:
                self._put(key, self._left(key) - 1)
            self._forget()

    def give_back(self, source: VisitorSource, within: str = "") -> None:
        """Return a used token to every bucket."""
        with self._lock:
            for key in self._keys(source, within):
                self._put(key, self._left(key) + 1)

    @contextlib.contextmanager
    def tried(self, source: VisitorSource) -> Iterator[None]:
        """Use a token only if the block raises NotAllowed; raises TooOften before the block if there is none."""
        self.take(source)
        failed = False
        try:
            yield
        except NotAllowed:
            failed = True
            raise
        finally:
            if not failed:
                self.give_back(source)

    def _keys(self, source: VisitorSource, within: str) -> list[tuple[By, str]]:
        names: dict[By, str] = {"visitor": source.visitor, "address": source.address, "all": ""}
        return [(by, f"{within} {names[by]}") for by in self.rates]

    def _left(self, key: tuple[By, str]) -> float:
        rate, now = self.rates[key[0]], self._now()
        left, then = self._buckets.get(key, (float(rate.at_once), now))
        return min(float(rate.at_once), left + (now - then) / rate.every_s)

    def _put(self, key: tuple[By, str], left: float) -> None:
        self._buckets[key] = (left, self._now())

    def _forget(self) -> None:
        if len(self._buckets) > MOST_BUCKETS:
            full = [key for key in self._buckets if self._left(key) >= self.rates[key[0]].at_once]
            for key in full:
                del self._buckets[key]


_SALT = secrets.token_bytes(32)
"""Salt of this process, which makes hashes of addresses and cookies meaningless outside of it."""


def _hash_key(kind: str, text: str) -> str:
    return hashlib.blake2b(f"{kind} {text}".encode(errors="surrogatepass"), key=_SALT, digest_size=16).hexdigest()


def _network(address: str) -> str:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
