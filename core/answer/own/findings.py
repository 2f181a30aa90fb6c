"""What stands out in the steps of a training of one's own, a sentence each, that which costs most first.

Everything follows from what was counted and timed. What could not be seen is not guessed at.
"""

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core import units
from core.answer.own.steps import Cause, CustomSteps

NOTABLE_SHARE = 0.1
"""Share of a step from which a cost is named."""

IDLE = 0.2
"""Share of a step from which on it is said that calling operations takes it, or that a device has nothing to do."""

MANY_OPERATIONS = 0.5
"""Share of a step's operations from which on they are said to be elsewhere, or in float64."""

FLOAT64_NOTE = "many GPUs do it at a small part of their speed"
"""What there is to know of float64."""

FEW_STEPS = 3
"""Steps that must all keep more than the one before; the first ones, which may set up something, are left out."""


@dataclass(frozen=True, kw_only=True)
class StepFinding:
    """Something that stands out.

    Attributes:
        kind: what it is about in a word: `loader`, `before`, `transfer`, `host`, `waits`, `small`, `idle`, `float64`,
            `elsewhere`, and for what has no share `unseen`, `learns`, `syncs`, `copies`, `grows`, `uneven`, `threads`,
            `prints`.
        share: of a step that it costs; None where that cannot be said.
        sentence: that goes on after the name of a device.
    """

    kind: str
    share: float | None
    sentence: str


def list_findings(steps: CustomSteps) -> list[StepFinding]:
    """All of them, costs first, the largest first."""
    costs = [*_wrong_device_findings(steps), *_costs(steps), *_idle(steps)]
    named = {each.kind for each in costs}
    odd = [StepFinding(kind=kind, share=None, sentence=said) for kind, said in _oddities(steps) if kind not in named]
    return [*sorted(costs, key=lambda each: (each.kind != "elsewhere", -(each.share or 0.0))), *odd]


def grows(counts: Sequence[int]) -> bool:
    """Whether each of the last counts is higher than the one before."""
    last = counts[1:]
    return len(last) >= FEW_STEPS and all(after > before for before, after in itertools.pairwise(last))


def _costs(steps: CustomSteps) -> Iterator[StepFinding]:
    for kind, share in steps.costs.items():
        least = IDLE if kind == "calls" else NOTABLE_SHARE
        if kind != "arithmetic" and share >= least:
            yield StepFinding(
                kind="small" if kind == "calls" else kind,
                share=share,
                sentence=_cost_sentence(kind, units.format_share(share), steps),
            )


def _cost_sentence(kind: Cause, share: str, steps: CustomSteps) -> str:
    operations = _count_text(steps.operations)
    match kind:
        case "loader":
            return f"waiting for the next batch takes {share} of a step."
        case "before":
            return f"what comes before the forward pass takes {share} of a step: the batch, copying it, other work."
        case "transfer":
            return f"placing the batch takes {share} of a step."
        case "host":
            return (
                f"what the host does between PyTorch's operations takes {share} of a step: Python, NumPy, files, sleep."
            )
        case "waits":
            most = "" if steps.on_host else "up to "
            return f"{_reading(steps)}: that takes {most}{share} of a step."
        case "float64":
            return f"arithmetic in float64 takes {share} of a step; {FLOAT64_NOTE}."
        case _ if steps.on_host:
            each = units.format_duration(steps.floor_s[0])
            return (
                f"calling its {operations} operations takes {share} of a step, about {each} each with nothing to "
                "compute: they are too small."
            )
    return f"launching its {operations} operations takes {share} of a step, for which the device has nothing to do."


def _wrong_device_findings(steps: CustomSteps) -> Iterator[StepFinding]:
    share = sum(steps.elsewhere) / (sum(steps.operations) or 1)
    if share > MANY_OPERATIONS:
        said = "most operations run on another device: the device that was asked for is not used."
        yield StepFinding(kind="elsewhere", share=share, sentence=said)


def _idle(steps: CustomSteps) -> Iterator[StepFinding]:
    """Where it is not known what the host does meanwhile, as in rows of before."""
    idle = steps.idle
    if idle is not None and idle >= IDLE and "calls" not in steps.costs:
        launched = f", of {_count_text(steps.operations)} operations" if steps.operations else ""
        said = f"the device has nothing to do for {units.format_share(idle)} of a step{launched}."
        yield StepFinding(kind="idle", share=idle, sentence=said)


def _oddities(steps: CustomSteps) -> Iterator[tuple[str, str]]:
    operations = sum(steps.operations)
    if steps.unseen:
        yield "unseen", "no operation of PyTorch is called: what its steps do is not seen."
    if steps.learns is False:
        yield "learns", "no parameter changes: it trains nothing."
    if steps.reads:
        yield "waits", f"{_reading(steps)}."
    if steps.syncs and min(steps.syncs) > 0:
        where = f", most often at {steps.syncs_at}" if steps.syncs_at else ""
        yield "syncs", f"CUDA makes the host wait {_count_text(steps.syncs, 'time')} in each step{where}."
    if steps.float64 and sum(steps.float64) > MANY_OPERATIONS * operations:
        share = units.format_share(sum(steps.float64) / operations)
        yield "float64", f"{share} of the operations are in float64, which many GPUs do at a small part of their speed."
    if steps.copies and min(steps.copies) > 0:
        yield "copies", f"each step copies {_count_text(steps.copies, 'tensor')} to the device."
    yield from _change_oddities(steps)
    if steps.threads_set:
        yield "threads", "its steps set the number of threads themselves, so it is not the one that was asked for."
    if 2 * steps.printed > steps.steps > 0:
        yield "prints", f"it prints {units.format_count(steps.printed)} lines, which are not shown here."


def _change_oddities(steps: CustomSteps) -> Iterator[tuple[str, str]]:
    """What differs from step to step."""
    if grows(steps.kept) or grows(steps.operations):
        yield "grows", "each step leaves more behind than the one before: it grows with every step."
    often, beyond = steps.uneven
    if beyond >= NOTABLE_SHARE:
        yield (
            "uneven",
            (
                f"{units.format_share(often)} of its steps take several times as long as the usual one, which costs "
                f"{units.format_share(beyond)} of the time: work that is done now and then, or others on this machine."
            ),
        )


def _reading(steps: CustomSteps) -> str:
    where = f", most often at {steps.waits_at}" if steps.waits_at else ""
    waits = "would wait on a GPU" if steps.on_host else "waits"
    return f"each step reads {_count_text(steps.waits, 'value')}, for which the host {waits}{where}"


def _count_text(counts: Sequence[int], noun: str = "") -> str:
    """How many there are in a step: "3", or "1 value", "3 values" where it is said of what."""
    if not counts:
        return "unknown"
    number = int(statistics.median(counts))
    return units.format_quantity(number, noun) if noun else units.format_count(number)
