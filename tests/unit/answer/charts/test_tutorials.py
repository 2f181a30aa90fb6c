"""Charts of tutorials and lessons: published is never taken for measured, and every one is valid in any frame."""

import dataclasses
import html
import json

import altair as alt
import pytest

from core.answer import accuracy
from core.answer.charts import lesson_charts, look
from core.answer.export import rendering
from core.answer.lessons import limits, tutorials
from core.question.presets import PRESETS
from tests import exhibited
from tests.studies import batches, compared, measured, seeds, ways

SIGNAL, GRID = compared("signal", measured("signal")), compared("fashion-cnn", measured("fashion-cnn"))
CLOCK = exhibited.clock({"ours": 1.0, "no_drain": 0.2, "fashion-cnn": 30.0})
SEEDS = seeds(3)
BAND = accuracy.find_seed_band(SEEDS, baseline="cpu", challenger="cuda:0")
TWO = [
    limits.compare_batch_sizes(*(row for row in batches(1e-3, 1e-9) if row.contender == name))
    for name in ("cpu", "cuda:0")
]
EVERY_CHART = {
    "times": lesson_charts.tutorial_times_chart(SIGNAL),
    "times of a grid": lesson_charts.tutorial_times_chart(GRID),
    "times by depth": lesson_charts.tutorial_times_chart(compared("disc", measured("disc"))),
    "speedups": lesson_charts.tutorial_speedups_chart(SIGNAL),
    "speedups of a grid": lesson_charts.tutorial_speedups_chart(GRID),
    "clocks": lesson_charts.clocks_chart(CLOCK.content, {"cpu": "cpu", "cuda:0": "cuda"}),
    "epoch parts": lesson_charts.epoch_parts_chart(limits.find_bottleneck(ways())),
    "seed band": lesson_charts.seed_band_chart(BAND, [row for row in SEEDS if row.contender == "cuda:0"]),
    "step shares": lesson_charts.step_shares_chart(TWO),
    "device shares": lesson_charts.device_shares_chart(TWO),
}
every_chart = pytest.mark.parametrize("spec", EVERY_CHART.values(), ids=EVERY_CHART.keys())


def values(spec, **having):
    return [row for row in spec["data"]["values"] if having.items() <= row.items()]


@every_chart
def test_a_chart_is_valid_and_plain_json(spec):
    alt.Chart.from_dict(spec)
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec


@every_chart
def test_a_chart_fits_its_container_and_any_theme(spec):
    assert spec["width"] == "container"
    assert spec["background"] == "transparent"


@pytest.mark.slow
def test_every_chart_can_be_put_on_paper():
    drawn = rendering.draw_svgs(list(EVERY_CHART.values()))
    assert [text[:4] for text in drawn] == ["<svg"] * len(EVERY_CHART)


def test_published_points_are_hollow_and_their_lines_dashed():
    (points,) = [
        layer for layer in lesson_charts.tutorial_times_chart(SIGNAL)["layer"] if layer["mark"]["type"] == "point"
    ]
    solid = points["encoding"]["fillOpacity"]["condition"]["test"]["oneOf"]
    assert solid == ["measured: CPU", "measured: GPU"]
    (line,) = [
        layer for layer in lesson_charts.tutorial_times_chart(SIGNAL)["layer"] if layer["mark"]["type"] == "line"
    ]
    dashes = line["encoding"]["strokeDash"]["scale"]
    dashed = [name for name, dash in zip(dashes["domain"], dashes["range"], strict=True) if len(dash) > 1 and dash[1]]
    assert dashed == ["published: CPU x86_64", "published: GPU P100-PCIe"]


def test_a_device_has_its_colour_in_both_sources():
    (points,) = [
        layer for layer in lesson_charts.tutorial_times_chart(SIGNAL)["layer"] if layer["mark"]["type"] == "point"
    ]
    scale = points["encoding"]["color"]["scale"]
    colours = dict(zip(scale["domain"], scale["range"], strict=True))
    assert colours["published: CPU x86_64"] == colours["measured: CPU"] == look.DEVICE_COLOURS["cpu"]
    assert colours["published: GPU P100-PCIe"] == colours["measured: GPU"] == look.DEVICE_COLOURS["cuda"]


def test_where_the_gpu_is_said_to_win_is_a_line_across_the_chart():
    assert values(lesson_charts.tutorial_times_chart(SIGNAL), layer="wins") == [
        {"layer": "wins", "place": 1_000, "said": "published: GPU wins from here"}
    ]
    assert values(lesson_charts.tutorial_times_chart(GRID), layer="wins") == []


@pytest.mark.parametrize("name", ["signal", "disc", "fashion-cnn"])
def test_both_charts_of_a_tutorial_have_one_axis(name):
    comparison = compared(name, measured(name))
    axes = [
        {str(layer["encoding"]["x"]) for layer in chart(comparison)["layer"] if layer["mark"]["type"] == "point"}
        for chart in (lesson_charts.tutorial_times_chart, lesson_charts.tutorial_speedups_chart)
    ]
    assert axes[0] == axes[1]
    assert len(axes[0]) == 1


def test_the_published_line_is_at_the_same_places_before_and_after_the_prediction():
    covered = tutorials.cover_published(PRESETS["signal"], "class")
    before, after = (lesson_charts.tutorial_times_chart(shown) for shown in (covered, SIGNAL))

    def line(spec):
        return [(row["place"], row["value"]) for row in values(spec, series="published: CPU x86_64")]

    def scale(spec):
        return next(part["encoding"]["x"]["scale"] for part in spec["layer"] if part["mark"]["type"] == "point")

    assert line(before) == line(after)
    assert len(line(before)) == 5
    assert scale(before) == scale(after)


def test_a_speedup_of_the_whole_grid_is_a_line_and_even_is_another():
    assert [row["value"] for row in values(lesson_charts.tutorial_speedups_chart(GRID), layer="claim")] == [2.0]
    assert [row["value"] for row in values(lesson_charts.tutorial_speedups_chart(SIGNAL), layer="even")] == [1.0]


def test_every_reading_of_every_clock_is_drawn():
    drawn = values(EVERY_CHART["clocks"])
    assert len(drawn) == sum(len(variant.epoch_s) for variant in CLOCK.content.variants)
    (undrained,) = {
        row["against"] for row in values(EVERY_CHART["clocks"], clock="No synchronization", device="GPU")[:1]
    }
    assert undrained == "0.200×"


def test_the_line_of_our_clock_is_at_the_median_also_of_an_even_number_of_readings():
    even = exhibited.clocks({"cpu@1": {"ours": (1.0, 4.0, 2.0, 3.0)}})
    assert {row["ours"] for row in values(lesson_charts.clocks_chart(even, {}))} == {2.5}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["it's a clock with a long name", 'says "no" \\ and goes on', "two\nlines of a name"])
def test_a_foreign_name_is_drawn_and_never_an_expression(name):
    variants = tuple(dataclasses.replace(entry, title=f"{name} {entry.name}") for entry in CLOCK.content.variants)
    spec = lesson_charts.clocks_chart(dataclasses.replace(CLOCK.content, variants=variants), {})
    (text,) = rendering.draw_svgs([spec])
    assert all(html.escape(word, quote=False) in text for word in name.split())


def test_parts_of_an_epoch_add_up_to_what_was_timed_apart():
    found = limits.find_bottleneck(ways())
    unit, scale = look.choose_time_unit([found.ways[0].epoch_s])
    drawn = values(lesson_charts.epoch_parts_chart(found), way=found.ways[0].title)
    assert sum(row["time"] for row in drawn) == pytest.approx(sum(found.ways[0].parts_s.values()) * scale)
    assert unit == "ms"


def test_shares_of_a_step_add_up_to_one():
    for name in ("step shares", "device shares"):
        steps = {row["step"] for row in values(EVERY_CHART[name])}
        for step in steps:
            assert sum(row["share"] for row in values(EVERY_CHART[name], step=step)) == pytest.approx(1.0)
    assert {row["step"].partition(",")[0] for row in values(EVERY_CHART["device shares"])} == {"GPU"}
