"""Other loaders for one's own training: what is tried, and that they are timed in turns with its own."""

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from core.answer.run import own as seen_of_own
from core.measure.own import loaders
from tests import rows

CPU, GPU = torch.device("cpu"), torch.device("cuda:0")
DATA = TensorDataset(torch.arange(24.0).reshape(12, 2))

SLOW = """
import time, torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        time.sleep(1e-4)
        return torch.ones(2)

class Own:
    def __init__(self, device):
        self.weight = torch.zeros(2, device=device, requires_grad=True)
        self.batches = DataLoader(Slow(), 8, shuffle=True)
    def step(self, batch):
        (batch @ self.weight).sum().backward()
        self.weight.grad = None

def build(size, device):
    return Own(device)
"""


class Endless(IterableDataset):
    def __iter__(self):
        yield from iter(torch.arange(4.0))


def names(source, device=CPU):
    return list(loaders.others(source, device, lambda batch: batch))


def test_what_is_tried_depends_on_what_the_loader_has_and_on_the_device():
    assert names(DataLoader(DATA, 4)) == ["workers2", "resident"]
    assert names(DataLoader(DATA, 4, num_workers=1)) == ["workers0", "workers2", "resident"]
    assert names(DataLoader(DATA, 4), GPU) == ["workers2", "pinned", "resident"]
    assert names(DataLoader(DATA, 4, pin_memory=True), GPU) == ["workers2", "resident"]
    assert names(DataLoader(Endless(), 2)) == ["resident"]


@pytest.mark.parametrize("source", [None, [torch.ones(2)], iter(())])
def test_what_is_no_loader_of_pytorch_is_left_alone(source):
    assert names(source) == []


def test_loaders_that_were_left_out_are_told_with_the_reason():
    source = DataLoader(DATA, 4)
    assert loaders.left_out([1], [], []) == [
        "Other loaders were not tried: its batches are no DataLoader of PyTorch's own."
    ]
    assert loaders.left_out(source, ["resident"], []) == [
        "Other loaders were not tried: their turns would take longer than 10 s."
    ]
    assert loaders.left_out(source, ["workers2", "resident"], ["resident", loaders.GIVEN]) == [
        "With two workers of its loader it could not be trained."
    ]
    assert loaders.left_out(source, ["resident"], ["resident", loaders.GIVEN]) == []
    (said,) = loaders.left_out(DataLoader(Endless(), 2), ["resident"], ["resident", loaders.GIVEN])
    assert said.startswith("Other workers were not tried")


def test_a_loader_whose_interval_contains_one_is_told_as_not_known():
    def told(resident):
        row = rows.trial(own_given_s=(1.0,) * 7, own_resident_s=resident)
        return seen_of_own.loaders(row)[0]

    assert "it cannot be told whether it helps" in told((0.5, 2.0) * 3 + (0.9,))
    assert "it cannot be told" not in told((0.5,) * 7)


OPTIONS = [{"batch_size": 4, "shuffle": True}, {"batch_size": 5, "drop_last": True}, {"batch_size": None}]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_loader_with_other_workers_gives_the_same_batches(options):
    source = DataLoader(DATA, num_workers=1, **options)
    other = loaders.others(source, CPU, lambda batch: batch)["workers0"][0]
    torch.manual_seed(0)
    expected = list(DataLoader(DATA, **options))
    torch.manual_seed(0)
    assert [batch[0].tolist() for batch in other] == [batch[0].tolist() for batch in expected]


def test_resident_batches_are_placed_once_and_gone_through_again():
    placed = []
    source = DataLoader(DATA, 1)
    again, unplaced = loaders.others(source, CPU, lambda batch: placed.append(batch) or len(placed))["resident"]
    assert not unplaced
    assert list(again) == list(again) == list(range(1, loaders.RESIDENT + 1))


@pytest.mark.slow
def test_other_loaders_take_turns_with_a_slow_one_and_are_told_with_their_interval(own):
    (row,) = own(SLOW, budget_s=60)
    timed = (row.own_given_s, row.own_workers2_s, row.own_resident_s)
    assert [len(values) for values in timed] == [loaders.TURNS] * 3
    assert (row.own_workers0_s, row.own_pinned_s) == ((), ())
    told = seen_of_own.seen([row])
    assert any("with batches that are on the device already (95 %: " in sentence for sentence in told)
