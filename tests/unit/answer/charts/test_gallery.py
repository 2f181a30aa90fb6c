"""The gallery's charts: few marks however many rows, devices told apart twice, valid specifications."""

from dataclasses import replace

import altair as alt
import numpy as np
import pandas as pd
import pytest

from core.answer import causes
from core.answer.charts import gallery_charts, look
from core.answer.charts.gallery_charts import StudyCurves
from core.answer.contribution import UNCONFIRMED
from core.answer.judgement import Crossing, Crossover, Size
from tests import rows
from tests.studies import OTHER_MACHINE, sweep


def frame(trials: int, *, kinds=("cpu", "cuda", "mps")) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    parameters = 10 ** draw.uniform(2, 8, trials)
    return pd.DataFrame(
        {
            "device_kind": pd.Categorical(draw.choice(kinds, trials)),
            "parameters": parameters.astype(int),
            "step_s": parameters * 1e-9,
            "source": "measured here",
        }
    )


def curve(of, name: str) -> StudyCurves:
    base, other = of.runs[0]
    devices = (f"{base.contender}, {name}", f"{other.contender}, {name}")
    return StudyCurves(name=name, devices=devices, answer=of.crossover(), kinds=(base.device_kind, other.device_kind))


HERE = sweep("a")
HERE_AND_THERE = [curve(HERE, "here"), curve(sweep("b", **OTHER_MACHINE), "there")]
PARTS = {64.0: causes.part_times(rows.trial()), 16.0: causes.part_times(rows.trial(step_s=1e-4))}

EVERY_CHART = {
    "trials": gallery_charts.step_times_chart(frame(100)),
    "small": gallery_charts.study_thumbnail(HERE.crossover(), ("cpu", "cuda")),
    "together": gallery_charts.study_times_chart(HERE_AND_THERE),
    "speedups": gallery_charts.study_speedups_chart(HERE_AND_THERE),
    "parts": gallery_charts.parts_over_sizes_chart(PARTS, "hidden_size"),
}


def values(spec):
    return spec["data"]["values"]


def encodings(spec):
    return [layer["encoding"] for layer in spec.get("layer", [spec])]


@pytest.mark.parametrize("spec", EVERY_CHART.values(), ids=list(EVERY_CHART))
def test_every_chart_is_valid_fits_its_container_and_takes_the_pages_colours(spec):
    alt.Chart.from_dict(spec, validate=True)
    assert spec["width"] == "container"
    assert spec["background"] == "transparent"
    assert values(spec)


def test_fifty_thousand_trials_are_few_marks_and_none_is_lost():
    spec = gallery_charts.step_times_chart(frame(50_000))
    assert len(values(spec)) < 150
    assert sum(row["trials"] for row in values(spec)) == 50_000


def test_a_bin_says_the_median_and_the_middle_half_of_its_trials():
    known = pd.DataFrame({"device_kind": ["cpu"] * 5, "parameters": [1000] * 5, "step_s": [1.0, 2.0, 3.0, 4.0, 9.0]})
    known = known.assign(source="measured here")
    (row,) = values(gallery_charts.step_times_chart(known))
    assert (row["low"], row["step"], row["high"], row["trials"]) == (2.0, 3.0, 4.0, 5)


def test_trials_without_times_or_parameters_are_left_out():
    known = pd.DataFrame(
        {"device_kind": ["cpu"] * 3, "parameters": [1000, 1000, 0], "step_s": [1.0, float("nan"), 1.0]}
    ).assign(source="measured here")
    assert [row["trials"] for row in values(gallery_charts.step_times_chart(known))] == [1]
    alt.Chart.from_dict(gallery_charts.step_times_chart(known.iloc[1:2]), validate=True)


def test_a_point_of_unconfirmed_contributions_alone_is_hollow():
    made = frame(200, kinds=("cpu", "cuda"))
    contributed = (made["device_kind"] == "cuda").to_numpy()
    spec = gallery_charts.step_times_chart(made.assign(source=np.where(contributed, UNCONFIRMED, "gallery")))
    alt.Chart.from_dict(spec, validate=True)
    assert {(row["kind"], row["hollow"]) for row in values(spec)} == {("CPU", False), ("NVIDIA GPU", True)}
    _, solid, hollow = spec["layer"]
    assert (solid["mark"]["filled"], solid["transform"]) == (True, [{"filter": "!datum.hollow"}])
    assert (hollow["mark"]["filled"], hollow["transform"]) == (False, [{"filter": "datum.hollow"}])


@pytest.mark.parametrize("name", ["trials", "small", "together"])
def test_devices_differ_in_colour_and_in_shape(name):
    points = next(each for each in encodings(EVERY_CHART[name]) if "shape" in each)
    domain = points["shape"]["scale"]["domain"]
    assert points["color"]["scale"]["domain"] == domain
    assert len(set(points["shape"]["scale"]["range"])) == len(domain)


def test_a_small_chart_shades_the_interval_of_each_crossing():
    answer = HERE.crossover()
    (zone,) = EVERY_CHART["small"]["layer"][0]["data"]["values"]
    assert (zone["from"], zone["to"]) == (answer.low, answer.high)


def test_a_small_chart_of_nothing_timed_is_still_a_chart():
    nothing = Crossover(axis="hidden_size", basis="steady", baseline="cpu", challenger="cuda:0")
    chart = alt.Chart.from_dict(gallery_charts.study_thumbnail(nothing, ("cpu", "cuda")), validate=True)
    assert chart.to_dict()["layer"]


def test_studies_on_one_chart_have_a_curve_for_each_device_of_each_machine():
    curves = {row["curve"] for row in values(EVERY_CHART["together"])}
    assert curves == {"cpu, here", "cuda:0, here", "cpu, there", "cuda:0, there"}
    lines = next(each for each in encodings(EVERY_CHART["together"]) if "strokeDash" in each)
    colours = dict(zip(lines["color"]["scale"]["domain"], lines["color"]["scale"]["range"], strict=True))
    assert colours["cpu, here"] == look.DEVICE_COLOURS["cpu"]
    assert len(set(colours.values())) == 4


def test_a_device_has_one_colour_in_the_chart_of_times_and_in_that_of_speedups():
    two_threads = replace(HERE_AND_THERE[0], name="threads", devices=("cpu@1", "cpu@2"), kinds=("cpu", "cpu"))
    more_threads = replace(two_threads, name="more", devices=("cpu@1", "cpu@4"))
    curves = [two_threads, more_threads, HERE_AND_THERE[1]]
    times, speedups = (
        _colours(draw(curves)) for draw in (gallery_charts.study_times_chart, gallery_charts.study_speedups_chart)
    )
    assert {curve.name: times[curve.devices[1]] for curve in curves} == speedups
    assert len(set(times.values())) == len(times) == 5
    assert len(set(speedups.values())) == 3


def _colours(spec):
    scale = next(each for each in encodings(spec) if "strokeDash" in each)["color"]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def test_no_more_studies_are_drawn_together_than_can_be_told_apart():
    many = [curve(HERE, str(number)) for number in range(6)]
    for spec in (gallery_charts.study_times_chart(many), gallery_charts.study_speedups_chart(many)):
        assert len({row["curve"] for row in values(spec)}) <= 2 * gallery_charts.MAX_STUDIES_DRAWN


def test_speedups_stand_with_their_intervals_around_one():
    size = Size(
        size=8.0, baseline_s=2.0, challenger_s=1.0, readings=6, speedup=2.0, low=1.9, high=2.1, verdict="gpu_faster"
    )
    answer = Crossover(
        axis="hidden_size",
        basis="steady",
        baseline="cpu",
        challenger="cuda:0",
        sizes=(size,),
        crossings=(Crossing(estimate=4.0, low=3.0, high=5.0, challenger_above=True),),
    )
    spec = gallery_charts.study_speedups_chart(
        [StudyCurves(name="a", devices=("b", "c"), answer=answer, kinds=("cpu", "cuda"))]
    )
    assert [(row["low"], row["speedup"], row["high"]) for row in values(spec)] == [(1.9, 2.0, 2.1)]


def test_parts_are_shares_of_each_size_in_ascending_order():
    shown = values(EVERY_CHART["parts"])
    assert [row["at"] for row in shown] == [16.0] * 5 + [64.0] * 5
    assert sum(row["share"] for row in shown[:5]) == pytest.approx(1)
