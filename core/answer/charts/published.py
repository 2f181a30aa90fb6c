"""What others published as a picture: hollow, thin, in colours of its own, and whose figures they are on it."""

import altair as alt

from core.answer.charts import front, look
from core.answer.charts.look import ChartRow, Spec
from core.answer.gallery.published_studies import PublishedStudy
from core.question.published.cases import Case

CASE_FIGURE_MARGIN = 1.3
"""Times the longest bar."""


def chart_published_study(study: PublishedStudy) -> Spec:
    """Time against size of the CPU and the GPU, with the source on the picture, so that saving it keeps that."""
    spec = front.crossing_chart(study.answer, published=True)
    lines = [f"Published: {study.source.cited}", f"CPU: {study.source.cpu}", f"GPU: {study.source.gpu}"]
    small = {"anchor": "start", "fontSize": 11, "fontWeight": "normal", "offset": 8, "limit": look.LEGEND_LIMIT}
    return {**spec, "title": {"text": lines, **small}}


def case_figures_chart(case: Case) -> Spec:
    """What a thread reported, a hollow bar a figure, in its own unit; empty where it told none."""
    rows: list[ChartRow] = [
        {"name": one.name, "value": one.value, "shown": f"{one.value:,}".removesuffix(".0")} for one in case.figures
    ]
    if not rows:
        return {}
    names = [row["name"] for row in rows]
    scale = alt.Scale(domain=[0, CASE_FIGURE_MARGIN * max(one.value for one in case.figures)])
    x = alt.X("value:Q", title=f"{case.unit}, published", scale=scale, axis=alt.Axis(tickCount=4))
    y = alt.Y("name:N", sort=names, title=None, axis=alt.Axis(ticks=False, labelLimit=140))
    base = alt.Chart().encode(y=y, tooltip=look.tooltips(("name", "of"), ("shown", case.unit)))
    hues = [front.PUBLISHED_COLOURS[at % 2] for at in range(len(names))]
    bars = base.mark_bar(
        size=look.BAR_HEIGHT // 2, filled=False, strokeWidth=front.PUBLISHED_LINE, strokeDash=[4, 2]
    ).encode(x=x, color=look.names_channel(alt.Color, "name", names, hues, legend=None))
    text = base.mark_text(align="left", dx=8, fontSize=13, fontWeight="bold", color=look.NEUTRAL)
    return look.finish_chart(alt.layer(bars, text.encode(x=x, text="shown:N")), rows, height=alt.Step(look.BAR_HEIGHT))
