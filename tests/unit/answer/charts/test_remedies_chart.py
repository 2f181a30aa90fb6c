"""What lanes gain, as a chart: one line at 1, and ticks whose labels do not meet in a narrow window."""

import math

import altair as alt
import pytest

from core.answer import remedies
from core.answer.charts import run_charts as chart
from tests.lanes import laned


def effects(lane_s):
    (found,) = remedies.lane_remedies(laned({"cpu": 1e-3, "cpu+compiled10": lane_s}))
    return chart.lane_effects_chart(found)


@pytest.mark.parametrize("lane_s", [1e-3, 9.5e-4, 4e-4, 5e-5, 3e-3])
def test_the_line_at_one_has_its_tick_and_no_other_stands_close_to_it(lane_s):
    spec = effects(lane_s)
    alt.Chart.from_dict(spec, validate=True)
    axis = next(layer["encoding"]["x"]["axis"] for layer in spec["layer"] if "axis" in layer["encoding"]["x"])
    assert 1 in axis["values"]
    assert len(axis["values"]) > 1
    assert all(abs(math.log(tick)) > 0.13 for tick in axis["values"] if tick != 1)
    assert axis["labelOverlap"] == "greedy"
