"""What would help: every sentence follows from the rows, and changes with them."""

import dataclasses

import pytest

from core.answer import remedies
from core.answer.export import report
from core.errors import NotComparable
from core.question.experiment import Point
from tests import rows
from tests.lanes import COMPILE_S, laned


def only(steps_s, **changes):
    (found,) = remedies.lane_remedies(laned(steps_s, **changes))
    return found


def test_lanes_are_sorted_by_their_effect_and_the_best_one_is_the_headline():
    found = only({"cpu@1": 1e-3, "cpu@1+fused": 8e-4, "cpu@1+compiled10": 4e-4, "cpu@1+foreach": 2e-3})
    assert [one.contender for one in found.same] == ["cpu@1+compiled10", "cpu@1+fused", "cpu@1+foreach"]
    assert [one.helps for one in found.same] == [True, True, False]
    assert found.headline.startswith(
        "Of the measured variants, this helps 1 CPU thread most: compiled, 10 steps a call, 2.5"
    )
    assert found.same[0].sentence.startswith("Compiled, 10 steps a call: 2.5")
    assert found.same[2].sentence.endswith("so it is slower here.")


def test_every_figure_of_a_sentence_is_the_one_of_its_remedy():
    (one,) = only({"cpu@1": 1e-3, "cpu@1+fused": 5e-4}).same
    for figure in (one.value, one.low, one.high):
        assert f"{figure:.2f}×" in one.sentence
    (slower,) = only({"cpu@1": 1e-3, "cpu@1+fused": 4e-4}).same
    assert slower.sentence != one.sentence


def test_compiling_is_paid_back_after_as_many_epochs_as_its_time_over_what_an_epoch_saves():
    (one,) = only({"cpu@1": 1e-3, "cpu@1+compiled": 5e-4}, jitter=0.0).same
    saved_s = rows.trial().steps_per_epoch * 5e-4
    assert one.pays_off_epochs == pytest.approx(COMPILE_S / saved_s, rel=1e-3)
    assert "its compiling pays off after 3,158 epochs, and this training has 100." in one.sentence
    (long,) = only({"cpu@1": 1e-3, "cpu@1+compiled": 5e-4}, jitter=0.0, point=Point(epochs=10_000)).same
    assert long.sentence.endswith("its compiling pays off after 3,158 epochs.")


def test_what_is_recorded_is_called_so():
    found = only({"cuda:0": 1e-3, "cuda:0+graph10": 5e-4})
    assert "recording its graph pays off after" in found.same[0].sentence


def test_a_lane_that_pays_nothing_once_has_nothing_to_pay_back():
    (one,) = only({"cpu@1": 1e-3, "cpu@1+fused": 5e-4}).same
    assert one.pays_off_epochs is None
    assert "pays off" not in one.sentence


def test_other_mathematics_stands_apart_with_how_far_it_is_off():
    losses = {"cpu@1+bf16": (2.3, 2.21, 2.1)}
    found = only({"cpu@1": 1e-3, "cpu@1+bf16": 5e-4, "cpu@1+fused": 9.9e-4}, losses=losses)
    assert [one.contender for one in found.other] == ["cpu@1+bf16"]
    assert "(bf16) uses lower precision" in found.other[0].note
    assert "test items" in found.other[0].note  # both were tested, so what they learned is compared
    assert found.headline.startswith("No gain on 1 CPU thread: the one variant with the same numerics is not")
    assert "With lower precision: bf16, " in found.headline


def test_a_lane_that_broke_its_promise_is_named_and_never_recommended():
    losses = {"cpu@1+fused": (2.3, 2.2, 2.0)}
    found = only({"cpu@1": 1e-3, "cpu@1+fused": 1e-4, "cpu@1+foreach": 5e-4}, losses=losses)
    (broken,) = found.broken
    assert broken.sentence.startswith(
        "Not recommended: Training on 1 CPU thread (fused optimizer) does not compute the same as the default loop"
    )
    assert not broken.helps
    assert "foreach" in found.headline
    assert "fused" not in found.headline


def test_a_lane_that_was_not_checked_is_not_the_headline():
    steps = {"cpu@1": 1e-3, "cpu@1+fused": 1e-4, "cpu@1+foreach": 5e-4}
    trials = [
        dataclasses.replace(row, lane_loss=(), reference_loss=()) if "fused" in row.contender else row
        for row in laned(steps)
    ]
    (found,) = remedies.lane_remedies(trials)
    assert "was not checked" in found.same[0].note
    assert "foreach" in found.headline
    (alone,) = remedies.lane_remedies([row for row in trials if "foreach" not in row.contender])
    assert alone.headline == (
        "No gain is certain on 1 CPU thread: the fastest variant, fused optimizer, was not checked for equal results."
    )


def test_nothing_to_gain_is_said_plainly():
    found = only({"cpu@1": 1e-3, "cpu@1+fused": 1e-3, "cpu@1+foreach": 1.5e-3})
    assert found.headline == (
        "No gain on 1 CPU thread: none of the 2 variants with the same numerics is clearly faster than the "
        "default loop."
    )


def test_that_there_is_nothing_to_gain_is_said_only_where_every_lane_is_decided():
    plain, fused = laned({"cpu@1": 1e-3, "cpu@1+fused": 1e-3})
    ends = tuple(
        begin + round((end - begin) * (0.7, 1.5)[place % 2])
        for place, (begin, end) in enumerate(zip(fused.block_begin_ns, fused.block_end_ns, strict=True))
    )
    wide = dataclasses.replace(fused, block_end_ns=ends)
    (found,) = remedies.lane_remedies([plain, wide])
    assert found.headline == (
        "No gain is certain on 1 CPU thread: it is unknown whether the one variant with the same numerics would help."
    )


def test_too_few_pairs_give_no_figure_and_no_advice():
    found = only({"cpu@1": 1e-3, "cpu@1+fused": 1e-4}, pairs=3)
    assert found.same[0].value is None
    assert "unknown, because 3 pairs of blocks were measured" in found.same[0].sentence
    assert found.headline == "No effect of a variant with the same numerics is known on 1 CPU thread."


def test_what_hinders_every_lane_is_said_once():
    plain, *others = laned({"cpu@1": 1e-3, "cpu@1+fused": 1.05e-3, "cpu@1+foreach": 1.05e-3})
    (found,) = remedies.lane_remedies([slowed(plain, 2), *others])
    assert found.headline.startswith("It is unknown what would speed up 1 CPU thread: this machine was too busy")
    assert [one.sentence for one in found.same] == ["Foreach optimizer: unknown.", "Fused optimizer: unknown."]


def test_what_helps_on_a_busy_machine_is_said_with_its_mark():
    plain, *others = laned({"cpu@1": 1e-3, "cpu@1+fused": 5e-4, "cpu@1+foreach": 5e-4})
    (found,) = remedies.lane_remedies([slowed(plain, 4), *others])
    assert found.headline.startswith("Of the measured variants, this helps 1 CPU thread most: ")
    assert ". Measured on a busy machine: one block in ten of 1 CPU thread took at least" in found.headline


def slowed(row, every):
    ends = [
        begin + (end - begin) * (9 if place % every == 0 else 1)
        for place, (begin, end) in enumerate(zip(row.block_begin_ns, row.block_end_ns, strict=True))
    ]
    return dataclasses.replace(row, block_end_ns=tuple(ends))


def test_each_device_has_its_own_plain_steps_and_one_without_lanes_is_left_out():
    steps = {"cpu": 1e-3, "cpu@1": 1e-3, "cuda:0": 1e-3, "cpu+compiled": 5e-4, "cuda:0+graph": 1e-4}
    found = remedies.lane_remedies(laned(steps))
    assert [(one.device, one.same[0].contender) for one in found] == [
        ("cpu", "cpu+compiled"),
        ("cuda:0", "cuda:0+graph"),
    ]
    assert remedies.lane_remedies(laned({"cpu": 1e-3, "cpu@1": 2e-3})) == ()


def test_rows_of_two_runs_are_refused():
    plain, lane = laned({"cpu": 1e-3, "cpu+fused": 5e-4})
    with pytest.raises(NotComparable):
        remedies.lane_remedies([plain, dataclasses.replace(lane, run_id="f" * 12)])


# Other rows of this machine


def other_run(run_id="e" * 12, step_s=1e-3, started_at="2026-10-01T00:00:00+00:00", **changes):
    point = dataclasses.replace(rows.EXPERIMENT.point, **changes)
    return rows.run({"cpu": step_s}, run_id=run_id, point=point, started_at=started_at)[0]


def test_another_data_path_is_compared_by_the_time_of_an_epoch():
    plain = rows.run()[0]
    (one,) = remedies.effects_from_other_runs(plain, [other_run(step_s=2e-3, data_path="per_batch")])
    assert one.title == "data path “Copied for every batch” instead of “Preloaded on the device”"
    assert one.value == pytest.approx(0.5, rel=0.05)
    assert not one.helps


def test_another_batch_size_says_that_it_learns_differently():
    plain = rows.run()[0]
    (one,) = remedies.effects_from_other_runs(plain, [other_run(step_s=1e-3, batch_size=128)])
    assert one.value == pytest.approx(19 / 9, rel=0.05)
    assert one.note == "It learns differently: 9 updates per epoch instead of 19."


def test_rows_that_differ_in_more_are_passed_over_and_of_equal_ones_the_newest_counts():
    plain = rows.run()[0]
    older = other_run(step_s=4e-3, data_path="per_batch")
    newer = other_run(run_id="d" * 12, step_s=2e-3, data_path="per_batch", started_at="2026-11-01T00:00:00+00:00")
    both = other_run(data_path="per_batch", batch_size=128)
    away = dataclasses.replace(older, machine_id="1" * 12)
    (one,) = remedies.effects_from_other_runs(plain, [newer, older, both, away, plain])
    assert one.value == pytest.approx(0.5, rel=0.05)


# On the command line


def test_the_command_line_has_a_sentence_for_each_lane_and_scripts_have_the_figures():
    trials = laned({"cpu@1": 1e-3, "cpu@1+compiled10": 4e-4, "cpu@1+fused": 9.9e-4})
    text, document = report.run_text(trials), report.run_document(trials, from_store=False)
    (found,) = remedies.lane_remedies(trials)
    for sentence in remedies.remedy_sentences(found):
        assert sentence in text
    assert document["remedies"][0]["same"][0]["value"] == found.same[0].value
    plain = rows.run()
    assert "remedies" not in report.run_document(plain, from_store=False)
    assert "helps" not in report.run_text(plain)
