"""What every figure rests on and only a real accelerator can show: the timer, the drain, strict fp32, and NVML."""

import math
from functools import partial

import pytest
import torch

from core.measure import devices, gpu
from core.measure.timer import Timer
from core.question.experiment import Point
from tests.gpu.accelerators import ACCELERATOR_MARKS, POINT, start_training, waits

pytestmark = ACCELERATOR_MARKS


class Undrained:
    """A device that nobody waits for."""

    def synchronize(self) -> None:
        """Do not wait: the mistake."""


def test_a_matrix_product_timed_without_draining_falls_far_short(device):
    matrix = torch.randn(8192, 8192, device=device.torch)

    def multiply() -> None:
        for _ in range(20):
            torch.mm(matrix, matrix)

    Timer(device=device).time(multiply)
    drained = Timer(device=device).time(multiply).seconds
    device.synchronize()
    undrained = Timer(device=Undrained()).time(multiply).seconds
    device.synchronize()
    assert undrained < 0.5 * drained


def test_the_timer_agrees_with_the_devices_own_events(device):
    if device.torch.type == "mps":
        pytest.skip("MPS events are not reliable")
    module = torch.get_device_module(device.torch.type)
    matrix = torch.randn(8192, 8192, device=device.torch)
    begin, end = (module.Event(enable_timing=True) for _ in range(2))

    def multiply() -> None:
        begin.record()
        for _ in range(20):
            torch.mm(matrix, matrix)
        end.record()

    Timer(device=device).time(multiply)
    seconds = Timer(device=device).time(multiply).seconds
    assert seconds == pytest.approx(begin.elapsed_time(end) / 1e3, rel=0.1)


def test_the_device_is_done_when_it_says_so(device):
    assert devices.share_left(device, partial(devices._queue, device.torch)) < devices.NOTICEABLE / 2


def test_an_nvidia_card_tells_of_itself_before_in_and_after_a_block(device):
    """Other processes are not listed in some containers, and not every card counts for how long it was held back."""
    if device.torch.type != "cuda" or torch.version.hip:
        pytest.skip("only NVIDIA's cards answer to NVML")
    watch, big = gpu.GpuMonitor(device.torch), start_training(device)
    limits = watch.limits
    watch.begin()
    big.advance(500)
    device.synchronize()
    around = watch.end()
    print(limits, around)
    unknown = {name for name, value in around.items() if value is None}
    assert unknown <= {"block_other_processes", "block_throttled_s"}
    assert 0 < around["block_power_w"] <= 1.1 * (limits["device_power_limit_w"] or math.inf)  # laptops tell no limit
    assert 0 < around["block_clock_mhz"] <= (limits["device_clock_limit_mhz"] or math.inf)


@pytest.mark.parametrize("data_path", ["resident", "per_batch"])
def test_no_step_waits_for_the_device(device, data_path):
    """CUDA raises at every synchronizing call; copies from pageable memory do wait and are allowed for `per_batch`."""
    if device.torch.type != "cuda":
        pytest.skip("only CUDA can report hidden waits")
    started = start_training(device, Point(**{**vars(POINT), "data_path": data_path}))
    started.read_losses()
    with waits("error" if data_path == "resident" else "warn"):
        started.advance(8)  # stays within an epoch: the order of the next one is copied from pageable memory
    assert len(started.read_losses()) == 8


def test_arithmetic_is_strict_fp32(device):
    a, b = torch.randn(512, 512, dtype=torch.float64), torch.randn(512, 512, dtype=torch.float64)
    product = torch.mm(a.float().to(device.torch), b.float().to(device.torch)).cpu().double()
    error = float(((product - a @ b).abs().max()) / (a @ b).abs().max())
    assert error < 1e-5  # TF32 keeps 10 bits of the mantissa: about 1e-3
