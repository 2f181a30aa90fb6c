"""One contender while it is measured: its network, its training, and every raw value read off it so far.

A contender starts up, warms up, runs block after block when it is told to, and is taken apart at the end. It
decides nothing about the others, the budget or the end; `core.measure.trial` does.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from core.measure import networks, pace, phases, room, threads
from core.measure.data import batches
from core.measure.data.batches import Feed
from core.measure.data.datasets import Data, Split
from core.measure.device import devices, failures, host_memory
from core.measure.examination import examine
from core.measure.raw_values import RawValues
from core.measure.timer import MIN_BLOCK_S, MIN_BLOCK_STEPS, Timer, block_steps, lead_in_steps
from core.measure.training import LossCurve, Training
from core.progress import ContenderProgress
from core.question.experiment import BEST_THREADS, Contender, Point
from core.results import allowed, environment
from core.results.environment import LoadMeter
from core.results.schema import Outcome

WARM_UP_STEPS = 10
WARM_UP_S = 0.25
DISCARDED_BLOCKS = 2
"""A fixed warm-up for every device: at least so many steps and so long, then blocks that are not used.

"Until it is stable" would warm devices unequally, and some never are (pyperf's argument, arXiv 1602.00602)."""

SIZING_TRIES = 5
"""Discarded blocks may show that blocks are too short; they are made longer at most this often."""

CHECKED_STEPS = 20
"""First steps of a lane that are held against plain eager fp32: enough for a wrong update to show, few enough that
rounding has not yet grown."""


class MeasuredContender:
    """One contender in the measurement of one point.

    Attributes:
        contender: what was asked for.
        info: facts of its device.
        raw: raw values so far.
        curve: losses so far.
        outcome: how it ended; None while it goes on.
        message: the reason where it did not end well, and what beside the blocks could not be measured.
        compiling_s: seconds spent so far on compiling or recording, which no budget is charged with.
    """

    def __init__(self, contender: Contender, point: Point, data: Data) -> None:
        """Take a contender whose device was found; nothing is put on the device yet."""
        self.contender = contender
        self.info = devices.find(contender.device)
        self.raw = RawValues(threads=contender.threads)
        self.curve = LossCurve(total_steps=point.total_steps)
        self.outcome: Outcome | None = None
        self.message, self._left_out = "", list[str]()
        self._point, self._data = point, data
        self._device = devices.open_device(contender.device)
        self._timer = Timer(device=self._device)
        self._meter = LoadMeter()
        self._resident: Split | None = None
        self._training: Training | None = None
        self._final: list[Tensor] | None = None
        self._prefetched, self._closed_at, self._idle_since_ns = 0, 0, 0
        self.compiling_s = 0.0
        self._block_steps = MIN_BLOCK_STEPS

    @property
    def training(self) -> Training:
        """The training, once it was started."""
        if self._training is None:
            raise RuntimeError("the contender has not been started")
        return self._training

    @property
    def steps(self) -> int:
        """Steps trained so far, those not counted that only serve to take a step apart."""
        return self._closed_at or (self._training.steps if self._training else 0)

    @property
    def trained(self) -> bool:
        """Whether every epoch was trained."""
        return self.steps >= self._point.total_steps

    def require_memory(self) -> None:
        """Refuse a training that cannot fit; raises OutOfMemory."""
        room.require(self._point, self.contender, self._data, self._device)

    def require_pace(self, budget_s: float) -> None:
        """Refuse a training of which not even a block can be timed within its budget.

        Raises:
            TooSlow: it is one.
        """
        flops = self._point.network.flops_per_step(self._point.batch_size)
        self._use_settings()
        pace.require(flops, budget_s, self._device, str(self.contender))

    def try_threads(self, counts: Sequence[int]) -> Iterator[None]:
        """Choose the thread count that trains fastest, on steps that are taken back. Yields between timings.

        Comes after `start`, whose first step is therefore trained with torch's own choice of threads.
        """
        training, weights, steps_before = self.training, self.training.weights(), self.training.steps
        self._use_settings()
        compile_s = {environment.usable_cores(): self.raw.startup_compile_s or 0.0}
        look = threads.Look(training=training, timer=self._timer, prepare=self._prepare, compile_s=compile_s)
        times = yield from threads.choose(counts, look)
        self.raw.choose_threads(times, look.compile_s)
        training.set_weights(weights)
        training.rewind(self._feed(steps_before), steps_before)

    def start(self) -> None:
        """Put data and network on the device and train the first step: the start-up, timed part by part."""
        raw = self.raw
        self._use_settings()
        raw.startup_device_s = devices.initialise(self.contender.device)
        if self._point.data_path == "resident":
            raw.startup_transfer_s = self._timer.time(self._move_data).seconds
        raw.startup_build_s = self._timer.time(self._build).seconds
        raw.startup_compile_s = self._prepare()
        raw.startup_first_step_s = self._timer.time(lambda: self.training.advance(self._whole(1))).seconds
        self._settle()

    def warm_up(self, allowance_s: float) -> Iterator[None]:
        """Train until warm, and find how many steps make a block. Yields between timings.

        Args:
            allowance_s: seconds after which a slow training counts as warm all the same.
        """
        raw, spent, steps = self.raw, 0.0, 1
        while (steps <= WARM_UP_STEPS or spent < WARM_UP_S) and spent < allowance_s:  # 1 + 2 + 4 + … = steps - 1 so far
            spent += self._warm_up_block(self._whole(steps))
            steps *= 2
            yield
        self._block_steps = self._whole(block_steps(raw.warmup_s[-1] / raw.warmup_steps[-1]))
        fitting = tries = 0
        while fitting < DISCARDED_BLOCKS and spent < allowance_s:
            seconds = self._warm_up_block(self._block_steps)
            spent += seconds
            yield
            if seconds >= MIN_BLOCK_S or tries == SIZING_TRIES:
                fitting += 1
            else:
                fitting, tries = 0, tries + 1
                self._block_steps = self._whole(max(self._block_steps + 1, block_steps(seconds / self._block_steps)))
        step_s = raw.warmup_s[-1] / raw.warmup_steps[-1]
        raw.lead_in_steps = self._whole(lead_in_steps(step_s) + self._prefetched)

    def block(self, pair: int) -> None:
        """Lead in, then time one block of training, as block of round `pair`."""
        raw, training = self.raw, self.training
        lead_in = self._lead_in_steps()
        self._make_room(lead_in + self._block_steps)
        self._use_settings()
        self._meter.read()
        training.advance(lead_in)
        first_step = training.steps
        reading = self._timer.time(lambda: training.advance(self._block_steps))
        raw.add_block(pair, first_step, self._block_steps, reading, self._meter.read(), self._device.clock_mhz())
        self._settle()

    def _lead_in_steps(self) -> int:
        """Steps that lead in the next block: as many as always on a CPU, more where an accelerator idled for long."""
        if self.contender.on_host:
            return self.raw.lead_in_steps
        idle_s = (self._timer.clock() - self._idle_since_ns) / 1e9
        steps = lead_in_steps(self.raw.step_s or 0.0, idle_s=idle_s)
        return max(self.raw.lead_in_steps, self._whole(steps + self._prefetched))

    def close(self, *, examined: bool = True) -> None:
        """End the training that counts; the weights to be examined are those of now, or of the last epoch's end.

        Args:
            examined: whether `examine` follows; the memory of a copy is spared otherwise.
        """
        self._closed_at = self.training.steps
        if examined and self._final is None and self._closed_at <= self._point.total_steps:
            self._keep_weights()

    def take_apart(self, budget_s: float, *, whole_epoch: bool = True) -> None:
        """Afterwards: a whole epoch in one piece, the parts of a step, and how long the device is busy with one.

        Args:
            budget_s: of the training; an epoch that is long beside it is not run again.
            whole_epoch: whether to run one at all.
        """
        self._use_settings()
        if whole_epoch:
            self._try("The time of a whole epoch is", lambda: self._run_epoch(budget_s))
        self._try("Where a step's time goes is", self._take_step_apart)
        self._try("For how long the device is busy with a step is", self._find_busy_time)

    def check_lane(self) -> None:
        """Train the first steps again, in this lane and plainly, from the same weights on the same batches.

        Comes last, as it leaves the weights of those steps.
        """
        self._try("Whether its first steps learn what plain ones do is", self._compare_with_plain)

    def _compare_with_plain(self) -> None:
        steps = min(CHECKED_STEPS, self._point.total_steps)
        self.training.set_weights(list(self._network().parameters()))
        self.training.rewind(self._feed(0), 0)
        self._use_settings()
        self.training.advance(self._whole(steps))
        lane_loss = tuple(self.training.read_losses()[:steps])
        devices.use_strict_fp32()
        plain = Training(self._network(), self._feed(0), learning_rate=self._point.learning_rate)
        plain.advance(steps)
        self.raw.lane_loss, self.raw.reference_loss = lane_loss, tuple(plain.read_losses())

    def examine(self) -> None:
        """Classify with the weights that were kept, if any were."""
        if self._final is not None:
            self._try("What it learned is", self._classify)

    def end(self, outcome: Outcome, message: str = "") -> None:
        """Settle the outcome."""
        said = " ".join(filter(None, [message, *self._left_out])).encode()
        self.outcome, self.message = outcome, said[: allowed.LONG_TEXTS["message"]].decode(errors="ignore")

    def release(self) -> None:
        """Drop network and data from the device; never raises."""
        self._training, self._final, self._resident = None, None, None
        self._device.release()

    def progress(self) -> ContenderProgress:
        """How far it is, for people."""
        step_s, ends = self.raw.step_s, self.curve.last_steps
        return ContenderProgress(
            contender=str(self.contender),
            steps=min(self.steps, self._point.total_steps),
            total_steps=self._point.total_steps,
            step_s=step_s,
            threads=self.raw.threads or None,
            loss_steps=ends,
            losses=self.curve.means,
            loss_seconds=tuple(step * step_s for step in ends) if step_s else (),
        )

    def _try(self, known: str, measure: Callable[[], object]) -> None:
        """Measure what is of use beside the blocks; where it fails by itself they stay, and the message says so.

        Args:
            known: the beginning of a sentence that goes on with "not known".
            measure: puts what it finds into the raw values.
        """
        if failed := failures.attempt(measure, partial(failures.ending, self.contender)):
            outcome, why = failed
            self._left_out.append(f"{known} not known: {'out of memory.' if outcome == 'out_of_memory' else why}")
            self._device.release()

    def _run_epoch(self, budget_s: float) -> None:
        steps, lead_in, step_s = self._point.steps_per_epoch, self.raw.lead_in_steps, self.raw.step_s or 0.0
        self.raw.epoch_check_s = phases.epoch_s(
            self.training, self._timer, steps=steps, lead_in_steps=lead_in, step_s=step_s, budget_s=budget_s
        )
        self.training.read_losses()

    def _take_step_apart(self) -> None:
        parts = phases.take_apart(self.training, self._timer, step_s=self.raw.step_s or 0.0)
        for name, values in (dataclasses.asdict(parts) if parts else {}).items():
            setattr(self.raw, f"breakdown_{name}", values)

    def _find_busy_time(self) -> None:
        step_s, device = self.raw.step_s or 0.0, self._device.torch
        self.raw.busy_step_s = phases.busy_step_s(self.training, self._timer, device, step_s=step_s)

    def _classify(self) -> None:
        self.training.set_weights(self._final or [])
        classes = self._point.network.classes
        examine(self.training.network, classes, self._data, self._device.torch, self.raw)

    def _move_data(self) -> None:
        self._resident = self._data.train.to(self._device.torch)

    def _build(self) -> None:
        """Put a fresh network in training, with a feed that begins with the first step."""
        rate, lane = self._point.learning_rate, self.contender.lane
        self._training = Training(self._network(), self._feed(0), learning_rate=rate, lane=lane)

    def _network(self) -> nn.Module:
        """A fresh network on the device."""
        return networks.build(self._point.network, self._point.seed).to(self._device.torch)

    def _feed(self, first_step: int) -> Feed:
        """The batches from a step on."""
        resident = self._data.train if self._resident is None else self._resident
        feed = batches.feed(self._point, self._data, resident, self._device.torch, first_step=first_step)
        self._prefetched = feed.prefetched
        return feed

    def _prepare(self) -> float:
        """Compile or record what the lane needs; seconds."""
        size, train = self._point.batch_size, self._data.train
        samples, labels = (part[:size].to(self._device.torch) for part in (train.samples, train.labels))
        single = bool(self._point.total_steps % self.contender.lane.steps_per_call)
        spent_s: list[float] = []
        self._timer.time(lambda: spent_s.append(self.training.prepare((samples, labels), remainder=single)))
        self.compiling_s += spent_s[0]
        return spent_s[0]

    def _whole(self, steps: int) -> int:
        """At least so many steps, in whole calls of the lane."""
        each = self.contender.lane.steps_per_call
        return math.ceil(steps / each) * each

    def _use_settings(self) -> None:
        """Train with this contender's threads, arithmetic and memory from here on; the others have theirs."""
        count = self.raw.threads
        if count == BEST_THREADS and self.contender.lane.execution == "compiled":
            count = environment.usable_cores()  # what is compiled at the start is one of those that are tried
        if count != BEST_THREADS and torch.get_num_threads() != count:
            torch.set_num_threads(count)
        devices.use_tf32(self.contender.lane.precision == "tf32")
        host_memory.use(kept=self.contender.lane.host_memory == "kept")

    def _warm_up_block(self, steps: int) -> float:
        self._make_room(steps)
        self._use_settings()
        seconds = self._timer.time(lambda: self.training.advance(steps)).seconds
        self.raw.warmup_steps.append(steps)
        self.raw.warmup_s.append(seconds)
        self._settle()
        return seconds

    def _make_room(self, steps: int) -> None:
        """Finish the last epoch untimed where it would end within the next `steps`, so that its weights can be kept."""
        left = self._point.total_steps - self.training.steps
        if 0 < left < steps:
            self._use_settings()
            self.training.advance(left)
            self._settle()

    def _settle(self) -> None:
        """Read the losses, and keep the weights when the last epoch has just ended."""
        self.curve.add(self.training.read_losses())
        self._idle_since_ns = self._timer.clock()
        if self.training.steps == self._point.total_steps:
            self._keep_weights()

    def _keep_weights(self) -> None:
        """Keep a copy of the weights to examine them, on the host, where it takes no memory from the blocks."""
        self._try("What it learned is", lambda: setattr(self, "_final", self.training.weights("cpu")))
