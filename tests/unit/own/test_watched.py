"""What can be watched, and what is refused."""

import pytest
import torch
from torch import nn

from core.custom.watch import watch


def test_a_module_that_can_be_gone_through_is_the_model_all_the_same():
    model = nn.Sequential(nn.Linear(2, 1))
    with watch(model, quiet=True) as seen:
        torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert seen.steps.steps == 1


@pytest.mark.parametrize("what", [(3,), ([1], [2]), (nn.Linear(1, 1), nn.Linear(1, 1)), ("no", "no")])
def test_what_cannot_be_watched_is_refused(what):
    with pytest.raises(TypeError, match="an iterable of batches"):
        watch(*what)


def test_a_loop_needs_batches():
    with pytest.raises(TypeError, match="no batches"):
        iter(watch(nn.Linear(1, 1))).__next__()
