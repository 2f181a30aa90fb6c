"""What `build` may return, and that trainings which take turns keep their own settings."""

from pathlib import Path

import numpy  # noqa: F401 (its linear algebra has threads of its own)
import pytest
import torch
from threadpoolctl import threadpool_info

from core.errors import CustomTrainingFailed
from core.measure.custom.training import CustomTraining
from core.measure.custom.user_code import UserCode

MINE = UserCode(Path(__file__))


@pytest.fixture(autouse=True)
def _settings_are_as_before():
    yield
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)


def loop(steps):
    weight = torch.zeros(3, requires_grad=True)
    for _ in range(steps):
        loss = ((weight - 1) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            weight.sub_(0.1 * weight.grad)
            weight.grad = None
        yield loss


def test_a_loop_with_a_yield_trains_a_step_each_time_and_may_give_its_loss():
    training = CustomTraining(loop(10), MINE)
    training.advance(1)
    assert training.read_losses() == [3.0]
    training.advance(3)
    assert training.steps == 4
    assert training.read_losses()[0] < 1.5
    assert (training.learns, training.has_batches) == (None, False)


def test_a_loop_that_comes_to_an_end_says_what_to_do_about_it():
    training = CustomTraining(loop(2), MINE)
    with pytest.raises(CustomTrainingFailed, match="Its loop ended"):
        training.advance(3)


def test_trainings_that_take_turns_keep_the_settings_that_they_made():
    seen = {}

    def build(name, device, dtype):
        torch.set_default_device(device)
        torch.set_default_dtype(dtype)
        return lambda: seen.update({name: torch.ones(1)})

    one = CustomTraining(build("one", "meta", torch.float32), MINE)
    other = CustomTraining(build("other", None, torch.float64), MINE)
    one.advance(1)
    assert torch.ones(1).device.type == "cpu"
    other.advance(1)
    one.advance(1)
    assert (seen["one"].device.type, seen["one"].dtype) == ("meta", torch.float32)
    assert (seen["other"].device.type, seen["other"].dtype) == ("cpu", torch.float64)
    assert torch.get_default_dtype() == torch.float32


def test_what_changes_a_setting_in_a_step_has_it_changed_in_the_next_and_nobody_else_has():
    seen = []

    def step():
        seen.append(torch.is_grad_enabled())
        torch.set_grad_enabled(False)

    training = CustomTraining(step, MINE)
    training.advance(1)
    assert torch.is_grad_enabled()
    training.advance(1)
    assert seen == [True, False]


@pytest.mark.parametrize("count", [1, 2])
def test_threads_of_libraries_beside_pytorch_are_as_many_as_its_own(count):
    seen, before = [], torch.get_num_threads()
    training = CustomTraining(lambda: seen.extend(pool["num_threads"] for pool in threadpool_info()), MINE)
    torch.set_num_threads(count)
    training.advance(1)
    torch.set_num_threads(before)
    assert len(seen) > 1
    assert set(seen) == {count}
