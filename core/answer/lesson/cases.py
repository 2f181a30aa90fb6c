"""What a run says of a public thread's training: the cause that it names itself, and what the remedy did.

The thread's own figures and ours are never put into one number: another machine, another clock, often another training.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core import units
from core.answer.run import causes, own, remedies
from core.answer.run.speedup import is_host, speedup, step_time
from core.answer.statistics import MIN_PAIRS, closeness, ratio_interval
from core.question import device_kinds
from core.question.experiment import spoken, titled
from core.question.published.cases import CAUSES, Case
from core.results.schema import Trial

SAME: dict[str, tuple[str, ...]] = {
    "small": ("small", "idle"),
    "recurrent": ("small", "idle"),
    "rows": ("small", "idle"),
    "threads": ("small",),
    "host": ("host", "waits"),
    "waits": ("waits", "syncs"),
    "loader": ("loader",),
    "float64": ("float64",),
}
"""Cause of a thread → what a measurement names where it is the same."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """One cause that a run names: a key of `CAUSES`, or empty for any other, and the sentence."""

    kind: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What a run says of a case.

    Attributes:
        named: every cause that it names, that which costs most first.
        agrees: whether the cause of the thread is among them; None where nothing is named.
        sentence: that in words.
    """

    named: tuple[Named, ...]
    agrees: bool | None
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What the remedy did on one contender: time of a sample before over that after.

    Attributes:
        contender: written form.
        value: above 1 it helps; None if that is not known.
        low: lower end of the 95 % interval.
        high: upper end.
        sentence: that in words.
    """

    contender: str
    value: float | None
    low: float | None
    high: float | None
    sentence: str


def diagnosis(case: Case, rows: Sequence[Trial]) -> Diagnosis:
    """The causes that a run of a case names, and whether that of the thread is among them."""
    found = named(rows)
    if not found:
        return Diagnosis(named=(), agrees=None, sentence="These blocks name no cause.")
    said = CAUSES[case.cause]
    agrees = any(one.kind in SAME.get(case.cause, ()) for one in found)
    if not agrees:
        return Diagnosis(named=found, agrees=False, sentence=f"That is not the cause of the thread, which is {said}.")
    return Diagnosis(named=found, agrees=True, sentence=f"That is the cause of the thread as well: {said}.")


def named(rows: Sequence[Trial]) -> tuple[Named, ...]:
    """The causes that the rows of a run name, the baseline first."""
    if not any(row.step_s for row in rows):
        return ()
    baseline, challenger = rows[0], rows[-1]
    if baseline.training:
        small = (one for one in _pair(baseline, challenger) if one.kind)
        return (*_own(challenger, baseline), *small)
    return _catalogue(baseline, challenger)


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
    sentence = causes.cause(baseline, challenger)
    if min(base.share("loader"), other.share("loader")) > causes.MAJORITY:
        return (Named(kind="loader", sentence=sentence),)
    if is_host(baseline) and is_host(challenger):
        return _pair(baseline, challenger)
    device = base if is_host(challenger) else other
    waits = device.launch_share is not None and device.launch_share > causes.MAJORITY
    return (Named(kind="small" if waits else "", sentence=sentence),)


def _pair(baseline: Trial, challenger: Trial) -> tuple[Named, ...]:
    """Whether a step is too small to be shared among threads of a CPU, or to fill an accelerator."""
    if not (is_host(baseline) and is_host(challenger)) or baseline.threads == challenger.threads:
        return ()
    shared = causes.shared(baseline, challenger)
    if shared is None:
        return ()
    return (Named(kind="" if shared else "small", sentence=causes.threads(baseline, challenger)),)


def _own(*rows: Trial) -> tuple[Named, ...]:
    """What is seen of rows of one's own training, each kind once."""
    found: dict[str, Named] = {}
    for row in rows:
        for kind, sentence in own.kinds(row):
            found.setdefault(kind, Named(kind=kind, sentence=sentence))
    return tuple(found.values())


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
