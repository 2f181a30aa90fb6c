"""What the charts of a study say: its readings, its medians, what is shaded, and the map of winners."""

import dataclasses
import json
import math
import random
import statistics

import altair as alt
import pytest

from core.answer.charts import grids, look, speedups, studies
from core.answer.charts.grids import Cell
from core.answer.study import wording
from core.answer.study.result import Assumed, Band, Clear, Crossing, Crossover, Evidence, Size
from core.text import MOST_IN_LABEL

CPU, GPU = "cpu (Test CPU, 4 threads)", "cuda:0 (Test GPU)"
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def evidence(size: float, baseline_s: float, challenger_s: float, readings: int = 6) -> Evidence:
    draw = random.Random(size)
    base, other = (
        tuple(median * math.exp(draw.gauss(0, 0.05)) for _ in range(readings)) for median in (baseline_s, challenger_s)
    )
    return Evidence(size=size, baseline_s=base, challenger_s=other)


def answer(pairs, *, crossings=(), tie=None, axis="parameters", basis="steady", names=(CPU, GPU)) -> Crossover:
    sizes = tuple(map(judged, pairs))
    timed = [size for size in sizes if size.speedup]
    figures = tuple(size.speedup for size in timed)
    found = [Crossing(estimate=middle, low=low, high=high, challenger_above=True) for low, middle, high in crossings]
    only = found[0] if len(found) == 1 else None
    return Crossover(
        axis=axis,
        basis=basis,
        baseline=names[0],
        challenger=names[1],
        outcome="crossing" if only else "several" if found else "undecided",
        estimate=only.estimate if only else None,
        low=only.low if only else None,
        high=only.high if only else None,
        tie=tie,
        crossings=tuple(found),
        sizes=sizes,
        band=Band(sizes=tuple(size.size for size in timed), speedup=figures, low=figures, high=figures),
        noise=0.05,
        level=0.98,
        reason="",
        sentence="",
    )


def judged(pair: Evidence) -> Size:
    if pair.obstacle:
        nothing = dict.fromkeys(("baseline_s", "challenger_s", "speedup", "low", "high"))
        return Size(size=pair.size, readings=0, verdict="missing", reason=pair.obstacle, **nothing)
    base, other = map(statistics.median, (pair.baseline_s, pair.challenger_s))
    ratio = base / other
    verdict = "too_close" if 1 / 1.1 < ratio < 1.1 else "gpu_faster" if ratio > 1 else "cpu_faster"
    return Size(
        size=pair.size,
        baseline_s=base,
        challenger_s=other,
        readings=len(pair.baseline_s),
        speedup=ratio,
        low=ratio / 1.1,
        high=ratio * 1.1,
        verdict=verdict,
    )


PAIRS = [evidence(size, 1e-5 + size * 1e-9, 1e-4 + size * 1e-10) for size in SIZES]
MEMORY = Evidence(size=10_000_000, obstacle="the model did not fit into the memory of cuda:0")
FOUND = answer([*PAIRS, MEMORY], crossings=[(90_000, 100_000, 110_000)], tie=(80_000, 130_000))
BUSY = dataclasses.replace(FOUND, busy="Measured on a busy machine: other programs took what they could.")
TWO_CPUS = answer(PAIRS, crossings=[(9e4, 1e5, 1.1e5)], names=("cpu@1 (Test CPU)", "cpu@4 (Test CPU)"))
CELLS = [
    Cell(x=16, y=32, verdict="cpu_faster", speedup=0.5),
    Cell(x=16, y=64, verdict="too_close", speedup=1.02, reason="the difference is within 10 %"),
    Cell(x=256, y=32, verdict="gpu_faster", speedup=12.3),
    Cell(x=256, y=64, verdict="missing", reason="out of memory"),
]
AXES, DEVICES = ("hidden_size", "batch_size"), ("cpu", "cuda:0")

EVERY_CHART = {
    "crossover": studies.crossover(FOUND, [*PAIRS, MEMORY]),
    "one size": studies.crossover(answer(PAIRS[:1]), PAIRS[:1]),
    "no crossing": studies.crossover(answer(PAIRS[:2]), PAIRS[:2]),
    "several": studies.crossover(answer(PAIRS, crossings=[(2e3, 3e3, 4e3), (9e4, 1e5, 1.1e5)]), PAIRS),
    "two CPUs": studies.crossover(TWO_CPUS, PAIRS),
    "busy": studies.crossover(BUSY, [*PAIRS, MEMORY]),
    "speedup of a busy machine": speedups.speedup(BUSY),
    "speedup": speedups.speedup(FOUND),
    "speedup of one size": speedups.speedup(answer(PAIRS[:1])),
    "map": grids.winners(CELLS, axes=AXES, devices=DEVICES),
}
every_chart = pytest.mark.parametrize("spec", EVERY_CHART.values(), ids=EVERY_CHART.keys())


@pytest.mark.parametrize("drawn", [lambda found: studies.crossover(found, PAIRS), speedups.speedup])
def test_a_chart_of_a_busy_machine_says_so_and_no_other_has_a_title(drawn):
    assert drawn(BUSY)["title"]["text"] == "Measured on a busy machine"
    assert "title" not in drawn(FOUND)


def rows(spec, layer):
    return [row for row in spec["data"]["values"] if row.get("layer") == layer]


def layers(spec, kind):
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


def scale(spec, channel):
    """Scale of a channel, by name of what it tells apart."""
    found = next(layer["encoding"][channel]["scale"] for layer in spec["layer"] if channel in layer["encoding"])
    return dict(zip(found["domain"], found["range"], strict=True))


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
    shown = [line for line in titles(speedups.speedup(found)) if line]
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
    spec = studies.crossover(answer(pairs), pairs)
    drawn = rows(spec, "reading")
    assert len(drawn) == studies.MOST_READINGS
    assert min(row["time"] for row in drawn) == min(time for pair in pairs for time in pair.baseline_s)
    assert layers(spec, "line")[0]["encoding"]["y"]["title"][1] == "1,000 of 8,000 readings drawn"


def test_the_interval_and_the_tie_zone_are_shaded_and_named():
    spec = EVERY_CHART["crossover"]
    (interval,), (tie,) = rows(spec, studies.INTERVAL), rows(spec, studies.TIED)
    assert (interval["from"], interval["to"]) == (90_000, 110_000)
    assert (tie["from"], tie["to"]) == (80_000, 130_000)
    assert list(scale(spec, "fill")) == [studies.TIED, studies.INTERVAL]
    axis = layers(spec, "rule")[0]["encoding"]["x"]["axis"]
    assert axis["orient"] == "top"
    assert axis["values"] == [100_000]
    assert '"about 100k (90k–110k)"' in axis["labelExpr"]


def test_every_zone_in_which_the_two_are_close_is_shaded():
    found = dataclasses.replace(FOUND, also_close=((1_000, 2_000),))
    shaded = rows(studies.crossover(found, PAIRS), studies.TIED)
    assert [(zone["from"], zone["to"]) for zone in shaded] == [(80_000, 130_000), (1_000, 2_000)]


def test_where_nothing_crosses_nothing_is_shaded():
    spec = EVERY_CHART["no crossing"]
    assert not rows(spec, studies.INTERVAL)
    assert not rows(spec, studies.TIED)
    assert not layers(spec, "rule")


def test_each_of_several_crossings_has_its_interval():
    spec = EVERY_CHART["several"]
    assert len(rows(spec, studies.INTERVAL)) == 2
    assert layers(spec, "rule")[0]["encoding"]["x"]["axis"]["values"] == [3e3, 1e5]


def test_a_size_without_times_is_a_cross_with_its_reason():
    (row,) = rows(EVERY_CHART["crossover"], "obstacle")
    assert row == {"layer": "obstacle", "size": 10_000_000, "reason": MEMORY.obstacle}


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
    spec = studies.crossover(FOUND, PAIRS, kinds=("cpu", "rocm"))
    assert scale(spec, "color")[GPU] == look.DEVICE_COLOURS["rocm"]


def test_names_that_tell_no_kind_still_get_two_colours():
    spec = studies.crossover(answer(PAIRS, names=("mine", "yours"), axis="size"), PAIRS)
    assert len(set(scale(spec, "color").values())) == 2


@pytest.mark.parametrize("basis", list(studies.TIMED))
def test_the_cost_basis_is_named_at_the_axis(basis):
    spec = studies.crossover(answer(PAIRS, basis=basis), PAIRS)
    assert layers(spec, "line")[0]["encoding"]["y"]["title"] == f"{studies.TIMED[basis]} (log scale)"


def test_of_own_timings_nothing_is_said_but_that_they_are_times():
    spec = studies.crossover(answer(PAIRS, axis="size", basis="as_given"), PAIRS)
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
    alike = studies.crossover(answer(PAIRS, names=("GPU (one)", "GPU (other)")), PAIRS)
    assert layers(alike, "text") == []
    assert layers(alike, "line")[0]["encoding"]["color"]["legend"]["columns"] >= 1


def test_the_name_of_what_was_recorded_elsewhere_says_so():
    spec = studies.crossover(FOUND, [*PAIRS, MEMORY], recorded=True)
    assert {row["name"] for row in rows(spec, "median")} == {"cpu", "cuda:0, recorded"}


def test_the_band_between_sizes_is_the_answers():
    band = rows(EVERY_CHART["speedup"], "band")
    assert [row["size"] for row in band] == list(FOUND.band.sizes)
    assert [row["speedup"] for row in band] == list(FOUND.band.speedup)


def test_a_cell_of_the_map_has_its_winner_and_its_figure():
    cells = EVERY_CHART["map"]["data"]["values"]
    assert [(cell["winner"], cell["text"]) for cell in cells] == [
        ("cpu", "0.50×"),
        (grids.HATCHED, "1.02×"),
        ("cuda:0", "12×"),
        (grids.MISSING, "✕"),
    ]
    assert cells[3]["reason"] == "out of memory"


def test_cells_that_are_too_close_are_hatched_and_no_others():
    hatches = layers(EVERY_CHART["map"], "rule")
    assert len(hatches) == len(grids.HATCH)
    for hatch in hatches:
        assert grids.HATCHED in json.dumps(hatch["transform"])


@pytest.mark.parametrize("kinds", [("cpu", "cuda"), ("cpu", "cpu"), ("cpu", "mps"), ("cuda", "xpu")])
def test_figures_are_readable_on_every_cell_and_winners_have_two_colours(kinds):
    spec = grids.winners(CELLS, axes=AXES, devices=("a", "b"), kinds=kinds)
    colours = scale(spec, "color")
    assert colours["a"] != colours["b"]
    for colour in colours.values():
        assert (luminance(colour) + 0.05) / 0.05 >= 4.5  # WCAG 2.1, AA, black on it


def test_a_wide_map_leaves_its_figures_out_where_they_would_not_fit():
    wide = [Cell(x=size, y=1, verdict="gpu_faster", speedup=2.0) for size in range(1, 20)]
    text = layers(grids.winners(wide, axes=AXES, devices=DEVICES), "text")[0]
    assert "width" in text["mark"]["opacity"]["expr"]
    assert layers(EVERY_CHART["map"], "text")[0]["mark"]["opacity"] == 1


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0.5, "0.5"), (9, "9"), (128, "128"), (1_234, "1,234"), (16_384, "16.4k"), (410_337, "410k"), (9_999_999, "10M")],
)
def test_sizes_are_short(size, shown):
    assert look.compact(size) == shown


def test_both_ends_of_an_interval_are_shortened_alike():
    assert look.span(8_000, 13_000) == "8k–13k"
    assert look.span(190, 240) == "190–240"


def test_where_nothing_is_clear_an_open_end_is_shaded_and_an_assumed_crossover_has_a_name_of_its_own():
    pairs = [evidence(size, 2.0, 1.0) for size in (8, 16, 64)]
    part = Clear(begin=16, end=64, challenger_faster=True, least=1.4, most=2.0)
    bounded = dataclasses.replace(answer(pairs), clear=(part,))
    (zone,) = rows(studies.crossover(bounded, pairs), studies.OPEN)
    assert (zone["from"], zone["to"]) == (8, 16)
    only = Crossing(estimate=30, low=20, high=40, challenger_above=True)
    single = dataclasses.replace(answer(pairs), assumed=Assumed(noise=0.05, outcome="crossing", crossings=(only,)))
    spec = studies.crossover(single, pairs)
    assert [(zone["from"], zone["to"]) for zone in rows(spec, studies.ASSUMED)] == [(20, 40)]
    assert rows(spec, studies.INTERVAL) == rows(spec, "crossing") == []


def test_a_chart_rounds_the_interval_of_a_crossing_as_its_sentence_does():
    pairs = [evidence(size, 2.0, 1.0) for size in (8, 64, 512)]
    said = answer(pairs, crossings=((128.4, 154.3, 186.2),), axis="hidden_size")
    (zone,) = rows(studies.crossover(said, pairs), studies.INTERVAL)
    assert (zone["shown"], studies.crossing_rows(said)[0]["label"]) == ("128–187", "about 154 (128–187)")
    assert wording.ends("hidden_size", 128.4, 186.2) == ("128", "187")
