"""A crossover and a sweep in words and columns."""

import dataclasses
import json

import pytest

from core.answer.export import report
from core.answer.judgement import Band, Crossing, Crossover, Size
from core.answer.study import Study
from core.question import custom
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from core.text import align_columns
from tests import rows

FIELDS = {
    *("outcome", "estimate", "low", "high", "axis", "basis", "baseline", "challenger"),
    *("tie", "also_close", "crossings", "sizes", "noise", "level", "reason", "sentence"),
    *("clear", "contradicting", "assumed", "cautions", "busy", "condition"),
}
SIZES = (
    Size(
        size=64, baseline_s=1e-3, challenger_s=2e-3, readings=6, speedup=0.5, low=0.45, high=0.55, verdict="cpu_faster"
    ),
    Size(
        size=512,
        baseline_s=3e-3,
        challenger_s=3e-3,
        readings=6,
        speedup=1.0,
        low=0.9,
        high=1.1,
        verdict="too_close",
        reason="either could be faster",
    ),
    Size(size=4096, baseline_s=8e-3, challenger_s=4e-3, readings=6, speedup=2, low=1.8, high=2.2, verdict="gpu_faster"),
    Size(
        size=8192,
        baseline_s=None,
        challenger_s=None,
        readings=0,
        speedup=None,
        low=None,
        high=None,
        verdict="missing",
        reason="out of memory",
    ),
)


def crossover(**changes) -> Crossover:
    values = {
        "axis": "hidden_size",
        "basis": "steady",
        "baseline": "cpu (Test CPU, 4 threads)",
        "challenger": "cuda:0 (Test GPU)",
        "outcome": "crossing",
        "estimate": 510.0,
        "low": 480.0,
        "high": 545.5,
        "tie": (450.0, 590.0),
        "crossings": (Crossing(estimate=510.0, low=480.0, high=545.5, challenger_above=True),),
        "sizes": SIZES,
        "band": Band(sizes=(1.0, 2.0), speedup=(1.0, 1.0), low=(1.0, 1.0), high=(1.0, 1.0)),
        "noise": 0.02,
        "level": 0.95,
        "reason": "",
        "sentence": "The GPU wins from 510 neurons.",
    }
    return Crossover(**{**values, **changes})


def sweep_rows(values=(8, 64), contenders=("cpu", "cuda:0"), **changes):
    point = Point(hidden_size=8)
    sweep = Sweep(
        point=point,
        axes=(Axis(name="hidden_size", values=values),),
        contenders=tuple(map(Contender.parse, contenders)),
    )
    trials = []
    for number, point in enumerate(sweep.points):
        seconds = {name: 1e-3 * (number + 1) / (place + 1) for place, name in enumerate(contenders)}
        trials += rows.run(seconds, point=point, run_id=f"{number:012x}", jitter=0.0, **changes)
    return sweep, trials


def test_the_document_has_what_scripts_rely_on():
    document = json.loads(json.dumps(report.crossover_document(crossover()), allow_nan=False))
    assert set(document) == FIELDS
    assert (document["outcome"], document["estimate"]) == ("crossing", 510.0)
    assert document["tie"] == [450.0, 590.0]
    assert document["sizes"][1]["verdict"] == "too_close"
    assert document["crossings"][0]["challenger_above"] is True


def test_the_document_of_no_crossing_has_no_numbers_of_one():
    nothing = {"outcome": "gpu_always", "estimate": None, "low": None, "high": None, "tie": None, "crossings": ()}
    document = report.crossover_document(crossover(**nothing))
    assert set(document) == FIELDS
    assert (document["estimate"], document["low"], document["high"], document["tie"]) == (None, None, None, None)


def test_the_text_begins_with_the_sentence_and_has_a_line_for_each_size():
    lines = report.crossover_text(crossover(), notes=["The column who was not used."]).splitlines()
    assert lines[0] == "The GPU wins from 510 neurons."
    assert lines[2].split() == ["hidden", "size", "cpu", "cuda:0", "speedup", "95", "%", "interval", "verdict"]
    assert [line.split()[-3:] for line in (lines[3], lines[5])] == [["cpu", "is", "faster"], ["cuda:0", "is", "faster"]]
    assert lines[4].endswith("No winner: either could be faster")
    assert lines[6].endswith("Not known: out of memory")
    assert "0.500×   0.450× to 0.550×" in lines[3]
    assert lines[-2:] == ["Included (steps only): time of the steps alone.", "The column who was not used."]


def test_the_winner_is_named_by_the_speedup_even_where_both_are_of_one_kind():
    lines = report.crossover_text(crossover(baseline="cpu@1", challenger="cpu@8")).splitlines()
    assert (lines[3].split()[-3], lines[5].split()[-3]) == ("cpu@1", "cpu@8")


def test_columns_begin_below_each_other():
    assert align_columns([("a", "bb", "c"), ("aaa", "b", "")]) == ["a    bb  c", "aaa  b"]


def test_the_epoch_is_the_median_step_times_the_steps_of_an_epoch():
    _, trials = sweep_rows()
    assert report.median_epoch_s(trials[0]) == pytest.approx(1e-3 * trials[0].steps_per_epoch)
    assert report.median_epoch_s(rows.trial(pairs=0)) is None


def test_a_grid_lists_the_shortest_epoch_first_and_what_was_not_timed_last():
    sweep, trials = sweep_rows(values=(8, 64, 512))
    broken = rows.run(
        {"cpu": 1e-3, "cuda:0": 1e-3},
        point=sweep.points[2],
        run_id="f" * 12,
        pairs=0,
        outcome="out_of_memory",
        message="It did not fit.",
    )
    lines = report.grid_text(sweep, [*broken, *trials[:4]]).splitlines()
    assert lines[0].split() == ["hidden", "size", "device", "epoch", "step", "speedup"]
    assert lines[1].split()[:2] == ["8", "GPU"]
    assert lines[4].split()[:2] == ["64", "CPU"]
    assert all(line.startswith("512") and line.endswith("It did not fit.") for line in lines[5:])
    assert "2.00×" in lines[1]


def test_a_grid_of_ones_own_training_has_no_epochs():
    mine = {"training": "mine.py:build", "source_hash": "0" * 16}
    axes = (Axis(name="size", values=(8, 16)),)
    sweep = Sweep(
        point=Point(**mine, size=8, **custom.SETTLED),
        axes=axes,
        contenders=(Contender(threads=1), Contender(threads=2)),
    )
    found = [dataclasses.replace(row, **mine, size=8) for row in rows.run({"cpu@1": 1e-3, "cpu@2": 5e-4})]
    lines = report.grid_text(sweep, found).splitlines()
    assert lines[0].split() == ["size", "device", "step", "speedup"]
    assert [line.split()[:4] for line in lines[1:]] == [["8", "2", "CPU", "threads"], ["8", "1", "CPU", "thread"]]


def test_the_points_of_a_sweep_carry_their_sizes_and_a_trial_each_contender():
    sweep, trials = sweep_rows()
    points = report.sweep_documents(sweep, trials)
    assert [point["hidden_size"] for point in points] == [8, 64]
    assert [[trial["contender"] for trial in point["trials"]] for point in points] == [["cpu", "cuda:0"]] * 2
    assert points[0]["trials"][0]["step"]["median_s"] == pytest.approx(1e-3)


def test_a_study_is_told_from_others_by_one_line():
    _, trials = sweep_rows()
    study = Study(
        id="0123456789ab",
        axis="hidden_size",
        baseline="cpu",
        challenger="cuda:0",
        runs=((trials[0], trials[1]), (trials[2], trials[3])),
    )
    line = report.study_line(study)
    assert line.startswith("0123456789ab  hidden size 8 to 64 (2 sizes), GPU against CPU, Fully connected on Digits")
    assert "batch size 64" in line
    assert "feedfacecafe" in line
    assert "hidden size 8," not in line
    assert "\n" not in line


def test_somebodys_own_seconds_have_no_cost_basis_of_ours():
    text = report.crossover_text(crossover(basis="as_given"))
    assert "The times are compared as given." in text
    assert "steady" not in text
