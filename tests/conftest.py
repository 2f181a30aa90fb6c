"""What holds for every test."""

import pytest
from hypothesis import HealthCheck, settings

from core.jobs.spare import SPARE_VARIABLE

settings.register_profile("patient", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # a busy machine is no failure


@pytest.fixture(autouse=True)
def memory_of_its_own(tmp_path_factory, monkeypatch):
    """What no disk takes goes to a folder of the test, never to the memory that all processes of a user share."""
    monkeypatch.setenv(SPARE_VARIABLE, str(tmp_path_factory.getbasetemp() / "memory"))
