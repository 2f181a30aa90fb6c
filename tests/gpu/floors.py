"""The floor of a step: the shortest kernel, alone and in a graph, and the bandwidth of memory.

    python -m tests.gpu.floors --device cuda:0

No step of so many kernels and bytes can be shorter than these say. Medians of 20 readings each.
"""

import argparse
import statistics
from collections.abc import Callable

import torch

from core.measure import devices
from core.measure.timer import Timer

KERNELS, READINGS = 1_000, 20
BYTES = 2**30


def median_s(timer: Timer, work: Callable[[], object]) -> float:
    timer.time(work)
    return statistics.median(timer.time(work).seconds for _ in range(READINGS))


def graph_of(work: Callable[[], object]) -> torch.cuda.CUDAGraph:
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    device = devices.open_device(parser.parse_args().device)
    timer, one = Timer(device=device), torch.zeros(1, device=device.torch)

    def launch() -> None:
        for _ in range(KERNELS):
            one.add_(1)

    print(f"a kernel that is launched: {1e6 * median_s(timer, launch) / KERNELS:.2f} µs")
    if device.torch.type == "cuda":
        print(f"a kernel in a graph: {1e6 * median_s(timer, graph_of(launch).replay) / KERNELS:.2f} µs")
    big = torch.zeros(BYTES // 4 // (1 if device.torch.type != "cpu" else 16), device=device.torch)
    seconds = median_s(timer, lambda: big.add_(1))
    print(f"bandwidth, read and written: {2 * big.nbytes / seconds / 1e9:.1f} GB/s")


if __name__ == "__main__":
    main()
