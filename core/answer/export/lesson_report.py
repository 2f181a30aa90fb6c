"""Reports of lessons, tutorials and cases: sections of sentences, tables and charts, as Markdown, HTML or text.

The page and the report show the same sections, so they cannot differ. Nothing here measures or computes.
"""

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ... import units
from ...errors import CrossoverError
from ...question import describe
from ...question.experiment import display_name
from ...question.published import CAUSES, Case
from ...results.schema import Trial
from ...text import as_lines, to_html, to_markdown
from ..lessons import cases
from ..speedup import step_time
from . import pictures
from .template import fill_template


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


_ADDRESS = re.compile(r"https?://[^\s<>]+")
_FENCE = re.compile(r"`{3,}")

CHART_WIDTH = 640
"""Pixels of a chart on paper; on a page it has the width of its container."""

NOT_DRAWN = "This chart cannot be drawn as a picture; the table below has its figures."


def handout_markdown(handout: Handout) -> str:
    """The handout as Markdown."""
    functions = {"in_markdown": to_markdown, "lines": _lines, "fenced": _fence_code}
    return fill_template("handout.md.j2", to_markdown, handout=handout, link=_link(handout.link), **functions)


def handout_html(handout: Handout) -> str:
    """The handout as one HTML file that loads nothing from elsewhere and runs no script."""
    drawn = iter(_draw_figures([figure for section in handout.sections for figure in section.figures]))
    sections = [(section, [(figure, next(drawn)) for figure in section.figures]) for section in handout.sections]
    return fill_template("handout.html.j2", to_html, handout=handout, sections=sections)


def _draw_figures(figures: Sequence[HandoutFigure]) -> list[str]:
    """Charts as SVG, with the width of a page of paper; a sentence in place of each if they cannot be drawn."""
    try:
        return pictures.draw_svgs([figure.spec for figure in figures], CHART_WIDTH)
    except CrossoverError:
        return [f"<p>{NOT_DRAWN}</p>"] * len(figures)


def _lines(text: str) -> list[str]:
    """The lines of a reply that say something."""
    return [line for line in as_lines(text).splitlines() if line.strip()] or ["No reply."]


def _fence_code(text: str, language: str) -> str:
    """Lines between fences that are longer than any in them."""
    shown = as_lines(text)
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCE.findall(shown))])
    return f"{fence}{language}\n{shown}\n{fence}"


def _link(address: str) -> str:
    """An address to be followed; anything else as it is."""
    return f"Link: <{address}>" if _ADDRESS.fullmatch(address) else to_markdown(f"Link: {address}")


LABEL_WIDTH = 12
"""Letters of a line's beginning."""


def case_list_text(cases: Sequence[Case]) -> str:
    """A line for each: its name, what it is about, its cause, and whether anything of it runs here."""
    longest = max(len(case.name) for case in cases)
    return "\n".join(
        f"{case.name:{longest}}  {case.title}: {CAUSES[case.cause]}{'' if case.runnable else ' (not run here)'}"
        for case in cases
    )


def case_figures_text(case: Case) -> str:
    """The reported figures in a line; empty where none were told."""
    told = ", ".join(f"{one.name} {units.format_significant(one.value)}" for one in case.figures)
    return f"{told} {case.unit}" if told else ""


def case_source(case: Case) -> str:
    """Who reported a case, and when."""
    return f"{case.thread}, {case.date or 'undated'}"


def case_text(case: Case, before: Sequence[Trial] = (), after: Sequence[Trial] = ()) -> str:
    """A case with what was measured of it, for a terminal."""
    lines = [
        f"{case.title} ({case_source(case)})",
        case.address,
        "",
        *_label_line("Trained", case.model),
        *_label_line("On", case.devices),
        *_label_line("Reported", case.reported),
        *_label_line("Published", case_figures_text(case)),
        *_label_line("Cause", f"{CAUSES[case.cause]}. {case.found}"),
        *_label_line("Advice", case.remedied),
        *_label_line("Not known", case.open),
        *_label_line("On a GPU", case.gpu),
        "",
        *_case_training_lines(case),
    ]
    return "\n".join([*lines, *case_measurement_lines(case, before, after)]).rstrip()


def case_measurement_lines(case: Case, before: Sequence[Trial], after: Sequence[Trial]) -> list[str]:
    """What was measured here, a sentence a line; empty where nothing was."""
    if not before:
        return []
    found = cases.diagnose_case(case, before, after)
    times = {display_name(row.contender): step_time(row).median_s for row in before}
    steps = [f"{name} {units.format_duration(median_s)}" for name, median_s in times.items() if median_s]
    told = [*_label_line("Measured", f"{', '.join(steps)} a step")] if len(steps) == len(times) else []
    told += [line for one in found.named for line in _label_line("Named", one.sentence)]
    told += _label_line("Compared", found.sentence)
    told += [line for one in cases.remedy_gains(case, before, after) for line in _label_line("Remedy", one.sentence)]
    return [*told, *_label_line("Remedy", cases.remedy_verdict(after))]


def case_document(case: Case, before: Sequence[Trial], after: Sequence[Trial]) -> dict[str, Any]:
    """A case with what was measured of it, as plain data."""
    found = cases.diagnose_case(case, before, after) if before else None
    return {
        "case": dataclasses.asdict(case),
        "diagnosis": dataclasses.asdict(found) if found else None,
        "gains": [dataclasses.asdict(one) for one in cases.remedy_gains(case, before, after)],
        "runs": [rows[0].run_id for rows in (before, after) if rows],
    }


def _case_training_lines(case: Case) -> list[str]:
    if not case.runnable:
        return _label_line("Here", "Nothing of it runs here.")
    remedied = case.point_with_remedy()
    said = [*_label_line("Here", describe.describe_question(case.point())), *_label_line("", case.note)]
    return [*said, *_label_line("Remedy", case.remedy.title)] if remedied and case.remedy else said


def _label_line(beginning: str, sentence: str) -> list[str]:
    return [f"{beginning:{LABEL_WIDTH}}{sentence}"] if sentence else []
