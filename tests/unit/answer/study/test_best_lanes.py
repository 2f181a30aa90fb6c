"""Best against best: who is picked, by which readings, and what it is judged by."""

import dataclasses

import pytest

from core.answer import remedies, study
from tests.lanes import laned, sweep


def plain_study(trials):
    found = study.studies(trials, axis="hidden_size", least=1)
    return next(one for one in found if (one.baseline, one.challenger) == ("cpu", "cuda:0"))


def slowed(row, rounds, factor):
    """The row with its blocks of some rounds so much longer."""
    ends = [
        begin + round((end - begin) * (factor if pair in rounds else 1))
        for pair, begin, end in zip(row.block_pair, row.block_begin_ns, row.block_end_ns, strict=True)
    ]
    return dataclasses.replace(row, block_end_ns=tuple(ends))


def test_the_best_lane_of_each_device_meets_the_other_and_plain_steps_are_named_beside():
    found = remedies.find_best_variants(laned({"cpu": 1e-3, "cpu+fused": 5e-4, "cuda:0": 4e-4, "cuda:0+graph10": 1e-4}))
    assert (found.baseline, found.challenger) == ("cpu+fused", "cuda:0+graph10")
    assert found.best.value == pytest.approx(5, rel=0.05)
    assert found.plain.value == pytest.approx(2.5, rel=0.05)
    assert "With the default loop on both devices, the speedup of the GPU is 2.5" in found.sentence
    assert remedies.CHOSEN_SEPARATELY in found.sentence


def test_only_lanes_that_compute_the_same_are_picked():
    steps = {"cpu": 1e-3, "cpu+fused": 9e-4, "cpu+bf16": 1e-4, "cpu+compiled": 1e-4, "cuda:0": 4e-4}
    found = remedies.find_best_variants(laned(steps, losses={"cpu+compiled": (9.0, 9.0, 9.0)}))
    assert found.baseline == "cpu+fused"


def test_without_a_choice_there_is_nothing_to_say():
    assert remedies.find_best_variants(laned({"cpu": 1e-3, "cuda:0": 4e-4})) is None
    assert remedies.find_best_variants(laned({"cpu": 1e-3, "cpu+fused": 4e-4})) is None


def test_the_readings_that_choose_are_not_those_that_judge():
    base, lane, gpu = laned({"cpu": 1e-3, "cpu+fused": 1e-3, "cuda:0": 1e-3}, jitter=0.0)
    lucky = slowed(lane, set(lane.block_pair[1::2]), 0.5)  # fast by luck in the pairs that choose, and in no other
    found = remedies.find_best_variants([base, lucky, gpu])
    assert found.baseline == "cpu+fused"
    assert found.best.value == pytest.approx(1.0)
    assert found.best.pairs == len(lane.block_pair) / 2


def test_threads_of_the_cpu_are_one_device_beside_an_accelerator_and_two_without():
    steps = {"cpu@1": 1e-3, "cpu@2": 5e-4, "cpu@1+fused": 4e-4}
    beside = remedies.find_best_variants(laned({**steps, "cuda:0": 1e-4}))
    assert (beside.baseline, beside.challenger) == ("cpu@1+fused", "cuda:0")
    alone = remedies.find_best_variants(laned(steps))
    assert (alone.baseline, alone.challenger) == ("cpu@1+fused", "cpu@2")


def test_a_sweep_has_a_crossover_of_the_best_lanes_below_that_of_plain_steps():
    trials = sweep()
    of = plain_study(trials)
    chosen = remedies.pick_lanes(of, trials)
    assert {(pick.baseline.contender, pick.challenger.contender) for pick in chosen} == {
        ("cpu+compiled", "cuda:0+graph10")
    }
    answer, evidence = remedies.best_lanes_crossover(of, chosen)
    plain = of.crossover()
    assert answer.outcome == plain.outcome == "crossing"
    assert answer.estimate < plain.estimate
    assert answer.baseline == "CPU with its best variant"
    assert all(len(entry.baseline_s) == 4 for entry in evidence)
    assert remedies.crossover_shift_sentence(plain, answer).startswith("The default loops cross at about ")


def test_the_pick_may_change_from_size_to_size():
    trials = [
        slowed(row, set(row.block_pair), 3.0) if "graph" in row.contender and row.hidden_size > 500 else row
        for row in sweep()
    ]
    chosen = remedies.pick_lanes(plain_study(trials), trials)
    assert [pick.challenger.contender for pick in chosen] == ["cuda:0+graph10"] * 4 + ["cuda:0"] * 2


def test_what_is_paid_once_counts_on_the_basis_that_counts_it():
    trials = sweep()
    of = plain_study(trials)
    steady = {pick.challenger.contender for pick in remedies.pick_lanes(of, trials, "steady")}
    cold = {pick.challenger.contender for pick in remedies.pick_lanes(of, trials, "cold_start")}
    assert (steady, cold) == ({"cuda:0+graph10"}, {"cuda:0"})


def test_a_size_with_one_pair_cannot_be_chosen_and_judged():
    trials = sweep(pairs=1)
    chosen = remedies.pick_lanes(plain_study(trials), trials)
    assert {pick.obstacle for pick in chosen} == {
        "at least two pairs of blocks are needed, one to choose the variant and one to judge it"
    }
    answer, _ = remedies.best_lanes_crossover(plain_study(trials), chosen)
    assert answer.outcome == "not_measurable"


def test_a_study_without_lanes_has_no_picks_and_the_plain_one_is_found_among_others():
    trials = sweep()
    studies = study.studies(trials, axis="hidden_size")
    of = plain_study(trials)
    laned_study = next(one for one in studies if one.challenger == "cuda:0+graph10")
    assert remedies.find_plain_study(laned_study, studies) == of
    plain_rows = [row for row in trials if "+" not in row.contender]
    assert remedies.pick_lanes(of, plain_rows) == ()


def test_one_pair_of_blocks_cannot_choose_and_two_can():
    steps = {"cpu": 1e-3, "cpu+fused": 5e-4, "cuda:0": 4e-4}
    assert remedies.find_best_variants(laned(steps, pairs=1)) is None
    trials = sweep(pairs=2)
    assert all(pick.baseline and pick.challenger for pick in remedies.pick_lanes(plain_study(trials), trials))


def test_the_plain_study_of_other_runs_or_of_another_axis_is_not_the_one_beside():
    trials = sweep()
    laned_study = next(
        one for one in study.studies(trials, axis="hidden_size", least=1) if one.challenger == "cuda:0+graph10"
    )
    plain = plain_study(trials)
    assert remedies.find_plain_study(laned_study, [dataclasses.replace(plain, runs=plain.runs[1:])]) is None
    assert remedies.find_plain_study(laned_study, [dataclasses.replace(plain, axis="depth")]) is None
    assert remedies.find_plain_study(laned_study, [plain]) == plain
