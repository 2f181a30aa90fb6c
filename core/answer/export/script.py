"""A run as one file of plain PyTorch that anybody can read, run and change: the same training, timed the same way.

It needs neither this project nor its rows: network, data, batches, seed and protocol are written out, and the stored
times stand in it, to be printed beside its own. What rows say is put in as Python's own literals in ASCII, so that no
text can leave its place. The script that is made here is never run here.
"""

from collections.abc import Sequence

from core.answer.export.template import filled
from core.errors import CrossoverError, InvalidValue
from core.question import models
from core.question.experiment import Contender, Point
from core.question.fields import LOADER_PATHS
from core.question.lanes import PLAIN
from core.results.schema import Trial
from core.text import in_python

FINGERPRINT = (
    *("run_id", "started_at", "machine_id", "cpu_name", "cores_usable", "memory_bytes", "system", "python_version"),
    *("torch_version", "app_version", "app_commit", "omp_wait_policy", "protocol_version"),
)
"""Columns that say on what the stored times were measured."""


def script(trials: Sequence[Trial]) -> str:
    """The script that repeats a run, but for lanes other than plain eager training in fp32, of which it says so.

    Raises:
        CrossoverError: the rows ask for what this version does not offer, or for nothing that a plain script repeats.
    """
    first, point = trials[0], _point(trials[0])
    plain = [trial for trial in trials if Contender.parse(trial.contender).lane == PLAIN and trial.block_steps]
    if point.data_path == "tutorial":
        raise CrossoverError("There is no script for it: the tutorials' loader is part of the tutorial itself.")
    if not plain:
        raise CrossoverError("There is no script for it: none of its devices was timed in a plain eager training.")
    kept = set(map(id, plain))  # rows are large, and comparing each with each takes long
    return filled(
        "script.py.j2",
        in_python,
        first=first,
        point=point,
        fingerprint=FINGERPRINT,
        loader_paths=LOADER_PATHS,
        left_out=[trial.contender for trial in trials if id(trial) not in kept],
        # with the seconds a step of every block, as items of a list
        stored=[
            (row, Contender.parse(row.contender).device, ", ".join(f"{step_s:.6g}" for step_s in row.step_s))
            for row in plain
        ],
        layers=_layers(point),
    )


def _point(trial: Trial) -> Point:
    try:
        return Point.of(trial)
    except InvalidValue as error:
        raise CrossoverError(f"There is no script for it, this version does not offer its settings: {error}") from error


def _layers(point: Point) -> list[str]:
    network = point.network
    lines = [_layer(layer) for layer in network.layers]
    if len(network.input_shape) == 1 and isinstance(network.layers[0], models.Conv2d):
        lines.insert(0, f"nn.Unflatten(1, (1, 1, {network.input_shape[0]}))")
    return lines


def _layer(layer: models.Layer) -> str:
    match layer:
        case models.Linear():
            return f"nn.Linear({layer.inputs}, {layer.outputs})"
        case models.Conv2d():
            return f"nn.Conv2d({layer.in_channels}, {layer.out_channels}, {layer.kernel})"
        case models.MaxPool2d():
            return f"nn.MaxPool2d({layer.kernel})"
        case models.ReLU():
            return "nn.ReLU()"
        case models.Flatten():
            return "nn.Flatten()"
