"""The steps of a training of one's own, in the loop that all trainings have.

What `build` returned is a function that trains a batch, or an object with a `step` and any of `batches`, `place`,
`loss`, `parameters`, `flops` and `evaluate`. Or it is a loop with a `yield` after each step, which may give the loss.
What is not given is not known, and nothing is put in its place.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ...errors import CustomTrainingFailed
from ...question.lanes import PLAIN, Lane
from ..batches import Feed
from ..training import LossCurve, Training, nudge_weight
from . import variants
from .user_code import Settings, UserCode

MOST_READINGS = 400
"""Losses that are kept; beyond, every second of them is dropped."""

WITNESSES, WITNESSED = 100, 1_000
"""Parameters, and numbers of each, that tell whether training changes anything."""

Result = TypeVar("Result")


class CustomTraining(Training):
    """One built training; its batches and its step are its own.

    Attributes:
        has_batches: whether it has batches of its own.
        has_place: whether it has a function that puts them on the device.
        source: of its batches, as it gave them; None if it has none.
        own_place: what puts a batch on the device.
        led_in: plain steps that were trained before its lane began: the first of a loop makes what is compiled.
    """

    def __init__(self, built: Any, foreign: UserCode, lane: Lane = PLAIN, device: torch.device | None = None) -> None:
        """Take what `build` returned.

        Raises:
            OwnTrainingFailed: it has no step.
            LaneUnavailable: it cannot be run in the lane.
        """
        bare = built
        built = Loop(built, foreign.file.name) if isinstance(built, Iterator) and not hasattr(built, "step") else built
        step = built if callable(built) and not hasattr(built, "step") else getattr(built, "step", None)
        if not callable(step) or isinstance(built, nn.Module):
            raise CustomTrainingFailed(
                foreign.file.name,
                "build returned neither a function that trains a batch nor an object with a step, and has no yield.",
            )
        self._own, self._foreign = built, foreign
        self._settings, self._modules = Settings.capture(), foreign.modules()
        source = None if step is built else getattr(built, "batches", None)
        place = None if step is built else getattr(built, "place", None)
        self.has_batches, self.has_place = source is not None, callable(place) and source is not None
        self.lane, self._engine, self._losses, self.steps = lane, None, [], 0
        self.step = partial(_with_batch, step) if self.has_batches else partial(_step_without_batch, step)
        self.led_in = int(isinstance(built, Loop) and lane.execution == "compiled")
        if self.led_in:
            step()
        if lane.execution == "compiled":
            variants.compile_modules(bare, self._modules.values())
        if lane.precision == "bf16":
            self.step = variants.wrap_in_bf16(self.step, device or torch.device("cpu"))
        self.source, self.own_place = source, place if self.has_place and place else _return_batch
        self.use(self.build_feed(source))
        self._witnesses = self._witness()

    @property
    def feed(self) -> Feed:
        """Its batches."""
        return self._feed

    def build_feed(self, source: Iterable[Any] | None, *, placed: bool = False) -> Feed:
        """Batches of a source, over and over, which only their own step understands; None for a step without any."""
        batches: Any = itertools.repeat(None) if source is None else _endless(source, self._foreign.file.name)
        return Feed(
            batches=batches,
            take=partial(_next, batches),
            place=_return_batch if placed else self.own_place,
            batch_size=1,
            prefetched=_count_prefetched(source),
        )

    def use(self, feed: Feed) -> None:
        """Train from these batches from here on."""
        super().rewind(feed, self.steps)

    def call(self, work: Callable[[], Result]) -> Result:
        """Do something that runs its code, with its modules and the settings of PyTorch as it left them.

        Others that take turns with it have theirs.

        Raises:
            OwnTrainingFailed: with its own traceback.
        """
        self._settings.use()
        sys.modules.update(self._modules)
        variants.apply_thread_count()
        try:
            return self._foreign.call(work)
        finally:
            self._settings = Settings.capture()
            Settings().use()

    def advance(self, steps: int) -> None:
        """Train whole steps; raises OwnTrainingFailed with its own traceback."""
        self.call(lambda: super(CustomTraining, self).advance(steps))

    def rewind(self, feed: Feed, steps: int) -> None:
        """Nothing: nobody can take its steps back. It is built anew instead."""

    def weights(self, device: str | None = None) -> list[Tensor]:
        """None: what it changes as it trains is its own business."""
        return []

    def set_weights(self, weights: list[Tensor]) -> None:
        """Nothing, as `rewind`."""

    def rehearsal(self) -> Callable[[], object]:
        """Work that trains one step on what is on the device already."""
        placed = self.call(lambda: self.place(self.draw()))
        return partial(self.call, partial(self.step, placed))

    def read_losses(self) -> list[float]:
        """Its loss now, if it tells one. Waits for the device."""
        self._losses.clear()
        loss = self._read_attribute("loss")
        if isinstance(loss, Tensor):
            loss = self.call(lambda: float(loss.detach()) if loss.numel() == 1 else None)
        return [float(loss)] if isinstance(loss, int | float) else []

    @property
    def parameters(self) -> int:
        """Trainable numbers; 0 if it does not tell."""
        said = self._read_attribute("parameters")
        return max(0, said) if isinstance(said, int) else sum(tensor.numel() for tensor in self._tensors())

    @property
    def flops(self) -> int:
        """Operations of a step; 0 if it does not tell."""
        said = self._read_attribute("flops")
        return max(0, int(said)) if isinstance(said, int | float) and math.isfinite(said) else 0

    def evaluate(self) -> float | None:
        """What it says of what it learned; None if it says nothing, or no number."""
        said = self._read_attribute("evaluate")
        number = said.item() if isinstance(said, Tensor) and said.numel() == 1 else said
        return float(number) if isinstance(number, int | float) else None

    @property
    def learns(self) -> bool | None:
        """Whether its parameters have changed since it was built; None if it does not tell them."""
        if not self._witnesses:
            return None
        pairs = zip(self._witnesses, self._witness(), strict=False)
        return any(not torch.equal(before, now) for before, now in pairs)

    def _read_attribute(self, name: str) -> Any:
        """An attribute, or what it returns if it is a function; a module is neither."""
        return self.call(partial(_read_built_attribute, self._own, name))

    def nudge(self) -> bool:
        """Change each of its parameters by some roundings; whether it tells them."""
        tensors = [each for each in self._tensors() if each.is_floating_point()]
        with torch.no_grad():
            for each in tensors:
                each.copy_(nudge_weight(each))
        return bool(tensors)

    def _tensors(self) -> list[Tensor]:
        said = self._read_attribute("parameters")
        if not isinstance(said, Iterable) or isinstance(said, Tensor):
            return []
        self_said = self.call(lambda: list(said))
        return [each for each in self_said if isinstance(each, Tensor)]

    def _witness(self) -> list[Tensor]:
        return witness(self._tensors())


@dataclass(kw_only=True)
class CustomCurve(LossCurve):
    """Losses as they were read between blocks.

    Attributes:
        steps_now: says how many steps were trained.
        readings: steps and loss.
    """

    steps_now: Callable[[], int]
    readings: list[tuple[int, float]] = field(default_factory=list)

    def add(self, losses: list[float]) -> None:
        """Take in the loss that was read last."""
        self.readings += [(self.steps_now(), loss) for loss in losses[-1:]]
        if len(self.readings) > MOST_READINGS:
            self.readings = self.readings[::2]

    @property
    def last_steps(self) -> tuple[int, ...]:
        return tuple(step for step, _ in self.readings)

    @property
    def means(self) -> tuple[float, ...]:
        return tuple(loss for _, loss in self.readings)

    @property
    def diverged(self) -> bool:
        return not all(math.isfinite(loss) for _, loss in self.readings)


class Loop:
    """A loop that gives way after each step: somebody's own, with a `yield` in it.

    Attributes:
        loss: what it gave with the last step.
    """

    def __init__(self, steps: Iterator[Any], file: str) -> None:
        self._steps, self._file, self.loss = steps, file, None

    def step(self) -> None:
        """Go on to the next `yield`.

        Raises:
            OwnTrainingFailed: there is none.
        """
        try:
            self.loss = next(self._steps)
        except StopIteration:
            said = "Its loop came to an end. Let it go on for ever, or for more epochs than it needs."
            raise CustomTrainingFailed(self._file, said) from None


def witness(parameters: Iterable[Tensor]) -> list[Tensor]:
    """Copies of a part of some parameters, which tell later whether training changed anything."""
    return [each.detach().reshape(-1)[:WITNESSED].clone() for each in itertools.islice(parameters, WITNESSES)]


def _read_built_attribute(built: Any, name: str) -> Any:
    if not hasattr(built, "step"):
        return None
    said = getattr(built, name, None)
    return said() if callable(said) and not isinstance(said, nn.Module) else said


def _step_without_batch(step: Callable[[], object], _batch: None) -> None:
    """A step that sees to its batches itself; what it returns would only be kept alive."""
    step()


def _with_batch(step: Callable[[Any], object], batch: Any) -> None:
    step(batch)


def _return_batch(batch: Any) -> Any:
    return batch


def _next(batches: Iterator[Any], _count: int) -> Any:
    return next(batches)


def _endless(source: Iterable[Any], file: str) -> Iterator[Any]:
    """The batches over and over."""
    begun = False
    while True:
        count = 0
        for batch in source:
            count += 1
            yield batch
        if not count:
            again = "Its batches came to an end, and cannot be gone through again."
            raise CustomTrainingFailed(file, again if begun else "Its batches are empty.")
        begun = True


def _count_prefetched(source: Any) -> int:
    """Batches that the workers of a DataLoader may have ready."""
    workers, each = getattr(source, "num_workers", 0), getattr(source, "prefetch_factor", None)
    return workers * each if isinstance(workers, int) and isinstance(each, int) else 0
