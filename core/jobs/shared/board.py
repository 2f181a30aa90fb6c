"""What machines that share a store tell each other: open questions, who is there, and how each one ended.

A few small files at the place of the store, beside its rows. A question is open for as long as its file is there, so
whoever asked takes it away to stop all who work on it. Who works on what is held by leases; rows tell what is done.
Nothing here measures, and what other machines wrote is checked like any foreign file.
"""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from core.errors import CrossoverError, InvalidValue
from core.files import documents
from core.files.shared.lease import Lease
from core.files.shared.place import Place
from core.question.sweep import Sweep
from core.results.finding import mirrored

Spread = Literal["everywhere", "shared"]

SPREADS: dict[Spread, str] = {
    "everywhere": "each machine answers the whole question",
    "shared": "machines that are alike share its points, and count as one",
}
"""How a question is spread over machines, with a phrase for people."""

State = Literal["free", "measuring", "waiting", "finished", "failed", "stopped"]

MOST_BYTES = 2**20
"""Size of a file beyond which it is not one of ours."""

PRESENT_S = 60.0
"""A machine that has not said anything for so long is not counted as there."""

LEASE_S = 45
"""Seconds for which a machine holds a point without saying so again."""

QUESTIONS, MACHINES, ENDS, CLOCK = "questions", "machines", "ends", "clock"

Line = Annotated[str, Meta(max_length=2_000)]

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


@dataclass(frozen=True, kw_only=True)
class Member:
    """A machine that works on what is open, as it tells of itself.

    Attributes:
        host: its name among those that share the store.
        machine_id: hash of its hardware; machines that are alike have the same.
        cpu: processor.
        devices: what it can train on, by their own names.
        state: what it does.
        question: on which it works, or worked last; empty before the first.
        message: one sentence where there is something to say.
        rows: of that question that it measured or found.
    """

    host: Annotated[str, Meta(pattern=r"^[\w.-]{1,100}$")]
    machine_id: Line
    cpu: Line
    devices: tuple[Line, ...]
    state: State = "free"
    question: Line = ""
    message: Line = ""
    rows: documents.Count = 0


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
        data = {"sweep": question.sweep.to_json(), "spread": question.spread}
        self.place.write(f"{QUESTIONS}/{question.id}.json", json.dumps(data).encode())

    def close(self, question_id: str) -> None:
        """Take a question away; who works on it stops.

        Raises:
            StoreError: the place cannot be reached.
        """
        self.place.remove(f"{QUESTIONS}/{question_id}.json")

    def is_open(self, question_id: str) -> bool:
        """Whether a question is still asked.

        Raises:
            StoreError: the place cannot be reached.
        """
        return f"{QUESTIONS}/{question_id}.json" in self.place.names(QUESTIONS)

    def questions(self) -> list[Question]:
        """What is asked, the oldest first; what cannot be read is passed over.

        Raises:
            StoreError: the place cannot be reached.
        """
        names = sorted(self.place.names(QUESTIONS).items(), key=lambda item: item[1].written_s)
        read = (self._question(name) for name, _ in names)
        return [question for question in read if question is not None]

    def tell(self, member: Member) -> None:
        """Say what a machine does now; when it is done with a question, that is kept for who asked.

        Raises:
            StoreError: the place cannot be reached.
        """
        data = json.dumps(dataclasses.asdict(member)).encode()
        self.place.write(f"{MACHINES}/{member.host}.json", data)
        if member.state in ("finished", "failed", "stopped"):
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

    def forget_ends(self, question_id: str) -> None:
        """Let a question that is asked anew have no ends of before.

        Raises:
            StoreError: the place cannot be reached.
        """
        for name in self.place.names(f"{ENDS}/{question_id}"):
            self.place.remove(name)

    def lease(self, question_id: str, what: str) -> Lease:
        """A claim on a part of a question."""
        return Lease(self.place, f"{question_id}-{what}", LEASE_S)

    def _now_s(self) -> float:
        """What the clock of the place says; the clocks of machines differ."""
        self.place.write(f"{CLOCK}/now", b"")
        return self.place.names(CLOCK)[f"{CLOCK}/now"].written_s

    def _question(self, name: str) -> Question | None:
        data = self._read(name, dict[str, Any])
        try:
            match data:
                case {"sweep": sweep, "spread": "everywhere" | "shared" as spread}:
                    question = Question(sweep=Sweep.from_json(sweep), spread=spread)
                    return None if question.sweep.point.training else question
        except CrossoverError:
            pass
        return None

    def _member(self, name: str) -> Member | None:
        return self._read(name, Member)

    def _read(self, name: str, kind: type[T]) -> T | None:
        data = self.place.read(name, MOST_BYTES)
        try:
            return None if data is None else documents.parse_json(data.decode(), kind)
        except (ValueError, RecursionError, CrossoverError):
            return None


def board_of(folder: Path) -> Board:
    """The board of a store, given as its folder here: at the address that it mirrors, or within the folder itself."""
    shared = mirrored.mirror_of(folder)
    return Board(shared.place if shared is not None else Place(f"file://{folder.absolute()}/shared"))


def checked_spread(text: str) -> Spread:
    """A way of spreading, as it was typed.

    Raises:
        InvalidValue: it is none.
    """
    for known in SPREADS:
        if known == text:
            return known
    raise InvalidValue("spread", text, f"one of {', '.join(SPREADS)}")
