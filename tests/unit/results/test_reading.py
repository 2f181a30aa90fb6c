import os

import pytest

from core.errors import ForeignFile
from core.results import parquet
from tests import rows


def test_rows_are_read_back_equal_and_torn_ones_read_as_none(tmp_path):
    path, trials = tmp_path / "partial.parquet", rows.run()
    parquet.write_rows(path, trials)
    assert parquet.read_rows(path) == trials
    path.write_bytes(path.read_bytes()[:-50])
    assert parquet.read_rows(path) == []


def test_a_missing_file_has_no_rows(tmp_path):
    assert parquet.read_rows(tmp_path / "none.parquet") == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "partial.parquet")

    with pytest.raises(ForeignFile, match="not a regular file"):
        parquet.read_file(tmp_path / "partial.parquet")
    assert parquet.read_rows(tmp_path / "partial.parquet") == []
