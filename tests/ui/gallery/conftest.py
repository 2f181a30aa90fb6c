"""Stores that the Gallery shows, filled once for all tests that only look."""

import pytest

from core.question.experiment import Point
from tests import rows
from tests.studies import OTHER_MACHINE, rows_of, sweep
from tests.ui.conftest import Stores

STUDIES = {
    "here": sweep("a"),
    "there": sweep("b", pairs=3, **OTHER_MACHINE),
    "older": sweep("c", protocol_version=99, machine_id="c" * 12),
}
"""The same study of two machines, and of a third by another protocol."""


def stock(of):
    """Two runs measured here, one imported, one that ships: no study."""
    found = rows.run(run_id="a" * 12, started_at="2026-11-01T00:00:00+00:00")
    found += rows.run(run_id="b" * 12, point=Point(dataset="mnist", hidden_size=32))
    of.keep(found + rows.run({"cpu": 1e-3}, run_id="c" * 12, origin="friend.parquet", machine_id="1" * 12))
    of.ship(rows.run({"cpu": 1e-3, "mps": 1e-3}, run_id="d" * 12))


def keep_studies(of):
    of.keep(rows_of(*STUDIES.values()))


@pytest.fixture(scope="session")
def stocked_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stocked")
    stock(Stores.of(folder))
    return folder


@pytest.fixture(scope="session")
def studied_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studied")
    keep_studies(Stores.of(folder))
    return folder


@pytest.fixture
def stocked(lent, stocked_folder):
    return lent(stocked_folder)


@pytest.fixture
def studied(lent, studied_folder):
    lent(studied_folder)
    return STUDIES
