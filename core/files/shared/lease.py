"""Who may do something that one at a time should do, among machines that share nothing but a place.

Each who wants it puts a claim there, and then looks: it is theirs if no other claim is. A claim counts for as long as
it says, by the clock of the place, unless it is put anew; so what a dead holder held lapses. Whoever comes second sees
the claim of who came first, since what was written is listed from then on; two who come at once both step back and
try again. A holder that sleeps for longer than its lease may find another in its place: what is done under a lease
must stay right then, and only be done twice.
"""

import contextlib
import random
import time
import uuid

from ...errors import StoreError
from .place import Place

FOLDER = "claims"

TRIES = 3
"""Times that somebody tries who meets others, as these may have come at the same moment."""

PAUSE_S = 0.2
"""Longest pause between two tries."""


class Lease:
    """A claim on something that has a name."""

    def __init__(self, place: Place, name: str, lasting_s: int, holder: str = "") -> None:
        """Say what is claimed; nothing is claimed yet.

        Args:
            place: that all share who may claim it.
            name: of what is claimed; letters, digits, hyphens, slashes.
            lasting_s: seconds for which the claim counts.
            holder: whose claims are the same one, made anew, so that who was killed need not wait for its own to lapse;
                left out, everybody's are different.
        """
        self._place, self._folder = place, f"{FOLDER}/{name}"
        self._mine = f"{self._folder}/{lasting_s}-{holder or uuid.uuid4().hex}"

    def take(self) -> bool:
        """Claim it; returns whether it is held from now on.

        Raises:
            StoreError: the place cannot be reached.
        """
        for _ in range(TRIES):
            try:
                self._place.write(self._mine, b"")
                if self._alone():
                    return True
            except StoreError:
                with contextlib.suppress(StoreError):  # or it would keep others away, though nobody holds it
                    self.release()
                raise
            self.release()
            time.sleep(random.uniform(0, PAUSE_S))
        return False

    def renew(self) -> bool:
        """Let the claim count from now on; returns whether it was still held.

        Whether it had lapsed is said by the clock of the place, as this machine may have slept, or have another time.

        Raises:
            StoreError: the place cannot be reached.
        """
        before = self._place.names(self._folder).get(self._mine)
        if before is None:
            return False
        self._place.write(self._mine, b"")
        now = self._place.names(self._folder).get(self._mine)
        if now is not None and now.written_s - before.written_s <= _lasting_s(self._mine):
            return True
        self.release()
        return False

    def release(self) -> None:
        """Give it back.

        Raises:
            StoreError: the place cannot be reached.
        """
        self._place.remove(self._mine)

    def _alone(self) -> bool:
        """Whether no other claim counts; those that lapsed are taken away."""
        claims = self._place.names(self._folder)
        mine = claims.pop(self._mine, None)
        if mine is None:
            return False
        lapsed = [name for name, found in claims.items() if mine.written_s - found.written_s > _lasting_s(name)]
        for name in lapsed:
            self._place.remove(name)
        return len(lapsed) == len(claims)


def held(place: Place, under: str, now_s: float) -> set[str]:
    """Names of what is claimed below a name, as far as the claims still count.

    Args:
        place: of the claims.
        under: what the names begin with, without the slash behind it.
        now_s: what the clock of the place says.

    Raises:
        StoreError: the place cannot be reached.
    """
    claims = place.names(f"{FOLDER}/{under}")
    counting = (name for name, found in claims.items() if now_s - found.written_s <= _lasting_s(name))
    return {name.removeprefix(f"{FOLDER}/").rpartition("/")[0] for name in counting}


def _lasting_s(name: str) -> float:
    """Seconds for which a claim counts; what is none counts for ever, and is for people to remove."""
    seconds = name.rpartition("/")[2].partition("-")[0]
    return float(seconds) if seconds.isdecimal() and seconds.isascii() else float("inf")
