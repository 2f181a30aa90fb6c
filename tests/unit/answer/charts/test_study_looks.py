"""Charts of a study: colours, names, speedups, bands and maps."""

import dataclasses
import json

import pytest

from core.answer import wording
from core.answer.charts import look, study_charts
from core.answer.charts.study_charts import Cell
from core.answer.judgement import Assumed, Clear, Crossing
from tests.unit.answer.charts.answers import (
    AXES,
    CELLS,
    CPU,
    DEVICES,
    EVERY_CHART,
    FOUND,
    GPU,
    MEMORY,
    PAIRS,
    answer,
    evidence,
    layers,
    rows,
    scale,
)


def test_devices_have_the_colours_of_their_kinds_and_differ_in_dash_and_shape():
    spec = EVERY_CHART["crossover"]
    assert scale(spec, "color") == {CPU: look.DEVICE_COLOURS["cpu"], GPU: look.DEVICE_COLOURS["cuda"]}
    assert len(set(scale(spec, "shape").values())) == 2
    assert len(set(map(str, scale(spec, "strokeDash").values()))) == 2


def test_two_devices_of_one_kind_have_two_hues_of_its_family():
    first, second = scale(EVERY_CHART["two CPUs"], "color").values()
    assert first == look.DEVICE_COLOURS["cpu"]
    assert first != second
    assert len(set(scale(EVERY_CHART["two CPUs"], "shape").values())) == 2


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_kinds_of_the_rows_go_before_what_a_name_tells():
    spec = study_charts.crossover_chart(FOUND, PAIRS, kinds=("cpu", "rocm"))
    assert scale(spec, "color")[GPU] == look.DEVICE_COLOURS["rocm"]


def test_names_that_tell_no_kind_still_get_two_colours():
    spec = study_charts.crossover_chart(answer(PAIRS, names=("mine", "yours"), axis="size"), PAIRS)
    assert len(set(scale(spec, "color").values())) == 2


@pytest.mark.parametrize("basis", list(study_charts.BASIS_AXIS_TITLES))
def test_the_cost_basis_is_named_at_the_axis(basis):
    spec = study_charts.crossover_chart(answer(PAIRS, basis=basis), PAIRS)
    assert layers(spec, "line")[0]["encoding"]["y"]["title"] == f"{study_charts.BASIS_AXIS_TITLES[basis]} (log scale)"


def test_of_own_timings_nothing_is_said_but_that_they_are_times():
    spec = study_charts.crossover_chart(answer(PAIRS, axis="size", basis="as_given"), PAIRS)
    assert layers(spec, "line")[0]["encoding"]["y"]["title"] == "time (log scale)"
    assert layers(spec, "line")[0]["encoding"]["x"]["title"] == "size (log scale)"


def test_speedups_have_their_intervals_the_line_at_one_and_the_tie_zone():
    spec = EVERY_CHART["speedup"]
    points = rows(spec, "size")
    assert [row["speedup"] for row in points] == [size.speedup for size in FOUND.sizes if size.speedup]
    assert [row["low"] for row in points] == [size.low for size in FOUND.sizes if size.speedup]
    (tie,) = rows(spec, "tie")
    assert (tie["low"], tie["high"]) == (pytest.approx(1 / 1.1), 1.1)
    assert layers(spec, "rule")[0]["encoding"]["y"]["datum"] == 1


def test_speedups_are_coloured_by_their_verdict():
    colours = scale(EVERY_CHART["speedup"], "color")
    assert colours["cuda:0 faster"] == look.DEVICE_COLOURS["cuda"]
    assert colours["cpu faster"] == look.DEVICE_COLOURS["cpu"]
    assert colours.get("too close", look.NEUTRAL) == look.NEUTRAL


def test_either_side_of_the_line_at_one_says_who_is_faster_there_in_its_colour():
    texts = {
        layer["encoding"]["text"]["datum"]: layer["mark"]["color"] for layer in layers(EVERY_CHART["speedup"], "text")
    }
    cuda, cpu = look.DEVICE_COLOURS["cuda"], look.DEVICE_COLOURS["cpu"]
    assert texts == {"↑ cuda:0 faster": cuda, "↓ cpu faster": cpu}
    axis = layers(EVERY_CHART["speedup"], "point")[0]["encoding"]["y"]["axis"]
    assert "'equal, 1×'" in axis["labelExpr"]
    assert 1 in axis["values"]
    assert axis["labelOverlap"] is False


def test_the_legend_of_speedups_is_for_what_has_no_side():
    verdicts = {layer["encoding"]["color"]["scale"]["domain"][-1] for layer in layers(EVERY_CHART["speedup"], "point")}
    legend = layers(EVERY_CHART["speedup"], "point")[0]["encoding"]["color"]["legend"]
    assert verdicts == {"too close"}
    assert legend["values"] == ["too close"]


def test_curves_of_a_study_are_named_where_they_run_and_those_of_one_name_in_the_legend():
    named = {row["name"] for row in rows(EVERY_CHART["crossover"], "median") if row["named"]}
    assert named == {"cpu", "cuda:0"}
    assert layers(EVERY_CHART["crossover"], "line")[0]["encoding"]["color"]["legend"] is None
    alike = study_charts.crossover_chart(answer(PAIRS, names=("GPU (one)", "GPU (other)")), PAIRS)
    assert layers(alike, "text") == []
    assert layers(alike, "line")[0]["encoding"]["color"]["legend"]["columns"] >= 1


def test_the_name_of_what_was_recorded_elsewhere_says_so():
    spec = study_charts.crossover_chart(FOUND, [*PAIRS, MEMORY], recorded=True)
    assert {row["name"] for row in rows(spec, "median")} == {"cpu", "cuda:0, recorded"}


def test_the_band_between_sizes_is_the_answers():
    band = rows(EVERY_CHART["speedup"], "band")
    assert [row["size"] for row in band] == list(FOUND.band.sizes)
    assert [row["speedup"] for row in band] == list(FOUND.band.speedup)


def test_a_cell_of_the_map_has_its_winner_and_its_figure():
    cells = EVERY_CHART["map"]["data"]["values"]
    assert [(cell["winner"], cell["text"]) for cell in cells] == [
        ("cpu", "0.50×"),
        (study_charts.HATCHED, "1.02×"),
        ("cuda:0", "12×"),
        (study_charts.MISSING, "✕"),
    ]
    assert cells[3]["reason"] == "out of memory"


def test_cells_that_are_too_close_are_hatched_and_no_others():
    hatches = layers(EVERY_CHART["map"], "rule")
    assert len(hatches) == len(study_charts.HATCH)
    for hatch in hatches:
        assert study_charts.HATCHED in json.dumps(hatch["transform"])


@pytest.mark.parametrize("kinds", [("cpu", "cuda"), ("cpu", "cpu"), ("cpu", "mps"), ("cuda", "xpu")])
def test_figures_are_readable_on_every_cell_and_winners_have_two_colours(kinds):
    spec = study_charts.winners_chart(CELLS, axes=AXES, devices=("a", "b"), kinds=kinds)
    colours = scale(spec, "color")
    assert colours["a"] != colours["b"]
    for colour in colours.values():
        assert (luminance(colour) + 0.05) / 0.05 >= 4.5  # WCAG 2.1, AA, black on it


def test_a_wide_map_leaves_its_figures_out_where_they_would_not_fit():
    wide = [Cell(x=size, y=1, verdict="gpu_faster", speedup=2.0) for size in range(1, 20)]
    text = layers(study_charts.winners_chart(wide, axes=AXES, devices=DEVICES), "text")[0]
    assert "width" in text["mark"]["opacity"]["expr"]
    assert layers(EVERY_CHART["map"], "text")[0]["mark"]["opacity"] == 1


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0.5, "0.5"), (9, "9"), (128, "128"), (1_234, "1,234"), (16_384, "16.4k"), (410_337, "410k"), (9_999_999, "10M")],
)
def test_sizes_are_short(size, shown):
    assert look.format_size_compactly(size) == shown


def test_both_ends_of_an_interval_are_shortened_alike():
    assert look.format_size_range(8_000, 13_000) == "8k–13k"
    assert look.format_size_range(190, 240) == "190–240"


def test_where_nothing_is_clear_an_open_end_is_shaded_and_an_assumed_crossover_has_a_name_of_its_own():
    pairs = [evidence(size, 2.0, 1.0) for size in (8, 16, 64)]
    part = Clear(begin=16, end=64, challenger_faster=True, least=1.4, most=2.0)
    bounded = dataclasses.replace(answer(pairs), clear=(part,))
    (zone,) = rows(study_charts.crossover_chart(bounded, pairs), study_charts.OPEN_ZONE)
    assert (zone["from"], zone["to"]) == (8, 16)
    only = Crossing(estimate=30, low=20, high=40, challenger_above=True)
    single = dataclasses.replace(answer(pairs), assumed=Assumed(noise=0.05, outcome="crossing", crossings=(only,)))
    spec = study_charts.crossover_chart(single, pairs)
    assert [(zone["from"], zone["to"]) for zone in rows(spec, study_charts.ASSUMPTION_ZONE)] == [(20, 40)]
    assert rows(spec, study_charts.INTERVAL_ZONE) == rows(spec, "crossing") == []


def test_a_chart_rounds_the_interval_of_a_crossing_as_its_sentence_does():
    pairs = [evidence(size, 2.0, 1.0) for size in (8, 64, 512)]
    said = answer(pairs, crossings=((128.4, 154.3, 186.2),), axis="hidden_size")
    (zone,) = rows(study_charts.crossover_chart(said, pairs), study_charts.INTERVAL_ZONE)
    assert (zone["shown"], study_charts.crossing_rows(said)[0]["label"]) == ("128–187", "about 154 (128–187)")
    assert wording.interval_ends("hidden_size", 128.4, 186.2) == ("128", "187")
