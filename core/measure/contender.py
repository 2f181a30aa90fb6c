"""One contender while it is measured: its network, its training, and every raw value read from it so far.

A contender starts up, warms up, runs one block after another on request, and is profiled at the end. It decides
nothing about the others, the budget or the end; `core.measure.trial` does.
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
from . import devices, preflight, thread_search
from .breakdown import PostRunMeasurements
from .datasets import Data
from .gpu_telemetry import GpuMonitor
from .preflight import FreshTrainings
from .raw_values import RawValues
from .timer import BLOCK_MARGIN, MIN_BLOCK_S, MIN_BLOCK_STEPS, Timer, block_steps, lead_in_steps
from .training import LossCurve, Training

WARM_UP_STEPS = 10
WARM_UP_S = 0.25
DISCARDED_BLOCKS = 2
"""A fixed warm-up for every device: at least so many steps and so long, then blocks that are not used.

"Until it is stable" would warm devices unequally, and some never are (pyperf's argument, arXiv 1602.00602)."""

SIZING_TRIES = 5
"""Discarded blocks may show that blocks are too short; they are made longer at most this often."""

_IDLE_SINCE_NS: dict[str, int] = {}
"""When each device was last used, by whichever contender."""


class MeasuredContender:
    """One contender in the measurement of one point.

    Attributes:
        outcome: how it ended; None while it goes on.
        message: the reason where it did not end well, and what could not be measured in addition to the blocks.
        compiling_s: seconds spent so far on compiling or recording, which no budget is charged with.
    """

    def __init__(self, contender: Contender, point: Point, data: Data) -> None:
        """Take a contender whose device was found; nothing is put on the device yet."""
        self.contender = contender
        self.info = devices.find(contender.device)
        self._counts: Sequence[int] = thread_search.candidates()
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
        """The training, once it was started."""
        if self._training is None:
            raise RuntimeError("the contender has not been started")
        return self._training

    @property
    def steps(self) -> int:
        """Steps trained so far, without those that only serve the breakdown of a step."""
        return self._closed_at or (self._training.steps if self._training else 0)

    @property
    def counted(self) -> int:
        """Steps that count; blocks may have been timed beyond the last epoch."""
        return min(self.steps, self._point.total_steps)

    @property
    def trained(self) -> bool:
        """Whether every epoch was trained."""
        return self.steps >= self._point.total_steps

    @property
    def facts(self) -> dict[str, Any]:
        """Columns that follow from the network."""
        network = self._point.network
        return {"parameters": network.parameters, "flops_per_step": network.flops_per_step(self._point.batch_size)}

    def require_memory(self) -> None:
        """Refuse a training that cannot fit; raises OutOfMemory."""
        preflight.check_memory(self._point, self.contender, self._data, self._device)

    def require_pace(self, budget_s: float) -> None:
        """Refuse a training of which not even a block can be timed within its budget.

        Raises:
            TooSlow: it is one.
        """
        self._use_settings()
        preflight.check_speed(self.facts["flops_per_step"], budget_s, self._device, self.contender.spoken)

    def shortlist_threads(self, late: thread_search.Late = thread_search.no_deadline) -> Iterator[None]:
        """Restrict a compiled variant to the thread counts with which eager steps train fastest; yield between timings.

        This comes before the variant starts, because compiling for each count would take too long.
        """
        devices.initialise(self.contender.device)
        self._use_settings()
        eager = self._fresh.training(dataclasses.replace(self.contender.lane, execution="eager", steps_per_call=1))
        times = yield from thread_search.choose_thread_times(
            self._counts, thread_search.Look(training=eager, timer=self._timer), late=late
        )
        self._counts = thread_search.rank_thread_counts(times)[
            : thread_search.COMPILED_FOR if self.contender.on_host else 1
        ]

    def try_threads(self, late: thread_search.Late = thread_search.no_deadline) -> Iterator[None]:
        """Choose the thread count that trains fastest, on steps that are undone afterwards; yield between timings.

        Comes after `start`, whose first step is therefore trained with torch's own choice of threads.
        """
        if len(self._counts) == 1:
            self.raw.threads = self._counts[0]
            return
        training, weights, steps_before = self.training, self.training.weights(), self.training.steps
        self._use_settings()
        look = thread_search.Look(training=training, timer=self._timer)
        if self.contender.lane.execution == "compiled":
            look.prepare, look.prepare_s[self._counts[0]] = self._prepare, self.raw.startup_compile_s or 0.0
        times = yield from thread_search.choose_thread_times(sorted(self._counts), look, late=late)
        self.raw.choose_threads(thread_search.median_times(times))
        self.raw.startup_compile_s = look.prepare_s.get(self.raw.threads, self.raw.startup_compile_s)
        training.set_weights(weights)
        training.rewind(self._fresh.feed(steps_before), steps_before)

    def start(self) -> None:
        """Put data and network on the device and train the first step: the start-up, timed part by part."""
        raw = self.raw
        self._use_settings()
        first_use_s = devices.initialise(self.contender.device)
        raw.startup_fresh = raw.startup_device_s is not None  # if known, it was measured in a fresh process
        raw.startup_device_s = raw.startup_device_s if raw.startup_fresh else first_use_s
        if self._point.data_path == "resident":
            raw.startup_transfer_s = self._timer.time(self._fresh.move_data).seconds
        raw.startup_build_s = self._timer.time(self._build).seconds
        raw.startup_compile_s = self._prepare()
        raw.startup_first_step_s = self._timer.time(
            lambda: self.training.advance(self.contender.lane.round_up_to_calls(1))
        ).seconds
        self._settle()

    def warm_up(self, allowance_s: float) -> Iterator[None]:
        """Train until warm, `allowance_s` seconds at most, and find how many steps make a block. Yields meanwhile."""
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
        """Lead in, then time one block of training, as block of round `pair`."""
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
        """Build network and training anew where they are, and train a block that is not used.

        New tensors have other addresses, which is one more sample of their effect on speed. Compiled code and graphs
        are reused, because compiling takes minutes.
        """
        self._use_settings()
        if self.contender.lane.execution == "eager":
            self._rebuild()
        self._make_room(self._block_steps)
        self.training.advance(self._block_steps)
        self._settle()

    def _rebuild(self) -> None:
        """Put another training in the place of this one, with the same weights at the same step."""
        weights, steps = self.training.weights("cpu"), self.training.steps
        self._training = None  # first, as there may be no memory for two
        self._build()
        self.training.set_weights(weights)
        self.training.rewind(self._fresh.feed(steps), steps)

    def _lead_in_steps(self) -> int:
        """Return the number of steps that lead in the next block: constant on a CPU, more after a long idle time."""
        if self.contender.on_host:
            return self.raw.lead_in_steps
        idle_s = (self._timer.clock() - _IDLE_SINCE_NS[self.contender.device]) / 1e9
        steps = lead_in_steps(self.raw.step_s or 0.0, idle_s=idle_s)
        return max(self.raw.lead_in_steps, self.contender.lane.round_up_to_calls(steps + self._fresh.prefetched))

    def train_to_step(self, step: int) -> Iterator[None]:
        """Train on, untimed, to a step that others have reached. Yields now and then."""
        yield from self._train_until(step, self._settle)

    def go_back(self, step: int) -> Iterator[None]:
        """Train anew to a step at which others ended, and keep those weights to be examined. Yields now and then.

        Comes after `close`; does nothing for who ended there too.
        """
        if step >= self.counted:
            return
        self._begin_anew()
        yield from self._train_until(step, self.training.read_losses)
        self.raw.tested_step = step
        self._keep_weights()

    def close(self, *, examined: bool = True) -> None:
        """End the training that counts; the weights to be `examined` are those of now, or of the last epoch's end."""
        self._closed_at = self.training.steps
        if examined and self._final is None and self._closed_at <= self._point.total_steps:
            self._keep_weights()

    def profile(self, budget_s: float, *, whole_epoch: bool = True, turns: bool = True) -> None:
        """Measure a whole epoch in one piece, the step breakdown, and how long the device is busy with a step.

        Args:
            budget_s: of the training; what takes long compared with it is left out.
            whole_epoch: whether to run one at all.
            turns: whether a step in float64 takes turns with one in float32.
        """
        self._use_settings()
        self._afterwards.profile(self.training, budget_s, whole_epoch=whole_epoch)
        if turns and self._point.dtype == "float64" and self.contender.lane.execution == "eager":
            single = partial(self._fresh.build_float32_training, self.contender.lane)
            self._afterwards.take_turns(self.training, single, "float32_step_s", budget_s)

    def check_lane(self) -> None:
        """Train the first steps again, in this variant and in eager fp32, from the same weights on the same batches.

        Comes last, as it leaves the weights of those steps.
        """
        self._afterwards.attempt("The comparison of its first steps with the default loop is", self._compare_with_plain)

    def examine(self) -> None:
        """Classify with the final weights, if there are any."""
        if self._final is not None:
            self._afterwards.examine(self.training, self._final)

    def end(self, outcome: Outcome, message: str = "") -> None:
        """Settle the outcome."""
        said = " ".join(filter(None, [message, *self._afterwards.left_out])).encode()
        most = validation.LONG_TEXTS["message"]
        self.outcome, self.message = outcome, said[:most].decode(errors="ignore")

    def release(self) -> None:
        """Drop network and data from the device; never raises."""
        self._closed_at = self.steps
        self._training, self._final, self._fresh.resident = None, None, None
        self._device.release()

    def progress(self) -> ContenderProgress:
        """Return how far it is, for people."""
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
        """Compile or record what the variant needs, and return the seconds this takes without cached code."""
        example, cold_s = self._fresh.example(), list[float]()
        left = self._point.total_steps % self.contender.lane.steps_per_call
        self._timer.time(lambda: cold_s.append(self.training.prepare(example, remainder=left > 0)))
        self.compiling_s += cold_s[0] - self.training.saved_s
        self.raw.startup_compile_served |= bool(self.training.saved_s)
        return cold_s[0]

    def _use_settings(self) -> None:
        """Train with this contender's threads, arithmetic and memory from here on; the others have theirs."""
        count = self.raw.threads
        if count == BEST_THREADS and self.contender.lane.execution == "compiled":
            count = self._counts[0]  # what is compiled at the start is one of those that are tried
        if count != BEST_THREADS and torch.get_num_threads() != count:
            torch.set_num_threads(count)
        self._device.make_current()
        self._use_precision()
        devices.set_memory_retention(keep=self.contender.lane.host_memory == "kept")

    def _use_precision(self) -> None:
        """Set the fp32 precision of the variant, strict unless it says otherwise, and record it; set cuDNN's choice."""
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
        """Finish the last epoch untimed if it would end within the next `steps`, so that its weights can be stored."""
        left = self._point.total_steps - self.training.steps
        if 0 < left < steps:
            self._use_settings()
            self.training.advance(left)
            self._settle()

    def _settle(self) -> None:
        """Read the losses, and keep the weights when the last epoch has just ended."""
        self.curve.add(self.training.read_losses())
        _IDLE_SINCE_NS[self.contender.device] = self._timer.clock()
        if self.training.steps == self._point.total_steps:
            self._keep_weights()

    def _keep_weights(self) -> None:
        """Keep a copy of the weights to examine them, on the host, where it takes no memory from the blocks."""
        self._afterwards.attempt(
            "The classification report is", lambda: setattr(self, "_final", self.training.weights("cpu"))
        )
