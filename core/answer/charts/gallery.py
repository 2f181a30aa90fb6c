"""The gallery as a chart: one point a stored trial. Only the columns named here reach it."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pyarrow as pa

from core.answer.charts import look
from core.answer.charts.look import Spec
from core.results.schema import Trial, to_table

COLUMNS = (
    "trial_id",
    "started_at",
    "contender",
    "device_kind",
    "device_name",
    "dataset",
    "model",
    "parameters",
    "batch_size",
    "block_steps",
    "block_begin_ns",
    "block_end_ns",
)


def step_times(trials: pa.Table | Sequence[Trial]) -> Spec:
    """Median time per step against parameters, one point a trial; trials without timed blocks have no point.

    Args:
        trials: rows, or a table that has `COLUMNS`.
    """
    table = trials if isinstance(trials, pa.Table) else to_table(list(trials))
    timed = [row | {"step": _median_step_s(row)} for row in table.select(COLUMNS).to_pylist()]
    unit, scale = look.unit_of(row["step"] for row in timed)
    shown = [name for name in COLUMNS if not name.startswith("block_")]
    rows = [{**{name: row[name] for name in shown}, "step": row["step"] * scale} for row in timed if row["step"] > 0]
    kinds = [kind for kind in look.DEVICE_COLOURS if any(row["device_kind"] == kind for row in rows)]
    places = [list(look.DEVICE_COLOURS).index(kind) for kind in kinds]
    legend = alt.Legend(orient="top", title="device kind")
    chart = (
        alt.Chart()
        .mark_point(filled=True, size=60, opacity=0.8)
        .encode(
            x=alt.X("parameters:Q", title="parameters (log scale)", scale=look.log(), axis=alt.Axis(format="~s")),
            y=alt.Y("step:Q", title=f"time per step ({unit}, log scale)", scale=look.log()),
            color=alt.Color(
                "device_kind:N",
                scale=alt.Scale(domain=kinds, range=[look.DEVICE_COLOURS[kind] for kind in kinds]),
                legend=legend,
            ),
            shape=alt.Shape(
                "device_kind:N",
                scale=alt.Scale(domain=kinds, range=[look.SHAPES[place] for place in places]),
                legend=legend,
            ),
            tooltip=[
                look.tooltip("device_name", "device"),
                look.tooltip("contender", "contender"),
                look.tooltip("dataset", "dataset"),
                look.tooltip("model", "model"),
                look.tooltip("parameters", "parameters", ",d"),
                look.tooltip("batch_size", "batch size", ",d"),
                look.tooltip("step", f"time per step ({unit})", ".4g"),
                look.tooltip("started_at", "measured"),
            ],
        )
    )
    return look.finished(chart, rows, height=look.HEIGHT)


def _median_step_s(row: Mapping[str, Any]) -> float:
    """Median seconds a step of a table's row, 0 if no block was timed."""
    readings = zip(row["block_begin_ns"], row["block_end_ns"], row["block_steps"], strict=True)
    times: list[float] = [(end - begin) / 1e9 / steps for begin, end, steps in readings]
    return statistics.median(times or [0.0])
