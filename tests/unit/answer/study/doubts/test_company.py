"""A busy machine in the answer of a study: pooled over its sizes, named, and never the reason of an `always`."""

import dataclasses

import pytest

from core.answer import crossover, interference, study
from core.answer.export import report
from core.answer.judgement import Evidence
from core.question.experiment import Point
from tests import rows

SIZES = (8, 16, 32, 64, 128)


def measured(speedups, *, share: float = 0.0, pairs: int = 3, slow_every: int = 0):
    """A study of one thread against two, whose blocks shared their processor to some part."""
    found = []
    for number, (size, ratio) in enumerate(zip(SIZES, speedups, strict=True)):
        point = Point(dataset="digits", model="mlp", hidden_size=size, depth=2, batch_size=64, epochs=100)
        steps = {"cpu@1": 1e-3, "cpu@2": 1e-3 / ratio}
        one, two = rows.run(steps, point=point, run_id=f"{number:012x}", pairs=pairs, outcome="timed")
        ends = [
            begin + (end - begin) * (5 if slow_every and (number * pairs + place) % slow_every == 0 else 1)
            for place, (begin, end) in enumerate(zip(two.block_begin_ns, two.block_end_ns, strict=True))
        ]
        switches = tuple(10_000 if place < share * pairs else 0 for place in range(pairs))
        found += [one, dataclasses.replace(two, block_switches=switches, block_end_ns=tuple(ends))]
    (held,) = study.studies(found, axis="hidden_size")
    return held


RISING = (0.3, 0.6, 1.2, 2.4, 4.8)


def test_a_quiet_sweep_has_no_mark():
    answer = measured(RISING).crossover()
    assert (answer.outcome, answer.busy) == ("crossing", "")
    assert report.crossover_document(answer)["busy"] == ""


def loaded(speedups, waiting, *, first=0.0, other_use=0.5):
    """A sweep whose second contender waited for a processor, at each size for such a share of its time."""
    quiet = measured(speedups)
    runs = [
        (
            dataclasses.replace(one, block_waiting=(first,) * 3, block_other_use=(other_use,) * 3),
            dataclasses.replace(two, block_waiting=(share,) * 3, block_other_use=(other_use,) * 3),
        )
        for (one, two), share in zip(quiet.runs, waiting, strict=True)
    ]
    return dataclasses.replace(quiet, runs=tuple(runs))


def test_a_sweep_that_the_load_may_have_turned_is_told_as_that_of_the_loaded_machine():
    quiet, answer = measured(RISING).crossover(), loaded(RISING, (0.95,) * 5, first=0.9).crossover()
    assert (answer.outcome, answer.estimate) == ("crossing", quiet.estimate)
    assert answer.condition == "with other programs using about half of the processors"
    assert answer.sentence.startswith(f"On this machine under load, {answer.condition}: ")
    assert answer.sentence.endswith(" On a quiet machine this can be different.")
    assert answer.sentence in report.crossover_text(answer)


def test_a_lead_that_the_waits_cannot_turn_at_any_size_stands():
    answer = loaded((0.2,) * 5, (0.5,) * 5).crossover()
    assert (answer.outcome, answer.condition) == ("cpu_always", "")
    assert answer.busy == "Measured on a busy machine: other programs used about half of the processors."
    assert loaded((0.2,) * 5, (0.9,) * 5).crossover().is_conditional


def test_sizes_that_hold_for_a_loaded_machine_only_never_mix_with_others():
    answer = loaded(RISING, (0.0, 0.0, 0.0, 0.0, 0.0)).crossover()
    assert not answer.is_conditional
    answer = loaded((0.3, 0.6, 1.2, 0.5, 4.8), (0.0, 0.0, 0.0, 0.9, 0.0)).crossover()
    assert answer.condition == ""
    left_out = answer.sizes[3]
    assert (left_out.verdict, left_out.reason) == (
        "missing",
        "measured with other programs using about half of the processors",
    )


def test_what_is_left_of_a_loaded_sweep_is_what_the_load_cannot_have_made():
    answer = loaded(RISING, (0.9,) * 5).crossover()
    assert (answer.outcome, answer.condition) == ("gpu_always", "")
    assert [size.verdict for size in answer.sizes] == ["missing"] * 2 + ["gpu_faster"] * 3


def test_two_sizes_of_three_pairs_on_a_loaded_machine_are_not_told_without_a_mark():
    few = loaded((0.15,) * 5, (0.97,) * 5, other_use=0.9)
    answer = dataclasses.replace(few, runs=few.runs[:2]).crossover()
    assert answer.is_conditional
    assert "with other programs using about 90 % of the processors" in answer.sentence


def test_rows_that_did_not_count_waits_are_judged_by_their_switches():
    ahead = (0.2, 0.2, 0.2, 0.2, 0.2)
    assert measured(ahead).crossover().condition == ""
    assert measured(ahead, share=1.0).crossover().is_conditional
    assert not measured((5.0,) * 5, share=1.0).crossover().is_conditional  # more threads lead all the same


def test_blocks_that_spread_over_all_sizes_are_seen_together():
    answer = measured((2.0,) * 5, slow_every=7).crossover()
    assert answer.busy.startswith("Measured on a busy machine: one block in ten of 2 CPU threads took at least")


def test_several_crossings_of_a_busy_machine_have_no_usual_cause():
    waves = (0.3, 3.0, 0.3, 3.0, 0.3)
    assert "are the usual cause" in measured(waves).crossover().sentence
    answer = measured(waves, share=1.0).crossover()
    assert answer.outcome == "several"
    assert "the usual cause" not in answer.sentence + answer.reason


@pytest.mark.parametrize("loud", [False, True])
def test_readings_of_a_table_are_marked_by_their_spread(loud):
    times = (1.0, 1.01, 3.0 if loud else 0.99)
    evidence = [
        Evidence(size=size, baseline_s=times, challenger_s=tuple(time / 4 for time in times), paired=False)
        for size in SIZES
    ]
    answer = crossover.locate_crossover(evidence, axis="size", baseline="cpu", challenger="gpu")
    answer = interference.mark_interference(answer, interference.evidence_interference(evidence, "cpu", "gpu"))
    assert ("The readings vary as on a busy machine: one reading in ten of" in answer.sentence) is loud
