"""Exhibits for tests: what a lesson would have shown, without giving one."""

from core.demonstration import RECIPES, Demonstration
from core.exhibits import Clock, Exhibit, FirstStep, Moving, Participant, Snippet, Variant
from core.experiment import Contender, Point
from tests import rows

NAMES = {"cpu": "Test CPU", "cuda": "NVIDIA Test GPU"}


def clock(
    factors: dict[str, float], *, contenders: tuple[str, ...] = ("cpu", "cuda:0"), point: Point | None = None, **changes
) -> Exhibit:
    """Clocks by recipe, each with its epoch as a multiple of 10 ms on the first device and of 1 ms on the others."""
    variants = tuple(
        _variant(name, contender, factor * (1e-2 if place == 0 else 1e-3))
        for place, contender in enumerate(contenders)
        for name, factor in factors.items()
    )
    asked = Demonstration(kind="clock", point=point or Point(), contenders=_parsed(contenders), recipes=tuple(factors))
    return exhibit(asked, Clock(variants=variants), **changes)


def moving(*snippets: Snippet, contenders: tuple[str, ...] = ("cpu",), **changes) -> Exhibit:
    """Pieces of code; one that fails unless given."""
    piece = Snippet(
        title="Here plus there", code="print(here + there)", output="", error="RuntimeError: no", device="meta"
    )
    asked = Demonstration(kind="moving", contenders=_parsed(contenders))
    return exhibit(asked, Moving(snippets=snippets or (piece,), notes=("A note.",)), **changes)


def first_step(
    difference: float = 3e-7, *, contenders=("cpu", "cuda:0"), point: Point | None = None, **changes
) -> Exhibit:
    """A first step whose gradients are so far apart."""
    asked = Demonstration(kind="first_step", point=point or Point(), contenders=_parsed(contenders))
    content = FirstStep(
        parameters=(("layer 1 weight", difference), ("layer 1 bias", 0.0)), loss_difference=0.0, contenders=contenders
    )
    return exhibit(asked, content, **changes)


def exhibit(asked: Demonstration, content: Clock | Moving | FirstStep, **changes) -> Exhibit:
    """What was shown on the machine of `tests.rows`."""
    values = {
        "id": asked.id[:12],
        "demonstration": asked,
        "measured_at": "2026-11-21T09:30:00+00:00",
        "cpu_name": "Test CPU",
        "machine_id": rows.MACHINE_ID,
        "torch_version": rows.TORCH_VERSION,
        "app_commit": "0123456789ab",
        "participants": tuple(_participant(str(contender)) for contender in asked.contenders),
        "content": content,
    }
    return Exhibit(**{**values, **changes})


def _variant(name: str, contender: str, seconds: float) -> Variant:
    of = RECIPES[name]
    repeats = 1 if "one_repeat" in of.switched else 3
    return Variant(
        name=name,
        title=of.title,
        explains=of.explains,
        switched=of.switched,
        epoch_s=tuple(seconds * (1 + 0.001 * at) for at in range(repeats)),
        steps=10,
        contender=contender,
    )


def _participant(contender: str) -> Participant:
    asked = Contender.parse(contender)
    kind = asked.device.partition(":")[0]
    return Participant(contender=contender, device=asked.device, kind=kind, device_name=NAMES[kind], threads=1)


def _parsed(contenders: tuple[str, ...]) -> tuple[Contender, ...]:
    return tuple(map(Contender.parse, contenders))
