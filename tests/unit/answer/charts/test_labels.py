"""Names beside curves: each free of all lines and of the other names, in narrow and in wide windows."""

import math

import pytest

from core.answer.charts import look, study_charts
from core.answer.judgement import Band, Crossing, Crossover, Size

STEEP = {  # the faster curve's name lay across it
    "1 CPU thread": [(2, 1e-4), (5, 2e-4), (7, 3e-4), (9, 1.4e-3), (10, 5e-3), (12, 9e-2)],
    "2 CPU threads": [(2, 1.1e-4), (5, 2.3e-4), (7, 3.3e-4), (9, 1e-3), (10, 3e-3), (12, 5e-2)],
}
FLAT = {"CPU": [(100, 0.4), (1_000, 3.0), (10_000, 40.0)], "GPU": [(100, 0.7), (1_000, 1.2), (10_000, 5.0)]}
DOWN = {"CPU": [(1, 9.0), (2, 5.0), (4, 2.0), (8, 1.0)], "GPU": [(1, 3.0), (2, 3.0), (4, 3.0), (8, 3.0)]}
ONE = {"CPU": [(1, 9.0)], "GPU": [(1, 3.0)]}


def values(curves, at):
    return [point[at] for curve in curves.values() for point in curve]


@pytest.mark.parametrize("curves", [STEEP, FLAT, DOWN, ONE])
@pytest.mark.parametrize("width", [look.NARROW_PLOT, look.WIDE_PLOT])
def test_names_lie_on_no_line_and_not_on_each_other(curves, width):
    x, y, height = values(curves, 0), look.add_headroom(values(curves, 1)), 150
    placed = look.place_names(curves, x=x, y=y, height=height)
    assert placed.keys() == curves.keys()

    def pixel(value, of, length):
        low, high = (math.log(end) for end in look.log_scale(of)["domain"])
        return (math.log(value) - low) / (high - low) * length

    boxes = []
    for name, one in placed.items():
        left = pixel(one.at[0], x, width) - {"left": 0, "center": 0.5, "right": 1}[one.align] * 7 * len(name)
        left += {"left": -6, "center": 0, "right": 6}[one.align]
        middle = height - pixel(one.at[1], y, height) + one.dy
        boxes.append((left, middle - 6, left + 7 * len(name), middle + 6))
        assert left >= 0
        assert left + 7 * len(name) <= width
        assert one.at in curves[name]
    lines = [
        (
            pixel(a ** (1 - n / 50) * c ** (n / 50), x, width),
            height - pixel(b ** (1 - n / 50) * d ** (n / 50), y, height),
        )
        for curve in curves.values()
        for (a, b), (c, d) in zip(curve, curve[1:] or curve, strict=False)
        for n in range(51)
    ]
    for left, top, right, bottom in boxes:
        assert not any(left < at < right and top < down < bottom for at, down in lines)
    (one, other) = boxes
    assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_a_name_without_a_place_leaves_all_to_the_legend():
    longest = {"x" * 60: [(1, 1.0), (2, 2.0)], "GPU": [(1, 2.0), (2, 1.0)]}
    assert look.place_names(longest, x=[1, 2], y=look.add_headroom([1.0, 2.0]), height=150) == {}


def crossing(*, axis, estimate, low, high):
    names = ("1 CPU thread", "2 CPU threads")
    sizes = tuple(
        Size(
            size=at,
            baseline_s=base,
            challenger_s=other,
            readings=6,
            speedup=base / other,
            low=None,
            high=None,
            verdict="too_close",
        )
        for (at, base), (_, other) in zip(*STEEP.values(), strict=True)
    )
    only = Crossing(estimate=estimate, low=low, high=high, challenger_above=True)
    return Crossover(
        axis=axis,
        basis="steady",
        baseline=names[0],
        challenger=names[1],
        outcome="crossing",
        estimate=estimate,
        low=low,
        high=high,
        tie=None,
        crossings=(only,),
        sizes=sizes,
        band=Band(sizes=(), speedup=(), low=(), high=()),
        noise=0.05,
        level=0.98,
        reason="",
        sentence="",
    )


@pytest.mark.parametrize(
    ("axis", "ends", "said"),
    [
        ("depth", (7.66, 7.02, 7.98), "from 8 on"),
        ("depth", (7.66, 6.4, 8.2), "from 8 on (6–9)"),
        ("hidden_size", (147.2, 131.0, 166.0), "about 147 (131–166)"),
        ("hidden_size", (88.5, 64.0, 128.0), "about 89 (64–128)"),
        ("gigabytes", (7.66, 7.02, 7.98), "about 7.66 (7.02–7.98)"),
        ("size", (909.3, 586.1, 1342.7), "about 909 (586–1,340)"),
    ],
)
def test_the_estimate_is_written_on_its_band_in_numbers_that_one_can_choose(axis, ends, said):
    spec = study_charts.crossing_chart(crossing(axis=axis, **dict(zip(("estimate", "low", "high"), ends, strict=True))))
    (row,) = [row for row in spec["data"]["values"] if row["layer"] == "crossing"]
    assert row["label"] == said
    assert any(said in str(layer) for layer in spec["layer"])


def test_the_first_chart_names_both_curves_and_needs_no_legend():
    spec = study_charts.crossing_chart(crossing(axis="depth", estimate=7.66, low=7.02, high=7.98))
    assert [layer["mark"]["type"] for layer in spec["layer"]].count("text") == 2
    assert {row["device"] for row in spec["data"]["values"] if row.get("named")} == set(STEEP)
    assert spec["layer"][1]["encoding"]["color"]["legend"] is None


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((1e-4, 0.1), [1e-4, 1e-3, 1e-2, 0.1]),
        ((16, 4096), [20, 50, 100, 200, 500, 1000, 2000, 5000]),
        ((2, 12), [2, 3, 5, 7, 10]),
        ((3.2, 5), [3, 4, 5]),
        ((5, 5), [5]),
        ((20.1, 20.4), [18, 20, 22]),
        ((18.2, 18.9), [17, 19, 21]),
    ],
)
def test_an_axis_has_few_round_ticks(values, ticks):
    assert look.log_ticks(values) == ticks
