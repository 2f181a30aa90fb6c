"""A fuzzer, and what becomes of its cases: each made from a seed and its number, tried, and kept if it fails."""

import tempfile
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from tests.fuzz import watching
from tests.fuzz.watching import Cost, Fault, Gauge

SEED = 20261122


@dataclass(frozen=True, kw_only=True)
class Given:
    """One input.

    Attributes:
        data: what is read.
        what: what it is, in words.
        place: where it is put, in words of who makes it; empty where there is one place only.
        entry: what is put there that is no file; empty where a file is.
        suffix: of a file that holds it.
    """

    data: bytes
    what: str
    place: str = ""
    entry: str = ""
    suffix: str = ".json"


class Subject(Protocol):
    """What is tried, ready for one case after the other."""

    def good(self) -> Given:
        """An input that nobody changed, and that has to be taken."""

    def make(self, draw: Random) -> Given:
        """An input that was changed."""

    def take(self, given: Given, draw: Random, gauge: Gauge) -> bool:
        """Let the app have it; whether it was taken for what it was before. Raises whatever must not happen."""


@dataclass(frozen=True, kw_only=True)
class Fuzzer:
    """One kind of input.

    Attributes:
        name: on the command line.
        about: what is changed, in a few words.
        total: cases of a whole run.
        opened: makes what is tried, in an empty folder.
    """

    name: str
    about: str
    total: int
    opened: Callable[[Path], AbstractContextManager[Subject]]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a part of a case may cost at most.

    Attributes:
        cpu_s: seconds of processors.
        grown_bytes: memory.
    """

    cpu_s: float = 1.0
    grown_bytes: int = 300 * 2**20


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A case that did what must not be.

    Attributes:
        number: of the case.
        what: the input, in words.
        why: what happened.
        file: where the input is kept.
    """

    number: int
    what: str
    why: str
    file: Path


@dataclass(kw_only=True)
class Report:
    """What became of the cases of a fuzzer.

    Attributes:
        cases: that were tried.
        taken: that were taken for what they had been before.
        slowest: the part that took the most processor time.
        largest: the part that took the most memory.
        failures: what must not be.
    """

    cases: int = 0
    taken: int = 0
    slowest: Cost = field(default_factory=Cost)
    largest: Cost = field(default_factory=Cost)
    failures: list[Failure] = field(default_factory=list)

    @property
    def refused(self) -> int:
        """Cases that were refused, or taken for something else."""
        return self.cases - self.taken - len(self.failures)

    def note(self, gauge: Gauge) -> None:
        """Remember what a case cost, if it is more than all before."""
        self.slowest = max(self.slowest, gauge.slowest, key=lambda cost: cost.cpu_s)
        self.largest = max(self.largest, gauge.largest, key=lambda cost: cost.grown_bytes)


def run(
    fuzzer: Fuzzer,
    numbers: range,
    *,
    seed: int = SEED,
    keep: Path,
    limits: Limits | None = None,
    warm_ups: int = 2,
    on_case: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Try some cases.

    Args:
        fuzzer: of which.
        numbers: of the cases; a case follows from the seed and its number alone.
        seed: another one makes other cases.
        keep: folder for inputs of cases that fail; made when one does.
        limits: what a part of a case may cost; as in `Limits` unless given.
        warm_ups: how often what nobody changed is tried before, so that no case pays for what is imported first.
        on_case: called after each case.
    """
    report = Report()
    with (
        tempfile.TemporaryDirectory() as folder,
        fuzzer.opened(Path(folder)) as subject,
        watching.signals() as sent,
        watching.complaints() as complaints,
        watching.memory(),
    ):
        trial = _Trial(subject=subject, sent=sent, complaints=complaints, limits=limits or Limits())
        for _ in range(warm_ups):
            if why := trial.fault(subject.good(), Random(seed), demand=True):
                message = f"{fuzzer.name}: what nobody changed is not taken: {why}"
                raise Fault(message)
        for number in numbers:
            source = f"{seed} {fuzzer.name} {number}"
            given = subject.make(Random(source))
            why = trial.fault(given, Random(source))
            if why.startswith(_COSTLY):  # once more: what is only done now and then is nobody's fault
                why = trial.fault(given, Random(source))
            report.cases += 1
            report.taken += trial.taken and not why
            report.note(trial.gauge)
            if why:
                report.failures.append(_kept(keep, fuzzer, seed, number, given, why))
            on_case(report)
    return report


_COSTLY = "it costs too much"


@dataclass(kw_only=True)
class _Trial:
    """One case after the other."""

    subject: Subject
    sent: list[str]
    complaints: list[str]
    limits: Limits
    gauge: Gauge = field(default_factory=Gauge)
    taken: bool = False

    def fault(self, given: Given, draw: Random, *, demand: bool = False) -> str:
        """What must not be and was; empty if all is well."""
        self.gauge, self.taken = Gauge(), False
        self.sent.clear()
        self.complaints.clear()
        try:
            with watching.patience():
                self.taken = self.subject.take(given, draw, self.gauge)
        except Exception:
            raised = traceback.format_exc(limit=-12)
        else:
            raised = ""
        if self.sent or raised:
            return raised + (f"it sent signals: {', '.join(self.sent)}" if self.sent else "")
        if self.complaints:
            return self.complaints[0]
        if demand:
            return "" if self.taken else "it was refused"
        return self._too_much()

    def _too_much(self) -> str:
        slowest, largest = self.gauge.slowest, self.gauge.largest
        if slowest.cpu_s > self.limits.cpu_s:
            return f"{_COSTLY}: {slowest.part} took {slowest.cpu_s:.2f} s"
        if largest.grown_bytes > self.limits.grown_bytes:
            return f"{_COSTLY}: {largest.part} took {largest.grown_bytes / 2**20:.0f} MiB"
        return ""


def _kept(keep: Path, fuzzer: Fuzzer, seed: int, number: int, given: Given, why: str) -> Failure:
    keep.mkdir(parents=True, exist_ok=True)
    file = keep / f"{fuzzer.name}-{seed}-{number}{given.suffix}"
    file.write_bytes(given.data)
    file.with_name(f"{file.name}.txt").write_text(f"{given.what}\n\n{why}\n", encoding="utf-8", errors="replace")
    return Failure(number=number, what=given.what, why=why, file=file)
