"""What other programs leave of a verdict, on rows whose company is known."""

import dataclasses
import math

import pytest

from core.answer import interference, speedup
from core.results.schema import Trial
from tests import rows

PAIRS = 20


def pair(ratio: float, *, contenders: tuple[str, str] = ("cpu@1", "cpu@2"), **second: object) -> tuple[Trial, Trial]:
    """Two rows without noise, the second so many times as fast as the first; `second` are columns of the second."""
    steps = dict(zip(contenders, (1e-3, 1e-3 / ratio), strict=True))
    first, other = rows.run(steps, jitter=1e-4, pairs=PAIRS)
    threads = [int(name.partition("@")[2].partition("+")[0] or 4) for name in contenders]
    return dataclasses.replace(first, threads=threads[0]), dataclasses.replace(other, threads=threads[1], **second)


def displaced(row: Trial, share: float) -> Trial:
    """A row of which so many blocks shared their processor."""
    blocks = len(row.block_pair)
    return dataclasses.replace(row, block_switches=tuple(10_000 if n < share * blocks else 0 for n in range(blocks)))


def stolen(row: Trial, share: float) -> Trial:
    return dataclasses.replace(row, block_steal=tuple(0.3 if n < share * PAIRS else 0.0 for n in range(PAIRS)))


def spread_out(row: Trial, *, every: int, times: int = 4) -> Trial:
    ends = [
        begin + (end - begin) * (times if place % every == 0 else 1)
        for place, (begin, end) in enumerate(zip(row.block_begin_ns, row.block_end_ns, strict=True))
    ]
    return dataclasses.replace(row, block_end_ns=tuple(ends))


def test_a_quiet_machine_leaves_no_mark():
    assert interference.trial_pair_interference(*pair(2.0)) is None
    assert speedup.speedup(*pair(2.0)).busy == ""


@pytest.mark.parametrize("hit", [displaced, stolen])
def test_a_lead_of_fewer_threads_is_not_believed_where_other_programs_took_the_processor(hit):
    one, two = pair(0.4)
    found = speedup.speedup(one, hit(two, 0.5))
    assert (found.verdict, found.value) == ("missing", None)
    assert found.reason == (
        "this machine was too busy: other programs took processor time from 2 CPU "
        "threads in 50 % of the blocks, and they slow "
        "2 threads of the processor more than 1 thread, by up to 20×, so close other programs and measure again"
    )


def test_a_lead_of_more_threads_stands_since_other_programs_only_make_it_smaller():
    one, two = pair(1.3)
    found = speedup.speedup(one, displaced(two, 0.5))
    assert found.verdict == "gpu_faster"
    assert found.busy == (
        "Measured on a busy machine: other programs took processor time from 2 CPU "
        "threads in 50 % of the blocks, and they "
        "slow 2 threads of the processor more than 1 thread."
    )


def test_the_order_of_the_two_does_not_matter():
    one, two = pair(0.4)
    assert speedup.speedup(displaced(two, 0.5), one).verdict == "missing"
    assert speedup.speedup(displaced(one, 0.5), one).verdict != "missing"


def test_a_lead_that_no_company_explains_stands():
    cpu, gpu = pair(30.0, contenders=("cpu", "cuda:0"))
    found = speedup.speedup(displaced(cpu, 0.9), gpu)
    assert found.verdict == "gpu_faster"
    assert "they slow 4 threads of the processor more than the GPU." in found.busy
    assert speedup.speedup(displaced(cpu, 0.9), pair(15.0, contenders=("cpu", "cuda:0"))[1]).verdict == "missing"


def test_a_tie_beside_many_disturbed_blocks_is_none():
    one, two = pair(1.0)
    assert speedup.speedup(one, two).verdict == "too_close"
    assert speedup.speedup(one, displaced(two, 0.5)).verdict == "missing"


def test_equally_many_threads_are_hit_alike_and_keep_their_verdict():
    one, other = pair(1.3, contenders=("cpu@1", "cpu@1+fused"))
    found = speedup.speedup(displaced(one, 0.9), displaced(dataclasses.replace(other, threads=1), 0.9))
    assert found.verdict == "gpu_faster"
    assert found.busy.endswith("in 90 % of the blocks.")


@pytest.mark.parametrize(("ratio", "verdict"), [(0.7, "cpu_faster"), (1 / 1.04, "missing"), (1.3, "gpu_faster")])
def test_a_few_disturbed_blocks_shift_the_median_by_little(ratio, verdict):
    one, two = pair(ratio)
    assert speedup.speedup(one, spread_out(two, every=5)).verdict == verdict


def test_half_of_the_blocks_disturbed_shift_it_by_much():
    one, two = pair(0.7)
    found = speedup.speedup(one, spread_out(two, every=2))
    assert found.verdict == "missing"
    assert "half the blocks of 2 CPU threads took at least" in found.reason


def test_where_many_programs_wait_fewer_switches_are_a_sign():
    _, two = pair(0.4)
    few = dataclasses.replace(two, block_switches=tuple(round(interference.DISPLACEMENT_RATE * s) for s in two.block_s))
    assert not interference.row_interference([few]).any
    assert interference.row_interference([dataclasses.replace(few, block_load=(two.cores + 1.0,) * PAIRS)]).many


def test_workers_of_the_own_loader_are_no_other_programs():
    _, two = pair(0.4)
    assert interference.row_interference([displaced(two, 0.9)]).many
    assert not interference.row_interference([displaced(dataclasses.replace(two, loader_workers=2), 0.9)]).any


def test_rows_that_did_not_count_switches_are_judged_by_their_times_alone():
    one, two = pair(0.4, block_switches=(), block_steal=())
    assert interference.trial_pair_interference(one, two) is None
    assert interference.trial_pair_interference(one, spread_out(two, every=5)) is not None


def test_too_few_blocks_tell_nothing_of_one_row_but_those_of_many_sizes_do():
    short = [displaced(row, 1.0) for row in rows.run({"cpu@2": 1e-3}, pairs=3)]
    assert not interference.row_interference(short).any
    sizes = [dataclasses.replace(short[0], run_id=f"{number:012x}") for number in range(4)]
    assert interference.row_interference(sizes).many
    assert not interference.row_interference([dataclasses.replace(row, block_switches=(0,) * 3) for row in sizes]).any


def test_readings_of_a_table_tell_by_their_spread():
    quiet, loud = [(1.0, 1.01, 0.99)] * 5, [(1.0, 1.01, 4.0)] * 5
    assert (
        interference.pair_interference(
            interference.readings_interference("cpu", quiet), interference.readings_interference("gpu", quiet)
        )
        is None
    )
    found = interference.pair_interference(
        interference.readings_interference("cpu", quiet), interference.readings_interference("gpu", loud)
    )
    assert found is not None
    assert found.sentence.startswith("Measured on a busy machine: one block in ten of gpu took at least")


@pytest.mark.parametrize("needs", [(1, 2), (2, 1), (2, 2), (1, 0)])
@pytest.mark.parametrize("many", [False, True])
def test_refusals_do_not_depend_on_which_is_the_baseline(needs, many):
    def company(name: str, processors: int) -> interference.Interference:
        return interference.Interference(name=name, needs=processors, slow=2.0, displaced=0.9 if many else 0.0)

    for low, high in [(-3.5, -3.1), (-0.5, -0.3), (-0.5, 0.5), (0.02, 0.3), (0.3, 0.5), (math.log(20.5), 4.0)]:
        forth = interference.PairInterference(baseline=company("a", needs[0]), challenger=company("b", needs[1]))
        back = interference.PairInterference(baseline=company("b", needs[1]), challenger=company("a", needs[0]))
        assert bool(forth.refusal(low, high)) == bool(back.refusal(-high, -low))


@pytest.mark.parametrize("spread", [{"slow": 1.501}, {"fast": 1.501}])
def test_what_is_more_than_is_accepted_never_reads_as_what_is(spread):
    told = interference.Interference(name="the CPU", needs=1, **spread).description
    assert "more than 1.50× " in told
    assert "at least 1.50×" not in told
