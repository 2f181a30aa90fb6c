"""Whole steps recorded once as a CUDA graph and replayed: the host launches one thing where it launched hundreds.

A graph reads and writes the same memory at each replay. What changes from step to step is therefore copied into
buffers before a replay: the indices of resident samples, or the batches themselves where they come from the host.
"""

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from core.measure.execution.step import Batch, Step

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
