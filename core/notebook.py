"""Measuring from a notebook: `run` with a progress bar, rows that show their answer, and the devices of this machine.

This module calls the same functions as the pages and the command line, and adds only the display in a notebook.
"""

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .answer import study
from .answer.judgement import Basis, Crossover
from .answer.run import Run
from .answer.study import Study
from .commands.run import choose_contenders, require_machine, show_job_progress
from .errors import InvalidValue
from .files import sources
from .jobs import client
from .jobs.queue import Queue
from .question import custom
from .question.experiment import Contender, Experiment, Point
from .question.sweep import Axis, Sweep
from .results.schema import Trial
from .results.store import RESULTS, Store
from .text import to_html

if TYPE_CHECKING:
    import altair
    import pandas

Build = Callable[..., Any]


class ShownStudy(Study):
    """A study that a notebook displays as its answer in words and its chart."""

    @property
    def sentence(self) -> str:
        """The crossover in words; raises NotComparable if the runs differ in more than their axis."""
        return self.crossover().sentence

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the rows as a data frame with the columns of the store."""
        return _to_pandas(list(itertools.chain.from_iterable(self.runs)))

    def chart(self) -> "altair.Chart":
        """Return the chart of time per step against size on both devices, with the crossover."""
        import altair

        from .answer.charts import study_charts

        drawn = study_charts.crossover_chart(self.crossover(), self.evidence("steady"))
        return altair.Chart.from_dict(drawn)

    def _repr_html_(self) -> str:
        return _show(self.sentence, self.chart())


class Results(list[Trial]):
    """Rows of a run or of a sweep, in the order of the request; a notebook shows their answer."""

    @property
    def studies(self) -> list[ShownStudy]:
        """Studies that the rows form; empty if the rows have a single size."""
        return studies(self) if len({row.run_id for row in self}) > 1 else []

    @property
    def sentence(self) -> str:
        """The answer in words: a crossover for each study, or a verdict for each device against the first."""
        if found := self.studies:
            return " ".join(one.sentence for one in found)
        return " ".join(pair.verdict for pair in Run(tuple(self)).pairs)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the rows as a data frame with the columns of the store."""
        return _to_pandas(self)

    def chart(self) -> "altair.Chart":
        """Return the chart of the answer: time against size of the first study, or time per step by device."""
        if found := self.studies:
            return found[0].chart()
        import altair

        from .answer.charts import run_charts

        return altair.Chart.from_dict(run_charts.step_bars_chart(self))

    def _repr_html_(self) -> str:
        return _show(self.sentence, self.chart())


def studies(trials: Iterable[Trial], *, axis: str | None = None) -> list[ShownStudy]:
    """Return every study that rows contain, as `core.answer.study.studies` finds them; a notebook shows their answers.

    Raises:
        InvalidValue: the axis is unknown.
    """
    found = study.studies(trials, axis=axis)
    return [ShownStudy(**{each.name: getattr(one, each.name) for each in dataclasses.fields(one)}) for one in found]


def crossover(study: Study, basis: Basis = "steady") -> Crossover:
    """Return the answer of a study; see `core.answer.study.Study.crossover`."""
    return study.crossover(basis)


def _to_pandas(rows: Sequence[Trial]) -> "pandas.DataFrame":
    from .results import parquet

    frame: pandas.DataFrame = parquet.to_table(rows).to_pandas()
    return frame


def _show(sentence: str, chart: "altair.Chart") -> str:
    """Return a sentence and a drawing as HTML that needs no network."""
    from .answer.export import rendering

    (drawing,) = rendering.draw_svgs([chart.to_dict()])
    return f"<p>{to_html(sentence)}</p>{drawing}"


def run(
    question: Experiment | Sweep | None = None,
    store: Store | None = None,
    queue: Queue | None = None,
    *,
    training: Build | str | None = None,
    sizes: int | Sequence[int] = (),
    devices: Sequence[str] = (),
    wait_for_quiet: float = 0.0,
) -> Results:
    """Measure one question in the measuring process, with a progress bar; stored answers are not measured again.

    Args:
        question: trainings and devices.
        store: store to search first and to write to; by default the folder of the app.
        queue: queue for the job; by default the queue of this machine.
        training: your own training instead of a question: the function `build(size, device)`, or `"train.py:build"`.
        sizes: sizes to call `training` with: one size for a run, several for a sweep.
        devices: devices for `training`, the baseline first, e.g. `["cpu", "cuda:0"]`; by default the devices of this
            machine.
        wait_for_quiet: longest time in seconds to wait for a quiet machine before measuring anyway.

    Returns:
        The rows; in a notebook they show the answer with its chart.

    Raises:
        InvalidValue: the question has a wrong type, or the function is not in a file.
        JobError: nothing was measured, or only a part. The message gives the reason; the store has the measured rows.
        StoreError: the store cannot be read.
    """
    queue = queue or Queue()
    if question is not None and training is not None:
        raise InvalidValue("question", question, "an Experiment or a Sweep, or left out where training is given")
    if question is None:
        question = _ask_training(training, sizes, devices, queue)
    follow = functools.partial(show_job_progress, in_notebook=True)
    folder = Store(RESULTS) if store is None else store
    return Results(client.run(question, folder, queue, follow, quiet_s=wait_for_quiet))


def devices() -> "pandas.DataFrame":
    """Return the devices of this machine, one row each: name in questions, kind, name of the hardware, and driver.

    Raises:
        JobError: the measuring process does not start.
    """
    import pandas

    found = require_machine(Queue()).devices
    return pandas.DataFrame(
        [{"device": one.device, "kind": one.kind, "name": one.name, "driver": one.driver} for one in found]
    )


def _ask_training(
    training: Build | str | None, sizes: int | Sequence[int], names: Sequence[str], queue: Queue
) -> Experiment | Sweep:
    """Return the question for your own training: a run at one size, or a sweep over several."""
    file, function = custom.locate_script(training if isinstance(training, str) else _locate_function(training))
    chosen = [sizes] if isinstance(sizes, int) else list(sizes)
    if not chosen:
        raise InvalidValue("sizes", "", "one or several sizes to call build with")
    at = functools.partial(Point, training=f"{file.name}:{function}", source_hash=sources.hash_sources(file))
    contenders = tuple(map(Contender.parse, names)) if names else choose_contenders(None, queue)
    folder = str(file.parent)
    if len(chosen) == 1:
        return Experiment(point=at(size=chosen[0]), contenders=contenders, folder=folder)
    axis = Axis(name="size", values=tuple(sorted(chosen)))
    return Sweep(point=at(size=chosen[0]), axes=(axis,), contenders=contenders, folder=folder)


def _locate_function(build: Any) -> str:
    """Return the file and the name of a function, for import in another process: `train.py:build`."""
    where = inspect.getsourcefile(build) if inspect.isfunction(build) else None
    if where is None or not Path(where).is_file() or build.__qualname__ != build.__name__:
        raise InvalidValue(
            "training",
            getattr(build, "__name__", build),
            "a function at the top of a file, which the measuring process imports; in a notebook, write the cell to a "
            "file with %%writefile train.py and pass training='train.py:build'",
        )
    return f"{where}:{build.__name__}"
