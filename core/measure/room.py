"""Whether a training fits into the memory of its device, before the system has to kill someone for it."""

from core import units
from core.errors import OutOfMemory
from core.measure.data.datasets import Data
from core.measure.device.devices import Device
from core.question.experiment import Contender, Point


def require(point: Point, contender: Contender, data: Data, device: Device) -> None:
    """Refuse a training that cannot fit.

    Raises:
        OutOfMemory: network, batch and data need more than the device has free.
    """
    needed, free = needed_bytes(point, contender, data), device.free_bytes()
    if needed > free:
        have = f"{units.memory(free)} of {contender.device} are free"
        raise OutOfMemory(f"The training needs about {units.memory(needed)}, but {have}.")


def needed_bytes(point: Point, contender: Contender, data: Data) -> int:
    """Bytes that a training holds at once: of the activations, those of the piece of a batch that is trained at once.

    The batches of one call, the network, and the samples where they stay on the device come on top.
    """
    at_once, samples = contender.lane.micro_batch or point.batch_size, data.train.samples
    waiting = point.batch_size * contender.lane.steps_per_call - at_once
    each = samples[:1].numel() * samples.element_size()
    resident = len(samples) * each if point.data_path == "resident" else 0
    return point.network.memory_bytes(at_once) + max(0, waiting) * each + resident
