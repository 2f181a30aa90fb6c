"""The training loop: whole steps, in any variant. It uses no files, prints nothing, and reads no clock.

Losses stay on the device while the loop runs; reading them waits for the device, so they are read between blocks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..question.lanes import PLAIN, Lane
from . import devices
from .datasets import Feed, Split
from .execution import Batch, Compiled, Graph, Recorder, Step

CURVE_SEGMENTS = 200
"""Number of points of a stored loss curve; the grid depends only on the number of steps, so curves of devices match."""

EVALUATION_BATCH = 4096
"""Number of samples classified at once, fewer if they do not fit; this limits memory and changes no result."""

ROUNDINGS = 8
"""Number of roundings by which weights are perturbed, to see how training amplifies rounding."""

MOST_JOINED = 512
"""Maximum number of losses joined by one operation: MPS builds a graph of its inputs, which is slow for thousands."""

Classifier = Callable[[Tensor], Tensor]
"""Function from samples to a score for each class, (samples, classes), such as a network; the highest score wins."""


Engine = Compiled | Graph
"""Type that runs several whole steps as one call."""


class Training:
    """One network in training, on its device; `steps` counts the steps so far."""

    def __init__(
        self,
        network: nn.Module,
        feed: Feed,
        *,
        learning_rate: float,
        lane: Lane = PLAIN,
        recorder: Recorder | None = None,
    ) -> None:
        """Store a network, and a feed that starts at its first step."""
        self.parts = Step(network, learning_rate=learning_rate, lane=lane)
        self.network, self.optimizer = network, self.parts.optimizer
        self.lane = lane
        self.step: Callable[[Any], Any] = self.parts.train
        self._losses: list[Tensor] = []
        self._engine = _engine(self.parts, feed, recorder)
        self.rewind(feed, 0)

    def use_threads(self, count: int) -> None:
        """Use this number of CPU threads from now on; it applies to the whole process."""
        torch.set_num_threads(count)

    def prepare(self, example: Batch, *, remainder: bool) -> float:
        """Compile or record what the variant needs, before the first step.

        Args:
            example: batch on the device that is not used for training.
            remainder: whether single steps will be trained in addition to whole calls.

        Returns:
            Seconds; 0 in an eager variant.
        """
        if self._engine is None:
            return 0.0
        counts = {self.lane.steps_per_call, *((1,) if remainder else ())}
        return self._engine.prepare(example, sorted(counts, reverse=True))

    @property
    def saved_s(self) -> float:
        """Seconds that the last `prepare` saved because code came from the disk; 0 otherwise."""
        return self._engine.saved_s if isinstance(self._engine, Compiled) else 0.0

    def advance(self, steps: int) -> None:
        """Train `steps` whole steps; on an accelerator, return before they are done.

        Steps that do not fill a call of the variant are trained one by one, in the same variant.
        """
        if self._engine is None:
            self._advance_by_steps(steps)
        else:
            self._advance_by_calls(self._engine, steps)
        self.steps += steps

    def rewind(self, feed: Feed, steps: int) -> None:
        """Continue from another step after `set_weights`; losses that were not read are dropped."""
        self._feed, self.steps = feed, steps
        # a graph reads indices where samples are resident, and gathers them itself
        by_index = self.lane.execution == "graph" and feed.indices is not None
        self._draw: Callable[[int], Any] = feed.indices if by_index and feed.indices else feed.take
        self._losses.clear()

    def draw(self) -> Batch:
        """Return the next batch of the loader, which is not yet on the device."""
        return next(self._feed.batches)

    def place(self, batch: Batch) -> Batch:
        """Put a batch of the loader on the device."""
        return self._feed.place(batch)

    def rehearsal(self) -> Callable[[], object]:
        """Return a function that trains the steps of one call on data on the device.

        Weights change, and no loss is recorded.
        """
        count = self.lane.steps_per_call
        drawn = self._draw(count)
        if isinstance(self._engine, Graph):
            recording = self._engine.recording(count)
            recording.load(drawn if isinstance(drawn, Tensor) else self.place(drawn))
            return recording.replay
        engine, placed = self._engine, self.place(drawn)
        return partial(self.step, placed) if engine is None else partial(engine.run, placed, count)

    def read_losses(self) -> list[float]:
        """Return losses of the steps since the last call, in order. Waits for the device."""
        if not self._losses:
            return []
        pieces = [loss.reshape(-1) for loss in self._losses]
        while len(pieces) > 1:
            starts = range(0, len(pieces), MOST_JOINED)
            pieces = [torch.cat(pieces[start : start + MOST_JOINED]) for start in starts]
        losses: list[float] = pieces[0].tolist()
        self._losses.clear()
        return losses

    def _advance_by_steps(self, steps: int) -> None:
        feed, step, keep = self._feed, self.step, self._losses.append
        while steps:
            count = min(steps, feed.at_once)
            batch = feed.place(feed.take(count))
            if count == 1:
                keep(step(batch))
            else:
                samples, labels = batch
                size = feed.batch_size
                for one in zip(samples.split(size), labels.split(size), strict=True):
                    keep(step(one))
            steps -= count

    def _advance_by_calls(self, engine: Engine, steps: int) -> None:
        size = self.lane.steps_per_call
        for count in (size,) * (steps // size) + (1,) * (steps % size):
            drawn = self._draw(count)
            what: Any = drawn if isinstance(drawn, Tensor) else self._feed.place(drawn)
            self._losses.append(engine.run(what, count))

    def weights(self, device: str | None = None) -> list[Tensor]:
        """Return copies of all parameters, on their own device unless another is given."""
        return [parameter.detach().to(device, copy=True) for parameter in self.network.parameters()]

    def set_weights(self, weights: list[Tensor]) -> None:
        """Restore earlier weights.

        Raises:
            ValueError: the weights do not belong to this network.
        """
        with torch.no_grad():
            for parameter, value in zip(self.network.parameters(), weights, strict=True):
                parameter.copy_(value)


def nudge_weight(weight: Tensor) -> Tensor:
    """Return a weight with each number perturbed by up to `ROUNDINGS` roundings, the same way each time.

    Sums of some hundred products in another order differ by as much. A single rounding would be less than the effect of
    a variant.
    """
    draw = torch.rand(weight.shape, generator=torch.Generator().manual_seed(0), dtype=weight.dtype).to(weight.device)
    return weight * (1 + ROUNDINGS * torch.finfo(weight.dtype).eps / 2 * (2 * draw - 1))


def _engine(step: Step, feed: Feed, recorder: Recorder | None) -> Engine | None:
    """Return the engine that runs several steps in one call; None in an eager variant."""
    match step.lane.execution:
        case "compiled":
            return Compiled(step)
        case "graph":
            return Graph(step, recorder or Recorder(step.parameters[0].device), feed.gather)
    return None


@dataclass(kw_only=True)
class LossCurve:
    """Mean loss over equal segments of a training; steps after its end are ignored.

    Attributes:
        steps: number of steps added so far.
        sums: sum of losses of each started segment.
    """

    total_steps: int
    steps: int = 0
    sums: list[float] = field(default_factory=list)

    @property
    def segment(self) -> int:
        """Number of steps of one segment; the last may be shorter."""
        return math.ceil(self.total_steps / CURVE_SEGMENTS)

    def add(self, losses: list[float]) -> None:
        """Add the losses of the next steps."""
        for loss in losses[: self.total_steps - self.steps]:
            if self.steps % self.segment == 0:
                self.sums.append(0.0)
            self.sums[-1] += loss
            self.steps += 1

    @property
    def last_steps(self) -> tuple[int, ...]:
        """Last step of each segment."""
        ends = range(self.segment, self.segment * len(self.sums) + 1, self.segment)
        return tuple(min(end, self.steps) for end in ends)

    @property
    def means(self) -> tuple[float, ...]:
        """Mean loss of each segment."""
        starts = (0, *self.last_steps)
        return tuple(total / (end - start) for total, start, end in zip(self.sums, starts, starts[1:], strict=False))

    @property
    def diverged(self) -> bool:
        """Whether a loss was NaN or infinite; either one persists in a sum."""
        return not all(math.isfinite(total) for total in self.sums)


@torch.no_grad()
def classify(network: Classifier, split: Split, device: torch.device, *, at_most: int | None = None) -> Tensor:
    """Return the predicted class of each sample, int64 (n,), on the host. Waits for the device."""
    samples, size, predicted = split.samples[:at_most], EVALUATION_BATCH, torch.empty(0, dtype=torch.int64)
    while len(predicted) < len(samples):
        chunk, found = samples[len(predicted) :][:size], list[Tensor]()
        classified = partial(_classify_chunk, network, chunk, device, found)
        if devices.attempt(classified, devices.is_out_of_memory if size > 1 else lambda _: None):
            size = max(1, min(size, len(chunk)) // 2)
        else:
            predicted = torch.cat([predicted, *found])
    return predicted


def _classify_chunk(network: Classifier, chunk: Tensor, device: torch.device, predictions: list[Tensor]) -> None:
    predictions.append(network(chunk.to(device)).argmax(dim=1).cpu())
