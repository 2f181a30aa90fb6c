"""PyTorch's operations on a device that tests move by hand: each is queued and takes its time, and a read waits.

Tensors are those of the CPU; only the clock believes that they are elsewhere. Entered around whatever counts
operations, so that what it lets through comes here.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.fakes import FakeClock, FakeDevice

CALL_S, KERNEL_S, READ_S = 5e-6, 5e-7, 2e-6
READS = "aten::_local_scalar_dense"


class Costs(TorchDispatchMode):
    """Operations cost what a test says.

    Attributes:
        clock: of the host.
        device: that works beside the host, or none: then the host does the work itself.
        number_s: seconds of a number of the result in float32, eight times that in float64.
        call_s: seconds of the host for each operation.
    """

    def __init__(self, *, asynchronous: bool, number_s: float = 1e-7, call_s: float = CALL_S) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.device = FakeDevice(clock=self.clock, launch_s=call_s) if asynchronous else None
        self.number_s, self.call_s = number_s, call_s

    def drain(self) -> None:
        if self.device:
            self.device.synchronize()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func._schema.name == READS:
            self.drain()
            self.clock.pass_s(READ_S)
        elif self.device:
            self.device.launch(self._work_s(result))
        else:
            self.clock.pass_s(self.call_s + self._work_s(result))
        return result

    def _work_s(self, result):
        if not isinstance(result, torch.Tensor):
            return KERNEL_S
        slower = 8 if result.dtype == torch.float64 else 1
        return KERNEL_S + slower * self.number_s * result.numel()
