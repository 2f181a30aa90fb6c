"""Studies: which rows of a store belong together, and what they say along one axis.

A study is a set of runs that agree in everything but one size. Rows of another protocol, machine, version or setting
form studies of their own: nothing is mixed, and whoever puts such rows together by hand is refused. What a study
timed becomes evidence for `core.answer.crossover`; nothing here estimates, reads a file or draws.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from ..errors import NotComparable, require_choice
from ..question.experiment import MAX_CONTENDERS, Point, display_name
from ..question.fields import SIZE_AXES
from ..question.models import boosting
from ..question.sweep import Sweep, size_on_axis
from ..results.schema import Trial
from ..results.store import CUT_OFF
from . import causes, comparable, diagnostics, speedup, training_time
from .crossover import locate_crossover
from .result import BASES, Basis, Crossover, Evidence

SIZED = tuple(dict.fromkeys((*SIZE_AXES, *itertools.chain.from_iterable(comparable.DEPENDENT_COLUMNS.values()))))
"""Sizes, and what follows from them: columns in which the runs of some study differ."""

FIXED = tuple(name for name in comparable.STUDY_COLUMNS if name not in SIZED)
"""Columns in which the runs of every study agree."""

COLUMNS = (
    *("run_id", "trial_id", "started_at", "outcome", "device_kind", "threads", "cpu_name"),
    *(*FIXED, *SIZED, *comparable.DEVICE_COLUMNS),
)
"""Columns of a row by which studies are grouped and named; a light line of a row needs no others."""

Pair = tuple[Trial, Trial]
"""Baseline and challenger of one run."""

_read_fixed, _read_sizes, _read_device = attrgetter(*FIXED), attrgetter(*SIZED), attrgetter(*comparable.DEVICE_COLUMNS)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Runs that differ in one size only, of two contenders measured together: what a crossover is computed from.

    Attributes:
        id: name, 12 hexadecimal digits: everything in which its runs agree.
        axis: key of `core.question.fields.SIZE_AXES`.
        baseline: contender as asked for, e.g. `cpu`.
        challenger: contender as asked for, e.g. `cuda:0`.
        runs: (baseline row, challenger row) of the newest run of each size, ascending by size.
    """

    id: str
    axis: str
    baseline: str
    challenger: str
    runs: tuple[tuple[Trial, Trial], ...]

    @property
    def sizes(self) -> tuple[float, ...]:
        """Places of the study's runs on the axis."""
        return tuple(size_on_axis(baseline, self.axis) for baseline, _ in self.runs)

    @property
    def newest(self) -> str:
        """When the newest run of the study began."""
        return max(baseline.started_at for baseline, _ in self.runs)


def studies(trials: Iterable[Trial], *, axis: str | None = None, least: int = 2) -> list[Study]:
    """Every study that rows hold: at least `least` sizes that agree in all else. Most sizes first, then newest.

    Rows of other protocols, machines, versions or settings form studies of their own and never mix. Of several runs of
    one size the newest counts, one that was cut off only where there is no other.

    Args:
        trials: rows of any store, in any order; or light lines of rows, of which only `COLUMNS` are read.
        axis: only studies along this axis; without it, each study along the field of the training that varies
            (`parameters` is only looked at when asked for).
        least: fewest sizes.

    Raises:
        InvalidValue: there is no such axis.
    """
    newest = _find_newest_pairs(trials)
    found = itertools.chain.from_iterable(_group_by_axis(newest, name, least) for name in study_axes(axis))
    return sorted(found, key=study_rank, reverse=True)


def study_axes(axis: str | None) -> list[str]:
    """The axis that is asked for, or else each field of the training that may vary."""
    return [require_choice("axis", axis, SIZE_AXES)] if axis else [name for name in SIZE_AXES if name != "parameters"]


def study_rank(study: Study) -> tuple[int, str, str]:
    """Sort key of studies: number of sizes, then age."""
    return len(study.sizes), study.newest, study.id


def find_study(study_id: str, trials: Sequence[Trial], axis: str) -> Study:
    """The study of a name that rows are known to hold, from all its rows.

    Raises:
        NotComparable: they hold none of that name.
    """
    for found in studies(trials, axis=axis, least=1):
        if found.id == study_id:
            return found
    raise NotComparable(f"The rows of the study {study_id} are not there any more, or are others now.")


def study_evidence(study: Study, basis: Basis) -> list[Evidence]:
    """What a study timed at each size, on one cost basis: seconds a step, of pairs of blocks.

    On `with_transfer` and `cold_start` each step carries its share of what is paid once: the steps that were asked for
    divide it. What is paid once was measured once, so its own noise is not in the interval.
    """
    visits = _visits(study.runs)
    return [_pair_evidence(*pair, study.axis, basis, visits[place]) for place, pair in enumerate(study.runs)]


def sweep_evidence(
    sweep: Sweep, answers: Mapping[Point, Sequence[Trial]], notes: Mapping[Point, str] | None = None
) -> list[Evidence]:
    """Evidence at each size of a sweep that was visited, of its first and last contender, whichever is the baseline.

    Args:
        sweep: along one size.
        answers: rows of each point that was visited.
        notes: why points may have no comparable rows.
    """
    pair = {str(sweep.contenders[0]), str(sweep.contenders[-1])}
    known: dict[float, Evidence] = {}
    for found in studies([row for rows in answers.values() for row in rows], axis=sweep.axes[0].name, least=1):
        if {found.baseline, found.challenger} == pair:
            for entry in study_evidence(found, "steady"):
                known.setdefault(entry.size, entry)
    for point, note in {**dict.fromkeys(answers, ""), **(notes or {})}.items():
        size = sweep.size(point)
        known.setdefault(size, Evidence(size=size, obstacle=note or "its rows cannot be compared"))
    return list(known.values())


def study_identity(pair: tuple[Trial, Trial], axis: str) -> str:
    """Name of the study along an axis that two rows of a run belong to; lists of a row do not matter."""
    devices = (comparable.column_values(row, comparable.DEVICE_COLUMNS) for row in pair)
    agreed = comparable.identity_columns(comparable.columns_except_axis(comparable.STUDY_COLUMNS, axis), pair[0])
    shared = comparable.column_values(pair[0], agreed)
    return comparable.identity_hash(axis, (*shared, *itertools.chain.from_iterable(devices)))


def study_contender_label(trial: Trial, threads: Set[int]) -> str:
    """A contender of a study for people; with its threads only if those of all its rows are the same."""
    return (
        speedup.contender_label(trial)
        if len(threads) == 1
        else f"{display_name(trial.contender)} ({trial.device_name}, best threads)"
    )


def crossover(study: Study, basis: Basis = "steady") -> Crossover:
    """The answer of a study.

    Raises:
        InvalidValue: there is no such basis.
        NotComparable: its runs differ in something else than its axis.
    """
    require_choice("basis", basis, BASES)
    _require_one_study(study)
    baseline, challenger = study.runs[-1]
    answer = locate_crossover(
        study_evidence(study, basis),
        axis=boosting.answer_axis_name(study.axis, baseline.model),
        basis=basis,
        baseline=_study_contender(study, baseline),
        challenger=_study_contender(study, challenger),
    )
    return diagnostics.mark_interference(answer, diagnostics.study_interference(study.runs))


def study_parts(study: Study) -> tuple[dict[float, dict[str, float]], dict[float, dict[str, float]]]:
    """Seconds of each part of a step at each size, of the baseline and of the challenger; where it was taken apart."""
    base, other = (
        {size_on_axis(pair[0], study.axis): found for pair in study.runs if (found := causes.part_times(pair[place]))}
        for place in (0, 1)
    )
    return base, other


def study_cause(study: Study, answer: Crossover) -> tuple[float, str] | None:
    """The measured size just below the crossing, and why the slower device is slower there; None if it is not known.

    Raises:
        NotComparable: the rows of that size are not.
    """
    below = [pair for pair in study.runs if answer.estimate and size_on_axis(pair[0], study.axis) <= answer.estimate]
    if not below or not all(map(causes.part_times, below[-1])):
        return None
    return size_on_axis(below[-1][0], study.axis), causes.difference_cause(*below[-1])


def contender_pairs(trials: Iterable[Trial]) -> Iterable[Pair]:
    """Every two contenders of a run, the CPU or the one with fewer threads as baseline.

    A run has at most `MAX_CONTENDERS` rows, which the store's door sees to; of rows by another way no more are paired.
    """
    ordered = sorted(trials, key=lambda trial: (trial.run_id, trial.trial_id))
    for _, run in itertools.groupby(ordered, key=lambda trial: trial.run_id):
        rows = itertools.islice(run, MAX_CONTENDERS)
        yield from itertools.combinations(sorted(rows, key=lambda trial: not speedup.is_host(trial)), 2)


Sizes = tuple[object, ...]
"""Values of `SIZED` of a pair."""


def _find_newest_pairs(trials: Iterable[Trial]) -> dict[tuple[int, Sizes], Pair]:
    """Find the pair that counts for each combination of settings, the one that counts least first.

    Returns:
        Pairs by a number of everything but `SIZED`, and by the values of that.
    """
    numbers: dict[tuple[object, ...], int] = {}
    newest: dict[tuple[int, Sizes], Pair] = {}
    for pair in sorted(contender_pairs(trials), key=_last_counts):
        fixed = (_read_fixed(pair[0]), _read_device(pair[0]), _read_device(pair[1]))
        settings = numbers.setdefault(fixed, len(numbers)), _read_sizes(pair[0])
        newest.pop(settings, None)  # so that it is put last
        newest[settings] = pair
    return newest


def _group_by_axis(newest: Mapping[tuple[int, Sizes], Pair], axis: str, least: int) -> Iterable[Study]:
    """Group pairs that agree in everything but an axis and what follows from it; at least so many sizes each."""
    varying, place = comparable.axis_dependent_columns(axis) | {"parameters"}, SIZED.index(axis)
    agreed = [name not in varying for name in SIZED]
    groups: dict[tuple[int, Sizes], dict[Any, Pair]] = {}
    for (number, sizes), pair in newest.items():
        if size := sizes[place]:
            groups.setdefault((number, tuple(itertools.compress(sizes, agreed))), {})[size] = pair
    for sized in groups.values():
        if len(sized) < least:
            continue
        runs = tuple(sized[size] for size in sorted(sized))
        baseline, challenger = (row.contender for row in runs[0])
        yield Study(id=study_identity(runs[0], axis), axis=axis, baseline=baseline, challenger=challenger, runs=runs)


def _last_counts(pair: Pair) -> tuple[bool, str]:
    """Sorts pairs of rows so that of those of one size the last counts: the newest of those that were not cut off."""
    return all(row.outcome not in CUT_OFF for row in pair), pair[0].started_at


def _require_one_study(study: Study) -> None:
    first, *others = study.runs
    for pair in others:
        comparable.require_equal(
            first[0], pair[0], comparable.columns_except_axis(comparable.STUDY_COLUMNS, study.axis)
        )
        for before, after in zip(first, pair, strict=True):
            comparable.require_equal(before, after, comparable.DEVICE_COLUMNS)
    for baseline, challenger in study.runs:
        comparable.require_equal(baseline, challenger, comparable.RUN_COLUMNS)
    if len(set(study.sizes)) < len(study.runs):
        raise NotComparable(
            f"Two runs of the study have the same {SIZE_AXES[study.axis]}; one run of each size counts."
        )


def _visits(runs: Sequence[tuple[Trial, Trial]]) -> Counter[int]:
    """How often each run was come back to while others were measured, by its place: stretches of blocks of its own."""
    begins = sorted((begin, place) for place, (row, _) in enumerate(runs) for begin in row.block_begin_ns)
    return Counter(place for place, _ in itertools.groupby(place for _, place in begins))


def _pair_evidence(baseline: Trial, challenger: Trial, axis: str, basis: Basis, visits: int) -> Evidence:
    size = size_on_axis(baseline, axis)
    obstacle = speedup.verdict_obstacle(baseline, challenger)
    carried = [one_time_cost_s(trial, basis) for trial in (baseline, challenger)]
    if not obstacle and None in carried:
        obstacle = (
            "how many steps one's own training has is not known" if baseline.training else "start-up was not measured"
        )
    base, other = speedup.pair_steps(baseline, challenger)
    if not obstacle and not base:
        obstacle = "no pair of blocks was timed"
    shares = [(once_s or 0.0) / (baseline.epochs * baseline.steps_per_epoch) for once_s in carried]
    return Evidence(
        size=size,
        baseline_s=tuple(step_s + shares[0] for step_s in base),
        challenger_s=tuple(step_s + shares[1] for step_s in other),
        visits=max(visits, 1),
        obstacle=obstacle,
    )


def one_time_cost_s(trial: Trial, basis: Basis) -> float | None:
    """Seconds that a training pays once, on a cost basis; None if they were not measured."""
    if basis == "steady":
        return 0.0
    if trial.training:
        return None
    if basis == "with_transfer":
        return trial.startup_transfer_s if trial.data_path == "resident" else 0.0
    return training_time.startup_s(trial)


def _study_contender(study: Study, trial: Trial) -> str:
    return study_contender_label(
        trial, {row.threads for pair in study.runs for row in pair if row.contender == trial.contender}
    )
