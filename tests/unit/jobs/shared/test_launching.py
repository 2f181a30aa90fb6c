"""How machines of a cluster are brought to work; Slurm and Ray by doubles at their door."""

import os
import sys

import pytest

from core.errors import InvalidValue, JobError
from core.jobs.shared import launching


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Commands of Slurm that write down how they were called; tasks are those in the file `tasks`."""
    squeue = f"cat {tmp_path}/tasks"
    for name, said in (("sbatch", "echo '4711;cluster'"), ("scancel", "true"), ("squeue", squeue)):
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/called\n{said}\n')
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    return lambda: (tmp_path / "called").read_text().splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="Slurm's commands are of Unix")
def test_slurm_gets_an_array_and_it_is_cancelled_at_the_end(slurm, tmp_path):
    with launching.launcher("slurm:8", tmp_path / "store", "--question", "abc-shared") as nodes:
        nodes.keep()
        [asked] = slurm()
        assert asked.startswith("sbatch --parsable --array=1-8 ")
        assert asked.endswith(f"deploy/slurm/worker.sbatch --store {tmp_path}/store --question abc-shared")
    assert slurm()[1:] == ["scancel 4711"]


@pytest.mark.skipif(sys.platform == "win32", reason="Slurm's commands are of Unix")
def test_tasks_that_all_ended_are_not_waited_for(slurm, tmp_path, monkeypatch):
    monkeypatch.setattr(launching, "LOOK_S", 0.0)
    monkeypatch.setattr(launching, "GONE_S", 0.0)
    (tmp_path / "tasks").write_text("4711_1 debug crossover\n")
    with launching.launcher("slurm:2", tmp_path / "store", "--question", "abc-shared") as nodes:
        nodes.keep()
        (tmp_path / "tasks").write_text("")
        with pytest.raises(JobError, match=r"All tasks of Slurm's job 4711 have ended.*slurm-4711_\*\.out"):
            nodes.keep()
    assert slurm()[-1] == "scancel 4711"


@pytest.mark.skipif(sys.platform == "win32", reason="Slurm's commands are of Unix")
def test_what_slurm_says_of_a_refusal_is_told(tmp_path, monkeypatch):
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho 'Invalid partition' >&2\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with (
        pytest.raises(JobError, match="Slurm took no job: Invalid partition"),
        launching.launcher("slurm", tmp_path, "x"),
    ):
        pass


def test_without_slurm_a_sentence_says_where_to_ask(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JobError, match="sbatch is not here"), launching.launcher("slurm", tmp_path, "x"):
        pass


def test_without_ray_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(JobError, match=r"pip install -r requirements-cluster\.txt"):
        launching.launcher("ray", tmp_path, "x")


def test_machines_that_join_by_themselves_need_nothing(tmp_path):
    with launching.launcher("workers", tmp_path, "x") as nobody:
        nobody.keep()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("on", ["", "mars", "slurm:", "slurm:x", "rays", "ray://", "ray://host", "ray://host:port"])
def test_any_other_place_is_refused(on, tmp_path):
    with pytest.raises(InvalidValue, match=r"workers, ray, ray://HOST:PORT, slurm:MACHINES"):
        launching.launcher(on, tmp_path, "x")
