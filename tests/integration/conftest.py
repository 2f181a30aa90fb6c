"""What tests of machines that share a store have in common; each says as `address` where the store lies."""

import pytest

from core.jobs.shared import board
from core.remote import local_cache
from tests.integration import scripted_node


@pytest.fixture
def asker(address, tmp_path, monkeypatch):
    """The folder of the store on the machine of who asks."""
    monkeypatch.setenv(local_cache.CACHES_VARIABLE, str(tmp_path / "asker"))
    monkeypatch.setattr(board, "PRESENT_S", scripted_node.PRESENT_S)
    return local_cache.resolve_store(address)
