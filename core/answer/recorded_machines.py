"""Recorded accelerators: the stored rows that can substitute for an accelerator that this machine does not have.

Only a recording of exactly the same training answers for it: same data, model, sizes, batch, data path and methodology.
A similar recording is named with its differences, and never used instead. An accelerator in another variant is a
separate entry, since the variant shows how it was used, as the name shows the model. Works on whole rows and on light
lines of a store alike: on anything that has the scalar columns of `Trial` under their names. Computes no times.
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
"""Recordings of other settings that are named at most."""

IDENTITY = ("trial_id", "run_id", "started_at", "outcome", "parameters", "machine_id", "cpu_name")
RECORDING_COLUMNS = (*IDENTITY, "device", "device_kind", *FIELDS, *SETTING_COLUMNS, *CURVE_COLUMNS)
"""Columns that a light line of a row needs here."""

_SETTINGS, _CURVE, _LANE = attrgetter(*SETTING_COLUMNS), attrgetter(*CURVE_COLUMNS), attrgetter(*FIELDS)
_PLACE = {name: place for place, name in enumerate(SETTING_COLUMNS)}
_NEARBY = frozenset({*TRAINING_COLUMNS, "dataset_hash"})
_QUICK = (*sorted(TRAINING_COLUMNS, key=lambda name: name not in SIZE_AXES), *SETTING_COLUMNS[: -len(TRAINING_COLUMNS)])


@dataclass(frozen=True, kw_only=True)
class RecordedTraining:
    """One training as an accelerator did it.

    Attributes:
        trial_id: of the row.
        run_id: of the run that it was part of.
        started_at: when that began.
        completed: whether it was trained to its end, so that there is also something learned to look at.
        parameters: trainable numbers.
        settings: values of `comparable.SETTINGS`, in their order.
        versions: values of `comparable.CURVE`, in their order.
    """

    trial_id: str
    run_id: str
    started_at: str
    completed: bool
    parameters: int
    settings: tuple[object, ...]
    versions: tuple[str, ...]

    def value(self, column: str) -> Any:
        """Return the value of a column of `comparable.SETTINGS`, or its `parameters`."""
        return self.parameters if column == "parameters" else self.settings[_PLACE[column]]


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One accelerator of one machine, in one variant.

    Attributes:
        name: distinguishes it for people and in links: "NVIDIA H200 (1a2b3c)", and in a variant other than the default
            "NVIDIA H200, CUDA graph of 10 steps (1a2b3c)".
        kind: device kind.
        device: where the tensors lived, e.g. `cuda:0`.
        device_name: its own name.
        machine: processor of its machine, and the beginning of the machine's id.
        recordings: newest first.
    """

    name: str
    kind: str
    device: str
    device_name: str
    machine: str
    recordings: tuple[RecordedTraining, ...]


@dataclass(frozen=True, kw_only=True)
class NearRecording:
    """A recording of other settings.

    Attributes:
        recording: the newest of its kind.
        differs: in what, for people: "hidden size 256 instead of 128".
        sizes: how many sizes there are of it, where a size is varied; 1 otherwise.
    """

    recording: RecordedTraining
    differs: str
    sizes: int = 1


def list_accelerators(lines: Iterable[Any], *, exclude_machine: str = "") -> tuple[Accelerator, ...]:
    """List every accelerator that rows were recorded on, the one with the most rows first; each variant is an entry.

    Args:
        lines: rows, or light lines of rows, in which something was timed.
        exclude_machine: id of a machine whose accelerators are left out, because it is this one.
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
        others: columns of `comparable.SETTINGS` that are not of the training; by default those of this methodology.
    """
    usual = {"protocol_version": PROTOCOL_VERSION, "drained": True}
    return {**usual, **dataclasses.asdict(point), **others}


def row_settings(row: Any) -> dict[str, object]:
    """Return the settings of a measured training, the hash of its data included."""
    return dict(zip(SETTING_COLUMNS, _SETTINGS(row), strict=True))


def find_recording(accelerator: Accelerator, settings: Mapping[str, object]) -> RecordedTraining | None:
    """Return the recording of exactly this training: one trained to its end if there is one, then the newest."""
    found = [each for each in accelerator.recordings if _agrees(each, settings)]
    return max(found, key=lambda each: (each.completed, each.started_at), default=None)


def find_recorded_curve(
    accelerator: Accelerator, settings: Mapping[str, object], axis: str
) -> tuple[RecordedTraining, ...]:
    """Return recordings that agree with a training in everything but one size, ascending, each size once.

    All are of one version of torch and of the driver: those with the most sizes, then the newest.
    """
    varied = axis_dependent_columns(axis)
    curves: dict[tuple[str, ...], dict[float, RecordedTraining]] = {}
    for each in reversed(accelerator.recordings):  # the newest of one size comes last, and stays
        if _agrees(each, settings, varied):
            curves.setdefault(each.versions, {})[float(each.value(axis))] = each
    best = max(curves.values(), key=lambda curve: (len(curve), _newest_start(curve.values())), default={})
    return tuple(best[size] for size in sorted(best))


def nearest_recordings(
    accelerator: Accelerator, settings: Mapping[str, object], axis: str = ""
) -> tuple[NearRecording, ...]:
    """Return recordings of the settings that differ least, which are named and not used.

    Only settings of the training may differ: rows of another protocol are never near.

    Args:
        accelerator: the accelerator.
        settings: as in `find_recording`.
        axis: a size that may vary; then only trainings of which two sizes or more were recorded.
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
    """Return whether a recording has the wanted settings, those that differ most often checked first."""
    return all(
        each.settings[_PLACE[name]] == settings[name] for name in _QUICK if name in settings and name not in exclude
    )


def _differing(each: RecordedTraining, settings: Mapping[str, object], exclude: Collection[str] = ()) -> list[str]:
    """Return columns in which a recording differs from the wanted settings."""
    return [name for name, value in settings.items() if name not in exclude and each.settings[_PLACE[name]] != value]


def _differences_text(each: RecordedTraining, settings: Mapping[str, object], differing: Collection[str]) -> str:
    named = [name for name in SETTING_COLUMNS if name in differing and name != "dataset_hash"]
    parts = [
        f"{field_title(name)} {_format_setting(each.value(name))} instead of {_format_setting(settings[name])}"
        for name in named
    ]
    return ", ".join(parts) or "other samples under the same name"


def _distance(each: RecordedTraining, settings: Mapping[str, object], differing: Collection[str]) -> tuple[int, float]:
    """Return how many settings differ, then by how many doublings."""
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
