"""Comparison of two studies or two runs: the differences, and whether both may share a chart.

The module only describes rows and answers. Rows measured with different versions of the methodology never share a
chart; the sentence with the reason is composed here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ... import units
from ...errors import CrossoverError
from ...question import describe
from ...question.experiment import display_name
from ...question.fields import axis_title, field_title, value_label
from ...results.schema import Trial
from .. import speedup, wording
from ..judgement import Crossover
from ..run import Run, RunPair
from ..study import Study
from . import trust

TRAINING_FACTS = (*speedup.TRAINING_COLUMNS, "parameters", "dataset_hash")
MEASURING = (
    *(name for name in speedup.CHART_COLUMNS if name not in TRAINING_FACTS),
    "budget_s",
    "app_version",
    "app_commit",
)
MACHINE_FACTS = (
    *("machine_id", "cpu_name", "cores", "cores_usable", "memory_bytes", "system"),
    *("python_version", "torch_version", "torchvision_version", "omp_wait_policy"),
)
DEVICE_FACTS = ("contender", "device_name", "device_memory_bytes", "device_driver", "threads")

Facts = Mapping[tuple[str, str], str]
"""(group, fact) → value in words."""

IN_WORDS = "in words"
"""Name of the fact that contains a study's answer as a sentence."""

CELL_LETTERS = 48
"""Maximum letters in a cell of a table; a longer answer is a sentence, and is shown above the table."""

MAX_VALUES_LISTED = 4
"""Maximum number of different values of a fact that are listed; more are counted."""


@dataclass(frozen=True, kw_only=True)
class SideDifference:
    """A fact in which two sides differ: its group, its display name, and its value on each side."""

    group: str
    what: str
    first: str
    second: str

    @property
    def is_sentence(self) -> bool:
        """Whether the fact is an answer in words, which is too long for a cell."""
        return self.group == "Answer" and max(len(self.first), len(self.second)) > CELL_LETTERS


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """A comparison of two sides: the differences, in the order of the groups, and the number of equal facts."""

    differences: tuple[SideDifference, ...]
    alike: int


def compare_studies(first: Study, second: Study, answers: tuple[Crossover | None, Crossover | None]) -> SideBySide:
    """Compare two studies, including their answers if they have any."""
    return _find_differences(*(_study_facts(of, answer) for of, answer in zip((first, second), answers, strict=True)))


def compare_runs(first: Sequence[Trial], second: Sequence[Trial]) -> SideBySide:
    """Compare two runs, each given by its rows with the baseline first."""
    return _find_differences(_run_facts(first), _run_facts(second))


def environment_facts(rows: Sequence[Trial]) -> dict[str, str]:
    """Return machine, devices, versions and methodology of rows, by display name; varying values are listed."""
    found = {**_columns("Machine", rows, MACHINE_FACTS), **_devices(rows), **_columns("Measuring", rows, MEASURING)}
    return {what: said for (_, what), said in found.items() if said}


def chart_refusal(first: Study, second: Study) -> str:
    """Return why two studies must not share a chart, in a sentence; empty if they may."""
    one, other = first.runs[0][0], second.runs[0][0]
    if one.protocol_version != other.protocol_version:
        return (
            f"It was measured by protocol {other.protocol_version}, the study that is open by protocol "
            f"{one.protocol_version}: rows of different protocols never share a chart."
        )
    if first.axis != second.axis:
        axes = axis_title(second.axis), axis_title(first.axis)
        return f"It varies the {axes[0]}, the study that is open the {axes[1]}: they have no axis in common."
    for name in speedup.differing_columns(one, other, speedup.columns_except_axis(speedup.CHART_COLUMNS, first.axis)):
        theirs, ours = _format_value(name, getattr(other, name)), _format_value(name, getattr(one, name))
        return (
            f"Its {_column_title(name)} is {theirs}, but the open study's is {ours}: "
            "only studies of the same training share a chart."
        )
    return ""


def _find_differences(first: Facts, second: Facts) -> SideBySide:
    keys = list(dict.fromkeys([*first, *second]))
    groups = list(dict.fromkeys(group for group, _ in keys))
    differences = [
        SideDifference(group=key[0], what=key[1], first=first.get(key, ""), second=second.get(key, ""))
        for key in sorted(keys, key=lambda key: groups.index(key[0]))
        if first.get(key, "") != second.get(key, "")
    ]
    return SideBySide(differences=tuple(differences), alike=len(keys) - len(differences))


def _study_facts(study: Study, answer: Crossover | None) -> Facts:
    rows = [row for run in study.runs for row in run]
    varied = speedup.axis_dependent_columns(study.axis) | {"parameters"}
    sizes = (
        f"{wording.format_size(study.sizes[0])} to {wording.format_size(study.sizes[-1])} ({len(study.sizes)} sizes)"
    )
    return {
        ("Settings", "varied"): describe.label_axis(study.axis, rows[0].model),
        ("Settings", "sizes"): sizes,
        **_columns(
            "Settings",
            rows,
            [name for name in speedup.meaningful_columns(TRAINING_FACTS, rows[0]) if name not in varied],
        ),
        **_columns("Measuring", rows, MEASURING),
        ("Measuring", "quality checks"): trust.trust_mark(rows).label,
        **_columns("Machine", rows, MACHINE_FACTS),
        **_devices(rows),
        **(_crossover(answer) if answer else {}),
    }


def _crossover(answer: Crossover) -> Facts:
    said = {("Answer", IN_WORDS): answer.sentence}
    if answer.estimate is not None and answer.low is not None and answer.high is not None:
        said[("Answer", "crossover")] = wording.format_size(float(f"{answer.estimate:.3g}"))
        said[("Answer", "95 % interval")] = f"{wording.format_size(answer.low)} to {wording.format_size(answer.high)}"
    return said


def _run_facts(rows: Sequence[Trial]) -> Facts:
    return {
        **_columns("Settings", rows, speedup.meaningful_columns(TRAINING_FACTS, rows[0])),
        **_columns("Measuring", rows, MEASURING),
        ("Measuring", "measured at"): rows[0].started_at,
        ("Measuring", "quality checks"): trust.trust_mark(rows).label,
        **_columns("Machine", rows, MACHINE_FACTS),
        **_devices(rows),
        **_run_answer(rows),
    }


def _run_answer(rows: Sequence[Trial]) -> dict[tuple[str, str], str]:
    said: dict[tuple[str, str], str] = {}
    run = Run(rows)
    for answer in run.rows:
        row, step_s, start_s = answer.row, answer.step.median_s, answer.startup_s
        said[("Answer", f"step, {display_name(row.contender)}")] = (
            units.format_duration(step_s) if step_s else "not timed"
        )
        said[("Answer", f"start-up, {display_name(row.contender)}")] = units.format_duration(start_s) if start_s else ""
        said[("Answer", f"test accuracy, {display_name(row.contender)}")] = answer.accuracy_shown
        said[("Answer", f"outcome, {display_name(row.contender)}")] = value_label("outcome", row.outcome)
    for pair in run.pairs:
        against = f"{display_name(pair.challenger.contender)} against {display_name(pair.baseline.contender)}"
        said[("Answer", against)] = _verdict_or_reason(pair)
    return said


def _verdict_or_reason(pair: RunPair) -> str:
    try:
        return pair.verdict
    except CrossoverError as error:
        return str(error)


def _columns(group: str, rows: Sequence[Trial], names: Iterable[str]) -> dict[tuple[str, str], str]:
    return {(group, _column_title(name)): _format_values(name, [getattr(row, name) for row in rows]) for name in names}


def _devices(rows: Sequence[Trial]) -> dict[tuple[str, str], str]:
    """Return facts of each device by its position in a run, because names of devices are not unique across machines."""
    places: dict[str, list[Trial]] = {}
    for row in rows:
        places.setdefault(row.contender, []).append(row)
    return {
        ("Devices", f"{_ordinal(place)} device: {_column_title(name)}"): _format_values(
            name, [getattr(row, name) for row in known]
        )
        for place, known in enumerate(places.values())
        for name in DEVICE_FACTS
    }


def _ordinal(place: int) -> str:
    return ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")[min(place, 7)]


def _format_values(name: str, values: Sequence[object]) -> str:
    distinct = list(dict.fromkeys(values))
    if len(distinct) > MAX_VALUES_LISTED:
        return f"{len(distinct)} different ones"
    return ", ".join(filter(None, (_format_value(name, value) for value in distinct)))


def _format_value(name: str, value: object) -> str:
    if name == "parameters" and not value:  # unknown for a custom script
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_bytes") and isinstance(value, int):
        return units.format_memory(value)
    if name.endswith("_s") and isinstance(value, int | float):
        return units.format_duration(value)
    if isinstance(value, int | float):
        return str(value) if name in ("seed", "protocol_version") else wording.format_size(value)
    return display_name(str(value)) if name == "contender" else value_label(name, value)


COLUMN_TITLES = {
    "machine_id": "machine",
    "cpu_name": "processor",
    "cores": "processor threads",
    "cores_usable": "usable processor threads",
    "memory_bytes": "memory",
    "device_memory_bytes": "memory",
    "device_name": "name",
    "device_driver": "driver",
    "python_version": "Python",
    "torch_version": "torch",
    "torchvision_version": "torchvision",
    "app_version": "Crossover",
    "app_commit": "commit of the code",
    "omp_wait_policy": "how threads wait",
    "protocol_version": "protocol",
    "contender": "as requested",
    "dataset_hash": "hash of the data",
}


def _column_title(name: str) -> str:
    return COLUMN_TITLES.get(name, field_title(name))
