"""One training on two machines: measured on this one, recorded on an accelerator of another.

Blocks of two machines cannot take turns, so nothing pairs: the ratio of the two medians has an interval of its own,
and every sentence says that there are two machines. Rows of other trainings or protocols are refused; lanes may
differ, and one that computes something else than plain steps is mentioned.
Which recorded rows are of the same training is found by `core.answer.study.machines.recorded`.

The interval is that of `core.answer.statistics.ratio_interval`; how much a machine differs from one visit to the next
is not in it: nobody can tell that from one visit.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from core import units
from core.answer import comparable
from core.answer.run import busy, card_notes, causes, lane_check
from core.answer.run.speedup import Verdict, label, obstacle
from core.answer.statistics import MIN_PAIRS, closeness, ratio_interval
from core.answer.study import study
from core.answer.study.crossover import locate
from core.answer.study.doubts import company
from core.answer.study.result import Basis, Crossover, Evidence
from core.answer.verdicts import WordedVerdict, write_verdict
from core.errors import NotComparable
from core.question.device_kinds import begun
from core.question.experiment import spoken, titled
from core.question.models import boosting
from core.question.sweep import size_of
from core.results.schema import Trial

NOT_IN_IT = "how much a machine differs from one visit to the next is not in the interval"

FINGERPRINT = {
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
class Across:
    """A recorded accelerator against a measurement of another machine: time per step, start-up apart.

    Attributes:
        verdict: as in `core.answer.run.speedup`.
        value: ratio of the medians, above 1 the recorded one is faster; None exactly if the verdict is missing.
        low: lower end of its 95 % interval.
        high: upper end.
        blocks: timed blocks of the measured one and of the recorded one.
        reason: why there is no winner or no verdict, in words; empty where there is a winner.
        words: all of this in words, with both machines.
        cautions: what else differs or is not in the interval, a sentence each.
    """

    verdict: Verdict
    value: float | None
    low: float | None
    high: float | None
    blocks: tuple[int, int]
    reason: str
    words: WordedVerdict
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
        return comparable.name(self.axis, rows)

    @property
    def shared(self) -> tuple[tuple[Trial, Trial], ...]:
        """(measured, recorded) of each size that both have, ascending."""
        theirs = {size_of(row, self.axis): row for row in self.recorded}
        sizes = [(row, theirs.get(size_of(row, self.axis))) for row in self.measured]
        return tuple((row, other) for row, other in sizes if other is not None)


def speedup(measured: Trial, recorded: Trial) -> Across:
    """The recorded accelerator against what was measured on another machine.

    Raises:
        NotComparable: they differ in a setting, or are of one machine.
    """
    require_two_machines(measured, recorded)
    reason, figures = _obstacle(measured, recorded) or _too_few(measured, recorded), None
    if not reason:
        ends = ratio_interval(measured.step_s, recorded.step_s)
        middle = math.log(statistics.median(measured.step_s) / statistics.median(recorded.step_s))
        reason, figures = closeness(middle, *map(math.log, ends), ratio="ratio"), (math.exp(middle), *ends)
    value, low, high = figures or (None, None, None)
    won: Verdict = "gpu_faster" if value and value > 1 else "cpu_faster"
    return Across(
        verdict="missing" if value is None else "too_close" if reason else won,
        value=value,
        low=low,
        high=high,
        blocks=_blocks(measured, recorded),
        reason=reason,
        words=_write_verdict(measured, recorded, reason, figures),
        cautions=cautions(measured, recorded),
    )


def require_two_machines(measured: Trial, recorded: Trial) -> None:
    """Refuse two rows that are not of the same training, or not of two machines.

    Raises:
        NotComparable: says which column differs, or that the machine is the same.
    """
    comparable.require_equal(measured, recorded, comparable.SETTINGS)
    if measured.machine_id == recorded.machine_id:
        raise NotComparable(
            f"{begun(spoken(recorded.contender))} was measured on the same machine as {spoken(measured.contender)}; "
            "there the two are compared by measuring them in turns."
        )


def machine(row: Trial) -> str:
    """A machine for people: its processor and the beginning of its id."""
    return f"{row.cpu_name} ({row.machine_id[:6]})"


def shown(recorded: Trial) -> Trial:
    """The row under a name that says what it is, for charts and tables beside rows of this machine; never stored."""
    return replace(recorded, contender=f"{titled(recorded.contender)} recorded, {recorded.machine_id[:6]}")


def fingerprints(measured: Trial, recorded: Trial) -> list[tuple[str, str, str]]:
    """Name, then the value on this machine and on that of the recording, of what tells two machines apart."""
    return [(name, _fact(measured, column), _fact(recorded, column)) for name, column in FINGERPRINT.items()]


def meetings(measured: Iterable[Trial], recorded: Iterable[Trial], axis: str) -> list[Meeting]:
    """What rows of one machine and the recordings of an accelerator of another say together along an axis.

    Each contender of each machine has a curve of its own, and of several runs of one size the newest counts. Most
    shared sizes first, then most threads.
    """
    ours, theirs = (_curves(rows, axis) for rows in (measured, recorded))
    found = [
        Meeting(axis=axis, measured=rows, recorded=others)
        for (machine_id, settings, _), rows in ours.items()
        for (their_id, their_settings, _), others in theirs.items()
        if settings == their_settings and machine_id != their_id
    ]
    return sorted(found, key=lambda one: (len(one.shared), len(one.measured), one.measured[-1].threads), reverse=True)


def evidence(meeting: Meeting, basis: Basis) -> list[Evidence]:
    """What was timed at each size on either machine, on one cost basis: seconds a step of each block, unpaired.

    A size that only one of the machines has keeps its times and an obstacle.
    """
    ours, theirs = ({size_of(row, meeting.axis): row for row in rows} for rows in (meeting.measured, meeting.recorded))
    return [_evidence(size, ours.get(size), theirs.get(size), basis) for size in sorted(ours.keys() | theirs.keys())]


def crossover(meeting: Meeting, basis: Basis = "steady") -> Crossover:
    """The answer of two machines, which says that it is one.

    Raises:
        NotComparable: rows of it are not of the same training, or not of two machines.
    """
    for pair in meeting.shared:
        comparable.require_equal(*pair, comparable.SETTINGS)
    ours, theirs = meeting.measured[-1], meeting.recorded[-1]
    found = locate(
        evidence(meeting, basis),
        axis=boosting.axis_called(meeting.axis, ours.model),
        basis=basis,
        baseline=_name(meeting.measured),
        challenger=f"{titled(theirs.contender)} recorded ({theirs.device_name}, {theirs.machine_id[:6]})",
    )
    found = company.marked(found, company.of_rows(meeting.shared))
    two = f"Two machines, not measured in turns: {machine(ours)} and {machine(theirs)}; {NOT_IN_IT}."
    return replace(found, sentence=f"{found.sentence} {two}")


def cautions(measured: Trial, recorded: Trial) -> tuple[str, ...]:
    """What two machines do not share besides the device, a sentence each."""
    said = [
        "Two machines: the recorded device was fed by another processor, at another time, and "
        f"{NOT_IN_IT}. Only the scatter of blocks is."
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
    said += [mark for row in (measured, recorded) if (mark := busy.company([row]).sentence)]
    return (*said, *filter(None, (warn(measured, recorded) for warn in (lane_check.warning, card_notes.notes))))


def cause(recorded: Trial) -> str:
    """What the recorded accelerator's step consists of, in a sentence; empty if it was not taken apart."""
    parts = causes.parts(recorded)
    return causes.accelerator(parts) if parts else ""


def _write_verdict(
    measured: Trial, recorded: Trial, reason: str, figures: tuple[float, float, float] | None
) -> WordedVerdict:
    return write_verdict(
        (spoken(measured.contender), f"the recorded {titled(recorded.contender)}"),
        (f"{label(measured)} on {machine(measured)}", f"{label(recorded)} recorded on {machine(recorded)}"),
        figures,
        reason,
        counted=f"{' and '.join(map(units.count, _blocks(measured, recorded)))} blocks on two machines",
    )


def _blocks(measured: Trial, recorded: Trial) -> tuple[int, int]:
    return len(measured.step_s), len(recorded.step_s)


def _obstacle(measured: Trial, recorded: Trial) -> str:
    """Why no verdict can be given, where nothing cancels; what hinders the recording is not this machine's."""
    if hindrance := obstacle(measured, measured) or busy.company([measured]).hindrance:
        return hindrance
    if recorded.outcome == "out_of_memory":
        return f"the model and its batch did not fit into the memory of {recorded.device_name}"
    if obstacle(recorded, recorded) or busy.company([recorded]).many:
        return "the machine of the recording was too busy, or its clock readings cannot be right"
    return ""


def _too_few(measured: Trial, recorded: Trial) -> str:
    for row, where in ((measured, "in the measurement"), (recorded, "in the recording")):
        if len(row.step_s) < MIN_PAIRS:
            return f"{units.count(len(row.step_s))} blocks were timed {where} and {MIN_PAIRS} are needed"
    return ""


def _fact(row: Trial, column: str) -> str:
    value = str(getattr(row, column))
    return f"{value} ({units.count(row.threads)} used)" if column == "cores_usable" and row.threads else value


Curve = tuple[str, tuple[object, ...], tuple[object, ...]]
"""What the rows of one curve have in common: machine, settings but the axis, and device and versions."""


def _curves(rows: Iterable[Trial], axis: str) -> dict[Curve, tuple[Trial, ...]]:
    columns = comparable.along(comparable.SETTINGS, axis)
    curves: dict[Curve, dict[float, Trial]] = {}
    for row in sorted(rows, key=lambda row: row.started_at):
        settings, device = comparable.values(row, columns), comparable.values(row, comparable.CURVE)
        curves.setdefault((row.machine_id, settings, device), {})[size_of(row, axis)] = row
    return {key: tuple(curve[size] for size in sorted(curve)) for key, curve in curves.items()}


def _evidence(size: float, ours: Trial | None, theirs: Trial | None, basis: Basis) -> Evidence:
    seconds = [_seconds(row, basis) for row in (ours, theirs)]
    return Evidence(
        size=size,
        baseline_s=seconds[0],
        challenger_s=seconds[1],
        paired=False,
        obstacle=_hindrance(ours, theirs, seconds),
    )


def _hindrance(ours: Trial | None, theirs: Trial | None, seconds: Sequence[Sequence[float]]) -> str:
    if ours is None:
        return "recorded, but not measured"
    if theirs is None:
        return "measured, but not recorded"
    if reason := _obstacle(ours, theirs):
        return reason
    return "" if all(seconds) else "no block was timed, or start-up was not measured"


def _seconds(row: Trial | None, basis: Basis) -> tuple[float, ...]:
    """Seconds a step of every block with its share of what is paid once; none where that was not measured."""
    once_s = study.once_s(row, basis) if row else None
    if row is None or once_s is None:
        return ()
    share_s = once_s / (row.epochs * row.steps_per_epoch)
    return tuple(step_s + share_s for step_s in row.step_s if step_s > 0)


def _name(rows: Sequence[Trial]) -> str:
    """The contender for people; with its threads only if they were the same at every size."""
    return study.name(rows[-1], {row.threads for row in rows})
