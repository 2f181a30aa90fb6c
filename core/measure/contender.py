"""One contender during its measurement: its network, its training, and all raw values read so far.

A contender starts up, warms up, runs one block after another on request, and is profiled at the end.
`core.measure.trial` decides about the other contenders, the budget and the end.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..progress import ContenderProgress
from ..question.experiment import BEST_THREADS, Contender, Point
from ..question.lanes import PLAIN
from ..results import validation
from ..results.environment import LoadMeter
from ..results.schema import Outcome
from . import devices, preflight
from .breakdown import PostRunMeasurements, RawValues
from .datasets import Data
from .gpu import GpuMonitor
from .preflight import FreshTrainings
from .timer import BLOCK_MARGIN, MIN_BLOCK_S, MIN_BLOCK_STEPS, Timer, block_steps, lead_in_steps
from .training import LossCurve, Training

WARM_UP_STEPS = 10
WARM_UP_S = 0.25
DISCARDED_BLOCKS = 2
"""Fixed warm-up of every device: minimum number of steps, minimum seconds, then the number of blocks that are not used.

Warming up until times are stable would treat devices unequally, and some never get stable (arXiv 1602.00602).
"""

SIZING_TRIES = 5
"""Maximum number of times that blocks are made longer because a discarded block was too short."""

_IDLE_SINCE_NS: dict[str, int] = {}
"""Time at which each device was last used by any contender."""


class MeasuredContender:
    """One contender in the measurement of one point.

    Attributes:
        outcome: outcome of the measurement; None until it ends.
        message: reason for a failure, and what could not be measured after the blocks.
        compiling_s: seconds spent so far on compiling or recording; they do not count towards the budget.
    """

    def __init__(self, contender: Contender, point: Point, data: Data) -> None:
        """Store a contender whose device was found; nothing is put on the device yet."""
        self.contender = contender
        self.info = devices.find(contender.device)
        self._counts: Sequence[int] = preflight.candidate_threads()
        self.curve = LossCurve(total_steps=point.total_steps)
        self.outcome: Outcome | None = None
        self.message, self.compiling_s = "", 0.0
        self._point, self._data = point, data
        self._device = devices.open_device(contender.device)
        self._timer = Timer(device=self._device)
        self._meter, self._watch = LoadMeter(), GpuMonitor(self._device.torch)
        self.raw = RawValues(threads=contender.threads, **self._watch.limits)
        self._afterwards = PostRunMeasurements(
            contender=contender, point=point, data=data, timer=self._timer, device=self._device, raw=self.raw
        )
        self._fresh = FreshTrainings(point=point, data=data, device=self._device.torch)
        self._training: Training | None = None
        self._final: list[Tensor] | None = None
        self._closed_at, self._block_steps = 0, MIN_BLOCK_STEPS

    @property
    def training(self) -> Training:
        """The training, after `start`."""
        if self._training is None:
            raise RuntimeError("the contender has not been started")
        return self._training

    @property
    def steps(self) -> int:
        """Number of steps trained so far, excluding those of the step breakdown."""
        return self._closed_at or (self._training.steps if self._training else 0)

    @property
    def counted(self) -> int:
        """Number of steps up to the end of the last epoch; timed blocks may extend beyond it."""
        return min(self.steps, self._point.total_steps)

    @property
    def trained(self) -> bool:
        """Whether all epochs were trained."""
        return self.steps >= self._point.total_steps

    @property
    def facts(self) -> dict[str, Any]:
        """Columns derived from the network."""
        network = self._point.network
        return {"parameters": network.parameters, "flops_per_step": network.flops_per_step(self._point.batch_size)}

    def require_memory(self) -> None:
        """Refuse a training that cannot fit; raises OutOfMemory."""
        preflight.check_memory(self._point, self.contender, self._data, self._device)

    def require_pace(self, budget_s: float) -> None:
        """Refuse a training if not even one block fits into its budget.

        Raises:
            TooSlow: no block fits.
        """
        self._use_settings()
        preflight.check_speed(self.facts["flops_per_step"], budget_s, self._device, self.contender.spoken)

    def shortlist_threads(self, late: preflight.Late = preflight.no_deadline) -> Iterator[None]:
        """Restrict a compiled variant to the thread counts with which eager steps train fastest; yield between timings.

        This comes before the variant starts, because compiling for each count would take too long.
        """
        devices.initialise(self.contender.device)
        self._use_settings()
        eager = self._fresh.training(dataclasses.replace(self.contender.lane, execution="eager", steps_per_call=1))
        times = yield from preflight.choose_thread_times(
            self._counts, preflight.ThreadLook(training=eager, timer=self._timer), late=late
        )
        self._counts = preflight.rank_thread_counts(times)[: preflight.COMPILED_FOR if self.contender.on_host else 1]

    def try_threads(self, late: preflight.Late = preflight.no_deadline) -> Iterator[None]:
        """Choose the thread count that trains fastest, on steps that are undone afterwards; yield between timings.

        This comes after `start`, so the first step uses torch's default number of threads.
        """
        if len(self._counts) == 1:
            self.raw.threads = self._counts[0]
            return
        training, weights, steps_before = self.training, self.training.weights(), self.training.steps
        self._use_settings()
        look = preflight.ThreadLook(training=training, timer=self._timer)
        if self.contender.lane.execution == "compiled":
            look.prepare, look.prepare_s[self._counts[0]] = self._prepare, self.raw.startup_compile_s or 0.0
        times = yield from preflight.choose_thread_times(sorted(self._counts), look, late=late)
        self.raw.choose_threads(preflight.median_thread_times(times))
        self.raw.startup_compile_s = look.prepare_s.get(self.raw.threads, self.raw.startup_compile_s)
        training.set_weights(weights)
        training.rewind(self._fresh.feed(steps_before), steps_before)

    def start(self) -> None:
        """Put data and network on the device and train the first step; time each part of this start-up."""
        raw = self.raw
        self._use_settings()
        raw.startup_device_s = devices.initialise(self.contender.device)
        if self._point.data_path == "resident":
            raw.startup_transfer_s = self._timer.time(self._fresh.move_data).seconds
        raw.startup_build_s = self._timer.time(self._build).seconds
        raw.startup_compile_s = self._prepare()
        raw.startup_first_step_s = self._timer.time(
            lambda: self.training.advance(self.contender.lane.round_up_to_calls(1))
        ).seconds
        self._settle()

    def warm_up(self, allowance_s: float) -> Iterator[None]:
        """Train until warm, for at most `allowance_s` seconds, and find the number of steps of a block.

        Yields meanwhile.
        """
        raw, spent, done, steps = self.raw, 0.0, 0, 1
        while (done < WARM_UP_STEPS or spent < WARM_UP_S) and spent < allowance_s:
            seconds = self._warm_up_block(self.contender.lane.round_up_to_calls(steps))
            spent, done = spent + seconds, done + steps
            lacking = BLOCK_MARGIN * (WARM_UP_S - spent) / max(seconds, 1e-9) * raw.warmup_steps[-1]
            steps = min(2 * steps, max(steps // 2, WARM_UP_STEPS - done, math.ceil(lacking)))
            yield
        self._block_steps = self.contender.lane.round_up_to_calls(block_steps(raw.warmup_s[-1] / raw.warmup_steps[-1]))
        fitting = tries = 0
        while fitting < DISCARDED_BLOCKS and spent < allowance_s:
            seconds = self._warm_up_block(self._block_steps)
            spent += seconds
            yield
            if seconds >= MIN_BLOCK_S or tries == SIZING_TRIES:
                fitting += 1
            else:
                fitting, tries = 0, tries + 1
                longer = max(self._block_steps + 1, block_steps(seconds / self._block_steps))
                self._block_steps = self.contender.lane.round_up_to_calls(longer)
        step_s = raw.warmup_s[-1] / raw.warmup_steps[-1]
        raw.lead_in_steps = self.contender.lane.round_up_to_calls(lead_in_steps(step_s) + self._fresh.prefetched)

    def block(self, pair: int) -> None:
        """Time one block of training after a lead-in, and store it as block of round `pair`."""
        raw, training = self.raw, self.training
        lead_in = self._lead_in_steps()
        self._make_room(lead_in + self._block_steps)
        self._use_settings()
        self._meter.read()
        self._watch.begin()
        training.advance(lead_in)
        first_step = training.steps
        reading = self._timer.time(lambda: training.advance(self._block_steps))
        raw.add_block(pair, first_step, self._block_steps, reading, self._meter.read(), self._watch.end())
        self._settle()

    def begin_round(self) -> None:
        """Build network and training again on the same device, and train a block that is not used.

        New tensors have other addresses, which gives another sample of the effect of addresses on speed. Compiled code
        and graphs are reused, because compiling takes minutes.
        """
        self._use_settings()
        if self.contender.lane.execution == "eager":
            self._rebuild()
        self._make_room(self._block_steps)
        self.training.advance(self._block_steps)
        self._settle()

    def _rebuild(self) -> None:
        """Replace this training by a new one with the same weights at the same step."""
        weights, steps = self.training.weights("cpu"), self.training.steps
        self._training = None  # first, as there may be no memory for two
        self._build()
        self.training.set_weights(weights)
        self.training.rewind(self._fresh.feed(steps), steps)

    def _lead_in_steps(self) -> int:
        """Return the number of lead-in steps of the next block: constant on a CPU, more after idling otherwise."""
        if self.contender.on_host:
            return self.raw.lead_in_steps
        idle_s = (self._timer.clock() - _IDLE_SINCE_NS[self.contender.device]) / 1e9
        steps = lead_in_steps(self.raw.step_s or 0.0, idle_s=idle_s)
        return max(self.raw.lead_in_steps, self.contender.lane.round_up_to_calls(steps + self._fresh.prefetched))

    def train_to_step(self, step: int) -> Iterator[None]:
        """Continue the training, untimed, to a step that other contenders have reached. Yields from time to time."""
        yield from self._train_until(step, self._settle)

    def go_back(self, step: int) -> Iterator[None]:
        """Train again up to a step at which other contenders ended, and store these weights for `examine`.

        Yields from time to time. This comes after `close`, and does nothing if this contender ended at the same step.
        """
        if step >= self.counted:
            return
        self._begin_anew()
        yield from self._train_until(step, self.training.read_losses)
        self.raw.tested_step = step
        self._keep_weights()

    def close(self, *, examined: bool = True) -> None:
        """End the training; `examine` uses the present weights, or the weights at the end of the last epoch."""
        self._closed_at = self.training.steps
        if examined and self._final is None and self._closed_at <= self._point.total_steps:
            self._keep_weights()

    def profile(self, budget_s: float, *, whole_epoch: bool = True, turns: bool = True) -> None:
        """Measure a whole epoch in one piece, the step breakdown, and the busy time of the device.

        Args:
            budget_s: time budget of the training; measurements that take long compared with it are omitted.
            whole_epoch: whether to run a whole epoch.
            turns: whether to time steps in float64 and float32 alternately.
        """
        self._use_settings()
        self._afterwards.profile(self.training, budget_s, whole_epoch=whole_epoch)
        if turns and self._point.dtype == "float64" and self.contender.lane.execution == "eager":
            single = partial(self._fresh.build_float32_training, self.contender.lane)
            self._afterwards.take_turns(self.training, single, "float32_step_s", budget_s)

    def check_lane(self) -> None:
        """Train the first steps again, in this variant and in eager fp32, from the same weights on the same batches.

        This comes last, because it changes the weights.
        """
        self._afterwards.attempt("The comparison of its first steps with the default loop is", self._compare_with_plain)

    def examine(self) -> None:
        """Classify with the final weights, if there are any."""
        if self._final is not None:
            self._afterwards.examine(self.training, self._final)

    def end(self, outcome: Outcome, message: str = "") -> None:
        """Set the final outcome."""
        said = " ".join(filter(None, [message, *self._afterwards.left_out])).encode()
        most = validation.LONG_TEXTS["message"]
        self.outcome, self.message = outcome, said[:most].decode(errors="ignore")

    def release(self) -> None:
        """Drop network and data from the device; never raises."""
        self._closed_at = self.steps
        self._training, self._final, self._fresh.resident = None, None, None
        self._device.release()

    def progress(self) -> ContenderProgress:
        """Return the progress, for display."""
        step_s, ends = self.raw.step_s, self.curve.last_steps
        return ContenderProgress(
            contender=str(self.contender),
            steps=self.counted,
            total_steps=self._point.total_steps,
            step_s=step_s,
            threads=self.raw.threads or None,
            loss_steps=ends,
            losses=self.curve.means,
            loss_seconds=tuple(step * step_s for step in ends) if step_s else (),
        )

    def _train_until(self, step: int, after_block: Callable[[], object]) -> Iterator[None]:
        while self.training.steps < step:
            self._use_settings()
            self.training.advance(min(self._block_steps, step - self.training.steps))
            after_block()
            yield

    def _begin_anew(self) -> None:
        self.training.set_weights(self._fresh.weights())
        self.training.rewind(self._fresh.feed(0), 0)

    def _compare_with_plain(self) -> None:
        self._begin_anew()
        self._use_settings()
        self._afterwards.compare(self.training, partial(self._fresh.training, PLAIN))

    def _build(self) -> None:
        self._training = self._fresh.training(self.contender.lane)

    def _prepare(self) -> float:
        """Compile or record what the variant needs; return the seconds that this takes without cached code."""
        example, cold_s = self._fresh.example(), list[float]()
        left = self._point.total_steps % self.contender.lane.steps_per_call
        self._timer.time(lambda: cold_s.append(self.training.prepare(example, remainder=left > 0)))
        self.compiling_s += cold_s[0] - self.training.saved_s
        self.raw.startup_compile_served |= bool(self.training.saved_s)
        return cold_s[0]

    def _use_settings(self) -> None:
        """Use the thread count, precision and memory policy of this contender from now on."""
        count = self.raw.threads
        if count == BEST_THREADS and self.contender.lane.execution == "compiled":
            count = self._counts[0]  # what is compiled at the start is one of those that are tried
        if count != BEST_THREADS and torch.get_num_threads() != count:
            torch.set_num_threads(count)
        self._device.make_current()
        self._use_precision()
        devices.set_memory_retention(keep=self.contender.lane.host_memory == "kept")

    def _use_precision(self) -> None:
        """Set and record the fp32 precision of the variant, strict by default, and the choice of cuDNN's algorithms."""
        devices.use_tf32(self.contender.lane.precision == "tf32")
        torch.backends.cudnn.benchmark = self.contender.lane.cudnn == "benchmark"
        self.raw.fp32_precision = devices.Fp32Precision.read().describe(on_host=self.contender.on_host)

    def _warm_up_block(self, steps: int) -> float:
        self._make_room(steps)
        self._use_settings()
        seconds = self._timer.time(lambda: self.training.advance(steps)).seconds
        self.raw.warmup_steps.append(steps)
        self.raw.warmup_s.append(seconds)
        self._settle()
        return seconds

    def _make_room(self, steps: int) -> None:
        """Finish the last epoch untimed if it ends within the next `steps`, so that its weights can be stored."""
        left = self._point.total_steps - self.training.steps
        if 0 < left < steps:
            self._use_settings()
            self.training.advance(left)
            self._settle()

    def _settle(self) -> None:
        """Read the losses, and store the weights if the last epoch has just ended."""
        self.curve.add(self.training.read_losses())
        _IDLE_SINCE_NS[self.contender.device] = self._timer.clock()
        if self.training.steps == self._point.total_steps:
            self._keep_weights()

    def _keep_weights(self) -> None:
        """Store a copy of the weights for `examine`, on the host so that the blocks lose no device memory."""
        self._afterwards.attempt(
            "The classification report is", lambda: setattr(self, "_final", self.training.weights("cpu"))
        )
