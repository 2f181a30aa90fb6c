"""Recordings as TensorBoard event files, through the `tensorboard` package, which is an optional extra.

A recording is plain data; `core.answer.export.recording` makes one of a row. Nothing here imports torch or TensorFlow,
and nothing reads event files back.
"""

import importlib.util
import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import StoreError, unwritable
from ...text import to_file_name

_LONGEST_NAME = 200
"""Letters of a folder's name; every file system takes 255 bytes."""

Scalar = tuple[int, float, float]
"""Step, value, and seconds since the recording began."""


@dataclass(frozen=True, kw_only=True)
class EventRecording:
    """One run as TensorBoard shows it.

    Attributes:
        id: unique; the same recording written twice replaces itself.
        began: seconds since 1970, UTC.
        settings: what the run was asked to be, for TensorBoard's HParams tab; `text` has it and more, as Markdown.
        scalars: tag → values, ascending by step.
    """

    name: str
    id: str
    began: float
    settings: Mapping[str, str | float | bool]
    text: str
    scalars: Mapping[str, tuple[Scalar, ...]]


def require_event_folder(folder: Path) -> None:
    """Say before a measurement what would go wrong after it.

    Raises:
        StoreError: the package is missing, or the folder cannot be made or written.
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
    """Write each recording as a run of its own below `folder`; returns the files.

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
    """The file's bytes: one record each for version, settings and text, then one for every scalar."""
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
    """A value that TensorBoard's text tab shows; 7 is the type of a string tensor."""
    return {
        "tag": f"{tag}/text_summary",
        "metadata": {"plugin_data": {"plugin_name": "text"}},
        "tensor": {"dtype": 7, "string_val": [text.encode()], "tensor_shape": {"dim": [{"size": 1}]}},
    }
