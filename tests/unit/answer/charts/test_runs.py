"""What each chart says: its data, its axes with their units and scales, and how devices are told apart."""

import dataclasses
import json
import math

import altair as alt
import pytest

from core.answer import speedup, training_cost
from core.answer.charts import look, run_charts
from core.progress import ContenderProgress, Progress
from core.question.experiment import Experiment, Point, display_name
from core.results.schema import Trial
from tests.rows import run, trial

PROGRESS = Progress(
    phase="training",
    contenders=(
        ContenderProgress(contender="cpu@1", loss_steps=(5, 10), losses=(2.0, 1.0), loss_seconds=(0.5, 1.0)),
        ContenderProgress(contender="cuda:0", loss_steps=(5, 10), losses=(2.0, 1.0), loss_seconds=(0.1, 0.2)),
    ),
)


def placed(row: Trial, **changes) -> Trial:
    """The row with a loss curve of ten segments, blocks whose steps follow each other, and `changes`."""
    total = row.steps_per_epoch * row.epochs
    ends = tuple(total * n // 10 for n in range(1, 11))
    firsts = tuple(100 + 110 * n for n in range(len(row.block_steps)))
    values = {"block_first_step": firsts, "lead_in_steps": 10, "loss_step": ends, "loss": tuple(2 / e for e in ends)}
    return dataclasses.replace(row, **{**values, **changes})


RUN = [placed(row) for row in run({"cpu": 1e-3, "cpu@1": 2e-3, "cuda:0": 2.5e-4})]

EVERY_CHART = {
    "loss over epochs": run_charts.loss_over_epochs_chart(RUN),
    "loss over time": run_charts.loss_over_time_chart(RUN),
    "live loss": run_charts.live_loss_chart(PROGRESS),
    "epoch times": run_charts.epoch_times_chart(RUN),
    "blocks": run_charts.blocks_chart(RUN),
    "step bars": run_charts.step_bars_chart(RUN),
    "breakdown": run_charts.breakdown_chart(RUN),
    "start-up": run_charts.startup_chart(RUN),
    "confusion": run_charts.confusion_chart(RUN[0]),
}
every_chart = pytest.mark.parametrize("spec", EVERY_CHART.values(), ids=EVERY_CHART.keys())


def encodings(spec) -> list[dict]:
    return [layer["encoding"] for layer in spec.get("layer", [spec])]


def mark(spec, kind: str) -> dict:
    """Encoding of the layer that draws marks of `kind`."""
    return next(layer["encoding"] for layer in spec.get("layer", [spec]) if layer["mark"]["type"] == kind)


def marks(spec) -> list[str]:
    return [layer["mark"]["type"] for layer in spec.get("layer", [spec])]


def values(spec, contender=None) -> list[dict]:
    return [row for row in spec["data"]["values"] if contender is None or row["contender"] == display_name(contender)]


@pytest.mark.slow
@every_chart
def test_a_chart_is_valid_and_plain_json(spec):
    alt.Chart.from_dict(spec)  # checks it against the schema of Vega-Lite
    assert "data" not in json.dumps(spec.get("layer", []))
    assert "datasets" not in spec
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec


@every_chart
def test_a_chart_fits_its_container_and_any_theme(spec):
    assert spec["width"] == "container"
    assert spec["background"] == "transparent"
    assert "labelColor" not in json.dumps(spec)
    assert "titleColor" not in json.dumps(spec)


@every_chart
def test_a_chart_has_titled_axes_and_a_tooltip_on_every_mark(spec):
    for encoding in encodings(spec):
        assert encoding["tooltip"]
    first = encodings(spec)[0]
    assert first["x"]["title"]
    assert first["y"]["title"] or first["y"]["field"] == "contender"


@every_chart
def test_log_scales_say_so_and_others_do_not(spec):
    for encoding in encodings(spec):
        for axis in ("x", "y"):
            channel = encoding.get(axis, {})
            is_log = channel.get("scale", {}).get("type") == "log"
            assert is_log == ("log scale" in str(channel.get("title"))), channel


@every_chart
def test_only_fields_that_are_in_the_data_are_used(spec):
    used = {channel["field"] for encoding in encodings(spec) for channel in channels(encoding) if "field" in channel}
    assert used <= set(values(spec)[0])


def channels(encoding) -> list[dict]:
    return [part for channel in encoding.values() for part in (channel if isinstance(channel, list) else [channel])]


@every_chart
def test_no_column_reaches_a_chart_that_was_not_listed(spec):
    allowed = {"contender", "device_name", "x", "y", "low", "high", "step", "part", "rank", "time", "share"}
    allowed |= {"true", "predicted", "items", "shown", "interval"}
    assert set(values(spec)[0]) <= allowed


@pytest.mark.parametrize("name", ["loss over epochs", "live loss", "epoch times", "blocks"])
def test_contenders_differ_in_more_than_colour(name):
    spec = EVERY_CHART[name]
    for encoding in encodings(spec):
        second = encoding.get("strokeDash") or encoding["shape"]
        ranges = second["scale"]["range"]
        assert len({str(entry) for entry in ranges}) == len(ranges) == len(second["scale"]["domain"])


def test_a_contender_has_one_colour_in_every_chart_and_two_of_a_kind_have_two():
    (cpu, cpu_1), cuda = look.contender_colours(("cpu", "cpu")), look.DEVICE_COLOURS["cuda"]
    for name in ("loss over epochs", "loss over time", "epoch times", "blocks"):
        scale = encodings(EVERY_CHART[name])[0]["color"]["scale"]
        assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
            "CPU": cpu,
            "1 CPU thread": cpu_1,
            "GPU": cuda,
        }
    assert encodings(EVERY_CHART["live loss"])[0]["color"]["scale"]["range"] == [cpu, cuda]
    assert cpu == look.DEVICE_COLOURS["cpu"] != cpu_1


def test_losses_stand_at_their_epochs_and_seconds():
    row = RUN[2]
    over_epochs = values(EVERY_CHART["loss over epochs"], "cuda:0")
    over_time = values(EVERY_CHART["loss over time"], "cuda:0")
    assert [point["x"] for point in over_epochs] == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert [point["y"] for point in over_epochs] == list(row.loss)
    assert [point["x"] for point in over_time] == list(training_cost.training_seconds(row, row.loss_step))


def test_values_that_a_log_scale_cannot_show_are_left_out_and_counted():
    diverged = placed(trial(), loss=(2.0, 1.0, 0.0, math.nan, math.inf, 1.0, 1.0, 1.0, 1.0, 1.0))
    spec = run_charts.loss_over_epochs_chart([diverged])
    assert len(values(spec)) == 7
    assert mark(spec, "line")["y"]["title"][1] == "3 not above 0 or not finite: not shown"


def test_a_trial_without_blocks_has_no_place_in_time():
    bare = placed(trial(contender="cpu@1"), block_first_step=())
    spec = run_charts.loss_over_time_chart([RUN[0], bare])
    assert {row["contender"] for row in values(spec)} == {"CPU"}


@pytest.mark.parametrize(
    "draw",
    [
        run_charts.loss_over_epochs_chart,
        run_charts.epoch_times_chart,
        run_charts.blocks_chart,
        run_charts.breakdown_chart,
    ],
)
def test_a_chart_of_nothing_is_still_a_chart(draw):
    assert draw([])["data"]["values"] == []


def test_the_live_curve_stands_over_seconds_and_tells_steps():
    spec = run_charts.live_loss_chart(PROGRESS)
    assert [row["x"] for row in values(spec, "cuda:0")] == [0.1, 0.2]
    assert [row["step"] for row in values(spec, "cuda:0")] == [5, 10]
    assert "(s)" in mark(spec, "line")["x"]["title"]


def test_the_live_curve_takes_the_kind_of_a_device_where_it_is_known():
    spec = run_charts.live_loss_chart(PROGRESS, kinds={"cuda:0": "rocm", "cpu": "cpu"})
    colours = mark(spec, "line")["color"]["scale"]["range"]
    assert colours == [look.DEVICE_COLOURS["cpu"], look.DEVICE_COLOURS["rocm"]]


def test_a_long_curve_is_a_line_alone_and_a_short_one_has_points():
    long = placed(trial(), loss_step=tuple(range(1, 101)), loss=(1.0,) * 100)
    assert marks(run_charts.loss_over_epochs_chart([long])) == ["line"]
    assert marks(EVERY_CHART["loss over epochs"]) == ["line", "point"]


def test_epoch_times_have_a_unit_that_reads_well():
    spec = EVERY_CHART["epoch times"]
    assert mark(spec, "line")["y"]["title"] == "time per epoch (ms, log scale)"
    expected = [seconds * 1e3 for seconds in training_cost.epoch_times(RUN[0])]
    assert [row["y"] for row in values(spec, "cpu")] == pytest.approx(expected)
    assert [row["x"] for row in values(spec, "cpu")] == list(range(1, len(expected) + 1))


@pytest.mark.parametrize(("step_s", "unit", "scale"), [(2.0, "s", 1), (2e-3, "ms", 1e3), (2e-6, "µs", 1e6)])
def test_times_per_step_are_in_seconds_milliseconds_or_microseconds(step_s, unit, scale):
    row = trial(step_s=step_s, jitter=0, steps_per_block=100_000 if step_s < 1e-3 else 10)
    spec = run_charts.blocks_chart([row])
    assert mark(spec, "point")["y"]["title"] == f"time per step ({unit}, log scale)"
    assert [point["y"] for point in values(spec)] == pytest.approx([step_s * scale] * 20)


def test_many_epochs_are_put_together_as_medians_with_their_range():
    point = Point(dataset="digits", batch_size=1257, epochs=450)
    row = placed(run({"cpu": 1e-3}, point=point, pairs=5)[0])
    spec = run_charts.epoch_times_chart([row])
    assert len(values(spec)) == 150
    assert mark(spec, "line")["y"]["title"] == "median time per epoch of every 3 (ms, log scale)"
    assert marks(spec) == ["rule", "line"]
    for entry in values(spec):
        assert entry["low"] <= entry["y"] <= entry["high"]
    assert any(entry["low"] < entry["high"] for entry in values(spec))


def test_every_block_is_a_point_against_its_pair():
    spec = EVERY_CHART["blocks"]
    assert marks(spec) == ["point"]
    assert [row["x"] for row in values(spec, "cuda:0")] == list(RUN[2].block_pair)
    assert [row["y"] for row in values(spec, "cuda:0")] == pytest.approx([s * 1e3 for s in RUN[2].step_s])


def test_too_many_blocks_are_put_together_and_the_axis_says_so():
    spec = run_charts.blocks_chart([trial(pairs=1_500), trial(contender="cuda:0", pairs=1_500)])
    assert len(values(spec)) == 1_000
    assert mark(spec, "point")["y"]["title"].startswith("median time per step of every 3 blocks")


def test_the_breakdown_has_its_parts_in_order_and_the_undisturbed_step():
    spec = EVERY_CHART["breakdown"]
    bars = values(spec, "cpu")
    assert [row["part"] for row in bars] == ["loader", "transfer", "forward", "backward", "optimizer"]
    assert [row["time"] for row in bars] == pytest.approx([0.08, 0.02, 0.3, 0.45, 0.17])
    assert bars[0]["step"] == pytest.approx(speedup.step_time(RUN[0]).median_s * 1e3)
    assert mark(spec, "bar")["x"]["title"] == ["time per step (ms)", "grey tick: the undisturbed step"]
    assert mark(spec, "tick")["x"]["field"] == "step"
    assert mark(spec, "bar")["color"]["scale"]["domain"] == list(look.PART_COLOURS)


def test_a_trial_without_a_breakdown_has_no_bar():
    bare = trial(contender="cpu@1", **{f"breakdown_{part}_s": () for part in look.PART_COLOURS})
    assert {row["contender"] for row in values(run_charts.breakdown_chart([RUN[0], bare]))} == {"CPU"}


def test_the_start_up_has_the_parts_that_were_measured():
    row = trial(startup_device_s=2.0, startup_build_s=1.0, startup_transfer_s=None, startup_first_step_s=1.0)
    spec = run_charts.startup_chart([row])
    assert [(bar["part"], bar["time"], bar["share"]) for bar in values(spec)] == [
        ("device", 2.0, 0.5),
        ("model", 1.0, 0.25),
        ("first step", 1.0, 0.25),
    ]
    assert spec["encoding"]["x"]["title"] == "start-up (s)"


def test_a_name_in_several_lines_has_its_middle_beside_its_bar():
    spec = run_charts.step_bars_chart(run({"cpu@4": 1e-3, "cpu@4+compiled10": 4e-4, "cpu@4+fused": 9e-4}))
    axis = mark(spec, "bar")["y"]["axis"]
    lines = {case["test"].partition(" == ")[2].strip('"'): -case["value"] for case in axis["labelOffset"]["condition"]}
    assert lines == {
        "4 CPU threads, compiled, 10 steps a call": look.LABEL_LINE,  # three lines
        "4 CPU threads, fused optimizer": look.LABEL_LINE / 2,
    }
    alt.Chart.from_dict(spec, validate=True)


def test_values_that_hardly_differ_do_not_fill_the_height_and_have_their_ticks():
    axis = mark(run_charts.epoch_times_chart(run({"cpu": 1e-3}, jitter=0.01)), "line")["y"]
    low, high = axis["scale"]["domain"]
    assert high / low > 1.15**2
    assert sum(low <= tick <= high for tick in axis["axis"]["values"]) > 1
    apart = mark(run_charts.epoch_times_chart(run({"cpu": 1e-3, "cuda:0": 2e-4})), "line")["y"]
    assert "domain" not in apart["scale"]


def test_the_confusion_matrix_has_every_count_by_class_name():
    row = trial(experiment=Experiment(point=Point(dataset="disc")), confusion=(40, 1, 2, 7))
    spec = run_charts.confusion_chart(row)
    assert spec["data"]["values"] == [
        {"true": "outside", "predicted": "outside", "items": 40},
        {"true": "outside", "predicted": "inside", "items": 1},
        {"true": "inside", "predicted": "outside", "items": 2},
        {"true": "inside", "predicted": "inside", "items": 7},
    ]
    assert mark(spec, "rect")["color"]["scale"]["type"] == "sqrt"
    assert mark(spec, "text")["text"]["field"] == "items"
    assert mark(spec, "rect")["x"]["sort"] == ["outside", "inside"]
    assert mark(spec, "rect")["x"]["scale"]["round"], "between cells that end within a pixel a dark page shows through"


def test_cells_without_an_item_let_the_page_show_through():
    spec = run_charts.confusion_chart(
        trial(experiment=Experiment(point=Point(dataset="disc")), confusion=(40, 0, 2, 7))
    )
    (cells,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "rect"]
    assert cells["transform"] == [{"filter": "datum.items > 0"}]
    assert mark(spec, "text")["color"]["value"] == look.NEUTRAL, "and their figure is seen on any page"


@pytest.mark.parametrize("kind", look.DEVICE_COLOURS)
def test_figures_stay_readable_on_the_darkest_cell(kind):
    row = dataclasses.replace(RUN[0], device_kind=kind)
    darkest = mark(run_charts.confusion_chart(row), "rect")["color"]["scale"]["range"][1]
    assert contrast_to_black(darkest) >= 4.5  # WCAG 2.1, AA


def contrast_to_black(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05) / 0.05


def test_many_blocks_are_gone_through_once_and_not_for_every_point(monkeypatch):
    row, asked = trial(pairs=5_000, loss=(), loss_step=()), []
    times = row.step_s
    monkeypatch.setattr(Trial, "step_s", property(lambda _: asked.append(1) or times))
    assert len(run_charts.blocks_chart([row])["data"]["values"]) == run_charts.MOST_BLOCKS
    assert len(asked) < 10


@pytest.mark.parametrize(("name", "columns"), [("cuda:0", 3), ("cpu@2+compiled10", 2)])
def test_the_parts_of_a_step_stay_in_a_phone_beside_long_names(name, columns):
    spec = run_charts.breakdown_chart([RUN[0], dataclasses.replace(RUN[2], contender=name)])
    assert mark(spec, "bar")["color"]["legend"]["columns"] == columns
