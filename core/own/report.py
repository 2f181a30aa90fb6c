"""What was seen of one's own loop: a few lines for people, plain data for programs."""

import dataclasses
from typing import Any

from core import units
from core.answer.own.findings import list_findings
from core.answer.own.steps import Cause, CustomSteps
from core.question.device_kinds import device_title

NAMES: dict[Cause, str] = {
    "loader": "waiting for batches",
    "before": "before the forward pass",
    "transfer": "placing them",
    "host": "host between operations",
    "waits": "reading values",
    "calls": "calling operations",
    "float64": "arithmetic in float64",
    "arithmetic": "arithmetic",
}

NOTHING_PASSED = "No batch was trained to its end, so there is nothing to say."
NOTHING_UPDATED = (
    "No step was seen: no optimizer of PyTorch updated the model. Where something else does, go through the batches: "
    "for batch in core.watch(loader, model)."
)
"""What is said of a loop without a step."""

SMALLEST = 0.005
"""Share below which a part is not listed."""


def build_loop_document(steps: CustomSteps, device: str, updates: int) -> dict[str, Any]:
    """All that is known, as plain data: device, steps and their time, updates, shares, findings, and raw counts."""
    raw = dataclasses.asdict(steps)
    return {
        "device": device,
        "steps": steps.steps,
        "step_s": steps.step_s,
        "updates": updates,
        "shares": dict(steps.costs),
        "findings": [dataclasses.asdict(found) for found in list_findings(steps)],
        "seen": {name: list(value) if isinstance(value, tuple) else value for name, value in raw.items()},
    }


def format_loop_report(steps: CustomSteps, device: str, updates: int, *, by_batches: bool) -> str:
    """The same for people."""
    if not steps.steps:
        return NOTHING_PASSED if by_batches else NOTHING_UPDATED
    looked, counted = units.format_count(steps.looked), units.format_count(len(steps.operations))
    lines = [
        f"{_describe_steps(steps, updates, by_batches)} on {device_title(device)}; {looked} looked at, {counted} "
        "counted"
    ]
    parts = [
        f"{NAMES[cause]} {units.format_share(share)}"
        for cause, share in sorted(steps.costs.items(), key=lambda part: -part[1])
        if share >= SMALLEST
    ]
    if parts:
        lines.append(f"  of a step: {', '.join(parts)}")
    lines += [f"  {place}. {found.sentence}" for place, found in enumerate(list_findings(steps), 1)] or [
        "  Nothing of what can be seen stands out."
    ]
    return "\n".join([*lines, *(f"  {said}" for said in _list_unknowns(steps, updates))])


def _describe_steps(steps: CustomSteps, updates: int, by_batches: bool) -> str:
    each = f" of {units.format_duration(steps.step_s)}" if steps.step_s else ""
    words = ("batch", "batches") if by_batches else ("step", "steps")
    counted = f"{units.format_quantity(steps.steps, *words)}{each}"
    several = by_batches and updates and round(steps.steps / updates) > 1
    return f"{counted}, {round(steps.steps / updates)} an update," if several else counted


def _list_unknowns(steps: CustomSteps, updates: int) -> list[str]:
    said = []
    if not updates:
        said.append("No optimizer of PyTorch took a step: how many batches make an update is not known.")
    if not steps.operations:
        said.append("Its operations were not counted: the loop was too short for that, or its steps are compiled.")
    if steps.learns is None:
        said.append("Whether it learns is not known: no model was given.")
    return said
