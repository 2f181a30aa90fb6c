"""Stores that the Gallery shows."""

import pytest

from core.question.experiment import Point
from tests import rows
from tests.studies import OTHER_MACHINE, rows_of, sweep


@pytest.fixture
def stocked(world):
    """Two runs measured here, one imported, one that ships: no study."""
    found = rows.run(run_id="a" * 12, started_at="2026-11-01T00:00:00+00:00")
    found += rows.run(run_id="b" * 12, point=Point(dataset="mnist", hidden_size=32))
    world.keep(found + rows.run({"cpu": 1e-3}, run_id="c" * 12, origin="friend.parquet", machine_id="1" * 12))
    world.ship(rows.run({"cpu": 1e-3, "mps": 1e-3}, run_id="d" * 12))
    return world


@pytest.fixture
def studied(world):
    """The same study of two machines, and of a third by another protocol."""
    known = {
        "here": sweep("a"),
        "there": sweep("b", pairs=3, **OTHER_MACHINE),
        "older": sweep("c", protocol_version=99, machine_id="c" * 12),
    }
    world.keep(rows_of(*known.values()))
    return known
