"""Comparison of one training on two machines: measured on this machine, recorded on an accelerator of another machine.

Blocks of two machines cannot alternate, so they form no pairs. The interval of the ratio of the two medians is computed
by `core.answer.statistics.ratio_interval`, and every sentence mentions that there are two machines. Rows of other
trainings or methodologies are refused. Variants may differ, and a variant with other numerics than the default is
mentioned. `core.answer.recorded_machines` finds the recorded rows of the same training.

The interval does not include how much a machine varies from one round to the next, which a single round cannot show.

The module also groups the studies of one question by machine. A study never combines rows of two machines. Machines of
one kind that share the points of a sweep count as one machine, because their rows have the same `machine_id`. If each
machine measures all points, each has a separate `machine_id`.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .. import units
from ..errors import NotComparable
from ..question.devices import capitalize_name
from ..question.experiment import display_name, inline_name
from ..question.models import families
from ..question.sweep import Sweep, size_on_axis
from ..results.schema import Trial
from . import causes, comparable, interference, speedup, study
from .crossover import locate_crossover
from .result import Basis, Crossover, Evidence
from .speedup import contender_label, verdict_obstacle
from .statistics import MIN_PAIRS, ratio_interval
from .study import Study
from .verdict import Verdict, VerdictCode, closeness_reason

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
        return comparable.identity_hash(self.axis, rows)

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
    comparable.require_equal(measured, recorded, comparable.SETTING_COLUMNS)
    if measured.machine_id == recorded.machine_id:
        raise NotComparable(
            f"{capitalize_name(inline_name(recorded.contender))} was measured on the same machine as "
            f"{inline_name(measured.contender)}; "
            "to compare the two, measure them there in turns."
        )


def machine_label(row: Trial) -> str:
    """Return a readable name of a machine: its processor and the beginning of its id."""
    return f"{row.cpu_name} ({row.machine_id[:6]})"


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
        comparable.require_equal(*pair, comparable.SETTING_COLUMNS)
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


def group_by_machine(found: Iterable[Study], asked: Sweep) -> dict[str, Study]:
    """Return one study per machine: of the sweep's baseline and last contender, else the one with most sizes."""
    pair, best = {str(asked.contenders[0]), str(asked.contenders[-1])}, dict[str, Study]()
    for entry in sorted(found, key=lambda entry: ({entry.baseline, entry.challenger} == pair, len(entry.runs))):
        best[read_machine_id(entry)] = entry
    return dict(sorted(best.items()))


def name_machines(numbers: Sequence[int], cpu_name: str, threads: int) -> str:
    """Return a name for numbered machines: "machine 3 (AMD EPYC, 2 CPU threads)", "machines 1, 2 (…)"."""
    about = ", ".join(filter(None, (cpu_name, units.format_quantity(threads, "CPU thread") if threads else "")))
    return f"machine{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))} ({about})"


def read_machine_id(of: Study) -> str:
    """Return the id of the machine of a study."""
    return of.runs[0][0].machine_id


def find_same_question(of: Study, others: Iterable[Study]) -> list[Study]:
    """Return studies of the same question on other machines: for each machine, the one with the most sizes."""
    first, columns = of.runs[0][0], comparable.columns_except_axis(comparable.CHART_COLUMNS, of.axis)
    found: dict[str, Study] = {read_machine_id(of): of}
    for other in sorted(others, key=study.study_rank, reverse=True):
        row = other.runs[0][0]
        alike = (other.axis, other.baseline, other.challenger) == (of.axis, of.baseline, of.challenger)
        if alike and all(getattr(row, name) == getattr(first, name) for name in columns):
            found.setdefault(read_machine_id(other), other)
    return [other for machine_id, other in found.items() if machine_id != read_machine_id(of)]
