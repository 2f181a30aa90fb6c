"""What a saved chart says of itself: title, training, machines, date and source."""

import dataclasses

import altair as alt
import pytest

from core.answer.charts import look, run_charts
from tests.rows import run, trial

ROWS = run()
SPEC = run_charts.step_bars_chart(ROWS)


def test_a_saved_chart_says_what_was_trained_on_what_when_and_with_what():
    training, machines, source = look.measurement_lines(ROWS)
    row = ROWS[1]
    assert "Digits" in training
    assert row.device_name in machines
    assert f"{row.cpu_name} [{row.machine_id[:6]}]" in machines
    assert row.started_at[:10] in source
    assert f"Crossover {row.app_version}" in source
    assert f"torch {row.torch_version}" in source


def test_of_a_study_its_sizes_are_said_and_all_its_days():
    rows = [
        dataclasses.replace(trial(), hidden_size=size, started_at=f"2026-11-{day}T10:00:00+00:00")
        for size, day in ((16, 21), (1024, 23))
    ]
    training, _, source = look.measurement_lines(rows, "hidden_size")
    assert "16 to 1,024" in training
    assert training.count("16") == 1
    assert "Measured 2026-11-21 to 2026-11-23" in source


def test_rows_of_what_is_not_offered_here_are_captioned_all_the_same():
    training, *_ = look.measurement_lines([dataclasses.replace(trial(), dataset="of others")])
    assert training.startswith("of others")


def test_the_caption_is_a_title_and_what_the_chart_said_already_stays():
    busy = {**SPEC, "title": {"text": "Measured on a busy machine"}}
    spec = look.add_caption(busy, "The GPU\nwins", ["x" * 70 + " " + "y" * 70])
    alt.Chart.from_dict(spec)
    assert spec["title"]["text"] == ["The GPU wins"]
    assert spec["title"]["subtitle"] == ["x" * 70, "y" * 70, "Measured on a busy machine"]
    assert spec["data"] is SPEC["data"]


@pytest.mark.parametrize("spec", [SPEC, {**SPEC, "title": {"text": ["one", "two"]}}])
def test_a_chart_is_never_changed_by_its_caption(spec):
    before = dict(spec)
    look.add_caption(spec, "title", ["line"])
    assert spec == before
