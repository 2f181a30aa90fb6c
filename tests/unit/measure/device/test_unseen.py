"""Why an accelerator is not seen, in the words that help where it is missing."""

import sys
from types import SimpleNamespace

import pynvml
import pytest
import torch

from core.measure import gpu


@pytest.fixture
def machine(monkeypatch):
    """A Linux machine on which PyTorch, built for CUDA 13.0, sees no accelerator, and which has no driver."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(gpu.shutil, "which", lambda name: f"/usr/bin/{name}" if name in machine.tools else None)
    monkeypatch.setattr(gpu.platform, "system", lambda: machine.system)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    for name in (*gpu.HIDING, *gpu.NOTEBOOK_HOSTS):
        monkeypatch.delenv(name, raising=False)
    machine = SimpleNamespace(tools=(), system="Linux")
    monkeypatch.setattr(gpu, "_find_vendors", lambda: set(machine.vendors))
    machine.vendors = ()
    return machine


CUDA_13 = "pip install --force-reinstall torch torchvision --index-url https://download.pytorch.org/whl/cu130"
CUDA_12 = "pip install --force-reinstall torch torchvision --index-url https://download.pytorch.org/whl/cu126"
ROCM = "pip install --force-reinstall torch torchvision --index-url https://download.pytorch.org/whl/rocm7.2"
XPU = "pip install --force-reinstall torch torchvision --index-url https://download.pytorch.org/whl/xpu"


def nvidia(monkeypatch, *, driver="580.65.06", cuda=13_000, error=0, capability=(8, 9)):
    """What NVML says where it is installed."""

    def start():
        if error:
            raise pynvml.NVMLError(error)

    library = SimpleNamespace(
        nvmlInit=start,
        nvmlSystemGetDriverVersion=lambda: driver,
        nvmlSystemGetCudaDriverVersion=lambda: cuda,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetCudaComputeCapability=lambda _: list(capability),
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)


@pytest.mark.parametrize(
    ("tool", "cuda", "system", "words"),
    [
        ("nvidia-smi", None, "Linux", "built without CUDA"),
        ("nvidia-smi", "13.0", "Linux", "CUDA 13.0 cannot use it. Update the driver to version 580 or later"),
        ("rocm-smi", "13.0", "Linux", "built without ROCm"),
        ("amd-smi", "13.0", "Linux", "built without ROCm"),
        ("", "13.0", "Darwin", "MPS needs Apple silicon"),
        ("", "13.0", "Linux", "PyTorch sees no GPU on this machine"),
    ],
)
def test_a_missing_accelerator_is_explained(machine, monkeypatch, tool, cuda, system, words):
    machine.tools, machine.system = (tool,), system
    monkeypatch.setattr(torch.version, "cuda", cuda)
    assert words in gpu.missing_gpu_hint()


@pytest.mark.parametrize(
    ("driver", "capability", "built", "command"),
    [
        (("581.80", 13_000), (8, 9), None, CUDA_13),  # an RTX 4050 on Windows, where PyPI's PyTorch has no CUDA
        (("550.54.15", 12_040), (7, 5), "13.0", CUDA_12),  # a rented T4 with an older driver
        (("550.54.15", 12_040), (7, 5), None, CUDA_12),
        (("580.65.06", 13_000), (6, 1), None, CUDA_12),  # a GTX 1080, for which CUDA 13 makes no code
        (("470.256.02", 11_040), (7, 5), None, "Update it to version 580 or later."),
    ],
)
def test_the_hint_ends_with_one_command_for_driver_and_card(machine, monkeypatch, driver, capability, built, command):
    nvidia(monkeypatch, driver=driver[0], cuda=driver[1], capability=capability)
    monkeypatch.setattr(torch.version, "cuda", built)
    assert gpu.missing_gpu_hint().endswith(command)


@pytest.mark.parametrize(("vendor", "ending"), [("AMD", ROCM), ("Intel", XPU), ("NVIDIA", "then restart.")])
def test_a_card_that_the_kernel_knows_is_seen_without_its_tools(machine, vendor, ending):
    machine.vendors = (vendor,)
    assert vendor in gpu.missing_gpu_hint()
    assert gpu.missing_gpu_hint().endswith(ending)


def test_with_uv_the_command_is_uvs(machine, monkeypatch):
    machine.tools, machine.vendors = ("uv",), ("AMD",)
    assert gpu.missing_gpu_hint().endswith("uv pip install --reinstall torch torchvision --torch-backend=rocm7.2")


def test_a_virtual_environment_on_colab_is_named_as_the_reason(machine, monkeypatch):
    nvidia(monkeypatch, driver="550.54.15", cuda=12_040)
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab_20261101")
    monkeypatch.setattr(gpu.sys, "prefix", "/content/.venv")
    assert "hides the PyTorch that Colab has" in gpu.missing_gpu_hint()
    assert gpu.missing_gpu_hint().endswith("pip install -r requirements.txt")


def test_makers_are_read_from_the_kernels_files(tmp_path):
    for number, vendor in enumerate(("0x8086", "0x1a03", "0x10de")):
        card = tmp_path / f"sys/class/drm/card{number}/device"
        card.mkdir(parents=True)
        (card / "vendor").write_text(f"{vendor}\n")
    assert gpu._find_vendors(tmp_path) == {"Intel", "NVIDIA"}
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    assert gpu._find_vendors(tmp_path) == {"Intel", "NVIDIA", "AMD"}
    assert gpu._find_vendors(tmp_path / "none") == set()


def test_a_rocm_build_that_may_not_open_the_card_says_who_may(machine, monkeypatch):
    machine.vendors = ("AMD",)
    monkeypatch.setattr(torch.version, "hip", "7.2")
    assert "members of the groups render and video" in gpu.missing_gpu_hint()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "docker run --gpus all"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Restart the machine"),
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "PyTorch sees no GPU on this machine"),
    ],
)
def test_what_nvml_says_of_its_driver_is_told(machine, monkeypatch, error, words):
    nvidia(monkeypatch, error=error)
    assert words in gpu.missing_gpu_hint()


@pytest.mark.parametrize(("value", "told"), [("", "set and empty"), ("-1", "set to '-1'"), ("7", "set to '7'")])
def test_a_variable_that_hides_the_gpus_is_named(machine, monkeypatch, value, told):
    nvidia(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert gpu.missing_gpu_hint() == (
        f"The variable CUDA_VISIBLE_DEVICES is {told}, which hides every GPU from PyTorch. "
        "Unset it, or name an existing GPU."
    )


def test_a_variable_hides_nothing_where_there_is_no_driver(machine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "PyTorch sees no GPU on this machine" in gpu.missing_gpu_hint()


def test_a_variable_of_amd_is_named_too(machine, monkeypatch):
    machine.tools = ("rocm-smi",)
    monkeypatch.setattr(torch.version, "hip", "7.1")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "")
    assert "HIP_VISIBLE_DEVICES is set and empty" in gpu.missing_gpu_hint()


@pytest.mark.parametrize(
    ("capability", "built", "runs"),
    [
        ((8, 6), ["sm_80"], True),
        ((8, 0), ["sm_86"], False),
        ((9, 0), ["sm_80", "sm_86"], False),
        ((9, 0), ["sm_80", "compute_80"], True),
        ((7, 0), ["sm_75", "compute_75"], False),
        ((9, 0), ["sm_90a"], True),
        ((12, 0), ["sm_90a", "sm_100a"], False),
        ((10, 3), ["sm_100f"], True),
        ((12, 1), ["compute_120f"], True),
        ((13, 0), ["compute_120f"], False),
        ((12, 0), ["sm_75", "sm_120"], True),
        ((3, 7), ["gfx90a", "sm_75"], False),
    ],
)
def test_kernels_run_on_their_own_major_version_and_ptx_on_all_later_ones(capability, built, runs):
    assert gpu.has_kernels(capability, built) is runs


@pytest.fixture
def card(monkeypatch):
    """One GPU that PyTorch sees, and what it was built for."""

    def there(built, **properties):
        monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
        monkeypatch.setattr(
            torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda")
        )
        monkeypatch.setattr(torch.accelerator, "device_count", lambda: 1)
        monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: built)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(**properties))

    monkeypatch.setattr(torch.version, "hip", None)
    return there


def test_a_card_without_kernels_is_named_with_those_there_are(card):
    card(["sm_75", "sm_80"], name="Tesla K80", major=3, minor=7)
    assert gpu.missing_gpu_hint() == (
        "cuda:0 (Tesla K80, compute capability 3.7) is left out: this PyTorch has kernels for sm_75, sm_80 only. "
        "No build of PyTorch 2.9 or later has kernels for it."
    )


def test_the_build_for_a_card_without_kernels_depends_on_the_card(card, monkeypatch):
    monkeypatch.setattr(gpu.shutil, "which", lambda _: None)
    card(["sm_75", "sm_120"], name="GTX 1080", major=6, minor=1)
    assert gpu.missing_gpu_hint().endswith(CUDA_12)
    card(["sm_50", "sm_90"], name="RTX 5090", major=12, minor=0)
    assert gpu.missing_gpu_hint().endswith(CUDA_13)


@pytest.mark.parametrize(("architecture", "left_out"), [("gfx90a:sramecc+:xnack-", False), ("gfx1103", True)])
def test_an_amd_card_needs_kernels_of_its_own_architecture(card, monkeypatch, architecture, left_out):
    monkeypatch.setattr(torch.version, "hip", "7.1")
    card(["gfx90a", "gfx942"], name="AMD", gcnArchName=architecture, major=9, minor=0)
    assert ("gfx1103) is left out" in gpu.missing_gpu_hint()) is left_out


def test_where_an_accelerator_can_be_used_nothing_needs_explaining(card):
    card(["sm_90"], name="H100", major=9, minor=0)
    assert gpu.missing_gpu_hint() == ""
    card([], name="H100", major=9, minor=0)
    assert gpu.missing_gpu_hint() == ""
