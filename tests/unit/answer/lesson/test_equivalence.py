"""Same learning: verdicts from planted differences, what is refused, and sentences that follow the rows."""

import dataclasses
import random
import statistics

import pytest
from scipy import stats

from core.answer.accuracy import MIN_SEEDS, find_seed_band, judge_equivalence, student_quantile
from core.errors import InvalidValue, NotComparable
from core.question.experiment import Contender, Experiment, Point
from core.results.schema import Trial
from tests import rows

ITEMS = 10_000
POINT = Point(dataset="mnist", samples=500, model="linear", epochs=2, batch_size=100)
SMALLEST_MARGIN = 0.005
PAIR = {"baseline": "cpu", "challenger": "cuda:0"}


def row_of(contender: str, seed: int, wrong: set[int], *, point: Point = POINT, **changes) -> Trial:
    """A row whose model gets the items `wrong` wrong, by one class."""
    truth = [item % 10 for item in range(ITEMS)]
    predicted = [(label + (item in wrong)) % 10 for item, label in enumerate(truth)]
    confusion = [0] * 100
    for label, answer in zip(truth, predicted, strict=True):
        confusion[label * 10 + answer] += 1
    asked = (
        Experiment(point=dataclasses.replace(point, seed=seed), contenders=(Contender(), Contender.parse(contender)))
        if contender != "cpu"
        else Experiment(point=dataclasses.replace(point, seed=seed))
    )
    about = {"run_id": f"{seed:012x}", "dataset_hash": f"{seed:016x}", "steps": asked.point.total_steps}
    values = {"confusion": tuple(confusion), "predictions": bytes(predicted), "test_samples": ITEMS}
    return rows.trial(contender=contender, experiment=asked, **{**about, **values, **changes})


def runs(seeds: int, *, gap: float = 0.0, scatter: float = 0.0, seed_sd: float = 0.003) -> list[Trial]:
    """Both contenders over some seeds: the challenger's accuracy is `gap` above, give or take `scatter`."""
    found = []
    for seed in range(seeds):
        draw = random.Random(seed)
        count = round(ITEMS * (0.1 + draw.gauss(0, seed_sd)))
        other = round(ITEMS * draw.gauss(gap, scatter))
        wrong = draw.sample(range(ITEMS), count)
        fewer = wrong[other:] if other >= 0 else [*wrong, *(set(range(ITEMS)) - set(wrong))][: count - other]
        found += [row_of("cpu", seed, set(wrong)), row_of("cuda:0", seed, set(fewer))]
    return found


def test_small_differences_in_both_directions_are_equivalent_within_half_a_point():
    found = judge_equivalence(runs(8, scatter=0.001), **PAIR, margin=SMALLEST_MARGIN)
    assert found.verdict == "equivalent"
    assert -found.margin < found.low <= found.mean <= found.high < found.margin
    assert found.sentence.startswith("Equivalent within ±0.50 percentage points: the GPU and the CPU learn the same")


@pytest.mark.parametrize("gap", [0.03, -0.03])
def test_a_planted_gap_of_three_points_is_flagged(gap):
    trials = runs(MIN_SEEDS, gap=gap, scatter=0.002)
    found = judge_equivalence(trials, **PAIR, margin=SMALLEST_MARGIN)
    assert found.verdict == "different"
    assert found.mean == pytest.approx(gap, abs=0.003)
    assert found.sentence.startswith("Different by more than")
    assert f"{100 * found.mean:+.2f}" in found.sentence


@pytest.mark.parametrize("seeds", [2, MIN_SEEDS - 1])
def test_few_seeds_are_too_few_even_where_they_agree_to_the_last_item(seeds):
    found = judge_equivalence(runs(seeds), **PAIR, margin=SMALLEST_MARGIN)
    assert found.verdict == "too_few_seeds"
    assert "differs by 0 percentage points (90 % interval 0 to 0, " in found.sentence
    assert [theirs - ours for ours, theirs in found.accuracies] == [0.0] * seeds
    assert found.sentence.startswith("Too few seeds to tell")
    assert f"{MIN_SEEDS} are needed" in found.sentence


def test_one_seed_and_none_have_no_interval():
    one, none = (judge_equivalence(runs(seeds), **PAIR, margin=0.01) for seeds in (1, 0))
    assert (one.verdict, one.low, one.high) == ("too_few_seeds", None, None)
    assert "1 seed," in one.sentence
    assert (none.verdict, none.mean, none.seeds) == ("too_few_seeds", None, ())
    assert "no seed was trained and tested on both" in none.sentence
    assert none.disagreement_sentence == "There are no predictions to compare."


def test_an_interval_across_the_margin_is_left_open():
    found = judge_equivalence(runs(6, gap=0.005, scatter=0.01), **PAIR, margin=SMALLEST_MARGIN)
    assert found.low < found.margin < found.high
    assert found.verdict == "too_few_seeds"
    assert "neither lies within ±0.50 percentage points nor rules that range out" in found.sentence


def test_the_interval_is_that_of_the_paired_t_test():
    found = judge_equivalence(runs(7, gap=0.002, scatter=0.004), **PAIR, margin=0.01)
    differences = [theirs - ours for ours, theirs in found.accuracies]
    expected = stats.t.interval(0.90, 6, loc=statistics.fmean(differences), scale=stats.sem(differences))
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 10, 29, 100, 101])
def test_the_quantile_is_that_of_students_t(freedom):
    assert student_quantile(freedom) == pytest.approx(stats.t.ppf(0.95, freedom), rel=1e-9)


def test_disagreeing_items_stand_beside_those_that_another_seed_changes():
    found = judge_equivalence(runs(5, gap=0.001), **PAIR, margin=SMALLEST_MARGIN)
    assert found.disagreeing == (10,) * 5
    assert found.items == ITEMS
    assert found.seed_to_seed > 1_000
    assert "disagree on 10 of 10,000 test items with the same seed, the CPU with another seed on 1," in (
        found.disagreement_sentence
    )


def test_where_the_seed_draws_the_test_items_there_is_no_number_from_seed_to_seed():
    digits = dataclasses.replace(POINT, dataset="digits")
    trials = [row_of(name, seed, {seed}, point=digits) for seed in range(5) for name in ("cpu", "cuda:0")]
    found = judge_equivalence(trials, **PAIR, margin=SMALLEST_MARGIN)
    assert found.seed_to_seed is None
    assert "was not tested on the same items" in found.disagreement_sentence


def test_the_newest_run_of_a_seed_counts():
    old = row_of("cuda:0", 0, set(range(5_000)), started_at="2020-01-01T00:00:00+00:00")
    trials = runs(5)
    assert judge_equivalence([old, *trials], **PAIR, margin=0.01) == judge_equivalence(
        [*trials, old], **PAIR, margin=0.01
    )
    assert judge_equivalence([*trials, old], **PAIR, margin=0.01) == judge_equivalence(trials, **PAIR, margin=0.01)


def test_rows_that_were_not_tested_and_other_contenders_do_not_count():
    trials = runs(5)
    extra = [row_of("cpu@1", 1, set()), row_of("cuda:0", 9, set(), confusion=(), predictions=b"")]
    assert judge_equivalence([*trials, *extra], **PAIR, margin=0.01).seeds == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("changes", [{"learning_rate": 0.5}, {"dataset_hash": "f" * 16}, {"steps": 3}])
def test_rows_that_differ_in_more_than_the_seed_are_refused(changes):
    trials = runs(5)
    trials[3] = dataclasses.replace(trials[3], **changes)
    with pytest.raises(NotComparable):
        judge_equivalence(trials, **PAIR, margin=0.01)


def test_another_precision_is_judged_and_not_refused():
    trials = [
        dataclasses.replace(trial, precision="bf16") if trial.contender == PAIR["challenger"] else trial
        for trial in runs(5)
    ]
    assert judge_equivalence(trials, **PAIR, margin=0.01) == judge_equivalence(runs(5), **PAIR, margin=0.01)


@pytest.mark.parametrize("margin", [0.0, -0.01, 1.0, float("nan")])
def test_a_margin_must_be_a_share(margin):
    with pytest.raises(InvalidValue, match="margin"):
        judge_equivalence(runs(5), **PAIR, margin=margin)


def test_a_contender_is_not_held_against_itself():
    with pytest.raises(InvalidValue, match="challenger"):
        judge_equivalence(runs(5), baseline="cpu", challenger="cpu", margin=0.01)


def curves(trials: list[Trial], factors: dict[str, float]) -> list[Trial]:
    """The rows with losses of 1 + seed/10, times a factor of each contender."""
    steps = (2, 4, 6)
    return [
        dataclasses.replace(
            trial, loss_step=steps, loss=tuple(factors[trial.contender] * (1 + trial.seed / 10) for _ in steps)
        )
        for trial in trials
    ]


def test_curves_of_another_device_lie_in_the_band_of_the_seeds():
    found = find_seed_band(curves(runs(5), {"cpu": 1.0, "cuda:0": 1.0}), **PAIR)
    assert (found.low, found.high) == ((1.0,) * 3, (1.4,) * 3)
    assert (found.inside, found.same_seed) == (1.0, 0.0)
    assert found.seed_to_seed > 0.05
    assert "differ by 0 %" in found.sentence
    assert "100 % of the curves of the GPU lie within the band of 5 seeds" in found.sentence


def test_curves_outside_the_band_are_counted_and_the_sentence_follows():
    found = find_seed_band(curves(runs(5), {"cpu": 1.0, "cuda:0": 1.1}), **PAIR)
    assert found.inside == pytest.approx(3 / 5)  # the two highest seeds leave it
    assert found.same_seed == pytest.approx(0.2 / 2.1)
    assert "differ by 9.5 %" in found.sentence
    assert "60 % of the curves" in found.sentence


def test_curves_that_a_budget_cut_short_make_a_band_as_far_as_all_reach():
    trials = curves(runs(2), {"cpu": 1.0, "cuda:0": 1.0})
    whole = find_seed_band(trials, **PAIR)
    short = dataclasses.replace(trials[1], loss_step=trials[1].loss_step[:-1], loss=trials[1].loss[:-1])
    found = find_seed_band([trials[0], short, *trials[2:]], **PAIR)
    assert (found.steps, found.low, found.high) == (whole.steps[:-1], whole.low[:-1], whole.high[:-1])


def test_a_band_needs_two_seeds_and_equal_segments():
    assert find_seed_band(curves(runs(1), {"cpu": 1.0, "cuda:0": 1.0}), **PAIR) is None
    trials = curves(runs(2), {"cpu": 1.0, "cuda:0": 1.0})
    trials[1] = dataclasses.replace(trials[1], loss_step=(1, 4, 6))
    with pytest.raises(NotComparable, match="segments"):
        find_seed_band(trials, **PAIR)
