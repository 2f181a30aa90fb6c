"""Is an accelerator busy for as long as we say? `breakdown.busy_step_s` against the kernels of torch's profiler.

python -m tests.benchmarks.busy_time --device cuda:0
"""

import argparse
import math
import statistics

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from core.measure import breakdown, devices
from core.measure.timer import Timer
from core.measure.training import Training
from core.question.experiment import Contender
from tests.benchmarks.block_length import training

STEPS = 50


def profiled_s(run: Training, device: devices.Device) -> float:
    """Device time of one step: all kernels, copies and fills, without the operators that began them."""
    batch = run.place(run.draw())
    activities = [ProfilerActivity.CPU, getattr(ProfilerActivity, device.torch.type.upper())]
    with profile(activities=activities) as seen:
        for _ in range(STEPS):
            run.step(batch)
        device.synchronize()
    events = [
        event for event in seen.key_averages() if event.device_type != DeviceType.CPU and not event.is_user_annotation
    ]
    return sum(event.self_device_time_total for event in events) / 1e6 / STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    device = devices.open_device(Contender.parse(options.device).device)
    devices.use_strict_fp32()
    timer = Timer(device=device)
    print("| depth | step | busy (ours) | busy (profiler) | ratio |\n|---|---|---|---|---|")
    for depth in (4, 8, 11):
        run = training(device, depth)
        run.advance(300)
        step_s = timer.time(lambda run=run: run.advance(300)).seconds / 300
        ours = statistics.median(breakdown.busy_step_s(run, timer, device.torch, step_s=step_s) or (math.nan,))
        theirs = profiled_s(run, device)
        print(
            f"| {depth} | {1e6 * step_s:.0f} µs | {1e6 * ours:.0f} µs | {1e6 * theirs:.0f} µs | {ours / theirs:.2f} |"
        )


if __name__ == "__main__":
    main()
