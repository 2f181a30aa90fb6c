"""Operations of a custom training's steps: how many, host-device synchronizations, copies, float64, kept tensors.

Counted where PyTorch dispatches its operations, in steps of their own, because counting makes them slower; backward
passes count too. Waits that CUDA reports itself are counted by its own debug mode. What counting adds is subtracted
where rows are read, by `core.measure.custom.dispatch_overhead`.
"""

import gc
import sys
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils.weak import TensorWeakRef

from ...files.project import PACKAGE

READS = "aten::_local_scalar_dense"
"""A value is read by the host, as by `.item()`, `float()`, a comparison or `print`."""

WAITS = frozenset({READS, "aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::equal", "aten::is_nonzero"})
"""Operations whose result the host needs before it goes on."""

COPIES = frozenset({"aten::_to_copy", "aten::copy_"})

LONG_S = 1e-4
"""Seconds between two operations from which on the host is said to do something else than call the next."""

Clock = Callable[[], int]

_BETWEEN = (
    "torch/_tensor",
    "torch/_ops",
    "torch/utils/_",
    "torch/_prims_common",
    "torch/_dynamo/",
    "torch/_compile",
    __file__.removesuffix(".py"),
)
_OF_LOADERS = "torch/utils/data/"
_OF_OPTIMIZERS = "torch/optim/"
"""PyTorch's own updates read their step counters, which lie on the host: nobody waits for these."""

_DEEPEST = 12

_LIBRARIES = (str(PACKAGE), sysconfig.get_path("stdlib"), str(Path(torch.__file__).parent))


@dataclass
class Counts:
    """What was counted, an entry a step.

    Attributes:
        operations: of PyTorch.
        waits: times that the host needed a value, or a tensor on the host.
        copies: tensors copied from the host to the device.
        elsewhere: operations with their result on another device.
        float64: operations with their result in float64.
        kept: tensors alive after each of some steps.
        inside_s: seconds in operations.
        float64_s: seconds of these in operations with their result in float64.
        between_s: seconds of the long stretches between operations.
        places: where it waited, each with how often.
    """

    operations: list[int] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)
    elsewhere: list[int] = field(default_factory=list)
    float64: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    inside_s: list[float] = field(default_factory=list)
    float64_s: list[float] = field(default_factory=list)
    between_s: list[float] = field(default_factory=list)
    places: Counter[str] = field(default_factory=Counter)

    def add(self, watching: "OperationCounter", steps: int = 1) -> None:
        """Take in what was counted in so many steps, as one entry."""
        for name in NUMBERS:
            getattr(self, name).append(round(watching.counts[name] / steps))
        for name in TIME_COLUMNS:
            getattr(self, name).append(getattr(watching, f"{name[:-1]}ns") / 1e9 / steps)
        self.places.update(watching.places)

    @property
    def waits_at(self) -> str:
        """File and line at which it waited most often; empty if not known."""
        return self.places.most_common(1)[0][0] if self.places else ""


NUMBERS = ("operations", "waits", "copies", "elsewhere", "float64")
TIME_COLUMNS = ("inside_s", "float64_s", "between_s")


class OperationCounter(TorchDispatchMode):
    """Counts what happens while it is entered.

    Attributes:
        inside_ns: in operations, drained.
        float64_ns: in those with their result in float64.
        between_ns: in long stretches between them.
    """

    def __init__(
        self,
        device: torch.device,
        place: Callable[[], str],
        synchronize: Callable[[], object] = lambda: None,
        clock: Clock = time.perf_counter_ns,
        earlier: list[TensorWeakRef] | None = None,
    ) -> None:
        """Count for a device.

        Args:
            device: that should do the work.
            place: says where in foreign code we are.
            synchronize: waits for the device.
            clock: monotonic nanoseconds.
            earlier: results of the steps that were counted before, which those of this one are added to; None if
                nobody asks what became of them.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._device, self._place, self._synchronize, self._clock = device, place, synchronize, clock
        self.counts: Counter[str] = Counter()
        self.places: Counter[str] = Counter()
        self.inside_ns = self.float64_ns = self.between_ns = self._since = 0
        self._earlier, self._results = earlier, list[TensorWeakRef]()

    @property
    def alive(self) -> int:
        """Results of earlier steps that somebody still has."""
        alive = (each() for each in self._earlier or ())
        return len({id(each) for each in alive if each is not None})

    def follow(self) -> None:
        """The results of this step are earlier ones from here on."""
        if self._earlier is not None:
            self._earlier += self._results

    def begin(self) -> None:
        """What was timed so far does not count, and the host is followed from now on."""
        self._synchronize()
        self.inside_ns = self.float64_ns = self.between_ns = 0
        self.resume()

    def resume(self) -> None:
        """The host is followed from now on."""
        self._since = self._clock()

    def add_host_time(self) -> None:
        """What the host does from now on is not ours."""
        self._add_stretch(self._clock())

    def _add_stretch(self, now: int) -> None:
        if now - self._since >= 1e9 * LONG_S:
            self.between_ns += now - self._since

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Do one operation, and count it."""
        begin = self._clock()
        self._add_stretch(begin)
        result = func(*args, **(kwargs or {}))
        self._synchronize()
        taken = self._clock() - begin
        name, results = func._schema.name, list(_tensors(result))
        double = any(each.dtype == torch.float64 for each in results)
        self.inside_ns += taken
        self.float64_ns += double * taken
        self.counts["operations"] += 1
        self.counts["elsewhere"] += any(each.device.type != self._device.type for each in results)
        self.counts["float64"] += double
        if self._earlier is not None:
            self._results += map(TensorWeakRef, results)
        if name in COPIES:
            self._count_copy(args, results)
        elif name in WAITS and self._is_of_the_device(args) and not _is_optimizer_call() and not _is_in_loader():
            self._count_wait()
        self._since = self._clock()
        return result

    def _count_copy(self, args: tuple[Any, ...], results: Sequence[Tensor]) -> None:
        sources = list(_tensors(args))
        if not sources or not results:
            return
        before, after = sources[-1].device.type, results[0].device.type
        if before == after:
            return
        if after == "cpu":
            self._count_wait()
        else:
            self.counts["copies"] += 1

    def _is_of_the_device(self, args: tuple[Any, ...]) -> bool:
        """Whether something read lies on the device; what lies on the host is waited for by nobody."""
        return any(each.device.type == self._device.type for each in _tensors(args))

    def _count_wait(self) -> None:
        self.counts["waits"] += 1
        self.places[self._place()] += 1


def on_top(mode: TorchDispatchMode) -> bool:
    """Whether it is the one that was entered last."""
    return _get_current_dispatch_mode() is mode


def is_library(file: str) -> bool:
    """Whether a file belongs to Python, to something that is installed, or to us."""
    return file.startswith(_LIBRARIES) or "site-packages" in file or file.startswith("<frozen")


def find_user_line() -> str:
    """File and line of the first code that is no library's and not ours; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_library(name):
            return f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def count_compiled_frames() -> int:
    """Functions that were compiled in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo.counters["frames"]["ok"] if dynamo is not None else 0


def compiles() -> bool:
    """Whether something was compiled in this process; it would be compiled anew for whoever counts."""
    return count_compiled_frames() > 0


def count_step_operations(
    watching: Callable[[], OperationCounter],
    step: Callable[[OperationCounter], object],
    plain: Callable[[], object],
    steps: int,
) -> Counts:
    """Do some steps, and count what each does; then as many again, and count the tensors that are alive after each.

    Args:
        watching: makes what counts one.
        step: trains one; it enters what it is given for what shall count.
        plain: trains one.
        steps: how many.
    """
    counts = Counts()
    for _ in range(steps):
        one = watching()
        step(one)
        counts.add(one)
    for _ in range(steps):
        plain()
        counts.kept.append(tensors_alive())
    return counts


def tensors_alive() -> int:
    """Tensors that Python knows of; asked of their types alone, as some objects answer anything."""
    return sum(issubclass(type(each), Tensor) for each in gc.get_objects())


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _tensors(value)


def _is_in_loader() -> bool:
    """Whether a data set is read, whose values lie on the host, as labels do that become numbers."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _OF_LOADERS not in frame.f_code.co_filename.replace("\\", "/"):
        frame = frame.f_back
    return frame is not None


def _is_optimizer_call() -> bool:
    """Whether PyTorch's own update asked, and no line of anybody else before it."""
    frame = sys._getframe(2)
    for _ in range(_DEEPEST):
        name = frame.f_code.co_filename.replace("\\", "/")
        if not any(part in name for part in _BETWEEN):
            return _OF_OPTIMIZERS in name
        if frame.f_back is None:
            break
        frame = frame.f_back
    return False


SYNC_WARNING = "synchronizing CUDA operation"
"""What such a warning has in its text."""


@dataclass
class Syncs:
    """What was counted, an entry a step.

    Attributes:
        times: that the host had to wait.
        places: where, each with how often.
    """

    times: list[int] = field(default_factory=list)
    places: Counter[str] = field(default_factory=Counter)

    @property
    def place(self) -> str:
        """File and line of most of them; empty if not known."""
        return self.places.most_common(1)[0][0] if self.places else ""


def count_syncs(step: Callable[[], object], steps: int, device: torch.device, owns: Callable[[str], bool]) -> Syncs:
    """Do some steps, and count what each makes the host wait for; nothing where the device is none of CUDA's.

    Args:
        step: trains one.
        steps: how many.
        device: that it trains on.
        owns: whether a file is one of those that are told as a place.
    """
    found = Syncs()
    if device.type != "cuda" or torch.version.hip:
        return found
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        for _ in range(steps):
            _count_step_syncs(step, found, owns)
    finally:
        torch.cuda.set_sync_debug_mode(before)
    return found


def _count_step_syncs(step: Callable[[], object], syncs: Syncs, owns: Callable[[str], bool]) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        step()
    waits = [each for each in told if SYNC_WARNING in str(each.message)]
    syncs.times.append(len(waits))
    syncs.places.update(f"{Path(each.filename).name}:{each.lineno}" for each in waits if owns(each.filename))
