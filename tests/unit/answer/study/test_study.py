"""Which rows belong together, and what they say on each cost basis."""

import dataclasses
import random

import pytest

from core.answer import causes, study, training_cost
from core.errors import InvalidValue, NotComparable
from core.question.experiment import Contender, Point
from core.question.fields import field_title
from core.question.sweep import Axis, Sweep
from tests import rows

SIZES = (16, 32, 64, 128, 256, 512, 1024)


def run(size, *, number=0, cpu_s=None, gpu_s=None, axis="hidden_size", **changes):
    """One run in which the GPU wins above a hidden size of about 180."""
    point = dataclasses.replace(Point(), **{axis: size})
    times = {"cpu": cpu_s or 1e-4 + size**2 * 1e-8, "cuda:0": gpu_s or 4e-4 + size**2 * 1e-9}
    return rows.run(times, point=point, run_id=f"{number:04x}{size:08x}", pairs=6, **changes)


def trials(sizes=SIZES, **changes):
    return [row for size in sizes for row in run(size, **changes)]


def asked(*contenders: str) -> Sweep:
    return Sweep(
        point=Point(),
        axes=(Axis(name="hidden_size", values=SIZES),),
        contenders=tuple(map(Contender.parse, contenders)),
    )


def answers(trials):
    """The rows of each point."""
    return {Point.from_row(row): [each for each in trials if each.hidden_size == row.hidden_size] for row in trials}


def test_runs_that_differ_in_one_size_are_a_study_and_have_a_crossover():
    (found,) = study.studies(trials())
    assert (found.axis, found.baseline, found.challenger) == ("hidden_size", "cpu", "cuda:0")
    assert found.sizes == SIZES
    answer = found.crossover()
    assert answer.outcome == "crossing"
    assert 128 < answer.low < answer.high < 256
    assert answer.basis == "steady"


def test_the_order_of_rows_does_not_matter():
    shuffled = trials()
    random.Random(3).shuffle(shuffled)
    assert study.studies(shuffled) == study.studies(trials())


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol_version": 99},
        {"machine_id": "0" * 12},
        {"torch_version": "1.0"},
        {"precision": "tf32"},
        {"execution": "graph"},
        {"dataset_hash": "0" * 16},
        {"learning_rate": 0.5},
        {"device_name": "another card"},
    ],
)
def test_rows_that_were_measured_otherwise_form_a_study_of_their_own(changes):
    mixed = trials(SIZES[:4]) + trials(SIZES[4:], number=1, **changes)
    found = study.studies(mixed)
    assert sorted(one.sizes for one in found) == [SIZES[:4], SIZES[4:]]
    assert found[0].id != found[1].id


@pytest.mark.parametrize("column", ["protocol_version", "machine_id", "device_name", "learning_rate"])
def test_rows_of_two_protocols_put_together_by_hand_are_refused(column):
    (found,) = study.studies(trials())
    odd = tuple(
        dataclasses.replace(row, **{column: "odd" if isinstance(getattr(row, column), str) else 99})
        for row in found.runs[-1]
    )
    with pytest.raises(NotComparable, match=field_title(column)):
        dataclasses.replace(found, runs=(*found.runs[:-1], odd)).crossover()


def test_of_two_runs_of_one_size_the_newest_counts():
    newer = run(64, number=7, cpu_s=9.0, started_at="2026-11-22T00:00:00+00:00")
    (found,) = study.studies(trials() + newer)
    assert {pair[0].run_id for pair in found.runs} >= {newer[0].run_id}
    assert len(found.runs) == len(SIZES)


@pytest.mark.parametrize("outcome", ["stopped", "interrupted"])
def test_a_run_that_was_cut_off_counts_only_where_there_is_no_other(outcome):
    later = {"outcome": outcome, "started_at": "2026-11-22T00:00:00+00:00"}
    (found,) = study.studies(trials(SIZES[:-1]) + run(64, number=7, **later) + run(SIZES[-1], number=8, **later))
    assert found.sizes == SIZES
    assert [pair[0].outcome == outcome for pair in found.runs] == [size == SIZES[-1] for size in SIZES]


def test_one_size_is_no_study_unless_asked_for():
    assert study.studies(trials(SIZES[:1])) == []
    assert len(study.studies(trials(SIZES[:1]), axis="hidden_size", least=1)) == 1


def test_the_same_runs_are_a_study_of_parameters_where_that_is_asked():
    (found,) = study.studies(trials(), axis="parameters")
    assert found.sizes == tuple(pair[0].parameters for pair in found.runs)
    assert "parameters" in found.crossover().sentence


def test_the_number_of_samples_may_vary_with_what_follows_from_it():
    sizes = (200, 400, 800)
    mixed = [row for size in sizes for row in run(size, axis="samples", dataset_hash=f"{size:016x}")]
    (found,) = study.studies(mixed, axis="samples")
    assert found.sizes == sizes


def test_three_contenders_make_a_study_for_each_two():
    times = {"cpu@1": 2e-3, "cpu": 1e-3, "cuda:0": 5e-4}
    mixed = [
        row
        for size in SIZES[:3]
        for row in rows.run(times, point=Point(hidden_size=size), run_id=f"{size:012x}", pairs=6)
    ]
    assert {(one.baseline, one.challenger) for one in study.studies(mixed)} == {
        ("cpu@1", "cpu"),
        ("cpu@1", "cuda:0"),
        ("cpu", "cuda:0"),
    }


def test_the_accelerator_is_the_challenger_wherever_it_was_named():
    mixed = [
        row
        for size in SIZES[:3]
        for row in rows.run(
            {"cuda:0": 1e-3, "cpu": 2e-3}, point=Point(hidden_size=size), run_id=f"{size:012x}", pairs=6
        )
    ]
    (found,) = study.studies(mixed)
    assert (found.baseline, found.challenger) == ("cpu", "cuda:0")
    assert len(study.sweep_evidence(asked("cuda:0", "cpu"), answers(mixed))) == 3


# Cost bases


def step_s(found, basis):
    entry = found.evidence(basis)[0]
    return entry.baseline_s[0], entry.challenger_s[0]


def test_each_basis_adds_its_share_of_what_is_paid_once():
    (found,) = study.studies(trials())
    cpu, gpu = found.runs[0]
    steps = cpu.epochs * cpu.steps_per_epoch
    steady = step_s(found, "steady")
    assert steady == (cpu.step_s[0], gpu.step_s[0])
    assert step_s(found, "with_transfer") == pytest.approx([s + 0.001 / steps for s in steady])
    paid_once = [training_cost.startup_s(row) / steps for row in (cpu, gpu)]
    assert step_s(found, "cold_start") == pytest.approx([s + once for s, once in zip(steady, paid_once, strict=True)])


def test_a_copy_that_each_step_pays_is_not_counted_twice():
    mixed = [
        row
        for size in SIZES[:2]
        for row in rows.run(
            {"cpu": 1e-3, "cuda:0": 1e-3}, point=Point(hidden_size=size, data_path="per_batch"), run_id=f"{size:012x}"
        )
    ]
    (found,) = study.studies(mixed)
    assert step_s(found, "with_transfer") == step_s(found, "steady")


def test_a_longer_start_up_moves_the_crossover_up():
    (found,) = study.studies(trials())
    steady, cold = (found.crossover(basis) for basis in ("steady", "cold_start"))
    assert cold.basis == "cold_start"
    assert cold.estimate > steady.estimate


def test_a_start_up_that_was_not_measured_is_an_obstacle_on_that_basis_only():
    (found,) = study.studies(trials(startup_device_s=None))
    assert not any(entry.obstacle for entry in found.evidence("steady"))
    assert all("not measured" in entry.obstacle for entry in found.evidence("cold_start"))


def test_out_of_memory_is_an_obstacle_at_its_size_alone():
    lost = [
        dataclasses.replace(
            row, outcome="out_of_memory", block_pair=(), block_steps=(), block_begin_ns=(), block_end_ns=()
        )
        for row in run(2048)
    ]
    (found,) = study.studies(trials() + lost)
    answer = found.crossover()
    assert answer.outcome == "crossing"
    assert "memory" in answer.sizes[-1].reason


def test_sizes_without_comparable_rows_are_named_as_such():
    visited = {**answers(trials(SIZES[:2])), Point(hidden_size=64): []}
    known = study.sweep_evidence(asked("cpu", "cuda:0"), visited, {Point(hidden_size=4096): "too slow"})
    obstacles = {16: "", 32: "", 64: "its rows cannot be compared", 4096: "too slow"}
    assert {entry.size: entry.obstacle for entry in known} == obstacles


def test_the_cause_is_that_of_the_measured_size_below_the_crossing():
    (found,) = study.studies(trials())
    answer = found.crossover()
    size, words = found.cause(answer)
    assert (size, words) == (128, causes.difference_cause(*found.runs[SIZES.index(128)]))
    base, other = found.part_times()
    assert list(base) == list(other) == list(SIZES)
    assert other[32] == causes.part_times(found.runs[1][1])


def test_without_a_crossing_or_a_breakdown_there_is_no_cause():
    (found,) = study.studies(trials())
    answer = found.crossover()
    assert found.cause(dataclasses.replace(answer, estimate=None)) is None
    whole = {f"breakdown_{part}_s": () for part in causes.PART_TITLES}
    apart = dataclasses.replace(
        found, runs=tuple((base, dataclasses.replace(other, **whole)) for base, other in found.runs)
    )
    assert apart.cause(answer) is None
    assert [list(sizes) for sizes in apart.part_times()] == [list(SIZES), []]


def in_turns(sizes, rounds):
    """Runs whose pairs take turns: a pair of each size, then the next of each."""
    moved = []
    for place, size in enumerate(sizes):
        for row in run(size):
            begins = tuple(10**12 * (number * len(sizes) + place) for number in range(rounds)) + (10**15,) * (
                6 - rounds
            )
            moved.append(dataclasses.replace(row, block_begin_ns=begins, block_end_ns=tuple(b + 10**9 for b in begins)))
    return moved


def test_sizes_that_were_measured_in_turns_were_come_back_to():
    (turns,) = study.studies(in_turns(SIZES, 6))
    assert {entry.visits for entry in turns.evidence("steady")} == {6}
    lone = dataclasses.replace(turns, runs=turns.runs[:1])
    assert [entry.visits for entry in lone.evidence("steady")] == [1]


def test_sizes_that_were_measured_one_after_the_other_were_visited_once():
    rows_after = []
    for place, size in enumerate(SIZES):
        for row in run(size):
            begins = tuple(begin + place * 10**15 for begin in row.block_begin_ns)
            ends = tuple(end + place * 10**15 for end in row.block_end_ns)
            rows_after.append(dataclasses.replace(row, block_begin_ns=begins, block_end_ns=ends))
    (once,) = study.studies(rows_after)
    assert {entry.visits for entry in once.evidence("steady")} == {1}
    (turns,) = study.studies(in_turns(SIZES, 6))
    first = [answer.sizes[0] for answer in (each.crossover() for each in (once, turns))]
    widths = [size.high / size.low for size in first]
    assert widths[0] > widths[1]


def test_an_axis_or_a_basis_that_there_is_not_is_refused_in_a_sentence():
    with pytest.raises(InvalidValue, match="axis must be one of hidden_size"):
        study.studies(trials(), axis="neurons")
    (found,) = study.studies(trials(), axis="hidden_size")
    with pytest.raises(InvalidValue, match="basis must be one of steady"):
        found.crossover("cold")
