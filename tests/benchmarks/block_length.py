"""How long must a block and its lead-in be on this device? Step times against a long block with a long lead-in.

    python -m tests.benchmarks.block_length --device cuda:0

Between blocks the device idles for 0.1 s while the host works, as it does through another contender's block. With
`--idle` blocks of 0.1 s follow after it idled for up to 8 s, as it does through blocks of slow steps on the CPU.
"""

import argparse
import os
import statistics
import time

from core.jobs.client import WAITING_POLICY

os.environ.update(WAITING_POLICY)

import torch

from core.measure import datasets, devices, networks
from core.measure.timer import MIN_BLOCK_S, Timer, lead_in_steps
from core.measure.training import Training
from core.question.experiment import Contender, Point

BLOCKS_S = (0.01, 0.03, 0.1, 0.3, 1.0)
LEAD_INS_S = (0.0, 0.005, 0.02, 0.05, 0.2)
IDLE_S = 0.1
IDLES_S = (0.1, 2.0, 8.0)
LEAD_INS_AFTER_S = (0.02, 0.1, 0.2, 0.5)
DEPTHS = (4, 8, 11)


def training(device: devices.Device, depth: int) -> Training:
    point = Point(dataset="disc", model="doubling-mlp", depth=depth, batch_size=100, shuffle=False)
    data = datasets.load_dataset("disc", samples=point.samples, seed=0)
    feed = datasets.make_feed(point, data, data.train.to(device.torch), device.torch)
    return Training(networks.build(point.network, 0).to(device.torch), feed, learning_rate=0.1)


def occupy_host(seconds: float) -> None:
    """Work on the host as another contender would, so that the device idles and the host does not."""
    matrix, end = torch.randn(256, 256), time.perf_counter() + seconds
    while time.perf_counter() < end:
        torch.mm(matrix, matrix)


def step_s(
    run: Training,
    timer: Timer,
    estimate_s: float,
    block_s: float,
    lead_in_s: float,
    repeats: int,
    idle_s: float = IDLE_S,
) -> float:
    times = []
    for _ in range(repeats):
        occupy_host(idle_s)
        run.advance(round(lead_in_s / estimate_s))
        steps = max(5, round(block_s / estimate_s))
        times.append(timer.time(lambda steps=steps: run.advance(steps)).seconds / steps)
        run.read_losses()
    return statistics.median(times)


def after_idling(device: devices.Device, timer: Timer, repeats: int) -> None:
    run = training(device, DEPTHS[1])
    run.advance(200)
    estimate = timer.time(lambda: run.advance(200)).seconds / 200
    reference = step_s(run, timer, estimate, MIN_BLOCK_S, LEAD_INS_AFTER_S[-1], 5, idle_s=0.0)
    print(f"depth {DEPTHS[1]}: {1e6 * reference:.0f} µs a step in blocks of 0.1 s without idling\n")
    print("| idled | " + " | ".join(f"lead-in {1e3 * lead_in:.0f} ms" for lead_in in LEAD_INS_AFTER_S) + " | ours |")
    print("|---" * (len(LEAD_INS_AFTER_S) + 2) + "|")
    for idle_s in IDLES_S:
        times = (step_s(run, timer, estimate, MIN_BLOCK_S, each, repeats, idle_s) for each in LEAD_INS_AFTER_S)
        ours = 1e3 * estimate * lead_in_steps(estimate, idle_s=idle_s)
        print(f"| {idle_s:g} s | " + " | ".join(f"{each / reference:.3f}" for each in times) + f" | {ours:.0f} ms |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--idle", action="store_true", help="lead-ins after the device idled for longer")
    options = parser.parse_args()
    device = devices.open_device(Contender.parse(options.device).device)
    timer = Timer(device=device)
    devices.use_strict_fp32()
    if options.idle:
        after_idling(device, timer, options.repeats)
    for depth in () if options.idle else DEPTHS:
        run = training(device, depth)
        run.advance(200)
        estimate = timer.time(lambda run=run: run.advance(200)).seconds / 200
        reference = step_s(run, timer, estimate, BLOCKS_S[-1], LEAD_INS_S[-1], 5)
        print(f"\ndepth {depth}: {1e6 * reference:.0f} µs a step in blocks of 1 s after a lead-in of 0.2 s\n")
        print("| lead-in | " + " | ".join(f"block {1e3 * block:.0f} ms" for block in BLOCKS_S) + " |")
        print("|---" * (len(BLOCKS_S) + 1) + "|")
        for lead_in in LEAD_INS_S:
            ratios = [step_s(run, timer, estimate, block, lead_in, options.repeats) / reference for block in BLOCKS_S]
            print(f"| {1e3 * lead_in:.0f} ms | " + " | ".join(f"{ratio:.3f}" for ratio in ratios) + " |")


if __name__ == "__main__":
    main()
