"""What makes torch_xla 2.9 answer as `torch.accelerator` asks, which it does not do by itself.

XLA records a step and runs it later, compiled as a whole; it has to be told where a step ends. Nothing of this is in
the product: any backend that answers `torch.accelerator` is a device for it.
"""

import os
import types

os.environ.setdefault("PJRT_DEVICE", "CPU")

import torch
import torch_xla
import torch_xla.core.xla_model as xm
from torch.optim.optimizer import register_optimizer_step_post_hook

MEMORY_BYTES = 2**34


def drain(_: object = None) -> None:
    """Run what was recorded and wait for it; `torch_xla.sync(wait=True)` alone returns too early."""
    torch_xla.sync()
    xm.wait_device_ops()


def connect() -> None:
    """Let `torch.accelerator` speak of XLA's device, and end a recorded step where the optimizer has stepped."""
    torch_xla.device()  # before the first backward pass of any device: autograd counts the devices once
    properties = types.SimpleNamespace(name="XLA on the CPU", total_memory=MEMORY_BYTES)
    torch._register_device_module("xla", types.SimpleNamespace(get_device_properties=lambda _: properties))
    accelerator = torch.accelerator
    accelerator.current_accelerator = lambda check_available=False: torch.device("xla")
    accelerator.is_available = lambda: True
    accelerator.device_count = lambda: 1
    accelerator.synchronize = drain
    accelerator.memory.empty_cache = lambda: None
    register_optimizer_step_post_hook(lambda *_: torch_xla.sync())
