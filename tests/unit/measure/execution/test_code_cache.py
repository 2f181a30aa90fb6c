"""Code that was compiled here once is taken from the disk, and what compiling it took is told as it was."""

import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from core.measure import execution
from core.measure.execution import COMPILED_VARIABLE, CompiledCode

FUNCTION = {"steps": 1, "threads": 2, "network": "Linear"}


@pytest.fixture
def torch_compiles(monkeypatch):
    """What torch does within `compiling`, in ten seconds, or in one where it finds its code and wants it."""
    now, hits, folders = [0.0], [0], []
    monkeypatch.setattr(execution.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(execution, "_count_cache_hits", lambda: hits[0])

    def compile_it(function=FUNCTION, *, wants=True, fails=False):
        with CompiledCode(function).compiling() as compilations:
            folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
            folders.append(folder)
            found = wants and (folder / "code.so").exists()
            hits[0] += found
            now[0] += 1.0 if found else 10.0
            if fails:
                raise RuntimeError("no compiler")
            folder.mkdir(exist_ok=True)
            (folder / "code.so").touch()
        ((one),) = compilations
        return one.cold_s, one.spent_s

    compile_it.folders = folders
    return compile_it


@pytest.fixture
def root():
    return Path(os.environ[COMPILED_VARIABLE])


def test_a_function_is_compiled_once_and_its_first_time_is_told_ever_after(torch_compiles, root):
    assert torch_compiles() == (10.0, 10.0)
    before = os.environ.copy()
    assert [torch_compiles(), torch_compiles()] == [(10.0, 1.0), (10.0, 1.0)]
    assert root.stat().st_mode & 0o777 == 0o700
    assert os.environ == before


@pytest.mark.parametrize("changes", [{"threads": 1}, {"steps": 10}, {"network": "Conv2d"}])
def test_another_function_has_code_of_its_own(torch_compiles, changes):
    torch_compiles()
    assert torch_compiles({**FUNCTION, **changes}) == (10.0, 10.0)


def test_another_torch_and_another_machine_compile_for_themselves(torch_compiles, monkeypatch):
    torch_compiles()
    for changes in ({"torch_version": "9.9"}, {"machine_id": "another"}):
        here = dataclasses.replace(execution.environment.read_environment(), **changes)
        monkeypatch.setattr(execution.environment, "read_environment", lambda here=here: here)
        assert torch_compiles() == (10.0, 10.0)


def test_who_was_killed_or_failed_as_he_compiled_leaves_nothing_that_is_used(torch_compiles):
    with pytest.raises(RuntimeError):
        torch_compiles(fails=True)
    assert [torch_compiles(), torch_compiles()] == [(10.0, 10.0), (10.0, 1.0)]


def test_code_that_torch_does_not_take_is_made_anew_from_empty_caches(torch_compiles):
    torch_compiles()
    assert torch_compiles(wants=False) == (10.0, 10.0)
    assert [torch_compiles(), torch_compiles()] == [(10.0, 10.0), (10.0, 1.0)]


def test_seconds_that_cannot_be_read_are_taken_anew(torch_compiles, root):
    torch_compiles()
    (path,) = root.glob("*/cold.json")
    path.write_text("soon")
    assert torch_compiles() == (10.0, 10.0)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
def test_a_folder_that_others_can_write_to_is_not_used(torch_compiles, root):
    root.mkdir(mode=0o700)
    root.chmod(0o777)
    assert [torch_compiles(), torch_compiles()] == [(10.0, 10.0), (10.0, 10.0)]
    assert not list(root.iterdir())
    assert not any(folder.exists() for folder in torch_compiles.folders)


def test_where_there_can_be_no_folder_everything_is_compiled_as_ever(torch_compiles, root):
    root.write_text("a file")
    assert [torch_compiles(), torch_compiles()] == [(10.0, 10.0), (10.0, 10.0)]


def test_of_too_many_functions_those_used_last_are_kept(torch_compiles, root, monkeypatch):
    monkeypatch.setattr(execution, "MOST_FUNCTIONS", 2)
    for threads in (1, 2, 3):
        torch_compiles({"threads": threads})
        for age, folder in enumerate(reversed(torch_compiles.folders)):
            if folder.exists():
                os.utime(folder.parent, (1000 - age, 1000 - age))
    assert [torch_compiles({"threads": threads})[1] for threads in (3, 2)] == [1.0, 1.0]
    assert len(list(root.iterdir())) == 2
    shutil.rmtree(root)
    assert torch_compiles({"threads": 3}) == (10.0, 10.0)
