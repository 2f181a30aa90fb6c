"""What holds for every test."""

import gc
import uuid

import pytest
from hypothesis import HealthCheck, settings

from tests import sharing

settings.register_profile("patient", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # a busy machine is no failure


@pytest.fixture(autouse=True)
def compiled_code_of_its_own(tmp_path_factory, monkeypatch):
    """What is compiled goes to a folder of the test, not to what all processes share."""
    monkeypatch.setenv("CROSSOVER_COMPILED", str(tmp_path_factory.getbasetemp() / f"compiled-{uuid.uuid4().hex}"))


@pytest.fixture
def foreign_files_are_read_here(monkeypatch):
    """Foreign files are read by this process; `tests/integration/test_hostile_files.py` tries the one of their own."""
    from core.results import quarantine  # which other tests do without

    def read(content, reply, most_rows):
        quarantine._main(content, reply, most_rows)
        return 0

    monkeypatch.setattr(quarantine, "_limit", lambda: None)
    monkeypatch.setattr(quarantine, "_run_child", read)


def pytest_collection():
    """What is read while tests are collected stays; looking through it for garbage again and again takes seconds."""
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Workers share the tests as `tests.sharing` says."""
    return sharing.Sharing(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config, items):
    if hasattr(config, "workerinput"):
        turns = sharing.turns(_file(item) for item in items)
        items.sort(key=lambda item: turns[_file(item)])


def _file(item):
    return item.nodeid.partition("::")[0]
