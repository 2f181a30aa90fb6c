import dataclasses
import json
import tempfile
from pathlib import Path

import psutil
import pytest
from filelock import Timeout

from core.jobs import machine, process
from core.jobs.machine import Machine, MachineUse, Serving, UseMeter, WorkerFile, measurement_lock
from core.jobs.process import Process
from core.results import environment
from core.results.environment import DeviceInfo, LoadReading

CPU = DeviceInfo(device="cpu", kind="cpu", name="Test CPU", memory_bytes=2**34, driver="")
FOUND = Machine(
    environment=environment.read_environment(), devices=(CPU,), startup_s={"cpu": 0.5}, hint="Nothing seen."
)
NOBODY = Process(pid=process.current_process().pid, born="before")


@pytest.fixture
def worker_file(tmp_path):
    return WorkerFile(tmp_path)


def test_what_a_worker_reports_is_read_back(worker_file):
    assert worker_file.machine is None
    worker_file.report(FOUND, process.current_process())
    assert worker_file.machine == FOUND


def test_what_an_ended_worker_reported_is_marked_as_the_last_that_is_known(worker_file):
    worker_file.report(FOUND, NOBODY)
    assert not worker_file.machine.live
    assert worker_file.machine.devices == FOUND.devices


@pytest.mark.parametrize("content", ["", "{}", '{"environment": {"unknown": 1}}'])
def test_a_report_of_another_version_is_none(worker_file, content):
    (worker_file.folder / "machine.json").write_text(content)
    assert worker_file.machine is None


@pytest.mark.parametrize("device", ["CUDA:0", "0.29.1", "", "cuda:9999"])
def test_a_report_of_a_device_that_cannot_be_asked_for_is_none(worker_file, device):
    worker_file.report(
        dataclasses.replace(FOUND, devices=(CPU, dataclasses.replace(CPU, device=device))), process.current_process()
    )
    assert worker_file.machine is None


def test_a_seat_is_taken_while_its_occupant_lives(worker_file):
    assert not worker_file.is_served
    worker_file.take(Serving(process=process.current_process()))
    assert worker_file.is_served
    worker_file.take(Serving(process=NOBODY, ready=True, starts=2))
    assert (worker_file.is_served, worker_file.serving) == (False, Serving(process=NOBODY, ready=True, starts=2))
    worker_file.leave(process.current_process())
    assert worker_file.serving, "one that was followed by another leaves the other's entry alone"
    worker_file.leave(NOBODY)
    worker_file.leave(NOBODY)
    assert worker_file.serving is None


def test_a_seat_is_locked_while_somebody_holds_its_lock_whatever_the_entry_says(worker_file):
    assert not worker_file.locked
    with worker_file.lock():
        assert worker_file.locked
    assert not worker_file.locked


def test_an_entry_that_cannot_be_understood_is_nobody(worker_file):
    (worker_file.folder / "worker.json").write_text(json.dumps({"process": {"pid": 1}}))
    assert worker_file.serving is None


def test_only_one_holds_the_lock_of_the_machine(machine_lock):
    with measurement_lock():
        assert machine_lock.exists()
        with pytest.raises(Timeout):
            measurement_lock().acquire(timeout=0)
    measurement_lock().acquire(timeout=0).lock.release()


@pytest.mark.skipif(machine.sys.platform == "win32", reason="Windows has no such permissions")
def test_every_user_may_open_the_lock_of_the_machine(machine_lock):
    with measurement_lock():
        assert machine_lock.stat().st_mode & 0o666 == 0o666


def test_the_lock_lies_where_all_users_of_the_machine_meet(monkeypatch):
    monkeypatch.delenv("CROSSOVER_LOCK")
    assert Path(measurement_lock().lock_file) == Path("/tmp/crossover-measurement.lock")
    monkeypatch.setattr(machine.sys, "platform", "win32")
    monkeypatch.delenv("PROGRAMDATA", raising=False)
    assert Path(measurement_lock().lock_file).parent == Path(tempfile.gettempdir())


class TestTheUseOfTheMachine:
    @pytest.fixture
    def programs(self, monkeypatch):
        """Numbers of processes → name and seconds of processor, and the share that they use of four processors."""
        seen: dict[int, tuple[str, float]] = {}
        moments = iter([0.0, 2.0])
        monkeypatch.setattr(machine, "_read_programs", lambda: dict(seen))
        monkeypatch.setattr(machine.time, "monotonic", lambda: next(moments))
        monkeypatch.setattr(psutil, "cpu_count", lambda: 4)
        reading = LoadReading(load=1.0, steal=0.0, switches=0, other_use=0.5)
        monkeypatch.setattr(machine, "LoadMeter", lambda: type("Meter", (), {"read": lambda _: reading})())
        return seen

    def test_programs_are_named_by_what_they_used_since_the_last_look_the_busiest_first(self, programs):
        programs |= {10: ("chromium", 50.0), 11: ("chromium", 9.0), 12: ("ffmpeg", 0.0), 13: ("idle", 900.0)}
        meter = UseMeter()
        programs |= {10: ("chromium", 50.5), 11: ("chromium", 9.5), 12: ("ffmpeg", 3.0), 14: ("new", 40.0)}
        use = meter.read()
        assert use == MachineUse(processors=2.0, share=0.5, load=1.0, programs=("ffmpeg", "chromium"))
        assert use.description == "other programs use about half of the processors (ffmpeg, chromium)"

    def test_neither_this_process_nor_what_it_started_is_a_program_of_others(self):
        assert process.current_process().pid not in machine._read_programs()

    @pytest.mark.parametrize(("processors", "quiet"), [(0.0, True), (0.25, True), (0.3, False)])
    def test_a_machine_is_quiet_up_to_a_quarter_of_a_processor(self, processors, quiet):
        assert MachineUse(processors=processors).is_quiet == quiet

    @pytest.mark.parametrize(
        ("processors", "load", "passing"), [(1.0, 1.0, False), (1.0, 0.2, True), (1.0, 3.0, True), (0.1, 3.0, False)]
    )
    def test_quiet_is_near_where_the_load_of_the_last_minute_was_another_one(self, processors, load, passing):
        assert MachineUse(processors=processors, load=load).is_passing == passing
