"""A store whose files are merged."""

from pathlib import Path

import pytest

from core.results.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rows")
