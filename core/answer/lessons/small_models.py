"""Why small models lose: operations per step times the launch cost per operation, compared with their arithmetic.

The number of operations that PyTorch dispatches follows from the layers. The time of a step, and how long an
accelerator is busy, come from rows. In eager mode the host launches every operation separately. So a step never takes
less than the number of launches times the cost per launch, even with little to compute. Nothing here measures.
"""

import statistics
from dataclasses import dataclass

from ... import units
from ...errors import NotComparable
from ...question.devices import DEVICE_KINDS
from ...question.experiment import Point, inline_name
from ...question.models import Network
from ...results.schema import Trial
from .. import comparable
from ..speedup import is_host, step_time

LOSS_OPERATIONS = 5
"""Operations of cross entropy: log-softmax and selection forward, the initial gradient, and both again backward."""


@dataclass(frozen=True, kw_only=True)
class Launches:
    """Composition of a step of one trial.

    Attributes:
        operations: operations dispatched in a step; views, which start no work, are not counted.
        step_s: seconds of an undisturbed step; `per_operation_s` is this time divided by the operations.
        busy_s: seconds of the step in which the accelerator computes; None on a CPU, which has no queue.
        flops: arithmetic operations in a step.
    """

    contender: str
    batch_size: int
    operations: int
    step_s: float
    busy_s: float | None
    per_operation_s: float
    flops: int

    @property
    def sentence(self) -> str:
        """The step in words."""
        rate = f"{units.format_operations(self.flops / self.step_s)}/s"
        lead = (
            f"A step of {units.format_count(self.batch_size)} samples on {inline_name(self.contender)} takes "
            f"{units.format_duration(self.step_s)} for {self.operations} operations, "
            f"{units.format_duration(self.per_operation_s)} each, at {rate}"
        )
        if self.busy_s is None:
            return f"{lead}."
        busy = units.format_share(min(1.0, self.busy_s / self.step_s))
        return f"{lead}; the device computes for {units.format_duration(self.busy_s)} of it ({busy})."


@dataclass(frozen=True, kw_only=True)
class TwoBatches:
    """One model at a small and a large batch on one contender: the fixed cost of a step and its cost per sample.

    Attributes:
        fixed_s: seconds of a step that do not depend on the batch, from a straight line through both points, at least
            0.
        per_sample_s: seconds per sample according to this line, at least 0.
        fixed_per_operation_s: fixed seconds per operation: the cost of a launch according to this line.
        gain: samples per second at the large batch over samples per second at the small batch.
    """

    small: Launches
    large: Launches
    fixed_s: float
    per_sample_s: float
    fixed_per_operation_s: float
    gain: float

    @property
    def fixed_share(self) -> float:
        """Share of the small batch's step that does not depend on the batch, 0 to 1."""
        return min(1.0, self.fixed_s / self.small.step_s)

    @property
    def sentence(self) -> str:
        """Effect of the larger batch, and its reason."""
        small, large = units.format_count(self.small.batch_size), units.format_count(self.large.batch_size)
        longer = units.format_ratio(self.large.step_s / self.small.step_s)
        more = units.format_ratio(self.large.batch_size / self.small.batch_size)
        each = units.format_duration(self.fixed_per_operation_s)
        return (
            f"On {inline_name(self.small.contender)} a step of {large} samples takes {longer} as long as one of "
            f"{small}, "
            f"for {more} the samples: {units.format_ratio(self.gain)} the samples per second. Fitting a line through "
            f"both, {units.format_share(self.fixed_share)} of the small step do not depend on the batch, {each} for "
            "each of "
            f"{self.small.operations} operations."
        )


def count_launches(network: Network, *, foreach: bool) -> int:
    """Count the operations that PyTorch dispatches in one eager step of cross entropy and SGD, without views.

    SGD has no momentum. A hidden layer of an MLP adds six with `foreach`, where the optimizer updates all parameters in
    one operation, and eight without; an MLP of L hidden layers has 9 + 6L or 10 + 8L.
    """
    forward_backward = sum(layer.launches for layer in network.layers) - network.first.input_launches
    updates = 1 if foreach else sum(layer.tensors for layer in network.layers)
    return LOSS_OPERATIONS + forward_backward + updates


def summarize_launches(trial: Trial) -> Launches | None:
    """Return the composition of a step of one trial; None if no block was timed, or its operations are unknown."""
    step_s = step_time(trial).median_s
    if not step_s:
        return None
    point = Point.from_row(trial)
    if any(layer.parameters and not layer.launches for layer in point.network.layers):
        return None  # the operations of a recurrent layer or an attention block depend on the device
    count = count_launches(point.network, foreach=DEVICE_KINDS[trial.device_kind].foreach)
    return Launches(
        contender=trial.contender,
        batch_size=trial.batch_size,
        operations=count,
        step_s=step_s,
        busy_s=None if is_host(trial) or not trial.busy_step_s else statistics.median(trial.busy_step_s),
        per_operation_s=step_s / count,
        flops=trial.flops_per_step,
    )


def compare_batch_sizes(one: Trial, other: Trial) -> TwoBatches | None:
    """Return the same model at two batch sizes, in either order; None if one was not timed.

    The straight line assumes that a sample costs the same in both batches. Large batches use a device better, and their
    savings per sample count as fixed cost here: the fixed part is an upper estimate.

    Raises:
        NotComparable: the rows differ in more than batch size and number of samples, or not in the batch size.
    """
    comparable.require_equal(one, other, comparable.BATCH_COLUMNS)
    if one.batch_size == other.batch_size:
        raise NotComparable(f"Both rows have a batch size of {one.batch_size}, so they show nothing about batch size.")
    small, large = map(summarize_launches, sorted((one, other), key=lambda trial: trial.batch_size))
    if small is None or large is None:
        return None
    more = large.batch_size - small.batch_size
    per_sample_s = max(0.0, (large.step_s - small.step_s) / more)
    fixed_s = min(small.step_s, max(0.0, small.step_s - per_sample_s * small.batch_size))
    return TwoBatches(
        small=small,
        large=large,
        fixed_s=fixed_s,
        per_sample_s=per_sample_s,
        fixed_per_operation_s=fixed_s / small.operations,
        gain=(large.batch_size / large.step_s) / (small.batch_size / small.step_s),
    )
