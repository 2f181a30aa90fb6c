"""Crossover's core: questions, measurements, storage and answers, without Streamlit.

This module has the most important names for notebooks and scripts. `Experiment` and `Sweep` describe questions. `run`
measures a question, shows its progress and returns rows that show their answer. `devices` lists the devices, and
`Store` saves and reads rows. `speedup`, `studies` and `crossover` compute answers. `choose` predicts a GPU that this
machine does not have. Each name is imported on first use, so importing `core` is fast. `run` measures in a separate
process and does not import torch in this one. `watch` monitors your training loop in the process of the loop.
"""

import importlib
from typing import Any

__version__ = "0.2.0"

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
"""Module of each public name. Use `run` to measure, as on the command line: `core.measure` is internal."""

__all__ = ["__version__", *_DOORS]  # strings, which __getattr__ resolves


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    return getattr(importlib.import_module(_DOORS[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_DOORS})
