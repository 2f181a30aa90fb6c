"""Discovery and description of every kind of device, without having one."""

from types import SimpleNamespace

import pytest
import torch

from core.errors import DeviceUnavailable
from core.measure.device import devices


@pytest.fixture
def accelerator(monkeypatch):
    """Make PyTorch claim accelerators of one type."""

    def claim(kind: str, count: int = 1, **version: object) -> None:
        found = torch.device(kind)
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: found)
        monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
        monkeypatch.setattr(torch.accelerator, "device_count", lambda: count)
        properties = lambda index: SimpleNamespace(name=f"Card {index}", total_memory=80 * 2**30)  # noqa: E731
        monkeypatch.setattr(torch, "get_device_module", lambda _: SimpleNamespace(get_device_properties=properties))
        for name in ("cuda", "hip"):
            monkeypatch.setattr(torch.version, name, version.get(name))

    return claim


@pytest.fixture
def nothing(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: None)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(devices.shutil, "which", lambda _: None)
    monkeypatch.setattr(devices.platform, "system", lambda: "Linux")


def kinds() -> list[tuple[str, str, str]]:
    return [(info.device, info.kind, info.name) for info in devices.discover()[1:]]


def test_the_cpu_is_always_there_and_first(nothing):
    (cpu,) = devices.discover()
    assert (cpu.device, cpu.kind) == ("cpu", "cpu")
    assert cpu.memory_bytes > 0
    assert cpu.name


def test_every_cuda_card_has_a_number(accelerator):
    accelerator("cuda", 2, cuda="13.0")
    assert kinds() == [("cuda:0", "cuda", "Card 0"), ("cuda:1", "cuda", "Card 1")]
    assert devices.discover()[1].driver.startswith("CUDA 13.0, cuDNN ")


def test_an_amd_card_is_called_cuda_by_pytorch_and_rocm_by_us(accelerator):
    accelerator("cuda", 1, hip="7.1")
    assert kinds() == [("cuda:0", "rocm", "Card 0")]
    assert devices.discover()[1].driver == "ROCm 7.1"


def test_an_intel_card_is_xpu(accelerator):
    accelerator("xpu", 1)
    assert kinds() == [("xpu:0", "xpu", "Card 0")]


def test_an_apple_gpu_is_mps(accelerator, monkeypatch):
    accelerator("mps")
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 12 * 2**30)
    ((device, kind, name),) = kinds()
    assert (device, kind) == ("mps", "mps")
    assert name.endswith(" GPU")


def test_a_kind_that_is_not_supported_is_left_out(accelerator):
    accelerator("hpu")
    assert kinds() == []


def test_a_device_is_found_by_its_name_or_refused_with_those_there_are(accelerator):
    accelerator("cuda", 2, cuda="13.0")
    assert devices.open_device("cuda:1").torch == torch.device("cuda:1")
    with pytest.raises(DeviceUnavailable, match=r"cuda:2 is not on this machine, PyTorch sees cpu, cuda:0, cuda:1\.$"):
        devices.find("cuda:2")


@pytest.mark.parametrize(
    ("tool", "cuda", "system", "words"),
    [
        ("nvidia-smi", None, "Linux", "built without CUDA"),
        ("nvidia-smi", "13.0", "Linux", "CUDA 13.0 cannot use it: update the driver"),
        ("rocm-smi", "13.0", "Linux", "built without ROCm"),
        ("", "13.0", "Darwin", "MPS needs Apple silicon"),
        ("", "13.0", "Linux", "there is no NVIDIA or AMD driver"),
    ],
)
def test_a_missing_accelerator_is_explained(nothing, monkeypatch, tool, cuda, system, words):
    monkeypatch.setattr(devices.shutil, "which", lambda name: f"/usr/bin/{name}" if name == tool else None)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(devices.platform, "system", lambda: system)
    assert words in devices.hint()


def test_where_an_accelerator_is_seen_nothing_needs_explaining(accelerator):
    accelerator("cuda")
    assert devices.hint() == ""


def test_memory_of_a_card_is_asked_of_the_card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (7, 8) if device.index == 1 else (1, 2))
    assert devices.Device(torch.device("cuda:1")).free_bytes() == 7
    assert devices.Device(torch.device("cpu")).free_bytes() > 2**20


@pytest.mark.parametrize("kind", ["cuda", "xpu", "mps"])
def test_memory_is_given_back_to_a_card_and_nothing_is_asked_of_the_cpu(monkeypatch, kind):
    emptied = []
    monkeypatch.setattr(torch.get_device_module(kind), "empty_cache", lambda: emptied.append(True))
    devices.Device(torch.device("cpu")).release()
    assert emptied == []
    devices.Device(torch.device(kind, 0)).release()
    assert emptied == [True]


def test_a_card_that_takes_nothing_back_any_more_costs_no_row(monkeypatch):
    def refuse():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "empty_cache", refuse)
    devices.Device(torch.device("cuda:0")).release()
