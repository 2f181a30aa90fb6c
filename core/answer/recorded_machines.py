"""Recorded accelerators of other machines: which rows can substitute for a missing accelerator, and how they compare.

A recording is used only for exactly the same training: same data, model, sizes, batch, data path and methodology. A
similar recording is listed with its differences, but never used instead. Each variant of an accelerator is a separate
entry, because the variant shows how the accelerator was used. These functions accept whole rows and light lines of a
store: any object that has the scalar columns of `Trial` as attributes.

One training can be compared on two machines: measured on this machine, recorded on another. Blocks of two machines
cannot alternate, so they form no pairs. The interval of the ratio of the two medians is computed by
`core.answer.statistics.ratio_interval`, and every sentence mentions that there are two machines. Rows of other
trainings or methodologies are refused. Variants may differ, and a variant with other numerics than the default is
mentioned. The interval does not include how much a machine varies from one round to the next, which a single round
cannot show.
"""

import dataclasses
import heapq
import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from .. import units
from ..errors import NotComparable
from ..question.experiment import PROTOCOL_VERSION, Point, display_name, inline_name
from ..question.fields import SIZE_AXES, field_title
from ..question.lanes import FIELDS, capitalize_name
from ..question.models import families
from ..question.sweep import size_on_axis
from ..results.schema import Trial
from . import causes, interference, speedup, study, wording
from .crossover import locate_crossover
from .judgement import Basis, Crossover, Evidence
from .speedup import (
    CURVE_COLUMNS,
    SETTING_COLUMNS,
    TRAINING_COLUMNS,
    axis_dependent_columns,
    contender_label,
    verdict_obstacle,
)
from .statistics import MIN_PAIRS, ratio_interval
from .verdict import Verdict, VerdictCode, closeness_reason

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


VISIT_NOTE = "the interval does not include how much a machine varies from one run to the next"

FINGERPRINT_TITLES = {
    "Device": "device_name",
    "Driver": "device_driver",
    "Processor": "cpu_name",
    "Usable threads": "cores_usable",
    "Machine": "machine_id",
    "System": "system",
    "Python": "python_version",
    "torch": "torch_version",
    "Crossover": "app_version",
    "Commit": "app_commit",
    "Measured": "started_at",
}
"""Facts that distinguish two machines: name for people → column."""


@dataclass(frozen=True, kw_only=True)
class MachineSpeedup(Verdict):
    """Speedup of a recorded accelerator over a measurement on another machine, as the ratio of the two medians.

    Attributes:
        blocks: number of timed blocks in the measurement and in the recording.
        cautions: other differences and effects that the interval does not include, one sentence each.
    """

    blocks: tuple[int, int]
    cautions: tuple[str, ...]

    @property
    def names(self) -> tuple[str, str]:
        """Names of baseline and challenger within a sentence; the challenger is marked as recorded."""
        return inline_name(self.baseline), f"the recorded {display_name(self.challenger)}"


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """One training on two machines, with one varied size.

    Attributes:
        axis: key of `core.question.fields.SIZE_AXES`.
        measured: one row per size, ascending, all of one contender on one machine.
        recorded: one row per size, ascending, of the accelerator of another machine; its sizes may differ.
    """

    axis: str
    measured: tuple[Trial, ...]
    recorded: tuple[Trial, ...]

    @property
    def id(self) -> str:
        """Identifier of 12 hexadecimal digits, computed from the axis and the rows."""
        rows = [row.trial_id for row in (*self.measured, *self.recorded)]
        return speedup.identity_hash(self.axis, rows)

    @property
    def shared(self) -> tuple[tuple[Trial, Trial], ...]:
        """Pairs (measured, recorded) of each size that both machines have, ascending."""
        theirs = {size_on_axis(row, self.axis): row for row in self.recorded}
        sizes = [(row, theirs.get(size_on_axis(row, self.axis))) for row in self.measured]
        return tuple((row, other) for row, other in sizes if other is not None)


def machine_speedup(measured: Trial, recorded: Trial) -> MachineSpeedup:
    """Return the speedup of a recorded accelerator over a measurement on another machine.

    Raises:
        NotComparable: the rows differ in a setting, or are of the same machine.
    """
    require_two_machines(measured, recorded)
    reason, figures = _obstacle(measured, recorded) or _too_few_blocks(measured, recorded), None
    if not reason:
        ends = ratio_interval(measured.step_s, recorded.step_s)
        middle = math.log(statistics.median(measured.step_s) / statistics.median(recorded.step_s))
        reason, figures = closeness_reason(middle, *map(math.log, ends)), (math.exp(middle), *ends)
    value, low, high = figures or (None, None, None)
    won: VerdictCode = "gpu_faster" if value and value > 1 else "cpu_faster"
    blocks = len(measured.step_s), len(recorded.step_s)
    return MachineSpeedup(
        baseline=measured.contender,
        challenger=recorded.contender,
        baseline_name=f"{contender_label(measured)} on {machine_label(measured)}",
        challenger_name=f"{contender_label(recorded)} recorded on {machine_label(recorded)}",
        pairs=min(blocks),
        condition=_load_condition(measured, recorded, figures),
        counted=f"{' and '.join(map(units.format_count, blocks))} blocks on two machines",
        verdict="missing" if value is None else "too_close" if reason else won,
        value=value,
        low=low,
        high=high,
        blocks=blocks,
        reason=reason,
        cautions=machine_cautions(measured, recorded),
    )


def _load_condition(measured: Trial, recorded: Trial, figures: tuple[float, float, float] | None) -> str:
    """Return the load without which the verdict could be different; usually empty."""
    company = interference.trial_pair_interference(measured, recorded)
    return company.condition(*map(math.log, figures)) if company and figures else ""


def require_two_machines(measured: Trial, recorded: Trial) -> None:
    """Check that two rows are of the same training and of two machines.

    Raises:
        NotComparable: a column differs, or the machine is the same.
    """
    speedup.require_equal(measured, recorded, speedup.SETTING_COLUMNS)
    if measured.machine_id == recorded.machine_id:
        raise NotComparable(
            f"{capitalize_name(inline_name(recorded.contender))} was measured on the same machine as "
            f"{inline_name(measured.contender)}; "
            "to compare the two, measure them there in turns."
        )


def machine_label(row: Trial) -> str:
    """Return a readable name of a machine: its processor and the beginning of its id."""
    return f"{row.cpu_name} ({row.machine_id[:6]})"


def name_machines(numbers: Sequence[int], cpu_name: str, threads: int) -> str:
    """Return a name for numbered machines: "machine 3 (AMD EPYC, 2 CPU threads)", "machines 1, 2 (…)"."""
    about = ", ".join(filter(None, (cpu_name, units.format_quantity(threads, "CPU thread") if threads else "")))
    return f"machine{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))} ({about})"


def label_recording(recorded: Trial) -> Trial:
    """Return a row with a name marked as recorded, for charts and tables with local rows; never stored."""
    return replace(recorded, contender=f"{display_name(recorded.contender)} recorded, {recorded.machine_id[:6]}")


def compare_fingerprints(measured: Trial, recorded: Trial) -> list[tuple[str, str, str]]:
    """Return the facts that distinguish two machines: name, value on this machine, value on the recording's machine."""
    return [(name, _fact(measured, column), _fact(recorded, column)) for name, column in FINGERPRINT_TITLES.items()]


def find_meetings(measured: Iterable[Trial], recorded: Iterable[Trial], axis: str) -> list[Meeting]:
    """Find the trainings on one machine that were also recorded on another machine's accelerator, on one axis.

    Each contender of each machine has a separate curve. If a size has several runs, the newest run counts. The result
    is sorted by the number of shared sizes, then of measured sizes, then of threads, the most first.
    """
    ours, theirs = (_group_curves(rows, axis) for rows in (measured, recorded))
    found = [
        Meeting(axis=axis, measured=rows, recorded=others)
        for (machine_id, settings, _), rows in ours.items()
        for (their_id, their_settings, _), others in theirs.items()
        if settings == their_settings and machine_id != their_id
    ]
    return sorted(found, key=lambda one: (len(one.shared), len(one.measured), one.measured[-1].threads), reverse=True)


def meeting_evidence(meeting: Meeting, basis: Basis) -> list[Evidence]:
    """Return the timings at each size on either machine, on one cost basis: seconds per step of each block, unpaired.

    The entry of a size that only one machine has contains the times of this machine and an obstacle.
    """
    ours, theirs = (
        {size_on_axis(row, meeting.axis): row for row in rows} for rows in (meeting.measured, meeting.recorded)
    )
    return [
        _evidence_of_machines(size, ours.get(size), theirs.get(size), basis)
        for size in sorted(ours.keys() | theirs.keys())
    ]


def meeting_crossover(meeting: Meeting, basis: Basis = "steady") -> Crossover:
    """Return the crossover of two machines, with a sentence that mentions both of them.

    Raises:
        NotComparable: the rows are not of the same training, or not of two machines.
    """
    for pair in meeting.shared:
        speedup.require_equal(*pair, speedup.SETTING_COLUMNS)
    ours, theirs = meeting.measured[-1], meeting.recorded[-1]
    found = locate_crossover(
        meeting_evidence(meeting, basis),
        axis=families.answer_axis_name(meeting.axis, ours.model),
        basis=basis,
        baseline=_curve_contender(meeting.measured),
        challenger=f"{display_name(theirs.contender)} recorded ({theirs.device_name}, {theirs.machine_id[:6]})",
    )
    company = interference.study_interference(meeting.shared)
    loads = [load for pair in meeting.shared if (load := machine_speedup(*pair).condition)]
    found = interference.mark_interference(found, company, loads[0] if loads else "")
    two = f"Two machines, not measured in turns: {machine_label(ours)} and {machine_label(theirs)}; {VISIT_NOTE}."
    return replace(found, sentence=f"{found.sentence} {two}")


def machine_cautions(measured: Trial, recorded: Trial) -> tuple[str, ...]:
    """Describe the differences between two machines other than the device, in one sentence each."""
    said = [f"Two machines: the recorded device ran with another processor, at another time, and {VISIT_NOTE}."]
    if measured.torch_version != recorded.torch_version:
        said.append(
            f"Other versions of torch: measured with {measured.torch_version}, recorded with {recorded.torch_version}; "
            "part of the difference may come from that."
        )
    if measured.app_version != recorded.app_version:
        said.append(
            "Other versions of Crossover, which measure in the same way: measured with "
            f"{measured.app_version}, recorded with {recorded.app_version}."
        )
    said += [mark for row in (measured, recorded) if (mark := interference.row_interference([row]).sentence)]
    return (
        *said,
        *filter(None, (warn(measured, recorded) for warn in (speedup.lane_warning, interference.gpu_notes))),
    )


def recording_cause(recorded: Trial) -> str:
    """Return the step breakdown of the recorded accelerator, in a sentence; empty if it was not profiled."""
    parts = causes.step_parts(recorded)
    return causes.accelerator_sentence(parts) if parts else ""


def _obstacle(measured: Trial, recorded: Trial) -> str:
    """Return why unpaired rows cannot have a verdict; an obstacle in the recording is described as such."""
    if hindrance := verdict_obstacle(measured, measured):
        return hindrance
    if recorded.outcome == "out_of_memory":
        return f"the model and its batch did not fit into the memory of {recorded.device_name}"
    if verdict_obstacle(recorded, recorded) or interference.row_interference([recorded]).many:
        return "the machine of the recording was too busy, or its clock readings cannot be right"
    return ""


def _too_few_blocks(measured: Trial, recorded: Trial) -> str:
    for row, where in ((measured, "in the measurement"), (recorded, "in the recording")):
        if len(row.step_s) < MIN_PAIRS:
            return f"{units.format_count(len(row.step_s))} blocks were timed {where} and {MIN_PAIRS} are needed"
    return ""


def _fact(row: Trial, column: str) -> str:
    value = str(getattr(row, column))
    return f"{value} ({units.format_count(row.threads)} used)" if column == "cores_usable" and row.threads else value


CurveKey = tuple[str, tuple[object, ...], tuple[object, ...]]
"""Key of the rows of one curve: machine, settings without the axis, and device and versions."""


def _group_curves(rows: Iterable[Trial], axis: str) -> dict[CurveKey, tuple[Trial, ...]]:
    columns = speedup.columns_except_axis(speedup.SETTING_COLUMNS, axis)
    curves: dict[CurveKey, dict[float, Trial]] = {}
    for row in sorted(rows, key=lambda row: row.started_at):
        settings, device = (
            speedup.column_values(row, columns),
            speedup.column_values(row, speedup.CURVE_COLUMNS),
        )
        curves.setdefault((row.machine_id, settings, device), {})[size_on_axis(row, axis)] = row
    return {key: tuple(curve[size] for size in sorted(curve)) for key, curve in curves.items()}


def _evidence_of_machines(size: float, measured: Trial | None, recorded: Trial | None, basis: Basis) -> Evidence:
    seconds = [_step_seconds(row, basis) for row in (measured, recorded)]
    return Evidence(
        size=size,
        baseline_s=seconds[0],
        challenger_s=seconds[1],
        paired=False,
        obstacle=_size_obstacle(measured, recorded, seconds),
    )


def _size_obstacle(measured: Trial | None, recorded: Trial | None, seconds: Sequence[Sequence[float]]) -> str:
    if measured is None:
        return "recorded, but not measured"
    if recorded is None:
        return "measured, but not recorded"
    if reason := _obstacle(measured, recorded):
        return reason
    return "" if all(seconds) else "no block was timed, or start-up was not measured"


def _step_seconds(row: Trial | None, basis: Basis) -> tuple[float, ...]:
    """Return the seconds per step of every block, including its share of the one-time cost.

    Empty if the one-time cost was not measured.
    """
    once_s = study.one_time_cost_s(row, basis) if row else None
    if row is None or once_s is None:
        return ()
    share_s = once_s / (row.epochs * row.steps_per_epoch)
    return tuple(step_s + share_s for step_s in row.step_s if step_s > 0)


def _curve_contender(rows: Sequence[Trial]) -> str:
    """Return a readable name of the contender, with its threads only if they were the same at every size."""
    return study.study_contender_label(rows[-1], {row.threads for row in rows})
