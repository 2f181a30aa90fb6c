"""Variants of a custom training that leave its code as it is: autocast, compiled modules, other libraries' threads.

Autocast wraps its steps, and the modules that it exposes are compiled in place. NumPy, scikit-learn and XGBoost have
threads of their own, which `torch.set_num_threads` leaves as they are; here they get the contender's number.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import torch
from threadpoolctl import ThreadpoolController
from torch import nn

from ...errors import LaneUnavailable

_PYTORCH = "/torch/lib/"


class Pools:
    """The pools of threads in this process, and how many threads they were given."""

    def __init__(self) -> None:
        self._found: ThreadpoolController | None = None
        self._modules = self._count = 0

    def use(self, count: int) -> None:
        """Give each as many threads; it costs milliseconds only where that is another number, or there are new ones."""
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
    """Give all the number of threads that PyTorch has in this thread."""
    POOLS.use(torch.get_num_threads())


NO_MODULE = "nothing that build returns shows a module of PyTorch, as an attribute or a variable"
NOT_CALLED = "the module that build shows is not what its steps call, so nothing was compiled"

MOST_VERSIONS = 1_000
"""Versions of compiled code that may be alive: trainings that take turns share the code of PyTorch's own modules, of
which it would keep eight and silently run the rest as it is."""


def wrap_in_bf16(step: Callable[[Any], object], device: torch.device) -> Callable[[Any], object]:
    """Return a step with autocast around it, without its cache of weights, which change within."""

    def cast(batch: Any) -> None:
        with torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False):
            step(batch)

    return cast


def compile_modules(built: Any, files: Iterable[ModuleType]) -> None:
    """Compile the modules that a built training shows, in place, where they are called for the first time.

    Random numbers, for example of dropout, are the same as in PyTorch without compilation.

    Args:
        built: what `build` returned.
        files: modules of its files, whose globals may be what it trains.

    Raises:
        LaneUnavailable: it shows none.
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
    """Return the modules that a built training shows, without those that are part of another."""
    shown = {id(each): each for each in _iterate_reachable(built, files) if isinstance(each, nn.Module)}
    within = {id(part) for each in shown.values() for part in each.modules() if part is not each}
    return [each for name, each in shown.items() if name not in within]


def _iterate_reachable(built: Any, files: Iterable[ModuleType]) -> Iterator[Any]:
    """Iterate over objects that a built training can reach: attributes, closures, frame locals and module globals."""
    yield from vars(built).values() if hasattr(built, "__dict__") else ()
    yield from vars(bound).values() if hasattr(bound := getattr(built, "__self__", None), "__dict__") else ()
    for cell in getattr(built, "__closure__", None) or ():
        yield cell.cell_contents
    frame = getattr(built, "gi_frame", None)
    yield from frame.f_locals.values() if frame is not None else ()
    for file in files:
        yield from vars(file).values()
