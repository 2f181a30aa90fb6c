"""Charts of a study: readings, intervals, zones and what has no times."""

import dataclasses
import json
import statistics

import altair as alt
import pytest

from core.answer.charts import look, study_charts
from core.text import MOST_IN_LABEL
from tests.unit.answer.charts.answers import (
    BUSY,
    CPU,
    EVERY_CHART,
    FOUND,
    MEMORY,
    PAIRS,
    SIZES,
    answer,
    evidence,
    layers,
    rows,
    scale,
)

every_chart = pytest.mark.parametrize("spec", EVERY_CHART.values(), ids=EVERY_CHART.keys())


@pytest.mark.parametrize(
    "drawn", [lambda found: study_charts.crossover_chart(found, PAIRS), study_charts.speedup_chart]
)
def test_a_chart_of_a_busy_machine_says_so_and_no_other_has_a_title(drawn):
    assert drawn(BUSY)["title"]["text"] == "Measured on a busy machine"
    assert "title" not in drawn(FOUND)


@pytest.mark.slow
@every_chart
def test_a_chart_is_valid_and_plain_json(spec):
    alt.Chart.from_dict(spec)  # checks it against the schema of Vega-Lite
    assert "datasets" not in spec
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec


@every_chart
def test_a_chart_fits_its_container_and_any_theme(spec):
    assert spec["width"] == "container"
    assert spec["background"] == "transparent"
    assert "labelColor" not in json.dumps(spec)
    assert "titleColor" not in json.dumps(spec)


@every_chart
def test_every_mark_has_a_tooltip(spec):
    assert all(layer["encoding"]["tooltip"] for layer in spec["layer"])


def titles(part):
    """Every line of every title of a specification."""
    match part:
        case dict():
            own = part.get("title")
            found = own if isinstance(own, list) else [own]
            return [*found, *(line for name, entry in part.items() if name != "title" for line in titles(entry))]
        case list():
            return [line for entry in part for line in titles(entry)]
    return []


def test_a_title_is_a_line_however_a_device_is_called():
    found = answer([evidence(size, 1.0, size / 1e4) for size in SIZES], names=(CPU, "gpu\n\x1b[31m" * 1_000))
    shown = [line for line in titles(study_charts.speedup_chart(found)) if line]
    assert any("gpu" in line for line in shown)
    assert max(map(len, shown)) <= MOST_IN_LABEL
    assert all(line.isprintable() for line in shown)


@every_chart
def test_no_legend_is_wider_than_a_phone(spec):
    for layer in spec["layer"]:
        for channel in layer["encoding"].values():
            legend = channel.get("legend") if isinstance(channel, dict) else None
            if legend:
                names = [len(name) for name in channel["scale"]["domain"]]
                assert legend["columns"] == 1 or sum(names) <= 2 * look.LEGEND_LETTERS
                assert legend["labelLimit"] <= 330


@pytest.mark.parametrize("axis", ["x", "y"])
def test_time_against_size_is_on_log_scales_that_hold_everything(axis):
    spec = EVERY_CHART["crossover"]
    channel = layers(spec, "line")[0]["encoding"][axis]
    assert channel["scale"]["type"] == "log"
    assert "log scale" in str(channel["title"])
    low, high = channel["scale"]["domain"]
    field = {"x": "size", "y": "time"}[axis]
    drawn = [row[field] for layer in ("reading", "median") for row in rows(spec, layer)]
    assert low < min(drawn) <= max(drawn) < high


def test_every_reading_is_a_point_and_medians_are_the_answers():
    spec = EVERY_CHART["crossover"]
    assert [row["time"] for row in rows(spec, "reading")] == [
        time for pair in PAIRS for time in (*pair.baseline_s, *pair.challenger_s)
    ]
    of_cpu = [row["time"] for row in rows(spec, "median") if row["device"] == CPU]
    assert of_cpu == [size.baseline_s for size in FOUND.sizes if size.baseline_s]


def test_the_noise_band_is_the_middle_half_of_the_readings():
    row = rows(EVERY_CHART["crossover"], "median")[0]
    low, _, high = statistics.quantiles(PAIRS[0].baseline_s, n=4, method="inclusive")
    assert (row["low"], row["high"]) == (low, high)
    assert layers(EVERY_CHART["crossover"], "area")[0]["encoding"]["y2"]["field"] == "high"


def test_many_readings_are_thinned_to_their_extremes_and_the_axis_counts_them():
    pairs = [evidence(size, 1e-3, 2e-3, readings=1_000) for size in SIZES]
    spec = study_charts.crossover_chart(answer(pairs), pairs)
    drawn = rows(spec, "reading")
    assert len(drawn) == study_charts.MAX_READINGS_DRAWN
    assert min(row["time"] for row in drawn) == min(time for pair in pairs for time in pair.baseline_s)
    assert layers(spec, "line")[0]["encoding"]["y"]["title"][1] == "1,000 of 8,000 readings shown"


def test_the_interval_and_the_tie_zone_are_shaded_and_named():
    spec = EVERY_CHART["crossover"]
    (interval,), (tie,) = rows(spec, study_charts.INTERVAL_ZONE), rows(spec, study_charts.TIE_ZONE)
    assert (interval["from"], interval["to"]) == (90_000, 110_000)
    assert (tie["from"], tie["to"]) == (80_000, 130_000)
    assert list(scale(spec, "fill")) == [study_charts.TIE_ZONE, study_charts.INTERVAL_ZONE]
    axis = layers(spec, "rule")[0]["encoding"]["x"]["axis"]
    assert axis["orient"] == "top"
    assert axis["values"] == [100_000]
    assert '"about 100k (90k–110k)"' in axis["labelExpr"]


def test_every_zone_in_which_the_two_are_close_is_shaded():
    found = dataclasses.replace(FOUND, also_close=((1_000, 2_000),))
    shaded = rows(study_charts.crossover_chart(found, PAIRS), study_charts.TIE_ZONE)
    assert [(zone["from"], zone["to"]) for zone in shaded] == [(80_000, 130_000), (1_000, 2_000)]


def test_where_nothing_crosses_nothing_is_shaded():
    spec = EVERY_CHART["no crossing"]
    assert not rows(spec, study_charts.INTERVAL_ZONE)
    assert not rows(spec, study_charts.TIE_ZONE)
    assert not layers(spec, "rule")


def test_each_of_several_crossings_has_its_interval():
    spec = EVERY_CHART["several"]
    assert len(rows(spec, study_charts.INTERVAL_ZONE)) == 2
    axes = [rule["encoding"]["x"]["axis"] for rule in layers(spec, "rule")[:2]]
    assert [axis["values"] for axis in axes] == [[3e3], [1e5]]
    assert axes[0]["offset"] != axes[1]["offset"], "the labels lie on each other in a narrow window"


def test_a_size_without_times_is_a_cross_with_its_reason():
    (row,) = rows(EVERY_CHART["crossover"], "obstacle")
    assert row == {"layer": "obstacle", "size": 10_000_000, "reason": MEMORY.obstacle}
