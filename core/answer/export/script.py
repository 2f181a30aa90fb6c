"""Runs as one file of PyTorch code that anybody can read, run and change: the same trainings, timed the same way.

The file needs neither this project nor its rows: it contains networks, data, batches, seed and protocol. It also
contains the stored times and prints them next to its own. Text from rows is written as Python literals in ASCII, so
that no text can become code. Crossover never runs the generated script.
"""

import ast
import functools
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import CrossoverError, InvalidValue
from ...files.project import PACKAGE
from ...question import catalog, custom, models
from ...question.experiment import Contender, Point
from ...question.fields import LOADER_PATHS, TRAINING, field_title
from ...question.lanes import PLAIN
from ...results.schema import Trial
from ...text import to_python_literal
from .rendering import fill_template

FINGERPRINT_COLUMNS = (
    *("run_id", "started_at", "machine_id", "cpu_name", "cores_usable", "memory_bytes", "system", "python_version"),
    *("torch_version", "app_version", "app_commit", "omp_wait_policy", "protocol_version"),
)
"""Columns that identify the environment in which the stored times were measured."""

NETWORK_MODULES = PACKAGE / "measure" / "networks.py"
"""File of the network modules that torch does not provide."""

VARYING_FIELDS = {*models.AXES, "batch_size", "samples", "learning_rate", "loader_workers"}
"""Fields in which the runs of one script may differ; data, their order and the data path are the same."""


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One run of the script: its training, and the stored times of its trials of the default variant.

    Attributes:
        title: difference from the other runs, as a prefix for its parameters; empty for a single run.
        stored: rows with the device, and the seconds per step of every block as items of a list.
    """

    title: str
    first: Trial
    point: Point
    layers: list[str]
    stored: list[tuple[Trial, str, str]]


def training_script(trials: Sequence[Trial]) -> str:
    """Generate the script that repeats a run, or the runs of a study, which differ in one size.

    Other variants are left out; the script names them.

    Raises:
        CrossoverError: the rows need an option that this version lacks, or no row can be repeated by a script.
    """
    point = _point(trials[0])
    plain = [trial for trial in trials if Contender.parse(trial.contender).lane == PLAIN and trial.block_steps]
    if point.data_path == "tutorial":
        raise CrossoverError("There is no script for it: the tutorials' loader is part of the tutorial itself.")
    if point.data_path == custom.CUSTOM:
        file = point.training.partition(":")[0]
        raise CrossoverError(f"There is no script for it: to repeat it, its own file {file} is needed.")
    if not plain:
        raise CrossoverError("There is no script for it: no device was timed with the default loop.")
    kept = set(map(id, plain))  # rows are large, and comparing all pairs is slow
    runs = _script_runs(plain)
    lines = [line for run in runs for line in run.layers]
    return fill_template(
        "fits.py.j2" if point.is_fit else "script.py.j2",
        to_python_literal,
        first=plain[0],
        point=point,
        facts=catalog.dataset(point.dataset),
        fingerprint=FINGERPRINT_COLUMNS,
        loader_paths=LOADER_PATHS,
        modules=[code for name, code in _modules().items() if any(line.startswith(f"{name}(") for line in lines)],
        left_out=list(dict.fromkeys(trial.contender for trial in trials if id(trial) not in kept)),
        runs=runs,
    )


def _script_runs(rows: Sequence[Trial]) -> list[_Run]:
    together: dict[str, list[Trial]] = {}
    for row in rows:
        together.setdefault(row.run_id, []).append(row)
    points = [_point(run[0]) for run in together.values()]
    said = [(name, {getattr(point, name) for point in points}) for name in TRAINING]
    varied = [name for name, values in said if len(values) > 1]
    if not set(varied) <= VARYING_FIELDS:
        raise CrossoverError("There is no script for it: its runs differ in more than one size.")
    return [
        _Run(
            title="".join(f"{field_title(name)} {getattr(point, name)}: " for name in varied),
            first=run[0],
            point=point,
            layers=_layer_code(point),
            stored=[(row, Contender.parse(row.contender).device, _step_literals(row)) for row in run],
        )
        for run, point in zip(together.values(), points, strict=True)
    ]


def _step_literals(row: Trial) -> str:
    return ", ".join(f"{step_s:.6g}" for step_s in row.step_s)


def _point(trial: Trial) -> Point:
    try:
        return Point.from_row(trial)
    except InvalidValue as error:
        raise CrossoverError(
            f"There is no script for it, because this version does not offer its settings: {error}"
        ) from error


def _layer_code(point: Point) -> list[str]:
    made = [layer.module for layer in point.network.layers]
    ours = _modules()
    return [f"{'' if name in ours else 'nn.'}{name}({', '.join(map(repr, arguments))})" for name, arguments in made]


@functools.cache
def _modules() -> dict[str, str]:
    """Return the source of the modules that torch does not provide, by name; it is read without importing torch."""
    file = NETWORK_MODULES.read_text(encoding="utf-8")
    found = [node for node in ast.parse(file).body if isinstance(node, ast.ClassDef)]
    return {node.name: ast.get_source_segment(file, node) or "" for node in found}
