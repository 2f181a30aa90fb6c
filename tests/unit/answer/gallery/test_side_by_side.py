"""Two studies or two runs: only what differs is said, and what may not share a chart is refused."""

import dataclasses

import pytest

from core.answer.gallery import side_by_side
from tests import rows
from tests.studies import OTHER_MACHINE, TRAINING, sweep

HERE = sweep("a")


def said(comparison):
    return {(one.group, one.what): (one.first, one.second) for one in comparison.differences}


def test_a_study_differs_from_itself_in_nothing():
    answer = HERE.crossover()
    found = side_by_side.compare_studies(HERE, HERE, (answer, answer))
    assert found.differences == ()
    assert found.alike > 30


def test_only_what_differs_is_said_of_two_machines():
    there = sweep("b", **{**OTHER_MACHINE, "device_name": "Other device"})
    answers = HERE.crossover(), there.crossover()
    found = side_by_side.compare_studies(HERE, there, answers)
    differences = said(found)
    assert differences["Machine", "processor"] == ("Test CPU", "Other CPU")
    assert differences["Machine", "processor threads"] == ("8", "64")
    assert differences["Answer", "in words"] == (answers[0].sentence, answers[1].sentence)
    assert not [what for group, what in differences if group == "Settings"]


def test_a_side_without_an_answer_has_none():
    found = side_by_side.compare_studies(HERE, sweep("b"), (HERE.crossover(), None))
    assert said(found)["Answer", "in words"][1] == ""


def test_differences_stand_together_by_group():
    found = side_by_side.compare_studies(HERE, sweep("b", sizes=(16, 64), **OTHER_MACHINE), (None, None))
    groups = [one.group for one in found.differences]
    assert groups == sorted(groups, key=groups.index)
    assert said(found)["Settings", "sizes"] == ("16 to 256 (3 sizes)", "16 to 64 (2 sizes)")


def test_two_runs_differ_in_their_settings_and_answers():
    first, second = rows.run(), rows.run({"cpu": 1e-3, "cuda:0": 1e-4}, run_id="b" * 12, point=TRAINING)
    differences = said(side_by_side.compare_runs(first, second))
    assert differences["Settings", "data set"] == ("Digits (1,797 images)", "Signal and background (synthetic)")
    assert "× faster than the CPU" in differences["Answer", "GPU against CPU"][1]
    assert ("Machine", "processor") not in differences


def test_answers_in_words_are_sentences_and_no_cells():
    first, second = rows.run(), rows.run({"cpu": 1e-3, "cuda:0": 1e-4}, run_id="b" * 12)
    differences = side_by_side.compare_runs(first, second).differences
    assert [one.what for one in differences if one.is_sentence] == ["GPU against CPU"]
    assert not any(one.is_sentence for one in differences if one.group != "Answer")


def test_the_same_training_on_another_machine_shares_a_chart():
    assert side_by_side.chart_refusal(HERE, sweep("b", torch_version="3.0", **OTHER_MACHINE)) == ""


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (sweep("b", protocol_version=99), "rows of different protocols never share a chart"),
        (sweep("b", precision="bf16"), "precision is bf16, but the open study's is fp32"),
        (sweep("b", axis="batch_size"), "varies the batch size, the study that is open the hidden size"),
        (sweep("b", training=dataclasses.replace(TRAINING, batch_size=128)), "batch size is 128"),
        (sweep("b", dataset_hash="f" * 16), "hash of the data is ffffffffffffffff"),
    ],
    ids=["protocol", "precision", "axis", "training", "data"],
)
def test_what_may_not_share_a_chart_is_refused_with_its_reason(other, reason):
    assert reason in side_by_side.chart_refusal(HERE, other)


def test_a_fingerprint_names_machine_devices_and_versions_and_lists_what_varies():
    known = side_by_side.environment_facts([*HERE.runs[0], dataclasses.replace(HERE.runs[1][0], app_commit="b" * 12)])
    assert known["processor"] == "Test CPU"
    assert known["second device: driver"] == "driver 580.10, CUDA 13.0"
    assert known["commit of the code"] == f"0123456789ab, {'b' * 12}"
    assert known["memory"] == "16.0 GiB"
