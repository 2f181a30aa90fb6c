"""Step times, pairs and verdicts of one run."""

import dataclasses
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.answer import speedup
from core.answer.statistics import MIN_PAIRS, median_interval
from core.answer.verdict import verdict_sentence
from core.errors import NotComparable
from core.question.fields import field_title
from core.results.schema import Trial
from tests.rows import run
from tests.unit.answer.run.timed import timed


def noisy(seed: int, *, ratio: float, pairs: int, sd: float = 0.05) -> tuple[Trial, Trial]:
    """A pair of rows with log-normal noise around a known speedup; each pair shares a disturbance of its own."""
    draw = random.Random(seed)
    shared = [math.exp(draw.gauss(0, 0.05)) for _ in range(pairs)]
    base = [1e-3 * common * math.exp(draw.gauss(0, sd)) for common in shared]
    other = [1e-3 / ratio * common * math.exp(draw.gauss(0, sd)) for common in shared]
    return timed(base), timed(other, "cuda:0")


def reordered(row: Trial, order: list[int]) -> Trial:
    names = ("block_pair", "block_steps", "block_begin_ns", "block_end_ns")
    return dataclasses.replace(row, **{name: tuple(getattr(row, name)[place] for place in order) for name in names})


def test_step_time_is_the_median_with_the_interval_of_order_statistics():
    found = speedup.step_time(timed([9e-3, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3, 7e-3, 8e-3]))
    assert found.median_s == pytest.approx(5e-3)
    assert (found.low_s, found.high_s) == (pytest.approx(2e-3), pytest.approx(8e-3))
    assert found.noise == pytest.approx(4 / 5)
    assert (found.outliers, found.blocks) == (0, 9)


def test_below_six_blocks_there_is_a_median_but_no_interval():
    found = speedup.step_time(timed([1e-3, 2e-3, 3e-3, 4e-3, 5e-3]))
    assert found.median_s == pytest.approx(3e-3)
    assert found.low_s is None
    assert found.high_s is None


def test_one_block_has_no_noise_and_no_blocks_have_no_median():
    assert speedup.step_time(timed([1e-3])).noise is None
    nothing = speedup.step_time(timed([]))
    assert (nothing.median_s, nothing.noise, nothing.outliers, nothing.blocks) == (None, None, 0, 0)


def test_blocks_that_took_no_time_have_no_noise_instead_of_an_error():
    assert speedup.step_time(timed([0.0, 0.0])).noise is None


def test_outliers_are_counted_by_their_distance_in_deviations_and_stay_in():
    times = [1.0e-3, 1.1e-3, 0.9e-3, 1.05e-3, 0.95e-3, 1.02e-3, 5e-3]
    assert speedup.step_time(timed(times)).outliers == 1
    assert speedup.step_time(timed(times[:-1])).outliers == 0
    assert speedup.step_time(timed(times)).blocks == 7


@pytest.mark.parametrize("count", [*range(6, 40), 100, 1_001])
def test_the_interval_leaves_out_as_much_of_each_tail_as_95_percent_allow(count):
    low, high = median_interval(range(count))
    assert low + high == count - 1
    tail = sum(math.comb(count, k) for k in range(low + 1)) / 2**count
    assert tail <= 0.025
    assert tail + math.comb(count, low + 1) / 2**count > 0.025


def test_a_coarse_clock_does_not_give_a_certainty_that_its_pairs_do_not_share():
    assert median_interval([1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0]) == (1.0, 3.0)
    assert median_interval([2.0] * 9) == (2.0, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [6, 9, 12, 20])
def test_the_interval_of_the_speedup_covers_the_truth_95_times_in_100(pairs):
    runs, truth, covered = 1000, 2.0, 0
    for seed in range(runs):
        found = speedup.speedup(*noisy(seed, ratio=truth, pairs=pairs))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    binomial_error = math.sqrt(0.95 * 0.05 / runs)
    assert covered / runs >= 0.95 - 3 * binomial_error


def test_a_device_that_wins_wins_by_its_kind_whoever_is_the_baseline():
    cpu, gpu = run({"cpu": 1e-3, "cuda:0": 2.5e-4}, jitter=0.01)
    found = speedup.speedup(cpu, gpu)
    assert found.verdict == "gpu_faster"
    assert found.value == pytest.approx(4, rel=0.02)
    assert found.low < found.value < found.high
    assert (found.pairs, found.reason, found.has_winner) == (20, "", True)
    assert speedup.speedup(gpu, cpu).verdict == "gpu_faster"


def test_between_two_settings_of_one_cpu_the_challenger_takes_the_place_of_the_gpu():
    one, two = run({"cpu@1": 2e-3, "cpu@2": 1e-3}, jitter=0)
    assert speedup.speedup(one, two).verdict == "gpu_faster"
    assert speedup.speedup(two, one).verdict == "cpu_faster"
    sentence = verdict_sentence(speedup.speedup(one, two))
    assert sentence.startswith("2 CPU threads are 2.00× faster than 1. ")
    assert "2 CPU threads (Test CPU) against 1 CPU thread (Test CPU)." in sentence
    assert "gpu" not in sentence.lower()


def test_what_disturbs_both_blocks_of_a_pair_cancels():
    disturbance = [1.0, 1.4, 1.1, 1.3, 1.2, 1.25, 1.15, 1.35]
    base, other = timed([1e-3 * d for d in disturbance]), timed([5e-4 * d for d in disturbance], "cuda:0")
    together = speedup.speedup(base, other)
    assert (together.low, together.high) == (pytest.approx(2), pytest.approx(2))
    apart = speedup.speedup(base, dataclasses.replace(other, block_pair=(1, 2, 3, 4, 5, 6, 7, 0)))
    assert apart.high - apart.low > 0.3


def test_blocks_pair_by_their_round_and_unpaired_ones_are_left_out():
    base = timed([1e-3] * 8)
    other = timed([5e-4] * 8, "cuda:0", block_pair=tuple(range(2, 10)))
    assert speedup.speedup(base, other).pairs == 6


def test_blocks_of_different_lengths_are_compared_per_step():
    base, other = timed([1e-3] * 6), timed([1e-3] * 6, "cuda:0", block_steps=(2000,) * 6)
    assert speedup.speedup(base, other).value == pytest.approx(2)


def test_a_difference_within_the_tie_zone_is_too_close_however_certain():
    found = speedup.speedup(timed([1.08e-3] * 8), timed([1e-3] * 8, "cuda:0"))
    assert found.verdict == "too_close"
    assert not found.has_winner
    assert "within 10 %" in found.reason
    assert speedup.speedup(timed([1.12e-3] * 8), timed([1e-3] * 8, "cuda:0")).verdict == "gpu_faster"


def test_a_large_difference_whose_interval_contains_one_is_too_close():
    base = timed([1.3e-3, 0.9e-3, 1.3e-3, 1.3e-3, 0.9e-3, 1.3e-3])
    found = speedup.speedup(base, timed([1e-3] * 6, "cuda:0"))
    assert found.value == pytest.approx(1.3)
    assert found.verdict == "too_close"
    assert found.reason == "either could be faster"
    assert verdict_sentence(found).startswith("Inconclusive: either could be faster (0.90 to 1.30). Measure more pairs")


@pytest.mark.parametrize(
    ("outcome", "advice"), [("timed", "Ask for more pairs"), ("budget_spent", "Give it a larger time budget")]
)
def test_what_gives_more_pairs_depends_on_why_there_are_no_more(outcome, advice):
    found = speedup.speedup(timed([1e-3] * 2, outcome=outcome), timed([5e-4] * 2, "cuda:0", outcome=outcome))
    assert found.advice == advice


@pytest.mark.parametrize(
    ("pairs", "words"), [(0, "0 pairs of blocks were"), (1, "1 pair of blocks was"), (5, "5 pairs")]
)
def test_too_few_pairs_give_no_verdict_and_say_what_to_do(pairs, words):
    found = speedup.speedup(timed([1e-3] * pairs), timed([5e-4] * pairs, "cuda:0"))
    assert (found.verdict, found.value, found.low, found.high, found.pairs) == ("missing", None, None, None, pairs)
    assert words in found.reason
    assert f"{MIN_PAIRS} are needed" in found.reason
    assert found.advice == "Train more epochs"
    assert verdict_sentence(found).startswith(f"Inconclusive: {words}")


@pytest.mark.parametrize("busy_side", [0, 1])
def test_a_busy_machine_gives_a_verdict_with_a_mark_that_says_the_figure_and_the_contender(busy_side):
    calm, busy = [1e-3] * 10, [1e-3] * 8 + [2.4e-3] * 2
    times = [calm, busy] if busy_side else [busy, calm]
    found = speedup.speedup(timed(times[0]), timed([s / 4 for s in times[1]], "cuda:0"))
    assert (found.verdict, found.value, found.pairs) == ("gpu_faster", pytest.approx(4), 10)
    assert found.busy.startswith("Measured on a busy machine: one block in ten of")
    assert f"of {('the CPU', 'the GPU')[busy_side]} took at least 2.40×" in found.busy
    assert verdict_sentence(found).endswith(f". {found.busy}")


def test_one_slow_block_in_twenty_is_not_a_busy_machine():
    found = speedup.speedup(timed([1e-3] * 19 + [9e-3]), timed([5e-4] * 20, "cuda:0"))
    assert (found.verdict, found.busy) == ("gpu_faster", "")


def test_out_of_memory_is_named_instead_of_missing_pairs():
    gone = timed([], "cuda:0", outcome="out_of_memory")
    reason = speedup.speedup(timed([1e-3] * 8), gone).reason
    assert "did not fit into the memory of the GPU" in reason


def test_a_lane_that_failed_is_named_instead_of_missing_pairs():
    gone = timed([], "cuda:0", outcome="interrupted")
    reason = speedup.speedup(timed([1e-3] * 8), gone).reason
    assert reason == "the variant of the GPU failed, so nothing was timed"
    killed = speedup.speedup(timed([1e-3] * 8), timed([1e-3] * 2, "cuda:0", outcome="interrupted")).reason
    assert "2 pairs of blocks were measured" in killed


def test_a_block_without_duration_gives_no_verdict_instead_of_an_error():
    found = speedup.speedup(timed([1e-3] * 5 + [0.0]), timed([1e-3] * 6, "cuda:0"))
    assert found.verdict == "missing"
    assert "the CPU contain a block that took no time" in found.reason


@pytest.mark.parametrize("column", speedup.RUN_COLUMNS)
def test_rows_that_differ_in_a_column_that_matters_are_refused_by_its_name(column):
    base, other = run()
    value = getattr(other, column)
    changed = dataclasses.replace(other, **{column: f"{value}x" if isinstance(value, str) else value + 1})
    with pytest.raises(NotComparable, match=f"its {field_title(column)} is ") as refused:
        speedup.speedup(base, changed)
    assert repr(value) in str(refused.value)


def test_the_sentence_of_a_winner_turns_a_speedup_below_one_around():
    slow, fast = run({"cuda:0": 1e-3, "cpu": 2.5e-4}, jitter=0)
    assert verdict_sentence(speedup.speedup(fast, slow)) == (
        "The CPU is 4.00× faster than the GPU. 95 % interval 4.00 to 4.00, 20 pairs of blocks, start-up not counted. "
        "GPU (NVIDIA Test GPU) against CPU (Test CPU, 4 threads)."
    )


seeds = st.integers(0, 2**32)
ratios = st.floats(0.05, 20)
counts = st.integers(3, 30)


@given(seed=seeds, ratio=ratios, pairs=counts, factor=st.integers(2, 50))
@settings(deadline=None)
def test_scaling_both_devices_changes_nothing(seed, ratio, pairs, factor):
    base, other = noisy(seed, ratio=ratio, pairs=pairs, sd=0.2)
    slower = [
        dataclasses.replace(
            row,
            block_end_ns=tuple(b + factor * (e - b) for b, e in zip(row.block_begin_ns, row.block_end_ns, strict=True)),
        )
        for row in (base, other)
    ]
    before, after = speedup.speedup(base, other), speedup.speedup(*slower)
    assert after.verdict == before.verdict
    assert (after.value, after.low, after.high) == pytest.approx((before.value, before.low, before.high))


@given(seed=seeds, ratio=ratios, pairs=counts)
@settings(deadline=None)
def test_swapping_the_devices_inverts_the_speedup_and_keeps_the_winner(seed, ratio, pairs):
    base, other = noisy(seed, ratio=ratio, pairs=pairs, sd=0.2)
    one, two = speedup.speedup(base, other), speedup.speedup(other, base)
    assert one.verdict == two.verdict
    if one.value is not None:
        assert (1 / two.value, 1 / two.high, 1 / two.low) == pytest.approx((one.value, one.low, one.high))
    if one.verdict not in ("missing", "too_close"):
        assert one.claim == two.claim


@given(seed=seeds, ratio=ratios, pairs=counts)
@settings(deadline=None)
def test_shuffling_the_blocks_changes_nothing(seed, ratio, pairs):
    base, other = noisy(seed, ratio=ratio, pairs=pairs, sd=0.2)
    order = random.Random(seed).sample(range(pairs), pairs)
    assert speedup.speedup(reordered(base, order), other) == speedup.speedup(base, other)
    assert speedup.step_time(reordered(other, order)) == speedup.step_time(other)
