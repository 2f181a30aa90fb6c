"""What other programs leave of a verdict, on rows whose company is known."""

import dataclasses

import pytest

from core.answer import interference, speedup
from core.question.experiment import Contender, Experiment
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


HALF = "With other programs using about half of the processors, "


def test_a_lead_that_the_load_may_have_made_is_told_with_the_load():
    one, two = pair(1 / 1.8)
    found = speedup.speedup(rows.beside_programs(one, 0.0, 0.5), rows.beside_programs(two, 0.9, 0.5))
    assert found.is_conditional
    assert found.claim.startswith(f"{HALF}1 CPU thread was 1.80× as fast as 2 (95 % interval 1.80 to 1.80)")
    assert found.basis.startswith("On a quiet machine this can be different.")
    assert found.busy == ""


def test_a_lead_that_the_measured_waits_cannot_turn_stands_with_a_mark():
    one, two = pair(1 / 1.8)
    found = speedup.speedup(
        rows.beside_programs(one, 0.0, 0.5), rows.beside_programs(two, 0.3, 0.5)
    )  # 2 threads took 1.43× at most
    assert (found.claim, found.condition) == ("1 CPU thread is 1.80× faster than 2", "")
    assert found.busy == "Measured on a busy machine: other programs used about half of the processors."
    assert speedup.speedup(
        rows.beside_programs(one, 0.0, 0.5), rows.beside_programs(two, 0.5, 0.5)
    ).is_conditional  # 2.00×


def test_a_host_that_gave_its_processors_to_others_is_named_and_not_a_program():
    _, two = pair(1.2)
    for row, who in (
        (stolen(rows.beside_programs(two, 0.0, 0.01), 1.0), "other virtual machines"),
        (rows.beside_programs(two, 0.9, 0.4), "other programs"),
    ):
        found = interference.row_interference([row])
        assert found.many
        assert found.description.startswith(f"{who} ")
        assert found.condition.startswith(f"with {who} ")
    share = interference.row_interference([stolen(rows.beside_programs(two, 0.0, 0.01), 1.0)]).description
    assert share == "other virtual machines on the same host used about 30 % of the processors"


def test_what_slowed_the_faster_one_only_made_its_lead_smaller():
    one, two = pair(1.3)
    assert not speedup.speedup(rows.beside_programs(one, 0.0, 0.5), rows.beside_programs(two, 0.9, 0.5)).is_conditional
    assert speedup.speedup(rows.beside_programs(one, 0.9, 0.5), rows.beside_programs(two, 0.0, 0.5)).is_conditional


@pytest.mark.parametrize(("waiting", "other_use"), [(3.0, 0.0), (0.0, 0.9)])
def test_own_processes_and_threads_that_do_not_wait_are_no_disturbance(waiting, other_use):
    """Workers of a loader make threads wait, but no other program used anything; and the other way round."""
    one, two = pair(1 / 1.8)
    found = interference.trial_pair_interference(
        rows.beside_programs(one, 0.0, other_use), rows.beside_programs(two, waiting, other_use)
    )
    assert found is None


def test_an_accelerator_is_judged_by_the_same_bound_as_a_processor():
    cpu, gpu = pair(1 / 1.8, contenders=("cpu", "cuda:0"))
    assert not speedup.speedup(rows.beside_programs(cpu, 0.0, 0.5), rows.beside_programs(gpu, 0.01, 0.5)).is_conditional
    assert speedup.speedup(rows.beside_programs(cpu, 0.0, 0.5), rows.beside_programs(gpu, 0.5, 0.5)).is_conditional


def test_the_lead_of_a_gpu_stands_beside_the_processes_of_a_notebook_on_two_processors():
    """Colab and Kaggle: a GPU that is 5 to 15 times as fast needs no lead of 20 where waits were counted."""
    cpu, gpu = pair(8.0, contenders=("cpu", "cuda:0"))
    found = speedup.speedup(
        rows.beside_programs(displaced(cpu, 1.0), 0.35, 0.4), rows.beside_programs(displaced(gpu, 1.0), 0.02, 0.4)
    )
    assert not found.is_conditional
    assert found.claim == "The GPU is 8.00× faster than the CPU"


def test_a_tie_on_a_loaded_machine_is_one_of_that_machine():
    one, two = pair(1.0)
    assert speedup.speedup(one, two).verdict == "too_close"
    found = speedup.speedup(rows.beside_programs(one, 0.0, 0.4), rows.beside_programs(two, 0.9, 0.4))
    assert found.claim.startswith("With other programs using about 40 % of the processors, 2 CPU threads and 1 were ")


def test_an_inconclusive_run_on_a_loaded_machine_has_its_figures_and_says_what_to_do():
    one, two = rows.run({"cpu@1": 1e-3, "cpu@2": 1e-3}, jitter=0.3, pairs=PAIRS)
    two = dataclasses.replace(two, threads=2)
    found = speedup.speedup(
        rows.beside_programs(dataclasses.replace(one, threads=1), 0.0, 0.5), rows.beside_programs(two, 0.9, 0.5)
    )
    assert found.claim.startswith("Inconclusive: ")
    assert found.advice == interference.QUIET_ADVICE
    assert found.value is not None


@pytest.mark.parametrize("hit", [displaced, stolen])
def test_rows_that_did_not_count_waits_are_judged_by_signs_of_them(hit):
    one, two = pair(0.4)
    found = speedup.speedup(one, hit(two, 0.5))
    assert found.condition == "with other programs taking processor time from 2 CPU threads in 50 % of the blocks"
    assert found.claim.startswith("With other programs taking processor time ")
    assert not speedup.speedup(*pair(0.4)).is_conditional


def test_counted_evidence_is_looked_at_however_few_the_blocks_are():
    short = [displaced(row, 1.0) for row in rows.run({"cpu@2": 1e-3}, pairs=3)]
    assert interference.row_interference(short).many
    assert interference.row_interference([rows.beside_programs(short[0], 0.9, 0.5)]).many
    assert not interference.row_interference([dataclasses.replace(short[0], block_switches=(0,) * 3)]).any


def test_the_spread_of_few_blocks_tells_nothing():
    (short,) = rows.run({"cpu@2": 1e-3}, pairs=4)
    assert not interference.row_interference([spread_out(short, every=2)]).any


def test_equally_many_threads_are_hit_alike_and_keep_their_verdict():
    one, other = pair(1.3, contenders=("cpu@1", "cpu@1+fused"))
    other = dataclasses.replace(other, threads=1)
    assert not speedup.speedup(
        rows.beside_programs(one, 0.5, 0.5), rows.beside_programs(other, 0.5, 0.5)
    ).is_conditional
    assert speedup.speedup(rows.beside_programs(one, 0.5, 0.5), rows.beside_programs(other, 0.0, 0.5)).is_conditional


def test_half_of_the_blocks_disturbed_bound_a_lead_by_the_fastest_ones():
    one, two = pair(0.7)
    found = speedup.speedup(one, spread_out(two, every=2))
    assert found.is_conditional
    assert "half the blocks of 2 CPU threads took at least" in found.claim
    far = pair(0.1)
    assert not speedup.speedup(far[0], spread_out(far[1], every=2)).is_conditional


def test_where_many_programs_wait_fewer_switches_are_a_sign():
    _, two = pair(0.4)
    few = dataclasses.replace(two, block_switches=tuple(round(interference.DISPLACEMENT_RATE * s) for s in two.block_s))
    assert not interference.row_interference([few]).any
    assert interference.row_interference([dataclasses.replace(few, block_load=(two.cores + 1.0,) * PAIRS)]).many


def test_workers_of_the_own_loader_are_no_other_programs():
    _, two = pair(0.4)
    assert interference.row_interference([displaced(two, 0.9)]).many
    assert not interference.row_interference([displaced(dataclasses.replace(two, loader_workers=2), 0.9)]).any


def test_the_wait_of_a_thread_that_feeds_an_accelerator_is_no_sign_of_other_programs():
    _, gpu = pair(0.4, contenders=("cpu", "cuda:0"))
    assert not interference.row_interference([displaced(gpu, 0.9)]).any
    assert not interference.row_interference([displaced(dataclasses.replace(gpu, system="Darwin arm64"), 0.9)]).any


def test_switches_of_a_mac_are_no_sign_of_other_programs():
    """macOS counts every wait as an involuntary switch."""
    _, two = pair(0.4)
    assert interference.row_interference([displaced(two, 0.9)]).many
    assert not interference.row_interference([displaced(dataclasses.replace(two, system="Darwin arm64"), 0.9)]).any


def test_a_stored_verdict_of_a_loaded_machine_is_never_served():
    one, two = (dataclasses.replace(row, outcome="timed") for row in pair(1 / 1.8))
    loaded = [rows.beside_programs(one, 0.0, 0.5), rows.beside_programs(two, 0.9, 0.5)]
    asked = Experiment(point=rows.EXPERIMENT.point, contenders=tuple(map(Contender.parse, ("cpu@1", "cpu@2"))))
    assert speedup.answers_experiment(asked, [one, two])
    assert not speedup.answers_experiment(asked, loaded)


def test_readings_of_a_table_tell_by_their_spread_and_are_not_called_blocks():
    quiet, loud = [(1.0, 1.01, 0.99)] * 5, [(1.0, 1.01, 4.0)] * 5
    sides = [interference.readings_interference("cpu", quiet), interference.readings_interference("gpu", quiet)]
    assert interference.pair_interference(*sides) is None
    found = interference.pair_interference(sides[0], interference.readings_interference("gpu", loud))
    assert found is not None
    assert found.sentence.startswith("The readings vary as on a busy machine: one reading in ten of gpu took at least")


@pytest.mark.parametrize("needs", [(1, 2), (2, 1), (2, 2), (1, 0)])
@pytest.mark.parametrize("shifts", [(0.0, 0.5), (0.5, 0.0), (0.5, 0.5)])
def test_conditions_do_not_depend_on_which_is_the_baseline(needs, shifts):
    one, other = (
        interference.Interference(name=name, needs=need, shift=shift, displaced=0.9)
        for name, need, shift in zip("ab", needs, shifts, strict=True)
    )
    for middle, low, high in [(-3.3, -3.5, -3.1), (-0.4, -0.5, -0.3), (0.0, -0.5, 0.5), (0.2, 0.1, 0.3), (4, 3, 5)]:
        forth = interference.PairInterference(baseline=one, challenger=other)
        back = interference.PairInterference(baseline=other, challenger=one)
        assert bool(forth.condition(middle, low, high)) == bool(back.condition(-middle, -high, -low))


@pytest.mark.parametrize("spread", [{"slow": 1.501}, {"fast": 1.501}])
def test_what_is_more_than_is_accepted_never_reads_as_what_is(spread):
    told = interference.Interference(name="the CPU", needs=1, **spread).description
    assert "more than 1.50× " in told
    assert "at least 1.50×" not in told
