"""A device that tests marked `gpu` train on."""

import pytest

from core.measure import devices
from tests.gpu.accelerators import ACCELERATORS


@pytest.fixture(params=ACCELERATORS)
def device(request) -> devices.Device:
    devices.initialise(request.param)
    devices.use_strict_fp32()
    return devices.open_device(request.param)
