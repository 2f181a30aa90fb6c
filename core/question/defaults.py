"""Who contends where nobody said, and with which lanes added, in all places alike, and how long a run goes on."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ..errors import InvalidValue
from . import lanes
from .experiment import MAX_CONTENDERS, Contender, Point
from .lanes import PLAIN

LOOKS = (10, 12, 14, 16, 20, 25, 30, 40, 50, 60)
"""Pairs of blocks after which a run looks whether its verdict is certain, and ends if so; after the last it ends at all
events. Each look is paid for (`core.answer.speedup`): more of them would make each need more pairs."""


def default_contenders(devices: Iterable[str], cores: int) -> tuple[Contender, ...]:
    """The CPU against the first accelerator; without one, one thread of the CPU against all of them.

    Both numbers of threads are said: a `cpu` that tries several may find that one thread is the fastest, and the two
    would be one and the same.

    Args:
        devices: of this machine.
        cores: that the measuring process may use; where it is one, there is nobody to contend with.
    """
    for device in devices:
        if device != "cpu":
            return Contender(), Contender(device=device)
    return tuple(Contender(threads=count) for count in sorted({1, cores}))


def with_lanes_of_cpu(
    contenders: Sequence[Contender], points: Sequence[Point], refusals: Mapping[str, str]
) -> tuple[Contender, ...]:
    """Contenders with the lanes that may help the CPU and compute the same numbers, as many as there is room for.

    They come before the last contender: the first and the last are those between whom a search decides.

    Args:
        contenders: who contends without them.
        points: trainings, all of which the lanes must fit.
        refusals: kind of lane → why the CPU does not have it.

    Raises:
        InvalidValue: the CPU does not contend.
    """
    hosts = [contender for contender in contenders if contender.on_host]
    if not hosts:
        raise InvalidValue("fair", "full", "given with the CPU among the devices")
    fits = [set(lanes.worth_trying(point, on_host=True)) for point in points]
    worth = lanes.worth_trying(points[0], on_host=True)
    added = [
        dataclasses.replace(hosts[-1], lane=lane)
        for lane in worth
        if lane.has_same_numerics and not refusals.keys() & set(lane.kinds) and all(lane in fit for fit in fits)
    ]
    new = [contender for contender in added if contender not in contenders][: MAX_CONTENDERS - len(contenders)]
    first, *others = contenders
    return (first, *others[:-1], *new, *others[-1:])


def with_remedies(
    contenders: Sequence[Contender], point: Point, refusals: Mapping[str, Mapping[str, str]]
) -> tuple[Contender, ...]:
    """Contenders with lanes that may help each of them right behind it, as many as there is room for.

    Args:
        contenders: who contends without them.
        point: the training.
        refusals: of this machine: device → kind of lane → why it does not have it.
    """
    each = (MAX_CONTENDERS - len(contenders)) // len(contenders)
    told: list[Contender] = []
    for one in contenders:
        worth = lanes.worth_trying(point, on_host=one.on_host) if one.lane == PLAIN else ()
        has = [lane for lane in worth if not refusals.get(one.device, {}).keys() & set(lane.kinds)]
        told += [one, *(dataclasses.replace(one, lane=lane) for lane in has[:each])]
    return tuple(dict.fromkeys(told))
