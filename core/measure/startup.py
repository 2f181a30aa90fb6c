"""The cost of the first use of a device, measured in a process that has used nothing before.

    python -m core.measure.startup cuda:0+bf16 --layers convolution

The measuring process cannot measure this. Listing the devices starts the driver before any clock. One device profits
from libraries that another loaded, and fully connected layers would pay for those of convolutions. The remaining
start-up of a training (moving its data, building its network, its first step) depends on its size and is timed there. A
CPU needs none of this.
"""

import argparse
import functools
import json
import logging
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from ..files.project import START_FOLDER, locate_module
from ..question.experiment import Contender, Point
from ..question.models import Network
from . import devices, networks
from .devices import Device
from .execution import Step

SMALL = {
    "fully connected": Point(dataset="digits", model="mlp", hidden_size=16).network,
    "convolution": Point(dataset="fashion-mnist", model="cnn").network,
    "recurrent": Point(dataset="digits", model="lstm", hidden_size=16, depth=1).network,
    "attention": Point(dataset="digits", model="transformer", hidden_size=16, depth=1).network,
}
"""Networks by kind of layers, so small that a step only costs the loading of libraries."""

LAYER_KINDS = {
    "Conv2d": "convolution",
    "FusedLayers": "recurrent",
    "CellLoop": "recurrent",
    "EncoderBlock": "attention",
}
"""Module of a layer → key of `SMALL`; other layers are fully connected or compute nothing."""

BATCH = 4

PATIENCE_S = 60.0
"""Seconds after which a process is ended: importing torch from a cold disk takes ten, and so may a first use."""

READINGS, READINGS_S = 3, 10.0
"""Number of processes to start one after the other, and seconds after which no further one starts."""

_log = logging.getLogger(__name__)


def cold_s(contender: Contender, network: Network) -> tuple[float, ...]:
    """Return the seconds of a device's first use in each of up to three fresh processes, with one kind of layers.

    The processes are started once per device, kind of layers and variant; the first may read its libraries from a cold
    disk. The result is empty on a CPU, without layers, and after a failure; the measuring process then times the first
    use.
    """
    if contender.on_host or not network.layers:
        return ()
    lane = replace(contender.lane, execution="eager", steps_per_call=1)  # what compiling takes has a column of its own
    return _measure_in_fresh_processes(Contender(device=contender.device, lane=lane), layers(network))


def layers(network: Network) -> str:
    """Return the kind of a network's layers, a key of `SMALL`."""
    names = (layer.module[0] for layer in network.layers)
    return next((LAYER_KINDS[name] for name in names if name in LAYER_KINDS), "fully connected")


@functools.cache
def _measure_in_fresh_processes(contender: Contender, kind: str) -> tuple[float, ...]:
    """Return up to three readings; fewer if one fails or their total time is over."""
    began, readings = time.monotonic(), list[float]()
    while len(readings) < READINGS and time.monotonic() - began < READINGS_S:
        reading = _measure_in_fresh_process(contender, kind)
        if reading is None:
            break
        readings.append(reading)
    return tuple(readings)


def _measure_in_fresh_process(contender: Contender, kind: str) -> float | None:
    command = [sys.executable, "-m", locate_module(__package__, "startup"), str(contender), "--layers", kind]
    try:
        done = subprocess.run(
            command,
            cwd=START_FOLDER,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        said = json.loads(done.stdout.splitlines()[-1])
        return float(said["context_s"] + said["step_s"])
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, LookupError) as error:
        _log.warning("The first use of %s could not be timed in a process of its own: %s", contender, error)
        return None


def first_use(contender: Contender, kind: str) -> dict[str, float]:
    """Use a device in this process, which must not have used one before.

    Returns:
        Seconds after the import of torch; imports for the device itself count, as on a CPU. `context_s`: up to the
        first number on the device (driver, context, memory); `step_s`: a network and its first step after that
        (libraries, kernels).
    """
    device = Device(devices.to_torch_device(contender.device))
    devices.use_tf32(contender.lane.precision == "tf32")
    torch.backends.cudnn.benchmark = contender.lane.cudnn == "benchmark"
    began = time.perf_counter()
    torch.zeros(1, device=device.torch)
    device.synchronize()
    there = time.perf_counter()
    network, lane = SMALL[kind], contender.lane
    step = Step(networks.build(network, seed=0).to(device.torch), learning_rate=0.1, lane=lane)
    samples, labels = torch.zeros(BATCH, *network.input_shape), torch.zeros(BATCH, dtype=torch.int64)
    samples, labels = samples.to(device.torch), labels.to(device.torch)
    step.train((samples.index_select(0, labels), labels))
    device.synchronize()
    return {"context_s": there - began, "step_s": time.perf_counter() - there}


def report_first_use(arguments: Sequence[str] | None = None) -> None:
    """Print the seconds of the first use as JSON."""
    parser = argparse.ArgumentParser(prog=f"{__package__}.startup", description="Time the first use of a device.")
    parser.add_argument("contender", type=Contender.parse, help="device and variant, such as cuda:0 or cuda:0+bf16")
    parser.add_argument("--layers", choices=tuple(SMALL), default="fully connected")
    asked = parser.parse_args(arguments)
    sys.stdout.write(json.dumps(first_use(asked.contender, asked.layers)) + "\n")


if __name__ == "__main__":
    report_first_use()
