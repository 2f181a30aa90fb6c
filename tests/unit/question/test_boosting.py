"""Gradient boosting as a question: what a fit has a choice in, what it costs, and what is refused."""

import pytest

from core.errors import InvalidValue, NotAllowed
from core.question import describe, lanes, models, policy
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import FIELDS
from core.question.models import families, operations
from core.question.policy import Policy
from core.question.sweep import Axis, Sweep, size_axes, vary

FIT = Point(dataset="signal", samples=1_000_000, model="xgboost", batch_size=128, epochs=7, data_path="loader")


def test_a_fit_sees_all_rows_at_once_whatever_batches_and_epochs_were_asked_for():
    assert (FIT.batch_size, FIT.epochs, FIT.data_path, FIT.shuffle, FIT.loader_workers) == (0, 1, "per_batch", False, 0)
    assert (FIT.rounds, FIT.leaves) == (FIELDS["rounds"].default, FIELDS["leaves"].default)
    assert (FIT.steps_per_epoch, FIT.total_steps) == (1, 1)
    assert (FIT.network.parameters, FIT.network.flops_per_step(FIT.batch_size)) == (0, 0)
    assert Point.from_json(FIT.to_json()) == FIT


def test_networks_have_no_rounds_and_are_written_as_they_always_were():
    network = Point(rounds=5, leaves=5)
    assert (network.rounds, network.leaves) == (0, 0)
    assert not {"rounds", "leaves"} & network.to_json().keys()
    assert not network.is_fit


def test_a_line_about_a_fit_says_its_rows_rounds_and_leaves_and_nothing_of_batches():
    said = describe.describe_question(FIT)
    assert "1,000,000 rows · XGBoost, 100 rounds, 31 leaves · learning rate 0.1" in said
    assert "batch" not in said
    assert "--batch-size" not in describe.build_command(Experiment(point=FIT))


@pytest.mark.parametrize(("model", "device"), [("hist-boosting", "cuda:0"), ("xgboost", "mps"), ("lightgbm", "xpu:0")])
def test_a_device_that_the_library_was_not_written_for_is_refused(model, device):
    with pytest.raises(InvalidValue, match=f"where {families.LIBRARIES[model].title} fits its trees"):
        Experiment(point=Point(model=model), contenders=(Contender(device=device),))
    Experiment(point=Point(), contenders=(Contender(device=device),))


def test_lanes_are_refused_in_a_sentence_and_none_is_worth_trying():
    with pytest.raises(InvalidValue, match="LightGBM has its own way of fitting"):
        Experiment(point=Point(model="lightgbm"), contenders=(Contender.parse("cpu+compiled10"),))
    assert not [lane for on_host in (True, False) for lane in lanes.worth_trying(FIT, on_host=on_host)]


@pytest.mark.parametrize("axis", ["batch_size", "parameters", "hidden_size", "size"])
def test_a_fit_is_varied_in_rows_rounds_leaves_and_shrinkage_alone(axis):
    with pytest.raises(InvalidValue, match="samples, rounds, leaves, learning_rate: a gradient boosting fit"):
        Sweep(point=FIT, axes=(Axis(name=axis, values=(4, 8)),))
    assert size_axes("xgboost", "signal") == ["samples", "rounds", "leaves"]
    rows = Sweep(point=FIT, axes=(Axis.from_range("samples", 1_000, 1_000_000, adaptive=True),))
    assert [point.batch_size for point in rows.points[:2]] == [0, 0]
    with pytest.raises(InvalidValue, match="rounds"):
        vary(Point(), {"rounds": 3})


def test_the_work_of_a_fit_grows_with_rows_rounds_and_classes():
    small = Point(dataset="signal", samples=1_000, model="hist-boosting", rounds=10)
    assert operations.work(vary(small, {"samples": 2_000})) == 2 * operations.work(small)
    assert operations.work(vary(small, {"rounds": 30})) == 3 * operations.work(small)
    digits = Point(dataset="digits", samples=1_000, model="hist-boosting", rounds=10)
    assert operations.work(digits) == operations.work(small) * 10 * 64 // 20
    assert operations.work(Point()) == Point().network.flops_per_step(64)


def test_what_a_fit_needs_has_a_part_for_all_for_each_row_and_for_each_leaf():
    """Peaks of a first fit, as `tests.benchmarks.boosting --memory` measures them, are below."""

    def most(**changes):
        return operations.step_bytes(vary(FIT, {"samples": 300_000, **changes}), 0) / 2**20

    peaks = {most(samples=300): 10.6, most(samples=3_000): 12.4, most(samples=30_000): 21.6, most(): 104.2}
    assert all(peak < bound for bound, peak in peaks.items())
    assert most(samples=300) == pytest.approx(16, abs=6)
    table = 4 * 20 * 300_000 / 2**20
    assert 4 * table < most() < 6.6 * table
    nodes = 2 * 1_024 * 20 * 256 * 16 / 2**20  # XGBoost keeps a histogram of each
    assert most(leaves=1_024) - most(leaves=2) == pytest.approx(nodes, rel=0.01)


def test_a_host_bounds_the_work_and_the_memory_of_a_fit():
    Policy().check(Experiment(point=Point(dataset="disc", model="hist-boosting")))
    least = policy.RunBudget(operations=1e6)
    with pytest.raises(NotAllowed, match=r"the work of 40\.0 MFLOP a step"):
        Policy(run=least).check(Experiment(point=Point(dataset="signal", samples=1_000, model="xgboost", rounds=100)))


def test_every_library_has_a_family_that_says_who_fits_it():
    fits = {name: family for name, family in models.FAMILIES.items() if family.library}
    assert fits.keys() == families.LIBRARIES.keys()
    assert all(family.library in family.summary and not family.size for family in fits.values())
