"""Studies: which rows of a store belong together, and their answer on one axis.

A study is a set of runs that agree in everything but one size. Rows of another methodology, machine, version or setting
form separate studies, and an explicit mix of such rows is refused. Machines of one kind that share the points of a
sweep have one `machine_id`; if each measures all points, each has its own. A study's timings become evidence for
`core.answer.crossover`; nothing here estimates, reads a file or draws.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from .. import units
from ..errors import NotComparable, require_choice
from ..question.experiment import MAX_CONTENDERS, Point, display_name
from ..question.fields import SIZE_AXES
from ..question.models import families
from ..question.sweep import Sweep, size_on_axis
from ..results.schema import Trial
from ..results.store import CUT_OFF
from . import causes, interference, speedup, training_cost
from .crossover import locate_crossover
from .interference import PairInterference
from .judgement import BASES, Basis, Crossover, Evidence, Size
from .verdict import Verdict

SIZED = tuple(dict.fromkeys((*SIZE_AXES, *itertools.chain.from_iterable(speedup.DEPENDENT_COLUMNS.values()))))
"""Sizes and the columns that depend on them: the runs of a study may differ in these columns."""

FIXED = tuple(name for name in speedup.STUDY_COLUMNS if name not in SIZED)
"""Columns in which the runs of every study agree."""

COLUMNS = (
    *("run_id", "trial_id", "started_at", "outcome", "device_kind", "threads", "cpu_name"),
    *(*FIXED, *SIZED, *speedup.DEVICE_COLUMNS),
)
"""Columns of a row by which studies are grouped and named; a light line of a row needs no others."""

Pair = tuple[Trial, Trial]
"""Baseline and challenger of one run."""

_read_fixed, _read_sizes, _read_device = attrgetter(*FIXED), attrgetter(*SIZED), attrgetter(*speedup.DEVICE_COLUMNS)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Runs that differ in one size only, of two contenders measured together: the input of a crossover.

    Attributes:
        id: identifier of 12 hexadecimal digits, computed from the settings in which its runs agree.
        axis: key of `core.question.fields.SIZE_AXES`.
        baseline: contender in written form, e.g. `cpu`.
        challenger: contender in written form, e.g. `cuda:0`.
        runs: (baseline row, challenger row) of the newest run of each size, ascending by size.
        repeats: earlier runs of these sizes to pool with the newest; empty unless `studies` is called with `repeats`.
    """

    id: str
    axis: str
    baseline: str
    challenger: str
    runs: tuple[tuple[Trial, Trial], ...]
    repeats: tuple[tuple[Trial, Trial], ...] = ()

    @property
    def every_run(self) -> tuple[tuple[Trial, Trial], ...]:
        """All runs that count: the newest of each size, then the repeats."""
        return (*self.runs, *self.repeats)

    @property
    def sizes(self) -> tuple[float, ...]:
        """Sizes of the study's runs on the axis."""
        return tuple(size_on_axis(baseline, self.axis) for baseline, _ in self.runs)

    @property
    def machine_id(self) -> str:
        """Identifier of the machine of all runs; machines that share the points of a sweep have the same."""
        return self.runs[0][0].machine_id

    @property
    def newest(self) -> str:
        """Start time of the newest run of the study."""
        return max(baseline.started_at for baseline, _ in self.runs)

    def evidence(self, basis: Basis) -> list[Evidence]:
        """Return the timings at each size, on one cost basis: seconds per step, in pairs of blocks.

        On `with_transfer` and `cold_start`, each step includes its share of the one-time cost, divided by the steps of
        the question. The one-time cost was measured once, so the interval does not include its noise.
        """
        visits, mixed = _visits(self.every_run), _mixed_loads(self)
        by_size: dict[float, list[Evidence]] = {}
        for place, pair in enumerate(self.every_run):
            found = _pair_evidence(*pair, self.axis, basis, visits[place], mixed.get(place, ""))
            by_size.setdefault(found.size, []).append(found)
        return [_pool_evidence(alike) for alike in by_size.values()]

    def crossover(self, basis: Basis = "steady") -> Crossover:
        """Return the answer of the study.

        Raises:
            InvalidValue: there is no such basis.
            NotComparable: the runs differ in more than the axis.
        """
        require_choice("basis", basis, BASES)
        _require_one_study(self)
        baseline, challenger = self.runs[-1]
        answer = locate_crossover(
            self.evidence(basis),
            axis=families.answer_axis_name(self.axis, baseline.model),
            basis=basis,
            baseline=_study_contender(self, baseline),
            challenger=_study_contender(self, challenger),
            cautions=_day_cautions(self),
        )
        company = interference.study_interference(self.every_run)
        return interference.mark_interference(answer, company, _load_of_answer(self, company))

    def part_times(self) -> tuple[dict[float, dict[str, float]], dict[float, dict[str, float]]]:
        """Return the seconds of each part of a step at each profiled size, for the baseline and for the challenger."""
        base, other = (
            {size_on_axis(pair[0], self.axis): found for pair in self.runs if (found := causes.part_times(pair[place]))}
            for place in (0, 1)
        )
        return base, other

    def cause(self, answer: Crossover) -> tuple[float, str] | None:
        """Return the measured size just below the crossing, and why the slower device is slower there; None if unknown.

        Raises:
            NotComparable: the rows of that size are not comparable.
        """
        below = [pair for pair in self.runs if answer.estimate and size_on_axis(pair[0], self.axis) <= answer.estimate]
        if not below or not all(map(causes.part_times, below[-1])):
            return None
        at = size_on_axis(below[-1][0], self.axis)
        return at, causes.difference_cause(*below[-1], self.verdict_at(at, answer))

    def verdict_at(self, at: float, answer: Crossover) -> Verdict | None:
        """Return the study's verdict at a measured size; None if the size was not measured."""
        pairs = {size_on_axis(pair[0], self.axis): pair for pair in self.runs}
        sizes = (size for size in answer.sizes if size.size == at and at in pairs)
        return next((size_verdict(pairs[at], size, answer) for size in sizes), None)


def studies(trials: Iterable[Trial], *, axis: str | None = None, least: int = 2, repeats: bool = False) -> list[Study]:
    """Return every study in the rows with at least `least` sizes: the most sizes first, then the newest.

    Rows of other methodologies, machines, versions or settings form separate studies. If a size has several runs, the
    newest run counts; a run that was cut off counts only if there is no other.

    Args:
        trials: rows of any store, in any order; or light lines of rows, of which only `COLUMNS` are read.
        axis: axis of the studies; without it, every field of the training that varies (`parameters` only if
            requested).
        least: fewest sizes.
        repeats: whether earlier runs of a size are pooled with the newest, except those that were cut off.

    Raises:
        InvalidValue: there is no such axis.
    """
    pairs = _group_by_settings(trials)
    found = itertools.chain.from_iterable(
        _group_by_axis(pairs, name, least, repeats=repeats) for name in study_axes(axis)
    )
    return sorted(found, key=study_rank, reverse=True)


def study_axes(axis: str | None) -> list[str]:
    """Return the requested axis, or else each field of the training that may vary."""
    return [require_choice("axis", axis, SIZE_AXES)] if axis else [name for name in SIZE_AXES if name != "parameters"]


def study_rank(study: Study) -> tuple[int, str, str]:
    """Return the sort key of a study: its number of sizes, then its age."""
    return len(study.sizes), study.newest, study.id


def find_study(study_id: str, trials: Sequence[Trial], axis: str) -> Study:
    """Return the study with a known id from its rows.

    Raises:
        NotComparable: the rows contain no study with this id.
    """
    for found in studies(trials, axis=axis, least=1):
        if found.id == study_id:
            return found
    raise NotComparable(f"The rows of the study {study_id} were removed or have changed.")


def group_by_machine(candidates: Iterable[Study], sweep: Sweep) -> dict[str, Study]:
    """Return one study per machine: of the sweep's baseline and last contender, else the one with most sizes."""
    pair, best = {str(sweep.contenders[0]), str(sweep.contenders[-1])}, dict[str, Study]()
    for study in sorted(candidates, key=lambda study: ({study.baseline, study.challenger} == pair, len(study.runs))):
        best[study.machine_id] = study
    return dict(sorted(best.items()))


def find_same_question(study: Study, others: Iterable[Study]) -> list[Study]:
    """Return studies of the same question on other machines: for each machine, the one with the most sizes."""
    found, question = {study.machine_id: study}, _question(study)
    for other in sorted(others, key=study_rank, reverse=True):
        if _question(other) == question:
            found.setdefault(other.machine_id, other)
    return [other for machine_id, other in found.items() if machine_id != study.machine_id]


def _question(study: Study) -> tuple[object, ...]:
    """Return everything in which studies of one question agree on all machines."""
    columns = speedup.columns_except_axis(speedup.CHART_COLUMNS, study.axis)
    settings = (getattr(study.runs[0][0], name) for name in columns)
    return study.axis, study.baseline, study.challenger, *settings


def _loads(study: Study) -> dict[int, str]:
    """Return the load of each run whose verdict other programs may have changed, by the place of the run."""
    found = ((place, speedup.load_condition(*pair)) for place, pair in enumerate(study.every_run))
    return {place: condition for place, condition in found if condition}


def _mixed_loads(study: Study) -> dict[int, str]:
    """Return the loaded runs to exclude, since enough other runs are valid for the quiet machine: the two never mix.

    At a size with a run on the quiet machine, the loaded runs are always excluded.
    """
    loads, rows = _loads(study), [baseline for baseline, _ in study.every_run]
    sizes = [size_on_axis(row, study.axis) for row in rows]
    quiet = {size for place, size in enumerate(sizes) if rows[place].block_pair and place not in loads}
    others = {sizes[place] for place in loads} - quiet
    enough = len(quiet) >= max(2, len(others))
    return {place: f"measured {load}" for place, load in loads.items() if enough or sizes[place] in quiet}


def _load_of_answer(study: Study, company: PairInterference | None) -> str:
    """Return the load to which the answer of a study is limited; empty if it is valid for the quiet machine."""
    left_out = _mixed_loads(study)
    counted = [load for place, load in _loads(study).items() if place not in left_out]
    if not counted:
        return ""
    return company.worse.condition if company and company.worse.many else counted[0]


def sweep_evidence(
    sweep: Sweep, answers: Mapping[Point, Sequence[Trial]], notes: Mapping[Point, str] | None = None
) -> list[Evidence]:
    """Return the evidence at each measured size of a sweep; its first or last contender may be the baseline.

    Args:
        sweep: sweep over one size.
        answers: rows of each point that was visited.
        notes: reasons why points may have no comparable rows.
    """
    pair = {str(sweep.contenders[0]), str(sweep.contenders[-1])}
    known: dict[float, Evidence] = {}
    for found in studies([row for rows in answers.values() for row in rows], axis=sweep.axes[0].name, least=1):
        if {found.baseline, found.challenger} == pair:
            for entry in found.evidence("steady"):
                known.setdefault(entry.size, entry)
    for point, note in {**dict.fromkeys(answers, ""), **(notes or {})}.items():
        size = sweep.size(point)
        known.setdefault(size, Evidence(size=size, obstacle=note or "its rows cannot be compared"))
    return list(known.values())


def study_identity(pair: tuple[Trial, Trial], axis: str) -> str:
    """Return the id of the study on an axis that two rows of a run belong to; list columns do not matter."""
    devices = (speedup.column_values(row, speedup.DEVICE_COLUMNS) for row in pair)
    agreed = speedup.identity_columns(speedup.columns_except_axis(speedup.STUDY_COLUMNS, axis), pair[0])
    shared = speedup.column_values(pair[0], agreed)
    return speedup.identity_hash(axis, (*shared, *itertools.chain.from_iterable(devices)))


def study_contender_label(trial: Trial, threads: Set[int]) -> str:
    """Return a readable name of a contender of a study, with its threads only if all its rows have the same."""
    return (
        speedup.contender_label(trial)
        if len(threads) == 1
        else f"{display_name(trial.contender)} ({trial.device_name}, best threads)"
    )


def _day_cautions(study: Study) -> list[str]:
    """Return a caution if the sizes were measured on several days, since a machine changes from one day to the next."""
    days = Counter(baseline.started_at[:10] for baseline, _ in study.runs)
    if len(days) < 2:
        return []
    listed = [f"{units.format_quantity(count, 'size')} on {day}" for day, count in sorted(days.items())]
    return [f"The sizes were measured on different days: {', '.join(listed[:-1])} and {listed[-1]}."]


def size_verdict(pair: Pair, size: Size, answer: Crossover) -> Verdict:
    """Return the verdict of a study at one size, which the readings of the other sizes also influence."""
    baseline, challenger = pair
    known = size.low is not None
    return Verdict(
        baseline=baseline.contender,
        challenger=challenger.contender,
        baseline_name=speedup.contender_label(baseline),
        challenger_name=speedup.contender_label(challenger),
        verdict=size.verdict,
        value=size.speedup if known else None,
        low=size.low,
        high=size.high,
        pairs=size.readings,
        reason=size.reason,
        condition=answer.condition,
        busy="" if answer.condition else answer.busy,
    )


def contender_pairs(trials: Iterable[Trial]) -> Iterable[Pair]:
    """Yield every two contenders of a run, with the CPU or the contender with fewer threads as baseline.

    The store accepts at most `MAX_CONTENDERS` rows per run; of rows from elsewhere, no more than that are paired.
    """
    ordered = sorted(trials, key=lambda trial: (trial.run_id, trial.trial_id))
    for _, run in itertools.groupby(ordered, key=lambda trial: trial.run_id):
        rows = itertools.islice(run, MAX_CONTENDERS)
        yield from itertools.combinations(sorted(rows, key=lambda trial: not speedup.is_host(trial)), 2)


Sizes = tuple[object, ...]
"""Values of a pair in the columns `SIZED`."""


def _group_by_settings(trials: Iterable[Trial]) -> dict[tuple[int, Sizes], list[Pair]]:
    """Group pairs by their settings; the last pair of each group counts, and the groups that count least are first.

    Returns:
        Pairs by a number for the values of all columns except `SIZED`, and by the values of `SIZED`.
    """
    numbers: dict[tuple[object, ...], int] = {}
    groups: dict[tuple[int, Sizes], list[Pair]] = {}
    for pair in sorted(contender_pairs(trials), key=_last_counts):
        fixed = (_read_fixed(pair[0]), _read_device(pair[0]), _read_device(pair[1]))
        settings = numbers.setdefault(fixed, len(numbers)), _read_sizes(pair[0])
        alike = groups.pop(settings, [])
        alike.append(pair)
        groups[settings] = alike  # put last
    return groups


def _group_by_axis(
    pairs: Mapping[tuple[int, Sizes], list[Pair]], axis: str, least: int, *, repeats: bool
) -> Iterable[Study]:
    """Yield studies of pairs that agree in everything except an axis and its dependent columns, with `least` sizes."""
    varying, place = speedup.axis_dependent_columns(axis) | {"parameters"}, SIZED.index(axis)
    agreed = [name not in varying for name in SIZED]
    groups: dict[tuple[int, Sizes], dict[Any, list[Pair]]] = {}
    for (number, sizes), alike in pairs.items():
        if size := sizes[place]:
            groups.setdefault((number, tuple(itertools.compress(sizes, agreed))), {})[size] = alike
    for sized in groups.values():
        if len(sized) < least:
            continue
        runs = tuple(sized[size][-1] for size in sorted(sized))
        earlier = (pair for size in sorted(sized) for pair in sized[size][:-1] if _is_whole(pair))
        baseline, challenger = (row.contender for row in runs[0])
        yield Study(
            id=study_identity(runs[0], axis),
            axis=axis,
            baseline=baseline,
            challenger=challenger,
            runs=runs,
            repeats=tuple(earlier) if repeats else (),
        )


def _last_counts(pair: Pair) -> tuple[bool, str]:
    """Return the sort key that puts the pair that counts last: the newest pair that was not cut off."""
    return _is_whole(pair), pair[0].started_at


def _is_whole(pair: Pair) -> bool:
    """Return whether neither row of a pair was cut off."""
    return all(row.outcome not in CUT_OFF for row in pair)


def _require_one_study(study: Study) -> None:
    first, *others = study.every_run
    for pair in others:
        speedup.require_equal(first[0], pair[0], speedup.columns_except_axis(speedup.STUDY_COLUMNS, study.axis))
        for before, after in zip(first, pair, strict=True):
            speedup.require_equal(before, after, speedup.DEVICE_COLUMNS)
    for baseline, challenger in study.every_run:
        speedup.require_equal(baseline, challenger, speedup.RUN_COLUMNS)
    if len(set(study.sizes)) < len(study.runs):
        raise NotComparable(
            f"Two runs of the study have the same {SIZE_AXES[study.axis]}. Only one run per size counts."
        )


def _visits(runs: Sequence[tuple[Trial, Trial]]) -> Counter[int]:
    """Return the number of separate stretches of blocks of each run, by its place; each round is separate."""
    begins = sorted(
        (begin, place, number)
        for place, (row, _) in enumerate(runs)
        for begin, number in itertools.zip_longest(row.block_begin_ns, row.block_round, fillvalue=0)
    )
    return Counter(place for (place, _), _ in itertools.groupby(begins, key=lambda one: one[1:]))


def _pair_evidence(
    baseline: Trial, challenger: Trial, axis: str, basis: Basis, visits: int, load: str = ""
) -> Evidence:
    size = size_on_axis(baseline, axis)
    obstacle = speedup.verdict_obstacle(baseline, challenger) or load
    carried = [one_time_cost_s(trial, basis) for trial in (baseline, challenger)]
    if not obstacle and None in carried:
        obstacle = (
            "the number of steps of a custom script is unknown" if baseline.training else "start-up was not measured"
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


def _pool_evidence(runs: Sequence[Evidence]) -> Evidence:
    """Pool the readings of all runs of one size; runs with an obstacle count only if there are no others."""
    timed = [entry for entry in runs if not entry.obstacle] or runs[:1]
    return replace(
        timed[0],
        baseline_s=tuple(itertools.chain.from_iterable(entry.baseline_s for entry in timed)),
        challenger_s=tuple(itertools.chain.from_iterable(entry.challenger_s for entry in timed)),
        visits=sum(entry.visits for entry in timed),
    )


def one_time_cost_s(trial: Trial, basis: Basis) -> float | None:
    """Return the one-time cost of a training in seconds, on a cost basis; None if it was not measured."""
    if basis == "steady":
        return 0.0
    if trial.training:
        return None
    if basis == "with_transfer":
        return trial.startup_transfer_s if trial.data_path == "resident" else 0.0
    return training_cost.startup_s(trial)


def _study_contender(study: Study, trial: Trial) -> str:
    return study_contender_label(
        trial, {row.threads for pair in study.runs for row in pair if row.contender == trial.contender}
    )
