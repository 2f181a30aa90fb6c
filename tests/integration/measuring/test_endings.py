"""How real measurements on the CPU end before their time: budget, memory, a loss, a stop, or never begun."""

import pytest

from core.errors import DeviceUnavailable, InvalidValue, TooSlow
from core.measure import breakdown, contender, preflight, timer, trial
from core.progress import Progress
from core.question.experiment import Contender
from tests.integration.measuring.runs import BEST, ONE, TWO, run, small, two_cores


@pytest.fixture(scope="module", autouse=True)
def measured_before():
    """The first measurement of a process loads what all need, which may outlast the budgets that are tried here."""
    run(small(epochs=1), pairs=1)


def test_a_budget_cuts_the_training_short_and_says_where():
    (row,) = run(small(epochs=10_000), budget_s=1.5)
    assert row.outcome == "budget_spent"
    assert row.message.startswith("The budget of 1.5 s ended after ")
    assert 0 < row.steps < 60_000
    assert sum(row.confusion) == row.test_samples


def test_a_budget_that_ends_before_the_pairs_says_how_many_there_are(monkeypatch):
    for module in (timer, contender, breakdown):
        monkeypatch.setattr(module, "MIN_BLOCK_S", 0.1)  # of 100 blocks 10 s
    (row,) = run(small(), budget_s=2, pairs=100)
    assert row.outcome == "budget_spent"
    assert 0 < len(row.block_pair) < 100
    assert row.message == f"The budget of 2 s ended after {len(row.block_pair)} of 100 pairs of blocks."


def test_a_loss_that_becomes_nan_is_an_outcome_where_times_alone_were_wanted_too():
    (row,) = run(small(learning_rate=10.0, hidden_size=300, depth=2, epochs=60), pairs=3)
    assert (row.outcome, len(row.block_s)) == ("diverged", 3)


def test_a_preparation_that_outlasts_the_budget_is_cut_short(monkeypatch):
    started: list[str] = []
    real, clock = contender.MeasuredContender.start, [0.0]

    def start(self: contender.MeasuredContender) -> None:
        started.append(str(self.contender))
        real(self)
        clock[0] += 100.0

    monkeypatch.setattr(trial, "perf_counter", lambda: clock[0] + 1.0)
    monkeypatch.setattr(contender.MeasuredContender, "start", start)
    assert run(small(), ONE, BEST, budget_s=60, pairs=2) == []
    assert started == ["cpu@1"]


def test_a_loss_that_becomes_nan_is_an_outcome_with_times_and_no_report(monkeypatch):
    point = small(learning_rate=10.0, hidden_size=300, depth=2, epochs=60)
    monkeypatch.setattr(contender, "block_steps", lambda _: point.total_steps)  # however busy the machine is
    (row,) = run(point)
    assert row.outcome == "diverged"
    assert len(row.block_s) == 3
    assert (row.confusion, row.predictions) == ((), b"")


@two_cores
def test_a_contender_without_memory_ends_alone(monkeypatch):
    real = contender.MeasuredContender.require_memory

    def refuse_two(self: contender.MeasuredContender) -> None:
        if self.contender == TWO:
            monkeypatch.setattr(self._device.__class__, "free_bytes", lambda _: 10)
        real(self)

    monkeypatch.setattr(contender.MeasuredContender, "require_memory", refuse_two)
    one, two = run(small(), ONE, TWO)
    assert (one.outcome, two.outcome) == ("completed", "out_of_memory")
    assert "The training needs about" in two.message
    assert two.block_s == ()


def test_an_allocator_that_refuses_in_the_middle_is_an_outcome(monkeypatch):
    real = contender.MeasuredContender.block

    def refuse(self: contender.MeasuredContender, pair: int) -> None:
        if pair == 2:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")
        real(self, pair)

    monkeypatch.setattr(contender.MeasuredContender, "block", refuse)
    (row,) = run(small())
    assert (row.outcome, len(row.block_s)) == ("out_of_memory", 2)


def test_another_error_is_not_taken_for_missing_memory(monkeypatch):
    monkeypatch.setattr(contender.MeasuredContender, "block", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(small())


@pytest.mark.parametrize(
    "phase", ["loading data", "starting up", "warming up", "training", "timing the parts", "testing"]
)
def test_a_stop_is_heeded_in_every_phase(phase):
    heard: list[str] = []

    def listen(progress: Progress) -> None:
        heard.append(progress.phase)

    rows = run(small(), ONE, progress=listen, should_stop=lambda: heard[-1].startswith(phase) if heard else False)
    assert heard[-1].startswith(phase)
    assert [row.outcome for row in rows] == (
        ["stopped"] if phase in ("training", "timing the parts", "testing") else []
    )


def test_a_training_of_which_no_block_fits_into_the_budget_is_not_begun(monkeypatch):
    monkeypatch.setattr(preflight, "product_flops", lambda _: 1e6)
    monkeypatch.setattr(preflight, "SLOWEST_FLOPS", {"cpu": 1e5})
    told: list[Progress] = []
    with pytest.raises(TooSlow, match="one step on 1 CPU thread takes at least"):
        run(small(), ONE, budget_s=1, progress=told.append)
    assert [entry.phase for entry in told] == ["loading data", "starting up 1 CPU thread"]


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(DeviceUnavailable, match="xpu:7 is not on this machine"):
        run(small(), Contender(device="xpu:7"))


def test_more_threads_than_there_are_is_refused():
    with pytest.raises(InvalidValue, match=r"threads must be at most the"):
        run(small(), Contender(threads=1_000))
