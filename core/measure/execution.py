"""How steps are run: one training step, several compiled into one function, or recorded and replayed as a CUDA graph.

Cross entropy, plain SGD, nothing else. A lane of micro-batches adds up gradients before it updates. Nothing here knows
a clock, where data come from, or how many steps there are.
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
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value
from torch.nn import functional

from ..question.lanes import PLAIN, Lane
from .compile_cache import CompiledCode

Batch = tuple[Tensor, Tensor]
"""Samples (batch, *shape) in the numbers of the weights, and labels (batch,) int64."""


class Step:
    """The step of one network, which is on the device already."""

    def __init__(self, network: nn.Module, *, learning_rate: float, lane: Lane = PLAIN) -> None:
        """Take over a network; its memory format becomes that of the lane."""
        if lane.memory_format == "channels_last":
            network.to(memory_format=torch.channels_last)
        self.network, self.learning_rate, self.lane = network, learning_rate, lane
        self.parameters = list(network.parameters())
        chosen: dict[str, Any] = {} if lane.optimizer == "default" else {lane.optimizer: True}
        self.optimizer = torch.optim.SGD(self.parameters, lr=learning_rate, **chosen)
        self._plain = lane.precision != "bf16" and not lane.micro_batch

    def train(self, batch: Batch) -> Tensor:
        """One update on a batch that is on the device; returns the loss, still there."""
        for parameter in self.parameters:  # as the optimizer's zero_grad, which also talks to the profiler
            parameter.grad = None
        if not self._plain:
            return self._train_in_its_way(batch)
        loss = functional.cross_entropy(self.network(batch[0]), batch[1])
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def pieces(self, batch: Batch) -> Sequence[Batch]:
        """What goes forward and backward at once: the batch, or its micro-batches."""
        size = self.lane.micro_batch
        return list(zip(*(part.split(size) for part in batch), strict=True)) if size else (batch,)

    def loss(self, piece: Batch, pieces: int = 1) -> Tensor:
        """Forward pass and loss of one of so many pieces of a batch: its share in the batch's mean."""
        return self.compute_loss(self.network, piece, pieces)

    def compute_loss(self, network: Callable[[Tensor], Tensor], piece: Batch, pieces: int) -> Tensor:
        """The step with its network called in another way."""
        with self._arithmetic(piece[1].device.type):
            loss = functional.cross_entropy(network(piece[0]), piece[1])
        return loss / pieces if pieces > 1 else loss

    def _train_in_its_way(self, batch: Batch) -> Tensor:
        pieces, losses = self.pieces(batch), []
        for piece in pieces:
            loss = self.loss(piece, len(pieces))
            loss.backward()
            losses.append(loss.detach())
        self.optimizer.step()
        return sum(losses[1:], losses[0])

    def _arithmetic(self, device_type: str) -> contextlib.AbstractContextManager[Any]:
        """TF32 is no context but a setting of the process, see `core.measure.devices.use_tf32`."""
        if self.lane.precision != "bf16":
            return contextlib.nullcontext()
        # without its cache of cast weights, which neither a graph nor a compiled step may keep from step to step
        return torch.autocast(device_type, dtype=torch.bfloat16, cache_enabled=False)


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


WARM_UPS = 3
"""Steps on a side stream before recording, as PyTorch asks for: libraries set themselves up outside the graph."""

Gather = Callable[[Tensor], Batch]
"""Batches of resident samples by their indices."""


class Recorder:
    """Records work of a device as a CUDA graph, of NVIDIA, and of AMD through ROCm."""

    def __init__(self, device: torch.device) -> None:
        """Take a device."""
        self._device = device

    def warm_up(self, work: Callable[[], object]) -> None:
        """Do work beside the recording stream, and wait for it."""
        with torch.cuda.device(self._device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                work()
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()

    def record(self, work: Callable[[], object]) -> Callable[[], None]:
        """Record work without doing it; what is returned does it each time it is called."""
        with torch.cuda.device(self._device):
            graph = torch.cuda.CUDAGraph()
            # left out, the stream would be that of whichever device recorded first in this process
            with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
                work()
        return graph.replay


class RecordedSteps:
    """So many steps, recorded, with the buffers that they read and write."""

    def __init__(self, step: Step, recorder: Recorder, example: Batch, count: int, gather: Gather | None) -> None:
        """Warm up and record; the weights are afterwards what they were before."""
        samples, labels = (torch.cat([part] * count) for part in example)
        size, self._gather = len(example[1]), gather
        self.index = torch.zeros(len(labels), dtype=torch.int64, device=labels.device) if gather else None
        self.samples, self.labels = samples, labels
        self.losses = torch.zeros(count, dtype=step.parameters[0].dtype, device=labels.device)
        kept = [parameter.detach().clone() for parameter in step.parameters]

        def train(times: int = count) -> None:
            batch = gather(self.index) if gather and self.index is not None else (self.samples, self.labels)
            batches = list(zip(*(part.split(size) for part in batch), strict=True))[:times]
            losses = [step.train(each) for each in batches]
            if times == count:
                torch.stack(losses, out=self.losses)

        for _ in range(WARM_UPS):
            recorder.warm_up(lambda: train(1))
        for parameter in step.parameters:
            parameter.grad = None  # gradients are to be allocated in the graph's own memory
        self.replay = recorder.record(train)
        with torch.no_grad():
            for parameter, value in zip(step.parameters, kept, strict=True):
                parameter.copy_(value)

    def load(self, what: Tensor | Batch) -> None:
        """Copy indices, or batches, to where the graph reads them; waits for nothing."""
        if isinstance(what, Tensor):
            assert self.index is not None
            self.index.copy_(what, non_blocking=True)
        else:
            self.samples.copy_(what[0], non_blocking=True)
            self.labels.copy_(what[1], non_blocking=True)


class Graph:
    """Runs the steps of one network by replaying graphs of them."""

    def __init__(self, step: Step, recorder: Recorder, gather: Gather | None) -> None:
        """Take a step; nothing is recorded yet. Batches of resident data are gathered, by indices, within the graph."""
        self._step, self._recorder, self._gather = step, recorder, gather
        self._recordings: dict[int, RecordedSteps] = {}
        self._example: Batch | None = None

    def prepare(self, example: Batch, counts: Sequence[int]) -> float:
        """Record graphs of so many steps each; no weight changes. Returns seconds."""
        begin = time.perf_counter()
        self._example = example
        for count in counts:
            self.recording(count)
        return time.perf_counter() - begin

    def run(self, what: Tensor | Batch, count: int) -> Tensor:
        """Train `count` steps on indices or batches, one after the other; returns their losses, still on the device."""
        recording = self.recording(count)
        recording.load(what)
        recording.replay()
        return recording.losses.clone()

    def recording(self, count: int) -> RecordedSteps:
        """The graph of so many steps, recorded when it is first asked for."""
        if count not in self._recordings:
            if self._example is None:
                message = "a graph is recorded after it was prepared with an example"
                raise RuntimeError(message)
            self._recordings[count] = RecordedSteps(self._step, self._recorder, self._example, count, self._gather)
        return self._recordings[count]
