"""Answers to a public thread from a run of its training: the cause that the run shows, and the effect of the fix.

Figures of the thread and of the run are never combined into one number, because machine, clock and often the training
differ.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ... import units
from ...question import describe, lanes
from ...question.experiment import display_name, inline_name
from ...question.models.families import LIBRARIES
from ...question.published import CAUSES, Case
from ...results.schema import Trial
from .. import causes, custom_findings, remedies
from ..custom_findings import IDLE
from ..custom_findings import list_findings as stands_out
from ..speedup import is_host, speedup, step_time
from ..statistics import MIN_PAIRS, ratio_interval
from ..verdict import closeness_reason
from .outcomes import Section, sections_text

SAME_CAUSES: dict[str, tuple[str, ...]] = {
    "small": ("small", "idle", "recurrent"),
    "recurrent": ("recurrent", "small", "idle"),
    "rows": ("rows", "small", "idle"),
    "threads": ("small",),
    "host": ("host", "waits"),
    "waits": ("waits", "syncs"),
    "loader": ("loader",),
    "float64": ("float64",),
}
"""Cause of a thread → equivalent causes that a measurement can name."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

COSTS = {
    "loader": "waiting for batches",
    "transfer": "placing batches",
    "host": "the host's work between operations",
    "waits": "reading values",
    "calls": "calling operations",
    "float64": "arithmetic in float64",
    "arithmetic": "arithmetic",
}
"""Parts of a step of a custom script, with their descriptions."""


LEAST = 0.01
"""Minimum share of a step at which a part is reported."""


@dataclass(frozen=True, kw_only=True)
class NamedCause:
    """One cause that a run names.

    Attributes:
        kind: value in `SAME_CAUSES`; empty for a sentence that names no cause.
        share: share of the time of a step; None if unknown.
    """

    kind: str
    sentence: str
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Result of a run for a case.

    Attributes:
        named: all named causes, the most expensive first.
        place: position of the thread's cause in this order, 1 for the first; None if it was not found.
        agrees: whether the thread's cause is the first; None if no cause is named.
    """

    named: tuple[NamedCause, ...]
    place: int | None
    agrees: bool | None
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Gain:
    """Effect of the fix on one contender: time per sample before the fix over time per sample after it.

    Attributes:
        value: ratio, above 1 if the fix helps, with its 95 % interval from `low` to `high`; None if unknown.
    """

    contender: str
    value: float | None
    low: float | None
    high: float | None
    sentence: str


def diagnose_case(case: Case, before: Sequence[Trial], after: Sequence[Trial] = ()) -> Diagnosis:
    """Return the causes that a run of a case shows, and the position of the thread's cause among them.

    Args:
        case: the thread.
        before: rows of its training.
        after: rows of the training with the remedy, which show the savings of larger batches or of one call for all
            cells.
    """
    seen = find_causes(before)
    spared = (
        one
        for one in _saving_causes(case, remedy_gains(case, before, after))
        if one.kind not in {each.kind for each in seen}
    )
    found = tuple(sorted((*seen, *spared), key=lambda one: -(one.share or 0.0)))
    causing = dict.fromkeys(one.kind for one in found if one.kind)
    said, same = CAUSES[case.cause], SAME_CAUSES.get(case.cause, ())
    if not found:
        sentence = f"No cause was found: these blocks do not show {said}."
        return Diagnosis(named=_step_composition(before), place=None, agrees=None, sentence=sentence)
    place = next((number for number, kind in enumerate(causing, 1) if kind in same), None)
    return Diagnosis(named=found, place=place, agrees=place == 1, sentence=_cause_comparison(said, place))


def _cause_comparison(cause: str, place: int | None) -> str:
    if place == 1:
        return f"The thread has the same cause: {cause}."
    if place is None:
        return f"The thread has another cause: {cause}."
    return f"The thread's cause, {cause}, is the {ORDINALS[place - 1]} of those named here."


def find_causes(rows: Sequence[Trial]) -> tuple[NamedCause, ...]:
    """Return the causes that the rows of a run show, the most expensive first."""
    if not any(row.step_s for row in rows):
        return ()
    baseline, challenger = rows[0], rows[-1]
    if baseline.training:
        small = (one for one in _pair_causes(baseline, challenger) if one.kind)
        return (*_custom_causes(challenger, baseline), *small)
    return (*_turns(challenger, baseline), *_catalogue(baseline, challenger))


def remedy_gains(case: Case, before: Sequence[Trial], after: Sequence[Trial]) -> tuple[Gain, ...]:
    """Return the effect of the remedy on each configuration of two runs, one without it and one with it."""
    remedied = {row.contender: row for row in after}
    return tuple(_gain(case, row, remedied[row.contender]) for row in before if row.contender in remedied)


def remedy_verdict(after: Sequence[Trial]) -> str:
    """Return a sentence on which device is faster with the fix; empty if that is undecided."""
    if len(after) < 2:
        return ""
    found = speedup(after[0], after[-1])
    if found.value is None or not found.has_winner or found.is_conditional:
        return ""
    who, baseline = lanes.does(display_name(after[-1].contender), "does", "do"), inline_name(after[0].contender)
    return f"With it, {who} {units.format_ratio(found.value)} the work of {baseline} in the same time."


def _catalogue(baseline: Trial, challenger: Trial) -> tuple[NamedCause, ...]:
    """Return the cause of two rows of the catalogue."""
    base, other = causes.step_parts(baseline), causes.step_parts(challenger)
    if base is None or other is None:
        return _pair_causes(baseline, challenger)
    sentence, loader = causes.parts_cause(baseline, challenger), min(base.share("loader"), other.share("loader"))
    if loader > causes.MAJORITY:
        return (NamedCause(kind="loader", sentence=sentence, share=loader),)
    if is_host(baseline) and is_host(challenger):
        return _pair_causes(baseline, challenger)
    device = base if is_host(challenger) else other
    waits = device.is_launch_bound
    return (NamedCause(kind="small" if waits else "", sentence=sentence, share=device.launch_share if waits else None),)


def _pair_causes(baseline: Trial, challenger: Trial) -> tuple[NamedCause, ...]:
    """Return whether a step is too small to be shared among threads of a CPU, or to fill an accelerator."""
    if not (is_host(baseline) and is_host(challenger)) or baseline.threads == challenger.threads:
        return ()
    shared = causes.is_worth_sharing(baseline, challenger)
    if shared is None:
        return ()
    sentence = causes.fit_wording(baseline, causes.threads_sentence(baseline, challenger))
    return (NamedCause(kind="" if shared else "small", sentence=sentence),)


def _turns(*rows: Trial) -> tuple[NamedCause, ...]:
    """Return at most one finding: the time that float32 saves, or the part of a fit that does not depend on rows."""
    found = (
        NamedCause(kind=one.kind, sentence=f"On {inline_name(row.contender)} {one.sentence}", share=one.share)
        for row, one in causes.turn_findings(*rows)
    )
    return tuple(found)[:1]


def _custom_causes(*rows: Trial) -> tuple[NamedCause, ...]:
    """Collect the findings on rows of a custom training script, each kind once."""
    found: dict[str, NamedCause] = {}
    for row in rows:
        for one in stands_out(custom_findings.custom_steps(row)):
            said = f"On {inline_name(row.contender)}, {one.sentence}"
            found.setdefault(one.kind, NamedCause(kind=one.kind, sentence=said, share=one.share))
    return tuple(found.values())


def _step_composition(rows: Sequence[Trial]) -> tuple[NamedCause, ...]:
    """Return the composition of the steps of a script in which no part is prominent."""
    row = next((row for row in rows if row.training and row.step_s), None)
    costs = custom_findings.custom_steps(row).costs if row else {}
    parts = sorted(((share, COSTS[name]) for name, share in costs.items() if name in COSTS), reverse=True)
    told = [f"{name} {units.format_share(share)}" for share, name in parts if share >= LEAST]
    if row is None or not told:
        return ()
    return (NamedCause(kind="", sentence=f"Parts of a step on {inline_name(row.contender)}: {', '.join(told)}."),)


def _saving_causes(case: Case, effects: Sequence[Gain]) -> tuple[NamedCause, ...]:
    """Return the cause that the fix reveals, if it saves time on every contender."""
    low = [gain for gain in effects if gain.value is not None and gain.low is not None]
    kind, said = _saving_kind(case)
    if not kind or not low or len(low) < len(effects) or min(gain.low or 0.0 for gain in low) <= 1:
        return ()
    least = min(low, key=lambda gain: gain.value or 0.0)
    share = 1 - 1 / (least.value or 1.0)
    if share < IDLE:
        return ()
    on, title = inline_name(least.contender), case.remedy.title if case.remedy else ""
    title = title[:1].upper() + title[1:] if said.startswith("{title}") else title
    return (
        NamedCause(kind=kind, sentence=said.format(title=title, on=on, share=units.format_share(share)), share=share),
    )


def _saving_kind(case: Case) -> tuple[str, str]:
    """Return the cause that the savings of a fix reveal, and the sentence about it.

    Both are empty if the fix changes something else.
    """
    if case.remedy is None or case.here is None:
        return "", ""
    if "model" in case.remedy.fields:
        return (
            "recurrent",
            "{title} saves {share} of a step on {on}, and computes the same in fewer, larger operations.",
        )
    if case.more_work == 1:
        return "", ""
    if case.here.fields.get("model") in LIBRARIES:
        return (
            "rows",
            "With {title}, a row takes {share} less time on {on}: most of the time did not depend on the rows.",
        )
    return "small", "With {title}, a sample takes {share} less time on {on}: a step had too little to do."


def _gain(case: Case, before: Trial, after: Trial) -> Gain:
    name, title = display_name(before.contender), case.remedy.title if case.remedy else ""
    if min(len(before.step_s), len(after.step_s)) < MIN_PAIRS:
        said = f"Its effect on {inline_name(before.contender)} is unknown."
        return Gain(contender=before.contender, value=None, low=None, high=None, sentence=said)
    ours, theirs = list(before.step_s), [step_s / case.more_work for step_s in after.step_s]
    was, now = step_time(before).median_s or 0.0, (step_time(after).median_s or 0.0) / case.more_work
    value, (low, high) = was / now, ratio_interval(ours, theirs)
    doubt = closeness_reason(*map(math.log, (value, low, high)))
    said = remedies.effect_figures(f"{name}, {title}", value, low, high, doubt)
    return Gain(contender=before.contender, value=value, low=low, high=high, sentence=f"{said}.")


LABEL_WIDTH = 12
"""Width of the label of a line, in letters."""


def case_list_text(cases: Sequence[Case]) -> str:
    """Return a line for each case: its name, subject, cause, and whether it can run here."""
    longest = max(len(case.name) for case in cases)
    return "\n".join(
        f"{case.name:{longest}}  {case.title}: {CAUSES[case.cause]}{'' if case.runnable else ' (not run here)'}"
        for case in cases
    )


def case_figures_text(case: Case) -> str:
    """List the reported figures in a line; empty without figures."""
    figures = ", ".join(f"{one.name} {units.format_significant(one.value)}" for one in case.figures)
    return f"{figures} {case.unit}" if figures else ""


def case_source(case: Case) -> str:
    """Return the thread that reported a case, and its date."""
    return f"{case.thread}, {case.date or 'undated'}"


def case_text(case: Case, before: Sequence[Trial] = (), after: Sequence[Trial] = ()) -> str:
    """Return a case with its measurements, for a terminal."""
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
    measured = [*_step_times_line(before), "", sections_text(case_sections(case, before, after))]
    return "\n".join([*lines, *measured]).rstrip()


def case_sections(case: Case, before: Sequence[Trial], after: Sequence[Trial] = ()) -> tuple[Section, ...]:
    """Return the causes that a run of a case shows, and the effect of the fix; empty without measurements."""
    if not before:
        return ()
    found = diagnose_case(case, before, after)
    named = [one.sentence for one in found.named]
    if len(named) > 1:
        named = [f"{number}. {sentence}" for number, sentence in enumerate(named, 1)]
    sections = [Section(title="Findings", sentences=(*named, found.sentence))]
    if gains := remedy_gains(case, before, after):
        sentences = filter(None, (*(gain.sentence for gain in gains), remedy_verdict(after)))
        sections.append(Section(title="With the fix", sentences=tuple(sentences)))
    return tuple(sections)


def _step_times_line(rows: Sequence[Trial]) -> list[str]:
    times = {display_name(row.contender): step_time(row).median_s for row in rows}
    steps = [f"{name} {units.format_duration(median_s)}" for name, median_s in times.items() if median_s]
    return _label_line("Measured", f"{', '.join(steps)} a step") if steps and len(steps) == len(times) else []


def case_document(case: Case, before: Sequence[Trial], after: Sequence[Trial]) -> dict[str, Any]:
    """Return a case with its measurements as simple data."""
    found = diagnose_case(case, before, after) if before else None
    return {
        "case": dataclasses.asdict(case),
        "diagnosis": dataclasses.asdict(found) if found else None,
        "gains": [dataclasses.asdict(one) for one in remedy_gains(case, before, after)],
        "runs": [rows[0].run_id for rows in (before, after) if rows],
    }


def _case_training_lines(case: Case) -> list[str]:
    if not case.runnable:
        return _label_line("Here", "Nothing of it can run here.")
    remedied = case.point_with_remedy()
    said = [*_label_line("Here", describe.describe_question(case.point())), *_label_line("", case.note)]
    return [*said, *_label_line("Remedy", case.remedy.title)] if remedied and case.remedy else said


def _label_line(beginning: str, sentence: str) -> list[str]:
    return [f"{beginning:{LABEL_WIDTH}}{sentence}"] if sentence else []
