"""Recorded accelerators: the stored rows that can substitute for an accelerator that this machine does not have.

A recording is used only for exactly the same training: same data, model, sizes, batch, data path and methodology. A
similar recording is listed with its differences, but never used instead. Each variant of an accelerator is a separate
entry, because the variant shows how the accelerator was used. The functions accept whole rows and light lines of a
store: any object that has the scalar columns of `Trial` as attributes. No times are computed here.
"""

import dataclasses
import heapq
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from ..question.experiment import PROTOCOL_VERSION, Point, display_name
from ..question.fields import SIZE_AXES, field_title
from ..question.lanes import FIELDS
from . import speedup, wording
from .comparable import CURVE_COLUMNS, SETTING_COLUMNS, TRAINING_COLUMNS, axis_dependent_columns

NEAREST = 3
"""Maximum number of recordings with other settings that are listed."""

IDENTITY = ("trial_id", "run_id", "started_at", "outcome", "parameters", "machine_id", "cpu_name")
RECORDING_COLUMNS = (*IDENTITY, "device", "device_kind", *FIELDS, *SETTING_COLUMNS, *CURVE_COLUMNS)
"""Columns that a light line of a row must have in this module."""

_SETTINGS, _CURVE, _LANE = attrgetter(*SETTING_COLUMNS), attrgetter(*CURVE_COLUMNS), attrgetter(*FIELDS)
_PLACE = {name: place for place, name in enumerate(SETTING_COLUMNS)}
_NEARBY = frozenset({*TRAINING_COLUMNS, "dataset_hash"})
_QUICK = (*sorted(TRAINING_COLUMNS, key=lambda name: name not in SIZE_AXES), *SETTING_COLUMNS[: -len(TRAINING_COLUMNS)])


@dataclass(frozen=True, kw_only=True)
class RecordedTraining:
    """One training that was recorded on an accelerator.

    Attributes:
        trial_id: id of the row.
        run_id: id of the run that the row is part of.
        started_at: time at which the run began.
        completed: whether the model was trained to the end, so that there are also learning results to show.
        parameters: number of trainable parameters.
        settings: values of `comparable.SETTING_COLUMNS`, in their order.
        versions: values of `comparable.CURVE_COLUMNS`, in their order.
    """

    trial_id: str
    run_id: str
    started_at: str
    completed: bool
    parameters: int
    settings: tuple[object, ...]
    versions: tuple[str, ...]

    def value(self, column: str) -> Any:
        """Return the value of a column of `comparable.SETTING_COLUMNS`, or of `parameters`."""
        return self.parameters if column == "parameters" else self.settings[_PLACE[column]]


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One accelerator of one machine, in one variant.

    Attributes:
        name: unique name for display and links: "NVIDIA H200 (1a2b3c)", or with a variant other than the default
            "NVIDIA H200, CUDA graph of 10 steps (1a2b3c)".
        kind: device kind.
        device: device of the tensors, e.g. `cuda:0`.
        device_name: name of the hardware.
        machine: processor of its machine, and the beginning of the machine's id.
        recordings: recorded trainings, newest first.
    """

    name: str
    kind: str
    device: str
    device_name: str
    machine: str
    recordings: tuple[RecordedTraining, ...]

    def matches_row(self, row: Any) -> bool:
        """Return whether a row was measured on this accelerator, in the same variant."""
        return any(recording.trial_id == row.trial_id for recording in self.recordings)


@dataclass(frozen=True, kw_only=True)
class NearRecording:
    """A recording with other settings.

    Attributes:
        recording: newest recording with these settings.
        differs: readable list of the differences: "hidden size 256 instead of 128".
        sizes: number of recorded sizes if a size is varied; 1 otherwise.
    """

    recording: RecordedTraining
    differs: str
    sizes: int = 1


def list_accelerators(lines: Iterable[Any], *, exclude_machine: str = "") -> tuple[Accelerator, ...]:
    """List every accelerator with recorded rows, the one with the most rows first; each variant is a separate entry.

    Args:
        lines: timed rows, or light lines of timed rows.
        exclude_machine: id of this machine, whose accelerators are excluded.
    """
    groups: dict[tuple[object, ...], list[Any]] = {}
    for line in lines:
        if line.device_kind != "cpu" and line.machine_id != exclude_machine:
            groups.setdefault((line.machine_id, line.device, line.device_name, *_LANE(line)), []).append(line)
    found: dict[str, Accelerator] = {}
    known = (group for group in groups.values() if speedup.find_lane(group[0]) is not None)
    for group in known:
        one = _accelerator(group, names=found.keys())
        found[one.name] = one
    return tuple(sorted(found.values(), key=lambda one: (-len(one.recordings), one.name)))


def point_settings(point: Point, **others: object) -> dict[str, object]:
    """Return the settings of a training before it is measured, as `find_recording` needs them.

    Args:
        point: the training.
        others: values of other columns of `comparable.SETTING_COLUMNS`; by default those of this methodology.
    """
    usual = {"protocol_version": PROTOCOL_VERSION, "drained": True}
    return {**usual, **dataclasses.asdict(point), **others}


def row_settings(row: Any) -> dict[str, object]:
    """Return the settings of a measured training, including the hash of its data."""
    return dict(zip(SETTING_COLUMNS, _SETTINGS(row), strict=True))


def find_recording(accelerator: Accelerator, settings: Mapping[str, object]) -> RecordedTraining | None:
    """Return the recording of exactly this training: preferably one trained to the end, then the newest."""
    found = [each for each in accelerator.recordings if _agrees(each, settings)]
    return max(found, key=lambda each: (each.completed, each.started_at), default=None)


def find_recorded_curve(
    accelerator: Accelerator, settings: Mapping[str, object], axis: str
) -> tuple[RecordedTraining, ...]:
    """Return recordings that agree with a training in everything except one size: one per size, ascending.

    All have the same versions of torch and of the driver: the versions with the most sizes, then the newest.
    """
    varied = axis_dependent_columns(axis)
    curves: dict[tuple[str, ...], dict[float, RecordedTraining]] = {}
    for each in reversed(accelerator.recordings):  # oldest first, so that the newest of each size remains
        if _agrees(each, settings, varied):
            curves.setdefault(each.versions, {})[float(each.value(axis))] = each
    best = max(curves.values(), key=lambda curve: (len(curve), _newest_start(curve.values())), default={})
    return tuple(best[size] for size in sorted(best))


def nearest_recordings(
    accelerator: Accelerator, settings: Mapping[str, object], axis: str = ""
) -> tuple[NearRecording, ...]:
    """Return the recordings whose settings differ least, for listing only.

    Only settings of the training may differ; rows of another protocol are never returned.

    Args:
        accelerator: accelerator whose recordings are searched.
        settings: settings of the training, as in `find_recording`.
        axis: size that may vary; if given, only trainings with at least two recorded sizes are returned.
    """
    varied, groups = axis_dependent_columns(axis), dict[tuple[object, ...], list[RecordedTraining]]()
    fixed = [place for place, name in enumerate(SETTING_COLUMNS) if name not in varied]
    for each in accelerator.recordings:
        groups.setdefault(tuple(each.settings[place] for place in fixed) if axis else each.settings, []).append(each)
    found: list[tuple[tuple[int, float], int, list[RecordedTraining], list[str]]] = []
    for place, group in enumerate(groups.values()):
        differing = _differing(group[0], settings, varied)
        if differing and _NEARBY.issuperset(differing) and (not axis or _sizes(group, axis) > 1):
            found.append((_distance(group[0], settings, differing), place, group, differing))
    return tuple(
        NearRecording(
            recording=group[0], differs=_differences_text(group[0], settings, differing), sizes=_sizes(group, axis)
        )
        for _, _, group, differing in heapq.nsmallest(NEAREST, found)
    )


def incomparable_sentence(accelerator: Accelerator, settings: Mapping[str, object]) -> str:
    """Return why recordings of the same training cannot be compared, in a sentence; empty if there are none."""
    unlike = [_differing(each, settings, {"dataset_hash"}) for each in accelerator.recordings]
    columns = {name for names in unlike if names and not set(names) & set(TRAINING_COLUMNS) for name in names}
    if not columns:
        return ""
    named = " and ".join(field_title(name) for name in SETTING_COLUMNS if name in columns)
    return f"Recordings of this training with another {named} exist too, but are never compared with this one."


def _accelerator(group: list[Any], *, names: Collection[str]) -> Accelerator:
    first = group[0]
    index = "" if first.device.partition(":")[2] in ("", "0") else f", {display_name(first.device)}"
    lane = f", {title}" if (title := speedup.lane_title(first)) else ""
    called = f"{first.device_name}{index}{lane}"
    name = f"{called} ({first.machine_id[:6]})"
    return Accelerator(
        name=name if name not in names else f"{called} ({first.machine_id})",
        kind=str(first.device_kind),
        device=str(first.device),
        device_name=str(first.device_name),
        machine=f"{first.cpu_name} ({first.machine_id[:6]})",
        recordings=tuple(sorted(map(_recording, group), key=lambda each: (each.started_at, each.trial_id)))[::-1],
    )


def _recording(line: Any) -> RecordedTraining:
    return RecordedTraining(
        trial_id=str(line.trial_id),
        run_id=str(line.run_id),
        started_at=str(line.started_at),
        completed=line.outcome == "completed",
        parameters=int(line.parameters),
        settings=_SETTINGS(line),
        versions=_CURVE(line),
    )


def _sizes(group: Iterable[RecordedTraining], axis: str) -> int:
    return len({each.value(axis) for each in group}) if axis else 1


def _newest_start(recordings: Iterable[RecordedTraining]) -> str:
    return max(each.started_at for each in recordings)


def _agrees(each: RecordedTraining, settings: Mapping[str, object], exclude: Collection[str] = ()) -> bool:
    """Return whether a recording has the wanted settings; those that differ most often are checked first."""
    return all(
        each.settings[_PLACE[name]] == settings[name] for name in _QUICK if name in settings and name not in exclude
    )


def _differing(each: RecordedTraining, settings: Mapping[str, object], exclude: Collection[str] = ()) -> list[str]:
    """Return the columns in which a recording differs from the wanted settings."""
    return [name for name, value in settings.items() if name not in exclude and each.settings[_PLACE[name]] != value]


def _differences_text(each: RecordedTraining, settings: Mapping[str, object], differing: Collection[str]) -> str:
    named = [name for name in SETTING_COLUMNS if name in differing and name != "dataset_hash"]
    parts = [
        f"{field_title(name)} {_format_setting(each.value(name))} instead of {_format_setting(settings[name])}"
        for name in named
    ]
    return ", ".join(parts) or "other samples under the same name"


def _distance(each: RecordedTraining, settings: Mapping[str, object], differing: Collection[str]) -> tuple[int, float]:
    """Return the number of settings that differ, and the sum of their differences in doublings."""
    doublings = 0.0
    for name in differing:
        ours, theirs = settings[name], each.value(name)
        if isinstance(ours, int | float) and isinstance(theirs, int | float) and ours > 0 and theirs > 0:
            doublings += abs(math.log2(theirs / ours))
    return len([name for name in differing if name != "dataset_hash"]), doublings


def _format_setting(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return wording.format_size(value) if value == int(value) else f"{value:g}"
    return str(value).replace("_", " ")
