"""Rate limits of actions: per visitor, per network address, and for all visitors together.

Each of the three has a bucket of a number of goes, which refills at a fixed rate and never beyond its size. Nobody is
locked out by others for good: where the bucket of all is empty, the next go is available within a fraction of a second.
Visitors are identified by hashes, which are in memory only. Safe for all threads of one process.
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
"""Buckets beyond which those that are full again, and say nothing, are dropped."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where somebody comes from, in hashes that say nothing: their browser, and their network (one for a school)."""

    visitor: str
    address: str


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How often: goes in a full bucket, and seconds after which there is one more."""

    at_once: int
    every_s: float


CODES: dict[By, Rate] = {
    "visitor": Rate(at_once=10, every_s=6.0),
    "address": Rate(at_once=100, every_s=0.2),
    "all": Rate(at_once=1_000, every_s=0.1),
}
"""Wrong join codes. The rate of all bounds guessing; `core.classroom.students` has the arithmetic."""

SECRETS: dict[By, Rate] = {
    "visitor": Rate(at_once=10, every_s=6.0),
    "address": Rate(at_once=50, every_s=1.0),
    "all": Rate(at_once=100, every_s=0.5),
}
"""Wrong secret codes: nobody finds one, but each check takes some 50 ms of the server."""

JOINS: dict[By, Rate] = {
    "visitor": Rate(at_once=3, every_s=60.0),
    "address": Rate(at_once=40, every_s=20.0),
}
"""Joins to one class: a class of 30 joins from its school at once, and who writes a script fills none in minutes."""

MADE: dict[By, Rate] = {
    "visitor": Rate(at_once=10, every_s=360.0),
    "address": Rate(at_once=20, every_s=180.0),
    "all": Rate(at_once=100, every_s=60.0),
}
"""Classes made on the page, of which a host has only so many."""

FILES: dict[By, Rate] = {
    "visitor": Rate(at_once=6, every_s=10.0),
    "address": Rate(at_once=60, every_s=1.0),
}
"""Files that a student brings to a class: each is checked by a process of its own, of which few run at once."""


class TooOften(NotAllowed):
    """There is no go left just now in somebody's bucket; in `wait_s` there is one, if nobody else takes it."""

    def __init__(self, what: str, by: By, wait_s: float) -> None:
        self.by = by
        self.wait_s = wait_s
        whose = {"visitor": "by you", "address": "from your network", "all": "by many visitors"}[by]
        super().__init__(f"{what} {whose} in a short time; wait {math.ceil(max(1.0, wait_s))} s and try again.")


def source(cookie: str, address: str) -> Source:
    """Identify a visitor's location by their browser and by their network address, if known.

    Of IPv6 the network counts, of which one person has more addresses than there are codes.
    """
    network = _hash_key("address", _network(address))
    return Source(visitor=_hash_key("browser", cookie) if cookie else _hash_key("no cookie", network), address=network)


class Limits:
    """Remaining goes for one action, which `what` names in the error. Visitors without a rate have no limit."""

    def __init__(self, what: str, rates: dict[By, Rate], now: Callable[[], float] = time.monotonic) -> None:
        self.what = what
        self.rates = rates
        self._now = now
        self._lock = threading.Lock()
        self._buckets: dict[tuple[By, str], tuple[float, float]] = {}

    def take(self, source: Source, within: str = "") -> None:
        """Use a go of every bucket, each location separately; raises TooOften and uses nothing if one is empty."""
        with self._lock:
            keys = self._keys(source, within)
            for key in keys:
                if (left := self._left(key)) < 1:
                    raise TooOften(self.what, key[0], (1 - left) * self.rates[key[0]].every_s)
            for key in keys:
                self._put(key, self._left(key) - 1)
            self._forget()

    def give_back(self, source: Source, within: str = "") -> None:
        """Put a go back that was used up."""
        with self._lock:
            for key in self._keys(source, within):
                self._put(key, self._left(key) + 1)

    @contextlib.contextmanager
    def tried(self, source: Source) -> Iterator[None]:
        """Use a go up only if what is tried here is not allowed; raises TooOften, and tries nothing, without one."""
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
"""Salt of this process: a hash of an address or a cookie means nothing after it ends, or elsewhere."""


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
