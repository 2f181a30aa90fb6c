"""The marker of what is expected among what was measured."""

import json

from core.answer.charts import run_charts as charts
from core.answer.expectations import expect_speedup
from tests import studies


def test_what_is_expected_differs_from_what_was_measured_in_colour_and_shape_and_lies_on_the_same_scales():
    found = studies.sweep("a", sizes=(16, 64, 256, 1024))
    told = expect_speedup(found.evidence("steady"), 100)
    spec = charts.expectation_chart(found.crossover(), told)
    rows = {row["layer"]: row for row in spec["data"]["values"]}
    assert rows["expected"]["size"] == 100
    assert rows["expected"]["low"] < rows["expected"]["speedup"] < rows["expected"]["high"]
    assert [row["size"] for row in spec["data"]["values"] if row["layer"] == "size"] == [16, 64, 256, 1024]
    marks = [layer["mark"] for layer in spec["layer"] if "expected" in json.dumps(layer.get("transform"))]
    assert {mark["color"] for mark in marks} == {charts.EXPECTATION_COLOUR}
    assert len({json.dumps(layer["encoding"]["y"]["scale"]) for layer in spec["layer"] if "transform" in layer}) == 1
