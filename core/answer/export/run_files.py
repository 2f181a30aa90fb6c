"""Runs as files for other programs: one file of PyTorch code, and TensorBoard event files. Nothing here imports torch.

The script can be read, run and changed by anybody: the same trainings, timed the same way. It needs neither this
project nor its rows: it contains networks, data, batches, seed and protocol. It also contains the stored times and
prints them next to its own. Text from rows is written as Python literals in ASCII, so that no text can become code.
Crossover never runs the generated script.

A recording is a data class with the settings, loss curve, epoch times and accuracies of one row. Every value is a raw
value of the row or is derived as elsewhere in `core.answer`. It is written through the `tensorboard` package, which is
an optional extra. Nothing here reads event files back.
"""

import ast
import functools
import importlib.util
import io
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ... import units
from ...errors import CrossoverError, InvalidValue, StoreError, unwritable
from ...files.project import PACKAGE
from ...question import catalog, custom, models
from ...question.experiment import Contender, Point
from ...question.fields import LOADER_PATHS, TRAINING, field_title
from ...question.lanes import PLAIN
from ...results.schema import Trial
from ...text import as_label, to_file_name, to_markdown, to_python_literal
from .. import accuracy, speedup, training_cost
from .rendering import fill_template

_LONGEST_NAME = 200
"""Maximum letters of a folder's name; every file system allows 255 bytes."""

Scalar = tuple[int, float, float]
"""Step, value, and seconds since the recording began."""


@dataclass(frozen=True, kw_only=True)
class EventRecording:
    """Data of one run in TensorBoard.

    Attributes:
        id: unique name; writing a recording again replaces the earlier one.
        began: start time in seconds since 1970, UTC.
        settings: settings of the run, for TensorBoard's HParams tab; `text` contains these and further settings as
            Markdown.
        scalars: tag → values, ascending by step.
    """

    name: str
    id: str
    began: float
    settings: Mapping[str, str | float | bool]
    text: str
    scalars: Mapping[str, tuple[Scalar, ...]]


def require_event_folder(folder: Path) -> None:
    """Check before a measurement that event files can be written after it.

    Raises:
        StoreError: the package is missing, or the folder cannot be created or written.
    """
    if importlib.util.find_spec("tensorboard") is None:
        raise StoreError("Event files for TensorBoard need a package that is not installed: pip install tensorboard.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot hold event files: {error.strerror or error}.") from error
    if not os.access(folder, os.W_OK):
        raise StoreError(f"{folder} cannot hold event files: it is not writable.")


def write_event_files(folder: Path, recordings: Iterable[EventRecording]) -> list[Path]:
    """Write each recording as a separate run below `folder`, and return the files.

    Raises:
        StoreError: see `require_event_folder`; or the disk is full.
    """
    require_event_folder(folder)
    files = []
    for recording in recordings:
        run = folder / "=".join(map(to_file_name, recording.name[:_LONGEST_NAME].split("=")))
        file = run / f"events.out.tfevents.{int(recording.began)}.{to_file_name(recording.id)}"
        part = file.with_name(f".{file.name}.part")
        try:
            run.mkdir(exist_ok=True)
            part.write_bytes(_events(recording))
            part.replace(file)
        except OSError as error:
            raise StoreError(unwritable(str(file), error)) from error
        files.append(file)
    return files


def _events(recording: EventRecording) -> bytes:
    """Return the file's bytes: one record each for version, settings and text, then one for every scalar."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.summary.writer.record_writer import RecordWriter

    began, buffer = recording.began, io.BytesIO()
    settings = hparams_pb(dict(recording.settings), trial_id=recording.id, start_time_secs=began)
    events = [
        Event(wall_time=began, file_version="brain.Event:2"),
        Event(wall_time=began, summary=settings),
        Event(wall_time=began, summary=Summary(value=[_text_summary("settings", recording.text)])),
    ]
    events += [
        Event(wall_time=began + seconds, step=step, summary=Summary(value=[{"tag": tag, "simple_value": value}]))
        for tag, values in recording.scalars.items()
        for step, value, seconds in values
    ]
    writer = RecordWriter(buffer)
    for event in events:
        writer.write(event.SerializeToString())
    return buffer.getvalue()


def _text_summary(tag: str, text: str) -> dict[str, Any]:
    """Return a value for TensorBoard's text tab; 7 is the type of a string tensor."""
    return {
        "tag": f"{tag}/text_summary",
        "metadata": {"plugin_data": {"plugin_name": "text"}},
        "tensor": {"dtype": 7, "string_val": [text.encode()], "tensor_shape": {"dim": [{"size": 1}]}},
    }


ABOUT = ("contender", "device_name", "threads", "outcome", "cpu_name", "torch_version", "machine_id", "started_at")
"""Columns that the text lists in addition to the settings of the training."""


def trial_recording(trial: Trial) -> EventRecording:
    """Convert one row to a recording.

    Times are training times without start-up. The time between two values is the training time between them, without
    the turns of other configurations.
    """
    settings = {name: getattr(trial, name) for name in speedup.meaningful_columns(speedup.TRAINING_COLUMNS, trial)}
    return EventRecording(
        name=_recording_name(trial),
        id=trial.trial_id,
        began=datetime.fromisoformat(trial.started_at).timestamp(),
        settings={**settings, "contender": trial.contender, "device_name": as_label(trial.device_name)},
        text=_recording_text(trial, settings),
        scalars={tag: values for tag, values in _scalars(trial).items() if values},
    )


def _recording_name(trial: Trial) -> str:
    if trial.training:
        return f"{trial.training}-size={trial.size}-{trial.contender}-{trial.run_id}"
    sizes = [f"{name}={value}" for name in models.AXES if (value := getattr(trial, name))]
    sizes += [f"batch={trial.batch_size}", f"workers={trial.loader_workers}"]
    return "-".join([trial.dataset, trial.model, *sizes, trial.contender, trial.run_id])


def _recording_text(trial: Trial, settings: dict[str, object]) -> str:
    rows = [*settings.items(), *((name, getattr(trial, name)) for name in ABOUT)]
    rows += [("parameters", trial.parameters or "unknown"), ("message", trial.message)]
    step_s = speedup.step_time(trial).median_s
    rows.append(("median step", units.format_duration(step_s) if step_s else "not timed"))
    lines = [f"| {name.replace('_', ' ')} | {to_markdown(str(value))} |" for name, value in rows]
    return "\n".join(["| setting | value |", "|---|---|", *lines])


def _scalars(trial: Trial) -> dict[str, tuple[Scalar, ...]]:
    epochs = () if trial.training else training_cost.epoch_times(trial)  # a script's epoch is unknown
    ends = [epoch * trial.steps_per_epoch for epoch in range(1, len(epochs) + 1)]
    block_ends = tuple(map(sum, zip(trial.block_first_step, trial.block_steps, strict=True)))
    last = accuracy.final_tested_step(trial)
    step_s = speedup.step_time(trial).median_s
    shares = {
        "accuracy/train": trial.train_accuracy,
        "accuracy/validation": trial.validation_accuracy,
        "accuracy/test": accuracy.accuracy(trial),
        "epoch_s/median": step_s * trial.steps_per_epoch if step_s and not trial.training else None,
    }
    return {
        "loss/train": _scalar_series(trial, trial.loss_step, trial.loss),
        "epoch_s/each": tuple(
            (number, seconds, after)
            for number, (seconds, after) in enumerate(
                zip(epochs, training_cost.training_seconds(trial, ends), strict=True), start=1
            )
        ),
        "step_s/block": _scalar_series(trial, block_ends, trial.step_s),
        **{tag: _scalar_series(trial, (last,), (share,)) for tag, share in shares.items() if share is not None},
    }


def _scalar_series(trial: Trial, steps: tuple[int, ...], values: tuple[float, ...]) -> tuple[Scalar, ...]:
    """Return values with their step and training time; 0 where no block was timed."""
    seconds = training_cost.training_seconds(trial, steps) if trial.block_first_step else itertools.repeat(0.0)
    return tuple(zip(steps, values, seconds, strict=False))


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
