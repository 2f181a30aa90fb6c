"""Vega-Lite charts of rows and answers in one look, for a page or a file.

Altair is imported with the first chart: its import takes a fifth of a second, and the first page has no chart.
"""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["alt"]


class _Altair:
    """Stands for the module `altair`; imports it for the first attribute."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("altair"), name)


if TYPE_CHECKING:
    import altair as alt
else:
    alt = _Altair()
