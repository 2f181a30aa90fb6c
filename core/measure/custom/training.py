"""The steps of a custom script, in the same loop as all trainings, and its variants.

`build` returned a function that trains a batch, or an object with a `step` and any of `batches`, `place`, `loss`,
`parameters`, `flops` and `evaluate`. Or it returned a loop with a `yield` after each step, which may yield the loss.
Everything else stays unknown.

Variants need no change of the code: autocast wraps the steps, and the modules that the script exposes are compiled in
place. NumPy, scikit-learn and XGBoost have separate threads, which `torch.set_num_threads` does not change; here they
get the contender's number.
"""

import itertools
import math
import random
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter_ns
from types import ModuleType
from typing import Any, TypeVar

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor, nn

from ...errors import CustomTrainingFailed, LaneUnavailable
from ...question.lanes import PLAIN, Lane
from .. import devices
from ..datasets import Feed
from ..training import LossCurve, Training, nudge_weight
from .user_code import Settings, UserCode

CLOCK_NS, CLOCK_SHARE = 250, 0.01
"""Nanoseconds needed to clock one step, and their maximum share of a step; shorter steps are clocked in groups."""

MOST_STORED, MOST_KEPT = 1_000, 4_096
"""Maximum number of single step times in a row of the store, and in memory; above it, a random half is dropped."""

MOST_READINGS = 400
"""Maximum number of losses in memory; above it, every second one is dropped."""

WITNESSES, WITNESSED = 100, 1_000
"""Number of parameters, and of values of each, that show whether training changes anything."""

Result = TypeVar("Result")


@dataclass
class StepTimes:
    """Times of single steps; a random sample if there are many.

    Attributes:
        taken_ns: the times in memory, in nanoseconds.
    """

    taken_ns: "array[int]" = field(default_factory=lambda: array("q"))
    _chance: random.Random = field(default_factory=lambda: random.Random(0))
    _each: int = 1

    def add(self, taken_ns: int) -> None:
        """Add the time of one step."""
        if self._each == 1 or self._chance.random() * self._each < 1:
            self.taken_ns.append(taken_ns)
            if len(self.taken_ns) >= MOST_KEPT:
                kept = self._chance.sample(list(self.taken_ns), MOST_KEPT // 2)
                self._each, self.taken_ns = 2 * self._each, array("q", kept)

    def sample_s(self) -> tuple[float, ...]:
        """Return the seconds of at most `MOST_STORED` steps, chosen at random."""
        few = len(self.taken_ns) <= MOST_STORED
        kept = self.taken_ns if few else random.Random(0).sample(list(self.taken_ns), MOST_STORED)
        return tuple(each / 1e9 for each in kept)

    def clear(self) -> None:
        """Drop all times."""
        del self.taken_ns[:]


class CustomTraining(Training):
    """One training of a custom script.

    Attributes:
        has_batches: whether it provides batches.
        has_place: whether it provides a function that moves batches to the device.
        source: its iterable of batches; None without one.
        own_place: function that moves a batch to the device.
        led_in: eager steps trained before the variant starts: the first step of a loop creates what is compiled.
        clocked_steps: number of steps that `advance` clocks as a group; 0 for none.
        clocked_ns: nanoseconds of the groups, without waiting for batches.
    """

    def __init__(self, built: Any, foreign: UserCode, lane: Lane = PLAIN, device: torch.device | None = None) -> None:
        """Wrap the object that `build` returned.

        Raises:
            CustomTrainingFailed: the object has no step.
            LaneUnavailable: it cannot be run in the variant.
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
        if lane.precision == "tf32":
            self._settings = replace(self._settings, fp32=devices.TF32)
        source = None if step is built else getattr(built, "batches", None)
        place = None if step is built else getattr(built, "place", None)
        self.has_batches, self.has_place = source is not None, callable(place) and source is not None
        self.lane, self._engine, self._losses, self.steps = lane, None, [], 0
        self.step = partial(_with_batch, step) if self.has_batches else partial(_step_without_batch, step)
        self.clocked_steps, self.clocked_ns = 0, array("q")
        self.led_in = int(isinstance(built, Loop) and lane.execution == "compiled")
        if self.led_in:
            step()
        if lane.execution == "compiled":
            compile_modules(bare, self._modules.values())
        if lane.precision == "bf16":
            self.step = wrap_in_bf16(self.step, device or torch.device("cpu"))
        self.source, self.own_place = source, place if self.has_place and place else _return_batch
        self.use(self.build_feed(source))
        self._witnesses = self._witness()

    @property
    def fp32_precision(self) -> devices.Fp32Precision:
        """Precision of its fp32 operations, as set by its code or its variant."""
        return self._settings.fp32

    @property
    def feed(self) -> Feed:
        """The batches of the training."""
        return self._feed

    def build_feed(self, source: Iterable[Any] | None, *, placed: bool = False) -> Feed:
        """Return the batches of a source in an endless loop; only the script's step understands them.

        The batches are None for a step without batches.
        """
        batches: Any = itertools.repeat(None) if source is None else _endless(source, self._foreign.file.name)
        return Feed(
            batches=batches,
            take=partial(_next, batches),
            place=_return_batch if placed else self.own_place,
            batch_size=1,
            prefetched=_count_prefetched(source),
        )

    def use(self, feed: Feed) -> None:
        """Use these batches from now on."""
        super().rewind(feed, self.steps)

    def call(self, work: Callable[[], Result]) -> Result:
        """Call a function that runs the script's code, with its modules and its settings of PyTorch.

        Alternating trainings have other modules and settings.

        Raises:
            OwnTrainingFailed: the script failed; the error has its traceback.
        """
        self._settings.use()
        sys.modules.update(self._modules)
        apply_thread_count()
        try:
            return self._foreign.call(work)
        finally:
            self._settings = Settings.capture()
            Settings().use()

    def advance(self, steps: int) -> None:
        """Train whole steps; raises OwnTrainingFailed with the script's traceback."""
        self.call(lambda: super(CustomTraining, self).advance(steps))

    def _advance_by_steps(self, steps: int) -> None:
        if not self.clocked_steps:
            super()._advance_by_steps(steps)
            return
        take, place, step, clock, note = self._feed.take, self._feed.place, self.step, perf_counter_ns, self.clocked_ns
        for count in itertools.chain.from_iterable(
            (itertools.repeat(self.clocked_steps, steps // self.clocked_steps), [steps % self.clocked_steps])
        ):
            if count == 1:
                batch = take(1)
                begin = clock()
                step(place(batch))
                note.append(clock() - begin)
            elif count:
                begin = clock()
                for _ in range(count):
                    step(place(take(1)))
                note.append((clock() - begin) // count)

    def clock_steps(self, step_s: float) -> None:
        """Clock single steps from now on, or groups of them if clocking would take too large a share."""
        self.clocked_steps = max(1, math.ceil(CLOCK_NS / 1e9 / CLOCK_SHARE / step_s)) if step_s > 0 else 1

    def rewind(self, feed: Feed, steps: int) -> None:
        """Do nothing: the steps of a script cannot be undone. It is built again instead."""

    def weights(self, device: str | None = None) -> list[Tensor]:
        """Return no weights, as the script owns them."""
        return []

    def set_weights(self, weights: list[Tensor]) -> None:
        """Do nothing: the script owns the weights."""

    def rehearsal(self) -> Callable[[], object]:
        """Return a function that trains one step on data on the device."""
        placed = self.call(lambda: self.place(self.draw()))
        return partial(self.call, partial(self.step, placed))

    def read_losses(self) -> list[float]:
        """Return the present loss, if the script reports one. Waits for the device."""
        self._losses.clear()
        loss = self._read_attribute("loss")
        if isinstance(loss, Tensor):
            loss = self.call(lambda: float(loss.detach()) if loss.numel() == 1 else None)
        return [float(loss)] if isinstance(loss, int | float) else []

    @property
    def parameters(self) -> int:
        """Number of trainable parameters; 0 if the script does not report it."""
        said = self._read_attribute("parameters")
        return max(0, said) if isinstance(said, int) else sum(tensor.numel() for tensor in self._tensors())

    @property
    def flops(self) -> int:
        """Number of operations per step; 0 if the script does not report it."""
        said = self._read_attribute("flops")
        return max(0, int(said)) if isinstance(said, int | float) and math.isfinite(said) else 0

    def evaluate(self) -> float | None:
        """Return the result of the script's evaluation; None without an evaluation or if the result is not a number."""
        said = self._read_attribute("evaluate")
        number = said.item() if isinstance(said, Tensor) and said.numel() == 1 else said
        return float(number) if isinstance(number, int | float) else None

    @property
    def learns(self) -> bool | None:
        """Whether the parameters have changed since the training was built; None if the script does not expose them."""
        if not self._witnesses:
            return None
        pairs = zip(self._witnesses, self._witness(), strict=False)
        return any(not torch.equal(before, now) for before, now in pairs)

    def _read_attribute(self, name: str) -> Any:
        """Return an attribute, or its result if it is a function; modules are ignored."""
        return self.call(partial(_read_built_attribute, self._own, name))

    def nudge(self) -> bool:
        """Perturb each parameter by some roundings; return whether the script exposes its parameters."""
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
    """Losses read between blocks.

    Attributes:
        steps_now: returns the number of trained steps.
        readings: pairs of steps and loss.
    """

    steps_now: Callable[[], int]
    readings: list[tuple[int, float]] = field(default_factory=list)

    def add(self, losses: list[float]) -> None:
        """Add the last loss that was read."""
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
    """A training loop with a `yield` after each step.

    Attributes:
        loss: value yielded with the last step.
    """

    def __init__(self, steps: Iterator[Any], file: str) -> None:
        self._steps, self._file, self.loss = steps, file, None

    def step(self) -> None:
        """Continue to the next `yield`.

        Raises:
            OwnTrainingFailed: the loop has ended.
        """
        try:
            self.loss = next(self._steps)
        except StopIteration:
            said = "Its loop ended. Let it run forever, or for more epochs than it needs."
            raise CustomTrainingFailed(self._file, said) from None


def witness(parameters: Iterable[Tensor]) -> list[Tensor]:
    """Return copies of parts of some parameters, which show later whether training changed them."""
    return [each.detach().reshape(-1)[:WITNESSED].clone() for each in itertools.islice(parameters, WITNESSES)]


def _read_built_attribute(built: Any, name: str) -> Any:
    if not hasattr(built, "step"):
        return None
    said = getattr(built, name, None)
    return said() if callable(said) and not isinstance(said, nn.Module) else said


def _step_without_batch(step: Callable[[], object], _batch: None) -> None:
    """Train a step that loads its batches itself; its result is dropped to free memory."""
    step()


def _with_batch(step: Callable[[Any], object], batch: Any) -> None:
    step(batch)


def _return_batch(batch: Any) -> Any:
    return batch


def _next(batches: Iterator[Any], _count: int) -> Any:
    return next(batches)


def _endless(source: Iterable[Any], file: str) -> Iterator[Any]:
    """Yield the batches repeatedly, without end."""
    begun = False
    while True:
        count = 0
        for batch in source:
            count += 1
            yield batch
        if not count:
            again = "Its batches ended and cannot be iterated over again."
            raise CustomTrainingFailed(file, again if begun else "Its batches are empty.")
        begun = True


def _count_prefetched(source: Any) -> int:
    """Return the number of batches that the workers of a DataLoader may have prepared."""
    workers, each = getattr(source, "num_workers", 0), getattr(source, "prefetch_factor", None)
    return workers * each if isinstance(workers, int) and isinstance(each, int) else 0


_PYTORCH = "/torch/lib/"


class Pools:
    """The thread pools of this process, with the number of threads that was set."""

    def __init__(self) -> None:
        self._found: ThreadpoolController | None = None
        self._modules = self._count = 0

    def use(self, count: int) -> None:
        """Set the threads of every pool; this takes milliseconds only if the number changes or a pool is new."""
        if (len(sys.modules), count) == (self._modules, self._count):
            return
        if self._found is None or len(sys.modules) != self._modules:
            self._found, self._modules = ThreadpoolController(), len(sys.modules)
        self._count = count
        for pool in self._found.lib_controllers:
            if _PYTORCH not in pool.filepath.replace("\\", "/"):
                pool.set_num_threads(count)


POOLS = Pools()


def apply_thread_count() -> None:
    """Set the number of threads of all pools to PyTorch's number in this thread."""
    POOLS.use(torch.get_num_threads())


NO_MODULE = "nothing that build returns shows a module of PyTorch, as an attribute or a variable"
NOT_CALLED = "the module that build shows is not what its steps call, so nothing was compiled"

MOST_VERSIONS = 1_000
"""Maximum number of versions of compiled code: alternating trainings share the code of PyTorch's modules.

PyTorch's default is eight, above which it silently runs code without compilation.
"""


def wrap_in_bf16(step: Callable[[Any], object], device: torch.device) -> Callable[[Any], object]:
    """Return a step wrapped in autocast, without its cache of weights, because they change during the step."""

    def cast(batch: Any) -> None:
        with torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False):
            step(batch)

    return cast


def compile_modules(built: Any, files: Iterable[ModuleType]) -> None:
    """Compile the modules that a training exposes, in place, at their first call.

    Random numbers, for example of dropout, are the same as in PyTorch without compilation.

    Args:
        built: object that `build` returned.
        files: modules of the script, whose globals may contain the network.

    Raises:
        LaneUnavailable: the training exposes no module.
    """
    found = modules(built, files)
    if not found:
        raise LaneUnavailable(f"It cannot be compiled: {NO_MODULE}.")
    from torch._dynamo import config as dynamo  # takes seconds, which default steps do not pay
    from torch._inductor import config as inductor

    dynamo.recompile_limit = dynamo.accumulated_recompile_limit = MOST_VERSIONS
    inductor.fallback_random = True
    for each in found:
        each.compile()


def modules(built: Any, files: Iterable[ModuleType]) -> list[nn.Module]:
    """Return the modules that a training exposes, without those that are part of another module."""
    shown = {id(each): each for each in _iterate_reachable(built, files) if isinstance(each, nn.Module)}
    within = {id(part) for each in shown.values() for part in each.modules() if part is not each}
    return [each for name, each in shown.items() if name not in within]


def _iterate_reachable(built: Any, files: Iterable[ModuleType]) -> Iterator[Any]:
    """Iterate over objects reachable from a training: attributes, closures, frame locals and module globals."""
    yield from vars(built).values() if hasattr(built, "__dict__") else ()
    yield from vars(bound).values() if hasattr(bound := getattr(built, "__self__", None), "__dict__") else ()
    for cell in getattr(built, "__closure__", None) or ():
        yield cell.cell_contents
    frame = getattr(built, "gi_frame", None)
    yield from frame.f_locals.values() if frame is not None else ()
    for file in files:
        yield from vars(file).values()
