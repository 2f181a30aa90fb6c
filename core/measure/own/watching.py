"""What steps do that nobody told us of: operations, waits, copies, results elsewhere or in float64, tensors that stay.

Counted where PyTorch hands out its operations, in steps that are not timed: being counted makes them slower. What a
backward pass does counts too, since it takes the mode along. What NumPy or Python do is not seen.
"""

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

READS = "aten::_local_scalar_dense"
"""A value is read by the host, as by `.item()`, `float()`, a comparison or `print`."""

WAITS = frozenset({READS, "aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::equal", "aten::is_nonzero"})
"""Operations whose result the host needs before it goes on."""

COPIES = frozenset({"aten::_to_copy", "aten::copy_"})

_BETWEEN = ("torch/_tensor", "torch/_ops", "torch/utils/_", "torch/_prims_common", "core/measure/own/watching")
_OF_OPTIMIZERS = "torch/optim/"
"""PyTorch's own updates read their step counters, which lie on the host: nobody waits for these."""

_DEEPEST = 12


@dataclass
class Counts:
    """What was counted, an entry a step.

    Attributes:
        operations: of PyTorch.
        waits: times that the host needed a value, or a tensor on the host.
        copies: tensors copied from the host to the device.
        elsewhere: operations with their result on another device.
        float64: operations with their result in float64.
        kept: tensors alive after the step.
        places: where it waited, each with how often.
    """

    operations: list[int] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)
    elsewhere: list[int] = field(default_factory=list)
    float64: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    places: Counter[str] = field(default_factory=Counter)


class Watching(TorchDispatchMode):
    """Counts what happens while it is entered."""

    def __init__(self, device: torch.device, place: Callable[[], str]) -> None:
        """Count for a device.

        Args:
            device: that should do the work.
            place: says where in foreign code we are.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._device, self._place = device, place
        self.found: Counter[str] = Counter()
        self.places: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Do one operation, and count it."""
        result = func(*args, **(kwargs or {}))
        name = func._schema.name
        results = list(_tensors(result))
        self.found["operations"] += 1
        self.found["elsewhere"] += any(each.device.type != self._device.type for each in results)
        self.found["float64"] += any(each.dtype == torch.float64 for each in results)
        if name in COPIES:
            self._copied(args, results)
        elif name in WAITS and not _by_an_optimizer():
            self._waited()
        return result

    def _copied(self, args: tuple[Any, ...], results: Sequence[Tensor]) -> None:
        sources = list(_tensors(args))
        if not sources or not results:
            return
        before, after = sources[-1].device.type, results[0].device.type
        if before == after:
            return
        if after == "cpu":
            self._waited()
        else:
            self.found["copies"] += 1

    def _waited(self) -> None:
        self.found["waits"] += 1
        self.places[self._place()] += 1


def count(step: Callable[[], object], steps: int, device: torch.device, place: Callable[[], str]) -> Counts:
    """Do some steps, and count what each does.

    Args:
        step: trains one.
        steps: how many.
        device: that should do the work.
        place: says where in foreign code we are.
    """
    counts = Counts()
    for _ in range(steps):
        watching = Watching(device, place)
        with watching:
            step()
        for name in ("operations", "waits", "copies", "elsewhere", "float64"):
            getattr(counts, name).append(watching.found[name])
        counts.kept.append(tensors_alive())
        counts.places.update(watching.places)
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


def _by_an_optimizer() -> bool:
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
