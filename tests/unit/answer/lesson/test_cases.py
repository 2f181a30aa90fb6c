"""Which cause a run of a public case names, whether it is the thread's, and what the remedy did."""

import dataclasses

import pytest

from core import units
from core.answer.charts import gallery_charts
from core.answer.lessons import cases
from core.answer.lessons.cases import SAME_CAUSES, diagnose_case, find_causes, remedy_gains, remedy_verdict
from core.answer.speedup import step_time
from core.question.experiment import display_name
from core.question.published import CAUSES, find_case, load_cases
from tests import rows

PAIR = ("cpu@1", "cpu@2")


def run_of(one, times, remedied=False, **changes):
    """Rows of a case of the catalogue on one and two threads, with these seconds a step."""
    point = one.point_with_remedy() if remedied else one.point()
    shown = rows.run(dict(zip(PAIR, times, strict=True)), point=point, **changes)
    return [dataclasses.replace(row, threads=int(row.contender[-1])) for row in shown]


def own_run(one, times=(1e-3, 1e-3), **changes):
    """The same of a case with a file; `changes` are what was seen of it."""
    point, shown = one.point(), rows.run(dict(zip(PAIR, times, strict=True)), jitter=0.3)
    own = {"training": point.training, "source_hash": point.source_hash, "size": point.size}
    return [dataclasses.replace(row, threads=int(row.contender[-1]), **{**own, **changes}) for row in shown]


def test_a_step_that_threads_do_not_share_is_named_as_too_small_and_agrees():
    found = diagnose_case(find_case("many-threads"), run_of(find_case("many-threads"), (1e-3, 2e-3)))
    assert [one.kind for one in found.named] == ["small"]
    assert "too small to benefit from more threads" in found.named[0].sentence
    assert found.agrees
    assert CAUSES["threads"] in found.sentence


def test_a_step_that_threads_share_is_not_the_cause_of_the_thread():
    found = diagnose_case(find_case("many-threads"), run_of(find_case("many-threads"), (2e-3, 1e-3)))
    assert "large enough to benefit from more threads" in found.named[0].sentence
    assert found.agrees is False
    assert CAUSES["threads"] in found.sentence


def test_a_loader_that_takes_most_of_both_steps_is_named():
    one = find_case("imagenet-loader")
    slow = {"breakdown_loader_s": (8e-4,) * 10, "breakdown_forward_s": (1e-4,) * 10}
    found = diagnose_case(one, run_of(one, (1e-3, 1e-3), **slow))
    assert [each.kind for each in found.named] == ["loader"]
    assert found.agrees


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("torchtune-loss", {"own_waits": (1,) * 5, "own_operations": (40,) * 5}),
        ("turning-disk", {"breakdown_loader_s": (8e-4,) * 10, "breakdown_step_s": (2e-4,) * 10}),
    ],
)
def test_what_is_seen_in_a_file_is_named_and_agrees(name, seen):
    found = diagnose_case(find_case(name), own_run(find_case(name), **seen))
    assert find_case(name).cause in [one.kind for one in found.named]
    assert found.agrees


def test_a_thread_agrees_where_its_cause_is_the_first_that_is_named_else_its_place_is_told():
    seen = {"own_waits": (1,) * 5, "own_operations": (40,) * 5, "breakdown_step_s": (2e-4,) * 10}
    found = diagnose_case(
        find_case("torchtune-loss"), own_run(find_case("torchtune-loss"), breakdown_loader_s=(8e-4,) * 10, **seen)
    )
    assert [one.kind for one in found.named] == ["loader", "waits", "small"]
    assert (found.place, found.agrees) == (2, False)
    assert found.sentence.endswith(f"{CAUSES['waits']}, is the second of those named here.")


def test_what_is_no_cause_has_no_place():
    one, turns = find_case("double-precision"), {"turns_step_s": (1.0,) * 3, "float32_step_s": (0.6,) * 3}
    found = diagnose_case(one, run_of(one, (2e-3, 1e-3), **turns))
    assert [each.kind for each in found.named] == ["float64", ""]
    assert "large enough to benefit from more threads" in found.named[1].sentence
    assert (found.place, found.agrees) == (1, True)


def test_rows_are_named_where_fits_of_twice_as_many_take_hardly_longer():
    one, turns = find_case("xgboost-credit"), {"turns_step_s": (1.0,) * 3, "doubled_step_s": (1.1,) * 3}
    found = diagnose_case(one, run_of(one, (1e-2, 9.9e-3), jitter=0.6, **turns))
    assert [each.kind for each in found.named] == ["rows"]
    assert found.agrees


def test_larger_batches_that_spare_most_of_a_samples_time_show_that_there_was_too_little_in_a_step():
    one = find_case("simple-2d")
    before, after = run_of(one, (1e-4, 1e-4), jitter=0.6), run_of(one, (4e-4, 4e-4), remedied=True, jitter=0.1)
    assert diagnose_case(one, before).agrees is None
    found = diagnose_case(one, before, after)
    assert [each.kind for each in found.named] == ["small"]
    assert "a sample takes 89 % less time on 1 CPU thread" in found.named[0].sentence
    assert found.agrees
    useless = run_of(one, (4e-3, 4e-4), remedied=True)
    assert diagnose_case(one, before, useless).agrees is None


def test_one_call_for_all_cells_that_spares_most_of_a_step_is_named():
    one = find_case("keras-lstm")
    found = diagnose_case(one, run_of(one, (1e-2, 1.5e-2)), run_of(one, (1e-3, 1e-3), remedied=True))
    assert [each.kind for each in found.named] == ["recurrent", "small"]
    assert "A fused LSTM saves 90 % of a step on 1 CPU thread" in found.named[0].sentence
    assert found.agrees


def test_where_nothing_stands_out_it_is_said_what_a_step_is_made_of():
    seen = {
        "own_operations": (50,) * 5,
        "own_waits": (0,) * 5,
        "own_inside_s": (2e-3,) * 5,
        "own_between_s": (0.0,) * 5,
        "own_floor_s": (1e-6, 1e-6, 1e-6),
    }
    found = diagnose_case(find_case("letters"), own_run(find_case("letters"), (1e-3, 0.95e-3), **seen))
    assert found.agrees is None
    assert found.sentence == f"No cause was found: these blocks do not show {CAUSES['small']}."
    assert found.named[0].sentence == (
        "Parts of a step on 1 CPU thread: arithmetic 84 %, waiting for batches 9 %, calling operations 5 %, "
        "placing batches 2 %."
    )


def test_blocks_that_do_not_decide_whether_threads_share_a_step_name_nothing():
    found = diagnose_case(find_case("many-threads"), run_of(find_case("many-threads"), (1e-3, 1e-3), jitter=0.6))
    assert found.agrees is None
    assert found.sentence == f"No cause was found: these blocks do not show {CAUSES['threads']}."


def test_rows_without_a_time_name_nothing():
    untimed = run_of(find_case("deep-q"), (1e-3, 1e-3), pairs=0)
    assert find_causes(untimed) == ()
    assert diagnose_case(find_case("deep-q"), untimed).agrees is None


def test_a_remedy_is_told_by_the_time_of_a_sample():
    one = find_case("simple-2d")
    before, after = run_of(one, (1e-4, 2e-4)), run_of(one, (4e-4, 2e-4), remedied=True)
    first, second = remedy_gains(one, before, after)
    assert first.value == pytest.approx(40 * 1e-4 / 4e-4, rel=0.05)
    assert second.value == pytest.approx(40 * 2e-4 / 2e-4, rel=0.05)
    assert first.low < first.value < first.high
    assert first.sentence.startswith("1 CPU thread, batches of 1,000: ")
    assert remedy_verdict(after).startswith("With it, 2 CPU threads do ")


def test_a_remedy_that_was_not_measured_is_not_told():
    one = find_case("simple-2d")
    assert remedy_gains(one, run_of(one, (1e-4, 2e-4)), []) == ()
    assert remedy_verdict([]) == ""


def test_every_cause_that_can_be_run_has_what_is_named_for_it():
    assert {one.cause for one in load_cases().values() if one.runnable} <= set(SAME_CAUSES)


def test_a_report_has_the_source_the_cause_and_what_was_measured():
    one = find_case("simple-2d")
    told = cases.case_text(one, run_of(one, (1e-4, 2e-4)), run_of(one, (4e-4, 2e-4), remedied=True))
    for wanted in (
        one.address,
        one.date,
        "CPU 40,000, GPU 35,000 samples per second",
        CAUSES["small"],
        "batches of 1,000",
    ):
        assert wanted in told
    assert "Measured" not in cases.case_text(one)
    assert "Nothing of it can run here." in cases.case_text(find_case("overheated"))


def test_a_report_has_the_median_step_that_every_answer_has():
    one = find_case("simple-2d")
    before = run_of(one, (1e-4, 2e-4), jitter=0.3, pairs=6)
    wanted = ", ".join(
        f"{display_name(row.contender)} {units.format_duration(step_time(row).median_s)}" for row in before
    )
    assert f"{wanted} a step" in cases.case_text(one, before)


def _figures_chart(name):
    case = find_case(name)
    return gallery_charts.case_figures_chart(case.figures, case.unit)


def test_the_published_picture_is_hollow_and_empty_without_a_figure():
    spec = _figures_chart("keras-lstm")
    assert [row["value"] for row in spec["data"]["values"]] == [5, 35]
    bars = spec["layer"][0]["mark"]
    assert bars["filled"] is False
    assert _figures_chart("overheated") == {}


def test_figures_of_a_thread_have_no_more_digits_than_it_told():
    spec = _figures_chart("many-threads")
    assert [row["shown"] for row in spec["data"]["values"]] == ["3.1", "0.4"]
