"""Crossover's core: ask, measure, store, answer. No Streamlit anywhere below here.

The most important names for a notebook or a script are here. Ask with `Experiment` or `Sweep`. Measure with `run`,
which shows its progress and returns rows that show their answer. List `devices()`. Save and read rows with `Store`.
Answer with `speedup`, `studies` and `crossover`. `choose` predicts a GPU that is not here. Each name is imported when
it is first used, so that importing `core` costs nothing; `run` measures in a process of its own and imports no torch
here. `watch` monitors your own loop, in its own process.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_DOORS = {
    "Contender": ".question.experiment",
    "Experiment": ".question.experiment",
    "Point": ".question.experiment",
    "Axis": ".question.sweep",
    "Sweep": ".question.sweep",
    "run": ".notebook",
    "devices": ".notebook",
    "Store": ".results.store",
    "speedup": ".answer.speedup",
    "verdict_sentence": ".answer.verdict",
    "studies": ".notebook",
    "crossover": ".notebook",
    "choose": ".answer.training_cost",
    "watch": ".custom.watch",
}
"""Name → its module. Use `run` to measure, as on the command line: `core.measure` is internal."""

__all__ = ["__version__", *_DOORS]  # the names are texts, which __getattr__ answers to


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    return getattr(importlib.import_module(_DOORS[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_DOORS})
