"""A public thread as text: what was reported and found, what runs in its place, and what was measured of it here."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from core import units
from core.answer.lesson import cases
from core.answer.run.speedup import step_time
from core.question import describe
from core.question.experiment import display_name
from core.question.published.cases import CAUSES, Case
from core.results.schema import Trial

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
