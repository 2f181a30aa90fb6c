"""A public thread as text: what was reported and found, what runs in its place, and what was measured of it here."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from core import units
from core.answer.lesson import cases
from core.answer.run.speedup import step_time
from core.question import describe
from core.question.experiment import titled
from core.question.published.cases import CAUSES, Case
from core.results.schema import Trial

WIDTH = 12
"""Letters of a line's beginning."""


def listed(shown: Sequence[Case]) -> str:
    """A line for each: its name, what it is about, its cause, and whether anything of it runs here."""
    longest = max(len(case.name) for case in shown)
    return "\n".join(
        f"{case.name:{longest}}  {case.title}: {CAUSES[case.cause]}{'' if case.runnable else ' (not run here)'}"
        for case in shown
    )


def figures(case: Case) -> str:
    """The reported figures in a line; empty where none were told."""
    told = ", ".join(f"{one.name} {units.significant(one.value)}" for one in case.figures)
    return f"{told} {case.unit}" if told else ""


def source(case: Case) -> str:
    """Who reported a case, and when."""
    return f"{case.thread}, {case.date or 'undated'}"


def text(case: Case, before: Sequence[Trial] = (), after: Sequence[Trial] = ()) -> str:
    """A case with what was measured of it, for a terminal."""
    lines = [
        f"{case.title} ({source(case)})",
        case.address,
        "",
        *_told("Trained", case.model),
        *_told("On", case.devices),
        *_told("Reported", case.reported),
        *_told("Published", figures(case)),
        *_told("Cause", f"{CAUSES[case.cause]}. {case.found}"),
        *_told("Advice", case.remedied),
        *_told("Not known", case.open),
        *_told("On a GPU", case.gpu),
        "",
        *_runs(case),
    ]
    return "\n".join([*lines, *measured(case, before, after)]).rstrip()


def measured(case: Case, before: Sequence[Trial], after: Sequence[Trial]) -> list[str]:
    """What was measured here, a sentence a line; empty where nothing was."""
    if not before:
        return []
    found = cases.diagnosis(case, before, after)
    times = {titled(row.contender): step_time(row).median_s for row in before}
    steps = [f"{name} {units.duration(median_s)}" for name, median_s in times.items() if median_s]
    told = [*_told("Measured", f"{', '.join(steps)} a step")] if len(steps) == len(times) else []
    told += [line for one in found.named for line in _told("Named", one.sentence)]
    told += _told("Compared", found.sentence)
    told += [line for one in cases.gains(case, before, after) for line in _told("Remedy", one.sentence)]
    return [*told, *_told("Remedy", cases.then(after))]


def document(case: Case, before: Sequence[Trial], after: Sequence[Trial]) -> dict[str, Any]:
    """A case with what was measured of it, as plain data."""
    found = cases.diagnosis(case, before, after) if before else None
    return {
        "case": dataclasses.asdict(case),
        "diagnosis": dataclasses.asdict(found) if found else None,
        "gains": [dataclasses.asdict(one) for one in cases.gains(case, before, after)],
        "runs": [rows[0].run_id for rows in (before, after) if rows],
    }


def _runs(case: Case) -> list[str]:
    if not case.runnable:
        return _told("Here", "Nothing of it runs here.")
    remedied = case.remedied_point()
    said = [*_told("Here", describe.sentence(case.point())), *_told("", case.note)]
    return [*said, *_told("Remedy", case.remedy.title)] if remedied and case.remedy else said


def _told(beginning: str, sentence: str) -> list[str]:
    return [f"{beginning:{WIDTH}}{sentence}"] if sentence else []
