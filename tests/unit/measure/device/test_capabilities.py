"""Each kind of device says which lanes it has not, and why."""

import pytest

from core.measure import devices
from core.question import lanes
from core.question.lanes import Lane


def test_a_cpu_with_a_compiler_lacks_only_what_gpus_have(monkeypatch, tmp_path):
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(devices.shutil, "which", lambda name: "/usr/bin/g++" if name == "g++" else None)
    monkeypatch.setattr(devices, "why_not", lambda _: "")
    monkeypatch.setattr(devices.sysconfig, "get_path", lambda _: str(tmp_path))
    assert devices.refusals("cpu").keys() == {"graph", "tf32", "fp16", "benchmark"}


def test_without_a_compiler_nothing_is_compiled_for_the_cpu(monkeypatch):
    monkeypatch.setattr(devices.shutil, "which", lambda _: None)
    assert "none of g++, clang++, c++ was found" in devices.refusals("cpu")["compiled"]


def test_without_pythons_header_files_neither(monkeypatch, tmp_path):
    monkeypatch.setattr(devices.shutil, "which", lambda _: "/usr/bin/g++")
    monkeypatch.setattr(devices.sysconfig, "get_path", lambda _: str(tmp_path))
    assert "Python.h" in devices.refusals("cpu")["compiled"]


def test_on_windows_it_is_the_compiler_of_visual_studio(monkeypatch):
    monkeypatch.setattr(devices.sys, "platform", "win32")
    monkeypatch.setattr(devices.shutil, "which", lambda _: None)
    assert "Visual Studio" in devices.refusals("cpu")["compiled"]


@pytest.fixture
def toolchain(monkeypatch, tmp_path):
    """A machine with Triton, a C compiler and the header files of Python."""
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(devices.shutil, "which", lambda name: "/usr/bin/gcc" if name == "gcc" else None)
    monkeypatch.setattr(devices.sysconfig, "get_path", lambda _: str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "capability", "lacks"),
    [
        ("cuda", (9, 0), {"kept"}),
        ("cuda", (7, 5), {"tf32", "bf16", "kept"}),
        ("cuda", (7, 0), {"tf32", "bf16", "kept"}),
        ("cuda", (6, 1), {"compiled", "tf32", "bf16", "fp16", "kept"}),
        ("rocm", (9, 4), {"tf32", "kept"}),
        ("mps", (0, 0), {"compiled", "graph", "tf32", "bf16", "fp16", "benchmark", "kept"}),
        ("xpu", (0, 0), {"graph", "tf32", "fp16", "benchmark", "kept"}),
    ],
)
@pytest.mark.usefixtures("toolchain")
def test_gpus_differ_by_kind_and_generation(kind, capability, lacks):
    assert devices.refusals(kind, capability).keys() == lacks


def test_without_triton_nothing_is_compiled_for_a_gpu(monkeypatch):
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda _: None)
    assert "triton" in devices.refusals("cuda", (9, 0))["compiled"]


@pytest.mark.usefixtures("toolchain")
def test_triton_needs_a_c_compiler_and_the_header_files_of_python(monkeypatch, tmp_path):
    assert "compiled" not in devices.refusals("rocm")
    monkeypatch.setattr(devices.shutil, "which", lambda _: None)
    assert "none of gcc, clang was found" in devices.refusals("cuda", (9, 0))["compiled"]
    monkeypatch.setenv("CC", "mycc")
    monkeypatch.setattr(devices.shutil, "which", lambda name: "/opt/mycc" if name == "mycc" else None)
    assert "compiled" not in devices.refusals("cuda", (9, 0))
    (tmp_path / "Python.h").unlink()
    assert "Python.h" in devices.refusals("cuda", (9, 0))["compiled"]


def test_float16_is_refused_in_a_sentence_where_it_is_not_trained_in():
    assert lanes.why_not(Lane(precision="fp16"), devices.refusals("cpu"), "the CPU") == (
        "Training on the CPU is not possible: training in float16 is not offered for CPU here, "
        "only for NVIDIA and AMD GPUs."
    )
    assert "compute capability 7.0" in devices.refusals("cuda", (6, 1))["fp16"]
