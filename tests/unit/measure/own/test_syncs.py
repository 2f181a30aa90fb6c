"""What CUDA's debug mode tells of a step; the mode is a double, as only CUDA has it."""

import warnings
from types import SimpleNamespace

import pytest
import torch

from core.measure.custom import op_counter

CUDA = torch.device("cuda:0")


@pytest.fixture
def cuda(monkeypatch):
    """A debug mode that is kept, and a read that tells while it is on."""
    state = SimpleNamespace(mode=0)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: state.mode)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: setattr(state, "mode", mode))

    def read():
        if state.mode == "warn":
            warnings.warn("called a synchronizing CUDA operation (Triggered internally)", stacklevel=2)

    state.read = read
    return state


def test_each_step_has_as_many_as_it_made_the_host_wait_and_the_place_is_told(cuda):
    def step():
        cuda.read()
        cuda.read()
        warnings.warn("something else", stacklevel=1)

    found = op_counter.count_syncs(step, 3, CUDA, lambda name: name == __file__)
    assert found.times == [2, 2, 2]
    assert found.place.startswith("test_syncs.py:")
    assert cuda.mode == 0


def test_the_mode_is_as_before_where_a_step_raises(cuda):
    def step():
        raise ValueError

    with pytest.raises(ValueError):
        op_counter.count_syncs(step, 3, CUDA, lambda _: True)
    assert cuda.mode == 0


def test_places_in_libraries_are_not_told(cuda):
    assert op_counter.count_syncs(cuda.read, 1, CUDA, lambda _: False).place == ""


@pytest.mark.usefixtures("cuda")
def test_no_other_device_has_such_a_mode():
    assert op_counter.count_syncs(lambda: None, 3, torch.device("cpu"), lambda _: True).times == []
