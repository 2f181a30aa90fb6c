"""Crossover's core: ask, measure, keep, answer. No Streamlit anywhere below here.

For a notebook or a script, everything that is needed most stands here: ask with `Experiment` or `Sweep`, measure with
`run`, keep and read rows with `Store`, and answer with `speedup`, `studies` and `crossover`. Each is imported when it
is first used, so that importing `core` costs nothing; `run` measures in a process of its own and imports no torch here.
`watch` looks at a loop of one's own, in its own process.
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
    "run": ".jobs.client",
    "Store": ".results.store",
    "speedup": ".answer.speedup",
    "verdict_sentence": ".answer.speedup",
    "studies": ".answer.study",
    "crossover": ".answer.study",
    "watch": ".custom.watch",
}
"""Name → the module that has it. What measures is `run`, as on the command line: `core.measure` is a room."""

__all__ = ["__version__", *_DOORS]  # the names are texts, which __getattr__ answers to


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    return getattr(importlib.import_module(_DOORS[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_DOORS})
