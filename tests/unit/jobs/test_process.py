import os
import subprocess
import sys
import time

import psutil
import pytest

from core.jobs import process
from core.jobs.process import ExecutionContext, Process

SLEEPER = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)")

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads what only Linux tells in /proc")


@pytest.fixture
def sleeper():
    child = subprocess.Popen(SLEEPER, stdout=subprocess.PIPE)
    child.stdout.readline()
    yield child
    child.kill()
    child.communicate()


def ours(command) -> bool:
    return tuple(command) == SLEEPER


def test_the_asking_process_is_alive():
    assert process.current_process().alive


@pytest.mark.parametrize("born", ["", "another boot:1", "0"])
def test_a_number_that_went_to_another_process_is_not_the_process(born):
    assert not Process(pid=process.current_process().pid, born=born).alive


@linux
def test_no_clock_that_is_set_makes_a_process_look_dead(monkeypatch, sleeper):
    mark = process.process_from_pid(sleeper.pid)
    monkeypatch.setattr(psutil, "boot_time", lambda: 0.0)
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert mark.alive
    assert process.process_from_pid(sleeper.pid) == mark


def test_a_process_that_ended_but_was_not_buried_is_dead(sleeper):
    mark = process.process_from_pid(sleeper.pid)
    assert mark.alive
    sleeper.kill()
    psutil.Process(sleeper.pid)  # its entry is still there
    mark.kill(ours)
    assert not mark.alive


def test_a_kill_ends_the_process_and_is_no_error_afterwards(sleeper):
    mark = process.process_from_pid(sleeper.pid)
    mark.kill(ours)
    assert not mark.alive
    sleeper.wait()
    mark.kill(ours)
    assert not mark.alive


def test_a_process_whose_command_line_is_none_of_ours_is_not_signalled(sleeper):
    mark = process.process_from_pid(sleeper.pid)
    with pytest.raises(PermissionError, match="does not belong to Crossover"):
        mark.kill(lambda command: "core.jobs.worker" in command)
    assert mark.alive


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists open files without rights")
def test_a_process_that_changed_its_command_line_is_known_by_its_log(tmp_path):
    log = tmp_path / "worker.log"
    with log.open("wb") as file:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stderr=file)
    mark = process.process_from_pid(child.pid)
    while not psutil.Process(child.pid).cmdline():  # as for a moment after a program is loaded
        time.sleep(0.01)
    with pytest.raises(PermissionError, match="does not belong to Crossover"):
        mark.kill(lambda _: False, tmp_path / "another.log")
    mark.kill(lambda _: False, log)
    assert not mark.alive
    child.wait()


def test_a_process_of_another_birth_is_not_signalled(sleeper):
    Process(pid=sleeper.pid, born=process.current_process().born).kill(ours)
    Process(pid=sleeper.pid).kill(ours)
    assert process.process_from_pid(sleeper.pid).alive


def test_a_process_that_may_not_be_looked_at_counts_as_alive_and_cannot_be_killed(monkeypatch, sleeper):
    def deny(self):
        raise psutil.AccessDenied(self.pid)

    def refuse(pid):
        raise PermissionError(pid)

    mark = process.process_from_pid(sleeper.pid)
    monkeypatch.setattr(psutil.Process, "kill", deny)
    with pytest.raises(PermissionError):
        mark.kill(ours)
    monkeypatch.setattr(process, "_birth", refuse)
    assert mark.alive


def test_there_is_no_process_with_a_number_that_nobody_has(sleeper):
    sleeper.kill()
    sleeper.wait()
    with pytest.raises(psutil.NoSuchProcess):
        process.process_from_pid(sleeper.pid)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups of this kind")
@pytest.mark.parametrize("born", ["", "another boot:1"])
def test_what_is_left_of_a_process_that_was_none_of_ours_is_not_signalled(born):
    family = "import os, time; pid = os.fork(); print(pid, flush=True) if pid else time.sleep(60)"
    leader = subprocess.Popen([sys.executable, "-c", family], start_new_session=True, stdout=subprocess.PIPE, text=True)
    child = process.process_from_pid(int(leader.stdout.readline()))
    leader.wait()
    try:
        Process(pid=leader.pid, born=born).kill_orphans(lambda _: True)
        assert child.alive
        Process(pid=leader.pid, born=child.born).kill_orphans(ours)
        assert child.alive
    finally:
        child.kill(lambda _: True)
        leader.stdout.close()
    assert not child.alive


def test_the_group_of_the_asking_process_is_never_signalled():
    mine = process.current_process()
    Process(pid=os.getpgid(0), born="another boot:1").kill_orphans(lambda _: True)
    mine.kill_orphans(lambda _: True)
    assert mine.alive


# What a measurement takes over


def test_devices_and_threads_are_taken_over_and_nothing_else(monkeypatch):
    taken = {"CUDA_VISIBLE_DEVICES": "1", "ZE_AFFINITY_MASK": "0.1", "OMP_NUM_THREADS": "3", "MKL_CBWR": "AVX2"}
    left = {"LD_PRELOAD": "x.so", "PATH": "/bin", "OMP_WAIT_POLICY": "ACTIVE", "KMP_INIT_AT_FORK": "FALSE"}
    for name, value in {**taken, **left}.items():
        monkeypatch.setenv(name, value)
    assert taken.items() <= dict(ExecutionContext.capture().variables).items()
    assert not left.keys() & dict(ExecutionContext.capture().variables).keys()


def test_a_process_has_the_variables_of_who_asked_and_for_the_rest_those_of_who_starts_it():
    asked = ExecutionContext(variables=(("CUDA_VISIBLE_DEVICES", "1"), ("LD_PRELOAD", "x.so")))
    starter = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "8", "OMP_WAIT_POLICY": "PASSIVE"}
    assert asked.apply_to_environment(starter) == {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }


def test_only_a_process_of_the_same_interpreter_suits_who_asks_with_a_custom_script(monkeypatch):
    here = ExecutionContext.capture(whole=True)
    monkeypatch.setattr(sys, "executable", "/home/me/project/.venv/bin/python")
    asked = ExecutionContext.capture(whole=True)
    assert asked.suits(asked)
    assert not here.suits(asked)
    assert here.suits(ExecutionContext.capture()), "a built-in training needs no packages of anybody"


@linux
def test_what_is_started_runs_on_the_processors_that_are_lent_and_the_starter_stays_where_it_was():
    before = os.sched_getaffinity(0)
    last = max(before)
    tell = (sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))")
    with ExecutionContext(processors=(last,)).lend_processors():
        told = subprocess.run(tell, capture_output=True, text=True, check=True).stdout
    assert told.split() == [str(last)]
    assert os.sched_getaffinity(0) == before


@linux
def test_processors_that_cannot_be_lent_leave_it_where_the_starter_is():
    before = os.sched_getaffinity(0)
    with ExecutionContext(processors=(4_000,)).lend_processors():
        assert os.sched_getaffinity(0) == before
    assert os.sched_getaffinity(0) == before
