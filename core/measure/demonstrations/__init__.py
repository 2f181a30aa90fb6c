"""From a demonstration to its exhibit: find the devices, run the lesson, and date the result.

As in `core.measure.trial`, only files of the data set are read or written here.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from ...errors import OutOfMemory
from ...question.demonstrations import Demonstration, Kind
from ...question.experiment import Contender
from ...results import environment
from ...results.exhibits import Content, Exhibit, ExhibitContender
from .. import devices, thread_search
from ..trial import Hooks
from . import clock, moving
from .clock import Stage, Stopped

LESSON_RUNNERS: dict[Kind, Callable[[Demonstration, Stage], Content]] = {
    "clock": clock.run_clock_lesson,
    "moving": moving.run_moving_lesson,
    "first_step": moving.run_first_step_lesson,
}


def run_demonstration(demonstration: Demonstration, *, hooks: Hooks) -> Exhibit | None:
    """Run one demonstration on this machine, and report progress to `hooks`, which can stop it.

    Returns:
        The exhibit; None if it was stopped.

    Raises:
        DeviceUnavailable: a contender's device is not on this machine; nothing was run.
        DatasetUnavailable: the files of the data set are missing.
        InvalidValue: more threads or samples were requested than there are.
        OutOfMemory: the training does not fit into the memory of a device.
    """
    _require(demonstration)
    devices.use_strict_fp32()
    devices.set_memory_retention(keep=False)
    stage, begun = Stage(demonstration=demonstration, hooks=hooks), datetime.now(UTC)
    try:
        content = LESSON_RUNNERS[demonstration.kind](demonstration, stage)
    except Stopped:
        return None
    except Exception as error:
        if isinstance(error, OutOfMemory) or not devices.is_out_of_memory(error):
            raise
        message = "The training does not fit into the memory of a device. Try a smaller model or batch."
        raise OutOfMemory(message) from error
    finally:
        for contender in demonstration.contenders:
            devices.open_device(contender.device).release()
    known = environment.read_environment()
    return Exhibit(
        id=uuid.uuid4().hex[:12],
        demonstration=demonstration,
        measured_at=begun.isoformat(timespec="milliseconds"),
        cpu_name=known.cpu_name,
        machine_id=known.machine_id,
        torch_version=known.torch_version,
        app_commit=known.app_commit,
        participants=tuple(_participant(contender, stage) for contender in demonstration.contenders),
        content=content,
    )


def _require(demonstration: Demonstration) -> None:
    for contender in demonstration.contenders:
        devices.find(contender.device)
        thread_search.require_usable(contender.threads)


def _participant(contender: Contender, stage: Stage) -> ExhibitContender:
    info = devices.find(contender.device)
    return ExhibitContender(
        contender=str(contender),
        device=info.device,
        kind=info.kind,
        device_name=info.name,
        threads=stage.threads.get(contender, contender.threads or environment.usable_cores()),
        startup_s=devices.initialise(info.device),
    )
