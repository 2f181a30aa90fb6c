"""What machines that share a store tell each other: open questions, who is there, and how each one ended.

A few small files at the place of the store, beside its rows. A question is open for as long as its file is there, so
whoever asked takes it away to stop all who work on it. Who works on what is held by leases; rows tell what is done.
Nothing here measures, and what other machines wrote is checked like any foreign file.
"""

import dataclasses
import functools
import json
import math
import re
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from ...errors import CrossoverError
from ...files import documents
from ...files.shared import lease
from ...files.shared.lease import Lease
from ...files.shared.place import Place
from ...question.experiment import PROTOCOL_VERSION
from ...question.sweep import Sweep
from ...remote import local_cache
from .members import ENDED, Member, Spread

MOST_BYTES = 2**20
"""Size of a file beyond which it is not one of ours."""

PRESENT_S = 60.0
"""A machine that has not said anything for so long is not counted as there."""

LAPSE_S = 86_400.0
"""A question that nobody has asked or followed for so long is not begun any more."""

LEASE_S = 45
"""Seconds for which a machine holds a point without saying so again."""

QUESTIONS, FOLLOWED, MACHINES, ENDS, CLOCK, SALT = "questions", "followed", "machines", "ends", "clock", "salt"

_ID = re.compile(r"[0-9a-f]{16}-(everywhere|shared)")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A sweep that machines may work on.

    Attributes:
        sweep: what is asked.
        spread: how it is spread over machines.
    """

    sweep: Sweep
    spread: Spread

    @property
    def id(self) -> str:
        """Its name: the same question asked again goes on where it was."""
        return f"{self.sweep.id}-{self.spread}"


class Board:
    """The files at one place.

    Attributes:
        place: of the store that machines share.
    """

    def __init__(self, place: Place) -> None:
        self.place = place

    def ask(self, question: Question) -> None:
        """Open a question; one that is open stays so.

        Raises:
            StoreError: the place cannot be reached.
        """
        data = {"sweep": question.sweep.to_json(), "spread": question.spread, "protocol": PROTOCOL_VERSION}
        self.place.write(f"{QUESTIONS}/{question.id}.json", json.dumps(data).encode())

    def close(self, question_id: str) -> None:
        """Take a question away; who works on it stops.

        Raises:
            StoreError: the place cannot be reached.
        """
        self.place.remove(f"{QUESTIONS}/{question_id}.json")
        self.place.remove(f"{FOLLOWED}/{question_id}")

    def follow(self, question_id: str) -> None:
        """Say that somebody waits for the answer; a question whose asker was killed lapses.

        Raises:
            StoreError: the place cannot be reached.
        """
        self.place.write(f"{FOLLOWED}/{question_id}", b"")

    def alone_s(self) -> dict[str, float]:
        """By question, seconds since somebody asked or followed it.

        Raises:
            StoreError: the place cannot be reached.
        """
        files = self.place.names(QUESTIONS) | self.place.names(FOLLOWED)
        last: dict[str, float] = {}
        for name, file in files.items():
            last[Path(name).stem] = max(last.get(Path(name).stem, 0.0), file.written_s)
        now_s = self._now_s()
        return {question_id: max(0.0, now_s - written_s) for question_id, written_s in last.items()}

    def is_open(self, question_id: str) -> bool:
        """Whether a question is still asked.

        Raises:
            StoreError: the place cannot be reached.
        """
        return f"{QUESTIONS}/{question_id}.json" in self.place.names(QUESTIONS)

    def asked(self, *, lapsed: bool = False) -> dict[str, Question | str]:
        """By its name what is asked, the oldest first, or why it cannot be answered here.

        Args:
            lapsed: also what nobody has followed for `LAPSE_S`.

        Raises:
            StoreError: the place cannot be reached.
        """
        found: dict[str, Question | str] = {}
        files = self.place.names(QUESTIONS)
        oldest_s = min((file.written_s for file in files.values()), default=math.inf)
        old = time.time() - oldest_s > LAPSE_S / 2  # by our clock, which may differ
        alone_s = self.alone_s() if old and not lapsed else {}
        for name, _ in sorted(files.items(), key=lambda item: item[1].written_s):
            if alone_s.get(Path(name).stem, 0.0) > LAPSE_S:
                continue
            data, question_id = self.place.read(name, MOST_BYTES), Path(name).stem
            if data is not None and _ID.fullmatch(question_id):
                found[question_id] = _question(question_id, data)
        return found

    def questions(self) -> list[Question]:
        """What is asked and can be answered here, the oldest first.

        Raises:
            StoreError: the place cannot be reached.
        """
        return [question for question in self.asked().values() if isinstance(question, Question)]

    def tell(self, member: Member) -> None:
        """Say what a machine does now; when it is done with a question, that is kept for who asked.

        Raises:
            StoreError: the place cannot be reached.
        """
        data = json.dumps(dataclasses.asdict(member)).encode()
        self.place.write(f"{MACHINES}/{member.host}.json", data)
        if member.state in ENDED and member.question:
            self.place.write(f"{ENDS}/{member.question}/{member.host}.json", data)

    def members(self) -> list[Member]:
        """The machines that are there, by name.

        Raises:
            StoreError: the place cannot be reached.
        """
        found = self.place.names(MACHINES)
        now_s = self._now_s()
        present = [name for name, file in found.items() if now_s - file.written_s <= PRESENT_S]
        return sorted(filter(None, map(self._member, present)), key=lambda member: member.host)

    def leave(self, host: str) -> None:
        """Let a machine not be counted any more.

        Raises:
            StoreError: the place cannot be reached.
        """
        self.place.remove(f"{MACHINES}/{host}.json")

    def ends(self, question_id: str) -> dict[str, Member]:
        """How machines ended that worked on a question, by their names.

        Raises:
            StoreError: the place cannot be reached.
        """
        ended = filter(None, map(self._member, self.place.names(f"{ENDS}/{question_id}")))
        return {member.host: member for member in ended}

    def end(self, question_id: str, host: str) -> Member | None:
        """How one machine ended that worked on a question; None if it has not.

        Raises:
            StoreError: the place cannot be reached.
        """
        return self._member(f"{ENDS}/{question_id}/{host}.json")

    def forget_ends(self, question_id: str) -> None:
        """Let a question that is asked anew have no ends of before.

        Raises:
            StoreError: the place cannot be reached.
        """
        for name in self.place.names(f"{ENDS}/{question_id}"):
            self.place.remove(name)

    def salt(self) -> str:
        """What names of machines are hashed with, so that rows that leave the place say nothing of who measured them.

        Raises:
            StoreError: the place cannot be reached.
        """
        if self.place.read(SALT, MOST_BYTES) is None:
            self.place.write(SALT, uuid.uuid4().hex.encode())
        return (self.place.read(SALT, MOST_BYTES) or b"").decode(errors="replace")

    def lease(self, question_id: str, part: str, host: str) -> Lease:
        """A machine's claim on a part of a question."""
        return Lease(self.place, f"{question_id}/{part}", LEASE_S, holder=host)

    def held(self, question_id: str) -> set[str]:
        """Parts of a question that machines hold.

        Raises:
            StoreError: the place cannot be reached.
        """
        names = lease.held(self.place, question_id, self._now_s())
        return {name.removeprefix(f"{question_id}/") for name in names}

    def _now_s(self) -> float:
        """What the clock of the place says; the clocks of machines differ."""
        self.place.write(f"{CLOCK}/now", b"")
        return self.place.names(CLOCK)[f"{CLOCK}/now"].written_s

    def _member(self, name: str) -> Member | None:
        data = self.place.read(name, MOST_BYTES)
        return None if data is None else _parsed(data, Member)


@functools.lru_cache(maxsize=64)
def _question(question_id: str, data: bytes) -> Question | str:
    """What a file asks, or why that cannot be answered here."""
    match _parsed(data, dict[str, Any]):
        case {"protocol": int(protocol)} if protocol != PROTOCOL_VERSION:
            return (
                f"It was asked by another version of Crossover, which measures by protocol {protocol}, and the one on "
                f"this machine by {PROTOCOL_VERSION}: install the same on both."
            )
        case {"sweep": sweep, "spread": "everywhere" | "shared" as spread}:
            try:
                question = Question(sweep=Sweep.from_json(sweep), spread=spread)
            except (CrossoverError, RecursionError) as error:
                return f"This version of Crossover cannot read the question: {error}"
            if question.sweep.point.training:
                return "A training of one's own is measured on one's own machine: code is taken from no other."
            if question.id == question_id:
                return question
    return "This version of Crossover cannot read the question: install the same on all machines."


def _parsed(data: bytes, kind: type[T]) -> T | None:
    """What another machine wrote, or None where that is nothing of ours."""
    try:
        return documents.parse_json(data.decode(), kind)
    except (ValueError, RecursionError, CrossoverError):
        return None


def board_of(folder: Path) -> Board:
    """The board of a store, given as its folder here: at the address that it mirrors, or within the folder itself."""
    address = local_cache.read_address(folder)
    return Board(Place(address) if address else Place(f"file://{quote(str(folder.absolute()))}/shared", ours=True))
