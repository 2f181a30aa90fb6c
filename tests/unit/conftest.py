"""What holds for every unit test."""

import os
from typing import IO

import pytest

from core.results.intake import quarantine
from tests import objects


@pytest.fixture(autouse=True)
def foreign_files_are_read_here(monkeypatch):
    """Foreign files are read by this process; `tests/integration/test_hostile_files.py` tries the one of their own."""

    def read(content: IO[bytes], reply: IO[bytes], most_rows: int) -> int:
        quarantine._main(content, reply, most_rows)
        return 0

    monkeypatch.setattr(quarantine, "_limit", lambda: None)
    monkeypatch.setattr(quarantine, "_run_child", read)


@pytest.fixture(scope="session")
def object_store():
    """A server that speaks S3; the credentials are put where its user keeps them, for the whole session."""
    os.environ.update(objects.KEYS)
    with objects.served() as server:
        yield server


@pytest.fixture(params=["folder", "s3"])
def shared_address(request, tmp_path):
    """The address of an empty place, of each kind that can be tried here."""
    if request.param == "folder":
        return f"file://{tmp_path}/shared"
    return request.getfixturevalue("object_store").address()
