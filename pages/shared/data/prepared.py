"""What is worked out of rows once for all visitors: crossovers, reports, finished charts.

Keys are contents, as in `pages.shared.data.reads`: nothing has to be invalidated by hand, and nothing is lost when a
visitor clears the caches.
"""

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.answer.charts import grids, runs
from core.answer.charts import studies as study_charts
from core.answer.charts.grids import Cell
from core.answer.run import learned
from core.answer.study import crossover, timings
from core.answer.study import study as grouping
from core.answer.study.result import Basis, Crossover, Evidence
from core.answer.study.study import Study
from core.answer.study.timings import Timings
from core.jobs import client
from core.progress import Progress
from core.results.schema import Trial
from pages.shared.data import reads


@dataclass(frozen=True, kw_only=True)
class Located:
    """A crossover with what it rests on; its charts are drawn when they are first wanted, for all visitors.

    Attributes:
        answer: the crossover.
        evidence: what was timed at each size.
        kinds: of the baseline's and the challenger's device; None where they are not known.
        recorded: whether the challenger was recorded on another machine.
    """

    answer: Crossover
    evidence: tuple[Evidence, ...]
    kinds: tuple[str, str] | None = None
    recorded: bool = False

    @functools.cached_property
    def chart(self) -> dict[str, Any]:
        """Finished, time against size."""
        return study_charts.crossover(self.answer, self.evidence, kinds=self.kinds, recorded=self.recorded)

    @functools.cached_property
    def speedup(self) -> dict[str, Any]:
        """Finished, speedup against size."""
        return study_charts.speedup(self.answer, kinds=self.kinds)


def chart(draw: Callable[[Sequence[Trial]], dict[str, Any]], trials: Sequence[Trial]) -> dict[str, Any]:
    """The finished chart that `draw`, a function of `core.answer.charts`, makes of rows."""
    return _chart(_name(draw), hash(tuple(trials)), draw, trials)


def confusion(trial: Trial) -> dict[str, Any]:
    """The finished confusion matrix of a trial that was tested."""
    return _chart(_name(runs.confusion), hash(trial), runs.confusion, trial)


@st.cache_resource(max_entries=64, show_spinner=False)
def live_chart(job_id: str, elapsed_s: float, _progress: Progress) -> dict[str, Any]:
    """The loss curve of a running measurement; one for all who watch it."""
    return runs.live_loss(_progress, by="seconds", kinds=_kinds())


def studies(trials: Sequence[Trial], axis: str) -> list[Study]:
    """The studies along an axis that rows hold, down to a single size."""
    return _studies(_content(trials), axis, trials)


def located(of: Study, basis: Basis) -> Located:
    """The answer of a study on a cost basis, with what it rests on and its charts.

    Raises:
        CrossoverError: its rows cannot be compared.
    """
    return _located(of.id, of.axis, _content([row for run in of.runs for row in run]), basis, of)


def located_timings(data: bytes, name: str) -> tuple[Timings, Located]:
    """Somebody's own timings, the answer that they give, and its charts.

    Raises:
        CrossoverError: the file is not of the kind that is read, or a value in it is none that can be.
    """
    return _located_timings(hashlib.sha256(data).hexdigest(), name, data)


def winners(cells: Sequence[Cell], axes: tuple[str, str], of: Study) -> dict[str, Any]:
    """The finished map of a grid."""
    kinds = (of.runs[0][0].device_kind, of.runs[0][1].device_kind)
    return _winners(hash((tuple(cells), axes)), (of.baseline, of.challenger), kinds, cells, axes)


def report(trial: Trial) -> dict[str, Any] | None:
    """The classification report of a trial by class name; None if it was not tested."""
    return _report(hash(trial), trial)


@st.cache_resource(max_entries=256, show_spinner=False)
def _chart(name: str, key: int, _draw: Callable[[Any], dict[str, Any]], _rows: Any) -> dict[str, Any]:
    return _draw(_rows)


@st.cache_resource(max_entries=128, show_spinner=False)
def _studies(key: int, axis: str, _trials: Sequence[Trial]) -> list[Study]:
    return grouping.studies(_trials, axis=axis, least=1)


@st.cache_resource(max_entries=512, show_spinner=False)
def _located(study_id: str, axis: str, key: int, basis: Basis, _of: Study) -> Located:
    kinds = (_of.runs[0][0].device_kind, _of.runs[0][1].device_kind)
    return Located(answer=grouping.crossover(_of, basis), evidence=tuple(grouping.evidence(_of, basis)), kinds=kinds)


@st.cache_resource(max_entries=16, show_spinner=False)
def _located_timings(key: str, name: str, _data: bytes) -> tuple[Timings, Located]:
    read = timings.read(_data, name)
    found = crossover.locate(
        read.evidence, axis="size", basis="as_given", baseline=read.baseline, challenger=read.challenger
    )
    return read, Located(answer=found, evidence=read.evidence)


@st.cache_resource(max_entries=64, show_spinner=False)
def _winners(
    key: int, devices: tuple[str, str], kinds: tuple[str, str], _cells: Sequence[Cell], _axes: tuple[str, str]
) -> dict[str, Any]:
    return grids.winners(_cells, axes=_axes, devices=devices, kinds=kinds)


@st.cache_data(max_entries=256, show_spinner=False)
def _report(key: int, _trial: Trial) -> dict[str, Any] | None:
    return learned.classification(_trial)


def _content(trials: Sequence[Trial]) -> int:
    """Changes whenever the rows do; a row of one name changes only while it is measured."""
    return hash(tuple((trial.trial_id, trial.outcome, len(trial.block_steps)) for trial in trials))


def _kinds() -> dict[str, str]:
    """Device → its kind, as far as the measuring process has said."""
    known = client.machine(reads.queue())
    return {info.device: info.kind for info in known.devices} if known else {}


def _name(draw: Callable[..., Any]) -> str:
    """Name of a chart among all."""
    return f"{draw.__module__}.{draw.__qualname__}"
