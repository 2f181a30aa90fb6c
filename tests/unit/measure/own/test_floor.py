"""What operations take that have nothing to compute, and what finding that leaves behind."""

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode

from core.measure.custom import op_counter
from tests.delayed import Costs


def test_a_rehearsal_of_counting_draws_nothing_and_leaves_no_mode():
    state = torch.get_rng_state()
    with Costs(asynchronous=False, number_s=0.0, call_s=1e-5) as costs:
        op_counter.rehearse.__wrapped__()
        assert _get_current_dispatch_mode() is costs
    assert torch.equal(torch.get_rng_state(), state)
