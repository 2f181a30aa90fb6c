"""Exhibits as lessons make them, without giving one."""

import uuid
from collections.abc import Mapping
from typing import Any

from core.question.demonstrations import RECIPES, Demonstration
from core.question.experiment import Contender, Point
from core.results.exhibits import Clock, Content, Exhibit, ExhibitContender, FirstStep, Moving, Snippet, Variant
from tests import rows

NAMES = {"cpu": "Test CPU", "cuda": "NVIDIA Test GPU"}

CLOCK = Demonstration(kind="clock", contenders=(Contender(threads=1),))
MOVING = Demonstration(kind="moving")
FIRST_STEP = Demonstration(kind="first_step", contenders=(Contender(), Contender(device="cuda:0")))


def variant(name: str = "ours", epoch_s: tuple[float, ...] = (0.5, 0.25, 0.75), **changes: Any) -> Variant:
    recipe = RECIPES[name]
    facts = {"title": recipe.title, "explains": recipe.explains, "switched": recipe.switched, "steps": 10}
    return Variant(**{"name": name, "epoch_s": epoch_s, "contender": "cpu@1", **facts, **changes})


def clocks(readings: Mapping[str, Mapping[str, tuple[float, ...]]] | None = None) -> Clock:
    """Contender → recipe → seconds an epoch."""
    told = readings or {"cpu@1": {"ours": (0.5, 0.25, 0.75), "no_drain": (0.25,), "disc": (1.0,)}}
    return Clock(
        variants=tuple(
            variant(name, epoch_s, contender=contender)
            for contender, by_name in told.items()
            for name, epoch_s in by_name.items()
        )
    )


def content(demonstration: Demonstration) -> Content:
    names = tuple(map(str, demonstration.contenders))
    if demonstration.kind == "clock":
        return clocks({name: {"ours": (0.5, 0.25, 0.75), "no_drain": (0.25,), "disc": (1.0,)} for name in names})
    if demonstration.kind == "moving":
        refused = Snippet(
            title="A tensor here plus a tensor there",
            code="print(here + there)",
            output="",
            error="RuntimeError: no",
            device="cuda:0",
        )
        return Moving(snippets=(refused,))
    return FirstStep(
        parameters=(("layer 1 weight", 2e-7), ("layer 1 bias", 1e-8)), loss_difference=0.0, contenders=names
    )


def exhibit(demonstration: Demonstration = CLOCK, **changes: Any) -> Exhibit:
    """What a demonstration might have shown on a machine that does not exist."""
    facts = {
        "id": uuid.uuid4().hex[:12],
        "demonstration": demonstration,
        "measured_at": "2026-11-21T09:30:00.000+00:00",
        "cpu_name": "Test CPU",
        "machine_id": rows.MACHINE_ID,
        "torch_version": rows.TORCH_VERSION,
        "app_commit": "0123456789ab",
        "participants": tuple(_participant(contender) for contender in demonstration.contenders),
        "content": content(demonstration),
    }
    return Exhibit(**{**facts, **changes})


def clock(
    factors: dict[str, float],
    *,
    contenders: tuple[str, ...] = ("cpu", "cuda:0"),
    point: Point | None = None,
    **changes: Any,
) -> Exhibit:
    """Clocks by recipe, each with its epoch as a multiple of 10 ms on the first device and of 1 ms on the others."""
    readings = {
        contender: {name: _repeated(name, factor * (1e-3 if place else 1e-2)) for name, factor in factors.items()}
        for place, contender in enumerate(contenders)
    }
    asked = Demonstration(kind="clock", point=point or Point(), contenders=_parsed(contenders), recipes=tuple(factors))
    return exhibit(asked, content=clocks(readings), **changes)


def moving(*snippets: Snippet, contenders: tuple[str, ...] = ("cpu",), **changes: Any) -> Exhibit:
    """Pieces of code; one that fails unless given."""
    piece = Snippet(
        title="Here plus there", code="print(here + there)", output="", error="RuntimeError: no", device="meta"
    )
    asked = Demonstration(kind="moving", contenders=_parsed(contenders))
    return exhibit(asked, content=Moving(snippets=snippets or (piece,), notes=("A note.",)), **changes)


def first_step(
    difference: float = 3e-7,
    *,
    contenders: tuple[str, ...] = ("cpu", "cuda:0"),
    point: Point | None = None,
    **changes: Any,
) -> Exhibit:
    """A first step whose gradients are so far apart."""
    asked = Demonstration(kind="first_step", point=point or Point(), contenders=_parsed(contenders))
    parameters = (("layer 1 weight", difference), ("layer 1 bias", 0.0))
    shown = FirstStep(parameters=parameters, loss_difference=0.0, contenders=contenders)
    return exhibit(asked, content=shown, **changes)


def _repeated(recipe: str, seconds: float) -> tuple[float, ...]:
    repeats = 1 if "one_repeat" in RECIPES[recipe].switched else 3
    return tuple(seconds * (1 + 0.001 * at) for at in range(repeats))


def _parsed(contenders: tuple[str, ...]) -> tuple[Contender, ...]:
    return tuple(map(Contender.parse, contenders))


def _participant(contender: Contender) -> ExhibitContender:
    kind = contender.device.partition(":")[0]
    return ExhibitContender(
        contender=str(contender),
        device=contender.device,
        kind=kind,
        device_name=NAMES[kind],
        threads=contender.threads or 2,
        startup_s=0.5,
    )


DIGITS = Point(dataset="digits", samples=300, model="mlp", hidden_size=8, depth=1, batch_size=50, epochs=2)
"""A training of milliseconds."""
