"""Memory that is freed goes back to the system or does not, as was asked, as often as it is asked."""

import subprocess
import sys

import pytest

from core.files.project import PROJECT
from core.measure import devices
from core.measure.trial import Hooks, measure
from core.question.experiment import Contender, Experiment, Point

if devices.why_not("cpu"):
    pytest.skip(devices.why_not("cpu"), allow_module_level=True)

COUNT = """
import ctypes, resource
from core.measure import devices as host_memory

def pages(size):
    "Pages that the system had to give for a block that was there before."
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes, counted = [ctypes.c_void_p], []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        block = library.malloc(size)
        ctypes.memset(block, 1, size)
        library.free(block)
        counted.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return counted[-1]

for kept in (False, True, False):
    host_memory.set_memory_retention(keep=kept)
    print(pages(100 << 20), pages(10 << 20))
"""


@pytest.mark.slow
def test_what_is_kept_is_not_asked_for_again():
    """In a process of its own: other tests have a past. Pages may be of 4 KiB or, transparently, of 2 MiB."""
    root = PROJECT
    said = subprocess.run([sys.executable, "-c", COUNT], cwd=root, capture_output=True, text=True, check=True).stdout
    (large, small), (kept, kept_small), (large_again, _) = (map(int, line.split()) for line in said.splitlines())
    assert large >= 50
    assert large_again >= 50
    assert small <= 2, "10 MiB lie below the limit beyond which blocks go straight back"
    assert kept <= 2
    assert kept_small <= 2


@pytest.mark.slow
def test_each_contender_of_a_run_has_its_own_way_and_the_next_measurement_its_own(monkeypatch):
    asked = []
    monkeypatch.setattr(devices, "set_memory_retention", lambda *, keep: asked.append(keep))
    contenders = tuple(map(Contender.parse, ("cpu@1", "cpu@1+kept")))
    point = Point(dataset="disc", samples=100, hidden_size=4, batch_size=50, epochs=20)
    plain, kept = measure(Experiment(point=point, contenders=contenders, budget_s=20, pairs=3), hooks=Hooks())
    assert (plain.host_memory, kept.host_memory) == ("returned", "kept")
    assert set(asked) == {True, False}
    assert len(plain.block_pair) == len(kept.block_pair) == 3
    assert kept.lane_loss == kept.reference_loss


@pytest.mark.slow
def test_what_a_run_kept_goes_back_when_it_ends(monkeypatch):
    asked = []
    monkeypatch.setattr(devices, "set_memory_retention", lambda *, keep: asked.append(keep))
    point = Point(dataset="disc", samples=100, hidden_size=4, batch_size=50, epochs=2)
    measure(Experiment(point=point, contenders=(Contender.parse("cpu@1+kept"),), budget_s=20), hooks=Hooks())
    assert asked[0] is True
    assert asked[-1] is False


def test_a_cpu_has_it_here_and_a_gpu_always():
    assert "kept" not in devices.find("cpu").refusals
    assert "always keeps" in devices.why_not("cuda")


def test_without_glibc_nothing_is_done_and_the_reason_told(monkeypatch):
    monkeypatch.setattr(devices, "_glibc", lambda: None)
    devices.set_memory_retention(keep=True)
    assert "glibc" in devices.why_not("cpu")
