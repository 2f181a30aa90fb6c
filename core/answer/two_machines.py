"""One training on two machines: measured on this one, recorded on an accelerator of another.

Blocks of two machines cannot take turns, so nothing pairs: the ratio of the two medians has an interval of its own,
and every sentence says that there are two machines. Rows of other trainings or protocols are refused; lanes may
differ, and one that computes something else than plain steps is mentioned.
Which recorded rows are of the same training is found by `core.answer.recorded_machines`.

The interval is that of `core.answer.statistics.ratio_interval`; how much a machine differs from one visit to the next
is not in it: nobody can tell that from one visit.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .. import units
from ..errors import NotComparable
from ..question.devices import capitalize_name
from ..question.experiment import display_name, inline_name
from ..question.models import boosting
from ..question.sweep import size_on_axis
from ..results.schema import Trial
from . import causes, comparable, diagnostics, interference, lane_check, study
from .crossover import locate_crossover
from .result import Basis, Crossover, Evidence
from .speedup import Verdict, contender_label, verdict_obstacle, verdict_text
from .statistics import MIN_PAIRS, closeness_reason, ratio_interval

VISIT_NOTE = "how much a machine differs from one visit to the next is not in the interval"

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
"""What tells two machines apart: name for people → column."""


@dataclass(frozen=True, kw_only=True)
class MachineSpeedup:
    """A recorded accelerator against a measurement of another machine: time per step, start-up apart.

    Attributes:
        verdict: as in `core.answer.speedup`.
        value: ratio of the medians, above 1 the recorded one is faster; None exactly if the verdict is missing.
        low: lower end of its 95 % interval.
        high: upper end.
        blocks: timed blocks of the measured one and of the recorded one.
        reason: why there is no winner or no verdict, in words; empty where there is a winner.
        sentence: all of this in words, with both machines.
        cautions: what else differs or is not in the interval, a sentence each.
    """

    verdict: Verdict
    value: float | None
    low: float | None
    high: float | None
    blocks: tuple[int, int]
    reason: str
    sentence: str
    cautions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """One training along an axis on two machines.

    Attributes:
        axis: key of `core.question.fields.SIZE_AXES`.
        measured: a row a size, ascending, all of one contender of one machine.
        recorded: the same of the accelerator of another machine, at sizes of its own.
    """

    axis: str
    measured: tuple[Trial, ...]
    recorded: tuple[Trial, ...]

    @property
    def id(self) -> str:
        """Name, 12 hexadecimal digits: the rows that take part."""
        rows = [row.trial_id for row in (*self.measured, *self.recorded)]
        return comparable.identity_hash(self.axis, rows)

    @property
    def shared(self) -> tuple[tuple[Trial, Trial], ...]:
        """(measured, recorded) of each size that both have, ascending."""
        theirs = {size_on_axis(row, self.axis): row for row in self.recorded}
        sizes = [(row, theirs.get(size_on_axis(row, self.axis))) for row in self.measured]
        return tuple((row, other) for row, other in sizes if other is not None)


def machine_speedup(measured: Trial, recorded: Trial) -> MachineSpeedup:
    """The recorded accelerator against what was measured on another machine.

    Raises:
        NotComparable: they differ in a setting, or are of one machine.
    """
    require_two_machines(measured, recorded)
    reason, figures = _obstacle(measured, recorded) or _too_few_blocks(measured, recorded), None
    if not reason:
        ends = ratio_interval(measured.step_s, recorded.step_s)
        middle = math.log(statistics.median(measured.step_s) / statistics.median(recorded.step_s))
        reason, figures = closeness_reason(middle, *map(math.log, ends), ratio="ratio"), (math.exp(middle), *ends)
    value, low, high = figures or (None, None, None)
    won: Verdict = "gpu_faster" if value and value > 1 else "cpu_faster"
    return MachineSpeedup(
        verdict="missing" if value is None else "too_close" if reason else won,
        value=value,
        low=low,
        high=high,
        blocks=_blocks(measured, recorded),
        reason=reason,
        sentence=_machines_sentence(measured, recorded, reason, figures),
        cautions=machine_cautions(measured, recorded),
    )


def require_two_machines(measured: Trial, recorded: Trial) -> None:
    """Refuse two rows that are not of the same training, or not of two machines.

    Raises:
        NotComparable: says which column differs, or that the machine is the same.
    """
    comparable.require_equal(measured, recorded, comparable.SETTING_COLUMNS)
    if measured.machine_id == recorded.machine_id:
        raise NotComparable(
            f"{capitalize_name(inline_name(recorded.contender))} was measured on the same machine as "
            f"{inline_name(measured.contender)}; "
            "there the two are compared by measuring them in turns."
        )


def machine_label(row: Trial) -> str:
    """A machine for people: its processor and the beginning of its id."""
    return f"{row.cpu_name} ({row.machine_id[:6]})"


def label_recording(recorded: Trial) -> Trial:
    """The row under a name that says what it is, for charts and tables beside rows of this machine; never stored."""
    return replace(recorded, contender=f"{display_name(recorded.contender)} recorded, {recorded.machine_id[:6]}")


def compare_fingerprints(measured: Trial, recorded: Trial) -> list[tuple[str, str, str]]:
    """Name, then the value on this machine and on that of the recording, of what tells two machines apart."""
    return [(name, _fact(measured, column), _fact(recorded, column)) for name, column in FINGERPRINT_TITLES.items()]


def find_meetings(measured: Iterable[Trial], recorded: Iterable[Trial], axis: str) -> list[Meeting]:
    """What rows of one machine and the recordings of an accelerator of another say together along an axis.

    Each contender of each machine has a curve of its own, and of several runs of one size the newest counts. Most
    shared sizes first, then most threads.
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
    """What was timed at each size on either machine, on one cost basis: seconds a step of each block, unpaired.

    A size that only one of the machines has keeps its times and an obstacle.
    """
    ours, theirs = (
        {size_on_axis(row, meeting.axis): row for row in rows} for rows in (meeting.measured, meeting.recorded)
    )
    return [
        _evidence_of_machines(size, ours.get(size), theirs.get(size), basis)
        for size in sorted(ours.keys() | theirs.keys())
    ]


def meeting_crossover(meeting: Meeting, basis: Basis = "steady") -> Crossover:
    """The answer of two machines, which says that it is one.

    Raises:
        NotComparable: rows of it are not of the same training, or not of two machines.
    """
    for pair in meeting.shared:
        comparable.require_equal(*pair, comparable.SETTING_COLUMNS)
    ours, theirs = meeting.measured[-1], meeting.recorded[-1]
    found = locate_crossover(
        meeting_evidence(meeting, basis),
        axis=boosting.answer_axis_name(meeting.axis, ours.model),
        basis=basis,
        baseline=_curve_contender(meeting.measured),
        challenger=f"{display_name(theirs.contender)} recorded ({theirs.device_name}, {theirs.machine_id[:6]})",
    )
    found = diagnostics.mark_interference(found, diagnostics.study_interference(meeting.shared))
    two = f"Two machines, not measured in turns: {machine_label(ours)} and {machine_label(theirs)}; {VISIT_NOTE}."
    return replace(found, sentence=f"{found.sentence} {two}")


def machine_cautions(measured: Trial, recorded: Trial) -> tuple[str, ...]:
    """What two machines do not share besides the device, a sentence each."""
    said = [
        "Two machines: the recorded device was fed by another processor, at another time, and "
        f"{VISIT_NOTE}. Only the scatter of blocks is."
    ]
    if measured.torch_version != recorded.torch_version:
        said.append(
            f"Other versions of torch: measured with {measured.torch_version}, recorded with {recorded.torch_version}; "
            "part of the difference may be theirs."
        )
    if measured.app_version != recorded.app_version:
        said.append(
            "Other versions of Crossover, which measure in the same way: measured with "
            f"{measured.app_version}, recorded with {recorded.app_version}."
        )
    said += [mark for row in (measured, recorded) if (mark := interference.row_interference([row]).sentence)]
    return (
        *said,
        *filter(None, (warn(measured, recorded) for warn in (lane_check.lane_warning, interference.gpu_notes))),
    )


def recording_cause(recorded: Trial) -> str:
    """What the recorded accelerator's step consists of, in a sentence; empty if it was not taken apart."""
    parts = causes.step_parts(recorded)
    return causes.accelerator_sentence(parts) if parts else ""


def _machines_sentence(
    measured: Trial, recorded: Trial, reason: str, figures: tuple[float, float, float] | None
) -> str:
    ours = f"{contender_label(measured)} on {machine_label(measured)}"
    theirs = f"{contender_label(recorded)} recorded on {machine_label(recorded)}"
    counted = f"{' and '.join(map(units.format_count, _blocks(measured, recorded)))} blocks on two machines"
    return verdict_text((theirs, ours), figures, reason, ratio="ratio of medians", counted=counted)


def _blocks(measured: Trial, recorded: Trial) -> tuple[int, int]:
    return len(measured.step_s), len(recorded.step_s)


def _obstacle(measured: Trial, recorded: Trial) -> str:
    """Why no verdict can be given, where nothing cancels; what hinders the recording is not this machine's."""
    if hindrance := verdict_obstacle(measured, measured) or interference.row_interference([measured]).hindrance:
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
"""What the rows of one curve have in common: machine, settings but the axis, and device and versions."""


def _group_curves(rows: Iterable[Trial], axis: str) -> dict[CurveKey, tuple[Trial, ...]]:
    columns = comparable.columns_except_axis(comparable.SETTING_COLUMNS, axis)
    curves: dict[CurveKey, dict[float, Trial]] = {}
    for row in sorted(rows, key=lambda row: row.started_at):
        settings, device = (
            comparable.column_values(row, columns),
            comparable.column_values(row, comparable.CURVE_COLUMNS),
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
    """Seconds a step of every block with its share of what is paid once; none where that was not measured."""
    once_s = study.one_time_cost_s(row, basis) if row else None
    if row is None or once_s is None:
        return ()
    share_s = once_s / (row.epochs * row.steps_per_epoch)
    return tuple(step_s + share_s for step_s in row.step_s if step_s > 0)


def _curve_contender(rows: Sequence[Trial]) -> str:
    """The contender for people; with its threads only if they were the same at every size."""
    return study.study_contender_label(rows[-1], {row.threads for row in rows})
