"""Addresses at which machines share files, told from folders."""

import pytest

from core.files.address import is_address


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("s3://b/x", True),
        ("file:///x", True),
        ("ftp://x", True),
        ("/data", False),
        ("data/x", False),
        ("C:\\data", False),
    ],
)
def test_an_address_is_told_from_a_folder(text, is_one):
    assert is_address(text) is is_one
