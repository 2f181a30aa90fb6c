"""Published and measured side by side: each number from its own source, and what tells them apart."""

import dataclasses

import pytest

from core.answer.lessons import tutorials
from core.question.presets import PRESETS
from core.question.published import list_published
from core.question.sweep import Sweep
from tests import rows
from tests.studies import compared, measured


@pytest.mark.parametrize("name", ["disc", "signal", "fashion-cnn"])
def test_every_point_of_the_sweep_has_a_time_of_each_device_and_a_speedup(name):
    found = compared(name, measured(name))
    of = PRESETS[name]
    points = Sweep(point=of.point_at_scale("class"), axes=of.axes_at_scale("class")).points
    ours = [mark for mark in found.times if mark.origin == "measured"]
    assert len(ours) == 2 * len(points)
    assert len([mark for mark in found.speedups if mark.origin == "measured"]) == len(points)


def test_sizes_with_too_few_pairs_for_a_run_of_their_own_have_the_figures_of_their_study():
    few, many = (compared("disc", measured("disc", pairs=pairs)) for pairs in (3, 6))
    assert "unknown" not in str(few.table.rows)
    places = [[mark.place for mark in each.speedups if mark.origin == "measured"] for each in (few, many)]
    assert places[0] == places[1]


def test_published_numbers_are_those_of_the_tutorial_and_no_others():
    found = compared("signal", measured("signal"))
    theirs = {mark.value for mark in found.times if mark.origin == "published"}
    assert theirs == {entry.value for entry in list_published("signal", "seconds")}
    assert found.wins_from == list_published("signal", "wins_from")[0].value


def test_a_published_speedup_is_the_ratio_of_times_published_together_with_its_spread():
    found = compared("signal", measured("signal"))
    (last,) = [mark for mark in found.speedups if mark.origin == "published" and mark.place == 2_000]
    assert last.value == pytest.approx(2_430 / 505)
    assert last.low == pytest.approx((2_430 - 15) / (505 + 15))
    assert last.high == pytest.approx((2_430 + 15) / (505 - 15))


def test_a_speedup_that_is_published_of_the_whole_grid_has_no_place():
    found = compared("fashion-cnn", measured("fashion-cnn"))
    (claim,) = [mark for mark in found.speedups if mark.origin == "published"]
    assert (claim.place, claim.value) == (None, 2.0)


def test_the_sentence_on_what_was_measured_follows_the_rows():
    slow, quick = (compared("signal", measured("signal", gpu_s=gpu_s)) for gpu_s in (4e-4, 1e-6))
    assert slow.sentences[-1] != quick.sentences[-1]
    assert "faster than the CPU (Test CPU, 4 threads) at every size" in quick.sentences[-1]
    assert slow.sentences[:-1] == quick.sentences[:-1] == tutorials.claim_sentences(PRESETS["signal"])


def test_a_time_is_of_the_training_that_was_asked_for():
    found = compared("disc", measured("disc"))
    row = next(row for row in measured("disc") if row.depth == 8 and row.contender == "cpu")
    (mark,) = [mark for mark in found.times if mark.place == 8 and mark.kind == "cpu"]
    assert mark.value == pytest.approx(sorted(row.step_s)[3] * row.steps_per_epoch * row.epochs, rel=0.05)


def test_a_tutorial_that_varies_nothing_is_shown_epoch_by_epoch():
    point = PRESETS["mnist-linear"].point_at_scale("class")
    found = compared("mnist-linear", rows.run({"cpu": 8e-3, "cuda:0": 4e-3}, point=point, steps_per_block=10))
    assert [mark.place for mark in found.times if mark.series == "measured: CPU"] == [1, 2, 3, 4, 5]
    assert len([mark for mark in found.times if mark.origin == "published"]) == 10
    assert "faster than the CPU" in found.sentences[-2]
    assert "94.4 % on the CPU" in found.sentences[-1]
    assert found.speedups == ()


def test_without_an_accelerator_it_says_that_the_rows_prove_nothing_about_one():
    devices = ("cpu@1", "cpu")
    alone = compared("disc", measured("disc", devices=devices), devices=devices)
    assert any(
        "No accelerator took part: 1 CPU thread and the CPU are one processor" in said for said in alone.differences
    )
    both = compared("disc", measured("disc"))
    assert not any("No accelerator" in said for said in both.differences)


def test_hardware_year_and_size_are_named_as_the_difference():
    found = compared("signal", measured("signal", torch_version="9.9.9"))
    said = " ".join(found.differences)
    assert "x86_64 and P100-PCIe, without a date" in said
    assert "NVIDIA Test GPU" in said
    assert "torch 9.9.9" in said
    assert PRESETS["signal"].class_note in said
    assert PRESETS["signal"].class_note not in " ".join(
        compared("signal", measured("signal"), scale="full").differences
    )


def test_rows_from_elsewhere_are_called_recorded_everywhere():
    found = compared("signal", measured("signal"), origin="recorded")
    assert found.sentences[-1].startswith("Recorded: ")
    assert {mark.origin for mark in found.times} == {"published", "recorded"}
    assert not any("measured" in cell for cell in found.table.header)


def test_rows_without_times_or_with_one_device_are_no_comparison():
    assert compared("disc", measured("disc", devices=("cpu", "cpu@1"))) is None
    empty = [dataclasses.replace(row, block_steps=(), block_begin_ns=(), block_end_ns=()) for row in measured("disc")]
    assert compared("disc", empty) is None


@pytest.mark.parametrize("name", PRESETS)
def test_each_tutorial_has_a_clock_of_its_own_that_differs_from_ours(name):
    assert tutorials.clock_shortcut_sentences(PRESETS[name])


@pytest.mark.parametrize("name", PRESETS)
def test_what_was_published_is_said_to_be_published(name):
    said = tutorials.claim_sentences(PRESETS[name])
    assert said
    assert all(sentence.startswith("Published: ") for sentence in said)


def test_the_speedup_stands_where_a_narrow_window_shows_it():
    table = compared("signal", measured("signal")).table
    assert table.header == (
        *("Hidden size", "speedup, measured", "measured: CPU", "measured: GPU"),
        *("published: CPU x86_64", "published: GPU P100-PCIe"),
    )
    assert all(len(row) == len(table.header) for row in table.rows)


def test_cells_of_a_grid_are_short_on_the_axis_and_have_all_words_in_a_sentence():
    found = compared("fashion-cnn", measured("fashion-cnn"))
    assert {mark.label for mark in found.speedups} >= {"10 × 0", "200 × 1"}
    assert "(batch size 10, loader workers " in found.sentences[-1]
