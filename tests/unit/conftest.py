"""What holds for every unit test."""

from typing import IO

import pytest

from core.results.intake import quarantine


@pytest.fixture(autouse=True)
def foreign_files_are_read_here(monkeypatch):
    """Foreign files are read by this process; `tests/integration/test_hostile_files.py` tries the one of their own."""

    def read(content: IO[bytes], reply: IO[bytes], most_rows: int) -> int:
        quarantine._main(content, reply, most_rows)
        return 0

    monkeypatch.setattr(quarantine, "_limit", lambda: None)
    monkeypatch.setattr(quarantine, "_run_child", read)
