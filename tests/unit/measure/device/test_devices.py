"""Discovery and description of every kind of device, without having one."""

from types import SimpleNamespace

import pytest
import torch

from core.errors import DeviceUnavailable
from core.measure import devices


@pytest.fixture
def accelerator(monkeypatch):
    """Make PyTorch claim accelerators of one type."""

    def claim(kind: str, count: int = 1, **version: object) -> None:
        found = torch.device(kind)
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: found)
        monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
        monkeypatch.setattr(torch.accelerator, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "get_arch_list", list)
        properties = lambda index: SimpleNamespace(name=f"Card {index}", total_memory=80 * 2**30)  # noqa: E731
        monkeypatch.setattr(torch, "get_device_module", lambda _: SimpleNamespace(get_device_properties=properties))
        for name in ("cuda", "hip"):
            monkeypatch.setattr(torch.version, name, version.get(name))

    return claim


@pytest.fixture
def nothing(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: None)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)


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


def test_any_other_type_that_pytorch_names_is_a_device_with_its_own_name(accelerator, monkeypatch):
    accelerator("hpu", 2)
    assert kinds() == [("other:0", "other", "hpu: Card 0"), ("other:1", "other", "hpu: Card 1")]
    assert devices.open_device("other:1").torch == torch.device("hpu:1")
    monkeypatch.setattr(torch, "get_device_module", lambda _: SimpleNamespace())
    assert kinds()[0] == ("other:0", "other", "hpu: device 0")
    assert devices.discover()[1].memory_bytes > 2**20


def test_a_card_for_which_this_pytorch_has_no_kernels_is_left_out(accelerator, monkeypatch):
    accelerator("cuda", 2, cuda="13.0")
    cards = SimpleNamespace(name="Tesla K80", major=3, minor=7), SimpleNamespace(name="H100", major=9, minor=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: cards[index])
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_75", "sm_90"])
    assert [device for device, *_ in kinds()] == ["cuda:1"]
    with pytest.raises(DeviceUnavailable, match=r"cuda:0 \(Tesla K80, compute capability 3\.7\) is left out"):
        devices.find("cuda:0")


def test_a_device_is_found_by_its_name_or_refused_with_those_there_are(accelerator):
    accelerator("cuda", 2, cuda="13.0")
    assert devices.open_device("cuda:1").torch == torch.device("cuda:1")
    with pytest.raises(DeviceUnavailable, match=r"cuda:2 is not on this machine: PyTorch sees cpu, cuda:0, cuda:1\.$"):
        devices.find("cuda:2")


def test_without_an_accelerator_it_is_said_once_that_there_is_none(monkeypatch):
    alone = devices.discover()[:1]
    monkeypatch.setattr(devices, "discover", lambda: alone)
    monkeypatch.setattr(devices.gpu, "missing_gpu_hint", lambda: "PyTorch sees no accelerator.")
    with pytest.raises(DeviceUnavailable) as refused:
        devices.find("cuda:0")
    assert str(refused.value) == "The device cuda:0 is not on this machine. PyTorch sees no accelerator."


def test_memory_of_a_card_is_asked_of_the_card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (7, 8) if device.index == 1 else (1, 2))
    assert devices.Device(torch.device("cuda:1")).free_bytes() == 7
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 50 if device.index == 1 else 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 30 if device.index == 1 else 0)
    assert devices.Device(torch.device("cuda:1")).free_bytes() == 7 + 20
    assert devices.Device(torch.device("cpu")).free_bytes() > 2**20


def test_an_intel_gpu_whose_driver_does_not_tell_free_memory_has_all_that_is_not_used(monkeypatch):
    def refuse(device):
        raise RuntimeError(
            "The device (Intel(R) Arc(TM) B580 Graphics) doesn't support querying the available free memory."
        )

    monkeypatch.setattr(torch.xpu, "mem_get_info", refuse)
    monkeypatch.setattr(torch.xpu, "memory_allocated", lambda device: 30)
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda device: SimpleNamespace(total_memory=100))
    assert devices.Device(torch.device("xpu:0")).free_bytes() == 70


def test_strict_fp32_is_strict_whatever_was_set_before_by_either_api():
    backends = torch.backends
    try:
        for disturb in (
            lambda: setattr(backends, "fp32_precision", "tf32"),
            lambda: torch.set_float32_matmul_precision("medium"),
            lambda: setattr(backends.cudnn, "allow_tf32", True),
            lambda: setattr(backends.cuda.matmul, "fp32_precision", "tf32"),
        ):
            disturb()
            devices.use_strict_fp32()
            kinds_of_operation = (backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn, backends.mkldnn.matmul)
            assert [kind.fp32_precision for kind in kinds_of_operation] == ["ieee"] * 4
            assert torch.get_float32_matmul_precision() == "highest", "torch.compile reads it"
            devices.use_tf32(True)
            assert (backends.cuda.matmul.fp32_precision, backends.cudnn.conv.fp32_precision) == ("tf32", "tf32")
            assert (torch.get_float32_matmul_precision(), backends.cudnn.allow_tf32) == ("high", True)
    finally:
        devices.use_strict_fp32()


@pytest.mark.parametrize("kind", ["cuda", "xpu", "mps"])
def test_memory_is_given_back_to_a_card_and_nothing_is_asked_of_the_cpu(monkeypatch, kind):
    emptied = []
    monkeypatch.setattr(torch.get_device_module(kind), "empty_cache", lambda: emptied.append(True))
    devices.Device(torch.device("cpu")).release()
    assert emptied == []
    devices.Device(torch.device(kind, 0)).release()
    assert emptied == [True]


def test_a_card_that_takes_nothing_back_any_more_costs_no_row(monkeypatch):
    asked = []

    def refuse():
        asked.append(True)
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "empty_cache", refuse)
    devices.Device(torch.device("cuda:0")).release()
    assert asked
