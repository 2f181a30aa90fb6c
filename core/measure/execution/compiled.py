"""Whole steps compiled by torch.compile into one function: forward, loss, backward and update, several in a row.

What compiling costs belongs to the start-up of a lane, and what is said of it must not depend on what was compiled
before: it starts from empty caches, or takes code that was made so. The number of threads is part of the compiled code,
so that each number has code of its own. The calls between kernels of a CPU are compiled too: from Python they cost a
small network as much as its arithmetic.
"""

import contextlib
import dataclasses
import functools
import importlib
import logging
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value

from core.measure.execution.code_cache import CompiledCode
from core.measure.execution.step import Batch, Step

Steps = Callable[[list[Tensor], Tensor, Tensor], Tensor]
"""Weights, changed in place; samples (steps, batch, *shape); labels (steps, batch) → losses (steps,)."""

_CHATTY = ("torch.utils.cpp_extension", "torch._inductor", "torch._dynamo", "torch._functorch")
"""Loggers that remark on a compilation what concerns nobody here, such as that there is no CUDA."""


class Compiled:
    """Runs the steps of one network as compiled functions.

    Attributes:
        saved_s: seconds that the last `prepare` spared, as code came from the disk.
    """

    def __init__(self, step: Step) -> None:
        """Take a step; nothing is compiled yet."""
        self._step = step
        self._functions: dict[tuple[int, int], Steps] = {}
        self.saved_s = 0.0
        self._weights = [parameter.detach() for parameter in step.parameters]

    def prepare(self, example: Batch, counts: Sequence[int]) -> float:
        """Compile functions of so many steps each, for the number of threads that is set; no weight changes.

        Returns:
            Seconds that it takes with empty caches; those of bringing in the compiler are the same at every call in a
            process.
        """
        begin = time.perf_counter()
        loading_s = import_compiler()
        begin += min(loading_s, time.perf_counter() - begin)
        self.saved_s = 0.0
        for count in counts:
            weights = [weight.clone() for weight in self._weights]
            samples, labels = (torch.stack([part] * count) for part in example)
            with CompiledCode(self._identity(count, example)).compiling() as compilations, _silence():
                self._call(count, weights, samples, labels)
            self.saved_s += sum(one.cold_s - one.spent_s for one in compilations)
        return loading_s + time.perf_counter() - begin + self.saved_s

    def run(self, batch: Batch, count: int) -> Tensor:
        """Train `count` steps on as many batches, one after the other in `batch`; returns their losses."""
        samples, labels = batch
        size = len(labels) // count
        return self._call(count, self._weights, samples.view(count, size, *samples.shape[1:]), labels.view(count, size))

    def _identity(self, count: int, example: Batch) -> dict[str, object]:
        """What the function of so many steps depends on, beside the machine."""
        step, (samples, labels) = self._step, example
        tensors = (*step.parameters, samples, labels)
        return {
            "steps": count,
            "threads": torch.get_num_threads(),
            "lane": str(dataclasses.replace(step.lane, steps_per_call=1)),
            "network": str(step.network),
            "learning_rate": step.learning_rate,
            "tensors": [
                [str(one.dtype), list(one.shape), list(one.stride()), _device_identity(one)] for one in tensors
            ],
        }

    def _call(self, count: int, weights: list[Tensor], samples: Tensor, labels: Tensor) -> Tensor:
        key = count, torch.get_num_threads()
        if key not in self._functions:
            self._functions[key] = _compile(self._step)
        with torch.no_grad():
            return self._functions[key](weights, samples, labels)


@functools.cache
def import_compiler() -> float:
    """Import what compiles; seconds that it took in this process, the same at every later call."""
    begin = time.perf_counter()
    with _silence():
        for name in ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.utils"):
            importlib.import_module(name)
    return time.perf_counter() - begin


def _compile(step: Step) -> Steps:
    """A function of whole steps; torch keeps compiled code by code object, so each gets one of its own."""
    names = [name for name, _ in step.network.named_parameters()]
    rate = step.learning_rate

    def compute_functional_loss(weights: dict[str, Tensor], piece: Batch, pieces: int) -> Tensor:
        return step.compute_loss(lambda samples: functional_call(step.network, weights, (samples,)), piece, pieces)

    gradients = grad_and_value(compute_functional_loss)

    def steps(weights: list[Tensor], samples: Tensor, labels: Tensor) -> Tensor:
        losses, named = [], dict(zip(names, weights, strict=True))
        for batch in zip(samples.unbind(0), labels.unbind(0), strict=True):
            pieces = step.pieces(batch)
            found = [gradients(named, piece, len(pieces)) for piece in pieces]
            for name, weight in named.items():
                weight.sub_(rate * sum(gradient[name] for gradient, _ in found))
            losses.append(sum(loss for _, loss in found))
        return torch.stack(losses)

    own = types.FunctionType(
        steps.__code__.replace(), steps.__globals__, steps.__name__, steps.__defaults__, steps.__closure__
    )
    on_host = step.parameters[0].device.type == "cpu"
    return torch.compile(own, fullgraph=True, dynamic=False, options={"cpp_wrapper": True} if on_host else None)


def _device_identity(tensor: Tensor) -> str:
    """The device by what its code depends on: its kind and model, whatever its number."""
    return torch.cuda.get_device_name(tensor.device) if tensor.is_cuda else tensor.device.type


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the compiler's remarks out of the log; errors are raised, not logged."""
    loggers = [logging.getLogger(name) for name in _CHATTY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
