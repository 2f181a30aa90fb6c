"""Codes: made so that they can be read out and typed, kept so that they cannot be read back, guessed only slowly."""

import collections
import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable

from core.errors import NotAllowed

LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""No 0 and O, no 1, I and L: what is read off a board must be typed right."""

GROUP = 4
JOIN_GROUPS, SECRET_GROUPS = 2, 5
"""31^8 join codes: at `ALL_TRIES` a minute one of a hundred classes is found once in 16 years. And 31^20 secrets."""

TRIES, ALL_TRIES, WINDOW_S = 10, 1_000, 60.0
"""Wrong codes that one visitor, and all together, may try within so many seconds."""

_WORK = 2**14
"""Cost of one check of a secret, some 50 ms: nobody waits for it, who tries many does."""


def join_code() -> str:
    """A new code to join a class by: KX4M-9PQA."""
    return _code(JOIN_GROUPS)


def secret() -> str:
    """A new secret code for a teacher."""
    return _code(SECRET_GROUPS)


def normal(code: str) -> str:
    """A code as it was given out, however it was typed."""
    letters = "".join(letter for letter in code.upper() if letter in LETTERS)[: GROUP * SECRET_GROUPS]
    return "-".join(letters[start : start + GROUP] for start in range(0, len(letters), GROUP))


def hashed(code: str) -> str:
    """What is kept of a secret code, from which it cannot be read back."""
    salt = secrets.token_bytes(16)
    return f"scrypt${salt.hex()}${_digest(code, salt).hex()}"


def matches(code: str, kept: str) -> bool:
    """Whether a secret code is the one of which `kept` was kept."""
    try:
        _, salt, digest = kept.split("$")
        return hmac.compare_digest(_digest(code, bytes.fromhex(salt)), bytes.fromhex(digest))
    except ValueError:
        return False


class Attempts:
    """Wrong codes of the last minute, of each visitor and of all; for every thread of one process."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._failures: collections.deque[tuple[float, str]] = collections.deque(maxlen=ALL_TRIES)

    def check(self, visitor: str) -> None:
        """Find out whether somebody may try a code.

        Raises:
            NotAllowed: there were too many wrong ones.
        """
        with self._lock:
            self._forget()
            mine = sum(who == visitor for _, who in self._failures)
            if mine >= TRIES or len(self._failures) >= ALL_TRIES:
                raise NotAllowed(f"Too many wrong codes were tried; wait {WINDOW_S:.0f} s and try again.")

    def failed(self, visitor: str) -> None:
        """Count a wrong code."""
        with self._lock:
            self._failures.append((self._now(), visitor))

    def _forget(self) -> None:
        while self._failures and self._now() - self._failures[0][0] > WINDOW_S:
            self._failures.popleft()


def _code(groups: int) -> str:
    return normal("".join(secrets.choice(LETTERS) for _ in range(GROUP * groups)))


def _digest(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(normal(code).encode(), salt=salt, n=_WORK, r=8, p=1, dklen=32)
