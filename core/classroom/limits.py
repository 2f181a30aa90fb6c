"""Rate limits of actions: per visitor, per network address, and for all visitors together.

Each of the three has a bucket of tokens, which refills at a fixed rate up to its size. Nobody can lock out others
permanently: if the bucket of all visitors is empty, the next token is soon available. Visitors are identified by
hashes, which are in memory only. Limits are thread-safe.
"""

import contextlib
import hashlib
import ipaddress
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from ..errors import NotAllowed

By = Literal["visitor", "address", "all"]

MOST_BUCKETS = 20_000
"""Maximum number of buckets before full ones, which contain no information, are dropped."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Origin of a visitor, as anonymous hashes of the browser and of the network, which a school shares."""

    visitor: str
    address: str


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A rate limit: tokens in a full bucket, and seconds until one token is added."""

    at_once: int
    every_s: float


CODES: dict[By, Rate] = {
    "visitor": Rate(at_once=10, every_s=6.0),
    "address": Rate(at_once=100, every_s=0.2),
    "all": Rate(at_once=1_000, every_s=0.1),
}
"""Limits of wrong join codes. The rate for all visitors bounds guessing; `core.classroom.students` has the
calculation.
"""

SECRETS: dict[By, Rate] = {
    "visitor": Rate(at_once=10, every_s=6.0),
    "address": Rate(at_once=50, every_s=1.0),
    "all": Rate(at_once=100, every_s=0.5),
}
"""Limits of wrong secret codes: guessing one is infeasible, but each check takes some 50 ms of the server."""

JOINS: dict[By, Rate] = {
    "visitor": Rate(at_once=3, every_s=60.0),
    "address": Rate(at_once=40, every_s=20.0),
}
"""Limits of joins to one class: a class of 30 can join from its school at once, but a script cannot fill it in
minutes.
"""

MADE: dict[By, Rate] = {
    "visitor": Rate(at_once=10, every_s=360.0),
    "address": Rate(at_once=20, every_s=180.0),
    "all": Rate(at_once=100, every_s=60.0),
}
"""Limits of classes created on the page, because a host has a limited number of classes."""

FILES: dict[By, Rate] = {
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


def source(cookie: str, address: str) -> Source:
    """Identify a visitor by the browser and, if known, by the network address.

    For IPv6 the network is used, because one person has more addresses than there are codes.
    """
    network = _hash_key("address", _network(address))
    return Source(visitor=_hash_key("browser", cookie) if cookie else _hash_key("no cookie", network), address=network)


class Limits:
    """Limits of one action, which `what` names in the error. Visitors without a rate have no limit."""

    def __init__(self, what: str, rates: dict[By, Rate], now: Callable[[], float] = time.monotonic) -> None:
        self.what = what
        self.rates = rates
        self._now = now
        self._lock = threading.Lock()
        self._buckets: dict[tuple[By, str], tuple[float, float]] = {}

    def take(self, source: Source, within: str = "") -> None:
        """Use a token of every bucket of this source; raises TooOften, and uses none, if one is empty."""
        with self._lock:
            keys = self._keys(source, within)
            for key in keys:
                if (left := self._left(key)) < 1:
                    raise TooOften(self.what, key[0], (1 - left) * self.rates[key[0]].every_s)
            for key in keys:
                self._put(key, self._left(key) - 1)
            self._forget()

    def give_back(self, source: Source, within: str = "") -> None:
        """Return a used token to every bucket."""
        with self._lock:
            for key in self._keys(source, within):
                self._put(key, self._left(key) + 1)

    @contextlib.contextmanager
    def tried(self, source: Source) -> Iterator[None]:
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

    def _keys(self, source: Source, within: str) -> list[tuple[By, str]]:
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
