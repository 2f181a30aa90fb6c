"""Variants of a custom script without a change of its code: autocast, compiled modules, threads of other libraries.

Autocast wraps the steps, and the modules that the script exposes are compiled in place. NumPy, scikit-learn and XGBoost
have separate threads, which `torch.set_num_threads` does not change; here they get the contender's number.
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
