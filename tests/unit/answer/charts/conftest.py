"""Charts, each of which is checked against the schema of Vega-Lite."""

import pytest

from core.answer.charts import look


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    monkeypatch.setattr(look, "CHECKED", True)
