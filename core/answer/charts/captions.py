"""What a chart says of itself once it leaves its page: title, training, machines, dates and source."""

import textwrap
from collections.abc import Sequence

from core.answer.charts.look import Spec
from core.answer.study import wording
from core.errors import InvalidValue
from core.question import describe, models
from core.question.experiment import Point
from core.question.sweep import size_on_axis
from core.results.schema import Trial
from core.text import as_line

CAPTION_LINE_LETTERS, TITLE_LETTERS, MAX_CAPTION_LETTERS = 130, 85, 400
"""Letters of a small line and of one of the title that a picture has room for, and of all lines of one text."""


def add_caption(spec: Spec, title: str, lines: Sequence[str]) -> Spec:
    """The chart with a title and small lines above it, below which stands what it says already."""
    own = spec.get("title", {}).get("text", [])
    said = [*lines, *(own if isinstance(own, list) else [own])]
    small = [line for text in said for line in textwrap.wrap(as_line(text, MAX_CAPTION_LETTERS), CAPTION_LINE_LETTERS)]
    words = {
        "text": textwrap.wrap(as_line(title, MAX_CAPTION_LETTERS), TITLE_LETTERS),
        "subtitle": small,
        "anchor": "start",
        "offset": 12,
    }
    return {**spec, "title": {**words, "fontSize": 15, "subtitleFontSize": 11, "subtitlePadding": 4}}


def measurement_lines(rows: Sequence[Trial], axis: str = "") -> tuple[str, ...]:
    """The lines of what was measured: the training, each machine, when, and with which version; the axis differs."""
    machines = dict.fromkeys(f"{row.cpu_name} [{row.machine_id[:6]}], {row.system}" for row in rows)
    devices = dict.fromkeys(row.device_name for row in rows if row.device_kind != "cpu")
    days = sorted({row.started_at[:10] for row in rows})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    versions = ", ".join(dict.fromkeys(f"Crossover {row.app_version}, torch {row.torch_version}" for row in rows))
    return _caption_training(rows, axis), "; ".join((*devices, *machines)), f"Measured {when} with {versions}"


def _caption_training(rows: Sequence[Trial], axis: str) -> str:
    """The training in a line, which names what differs first; as rows write it where this version does not offer it."""
    try:
        point = Point.from_row(rows[0])
        families = {} if point.training or not axis else describe.fields_set_by_axes([axis], models.family(point.model))
        said = describe.describe_question(point, without={*families, axis})
    except InvalidValue:
        said = f"{rows[0].dataset} · {rows[0].model}"
    if not axis:
        return said
    sizes = [size_on_axis(row, axis) for row in rows]
    return (
        f"{describe.label_axis(axis, rows[0].model)} {wording.format_size(min(sizes))} to "
        f"{wording.format_size(max(sizes))} · {said}"
    )
