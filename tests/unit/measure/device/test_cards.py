"""What a card says of itself, with a library that answers in NVML's units and refuses as drivers do."""

import os
import sys
from types import SimpleNamespace

import pynvml
import pytest
import torch

from core.measure import gpu
from core.measure.gpu import Columns, GpuMonitor
from core.results.validation import OF_CARDS

CARD = torch.device("cuda:0")
UUID = "4a1e0f9c-0000-1111-2222-333344445555"
PROPERTIES = SimpleNamespace(uuid=UUID, pci_domain_id=0, pci_bus_id=0x65, pci_device_id=0)


class FakeNvml:
    """NVML of one card: milliwatts, megahertz, millijoules, nanoseconds, bits.

    Attributes:
        refused: names of functions that raise, as they do where a card or a user's rights do not have them.
        handles: name of a card → what it is known by from then on.
        whole: part of a card → card.
        pids: of what computes, by what is asked.
        drawing: pids of what draws windows.
    """

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.handles = {f"GPU-{UUID}": "card"}
        self.whole: dict[str, str] = {}
        self.pids = {"card": [os.getpid()]}
        self.answers = {
            "EnforcedPowerLimit": 700_000,
            "MaxClockInfo": 1980,
            "TotalEccErrors": 0,
            "ClockInfo": 345,
            "PowerUsage": 120_500,
            "TotalEnergyConsumption": 5_000_000,
            "Temperature": 41,
            "CurrentClocksEventReasons": 0x1,
        }
        self.utilisation, self.violation_ns = 7, 0
        self.drawing: list[int] = []

    def __getattr__(self, name: str):
        if name.startswith("NVML_"):
            return getattr(pynvml, name)
        what = name.removeprefix("nvmlDeviceGet")
        if what not in self.answers:
            raise AttributeError(name)
        return lambda card, *_: self._answer(name, card, self.answers[what])

    def _answer(self, name, card, value):
        if name in self.refused or card != "card":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return value

    def nvmlInit(self):
        return self._answer("nvmlInit", "card", None)

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return self.handles[uuid]

    def nvmlDeviceGetHandleByPciBusId(self, place):
        return self.handles[place]

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, part):
        return self.whole[part]

    def nvmlDeviceGetUtilizationRates(self, card):
        return self._answer("nvmlDeviceGetUtilizationRates", card, SimpleNamespace(gpu=self.utilisation))

    def nvmlDeviceGetViolationStatus(self, card, policy):
        assert policy in range(6)
        return self._answer("nvmlDeviceGetViolationStatus", card, SimpleNamespace(violationTime=self.violation_ns))

    def nvmlDeviceGetComputeRunningProcesses(self, card):
        return [SimpleNamespace(pid=pid) for pid in self.pids[card]]

    def nvmlDeviceGetGraphicsRunningProcesses(self, card):
        return [SimpleNamespace(pid=pid) for pid in self.drawing]


@pytest.fixture
def library(monkeypatch):
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: PROPERTIES)
    monkeypatch.setattr(torch.version, "hip", None)
    gpu._find_gpu.cache_clear()
    yield fake
    gpu._find_gpu.cache_clear()


def around(library, seconds=0.5, **after) -> Columns:
    """A block of so many seconds, after which the card answers otherwise."""
    now = iter([10.0, 10.0 + seconds])
    watch = GpuMonitor(CARD, clock=lambda: next(now))
    watch.begin()
    library.answers |= after
    return watch.end()


def test_a_card_is_read_before_in_and_after_a_block(library):
    heated = {"ClockInfo": 1755, "Temperature": 66, "CurrentClocksEventReasons": 0x4}
    seen = around(library, TotalEnergyConsumption=5_325_000, PowerUsage=640_000, **heated)
    assert seen == {
        "block_clock_before_mhz": 345.0,
        "block_clock_mhz": 1755.0,
        "block_power_w": 650.0,
        "block_temperature_c": 66.0,
        "block_throttle": 4,
        "block_throttled_s": 0.0,
        "block_use_before": 0.07,
        "block_other_processes": 0,
    }


def test_what_a_card_is_held_to(library):
    assert GpuMonitor(CARD).limits == {
        "device_power_limit_w": 700.0,
        "device_clock_limit_mhz": 1980.0,
        "device_ecc_errors": 0,
    }


def test_the_time_for_which_clocks_were_lowered_is_that_between_the_two_looks(library):
    library.violation_ns = 7_000_000_000
    watch = GpuMonitor(CARD)
    watch.begin()
    library.violation_ns += 20_000_000
    assert watch.end()["block_throttled_s"] == pytest.approx(4 * 0.02)


def test_without_a_counter_of_energy_the_power_is_that_after_the_block(library):
    library.refused = {"nvmlDeviceGetTotalEnergyConsumption"}
    assert around(library, PowerUsage=640_000)["block_power_w"] == 640.0


def test_a_counter_that_was_set_back_counts_for_nothing(library):
    assert around(library, TotalEnergyConsumption=1)["block_power_w"] == 120.5


@pytest.mark.parametrize(
    ("function", "unknown"),
    [
        ("nvmlDeviceGetClockInfo", {"block_clock_before_mhz", "block_clock_mhz"}),
        ("nvmlDeviceGetTemperature", {"block_temperature_c"}),
        ("nvmlDeviceGetViolationStatus", {"block_throttled_s"}),
        ("nvmlDeviceGetUtilizationRates", {"block_use_before"}),
    ],
)
def test_what_a_driver_refuses_is_not_known_and_the_rest_is(library, function, unknown):
    library.refused = {function}
    seen = around(library)
    assert {name for name, value in seen.items() if value is None} == unknown


def test_a_value_that_is_refused_once_is_read_again(library, monkeypatch):
    """A row whose list lacks one value has none at all."""
    refusals = iter([True])
    answer = library._answer

    def refuse_once(name, card, value):
        if name == "nvmlDeviceGetTemperature" and next(refusals, False):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
        return answer(name, card, value)

    monkeypatch.setattr(library, "_answer", refuse_once)
    assert around(library)["block_temperature_c"] == 41


@pytest.mark.parametrize(("pids", "others"), [([], None), (["me"], 0), (["me", 7, 8], 2), ([4711], 0), ([4711, 7], 1)])
def test_other_processes_are_counted_without_ours_under_whatever_number_it_is_listed(library, pids, others):
    library.pids["card"] = [os.getpid() if pid == "me" else pid for pid in pids]
    assert around(library)["block_other_processes"] == others


def test_programs_that_draw_windows_are_no_company(library, monkeypatch):
    """On a desktop with Linux they are listed as C+G; on Windows each window is, and nothing tells them apart."""
    library.pids["card"], library.drawing = [os.getpid(), 7, 8, 9], [7, 8]
    assert around(library)["block_other_processes"] == 1
    library.pids["card"] = [os.getpid(), 7, 8]
    assert around(library)["block_other_processes"] == 0
    monkeypatch.setattr(gpu.sys, "platform", "win32")
    assert around(library)["block_other_processes"] is None


def test_an_older_driver_tells_what_lowers_the_clock_by_the_functions_older_name(library):
    library.refused = {"nvmlDeviceGetCurrentClocksEventReasons"}
    assert around(library, CurrentClocksThrottleReasons=0x20)["block_throttle"] == 0x20


def test_a_process_that_came_or_went_meanwhile_was_there(library):
    watch = GpuMonitor(CARD)
    library.pids["card"] = [os.getpid(), 7]
    watch.begin()
    library.pids["card"] = [os.getpid()]
    assert watch.end()["block_other_processes"] == 1


def test_a_card_whose_uuid_is_not_known_is_found_by_its_place_on_the_bus(library):
    library.handles = {"00000000:65:00.0": "card"}
    assert GpuMonitor(CARD).limits["device_power_limit_w"] == 700.0


def test_a_part_of_a_card_has_its_own_processes_and_the_clocks_of_the_whole(library):
    library.handles, library.whole = {f"MIG-{UUID}": "part"}, {"part": "card"}
    library.pids = {"part": [os.getpid(), 7], "card": []}
    seen = around(library)
    assert (seen["block_clock_mhz"], seen["block_other_processes"]) == (345.0, 1)


@pytest.mark.parametrize("trouble", ["no bindings", "no driver", "no such card"])
def test_where_nvml_cannot_be_asked_nothing_is_known_and_nothing_is_raised(library, monkeypatch, trouble):
    if trouble == "no bindings":
        monkeypatch.setitem(sys.modules, "pynvml", None)
    elif trouble == "no driver":
        library.refused = {"nvmlInit"}
    else:
        library.handles = {}
    assert around(library) == {}
    assert GpuMonitor(CARD).limits == {}


@pytest.mark.parametrize("name", ["cpu", "mps", "xpu:0"])
def test_of_other_devices_nothing_is_known(library, name):
    watch = GpuMonitor(torch.device(name))
    watch.begin()
    assert (watch.end(), watch.limits) == ({}, {})


def test_an_amd_card_is_asked_through_pytorch_and_zero_is_not_known(library, monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "7.1")
    listed = (
        "GPU:0\nprocess       4711 uses      300.000 MB GPU memory\nprocess         12 uses        1.000 MB GPU memory"
    )
    for name, value in {"clock_rate": 2100, "power_draw": 540, "temperature": 0, "utilization": 3}.items():
        monkeypatch.setattr(torch.cuda, name, lambda _, value=value: value)
    monkeypatch.setattr(torch.cuda, "list_gpu_processes", lambda _: listed)
    watch = GpuMonitor(CARD)
    watch.begin()
    seen = watch.end()
    assert (seen["block_clock_mhz"], seen["block_power_w"], seen["block_temperature_c"]) == (2100.0, 540.0, None)
    assert (seen["block_use_before"], seen["block_other_processes"], seen["block_throttle"]) == (0.03, 1, None)


def test_what_is_seen_has_a_column_each(library):
    assert set(around(library)) == set(OF_CARDS)
