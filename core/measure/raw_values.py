"""All raw values of one contender, as its row stores them, and nothing derived from them."""

import dataclasses
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..results.environment import LoadReading
from .timer import Reading


@dataclass(kw_only=True)
class RawValues:
    """Raw values of one contender, named like their columns."""

    device_power_limit_w: float | None = None
    device_clock_limit_mhz: float | None = None
    device_ecc_errors: int | None = None
    fp32_precision: str = ""
    threads: int = 0
    threads_tried: list[int] = field(default_factory=list)
    threads_tried_step_s: list[float] = field(default_factory=list)
    lead_in_steps: int = 0
    warmup_steps: list[int] = field(default_factory=list)
    warmup_s: list[float] = field(default_factory=list)
    block_pair: list[int] = field(default_factory=list)
    block_round: list[int] = field(default_factory=list)
    block_first_step: list[int] = field(default_factory=list)
    block_steps: list[int] = field(default_factory=list)
    block_begin_ns: list[int] = field(default_factory=list)
    block_end_ns: list[int] = field(default_factory=list)
    block_load: list[float] = field(default_factory=list)
    block_steal: list[float] = field(default_factory=list)
    block_switches: list[int | None] = field(default_factory=list)
    block_waiting: list[float | None] = field(default_factory=list)
    block_other_use: list[float | None] = field(default_factory=list)
    block_clock_before_mhz: list[float | None] = field(default_factory=list)
    block_clock_mhz: list[float | None] = field(default_factory=list)
    block_power_w: list[float | None] = field(default_factory=list)
    block_temperature_c: list[float | None] = field(default_factory=list)
    block_throttle: list[int | None] = field(default_factory=list)
    block_throttled_s: list[float | None] = field(default_factory=list)
    block_use_before: list[float | None] = field(default_factory=list)
    block_other_processes: list[int | None] = field(default_factory=list)
    machine_shift: float | None = None
    machine_repeats: int = 0
    startup_device_s: float | None = None
    startup_device_readings_s: tuple[float, ...] = ()
    startup_fresh: bool = False
    startup_build_s: float | None = None
    startup_transfer_s: float | None = None
    startup_compile_s: float | None = None
    startup_compile_served: bool = False
    startup_first_step_s: float | None = None
    lane_loss: tuple[float, ...] = ()
    reference_loss: tuple[float, ...] = ()
    nudged_loss: tuple[float, ...] = ()
    turns_step_s: tuple[float, ...] = ()
    float32_step_s: tuple[float, ...] = ()
    doubled_step_s: tuple[float, ...] = ()
    epoch_check_s: float | None = None
    breakdown_loader_s: tuple[float, ...] = ()
    breakdown_transfer_s: tuple[float, ...] = ()
    breakdown_forward_s: tuple[float, ...] = ()
    breakdown_backward_s: tuple[float, ...] = ()
    breakdown_optimizer_s: tuple[float, ...] = ()
    breakdown_step_s: tuple[float, ...] = ()
    busy_step_s: tuple[float, ...] = ()
    own_operations: tuple[int, ...] = ()
    own_waits: tuple[int, ...] = ()
    own_waits_at: str = ""
    own_syncs: tuple[int, ...] = ()
    own_syncs_at: str = ""
    own_copies: tuple[int, ...] = ()
    own_elsewhere: tuple[int, ...] = ()
    own_float64: tuple[int, ...] = ()
    own_kept: tuple[int, ...] = ()
    own_inside_s: tuple[float, ...] = ()
    own_float64_s: tuple[float, ...] = ()
    own_between_s: tuple[float, ...] = ()
    own_floor_s: tuple[float, ...] = ()
    own_given_s: tuple[float, ...] = ()
    own_workers0_s: tuple[float, ...] = ()
    own_workers2_s: tuple[float, ...] = ()
    own_pinned_s: tuple[float, ...] = ()
    own_resident_s: tuple[float, ...] = ()
    own_larger_s: tuple[float, ...] = ()
    own_single_s: tuple[float, ...] = ()
    own_heavy_at: str = ""
    own_first_at: str = ""
    own_printed: int = 0
    own_threads_set: bool = False
    own_learns: bool | None = None
    own_first_loss: float | None = None
    own_evaluation: float | None = None
    train_accuracy: float | None = None
    validation_accuracy: float | None = None
    tested_step: int = 0
    confusion: tuple[int, ...] = ()
    predictions: tuple[int, ...] = ()

    def columns(self) -> dict[str, Any]:
        """Return the values for a row: lists as tuples, predictions as bytes; a list with an unknown value is empty."""
        values = {name: _tuple(v) if isinstance(v, list) else v for name, v in dataclasses.asdict(self).items()}
        return {**values, "predictions": bytes(self.predictions)}

    @property
    def step_s(self) -> float | None:
        """Median seconds per step of the blocks, or of the last warm-up block before the first one."""
        if self.block_steps:
            readings = zip(self.block_begin_ns, self.block_end_ns, self.block_steps, strict=True)
            return statistics.median((end - begin) / 1e9 / steps for begin, end, steps in readings)
        return self.warmup_s[-1] / self.warmup_steps[-1] if self.warmup_s else None

    def choose_threads(self, step_s: Mapping[int, float]) -> None:
        """Use the fastest of the thread counts that were tried."""
        self.threads = min(step_s, key=step_s.__getitem__)
        self.threads_tried, self.threads_tried_step_s = list(step_s), list(step_s.values())

    def add_first_uses(self, readings: tuple[float, ...]) -> None:
        """Use the median of first uses in fresh processes in place of the one in this process, if there are any."""
        if readings:
            self.startup_device_readings_s, self.startup_fresh = readings, True
            self.startup_device_s = statistics.median(readings)

    def add_block(
        self,
        pair: int,
        first_step: int,
        steps: int,
        reading: Reading,
        load: LoadReading,
        card: Mapping[str, float | None],
    ) -> None:
        """Add a timed block of the round `pair`; the values of `card` have the names of its columns."""
        self.block_pair.append(pair)
        self.block_first_step.append(first_step)
        self.block_steps.append(steps)
        self.block_begin_ns.append(reading.begin_ns)
        self.block_end_ns.append(reading.end_ns)
        self.block_load.append(load.load)
        self.block_steal.append(load.steal)
        self.block_switches.append(load.switches)
        self.block_waiting.append(load.waiting)
        self.block_other_use.append(load.other_use)
        for name, value in card.items():
            getattr(self, name).append(value)


def _tuple(values: list[Any]) -> tuple[Any, ...]:
    return () if None in values else tuple(values)
