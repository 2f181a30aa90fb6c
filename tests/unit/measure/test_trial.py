"""A measurement visit by visit; one in which something fails: what that ends, and which rows are left."""

import dataclasses
import weakref
from types import SimpleNamespace

import pytest
import torch

from core.answer import accuracy
from core.errors import SameTraining
from core.measure import contender, devices, preflight, trial
from core.measure.contender import MeasuredContender
from core.measure.trial import Hooks, Measurement, common_test_step, measure
from core.question.experiment import Contender, Experiment, Point

POINT = Point(samples=300, hidden_size=8, depth=1, batch_size=20, epochs=1)
PLAIN, LANE = Contender.parse("cpu@1"), Contender.parse("cpu@1+micro5")


@pytest.fixture(autouse=True)
def budget(machine, monkeypatch):
    """A budget is spent by the clock of the machine too."""
    devices.initialise("cpu")  # before, as what that takes is kept for all tests of this process
    monkeypatch.setattr(trial, "perf_counter", lambda: 1.0 + machine.clock() / 1e9)


def run(*contenders, pairs=2, **hooks):
    asked = Experiment(point=POINT, contenders=contenders, pairs=pairs)
    return measure(asked, hooks=Hooks(**hooks), run_id="b" * 12)  # which decides the order of turns


def failing(monkeypatch, method, error, *, contender=LANE, after=0):
    """Let a contender fail in a method, from the call of this number on."""
    real, calls = getattr(MeasuredContender, method), []

    def fail(measured, *asked, **more):
        if measured.contender == contender:
            calls.append(True)
            if len(calls) > after:
                raise error
        return real(measured, *asked, **more)

    monkeypatch.setattr(MeasuredContender, method, fail)


@pytest.mark.parametrize("method", ["start", "_warm_up_block", "block"])
def test_a_lane_that_fails_ends_alone_and_says_why(monkeypatch, method):
    failing(monkeypatch, method, RuntimeError("Failed to find C compiler.\nSet TORCHDYNAMO_VERBOSE=1"))
    plain, lane = run(PLAIN, LANE)
    assert (plain.outcome, plain.block_pair) == ("timed", (0, 1))
    assert (lane.outcome, lane.block_pair) == ("interrupted", ())
    assert lane.message == "cpu@1+micro5 failed: RuntimeError: Failed to find C compiler."


@pytest.mark.slow
def test_a_lane_that_fails_later_keeps_its_blocks(monkeypatch):
    failing(monkeypatch, "block", RuntimeError("capture error"), after=1)
    plain, lane = run(PLAIN, LANE)
    assert (len(plain.block_pair), len(lane.block_pair), lane.outcome) == (2, 1, "interrupted")


@pytest.mark.slow
def test_a_lane_that_fails_at_the_very_end_keeps_its_blocks(monkeypatch):
    failing(monkeypatch, "close", RuntimeError("capture error"))
    plain, lane = run(PLAIN, LANE)
    assert (plain.outcome, lane.outcome, lane.block_pair) == ("timed", "interrupted", (0, 1))


def test_a_plain_training_that_fails_ends_the_run_and_what_was_measured_is_given_away(monkeypatch):
    failing(monkeypatch, "block", RuntimeError("CUDA error: unspecified launch failure"), contender=PLAIN, after=1)
    kept = []
    with pytest.raises(RuntimeError, match="launch failure"):
        run(PLAIN, LANE, keep=kept.append)
    assert [(row.contender, len(row.block_pair)) for row in kept[-1]] == [("cpu@1", 1), ("cpu@1+micro5", 1)]


def test_the_memory_of_a_contender_is_free_before_the_device_is_asked_to_take_it_back(monkeypatch):
    held, found = [], []
    real = MeasuredContender.release

    def block(measured, pair):
        samples = torch.zeros(100)
        held.append(weakref.ref(samples))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    def release(measured):
        found.append([reference() is None for reference in held])
        real(measured)

    monkeypatch.setattr(MeasuredContender, "block", block)
    monkeypatch.setattr(MeasuredContender, "release", release)
    (row,) = run(PLAIN)
    assert row.outcome == "out_of_memory"
    assert found[0] == [True]


@pytest.mark.slow
def test_no_memory_after_the_blocks_costs_no_block_and_no_outcome(monkeypatch):
    def refuse(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    for name in ("measure_breakdown", "busy_step_s", "epoch_s"):
        monkeypatch.setattr(f"core.measure.breakdown.{name}", refuse)
    monkeypatch.setattr("core.measure.breakdown.examine", refuse)
    (row,) = run(PLAIN, pairs=0)
    assert (row.outcome, len(row.block_pair), row.confusion) == ("completed", 20, ())
    assert row.message.count("unknown: out of memory.") == 4


def test_a_training_is_not_compared_with_itself_and_no_block_of_it_is_timed(monkeypatch):
    monkeypatch.setattr(preflight, "candidate_threads", lambda: (1,))
    monkeypatch.setattr(MeasuredContender, "block", lambda *_: pytest.fail("a block was timed"))
    with pytest.raises(SameTraining, match="cpu@1 and cpu turned out to be the same training on 1 thread"):
        run(PLAIN, Contender(), pairs=0)


def test_a_size_of_a_sweep_at_which_one_thread_is_best_is_timed_all_the_same(monkeypatch):
    monkeypatch.setattr(preflight, "candidate_threads", lambda: (1,))
    assert [row.outcome for row in run(PLAIN, Contender())] == ["timed", "timed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("enough_at", "pairs", "message"),
    [(2, 3, "Decided after 3 pairs"), (4, 4, "Decided after 4 pairs"), (99, 6, "It ended after 6 pairs")],
)
def test_a_run_that_need_not_be_whole_ends_at_a_look_that_says_enough(monkeypatch, enough_at, pairs, message):
    monkeypatch.setattr(contender, "WARM_UP_S", 0.0)
    monkeypatch.setattr(trial, "MOST_PAIRS", 6)
    for module in (trial, trial):
        monkeypatch.setattr(module, "LOOKS", (3, 4, 6))
    asked = Experiment(point=dataclasses.replace(POINT, epochs=10_000), contenders=(PLAIN, LANE), whole=False)
    looks = []

    def enough(rows):
        looks.append(len(rows[0].block_pair))
        return looks[-1] >= enough_at

    for row in measure(asked, hooks=Hooks(enough=enough), run_id="b" * 12):
        assert (row.outcome, len(row.block_pair), row.confusion) == ("timed", pairs, ())
        assert row.message.startswith(message)
    assert looks == [look for look in (3, 4) if look <= pairs]


@pytest.mark.slow
def test_a_run_that_was_trained_to_its_end_by_then_is_completed_and_tested():
    asked = Experiment(point=POINT, contenders=(PLAIN,), whole=False)
    (row,) = measure(asked, hooks=Hooks(), run_id="b" * 12)
    assert (row.outcome, len(row.block_pair), bool(row.confusion)) == ("completed", 12, True)


# Visits


def visited(*contenders, **asked):
    return Measurement(Experiment(point=POINT, contenders=contenders, **asked), Hooks(), "b" * 12)


@pytest.mark.slow
def test_each_visit_times_a_pair_and_the_last_concludes_and_frees_the_memory():
    measurement, seen = visited(PLAIN, LANE, pairs=3), []
    for more in (True, True, False):
        assert measurement.run_round() is more
        seen.append({(row.outcome, len(row.block_pair), bool(row.breakdown_forward_s)) for row in measurement.rows()})
    assert seen == [{("interrupted", 1, False)}, {("interrupted", 2, False)}, {("timed", 3, True)}]
    assert measurement.run_round() is False
    with pytest.raises(RuntimeError, match="not been started"):
        _ = measurement.all_measured[0].training


def test_what_goes_on_between_visits_is_not_the_time_of_a_measurement(machine):
    measurement = visited(PLAIN, pairs=3, budget_s=60)
    while measurement.run_round():
        machine.clock.pass_s(100.0)
    (row,) = measurement.rows()
    assert (row.outcome, len(row.block_pair)) == ("timed", 3)
    assert row.block_begin_ns[1] - row.block_end_ns[0] > 100e9


@pytest.mark.slow
def test_a_budget_is_that_of_a_measurement_s_own_visits(machine):
    measurement = visited(PLAIN, pairs=100, budget_s=2)
    visits = 1
    while measurement.run_round():
        visits += 1
    (row,) = measurement.rows()
    assert row.outcome == "budget_spent"
    assert len(row.block_pair) == visits < 100


def test_a_measurement_that_is_given_up_between_visits_frees_its_memory_and_keeps_what_it_has():
    measurement = visited(PLAIN, pairs=3)
    measurement.run_round()
    steps = measurement.all_measured[0].steps
    measurement.release()
    (row,) = measurement.rows()
    assert (row.outcome, len(row.block_pair), row.steps) == ("interrupted", 1, steps)
    assert measurement.run_round() is False


@pytest.mark.slow
def test_points_that_are_visited_in_turns_share_their_data_and_train_as_if_alone():
    both = [visited(PLAIN, pairs=2), visited(PLAIN, pairs=2)]
    for _ in range(2):
        for measurement in both:
            measurement.run_round()
    first, second = (measurement.all_measured[0] for measurement in both)
    assert both[0]._data is both[1]._data
    (alone,) = run(PLAIN)
    for measurement in both:
        (row,) = measurement.rows()
        assert row.loss == alone.loss
    assert first is not second


# What was learned is tested where all have come to


def lopsided(machine, monkeypatch, slow):
    """Of two contenders one whose steps take so many times as long as the other's."""
    real = MeasuredContender._use_settings

    def use(measured):
        machine.seconds = lambda steps: steps * 1e-3 * (slow if measured.contender == LANE else 1)
        real(measured)

    monkeypatch.setattr(MeasuredContender, "_use_settings", use)


@pytest.mark.slow
@pytest.mark.parametrize("slow", [1.2, 8])
def test_what_a_budget_cut_short_is_tested_after_as_many_steps_on_both(machine, monkeypatch, slow):
    lopsided(machine, monkeypatch, slow)
    point = dataclasses.replace(POINT, epochs=1_000)
    base, other = measure(Experiment(point=point, contenders=(PLAIN, LANE), budget_s=8), hooks=Hooks(), run_id="b" * 12)
    assert {base.outcome, other.outcome} == {"budget_spent"}
    assert accuracy.final_tested_step(base) == accuracy.final_tested_step(other) < point.total_steps
    assert [bool(row.tested_step) for row in (base, other)] == [slow == 8, False], "who is far behind does not catch up"
    assert accuracy.compare_predictions(base, other).disagreeing <= 1, (
        "one processor, the same steps from the same weights"
    )
    assert all(row.loss_step[-1] == row.steps for row in (base, other))


@pytest.mark.slow
def test_what_was_trained_to_its_end_is_not_trained_again(machine):
    rows = run(PLAIN, LANE, pairs=0)
    assert {row.outcome for row in rows} == {"completed"}
    assert {row.tested_step for row in rows} == {0}
    assert {accuracy.final_tested_step(row) for row in rows} == {POINT.total_steps}


def test_the_step_that_all_are_tested_after_is_the_one_that_is_reached_soonest():
    def at(steps, step_s):
        return SimpleNamespace(counted=steps, raw=SimpleNamespace(step_s=step_s))

    assert common_test_step([at(1_000, 1e-3), at(900, 1.1e-3)]) == 1_000, "100 steps more are less than 900 again"
    assert common_test_step([at(1_000, 1e-3), at(20, 5e-2)]) == 20, "20 quick steps again are less than 980 slow ones"
    assert common_test_step([at(300, 1e-3)]) == 300
    assert common_test_step([]) == 0


# Rounds


@pytest.fixture
def pauses(monkeypatch):
    """Pauses so far, none of which is waited for."""
    found = []
    monkeypatch.setattr(trial, "sleep", found.append)
    monkeypatch.setattr(contender, "WARM_UP_S", 0.0)
    monkeypatch.setattr(trial, "TARGET_PAIRS", 10)
    monkeypatch.setattr(trial, "MOST_PAIRS", 10)
    return found


@pytest.mark.slow
def test_a_run_is_made_of_rounds_between_which_contenders_are_built_anew(monkeypatch, pauses):
    built, real = [], MeasuredContender._build

    def build(measured):
        built.append(str(measured.contender))
        real(measured)

    monkeypatch.setattr(MeasuredContender, "_build", build)
    plain, lane = run(PLAIN, LANE, pairs=0, repeatability={"machine_shift": 0.04, "machine_repeats": 3})
    assert plain.block_round == lane.block_round == (0, 0, 0, 0, 1, 1, 1, 1, 2, 2)
    assert pauses == [trial.PAUSE_S] * 2
    assert sorted(built) == ["cpu@1"] * 3 + ["cpu@1+micro5"] * 3
    assert (plain.machine_shift, plain.machine_repeats) == (0.04, 3)


@pytest.mark.slow
def test_a_training_goes_on_as_before_in_another_round(monkeypatch, pauses):
    (rounds,) = run(PLAIN, pairs=0)
    monkeypatch.setattr(trial, "ROUND_PAIRS", 99)
    (one,) = run(PLAIN, pairs=0)
    assert set(one.block_round) == {0}
    assert rounds.loss == one.loss
    assert rounds.predictions == one.predictions


@pytest.mark.slow
def test_who_does_not_fit_when_built_anew_ends_alone(monkeypatch, pauses):
    failing(monkeypatch, "begin_round", torch.OutOfMemoryError("CUDA out of memory."))
    plain, lane = run(PLAIN, LANE, pairs=0)
    assert (len(plain.block_pair), len(lane.block_pair)) == (10, 4)
    assert lane.outcome == "out_of_memory"


def test_sizes_of_a_sweep_have_no_rounds_of_their_own(pauses):
    (row,) = run(PLAIN, pairs=6)
    assert (row.block_round, pauses) == ((), [])
