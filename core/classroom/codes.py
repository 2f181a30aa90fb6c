"""Codes: made so that they can be read out and typed, kept so that they cannot be read back.

A join code ends in a check letter, so that one which was typed differently is told so at once: it is no guess, is
looked up nowhere and counts nowhere (`core.classroom.limits` counts the others). How long guessing takes: of the 31^8
join codes, at the `limits.CODES` of ten a second that all visitors together can try for long, one of a hundred classes
is found once in 27 years, and one class of one's choice once in 2,700. Codes of earlier versions have eight letters
and no check letter: as many, and found as seldom. Secret codes, of which there are 31^20, are not found.
"""

import hashlib
import hmac
import secrets
import unicodedata

LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""No 0 and O, no 1, I and L: what is read off a board must be typed right. They are 31, which is a prime."""

JOIN_LENGTH, EARLIER_LENGTH, SECRET_LENGTH = 9, 8, 20
"""Letters of a join code, of one of an earlier version, and of a secret code."""

ID_LENGTH = 16
"""Hexadecimal digits of the id of a class or student."""

JOIN_GROUP, GROUP = 3, 4
"""Letters that stand together in a join code, and in all others."""

EXAMPLE = "KX4-M9P-QS7"
"""What a join code looks like."""

MISTYPED = (
    f"This code was mistyped. A join code has {JOIN_LENGTH} letters and digits, "
    f"such as {EXAMPLE}, and no 0, O, 1, I or L."
)

_TYPED_LENGTH = 100
_WORK = 2**14
"""Cost of one check of a secret, some 50 ms: nobody waits for it, who tries many does."""


def join_code() -> str:
    """A new code to join a class by: `EXAMPLE`."""
    free = _random(JOIN_LENGTH - 1)
    return next(code for letter in LETTERS if _checks(code := format_code(free + letter)))


def secret() -> str:
    """A new secret code for a teacher, in five groups of four."""
    return format_code(_random(SECRET_LENGTH))


def format_code(code: str) -> str:
    """A code as it was given out, however it was typed."""
    letters = "".join(letter for letter in _normalize_input(code) if letter in LETTERS)[:SECRET_LENGTH]
    group = JOIN_GROUP if len(letters) == JOIN_LENGTH else GROUP
    return "-".join(letters[start : start + group] for start in range(0, len(letters), group))


def may_join(code: str) -> bool:
    """Whether a text can be a join code; if not it was typed differently, and there is no need to look it up."""
    letters = "".join(letter for letter in _normalize_input(code) if letter.isalnum())
    if not set(letters) <= set(LETTERS):
        return False
    return len(letters) == EARLIER_LENGTH or (len(letters) == JOIN_LENGTH and _checks(letters))


def hash_code(code: str) -> str:
    """What is kept of a secret code, from which it cannot be read back."""
    salt = secrets.token_bytes(16)
    return f"scrypt${salt.hex()}${_digest(code, salt).hex()}"


def may_match(code: str) -> bool:
    """Whether a text has the letters that a secret code has; if not, it matches nothing that was kept."""
    return len(format_code(code).replace("-", "")) == SECRET_LENGTH


def matches(code: str, stored_hash: str) -> bool:
    """Whether a secret code is the one of which `stored_hash` was kept."""
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
    """Whether the letters of a code go together: each counts by its place, and the sum is a multiple of 31.

    31 is a prime, and neither a place nor a difference of letters or places is a multiple of it: every single wrong
    letter shows, and every two that changed places.
    """
    letters = code.replace("-", "")
    return sum(place * LETTERS.index(letter) for place, letter in enumerate(letters, start=1)) % len(LETTERS) == 0


def _digest(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(format_code(code).encode(), salt=salt, n=_WORK, r=8, p=1, dklen=32)
