"""What is measured of a contender once its blocks are over: a whole epoch, the parts of a step, what it learned.

Blocks are worth more than all of it. What fails by itself, for want of memory or because its lane does, is left out,
and a sentence of the row's message says so.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from torch import Tensor

from core.measure.afterwards import phases
from core.measure.afterwards.examination import examine
from core.measure.data.datasets import Data
from core.measure.device import devices, failures
from core.measure.readings.raw_values import RawValues
from core.measure.readings.timer import Timer
from core.measure.training import Training, nudge_weight
from core.question.experiment import Contender, Point

CHECKED_STEPS = 20
"""First steps of a lane that are held against plain eager fp32: enough for a wrong update to show, few enough that
rounding has not yet grown."""


@dataclass(kw_only=True)
class PostRunMeasurements:
    """Measures what is of use beside the blocks of one contender, into its raw values.

    Attributes:
        device: given back what a failure had taken.
        left_out: what is not known and why, a sentence each.
    """

    contender: Contender
    point: Point
    data: Data
    timer: Timer
    device: devices.Device
    raw: RawValues
    left_out: list[str] = field(default_factory=list)

    def attempt(self, subject: str, work: Callable[[], object]) -> None:
        """Do what may fail by itself; `subject` begins a sentence that goes on with "not known"."""
        if failed := failures.attempt(work, partial(failures.ending, self.contender)):
            outcome, why = failed
            self.left_out.append(f"{subject} not known: {'out of memory.' if outcome == 'out_of_memory' else why}")
            self.device.release()

    def profile(self, training: Training, budget_s: float, *, whole_epoch: bool) -> None:
        """A whole epoch in one piece, the parts of a step, and how long the device is busy with one."""
        if whole_epoch:
            self.attempt("The time of a whole epoch is", lambda: self._run_epoch(training, budget_s))
        self.attempt("Where a step's time goes is", lambda: self._profile_step(training))
        self.attempt("For how long the device is busy with a step is", lambda: self._find_busy_time(training))

    def take_turns(self, training: Training, other: Callable[[], Training], column: str, budget_s: float) -> None:
        """Another form of the step beside it: seconds of both, those of the other into a column."""

        def measure() -> None:
            step_s = self.raw.step_s or math.inf
            timed = phases.time_alternately(training, other(), self.timer, step_s=step_s, budget_s=budget_s)
            self.raw.turns_step_s = timed[0]
            setattr(self.raw, column, timed[1])

        self.attempt("How long another form of its step takes is", measure)

    def examine(self, training: Training, weights: list[Tensor]) -> None:
        """Classify with these weights."""
        self.attempt("What it learned is", lambda: self._classify(training, weights))

    def compare(self, training: Training, plain: Callable[[], Training]) -> None:
        """Train the first steps in this lane and plainly, both from the first weights and batch, and keep both losses.

        Where the mathematics are the same they differ by rounding, which some trainings carry on and on: plain steps
        from weights that are some roundings apart show how far.
        """
        steps = min(CHECKED_STEPS, self.point.total_steps)
        training.advance(training.lane.round_up_to_calls(steps))
        lane_loss = tuple(training.read_losses()[:steps])
        devices.use_strict_fp32()
        reference = plain()
        reference.advance(steps)
        self.raw.lane_loss, self.raw.reference_loss = lane_loss, tuple(reference.read_losses())
        if training.lane.has_same_numerics:
            other = plain()
            other.set_weights([nudge_weight(weight) for weight in other.weights("cpu")])
            other.advance(steps)
            self.raw.nudged_loss = tuple(other.read_losses())

    def _run_epoch(self, training: Training, budget_s: float) -> None:
        steps, lead_in, step_s = self.point.steps_per_epoch, self.raw.lead_in_steps, self.raw.step_s or 0.0
        self.raw.epoch_check_s = phases.epoch_s(
            training, self.timer, steps=steps, lead_in_steps=lead_in, step_s=step_s, budget_s=budget_s
        )
        training.read_losses()

    def _profile_step(self, training: Training) -> None:
        for part, values in phases.measure_breakdown(training, self.timer, step_s=self.raw.step_s or 0.0).items():
            setattr(self.raw, f"breakdown_{part}_s", values)

    def _find_busy_time(self, training: Training) -> None:
        step_s, device = self.raw.step_s or 0.0, self.device.torch
        self.raw.busy_step_s = phases.busy_step_s(training, self.timer, device, step_s=step_s)

    def _classify(self, training: Training, weights: list[Tensor]) -> None:
        training.set_weights(weights)
        examine(training.network, self.point.network.classes, self.data, self.device.torch, self.raw)
