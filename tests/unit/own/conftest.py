"""A loop that is watched, by a clock moved by hand."""

import pytest

from tests.delayed import Costs
from tests.unit.own.loops import Loop


@pytest.fixture
def costs():
    """Operations that take no time, so that all of it is the test's."""
    with Costs(asynchronous=False, number_s=0.0, call_s=1e-5) as entered:
        yield entered


@pytest.fixture
def loop(costs):
    return Loop(costs)
