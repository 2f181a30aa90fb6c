"""Other batches for one's own training: what is tried, and that they are timed in turns with its own."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset

from core.answer import custom_findings as seen_of_own
from core.measure.custom import loaders
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


FIXED = """
import torch
from torch.utils.data import DataLoader

class Own:
    def __init__(self, device):
        self.before = torch.zeros(4, 2, requires_grad=True)
        self.batches = DataLoader(torch.ones(64, 2), 4)
    def step(self, batch):
        (self.before + batch).sum().backward()
        self.before.grad = None

def build(size, device):
    return Own(device)
"""
"""A state for each of a batch's samples."""


class Endless(IterableDataset):
    def __iter__(self):
        yield from iter(torch.arange(4.0))


def names(source, device=CPU):
    return list(loaders.list_alternative_loaders(source, device, lambda batch: batch))


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
    source, both, timed = DataLoader(DATA, 4), ["workers2", "resident"], {loaders.GIVEN: (1.0,)}
    assert loaders.explain_skipped_loaders([1], [], [], {}) == [
        "Other loaders were not tried: its batches do not come from PyTorch's own DataLoader."
    ]
    assert loaders.explain_skipped_loaders(source, both, [], {}) == [
        "Other loaders were not tried: their turns would take longer than 10 s."
    ]
    some = ["Some other loaders were not tried: their turns would take longer than 10 s."]
    assert loaders.explain_skipped_loaders(source, both, both[:1], {**timed, "workers2": (1.0,)}) == some
    assert loaders.explain_skipped_loaders(source, both, both, {**timed, "workers2": (), "resident": (1.0,)}) == some
    assert loaders.explain_skipped_loaders(source, [loaders.LARGER], [], {}) == [
        "Larger batches were not tried: their turns would take longer than 10 s."
    ]
    assert loaders.explain_skipped_loaders(source, both, both, {**timed, "resident": (1.0,)}) == [
        "Training with two persistent loader workers failed."
    ]
    assert loaders.explain_skipped_loaders(source, both, both, {**timed, **dict.fromkeys(both, (1.0,))}) == []
    resident = {**timed, "resident": (1.0,)}
    (said,) = loaders.explain_skipped_loaders(DataLoader(Endless(), 2), ["resident"], ["resident"], resident)
    assert said.startswith("Other workers were not tried")


class Paced:
    """A training whose steps take the seconds that its batches say, and the clock of it."""

    feed = SimpleNamespace(batches=1e-3, prefetched=0)

    def __init__(self):
        self.now = self.steps = 0

    def build_feed(self, source, *, placed):
        return SimpleNamespace(batches=source, prefetched=0)

    def use(self, feed):
        self.feed = feed

    def advance(self, steps):
        self.now += steps * self.feed.batches
        self.steps += steps

    def time(self, work):
        before = self.now
        work()
        return SimpleNamespace(seconds=self.now - before)


def test_what_its_first_turn_shows_to_be_too_slow_has_no_more_and_the_others_have_theirs():
    training = Paced()
    tried = {"workers2": loaders.AlternativeSource(source=0.5), "resident": loaders.AlternativeSource(source=5e-4)}
    times = loaders.measure(training, tried, training, 1e-3)
    assert times == {
        "workers2": (),
        "resident": (pytest.approx(5e-4),) * loaders.TURNS,
        loaders.GIVEN: (pytest.approx(1e-3),) * loaders.TURNS,
    }
    assert training.feed is Paced.feed, "it goes on with the loader that it has"


def test_as_many_are_tried_as_their_turns_have_time_for_the_first_ones_first():
    tried = {"workers2": loaders.AlternativeSource(source=()), "larger": loaders.AlternativeSource(source=(), work=4.0)}
    assert list(loaders.select_affordable(tried, 1e-3)) == ["workers2", "larger"]
    assert list(loaders.select_affordable(tried, 0.3)) == ["workers2"]
    assert loaders.select_affordable(tried, 1.0) == {}


@pytest.mark.parametrize(
    ("options", "sizes"),
    [({"batch_size": 1}, [4, 4, 4]), ({"batch_size": 2}, [8]), ({"batch_size": 3, "drop_last": True}, [12])],
)
def test_a_larger_batch_has_four_times_the_samples_of_a_full_one(options, sizes):
    (other,) = loaders.list_larger_batches(DataLoader(DATA, **options)).values()
    assert [len(batch[0]) for batch in other.source] == sizes
    assert other.work == 4


def test_samples_are_counted_where_the_last_batch_is_a_smaller_one():
    (other,) = loaders.list_larger_batches(DataLoader(TensorDataset(torch.ones(13, 1)), 3)).values()
    assert [len(batch[0]) for batch in other.source] == [12]
    assert other.work == pytest.approx(12 / (13 / 5))


@pytest.mark.parametrize(
    "source",
    [
        None,
        [torch.ones(2)],
        DataLoader(DATA, 4),
        DataLoader(DATA, batch_size=None),
        DataLoader(Endless(), 1),
        DataLoader(DATA, batch_sampler=[[0], [1]]),
    ],
    ids=["none", "a list", "too few samples", "no batches", "a stream", "a sampler of their own"],
)
def test_larger_batches_are_left_alone_where_they_cannot_be_had(source):
    assert loaders.list_larger_batches(source) == {}


def test_batches_of_a_sampler_of_pytorchs_own_are_made_larger():
    sampler = BatchSampler(SequentialSampler(DATA), 3, drop_last=True)
    (other,) = loaders.list_larger_batches(DataLoader(DATA, batch_sampler=sampler)).values()
    assert [batch[0][:, 0].tolist() for batch in other.source] == [[2.0 * number for number in range(12)]]


def told(**times):
    return seen_of_own.batch_effects(rows.trial(**{f"own_{name}_s": values for name, values in times.items()}))


def test_a_loader_whose_interval_contains_one_is_told_as_not_known():
    given = (1.0,) * 7
    assert "inconclusive" in told(given=given, resident=(0.5, 2.0) * 3 + (0.9,))[0]
    assert "inconclusive" not in told(given=given, resident=(0.5,) * 7)[0]


def test_larger_batches_are_told_by_the_sample_and_that_they_learn_differently():
    assert told(given=(1.0,) * 7, larger=(0.5,) * 7) == [
        "On the CPU, samples are trained 2.00× as fast in batches four times as large (95 %: 2.00× to 2.00×). "
        "It learns differently: the same samples give a quarter of the updates."
    ]


SMALL = {"own_operations": (50,) * 5, "own_inside_s": (5e-4,) * 5, "own_between_s": (0.0,) * 5, "own_waits": (0,) * 5}


def test_where_operations_are_too_small_and_batches_are_not_a_loaders_it_is_said_how_to_try_larger_ones():
    row = rows.trial(training="mine.py:build", own_floor_s=(1e-5, 1e-5, 1e-6), **SMALL)
    assert "too small" in " ".join(seen_of_own.finding_sentences(row))
    assert "let size be the batch size, and sweep it" in seen_of_own.larger_batches_hint(row)
    assert seen_of_own.custom_sentences([row, row])[-1] == seen_of_own.larger_batches_hint(row)
    timed = dataclasses.replace(row, own_given_s=(1.0,) * 7, own_larger_s=(0.5,) * 7)
    assert seen_of_own.larger_batches_hint(timed) == ""
    assert seen_of_own.larger_batches_hint(dataclasses.replace(row, own_floor_s=(1e-8, 1e-5, 1e-6))) == ""


OPTIONS = [{"batch_size": 4, "shuffle": True}, {"batch_size": 5, "drop_last": True}, {"batch_size": None}]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_loader_with_other_workers_gives_the_same_batches(options):
    source = DataLoader(DATA, num_workers=1, **options)
    other = loaders.list_alternative_loaders(source, CPU, lambda batch: batch)["workers0"].source
    torch.manual_seed(0)
    expected = list(DataLoader(DATA, **options))
    torch.manual_seed(0)
    assert [batch[0].tolist() for batch in other] == [batch[0].tolist() for batch in expected]


def test_workers_that_are_tried_stay_from_epoch_to_epoch():
    tried = {
        name: other.source
        for name, other in loaders.list_alternative_loaders(DataLoader(DATA, 4, num_workers=1), CPU, id).items()
    }
    assert tried["workers2"].persistent_workers
    assert not tried["workers0"].persistent_workers
    (larger,) = loaders.list_larger_batches(DataLoader(DATA, 1, num_workers=1)).values()
    assert not larger.source.persistent_workers, "only its batches are others"


def test_resident_batches_are_placed_once_and_gone_through_again():
    placed = []
    source = DataLoader(DATA, 1)
    other = loaders.list_alternative_loaders(source, CPU, lambda batch: placed.append(batch) or len(placed))["resident"]
    assert other.placed
    assert list(other.source) == list(other.source) == list(range(1, loaders.RESIDENT + 1))


@pytest.mark.slow
def test_other_loaders_take_turns_with_a_slow_one_and_are_told_with_their_interval(own):
    (row,) = own(SLOW, budget_s=60)
    timed = (row.own_given_s, row.own_workers2_s, row.own_resident_s, row.own_larger_s)
    assert [len(values) for values in timed] == [loaders.TURNS] * 4
    assert (row.own_workers0_s, row.own_pinned_s) == ((), ())
    told = seen_of_own.custom_sentences([row])
    assert any("with batches already on the device (95 %: " in sentence for sentence in told)
    assert any("in batches four times as large (95 %: " in sentence for sentence in told)


@pytest.mark.slow
def test_a_training_that_takes_no_larger_batch_goes_on_and_says_so(own):
    (row,) = own(FIXED, budget_s=60)
    assert row.own_larger_s == ()
    assert "Training with batches four times as large failed." in row.message
    assert row.step_s
