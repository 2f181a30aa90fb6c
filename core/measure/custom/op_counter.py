"""Operations of a custom training's steps: how many, host-device synchronizations, copies, float64, retained tensors.

Operations are counted in PyTorch's dispatcher, including those of backward passes. This takes separate steps, because
counting makes steps slower. CUDA's debug mode counts the waits that CUDA reports.

The dispatch overhead is the time of operations without computation, counted and timed as in any other training. A step
of many small operations consists of this overhead, whatever they compute; the remaining time is arithmetic. The time
that counting adds is subtracted when rows are read.
"""

import functools
import gc
import statistics
import sys
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils.weak import TensorWeakRef

from ...files.project import PACKAGE

READS = "aten::_local_scalar_dense"
"""Operations in which the host reads a value, as in `.item()`, `float()`, a comparison or `print`."""

WAITS = {
    READS: "",
    "aten::is_nonzero": "",
    "aten::equal": "torch.equal",
    "aten::nonzero": "nonzero",
    "aten::masked_select": "masked_select",
    "aten::_unique": "unique",
    "aten::_unique2": "unique",
    "aten::unique_dim": "unique",
    "aten::unique_consecutive": "unique_consecutive",
    "aten::bincount": "bincount",
    "aten::repeat_interleave": "repeat_interleave",
}
"""Operations that make the host of an accelerator wait, because it reads a value or needs the size of the result.

The values are their display names; empty for operations that only read a value.
"""

INDEXING = frozenset({"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"})
"""Operations that make the host wait if an index is a boolean mask, because its true values determine the size."""

MASK = "boolean mask"

COPIES = frozenset({"aten::_to_copy", "aten::copy_"})

LONG_S = 1e-4
"""Seconds between two operations above which the host counts as busy with other work."""

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
"""Files of PyTorch's optimizers, which read step counters on the host, without a wait."""

_DEEPEST = 12

_LIBRARIES = (str(PACKAGE), sysconfig.get_path("stdlib"), str(Path(torch.__file__).parent))


@dataclass
class Counts:
    """Counts of the counted steps, one entry per step.

    Attributes:
        operations: operations of PyTorch.
        waits: number of times that the host needed a value or a tensor from the device.
        copies: tensors copied from the host to the device.
        elsewhere: operations whose result is on another device.
        float64: operations whose result is in float64.
        kept: tensors alive after each of some steps.
        inside_s: seconds in operations.
        float64_s: seconds in operations whose result is in float64.
        between_s: seconds of the long intervals between operations.
        places: lines at which the host waited, with counts.
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
        """Add the counts of several steps as one entry."""
        for name in NUMBERS:
            getattr(self, name).append(round(watching.counts[name] / steps))
        for name in TIME_COLUMNS:
            getattr(self, name).append(getattr(watching, f"{name[:-1]}ns") / 1e9 / steps)
        self.places.update(watching.places)

    @property
    def waits_at(self) -> str:
        """File and line at which the host waited most often; empty if unknown."""
        return self.places.most_common(1)[0][0] if self.places else ""


NUMBERS = ("operations", "waits", "copies", "elsewhere", "float64")
TIME_COLUMNS = ("inside_s", "float64_s", "between_s")


class OperationCounter(TorchDispatchMode):
    """Context that counts the dispatched operations.

    Attributes:
        inside_ns: nanoseconds in operations, including the synchronization after each.
        float64_ns: nanoseconds in operations whose result is in float64.
        between_ns: nanoseconds of the long intervals between operations.
    """

    def __init__(
        self,
        device: torch.device,
        place: Callable[[], str],
        synchronize: Callable[[], object] = lambda: None,
        clock: Clock = time.perf_counter_ns,
        earlier: list[TensorWeakRef] | None = None,
    ) -> None:
        """Prepare counting for a device.

        Args:
            device: device that should do the work.
            place: returns the present line of the user's code.
            synchronize: function that waits for the device.
            clock: clock in monotonic nanoseconds.
            earlier: results of the steps counted earlier, to which those of this step are added; None if they are not
                tracked.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._device, self._place, self._synchronize, self._clock = device, place, synchronize, clock
        self.counts: Counter[str] = Counter()
        self.places: Counter[str] = Counter()
        self.inside_ns = self.float64_ns = self.between_ns = self._since = 0
        self._earlier, self._results = earlier, list[TensorWeakRef]()

    @property
    def alive(self) -> int:
        """Number of results of earlier steps that are still referenced."""
        alive = (each() for each in self._earlier or ())
        return len({id(each) for each in alive if each is not None})

    def follow(self) -> None:
        """Treat the results of this step as earlier ones from now on."""
        if self._earlier is not None:
            self._earlier += self._results

    def begin(self) -> None:
        """Discard the times so far, and time the host from now on."""
        self._synchronize()
        self.inside_ns = self.float64_ns = self.between_ns = 0
        self.resume()

    def resume(self) -> None:
        """Time the host from now on."""
        self._since = self._clock()

    def add_host_time(self) -> None:
        """End the interval of host time; later host time is not counted."""
        self._add_stretch(self._clock())

    def _add_stretch(self, now: int) -> None:
        if now - self._since >= 1e9 * LONG_S:
            self.between_ns += now - self._since

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Do one operation and count it."""
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
            self._count_copy(args, kwargs or {}, results)
        elif (name in WAITS or name in INDEXING) and self._is_waited_for(name, args):
            self._count_wait(WAITS.get(name, MASK))
        self._since = self._clock()
        return result

    def _count_copy(self, args: tuple[Any, ...], kwargs: dict[str, Any], results: Sequence[Tensor]) -> None:
        sources = list(_tensors(args))
        if not sources or not results:
            return
        before, after = sources[-1].device.type, results[0].device.type
        if before == after:
            return
        if after == "cpu":
            is_queued = kwargs.get("non_blocking") or args[2:3] == (True,)  # of `_to_copy`, of `copy_`
            if not (is_queued and results[0].is_pinned()):
                self._count_wait()
        else:
            self.counts["copies"] += 1

    def _is_waited_for(self, name: str, args: tuple[Any, ...]) -> bool:
        """Return whether the host really waits for an operation that may make it wait."""
        if name in INDEXING and not _has_mask(args):
            return False
        return self._is_of_the_device(args) and not _is_optimizer_call() and not _is_in_loader()

    def _is_of_the_device(self, args: tuple[Any, ...]) -> bool:
        """Return whether a value that is read is on the device; the host does not wait for values in its memory."""
        return any(each.device.type == self._device.type for each in _tensors(args))

    def _count_wait(self, what: str = "") -> None:
        place = self._place()
        self.counts["waits"] += 1
        self.places[f"{place} ({what})" if place and what else place] += 1


def on_top(mode: TorchDispatchMode) -> bool:
    """Return whether this mode is the innermost one."""
    return _get_current_dispatch_mode() is mode


def is_library(file: str) -> bool:
    """Return whether a file belongs to Python, to an installed package, or to Crossover."""
    return file.startswith(_LIBRARIES) or "site-packages" in file or file.startswith("<frozen")


def find_user_line() -> str:
    """Return file and line of the innermost frame of the user's code; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_library(name):
            return f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def count_compiled_frames() -> int:
    """Return the number of functions compiled in this process so far."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo.counters["frames"]["ok"] if dynamo is not None else 0


def compiles() -> bool:
    """Return whether functions were compiled in this process; counting would compile them again."""
    return count_compiled_frames() > 0


def count_step_operations(
    watching: Callable[[], OperationCounter],
    step: Callable[[OperationCounter], object],
    plain: Callable[[], object],
    steps: int,
) -> Counts:
    """Count the operations of some steps, then the tensors alive after each of as many further steps.

    Args:
        watching: creates the counter of one step.
        step: trains one step and enters the counter for the relevant part.
        plain: trains one step without a counter.
        steps: number of steps.
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
    """Count the tensors in Python's memory by their types alone, because some objects have any attribute."""
    return sum(issubclass(type(each), Tensor) for each in gc.get_objects())


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _tensors(value)


def _has_mask(args: tuple[Any, ...]) -> bool:
    """Return whether an index is a boolean mask; writing a single number with it needs no wait."""
    given = args[1] if len(args) > 1 and isinstance(args[1], list | tuple) else ()
    masks = any(each.dtype in (torch.bool, torch.uint8) for each in _tensors(given))
    is_one_number = len(args) > 2 and isinstance(args[2], Tensor) and args[2].numel() == 1
    return masks and not is_one_number


def _is_in_loader() -> bool:
    """Return whether a data set is being read: its values, such as labels, are on the host."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _OF_LOADERS not in frame.f_code.co_filename.replace("\\", "/"):
        frame = frame.f_back
    return frame is not None


def _is_optimizer_call() -> bool:
    """Return whether PyTorch's optimizer made the call directly."""
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
"""Text that identifies a synchronization warning."""


@dataclass
class Syncs:
    """Host waits of the counted steps, one entry per step.

    Attributes:
        times: number of waits.
        places: lines of the waits, with counts.
    """

    times: list[int] = field(default_factory=list)
    places: Counter[str] = field(default_factory=Counter)

    @property
    def place(self) -> str:
        """File and line with the most waits; empty if unknown."""
        return self.places.most_common(1)[0][0] if self.places else ""


def count_syncs(step: Callable[[], object], steps: int, device: torch.device, owns: Callable[[str], bool]) -> Syncs:
    """Count the host waits of some steps; empty on devices other than CUDA's.

    Args:
        step: trains one step.
        steps: number of steps.
        device: device of the training.
        owns: returns whether a file may be reported as the place of a wait.
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


TAKES_NS = 2e7
"""Target duration of the search for the overhead, in nanoseconds."""

LAYERS = 3
WARM_UP, STEPS, REPEATS, WATCHED, READS_TIMED = 5, 10, 5, 5, 100


@dataclass(frozen=True, kw_only=True)
class DispatchOverhead:
    """Seconds of one operation of a training that computes almost nothing.

    Attributes:
        call_s: seconds of a step divided by the number of its operations, including Python.
        inside_s: seconds within the operation while it is counted, with a synchronization after it.
        read_s: seconds for the host to read a value that is already computed.
    """

    call_s: float
    inside_s: float
    read_s: float


def measure_dispatch_overhead(
    device: torch.device, synchronize: Callable[[], object], clock: Clock = time.perf_counter_ns
) -> DispatchOverhead:
    """Measure the dispatch overhead of a device, in some hundredths of a second, without random numbers.

    Args:
        device: device of the training.
        synchronize: function that waits for the device.
        clock: clock in monotonic nanoseconds.
    """
    with _as_usual(device):
        step = _build_tiny_step(device)
        for _ in range(WARM_UP):
            step()
        step_s = statistics.median(_time_work(step, STEPS, synchronize, clock) for _ in range(REPEATS))
        watched = [_count_one_step(step, OperationCounter(device, str, synchronize, clock)) for _ in range(WATCHED)]
        number = torch.zeros((), device=device)
        read_s, call_s = (
            statistics.median(_time_work(work, READS_TIMED, synchronize, clock) for _ in range(REPEATS))
            for work in (lambda: number.item(), lambda: number)
        )
    operations = watched[-1].counts["operations"]
    inside_ns = statistics.median(each.inside_ns for each in watched)
    return DispatchOverhead(
        call_s=step_s / operations, inside_s=inside_ns / 1e9 / operations, read_s=max(0.0, read_s - call_s)
    )


def find_dispatch_overhead(device: torch.device, synchronize: Callable[[], object], clock: Clock) -> DispatchOverhead:
    """Return the dispatch overhead of a device and a number of threads, measured once in a process."""
    if clock is not time.perf_counter_ns:
        return measure_dispatch_overhead(device, synchronize, clock)
    key = str(device), torch.get_num_threads()
    if key not in _KNOWN:
        _KNOWN[key] = measure_dispatch_overhead(device, synchronize)
    return _KNOWN[key]


def estimate_overhead_cost_ns(device: torch.device, clock: Clock) -> float:
    """Estimate the nanoseconds that `find_dispatch_overhead` will take; 0 if cached or with another clock."""
    known_now = clock is not time.perf_counter_ns or (str(device), torch.get_num_threads()) in _KNOWN
    return 0.0 if known_now else TAKES_NS


_KNOWN: dict[tuple[str, int], DispatchOverhead] = {}


@functools.cache
def rehearse() -> None:
    """Count a step on the CPU, once per process, so that the start-up of counting is not part of a later step.

    This uses no other device, whose work may be recorded at the moment, and no random numbers.
    """
    host = torch.device("cpu")
    with _as_usual(host):
        _count_one_step(_build_tiny_step(host), OperationCounter(host, str))


@contextmanager
def _as_usual(device: torch.device) -> Iterator[None]:
    """Record gradients in float32 without autocast, whatever the script has set."""
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device.type, enabled=False):
        yield


def _build_tiny_step(device: torch.device) -> Callable[[], object]:
    layers: list[nn.Module] = []
    for _ in range(LAYERS):
        layer = nn.utils.skip_init(nn.Linear, 1, 1, device=device, dtype=torch.float32)
        layers += [layer, nn.Tanh()]
    network = nn.Sequential(*layers)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(0.5)
    number = torch.full((1, 1), 0.5, device=device, dtype=torch.float32)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        functional.mse_loss(network(number), number).backward()
        optimizer.step()

    return step


def _time_work(work: Callable[[], object], times: int, synchronize: Callable[[], object], clock: Clock) -> float:
    """Return the seconds of one call."""
    synchronize()
    begin = clock()
    for _ in range(times):
        work()
    synchronize()
    return (clock() - begin) / 1e9 / times


def _count_one_step(step: Callable[[], object], watching: OperationCounter) -> OperationCounter:
    with watching:
        watching.begin()
        step()
        watching.add_host_time()
    return watching
