"""Rows for tests: what a real run would have stored, without measuring anything.

Numbers are drawn from a seed that follows from the run and the contender, so the same call gives the same row.
The clock readings of one run do not overlap, and equal rounds pair across its contenders.
"""

import dataclasses
import math
import random
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.question import catalog
from core.question.experiment import PROTOCOL_VERSION, Contender, Experiment, Point
from core.question.fields import TRAINING
from core.results import parquet
from core.results.parquet import to_table
from core.results.schema import Trial
from core.results.store import Store

EXPERIMENT = Experiment(
    point=Point(dataset="digits", model="mlp", hidden_size=128, depth=2, batch_size=64, epochs=100),
    contenders=(Contender(), Contender(device="cuda:0")),
)
"""19 steps an epoch, 1,900 in all; the CPU is the baseline."""

RUN_ID = "0123456789ab"
MACHINE_ID = "feedfacecafe"
TORCH_VERSION = "2.14.1"
TEST_SAMPLES = 270

_BOOT_NS = 5_000_000_000_000
_SLOT_NS = 10_000_000_000  # each block has this much time to itself, whatever its length
_WARMUP_BLOCKS, _LEAD_IN_STEPS = 3, 10


def trial(
    *,
    run_id: str = RUN_ID,
    contender: str = "cpu",
    experiment: Experiment = EXPERIMENT,
    step_s: float = 1e-3,
    jitter: float = 0.01,
    pairs: int = 20,
    steps_per_block: int = 100,
    **changes: Any,
) -> Trial:
    """The row of one contender of a completed run.

    Args:
        run_id: 12 hexadecimal digits; rows of one run pair.
        contender: written form, e.g. `cpu`, `cpu@1`, `cuda:0`; its place among the experiment's gives the trial_id
            (a contender that the experiment does not have counts as its last).
        experiment: what was asked; identity and training columns follow from it.
        step_s: median seconds a step.
        jitter: standard deviation of the log of the step time from block to block; 0 for none.
        pairs: timed blocks.
        steps_per_block: steps of each.
        changes: any column by name, put in last and unchecked.
    """
    names = [str(entry) for entry in experiment.contenders]
    index = names.index(contender) if contender in names else len(names)
    values: dict[str, Any] = {
        "trial_id": f"{run_id}-{index}",
        "run_id": run_id,
        "experiment_id": experiment.id,
        "started_at": "2026-11-21T09:30:00+00:00",
        "outcome": "completed",
        "protocol_version": PROTOCOL_VERSION,
        "budget_s": experiment.budget_s,
        **_training(experiment.point),
        **_device(contender),
        **_machine(),
        **_blocks(run_id, contender, index, len(names), step_s, jitter, pairs, steps_per_block),
        **_breakdown(contender, step_s),
        **_report(len(catalog.dataset(experiment.point.dataset).classes)),
    }
    return Trial(**{**values, **changes})


def plant(store: Store, row: Trial) -> Path:
    """Put a row into a store that the store itself may refuse, as another program could; returns its file."""
    store.folder.mkdir(exist_ok=True)
    path = store.folder / f"{uuid.uuid4().hex}.parquet"
    parquet.write_table(path, to_table([row]))
    return path


def run(
    steps_s: Mapping[str, float] = {"cpu": 1e-3, "cuda:0": 2.5e-4},
    *,
    point: Point = EXPERIMENT.point,
    budget_s: float = 60.0,
    **changes: Any,
) -> list[Trial]:
    """The rows of one run of `point`, one for each contender of `steps_s` (contender → median seconds a step) in order.

    `changes` are passed to `trial` for every row.
    """
    contenders = tuple(Contender.parse(name) for name in steps_s)
    experiment = Experiment(point=point, contenders=contenders, budget_s=budget_s)
    return [
        trial(contender=str(Contender.parse(name)), experiment=experiment, step_s=step_s, **changes)
        for name, step_s in steps_s.items()
    ]


def beside_programs(row: Trial, waiting: float = 0.9, other_use: float = 0.5) -> Trial:
    """A row whose waits were counted: threads that waited for a processor, and what others used of all processors."""
    blocks = len(row.block_pair)
    return dataclasses.replace(row, block_waiting=(waiting,) * blocks, block_other_use=(other_use,) * blocks)


def _training(point: Point) -> dict[str, Any]:
    network = point.network
    return {
        **{name: getattr(point, name) for name in (*TRAINING, "steps_per_epoch")},
        "dataset_hash": "0123456789abcdef",
        "test_samples": TEST_SAMPLES,
        "parameters": network.parameters,
        "flops_per_step": network.flops_per_step(point.batch_size),
        "precision": "fp32",
        "execution": "eager",
        "drained": True,
        "lead_in_steps": _LEAD_IN_STEPS,
    }


def _device(contender: str) -> dict[str, Any]:
    asked = Contender.parse(contender)
    kind = asked.device.partition(":")[0]
    names = {"cpu": "Test CPU", "cuda": "NVIDIA Test GPU", "xpu": "Intel Test GPU", "mps": "Apple Test GPU"}
    tried = (1, 2, 4) if asked.on_host and not asked.threads else ()
    return {
        "contender": contender,
        "device": asked.device,
        "device_kind": kind,
        "device_name": names[kind],
        "device_memory_bytes": 16 * 2**30,
        "device_driver": "" if asked.on_host else "driver 580.10, CUDA 13.0",
        **asked.lane.columns,
        "threads": asked.threads or 4,
        "threads_tried": tried,
        "threads_tried_step_s": tuple(1e-3 / count**0.5 for count in tried),
    }


def _machine() -> dict[str, Any]:
    return {
        "machine_id": MACHINE_ID,
        "cpu_name": "Test CPU",
        "cores": 8,
        "cores_usable": 4,
        "memory_bytes": 16 * 2**30,
        "system": "Linux 6.1 x86_64",
        "python_version": "3.11.9",
        "torch_version": TORCH_VERSION,
        "torchvision_version": "0.29.1",
        "app_version": "0.1.0",
        "app_commit": "0123456789ab",
        "omp_wait_policy": "PASSIVE",
    }


def _blocks(
    run_id: str, contender: str, index: int, contenders: int, step_s: float, jitter: float, pairs: int, steps: int
) -> dict[str, Any]:
    draw = random.Random(f"{run_id} {contender}")
    step_times = [step_s * math.exp(draw.gauss(0.0, jitter)) for _ in range(pairs)]
    begin = [_BOOT_NS + (pair * max(contenders, index + 1) + index) * _SLOT_NS for pair in range(pairs)]
    warmup = _WARMUP_BLOCKS * steps
    loss_step = [warmup + (pair + 1) * (_LEAD_IN_STEPS + steps) for pair in range(pairs)]
    on_host = contender.startswith("cpu")
    return {
        "steps": loss_step[-1] if loss_step else warmup,
        "warmup_steps": (steps,) * _WARMUP_BLOCKS,
        "warmup_s": tuple(steps * step_s * factor for factor in (1.5, 1.1, 1.0)),
        "block_pair": tuple(range(pairs)),
        "block_first_step": tuple(step - steps for step in loss_step),
        "block_steps": (steps,) * pairs,
        "block_begin_ns": tuple(begin),
        "block_end_ns": tuple(b + round(steps * s * 1e9) for b, s in zip(begin, step_times, strict=True)),
        "block_load": (1.0,) * pairs,
        "block_steal": (0.0,) * pairs,
        "block_switches": (2,) * pairs,
        "block_clock_mhz": () if on_host else (1500.0,) * pairs,
        "loss_step": tuple(loss_step),
        "loss": tuple(2.3 * math.exp(-step / 800) for step in loss_step),
        "startup_device_s": 0.02 if on_host else 0.9,
        "startup_build_s": 0.003,
        "startup_transfer_s": 0.001,
        "startup_first_step_s": 0.01,
        "epoch_check_s": 19 * step_s,
    }


def _breakdown(contender: str, step_s: float) -> dict[str, Any]:
    shares = {"loader": 0.08, "transfer": 0.02, "forward": 0.3, "backward": 0.45, "optimizer": 0.17}
    parts = {f"breakdown_{part}_s": (share * step_s,) * 5 for part, share in shares.items()}
    return {**parts, "busy_step_s": () if contender.startswith("cpu") else (0.3 * step_s,) * 5}


def _report(classes: int) -> dict[str, Any]:
    """Predictions of a model that gets every 18th of the balanced test items wrong, by one class."""
    truth = [item % classes for item in range(TEST_SAMPLES)]
    predicted = [(label + (item % 18 == 0)) % classes for item, label in enumerate(truth)]
    confusion = [0] * classes**2
    for label, answer in zip(truth, predicted, strict=True):
        confusion[label * classes + answer] += 1
    return {
        "train_accuracy": 0.97,
        "validation_accuracy": 0.95,
        "confusion": tuple(confusion),
        "predictions": bytes(predicted),
    }
