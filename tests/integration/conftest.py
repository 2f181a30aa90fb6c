"""What tests of machines that share a store have in common; each says as `address` where the store lies."""

import pytest

from core.results.finding import mirrored


@pytest.fixture
def asker(address, tmp_path, monkeypatch):
    """The folder of the store on the machine of who asks."""
    monkeypatch.setenv(mirrored.MIRRORS_VARIABLE, str(tmp_path / "asker"))
    return mirrored.located(address)
