"""A busy machine in the answer of a study: pooled over its sizes, named, and never the reason of an `always`."""

import dataclasses

import pytest

from core.answer import crossover, diagnostics, study
from core.answer.export import report
from core.answer.result import Evidence
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
    answer = study.crossover(measured(RISING))
    assert (answer.outcome, answer.busy) == ("crossing", "")
    assert report.crossover_document(answer)["busy"] == ""


def test_a_crossing_on_a_busy_machine_is_marked_though_no_size_has_enough_blocks_of_its_own():
    quiet, answer = study.crossover(measured(RISING)), study.crossover(measured(RISING, share=0.6))
    assert (answer.outcome, answer.estimate) == ("crossing", quiet.estimate)
    assert answer.busy == (
        "Measured on a busy machine: other programs took processor time from 2 CPU "
        "threads in 67 % of the blocks, and they "
        "slow 2 threads of the processor more than 1 thread."
    )
    assert answer.sentence == f"{quiet.sentence} {answer.busy}"
    assert answer.busy in report.crossover_text(answer)


def test_a_device_that_other_programs_may_have_made_win_everywhere_is_not_said_to():
    ahead = (0.2, 0.2, 0.2, 0.2, 0.2)
    assert study.crossover(measured(ahead)).outcome == "cpu_always"
    answer = study.crossover(measured(ahead, share=1.0))
    assert answer.outcome == "undecided"
    assert answer.sentence.startswith("No crossover can be told, counting the steps alone: this machine was too busy: ")
    assert answer.busy
    assert answer.sentence.count("other programs took processor time") == 1
    assert "Only powers of two" in study.crossover(measured(ahead)).sentence
    assert "Only powers of two" not in answer.sentence
    assert study.crossover(measured((5.0,) * 5, share=1.0)).outcome == "gpu_always"


def test_blocks_that_spread_over_all_sizes_are_seen_together():
    answer = study.crossover(measured((2.0,) * 5, slow_every=7))
    assert answer.busy.startswith("Measured on a busy machine: one block in ten of 2 CPU threads took at least")


def test_several_crossings_of_a_busy_machine_have_no_usual_cause():
    waves = (0.3, 3.0, 0.3, 3.0, 0.3)
    assert "are the usual cause" in study.crossover(measured(waves)).sentence
    answer = study.crossover(measured(waves, share=1.0))
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
    answer = diagnostics.mark_interference(answer, diagnostics.evidence_interference(evidence, "cpu", "gpu"))
    assert ("Measured on a busy machine: one block in ten of" in answer.sentence) is loud
