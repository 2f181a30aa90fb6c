"""The row of one contender: what was asked, on what it was measured, and every raw value so far."""

import dataclasses
from typing import Any

from core.measure.contender import MeasuredContender
from core.measure.data.datasets import Data
from core.question.experiment import PROTOCOL_VERSION, Experiment
from core.results import environment
from core.results.schema import Outcome, Trial


def row(
    experiment: Experiment, measured: MeasuredContender, data: Data, outcome: Outcome, *, run_id: str, started_at: str
) -> Trial:
    """The row as it is if the measurement ends now."""
    point = experiment.point
    return Trial(
        trial_id=f"{run_id}-{experiment.contenders.index(measured.contender)}",
        run_id=run_id,
        experiment_id=experiment.id,
        started_at=started_at,
        outcome=outcome,
        message=measured.message,
        **dataclasses.asdict(point),
        dataset_hash=data.hash,
        test_samples=len(data.test),
        **measured.facts,
        steps_per_epoch=point.steps_per_epoch,
        **_device_columns(measured),
        **dataclasses.asdict(environment.read_environment()),
        protocol_version=PROTOCOL_VERSION,
        **measured.contender.lane.columns,
        drained=True,
        budget_s=experiment.budget_s,
        steps=measured.steps,
        **measured.raw.columns(),
        loss_step=measured.curve.last_steps,
        loss=measured.curve.means,
    )


def _device_columns(measured: MeasuredContender) -> dict[str, Any]:
    info, contender = measured.info, measured.contender
    return {
        "contender": str(contender),
        "device": contender.device,
        "device_kind": info.kind,
        "device_name": info.name,
        "device_memory_bytes": info.memory_bytes,
        "device_driver": info.driver,
    }
