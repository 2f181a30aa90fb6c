"""Whether trainings fit into the memory of their devices, before the system has to kill someone for it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from core import units
from core.errors import OutOfMemory
from core.measure.data.datasets import Data
from core.measure.device import devices
from core.measure.device.devices import Device
from core.question.experiment import Contender, Experiment, Point
from core.question.models import cost

SHARE = 0.7
"""Share of what is free that trainings which are kept alive may take; the rest is for what is not counted here."""

SHARING_HOST = ("mps",)
"""Devices that have no memory of their own."""

MOST_WORKERS = 16
"""Processes of loaders that may wait for their turn at once."""


def check_memory(point: Point, contender: Contender, data: Data, device: Device) -> None:
    """Refuse a training that cannot fit.

    Raises:
        OutOfMemory: network, batch and data need more than the device has free.
    """
    needed, free = estimate_memory_bytes(point, contender, data), device.free_bytes()
    if needed > free:
        have = f"{units.format_memory(free)} of {contender.device} are free"
        raise OutOfMemory(f"The training needs about {units.format_memory(needed)}, but {have}.")


def can_fit_in_memory(new: Sequence[Experiment], alive: Sequence[Experiment] = ()) -> bool:
    """Whether trainings can be kept alive at once, beside others whose next step may need as much again as is free.

    Raises:
        DeviceUnavailable: a contender's device is not on this machine.
    """
    if any(asked.point.training for asked in (*new, *alive)):
        return len(new) + len(alive) <= 1  # nobody knows what it needs
    workers = sum(len(asked.contenders) * asked.point.loader_workers for asked in (*new, *alive))
    needed = Counter[str]()
    for asked in new:
        needed += _count_training_bytes(asked)
    for (_, _, _, device), size in dict(entry for asked in new for entry in _samples(asked)).items():
        needed[device] += size
    if alive:
        needed += _count_training_bytes(max(alive, key=lambda asked: _count_training_bytes(asked).total()))
    enough = all(size <= SHARE * devices.open_device(device).free_bytes() for device, size in needed.items())
    return enough and workers <= MOST_WORKERS


def _count_training_bytes(experiment: Experiment) -> Counter[str]:
    """Device → bytes of the trainings there, without samples that stay."""
    found = Counter[str]()
    for contender in experiment.contenders:
        found[_memory_device(contender)] += _training_bytes(experiment.point, contender)
    return found


def _samples(experiment: Experiment) -> Iterator[tuple[tuple[str, int, int, str], int]]:
    """The samples that a training has on the host, and on its devices where they stay there, with their bytes."""
    point = experiment.point
    staying = map(_memory_device, experiment.contenders) if point.data_path == "resident" else ()
    for device in {"cpu", *staying}:
        key = (
            f"{point.dataset} {point.sequence_length} {point.embedding_rows} {point.dtype}",
            point.samples,
            point.seed,
            device,
        )
        yield key, point.samples * point.network.sample_bytes


def _memory_device(contender: Contender) -> str:
    """The device whose memory it takes."""
    return "cpu" if contender.device in SHARING_HOST else contender.device


def estimate_memory_bytes(point: Point, contender: Contender, data: Data) -> int:
    """Bytes that a training holds at once, with its samples where they stay on the device."""
    samples = data.train.samples
    resident = samples.numel() * samples.element_size() if point.data_path == "resident" else 0
    return _training_bytes(point, contender) + resident


def _training_bytes(point: Point, contender: Contender) -> int:
    """Without samples that stay: the network, of the activations those of the piece of a batch that is trained at once.

    The batches of one call come on top.
    """
    at_once = contender.lane.micro_batch or point.batch_size
    waiting = point.batch_size * contender.lane.steps_per_call - at_once
    return cost.step_bytes(point, at_once) + max(0, waiting) * point.network.sample_bytes
