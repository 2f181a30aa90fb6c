"""Facts of the machine: what makes its name, what a container leaves to it, and how its load is read."""

import dataclasses
import getpass
import importlib.metadata
import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from core.jobs.client import WAITING_POLICY
from core.results import environment
from core.results.environment import Environment, LoadMeter, machine_id, physical_cores, usable_cores
from core.results.schema import SCHEMA

V1, V2 = "sys/fs/cgroup/cpu", "sys/fs/cgroup"

FACTS = {"cpu_name": "Test CPU", "cores": 8, "cores_usable": 4, "memory_bytes": 16 * 2**30, "system": "Linux x86_64"}


def put(root: Path, files: Mapping[str, str]) -> Path:
    """Files of a system, by their paths under `root`."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def version_1(group: str, quota: str, period: str | None = "100000") -> dict[str, str]:
    """The quota files of a group in version 1."""
    files = {"quota": quota, "period": period}
    return {f"{V1}{group}/cpu.cfs_{name}_us": text for name, text in files.items() if text is not None}


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)


@pytest.fixture
def fresh_read():
    environment.read_environment.cache_clear()
    yield environment.read_environment
    environment.read_environment.cache_clear()


class TestTheFingerprint:
    def test_its_fields_are_columns_of_the_table(self):
        assert {field.name for field in dataclasses.fields(Environment)} <= set(SCHEMA.names)

    def test_it_is_read_once_a_process(self):
        assert environment.read_environment() is environment.read_environment()

    def test_it_names_the_machine_by_what_it_is_and_not_by_its_host_or_its_user(self, fresh_read, monkeypatch):
        before = fresh_read()
        fresh_read.cache_clear()
        for variable in ("HOSTNAME", "USER", "USERNAME", "LOGNAME", "HOME"):
            monkeypatch.setenv(variable, "somewhere-else")
        monkeypatch.setattr(socket, "gethostname", lambda: "somewhere-else")
        monkeypatch.setattr(platform, "node", lambda: "somewhere-else")
        assert fresh_read() == before
        told = [str(value) for value in dataclasses.asdict(before).values()]
        assert socket.gethostname() not in told
        assert getpass.getuser() not in told

    def test_it_tells_the_versions_of_what_is_installed(self):
        facts = environment.read_environment()
        assert facts.torch_version == importlib.metadata.version("torch")
        assert facts.python_version == platform.python_version()

    def test_a_package_that_is_not_installed_has_no_version(self, fresh_read, monkeypatch):
        def missing(name: str) -> str:
            raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(importlib.metadata, "version", missing)
        assert (fresh_read().torch_version, fresh_read().torchvision_version) == ("", "")

    def test_the_wait_policy_is_that_of_the_process(self, fresh_read, monkeypatch):
        monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
        monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
        assert fresh_read().omp_wait_policy == "ACTIVE"
        fresh_read.cache_clear()
        monkeypatch.setenv("GOMP_SPINCOUNT", "500")
        assert fresh_read().omp_wait_policy == "ACTIVE, GOMP_SPINCOUNT=500"

    @pytest.mark.parametrize(("platform", "preload"), [("darwin", ""), ("win32", ""), ("linux", "/lib/libiomp5.so")])
    def test_the_waiting_time_of_intels_and_llvms_runtimes_is_in_the_row(
        self, fresh_read, monkeypatch, platform, preload
    ):
        for name, value in {**WAITING_POLICY, "LD_PRELOAD": preload}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(environment.sys, "platform", platform)
        monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: [0], raising=False)
        assert fresh_read().omp_wait_policy == "PASSIVE, KMP_BLOCKTIME=1"


class TestTheNameOfAMachine:
    def test_it_is_twelve_hexadecimal_digits_and_always_the_same(self):
        assert machine_id(**FACTS) == "be7ec33a3d91"
        assert re.fullmatch("[0-9a-f]{12}", environment.read_environment().machine_id)

    @pytest.mark.parametrize("field", FACTS)
    def test_every_fact_is_part_of_it(self, field):
        other = FACTS[field] + "!" if isinstance(FACTS[field], str) else FACTS[field] * 2
        assert machine_id(**{**FACTS, field: other}) != machine_id(**FACTS)

    def test_some_megabytes_that_a_new_kernel_keeps_for_itself_do_not_make_another_machine(self):
        assert machine_id(**{**FACTS, "memory_bytes": 16 * 2**30 - 100 * 2**20}) == machine_id(**FACTS)

    def test_boxes_that_differ_in_their_gpu_alone_are_two_and_one_without_is_as_before(self):
        names = [machine_id(**FACTS, gpus=gpus) for gpus in ((), ("NVIDIA T4",), ("NVIDIA L4",), ("NVIDIA T4",) * 2)]
        assert len(set(names)) == 4
        assert names[0] == machine_id(**FACTS)

    def test_gpus_are_read_from_nvidias_library_and_amds_files(self, tmp_path, monkeypatch):
        names = {0: "NVIDIA L4", 1: "NVIDIA A10"}
        library = SimpleNamespace(
            nvmlInit=lambda: None,
            nvmlDeviceGetCount=lambda: 2,
            nvmlDeviceGetHandleByIndex=lambda index: index,
            nvmlDeviceGetName=names.__getitem__,
        )
        monkeypatch.setitem(sys.modules, "pynvml", library)
        assert environment._read_gpus(tmp_path) == ["NVIDIA A10", "NVIDIA L4"]
        card = {"vendor": "0x1002\n", "device": "0x744c\n"}
        files = {f"sys/class/drm/card0/device/{name}": text for name, text in card.items()}
        assert environment._read_gpus(put(tmp_path, {**files, "dev/kfd": ""}))[0] == "AMD 0x744c"
        monkeypatch.setitem(sys.modules, "pynvml", None)
        assert environment._read_gpus(tmp_path / "none") == []

    def test_linux_within_windows_is_a_system_of_its_own(self, fresh_read, monkeypatch):
        plain = fresh_read()
        fresh_read.cache_clear()
        monkeypatch.setattr(platform, "release", lambda: "5.15.167.4-microsoft-standard-WSL2")
        assert fresh_read().system == f"{plain.system} WSL"
        assert fresh_read().machine_id != plain.machine_id


@pytest.mark.usefixtures("eight_cores")
class TestGroupsOfCores:
    """Six threads of three fast cores, and two slow ones; two sockets of four threads."""

    @pytest.fixture
    def hybrid(self, tmp_path):
        topology = "sys/devices/system/cpu/cpu{}/topology"
        cores = [0, 0, 1, 1, 2, 2, 3, 4]
        files = {f"{topology.format(n)}/thread_siblings_list": f"core {core}" for n, core in enumerate(cores)}
        files |= {f"{topology.format(n)}/physical_package_id": f"{n // 4}\n" for n in range(8)}
        return put(tmp_path, {**files, "sys/devices/cpu_core/cpus": "0-5\n"})

    def test_fast_cores_are_those_that_linux_lists_apart(self, hybrid, tmp_path):
        assert environment.performance_cores(hybrid) == 3
        assert environment.performance_cores(tmp_path / "none") == 0

    @pytest.mark.parametrize(("said", "cores"), [("6", 6), ("", 0)])
    def test_fast_cores_of_a_mac_are_those_of_its_first_level(self, monkeypatch, said, cores):
        monkeypatch.setattr(environment.sys, "platform", "darwin")
        monkeypatch.setattr(environment, "_output", lambda *command: said)
        assert environment.performance_cores() == cores

    def test_a_socket_has_the_cores_that_share_its_number(self, hybrid, tmp_path):
        assert environment.socket_cores(hybrid) == 3
        assert environment.socket_cores(tmp_path / "none") == 0


@pytest.mark.usefixtures("eight_cores")
class TestPhysicalCores:
    def siblings(self, folder, *lists):
        topology = {
            f"sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": text for n, text in enumerate(lists)
        }
        return put(folder, topology)

    def test_threads_that_share_a_core_count_once(self, tmp_path):
        assert physical_cores(self.siblings(tmp_path, *(f"{n % 4},{n % 4 + 4}\n" for n in range(8)))) == 4

    def test_only_those_that_affinity_leaves_count(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 4}, raising=False)
        assert physical_cores(self.siblings(tmp_path, *(f"{n % 4},{n % 4 + 4}\n" for n in range(8)))) == 2

    def test_no_more_than_a_quota_leaves(self, tmp_path):
        self.siblings(tmp_path, *(f"{n}\n" for n in range(8)))
        assert physical_cores(put(tmp_path, {f"{V2}/cpu.max": "300000 100000"})) == 3

    @pytest.mark.parametrize(("known", "cores"), [(4, 4), (None, 1), (64, 8)])
    def test_where_the_system_tells_nothing_they_are_what_is_known_of_it(self, tmp_path, monkeypatch, known, cores):
        monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 8 if logical else known)
        assert physical_cores(tmp_path) == cores


@pytest.mark.usefixtures("eight_cores")
class TestUsableCores:
    def test_without_a_quota_they_are_those_of_the_affinity(self, tmp_path):
        assert usable_cores(tmp_path) == 8

    def test_on_a_system_without_affinity_they_are_all_there_are(self, tmp_path, monkeypatch):
        monkeypatch.delattr(os, "sched_getaffinity")
        monkeypatch.setattr(psutil, "cpu_count", lambda: 6)
        assert usable_cores(tmp_path) == 6

    def test_a_system_that_counts_nothing_has_one(self, tmp_path, monkeypatch):
        monkeypatch.delattr(os, "sched_getaffinity")
        monkeypatch.setattr(psutil, "cpu_count", lambda: None)
        assert usable_cores(tmp_path) == 1

    @pytest.mark.parametrize(
        ("quota", "cores"),
        [
            ("200000 100000\n", 2),
            ("max 100000\n", 8),
            ("1600000 100000", 8),
            ("10000 100000", 1),
            ("50000 0", 8),
            ("nonsense", 8),
            ("", 8),
        ],
    )
    def test_version_2_of_the_quota_is_respected(self, tmp_path, quota, cores):
        assert usable_cores(put(tmp_path, {f"{V2}/cpu.max": quota})) == cores

    @pytest.mark.parametrize(
        ("quota", "period", "cores"),
        [("300000\n", "100000\n", 3), ("-1\n", "100000\n", 8), ("300000", "0", 8), ("300000", None, 8)],
    )
    def test_version_1_of_the_quota_is_respected(self, tmp_path, quota, period, cores):
        assert usable_cores(put(tmp_path, version_1("", quota, period))) == cores

    def test_a_part_of_a_processor_is_left_out_for_threads_beyond_a_quota_are_paused(self, tmp_path):
        assert usable_cores(put(tmp_path, {f"{V2}/cpu.max": "390000 100000"})) == 3

    def test_the_group_of_the_process_is_asked(self, tmp_path):
        own = {"proc/self/cgroup": "0::/user.slice/job\n", f"{V2}/user.slice/job/cpu.max": "500000 100000"}
        assert usable_cores(put(tmp_path, {**own, f"{V2}/other/cpu.max": "100000 100000"})) == 5

    def test_the_tightest_of_the_groups_above_counts(self, tmp_path):
        groups = {
            "proc/self/cgroup": "0::/user.slice/job\n",
            f"{V2}/user.slice/cpu.max": "200000 100000",
            f"{V2}/user.slice/job/cpu.max": "500000 100000",
        }
        assert usable_cores(put(tmp_path, groups)) == 2

    def test_in_version_1_the_group_of_the_processor_controller_is_asked(self, tmp_path):
        own = {"proc/self/cgroup": "9:memory:/small\n4:cpu,cpuacct:/job\n", **version_1("/job", "400000")}
        assert usable_cores(put(tmp_path, {**own, **version_1("/small", "100000")})) == 4

    def test_the_real_system_leaves_at_least_one(self):
        assert 1 <= usable_cores() <= 8


class Machine:
    """Counters of a machine that a test moves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.user, self.steal, self.involuntary = 100.0, 5.0, 7
        monkeypatch.setattr(psutil, "cpu_times", self.cpu_times)
        monkeypatch.setattr(psutil, "getloadavg", lambda: (1.5, 9.0, 9.0))
        monkeypatch.setattr(environment, "_switches", lambda: self.involuntary)

    def cpu_times(self) -> tuple[float, ...]:
        return type("Times", (tuple,), {"steal": self.steal})((self.user, self.steal))


class TestTheLoadMeter:
    @pytest.fixture
    def machine(self, monkeypatch):
        return Machine(monkeypatch)

    def test_each_reading_covers_the_time_since_the_one_before(self, machine):
        meter = LoadMeter()
        machine.user, machine.steal, machine.involuntary = 106.0, 7.0, 10
        first = meter.read()
        machine.user, machine.involuntary = 116.0, 11
        second = meter.read()
        assert (first.load, first.steal, first.switches) == (1.5, 0.25, 3)
        assert (second.steal, second.switches) == (0.0, 1)

    def test_no_time_between_two_readings_is_no_steal(self, machine):
        meter = LoadMeter()
        assert (meter.read().steal, meter.read().switches) == (0.0, 0)

    def test_stolen_time_that_a_hypervisor_takes_back_is_no_negative_share(self, machine):
        meter = LoadMeter()
        machine.user, machine.steal = 200.0, 4.0
        assert meter.read().steal == 0.0

    def test_a_system_that_does_not_know_stolen_time_has_none(self, monkeypatch):
        times = iter([(10.0, 20.0), (15.0, 25.0)])
        monkeypatch.setattr(psutil, "cpu_times", lambda: next(times))
        assert LoadMeter().read().steal == 0.0

    @pytest.mark.parametrize("platform", ["darwin", "win32"])
    def test_a_system_that_does_not_count_involuntary_switches_says_so(self, monkeypatch, platform):
        monkeypatch.setattr(environment.sys, "platform", platform)
        monkeypatch.setattr(psutil, "getloadavg", lambda: (1.0, 1.0, 1.0))
        assert LoadMeter().read().switches is None

    def test_the_real_system_can_be_read(self):
        reading = LoadMeter().read()
        assert reading.load >= 0.0
        assert 0.0 <= reading.steal <= 1.0
        assert reading.switches is None or reading.switches >= 0


class TestTheNameOfTheProcessor:
    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("processor\t: 0\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R)\nflags\t: fpu\n", "Intel(R) Xeon(R)"),
            ("processor\t: 0\nBogoMIPS\t: 108.00\n\nModel\t\t: Raspberry Pi 4: B\n", "Raspberry Pi 4: B"),
        ],
    )
    def test_linux_tells_it_in_a_file(self, monkeypatch, tmp_path, text, name):
        monkeypatch.setattr(platform, "system", lambda: "Linux")
        assert environment._cpu_name(put(tmp_path, {"proc/cpuinfo": text})) == name

    @pytest.mark.parametrize(("processor", "name"), [("arm", "arm"), ("", "aarch64")])
    @pytest.mark.parametrize("files", [{}, {"proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 50.00\n"}])
    def test_a_linux_without_it_tells_the_architecture(self, monkeypatch, tmp_path, processor, name, files):
        monkeypatch.setattr(platform, "system", lambda: "Linux")
        monkeypatch.setattr(platform, "processor", lambda: processor)
        monkeypatch.setattr(platform, "machine", lambda: "aarch64")
        assert environment._cpu_name(put(tmp_path, files)) == name

    def test_a_mac_is_asked_by_sysctl(self, monkeypatch):
        asked = []

        def run(command, **options):
            asked.append(command)
            return SimpleNamespace(stdout="Apple M3\n")

        monkeypatch.setattr(platform, "system", lambda: "Darwin")
        monkeypatch.setattr(subprocess, "run", run)
        assert environment._cpu_name() == "Apple M3"
        assert asked == [("sysctl", "-n", "machdep.cpu.brand_string")]

    def test_a_mac_without_sysctl_tells_its_architecture(self, monkeypatch):
        def missing(command, **options):
            raise FileNotFoundError(command[0])

        monkeypatch.setattr(platform, "system", lambda: "Darwin")
        monkeypatch.setattr(platform, "machine", lambda: "arm64")
        monkeypatch.setattr(subprocess, "run", missing)
        assert environment._cpu_name() == "arm64"

    def test_windows_knows_it_itself(self, monkeypatch):
        monkeypatch.setattr(platform, "system", lambda: "Windows")
        monkeypatch.setattr(platform, "processor", lambda: "Intel64 Family 6")
        assert environment._cpu_name() == "Intel64 Family 6"
