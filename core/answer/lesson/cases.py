"""What a run says of a public thread's training: the cause that it names itself, and what the remedy did.

The thread's own figures and ours are never put into one number: another machine, another clock, often another training.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core import units
from core.answer.own.findings import IDLE
from core.answer.own.findings import findings as stands_out
from core.answer.run import causes, fits, own, remedies
from core.answer.run.speedup import is_host, speedup, step_time
from core.answer.statistics import MIN_PAIRS, closeness, ratio_interval
from core.question import device_kinds
from core.question.experiment import spoken, titled
from core.question.models.boosting import LIBRARIES
from core.question.published.cases import CAUSES, Case
from core.results.schema import Trial

SAME: dict[str, tuple[str, ...]] = {
    "small": ("small", "idle", "recurrent"),
    "recurrent": ("recurrent", "small", "idle"),
    "rows": ("rows", "small", "idle"),
    "threads": ("small",),
    "host": ("host", "waits"),
    "waits": ("waits", "syncs"),
    "loader": ("loader",),
    "float64": ("float64",),
}
"""Cause of a thread → what a measurement names where it is the same."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

COSTS = {
    "loader": "waiting for batches",
    "transfer": "placing batches",
    "host": "what the host does between operations",
    "waits": "reading values",
    "calls": "calling operations",
    "float64": "arithmetic in float64",
    "arithmetic": "arithmetic",
}
"""What a step of a file is made of, as far as it was counted."""


LEAST = 0.01
"""Share of a step from which a part of it is told."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """One cause that a run names.

    Attributes:
        kind: what `SAME` knows it by; empty of a sentence that names no cause.
        share: of a step that it costs; None where that is not said.
    """

    kind: str
    sentence: str
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What a run says of a case.

    Attributes:
        named: all that it says, that which costs most first.
        place: of the thread's cause among those that are named, 1 for the first; None if it is not among them.
        agrees: whether it is the first; None where none is named.
    """

    named: tuple[Named, ...]
    place: int | None
    agrees: bool | None
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What the remedy did on one contender: time of a sample before over that after.

    Attributes:
        value: above 1 it helps, with its 95 % interval from `low` to `high`; None if that is not known.
    """

    contender: str
    value: float | None
    low: float | None
    high: float | None
    sentence: str


def diagnosis(case: Case, before: Sequence[Trial], after: Sequence[Trial] = ()) -> Diagnosis:
    """The causes that a run of a case names, and which of them is that of the thread.

    Args:
        case: the thread.
        before: rows of its training.
        after: rows of the same with the remedy, which show what is spared by larger batches or one call for all cells.
    """
    seen = named(before)
    spared = (one for one in _spared(case, gains(case, before, after)) if one.kind not in {each.kind for each in seen})
    found = tuple(sorted((*seen, *spared), key=lambda one: -(one.share or 0.0)))
    causing = dict.fromkeys(one.kind for one in found if one.kind)
    said, same = CAUSES[case.cause], SAME.get(case.cause, ())
    if not found:
        sentence = f"No cause was found: these blocks do not show {said}."
        return Diagnosis(named=_made_of(before), place=None, agrees=None, sentence=sentence)
    place = next((number for number, kind in enumerate(causing, 1) if kind in same), None)
    return Diagnosis(named=found, place=place, agrees=place == 1, sentence=_compared(said, place))


def _compared(said: str, place: int | None) -> str:
    if place == 1:
        return f"That is the cause of the thread as well: {said}."
    if place is None:
        return f"That is not the cause of the thread, which is {said}."
    return f"The cause of the thread, {said}, is the {ORDINALS[place - 1]} of those that are named here."


def named(rows: Sequence[Trial]) -> tuple[Named, ...]:
    """The causes that the rows of a run name, that which costs most first."""
    if not any(row.step_s for row in rows):
        return ()
    baseline, challenger = rows[0], rows[-1]
    if baseline.training:
        small = (one for one in _pair(baseline, challenger) if one.kind)
        return (*_own(challenger, baseline), *small)
    return (*_turns(challenger, baseline), *_catalogue(baseline, challenger))


def gains(case: Case, before: Sequence[Trial], after: Sequence[Trial]) -> tuple[Gain, ...]:
    """What the remedy did on each contender of two runs, one without it and one with it."""
    remedied = {row.contender: row for row in after}
    return tuple(_gain(case, row, remedied[row.contender]) for row in before if row.contender in remedied)


def then(after: Sequence[Trial]) -> str:
    """Who is faster with the remedy, in a sentence; empty where that is not told."""
    if len(after) < 2:
        return ""
    found = speedup(after[0], after[-1])
    if found.value is None or found.reason:
        return ""
    who, baseline = device_kinds.does(titled(after[-1].contender), "does", "do"), spoken(after[0].contender)
    return f"With it, {who} {units.ratio(found.value)} the work of {baseline} in the same time."


def _catalogue(baseline: Trial, challenger: Trial) -> tuple[Named, ...]:
    """The cause of two rows of the catalogue."""
    base, other = causes.parts(baseline), causes.parts(challenger)
    if base is None or other is None:
        return _pair(baseline, challenger)
    sentence, loader = causes.of_parts(baseline, challenger), min(base.share("loader"), other.share("loader"))
    if loader > causes.MAJORITY:
        return (Named(kind="loader", sentence=sentence, share=loader),)
    if is_host(baseline) and is_host(challenger):
        return _pair(baseline, challenger)
    device = base if is_host(challenger) else other
    waits = device.launch_share is not None and device.launch_share > causes.MAJORITY
    return (Named(kind="small" if waits else "", sentence=sentence, share=device.launch_share if waits else None),)


def _pair(baseline: Trial, challenger: Trial) -> tuple[Named, ...]:
    """Whether a step is too small to be shared among threads of a CPU, or to fill an accelerator."""
    if not (is_host(baseline) and is_host(challenger)) or baseline.threads == challenger.threads:
        return ()
    shared = causes.shared(baseline, challenger)
    if shared is None:
        return ()
    sentence = fits.worded(baseline, causes.threads(baseline, challenger))
    return (Named(kind="" if shared else "small", sentence=sentence),)


def _turns(*rows: Trial) -> tuple[Named, ...]:
    """What a step in float32 spares, or how much of a fit does not depend on rows; said once."""
    found = (
        Named(kind=one.kind, sentence=f"On {spoken(row.contender)} {one.sentence}", share=one.share)
        for row, one in causes.turns(*rows)
    )
    return tuple(found)[:1]


def _own(*rows: Trial) -> tuple[Named, ...]:
    """What is seen of rows of one's own training, each kind once."""
    found: dict[str, Named] = {}
    for row in rows:
        for one in stands_out(own.steps(row)):
            said = f"On {spoken(row.contender)}, {one.sentence}"
            found.setdefault(one.kind, Named(kind=one.kind, sentence=said, share=one.share))
    return tuple(found.values())


def _made_of(rows: Sequence[Trial]) -> tuple[Named, ...]:
    """What the steps of a file are made of, where none of it stands out."""
    row = next((row for row in rows if row.training and row.step_s), None)
    costs = own.steps(row).costs if row else {}
    parts = sorted(((share, COSTS[name]) for name, share in costs.items() if name in COSTS), reverse=True)
    told = [f"{name} {units.share(share)}" for share, name in parts if share >= LEAST]
    if row is None or not told:
        return ()
    return (Named(kind="", sentence=f"Of a step on {spoken(row.contender)}: {', '.join(told)}."),)


def _spared(case: Case, found: Sequence[Gain]) -> tuple[Named, ...]:
    """What the remedy spares on every contender, where it is larger batches, more rows or one call for all cells."""
    low = [gain for gain in found if gain.value is not None and gain.low is not None]
    kind, said = _change(case)
    if not kind or not low or len(low) < len(found) or min(gain.low or 0.0 for gain in low) <= 1:
        return ()
    least = min(low, key=lambda gain: gain.value or 0.0)
    share = 1 - 1 / (least.value or 1.0)
    if share < IDLE:
        return ()
    on, title = spoken(least.contender), case.remedy.title if case.remedy else ""
    title = title[:1].upper() + title[1:] if said.startswith("{title}") else title
    return (Named(kind=kind, sentence=said.format(title=title, on=on, share=units.share(share)), share=share),)


def _change(case: Case) -> tuple[str, str]:
    """The cause that shows in what a remedy spares, and the sentence on it; empty where it changes something else."""
    if case.remedy is None or case.here is None:
        return "", ""
    if "model" in case.remedy.fields:
        return (
            "recurrent",
            "{title} spares {share} of a step on {on}, and computes the same in fewer, larger operations.",
        )
    if case.more_work == 1:
        return "", ""
    if case.here.fields.get("model") in LIBRARIES:
        return "rows", "With {title}, a row takes {share} less time on {on}: it was not the rows that took it."
    return "small", "With {title}, a sample takes {share} less time on {on}: a step had too little to do."


def _gain(case: Case, before: Trial, after: Trial) -> Gain:
    name, title = titled(before.contender), case.remedy.title if case.remedy else ""
    if min(len(before.step_s), len(after.step_s)) < MIN_PAIRS:
        said = f"What it does on {spoken(before.contender)} is not known."
        return Gain(contender=before.contender, value=None, low=None, high=None, sentence=said)
    ours, theirs = list(before.step_s), [step_s / case.more_work for step_s in after.step_s]
    was, now = step_time(before).median_s or 0.0, (step_time(after).median_s or 0.0) / case.more_work
    value, (low, high) = was / now, ratio_interval(ours, theirs)
    doubt = closeness(*map(math.log, (value, low, high)))
    said = remedies.figures(f"{name}, {title}", value, low, high, doubt)
    return Gain(contender=before.contender, value=value, low=low, high=high, sentence=f"{said}.")
