"""Execution of steps: one training step, several compiled into one function, or recorded and replayed as a CUDA graph.

The loss is cross entropy, and the optimizer is SGD without momentum. A variant with micro-batches accumulates gradients
before it updates. Nothing here depends on a clock, the source of the data, or the number of steps. Compiled code is
cached on disk, so that this machine need not compile a function again. Each function has a folder with torch's caches
and the seconds that compiling took with empty caches. The start-up cost of a variant must not depend on earlier
compilations. Its row has these seconds even if the code is cached. Code from a folder is executed, so a folder that
others can write to is never used.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import json
import logging
import os
import shutil
import stat
import time
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value
from torch.nn import functional

from ..files import documents
from ..files.project import DATA
from ..question.lanes import PLAIN, Lane
from ..results import environment

Batch = tuple[Tensor, Tensor]
"""Samples (batch, *shape) in the number format of the weights, and labels (batch,) int64."""


AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""Number format of autocast, by the word of a variant."""


class Step:
    """The training step of one network, which is already on the device."""

    def __init__(self, network: nn.Module, *, learning_rate: float, lane: Lane = PLAIN) -> None:
        """Wrap a network, and convert it to the memory format of the variant."""
        if lane.memory_format == "channels_last":
            network.to(memory_format=torch.channels_last)
        self.network, self.learning_rate, self.lane = network, learning_rate, lane
        self.parameters = list(network.parameters())
        is_scaled = lane.precision == "fp16"
        update = "fused" if is_scaled else lane.optimizer  # any other update asks the device whether to skip it
        chosen: dict[str, Any] = {} if update == "default" else {update: True}
        self.optimizer = torch.optim.SGD(self.parameters, lr=learning_rate, **chosen)
        self.scaler = torch.amp.GradScaler(self.parameters[0].device.type, enabled=is_scaled)
        self._plain = lane.precision not in AUTOCAST and not lane.micro_batch

    def train(self, batch: Batch) -> Tensor:
        """Train on a batch on the device; return the loss, which stays there."""
        for parameter in self.parameters:  # as the optimizer's zero_grad, which also talks to the profiler
            parameter.grad = None
        if not self._plain:
            return self._train_in_its_way(batch)
        loss = functional.cross_entropy(self.network(batch[0]), batch[1])
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def pieces(self, batch: Batch) -> Sequence[Batch]:
        """Return the micro-batches of a batch, or the batch itself without micro-batches."""
        size = self.lane.micro_batch
        return list(zip(*(part.split(size) for part in batch), strict=True)) if size else (batch,)

    def loss(self, piece: Batch, pieces: int = 1) -> Tensor:
        """Compute the loss of one of several micro-batches, as its share of the mean over the batch."""
        return self.compute_loss(self.network, piece, pieces)

    def compute_loss(self, network: Callable[[Tensor], Tensor], piece: Batch, pieces: int) -> Tensor:
        """Return the loss of the step with another function in place of the network."""
        with self._arithmetic(piece[1].device.type):
            loss = functional.cross_entropy(network(piece[0]), piece[1])
        return loss / pieces if pieces > 1 else loss

    def go_backward(self, loss: Tensor) -> None:
        """Accumulate the gradients of a loss; in fp16 the loss is scaled first."""
        self.scaler.scale(loss).backward()

    def update(self) -> None:
        """Update the weights.

        In fp16 the gradients are unscaled first; after an overflow the update is skipped and the scale reduced.
        """
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def _train_in_its_way(self, batch: Batch) -> Tensor:
        pieces, losses = self.pieces(batch), []
        for piece in pieces:
            loss = self.loss(piece, len(pieces))
            self.go_backward(loss)
            losses.append(loss.detach())
        self.update()
        return sum(losses[1:], losses[0])

    def _arithmetic(self, device_type: str) -> contextlib.AbstractContextManager[Any]:
        """Return the autocast context of the variant.

        TF32 is a setting of the process, see `core.measure.devices.use_tf32`.
        """
        if self.lane.precision not in AUTOCAST:
            return contextlib.nullcontext()
        # without its cache of cast weights, which neither a graph nor a compiled step may keep from step to step
        return torch.autocast(device_type, dtype=AUTOCAST[self.lane.precision], cache_enabled=False)


Steps = Callable[[list[Tensor], Tensor, Tensor], Tensor]
"""Compiled function: weights, changed in place; samples (steps, batch, *shape); labels (steps, batch) → losses
(steps,).
"""

_CHATTY = ("torch.utils.cpp_extension", "torch._inductor", "torch._dynamo", "torch._functorch")
"""Loggers whose messages on a compilation do not matter here, for example that CUDA is missing."""


class Compiled:
    """Runs the steps of one network as compiled functions.

    Attributes:
        saved_s: seconds that the last `prepare` saved because code came from the disk.
    """

    def __init__(self, step: Step) -> None:
        """Store a step; nothing is compiled yet."""
        self._step = step
        self._functions: dict[tuple[int, int], Steps] = {}
        self.saved_s = 0.0
        self._weights = [parameter.detach() for parameter in step.parameters]

    def prepare(self, example: Batch, counts: Sequence[int]) -> float:
        """Compile a function for each number of steps, for the present number of threads; no weight changes.

        Returns:
            Seconds of compiling with empty caches; the part for importing the compiler is the same at every call in a
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
        """Train `count` steps on as many batches, concatenated in `batch`; return their losses."""
        samples, labels = batch
        size = len(labels) // count
        return self._call(count, self._weights, samples.view(count, size, *samples.shape[1:]), labels.view(count, size))

    def _identity(self, count: int, example: Batch) -> dict[str, object]:
        """Return everything that the function of `count` steps depends on, except the machine."""
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
    """Import the compiler; return the seconds of its first import in this process."""
    begin = time.perf_counter()
    with _silence():
        for name in ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.utils"):
            importlib.import_module(name)
    return time.perf_counter() - begin


def _compile(step: Step) -> Steps:
    """Return a function of whole steps. Its code object is new, because torch caches compiled code by code object."""
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
    """Return what compiled code depends on in a device: its kind and model, not its number."""
    return torch.cuda.get_device_name(tensor.device) if tensor.is_cuda else tensor.device.type


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Silence the compiler's messages in the log; errors are still raised."""
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
"""Number of steps on a side stream before recording, as PyTorch recommends: libraries then initialize outside the
graph.
"""

Gather = Callable[[Tensor], Batch]
"""Function that returns batches of resident samples by their indices."""


class Recorder:
    """Recorder of CUDA graphs, on NVIDIA GPUs and, through ROCm, on AMD GPUs."""

    def __init__(self, device: torch.device) -> None:
        """Take a device."""
        self._device = device

    def warm_up(self, work: Callable[[], object]) -> None:
        """Do work on another stream than the recording one, and wait for it."""
        with torch.cuda.device(self._device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                work()
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()

    def record(self, work: Callable[[], object]) -> Callable[[], None]:
        """Record work without executing it; return a function that replays it."""
        with torch.cuda.device(self._device):
            graph = torch.cuda.CUDAGraph()
            # left out, the stream would be that of whichever device recorded first in this process
            # thread_local: a loader of another contender may pin memory in a thread of its own meanwhile
            with torch.cuda.graph(graph, stream=torch.cuda.Stream(), capture_error_mode="thread_local"):
                work()
        return graph.replay


class RecordedSteps:
    """A recording of several steps, with the buffers that they read and write."""

    def __init__(self, step: Step, recorder: Recorder, example: Batch, count: int, gather: Gather | None) -> None:
        """Warm up and record; the weights are restored afterwards."""
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
        """Copy indices or batches to the input buffers of the graph, without waiting."""
        if isinstance(what, Tensor):
            assert self.index is not None
            self.index.copy_(what, non_blocking=True)
        else:
            self.samples.copy_(what[0], non_blocking=True)
            self.labels.copy_(what[1], non_blocking=True)


class Graph:
    """Runs the steps of one network by replaying graphs of them."""

    def __init__(self, step: Step, recorder: Recorder, gather: Gather | None) -> None:
        """Store a step; nothing is recorded yet.

        With resident data, the graph itself gathers the batches by their indices.
        """
        self._step, self._recorder, self._gather = step, recorder, gather
        self._recordings: dict[int, RecordedSteps] = {}
        self._example: Batch | None = None

    def prepare(self, example: Batch, counts: Sequence[int]) -> float:
        """Record a graph for each number of steps; no weight changes. Return the seconds."""
        begin = time.perf_counter()
        self._example = example
        for count in counts:
            self.recording(count)
        return time.perf_counter() - begin

    def run(self, what: Tensor | Batch, count: int) -> Tensor:
        """Train `count` steps on concatenated indices or batches; return their losses, still on the device."""
        recording = self.recording(count)
        recording.load(what)
        recording.replay()
        return recording.losses.clone()

    def recording(self, count: int) -> RecordedSteps:
        """Return the graph of `count` steps, recorded at its first use."""
        if count not in self._recordings:
            if self._example is None:
                message = "a graph is recorded after it was prepared with an example"
                raise RuntimeError(message)
            self._recordings[count] = RecordedSteps(self._step, self._recorder, self._example, count, self._gather)
        return self._recordings[count]


COMPILED_VARIABLE = "CROSSOVER_COMPILED"
"""Environment variable that names another folder of compiled code, which only its owner may write to."""

MOST_FUNCTIONS = 100
"""Maximum number of functions whose code stays on disk, the most recently used; each needs a few megabytes."""

_CODE, _COLD = "code", "cold.json"
_OURS = [Path(__file__).with_name("execution.py")]


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """Times of compiling or loading one function.

    Attributes:
        cold_s: seconds of compiling with empty caches, now or when the cached code was generated.
        spent_s: seconds spent now.
    """

    cold_s: float
    spent_s: float


class CompiledCode:
    """The place of one function's code on disk."""

    def __init__(self, function: Mapping[str, object]) -> None:
        """Derive the folder from `function`, this machine, its software, and the project's code."""
        here = environment.read_environment()
        ours = hashlib.sha256(b"".join(path.read_bytes() for path in _OURS)).hexdigest()
        all_of_it = {**function, "environment": [here.machine_id, here.python_version, here.torch_version, ours]}
        name = hashlib.sha256(json.dumps(all_of_it, sort_keys=True).encode()).hexdigest()[:32]
        root = _root()
        self._folder = root / name if root else None

    @contextlib.contextmanager
    def compiling(self) -> Iterator[list[Compilation]]:
        """Compile with the cached code of this function, or else with empty caches that are stored afterwards.

        Yields: A list that contains the times after the block.
        """
        from torch._inductor import utils

        told: list[Compilation] = []
        cold_s = self._cold_s()
        place, before = self._place(empty=cold_s is None), _count_cache_hits()
        with _redirect_caches(place) if place else utils.fresh_cache():
            begin = time.perf_counter()
            yield told
            spent_s = time.perf_counter() - begin
        if cold_s is not None and _count_cache_hits() > before:
            told.append(Compilation(cold_s=cold_s, spent_s=spent_s))
            return
        told.append(Compilation(cold_s=spent_s, spent_s=spent_s))
        if place and cold_s is None:
            _keep(place.parent, spent_s)
        elif place:
            shutil.rmtree(place.parent, ignore_errors=True)  # torch wants none of it

    def _place(self, *, empty: bool) -> Path | None:
        """Return the folder to compile in; None if it cannot be created."""
        if self._folder is None:
            return None
        place = self._folder / _CODE
        with contextlib.suppress(OSError):
            if empty:
                shutil.rmtree(self._folder, ignore_errors=True)  # its maker was killed as he compiled
                place.mkdir(parents=True)
            os.utime(self._folder)
            return place
        return None

    def _cold_s(self) -> float | None:
        """Return the seconds that compiling this code took; None if it is not cached."""
        try:
            return float(json.loads((self._folder / _COLD).read_bytes())) if self._folder else None
        except (OSError, ValueError, TypeError):
            return None


def _keep(folder: Path, seconds: float) -> None:
    """Mark the code of a function as complete, and remove the least recently used code."""
    with contextlib.suppress(OSError):
        documents.write_json(folder / _COLD, seconds)
        others = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[MOST_FUNCTIONS:]:
            shutil.rmtree(old, ignore_errors=True)


def _count_cache_hits() -> int:
    """Return the number of functions that torch has loaded from a cache on disk so far."""
    from torch._dynamo.utils import counters

    return int(counters["inductor"]["fxgraph_cache_hit"])


def _root() -> Path | None:
    """Return the folder of all compiled code; None if it cannot be created, or if others may write to it."""
    root = Path(os.environ.get(COMPILED_VARIABLE) or DATA / "compiled")
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = root.lstat()
    except OSError:
        return None
    mine = not hasattr(os, "getuid") or (facts.st_uid == os.getuid() and not facts.st_mode & 0o022)
    return root.absolute() if mine and stat.S_ISDIR(facts.st_mode) else None


@contextlib.contextmanager
def _redirect_caches(folder: Path) -> Iterator[None]:
    """Let torch read and write its code in a folder only."""
    from torch._inductor import utils

    places = {"TORCHINDUCTOR_CACHE_DIR": str(folder), "TRITON_CACHE_DIR": str(folder / "triton")}
    before = {name: os.environ.get(name) for name in places}
    utils.clear_caches()
    os.environ.update(places)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        utils.clear_caches()
