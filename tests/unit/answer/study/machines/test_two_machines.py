"""Two machines: which recordings answer for a training, and what the ratio of two medians may say."""

import dataclasses
import math
import random

import pytest

from core.answer import crossover
from core.answer import recorded_machines as accelerators
from core.answer.judgement import Evidence
from core.answer.statistics import ratio_interval
from core.errors import NotComparable
from core.question.experiment import Point
from core.question.fields import field_title
from tests import rows

AWAY = {"machine_id": "1" * 12, "cpu_name": "Other CPU"}
TIMES = {16: (1e-4, 4e-4), 64: (1.2e-4, 4e-4), 256: (3e-4, 4.2e-4), 1024: (1e-3, 5e-4), 2048: (4e-3, 8e-4)}
"""Hidden size → seconds a step of the CPU here and of the GPU there; they meet between 256 and 1,024."""


def here(step_s=1e-3, **changes):
    return rows.run({"cpu": step_s}, run_id="a" * 12, **changes)[0]


def there(step_s=2.5e-4, run_id="b" * 12, **changes):
    return rows.run({"cpu": 1e-3, "cuda:0": step_s}, run_id=run_id, **{**AWAY, **changes})[1]


def recorded(*trials):
    (found,) = accelerators.list_accelerators(trials)
    return found


def curve(place, start="c", **changes):
    """A row of each size, of the CPU (0) here or of the GPU (1) there."""
    make = there if place else here
    made = []
    for number, (size, times) in enumerate(TIMES.items()):
        row = make(times[place], point=Point(hidden_size=size), **changes)
        made.append(dataclasses.replace(row, trial_id=f"{start}{number}", run_id=f"{start}{number:011x}"))
    return made


# Which recordings answer


def test_accelerators_of_other_machines_are_told_apart_and_cpus_are_none():
    trials = [
        here(),
        there(),
        there(run_id="d" * 12, machine_id="2" * 12, device_name="Other GPU"),
        there(run_id="e" * 12, machine_id="2" * 12, device_name="Other GPU", hidden_size=5),
    ]
    found = accelerators.list_accelerators(trials)
    assert [(one.name, len(one.recordings)) for one in found] == [
        ("Other GPU (222222)", 2),
        ("NVIDIA Test GPU (111111)", 1),
    ]
    assert [one.name for one in accelerators.list_accelerators(trials, exclude_machine="2" * 12)] == [
        "NVIDIA Test GPU (111111)"
    ]


def test_two_cards_of_one_machine_have_names_of_their_own():
    found = accelerators.list_accelerators([there(), there(run_id="d" * 12, device="cuda:1")])
    assert {one.name for one in found} == {"NVIDIA Test GPU (111111)", "NVIDIA Test GPU, GPU 1 (111111)"}


def test_machines_whose_ids_begin_alike_have_names_of_their_own():
    found = accelerators.list_accelerators([there(), there(run_id="d" * 12, machine_id="111111000000")])
    assert len({one.name for one in found}) == 2


def test_the_same_training_is_found_before_it_is_measured_and_after():
    of = recorded(there())
    assert (
        accelerators.find_recording(of, accelerators.point_settings(rows.EXPERIMENT.point)).trial_id == there().trial_id
    )
    assert accelerators.find_recording(of, accelerators.row_settings(here())).trial_id == there().trial_id


def test_a_training_that_came_to_its_end_is_preferred_to_a_newer_one_that_did_not():
    cut = there(run_id="d" * 12, outcome="timed", started_at="2026-12-01T00:00:00+00:00")
    of = recorded(cut, there())
    assert accelerators.find_recording(of, accelerators.row_settings(here())).run_id == "b" * 12


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("hidden_size", 256),
        ("epochs", 3),
        ("seed", 1),
        ("learning_rate", 0.2),
        ("data_path", "per_batch"),
        ("batch_size", 32),
        ("samples", 1000),
        ("dataset_hash", "f" * 16),
        ("protocol_version", 99),
        ("drained", False),
    ],
)
def test_a_recording_that_differs_in_anything_never_answers(column, value):
    of = recorded(there(**{column: value}))
    assert accelerators.find_recording(of, accelerators.row_settings(here())) is None


def test_the_nearest_recordings_are_named_with_what_differs_the_nearest_first():
    of = recorded(
        there(run_id="1" * 12, hidden_size=4096),
        there(run_id="2" * 12, hidden_size=256),
        there(run_id="3" * 12, hidden_size=64, batch_size=1000),
    )
    said = [
        near.differs for near in accelerators.nearest_recordings(of, accelerators.point_settings(rows.EXPERIMENT.point))
    ]
    assert said == [
        "hidden size 256 instead of 128",
        "hidden size 4,096 instead of 128",
        "hidden size 64 instead of 128, batch size 1,000 instead of 64",
    ]


@pytest.mark.parametrize(("column", "value"), [("protocol_version", 99), ("drained", False)])
def test_rows_of_another_protocol_are_never_near_and_are_said_to_be_there(column, value):
    of = recorded(there(**{column: value}))
    wanted = accelerators.row_settings(here())
    assert accelerators.nearest_recordings(of, wanted) == ()
    assert f"another {column.replace('_', ' ')}" in accelerators.incomparable_sentence(of, wanted)


def test_nothing_is_said_to_be_refused_where_the_training_itself_differs():
    assert (
        accelerators.incomparable_sentence(recorded(there(drained=False, seed=5)), accelerators.row_settings(here()))
        == ""
    )


GRAPH = {"contender": "cuda:0+graph10", "execution": "graph", "steps_per_call": 10}


def test_a_recorded_lane_is_offered_as_an_accelerator_of_its_own():
    plain, graph = there(), dataclasses.replace(there(run_id="c" * 12), **GRAPH)
    found = {one.name: one for one in accelerators.list_accelerators([plain, graph])}
    assert set(found) == {"NVIDIA Test GPU (111111)", "NVIDIA Test GPU, CUDA graph of 10 steps (111111)"}
    wanted = accelerators.row_settings(here())
    match = accelerators.find_recording(found["NVIDIA Test GPU, CUDA graph of 10 steps (111111)"], wanted)
    assert match is not None
    assert match.run_id == "c" * 12


def test_a_lane_that_this_version_does_not_know_is_not_offered():
    assert accelerators.list_accelerators([there(execution="telepathy")]) == ()


def test_a_recorded_lane_is_set_against_plain_steps_and_named():
    found = accelerators.machine_speedup(here(), dataclasses.replace(there(), **GRAPH))
    assert found.sentence.startswith("The recorded GPU, CUDA graph of 10 steps is ")


def test_other_mathematics_of_a_recorded_lane_is_a_caution():
    lane = {"contender": "cuda:0+bf16", "precision": "bf16", "lane_loss": (2.3, 2.2), "reference_loss": (2.3, 2.1)}
    assert "(bf16) uses lower precision" in " ".join(
        accelerators.machine_speedup(here(), dataclasses.replace(there(), **lane)).cautions
    )
    assert "mathematics" not in " ".join(accelerators.machine_speedup(here(), there()).cautions)


def test_the_recorded_sizes_of_a_training_are_of_one_version_of_torch():
    of = recorded(*curve(1), *curve(1, start="d", torch_version="9.9")[:3])
    found = accelerators.find_recorded_curve(of, accelerators.point_settings(Point(hidden_size=1)), "hidden_size")
    assert [each.value("hidden_size") for each in found] == list(TIMES)
    assert {each.versions[0] for each in found} == {rows.TORCH_VERSION}


def test_along_parameters_the_size_of_the_family_may_vary():
    found = accelerators.find_recorded_curve(
        recorded(*curve(1)), accelerators.point_settings(Point(hidden_size=1)), "parameters"
    )
    assert [each.parameters for each in found] == [Point(hidden_size=size).network.parameters for size in TIMES]


def test_near_a_sweep_are_only_trainings_of_several_sizes():
    of = recorded(*curve(1, batch_size=32), there(run_id="9" * 12, seed=3))
    (near,) = accelerators.nearest_recordings(of, accelerators.point_settings(Point()), "hidden_size")
    assert (near.differs, near.sizes) == ("batch size 32 instead of 64", 5)


# The ratio of two machines


def test_the_faster_machine_is_named_with_both_machines_and_the_interval():
    found = accelerators.machine_speedup(here(), there())
    assert found.verdict == "gpu_faster"
    assert found.low < 4 < found.high
    assert found.sentence.startswith("The recorded GPU is 4.01× faster than the CPU. 95 % interval ")
    assert "GPU (NVIDIA Test GPU) recorded on Other CPU (111111) against " in found.sentence
    assert "CPU (Test CPU, 4 threads) on Test CPU (feedfa)." in found.sentence
    assert ", 20 and 20 blocks on two machines" in found.sentence
    assert accelerators.VISIT_NOTE in found.cautions[0]


def test_a_slower_recording_loses_with_the_ratio_turned_round():
    found = accelerators.machine_speedup(here(), there(4e-3))
    assert (found.verdict, round(found.value, 2)) == ("cpu_faster", 0.25)
    assert found.sentence.startswith("The CPU is 3.99× faster than the recorded GPU. ")


def test_a_difference_within_the_noise_is_too_close():
    found = accelerators.machine_speedup(here(1e-3, jitter=0.05), there(1.001e-3, jitter=0.05))
    assert found.verdict == "too_close"
    assert "two machines" in found.sentence


def test_swapping_the_two_inverts_the_interval():
    ours, theirs = (rows.trial(jitter=0.1, run_id=name * 12).step_s for name in "ab")
    low, high = ratio_interval(ours, theirs)
    again = ratio_interval(theirs, ours)
    assert again == pytest.approx((1 / high, 1 / low))


def test_the_interval_follows_the_noisier_machine():
    quiet, noisy = (rows.trial(jitter=jitter, run_id=name * 12).step_s for jitter, name in ((0.01, "a"), (0.1, "b")))

    def width(*of):
        low, high = ratio_interval(*of)
        return high / low

    assert width(quiet, quiet) < width(quiet, noisy) <= width(noisy, noisy)


def test_readings_without_any_noise_have_an_interval_without_width():
    assert ratio_interval([4.0] * 6, [1.0] * 9) == pytest.approx((4.0, 4.0))


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(6, 6), (8, 20), (5000, 12)])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(counts):
    draw, held, runs = random.Random(5), 0, 300
    for _ in range(runs):
        ours, theirs = ([math.exp(draw.gauss(0, 0.05)) for _ in range(count)] for count in counts)
        low, high = ratio_interval(ours, theirs)
        held += low <= 1 <= high
    assert 0.90 <= held / runs <= 0.99


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"protocol_version": 7}, "protocol_version"),
        ({"dataset_hash": "f" * 16}, "dataset_hash"),
        ({"hidden_size": 7}, "hidden_size"),
    ],
)
def test_rows_of_another_training_or_protocol_are_refused_by_name(changes, column):
    with pytest.raises(NotComparable, match=field_title(column)):
        accelerators.machine_speedup(here(), there(**changes))


def test_one_machine_is_not_two():
    with pytest.raises(NotComparable, match="same machine"):
        accelerators.machine_speedup(here(), there(machine_id=rows.MACHINE_ID))


def test_another_version_of_torch_is_said_and_not_refused():
    found = accelerators.machine_speedup(here(), there(torch_version="2.9.0"))
    assert found.verdict == "gpu_faster"
    assert any("recorded with 2.9.0" in said for said in found.cautions)


@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [
        ({"pairs": 5}, {}, "5 blocks were timed in the measurement and 6 are needed"),
        ({}, {"pairs": 5}, "5 blocks were timed in the recording and 6 are needed"),
        ({}, {"jitter": 1.0}, "the machine of the recording was too busy"),
        ({}, {"pairs": 0, "outcome": "out_of_memory"}, "did not fit into the memory of NVIDIA Test GPU"),
    ],
)
def test_what_cannot_be_judged_has_no_verdict_but_a_reason(ours, theirs, reason):
    found = accelerators.machine_speedup(here(**ours), there(**theirs))
    assert (found.verdict, found.value) == ("missing", None)
    assert reason in found.sentence


def test_a_verdict_that_the_load_of_the_measuring_machine_may_have_made_says_so():
    loaded = dataclasses.replace(here(), block_waiting=(0.9,) * 20, block_other_use=(0.5,) * 20)
    found = accelerators.machine_speedup(loaded, there())
    assert found.condition == "with other programs using about half of the processors"
    assert found.claim.startswith("With other programs using about half of the processors, the recorded GPU was 4.01×")
    assert not accelerators.machine_speedup(here(), there()).is_conditional


def test_both_fingerprints_stand_beside_each_other():
    facts = {name: (ours, theirs) for name, ours, theirs in accelerators.compare_fingerprints(here(), there())}
    assert facts["Machine"] == (rows.MACHINE_ID, "1" * 12)
    assert facts["Processor"] == ("Test CPU", "Other CPU")
    assert facts["torch"] == (rows.TORCH_VERSION, rows.TORCH_VERSION)


def test_a_recording_is_shown_under_a_name_that_says_so():
    assert accelerators.label_recording(there()).contender == "GPU recorded, 111111"


# Along an axis


def test_two_machines_have_one_crossover_that_says_that_they_are_two():
    (met,) = accelerators.find_meetings(curve(0, start="a"), curve(1), "hidden_size")
    found = accelerators.meeting_crossover(met)
    assert found.outcome == "crossing"
    assert 128 < found.low <= found.estimate <= found.high < 1024
    assert "Two machines, not measured in turns: Test CPU (feedfa) and Other CPU (111111)" in found.sentence
    assert found.challenger == "GPU recorded (NVIDIA Test GPU, 111111)"


def test_blocks_of_two_machines_never_pair():
    (met,) = accelerators.find_meetings(curve(0, start="a"), curve(1), "hidden_size")
    assert not any(entry.paired for entry in accelerators.meeting_evidence(met, "steady"))


def test_sizes_of_one_machine_only_keep_their_times_and_say_what_is_missing():
    (met,) = accelerators.find_meetings(curve(0, start="a")[:3], curve(1)[1:], "hidden_size")
    found = {entry.size: entry for entry in accelerators.meeting_evidence(met, "steady")}
    assert found[16].obstacle == "measured, but not recorded"
    assert found[2048].obstacle == "recorded, but not measured"
    assert found[16].baseline_s
    assert not found[16].challenger_s
    assert not found[64].obstacle
    assert [pair[0].hidden_size for pair in met.shared] == [64, 256]


def test_start_up_counts_on_the_bases_that_count_it():
    (met,) = accelerators.find_meetings(curve(0, start="a"), curve(1), "hidden_size")
    steady, cold = (accelerators.meeting_evidence(met, basis)[0].challenger_s[0] for basis in ("steady", "cold_start"))
    assert cold > steady


@pytest.mark.parametrize("changes", [{"protocol_version": 99}, {"batch_size": 32}, {"machine_id": rows.MACHINE_ID}])
def test_curves_of_other_trainings_or_of_one_machine_never_meet(changes):
    assert accelerators.find_meetings(curve(0, start="a"), curve(1, **changes), "hidden_size") == []


def test_each_contender_of_this_machine_meets_the_recording_by_itself():
    ours = [*curve(0, start="a"), *(dataclasses.replace(row, contender="cpu@1", threads=1) for row in curve(0))]
    found = accelerators.find_meetings(ours, curve(1), "hidden_size")
    assert {one.measured[0].contender for one in found} == {"cpu", "cpu@1"}


def test_unpaired_readings_are_as_noisy_as_the_noisier_device():
    """A pool of both would take the quiet device's noise for half of the noisy one's."""
    draw = random.Random(3)

    def entry(size, noises):
        times = [[math.exp(draw.gauss(0, noise)) for _ in range(20)] for noise in noises]
        return Evidence(size=size, baseline_s=tuple(times[0]), challenger_s=tuple(times[1]), paired=False)

    found = crossover.locate_crossover(
        [entry(size, (0.2, 0.001)) for size in (8, 64, 512, 4096)], axis="size", baseline="cpu", challenger="gpu"
    )
    assert found.noise == pytest.approx(0.2 / math.sqrt(2), rel=0.25)
