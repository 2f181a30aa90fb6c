"""What one entry of the table of fields brings; collected by tests/integration/test_made_up_axis.py alone."""

import shlex

import pyarrow.parquet as pq

from core import __main__ as command_line
from core.answer import study
from core.answer.charts import study_charts
from core.commands import arguments
from core.commands.run import build_sweep
from core.question import describe
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import FIELDS
from core.question.sweep import Axis, Sweep
from core.results.parquet import read_rows, to_table
from core.results.schema import dictionary
from pages.shared import links
from tests import rows
from tests.ui.conftest import CPU, GPU, words

CONTENDERS = (Contender(), Contender(device="cuda:0"))
POINT = Point(warm_up=8)
SWEEP = Sweep(point=Point(), axes=(Axis.from_range("warm_up", 1, 100),), contenders=CONTENDERS)

CPU_S, GPU_S = {1: 1e-4, 4: 4e-4, 16: 1.6e-3, 64: 6.4e-3}, 8e-4
"""Seconds a step by size; the crossing is at 8."""


def measured():
    runs = [
        rows.run({"cpu": cpu_s, "cuda:0": GPU_S}, point=Point(warm_up=size), run_id=f"{size:012d}")
        for size, cpu_s in CPU_S.items()
    ]
    return [row for run in runs for row in run]


def test_it_has_a_control_on_the_form_that_the_link_moves(world, open_page):
    world.has(CPU, GPU)
    control = open_page().select_slider(key="warm_up")
    assert (control.label, control.value) == ("Warm-up steps", 5)
    assert open_page(warm_up="8").select_slider(key="warm_up").value == 8
    assert "Warm-up steps must be" in words(open_page(warm_up="2000"))


def test_crossover_offers_it_as_an_axis_with_a_range_of_its_own(world, open_page):
    world.has(CPU, GPU)
    app = open_page("/crossover", axis="warm_up")
    offered = ["hidden_size", "depth", "parameters", "batch_size", "warm_up", "samples"]
    assert app.selectbox(key="axis").options == [FIELDS[name].label for name in offered]
    chosen = app.select_slider(key="warm_up_range")
    assert (chosen.label, chosen.value) == ("Warm-up steps from … to", (1, 100))
    assert "Up to **37** sizes" in words(app)


def test_it_is_an_option_of_the_command_line():
    options = command_line.parser().parse_args(["run", "--warm-up", "8"])
    assert arguments.point(options) == POINT
    told = describe.build_command(Experiment(point=POINT, contenders=CONTENDERS))
    assert "--warm-up 8" in told
    again = command_line.parser().parse_args(shlex.split(describe.build_command(SWEEP))[3:])
    assert build_sweep(again).points == SWEEP.points


def test_links_say_it():
    assert links.make_run_link(Experiment(point=POINT))["warm_up"] == "8"
    assert links.make_sweep_link(SWEEP)["warm_up_range"] == ["1", "100"]
    assert {"warm_up", "warm_up_range", "warm_up_values"} <= links.PAGES["explore"].controls


def test_sentences_say_it():
    assert describe.describe_question(POINT).endswith(
        "batch 64 · 100 epochs · learning rate 0.1 · Preloaded on the device · warm-up 8"
    )
    assert describe.describe_question(SWEEP).startswith("Warm-up steps 1 to 100 · Digits")
    (found,) = study.studies(measured(), axis="warm_up")
    assert "from a warm-up of about 8 on" in found.crossover().sentence


def test_a_study_along_it_has_its_charts():
    (found,) = study.studies(measured())
    assert (found.axis, found.sizes) == ("warm_up", (1, 4, 16, 64))
    answer = found.crossover()
    assert "warm-up steps (log scale)" in str(study_charts.crossover_chart(answer, found.evidence("steady")))


def test_it_is_a_column_and_rows_of_before_have_its_default(tmp_path):
    assert "| `warm_up` | int64 | steps | steps with a smaller learning rate |" in dictionary()
    kept = measured()
    pq.write_table(to_table(kept), tmp_path / "new.parquet")
    assert [row.warm_up for row in read_rows(tmp_path / "new.parquet")] == [row.warm_up for row in kept]
    pq.write_table(to_table(kept).drop_columns("warm_up"), tmp_path / "old.parquet")
    assert {row.warm_up for row in read_rows(tmp_path / "old.parquet")} == {5}


def test_questions_of_before_keep_their_names():
    assert "warm_up" not in Experiment(point=Point()).to_json()["point"]
    assert Experiment(point=Point(warm_up=5)).id == Experiment(point=Point()).id != Experiment(point=POINT).id
    assert Experiment.from_json(Experiment(point=POINT).to_json()).point == POINT
