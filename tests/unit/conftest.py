"""What holds for every unit test."""

import os

import pytest

from tests import objects


@pytest.fixture(autouse=True)
def read_here(foreign_files_are_read_here):
    pass


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
        (tmp_path / "shared").mkdir()
        return f"file://{tmp_path}/shared"
    return request.getfixturevalue("object_store").address()
