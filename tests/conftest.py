"""What holds for every test."""

import pytest

from core.jobs.spare import SPARE_VARIABLE


@pytest.fixture(autouse=True)
def memory_of_its_own(tmp_path_factory, monkeypatch):
    """What no disk takes goes to a folder of the test, never to the memory that all processes of a user share."""
    monkeypatch.setenv(SPARE_VARIABLE, str(tmp_path_factory.getbasetemp() / "memory"))
