"""What a page of a lesson shows and what a student hands in, as plain pieces.

A piece holds finished sentences, tables and charts, so that page and paper (`core.answer.export.lesson_report`) cannot
differ. Nothing here measures or computes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core import units
from core.question.experiment import display_name
from core.results.schema import Trial


@dataclass(frozen=True, kw_only=True)
class HandoutTable:
    """Rows of text below a header; of `prose`, which a page shows as a list, the cells are sentences."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    prose: bool = False


@dataclass(frozen=True, kw_only=True)
class HandoutFigure:
    """A chart: its title, also its name for who does not see it, and a specification of `core.answer.charts`."""

    title: str
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class HandoutListing:
    """Lines of code with what they said, shown as they are."""

    title: str
    code: str
    output: str


@dataclass(frozen=True, kw_only=True)
class HandoutSection:
    """One thing that is shown: paragraphs, charts, the tables they are drawn from, code, and notes in small print."""

    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[HandoutFigure, ...] = ()
    tables: tuple[HandoutTable, ...] = ()
    listings: tuple[HandoutListing, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class HandoutReply:
    """A question with what the student said to it; empty if there is nothing."""

    question: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Handout:
    """What a student hands in: what was expected, what was shown, what was answered after it, and where it ran."""

    title: str
    student: str
    date: str
    link: str
    predictions: tuple[HandoutReply, ...]
    sections: tuple[HandoutSection, ...]
    answers: tuple[HandoutReply, ...]
    machine: tuple[tuple[str, str], ...]

    @property
    def byline(self) -> str:
        """Who hands the report in, and when."""
        return f"{self.student.strip() or 'No name given'}, {self.date}"


def handout_environment(trials: Sequence[Trial]) -> tuple[tuple[str, str], ...]:
    """Where rows were measured: a line for each fact in which they agree, all values where they do not."""
    columns: dict[str, list[str]] = {
        "Processor": [trial.cpu_name for trial in trials],
        "Threads usable": [f"{trial.cores_usable} of {trial.cores}" for trial in trials],
        "Memory": [units.format_memory(trial.memory_bytes) for trial in trials],
        "System": [trial.system for trial in trials],
        "Devices": [f"{display_name(trial.contender)}: {trial.device_name}" for trial in trials],
        "torch": [trial.torch_version for trial in trials],
        "Crossover": [f"{trial.app_version} {trial.app_commit}".strip() for trial in trials],
        "Machine id": [trial.machine_id for trial in trials],
        "Measured": [min(t.started_at for t in trials), max(t.started_at for t in trials)] if trials else [],
        "Runs": [trial.run_id for trial in trials],
    }
    return tuple((name, ", ".join(dict.fromkeys(values))) for name, values in columns.items() if any(values))
