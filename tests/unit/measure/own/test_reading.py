"""What counts as a wait: values that are read on the device, and not those that a data set reads on the host."""

from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from core.measure.custom.op_counter import OperationCounter


class Labelled(Dataset):
    labels = torch.arange(8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        return torch.ones(2), int(self.labels[place])


def waits(work, device="cpu"):
    watching = OperationCounter(torch.device(device), lambda: "here")
    with watching:
        work()
    return watching.counts["waits"]


@pytest.mark.slow
def test_a_label_that_a_data_set_makes_a_number_of_is_waited_for_by_nobody():
    assert waits(lambda: list(DataLoader(Labelled(), batch_size=4))) == 0


def test_a_loss_that_is_read_among_batches_is_waited_for():
    loader = DataLoader(Labelled(), batch_size=4)
    assert waits(lambda: [images.sum().item() for images, _ in loader]) == 2


def test_a_value_on_the_host_is_waited_for_by_nobody_who_trains_on_another_device():
    assert waits(lambda: torch.ones(1).item(), "meta") == 0


@pytest.mark.parametrize(
    ("pinned", "non_blocking", "waited"), [(True, True, 0), (False, True, 1), (True, False, 1), (False, False, 1)]
)
def test_a_copy_to_pinned_memory_that_is_only_queued_is_waited_for_by_nobody(monkeypatch, pinned, non_blocking, waited):
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda _: pinned)
    counter = OperationCounter(torch.device("cuda:0"), lambda: "here")
    there, here = SimpleNamespace(device=torch.device("cuda:0")), torch.ones(1)
    monkeypatch.setattr(
        "core.measure.custom.op_counter._tensors", lambda args: [each for each in args if hasattr(each, "device")]
    )
    counter._count_copy((there,), {"non_blocking": non_blocking}, [here])
    counter._count_copy((here, there, non_blocking), {}, [here])
    assert counter.counts["waits"] == 2 * waited
