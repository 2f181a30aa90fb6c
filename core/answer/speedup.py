"""The speedup of two rows of a run with its interval and certainty, and the step time of a row.

All answers are computed from the raw values of the rows; nothing here measures, reads a file or draws. A run's first
contender is the baseline, and any other contender is the challenger. Rows that were not measured together are refused.
Only medians are used: no block is ever deleted, and outliers are counted instead.

The module also lists the columns of two rows that must agree before the rows are compared, for every comparison. And it
checks whether a variant computed the same numbers as eager fp32, by comparing the first losses of both. Both were
trained from the same weights on the same batches on the same device. Therefore they differ only by rounding if the
variant has the same numerics. A variant that differs more has lower precision or is wrong; the result says which.
"""

import dataclasses
import functools
import hashlib
import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .. import units
from ..errors import InvalidValue, NotComparable
from ..question import custom, lanes, models
from ..question.experiment import EVERY_EPOCH, Experiment, Point, display_name, inline_name
from ..question.fields import FIELDS, field_title
from ..question.lanes import Lane, capitalize_name
from ..question.presets import FEWEST_PAIRS, LOOKS
from ..results.schema import Trial
from . import interference
from .statistics import (
    MIN_PAIRS,
    MOST_SHIFT,
    ROUNDS_TAIL,
    Repeatability,
    count_outliers,
    estimate_repeatability,
    median_interval,
    relative_noise,
    rounds_interval,
)
from .verdict import Verdict, VerdictCode, closeness_reason

TOLERANCE = 1e-4
"""Largest relative difference of a loss that rounding can explain in the first steps.

fp32 rounds to 6e-8. Another order of summation changes a loss of the first step by about 1e-7, and the difference grows
during training: after 20 steps of the tutorials' networks, compiled steps, fused updates and micro-batches differ by
1e-7 to 2e-6. A hundred times this difference is still smaller than the effect of a mistake: a learning rate that is 1 %
off, a batch in another order or inputs rounded to TF32 change a loss by 1e-3 or more."""

ROUNDING_GROWTH = 10
"""Factor by which a variant's losses may differ more than default losses after a nudge of some roundings.

The nudge moves the initial weights. Some trainings amplify rounding: for a small ResNet with a learning rate of 0.1,
the difference grew from 1e-7 after five steps to 5e-4 after eight. A variant rounds at other places, so its losses
diverge some steps earlier or later.
"""


@dataclass(frozen=True, kw_only=True)
class LaneAgreement:
    """Difference between the first losses of a variant and of the default.

    Attributes:
        difference: largest relative difference of a loss; infinite if only one of the two losses is a number.
        within: whether every loss differs by no more than rounding can explain.
        same_mathematics: whether the variant promises the same numerics.
    """

    difference: float
    steps: int
    within: bool
    same_mathematics: bool
    sentence: str

    @property
    def broken(self) -> bool:
        """Whether a variant that promises the same numerics computed other numbers."""
        return self.same_mathematics and not self.within


def check_lane(trial: Trial) -> LaneAgreement | None:
    """Compare a variant's first losses with the default's; None if nothing was compared, as for the default itself."""
    pairs = list(zip(trial.lane_loss, trial.reference_loss, strict=False))
    lane = find_lane(trial)
    if not pairs or lane is None:
        return None
    differences = [_difference(mine, plain) for mine, plain in pairs]
    explained = _rounding_limits(trial, len(pairs))
    within = all(found <= allowed for found, allowed in zip(differences, explained, strict=True))
    return LaneAgreement(
        difference=max(differences),
        steps=len(pairs),
        within=within,
        same_mathematics=lane.has_same_numerics,
        sentence=_lane_sentence(trial, lane, max(differences), len(pairs), within=within),
    )


def _rounding_limits(trial: Trial, steps: int) -> list[float]:
    """Return the largest difference that rounding can explain for each of the first losses."""
    apart = map(_difference, trial.nudged_loss, trial.reference_loss)
    carried = [*itertools.accumulate(apart, max)]
    known = [max(TOLERANCE, ROUNDING_GROWTH * found) if math.isfinite(found) else math.inf for found in carried]
    return [*known, *[TOLERANCE] * steps][:steps]


def find_lane(trial: Trial) -> Lane | None:
    """Return the variant of a row; None if this version does not support it."""
    try:
        return Lane.from_row(trial)
    except InvalidValue:
        return None


def lane_title(trial: Trial) -> str:
    """Return the title of a row's variant; empty for the default and for a variant that this version lacks."""
    lane = find_lane(trial)
    return lane.title if lane else ""


def lane_warning(*trials: Trial) -> str:
    """Describe the variants with other numerics that a verdict has to mention; empty without any."""
    found = [(trial, check_lane(trial)) for trial in trials]
    told = [known.sentence for _, known in found if known and (known.broken or not known.same_mathematics)]
    return " ".join(told)


def _difference(loss: float, plain_loss: float) -> float:
    if loss == plain_loss or (math.isnan(loss) and math.isnan(plain_loss)):
        return 0.0
    found = abs(loss - plain_loss) / max(abs(plain_loss), 1e-12)
    return found if math.isfinite(found) else math.inf


def _lane_sentence(trial: Trial, lane: Lane, difference: float, steps: int, *, within: bool) -> str:
    on = f"Training on {inline_name(trial.contender)}"
    first, differ = (f"the first {steps} losses", "differ") if steps > 1 else ("the first loss", "differs")
    if lane.has_same_numerics and within:
        carried = "" if difference <= TOLERANCE else "; default loops that start with different rounding differ as much"
        return (
            f"{on} computes the same as the default loop: {first} {differ} by {_difference_text(difference)} at "
            f"most{carried}."
        )
    if lane.has_same_numerics:
        return (
            f"{on} does not compute the same as the default loop: {first} {differ} by up to "
            f"{_difference_text(difference)}, where rounding explains {_difference_text(TOLERANCE)}, so its times "
            "belong to a different training."
        )
    return f"{on} uses lower precision: {first} {differ} from the default loop by up to {_difference_text(difference)}."


def _difference_text(difference: float) -> str:
    """Format a relative difference: 1.2e-7 → "1 part in 8,300,000"."""
    if not math.isfinite(difference):
        return "infinitely"
    if difference >= 0.01:
        return units.format_share(difference)
    return f"1 part in {float(f'{1 / difference:.1e}'):,.0f}" if difference else "nothing"


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Seconds per step of one trial, summarized over its timed blocks.

    Attributes:
        low_s: lower end of the 95 % interval of the median, which ends at `high_s`; None below `MIN_PAIRS` blocks.
        noise: interquartile range over the median; None below two blocks or if the median is 0.
        outliers: number of blocks further than `OUTLIER` median absolute deviations from the median; they are included.
    """

    median_s: float | None
    low_s: float | None
    high_s: float | None
    noise: float | None
    outliers: int
    blocks: int


def contender_label(trial: Trial) -> str:
    """Return a readable name of a contender and its device: `CPU (AMD EPYC, 2 threads)`, `1 CPU thread (AMD EPYC)`."""
    name = display_name(trial.contender)
    said = "CPU thread" in name or not (is_host(trial) and trial.threads)
    threads = "" if said else f", {units.format_quantity(trial.threads, 'thread')}"
    return f"{name} ({trial.device_name}{threads})"


def is_host(trial: Trial) -> bool:
    """Return whether the training ran on the CPU."""
    return trial.device_kind == "cpu"


def step_time(trial: Trial) -> StepTime:
    """Summarise the timed blocks of one trial; warm-up and start-up are not part of it."""
    return _summarize_times(trial.step_s)


@functools.lru_cache(maxsize=32)
def _summarize_times(times: tuple[float, ...]) -> StepTime:
    """Summarize step times; cached, because a page needs the result often for rows of many thousand blocks."""
    interval = median_interval(times)
    return StepTime(
        median_s=statistics.median(times) if times else None,
        low_s=interval[0] if interval else None,
        high_s=interval[1] if interval else None,
        noise=relative_noise(times),
        outliers=count_outliers(times),
        blocks=len(times),
    )


def speedup(baseline: Trial, challenger: Trial) -> Verdict:
    """Return the speedup of the challenger over the baseline, from pairs of blocks measured back to back.

    The speedup is the median of the logarithms of all pairs' ratios, with its interval. Disturbances of both blocks of
    a pair cancel, and swapping the two rows inverts the answer. If the run had rounds, the interval covers the result
    of another run (`statistics`). Rows of earlier versions have no rounds, so the shift of the machine between
    rounds is unknown. Their interval remains the one of their blocks, and their verdicts do not change; their figures
    name no rounds.

    Raises:
        NotComparable: the rows differ in a column of `comparable.RUN_COLUMNS`.
    """
    require_equal(baseline, challenger, RUN_COLUMNS)
    hindrance = verdict_obstacle(baseline, challenger)
    pairs = len(set(baseline.block_pair) & set(challenger.block_pair))
    ratios = [] if hindrance else log_ratios(baseline, challenger)
    interval = _ratio_interval(baseline, challenger, ratios)
    unknown = Verdict(
        baseline=baseline.contender,
        challenger=challenger.contender,
        baseline_name=contender_label(baseline),
        challenger_name=contender_label(challenger),
        verdict="missing",
        value=None,
        low=None,
        high=None,
        pairs=pairs,
        rounds=len(set(pair_rounds(baseline, challenger))),
        reason=hindrance or _too_few_reason(pairs),
        advice="" if hindrance else _more_pairs_advice(baseline),
        caution=" ".join(filter(None, (warn(baseline, challenger) for warn in (lane_warning, interference.gpu_notes)))),
    )
    if interval is None:
        return unknown
    company = interference.trial_pair_interference(baseline, challenger)
    estimate = statistics.median(ratios)
    value, low, high = math.exp(estimate), math.exp(interval[0]), math.exp(interval[1])
    reason = closeness_reason(estimate, *interval)
    code = "too_close" if reason else _winner_code(baseline, challenger, challenger_won=estimate > 0)
    condition = company.condition(estimate, *interval) if company else ""
    found = replace(
        unknown, verdict=code, value=value, low=low, high=high, reason=reason, advice="", condition=condition
    )
    if condition:
        return replace(found, advice="" if found.has_winner else interference.QUIET_ADVICE)
    advice = _close_advice(baseline, estimate) if reason and not found.is_equal else ""
    return replace(found, advice=advice, busy=company.sentence if company else "")


WAITING_STEP_S = 0.02
"""Seconds of a step below which thread waits matter: forty waits of 100 µs (docs/decisions/0007) are a fifth of it."""


def describe_thread_waits(baseline: Trial, challenger: Trial) -> str:
    """Describe how the CPU threads waited for each other, with the line to set; empty if it hardly matters."""
    several = [row for row in (baseline, challenger) if is_host(row) and row.threads > 1 and row.omp_wait_policy]
    if not any(row.step_s and statistics.median(row.step_s) < WAITING_STEP_S for row in several):
        return ""
    policy, *limits = several[0].omp_wait_policy.split(", ")
    line = " ".join([*([f"OMP_WAIT_POLICY={policy}"] if policy else []), *limits])
    return f"The CPU threads waited with {line}. Set this variable for your own script to get the same times."


def verdict_obstacle(baseline: Trial, challenger: Trial) -> str:
    """Return why no verdict can be given, as text that follows a colon; empty if there is no obstacle yet."""
    for trial in (baseline, challenger):
        if trial.outcome == "out_of_memory":
            where = inline_name(trial.contender)
            return f"the model and its batch did not fit into the memory of {where}, so nothing was timed"
        if trial.lane_failed:
            return f"the variant of {inline_name(trial.contender)} failed, so nothing was timed"
        if any(time <= 0 for time in trial.step_s):
            return f"the clock readings of {inline_name(trial.contender)} contain a block that took no time"
    return ""


CLOSE_ADVICE = "Measure more pairs, or a size at which they differ more"

SHIFT_ADVICE = "Measure a size at which they differ more; runs on this machine differ too much for more pairs to help"


def _close_advice(trial: Trial, estimate: float) -> str:
    """Return the advice where no winner is certain: more pairs help only if whole runs shift by less than that."""
    reach = -statistics.NormalDist().inv_cdf(ROUNDS_TAIL) * (trial.machine_run_shift or 0.0)
    return SHIFT_ADVICE if reach > abs(estimate) else CLOSE_ADVICE


def _too_few_reason(pairs: int) -> str:
    were = "was" if pairs == 1 else "were"
    return f"{units.format_quantity(pairs, 'pair')} of blocks {were} measured and {MIN_PAIRS} are needed"


def _more_pairs_advice(trial: Trial) -> str:
    known = {"timed": "Ask for more pairs", "completed": "Train more epochs"}
    return known.get(trial.outcome, "Give it a larger time budget")


def find_timed_pairs(rows: Iterable[Trial], baseline: str, challenger: str) -> list[tuple[Trial, Trial]]:
    """Return the two rows of each run in which both contenders were timed; none for a contender and itself."""
    runs: dict[str, dict[str, Trial]] = {}
    for row in rows:
        if row.block_steps:
            runs.setdefault(row.run_id, {})[row.contender] = row
    return [(run[baseline], run[challenger]) for run in runs.values() if len({baseline, challenger} & run.keys()) == 2]


def pair_steps(baseline: Trial, challenger: Trial) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the seconds per step of both rows for each pair of blocks that both have, in the order of the pairs."""
    base = dict(zip(baseline.block_pair, baseline.step_s, strict=True))
    other = dict(zip(challenger.block_pair, challenger.step_s, strict=True))
    rounds = sorted(base.keys() & other.keys())
    return tuple(base[each] for each in rounds), tuple(other[each] for each in rounds)


def log_ratios(baseline: Trial, challenger: Trial) -> list[float]:
    """Return ln(baseline time / challenger time) for each pair of blocks that both rows have, in order."""
    return [math.log(base) - math.log(other) for base, other in zip(*pair_steps(baseline, challenger), strict=True)]


def pair_rounds(baseline: Trial, challenger: Trial) -> list[int]:
    """Return the round in which each pair was measured, in the order of `log_ratios`; empty if the run had none."""
    known = dict(zip(baseline.block_pair, baseline.block_round, strict=False))
    return [known[pair] for pair in sorted(known.keys() & set(challenger.block_pair))]


def _ratio_interval(baseline: Trial, challenger: Trial, ratios: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the logarithm of a speedup; None below `MIN_PAIRS` pairs."""
    rounds = pair_rounds(baseline, challenger)
    if not rounds:
        return median_interval(ratios)
    if len(ratios) < MIN_PAIRS:
        return None
    machine = Repeatability(
        shift=min(baseline.machine_shift or 0.0, MOST_SHIFT),
        run_shift=min(baseline.machine_run_shift or 0.0, MOST_SHIFT),
        freedom=baseline.machine_repeats,
    )
    return rounds_interval(ratios, rounds, machine)


def _winner_code(baseline: Trial, challenger: Trial, *, challenger_won: bool) -> VerdictCode:
    if is_host(baseline) != is_host(challenger):
        winner = challenger if challenger_won else baseline
        return "cpu_faster" if is_host(winner) else "gpu_faster"
    return "gpu_faster" if challenger_won else "cpu_faster"


LONE_CONTENDER_BLOCKS = 20
"""Number of blocks for a single contender: its time is accurate to about 4 % if the blocks scatter by 5 %."""


def is_certain(trials: Sequence[Trial]) -> bool:
    """Return whether each verdict against the first contender of a run names a winner or two equally fast devices.

    The intervals allow for four looks, so such verdicts may end a run at any look. A contender that was not timed, and
    never will be, is ignored.
    """
    timed = [trial for trial in trials if trial.step_s]
    if not trials or not trials[0].step_s:
        return True
    if len(timed) == 1:
        return len(trials) > 1 or len(timed[0].step_s) >= LONE_CONTENDER_BLOCKS
    verdicts = (speedup(timed[0], other) for other in timed[1:])
    return all(verdict.has_winner or verdict.is_equal for verdict in verdicts)


def answers_experiment(experiment: Experiment, trials: Sequence[Trial]) -> bool:
    """Return whether a stored run, with one row per contender, can be served as the answer to its question.

    A run that is valid only for a loaded machine is never served. A run that was only timed must be certain or have
    reached the last look, unless the question requests the whole training or a number of pairs.
    """
    if any(load_condition(trials[0], other) for other in trials[1:]):
        return False
    if experiment.whole or experiment.pairs != EVERY_EPOCH or any(trial.outcome != "timed" for trial in trials):
        return True
    return is_certain(trials) or min(len(trial.block_pair) for trial in trials) >= LOOKS[-1]


def load_condition(baseline: Trial, challenger: Trial) -> str:
    """Return the load without which the comparison of two rows could be different; empty if no load can change it.

    With fewer pairs than an interval needs, as in a sweep, only the median is considered.
    """
    company = interference.trial_pair_interference(baseline, challenger)
    if company is None or min(*baseline.step_s, *challenger.step_s, math.inf) <= 0:
        return ""
    ratios = log_ratios(baseline, challenger)
    if not ratios:
        return ""
    middle = statistics.median(ratios)
    return company.condition(middle, *(_ratio_interval(baseline, challenger, ratios) or (middle, middle)))


def measure_repeatability(rows: Iterable[Trial], machine_id: str) -> Repeatability:
    """Estimate from repeated runs of the same experiments how well results on a machine repeat.

    Runs on a loaded machine and runs of few pairs, as in sweeps, do not count.
    """
    runs: dict[str, list[Trial]] = {}
    for row in rows:
        if row.machine_id == machine_id and row.outcome in ("timed", "completed", "budget_spent"):
            runs.setdefault(row.run_id, []).append(row)
    questions: dict[tuple[str, ...], list[tuple[list[float], list[int]]]] = {}
    for run in runs.values():
        first, *others = sorted(run, key=lambda row: row.trial_id)
        for other in others:
            ratios = [] if verdict_obstacle(first, other) else log_ratios(first, other)
            if len(ratios) >= FEWEST_PAIRS and not load_condition(first, other):
                asked = (first.experiment_id, first.contender, other.contender, first.torch_version)
                questions.setdefault(asked, []).append((ratios, pair_rounds(first, other)))
    return estimate_repeatability(list(questions.values()))


TRAINING_COLUMNS = tuple(entry.name for entry in dataclasses.fields(Point))
"""Columns that describe the training."""

SETTING_COLUMNS = ("protocol_version", "dataset_hash", "drained", *TRAINING_COLUMNS)
"""Columns equal in rows of one training and one measurement method, on any machine; variants and devices may differ."""

RUN_COLUMNS = ("run_id", *SETTING_COLUMNS)
"""Columns equal in two rows whose speedup is computed pair by pair."""

DEVICE_COLUMNS = ("contender", "device_name", "device_driver")
"""Columns equal in the rows of one device of a study."""

CURVE_COLUMNS = ("torch_version", *DEVICE_COLUMNS)
"""Columns equal in all recordings of one curve, so that all its sizes have the same origin."""

STUDY_COLUMNS = (
    *("machine_id", "torch_version", "protocol_version", "precision", "execution", "drained", "dataset_hash"),
    *TRAINING_COLUMNS,
)
"""Columns equal in the runs of a study, except its axis and dependent columns; the name of the study is computed from
them in this order.
"""

CHART_COLUMNS = tuple(name for name in STUDY_COLUMNS if name not in ("machine_id", "torch_version"))
"""Columns equal in studies that may share a chart, except their axis: the training and how it was measured."""

DATA_COLUMNS = ("data_path", "loader_workers")
"""Columns that describe how data reach the device."""

SETUP_COLUMNS = (
    "machine_id",
    "contender",
    "device_name",
    "torch_version",
    "protocol_version",
    "precision",
    "execution",
)
"""Columns equal in rows of one device and variant, for any training."""

DELIVERY_COLUMNS = (*SETUP_COLUMNS, "dataset_hash", *(name for name in TRAINING_COLUMNS if name not in DATA_COLUMNS))
"""Columns equal in rows of one training whose data reached the device in different ways."""

BATCH_COLUMNS = (*SETUP_COLUMNS, "dataset", "model", "data_path", "dtype", "seed", *models.AXES)
"""Columns equal in rows of one model at several batch sizes."""

SEED_COLUMNS = tuple(name for name in TRAINING_COLUMNS if name != "seed")
"""Columns equal in rows of one training from several seeds; rows of one seed agree in data and seed as well. Variants
and devices may differ, because these rows show whether another precision learns the same.
"""

REMEDY_COLUMNS = tuple(
    dict.fromkeys((*SETUP_COLUMNS, "device_driver", "drained", "dataset_hash", *lanes.FIELDS, *TRAINING_COLUMNS))
)
"""Columns equal in rows of two runs that differ only in the remedy of one of them."""

DEPENDENT_COLUMNS: dict[str, frozenset[str]] = {
    "parameters": frozenset(models.AXES),
    **dict.fromkeys(("samples", "sequence_length", "embedding_rows"), frozenset({"dataset_hash"})),
}
"""Columns that differ between sizes of an axis because they depend on it."""


ABSENT_VALUES = {
    **{entry.name: entry.default for entry in dataclasses.fields(custom.CustomFields)},
    **{name: FIELDS[name].absent for name in FIELDS if FIELDS[name].later},
}
"""Values of newer columns in rows of older versions, and in rows to which the columns do not apply."""


def axis_dependent_columns(axis: str) -> frozenset[str]:
    """Return the columns that differ between sizes of an axis: the axis itself, and the columns that depend on it."""
    return DEPENDENT_COLUMNS.get(axis, frozenset()) | {axis}


def columns_except_axis(columns: Iterable[str], axis: str) -> tuple[str, ...]:
    """Select the columns that agree at all sizes of an axis."""
    return tuple(name for name in columns if name not in axis_dependent_columns(axis))


def identity_columns(columns: Iterable[str], row: object) -> tuple[str, ...]:
    """Select the columns that form a name, without newer columns in which the row has the value of older rows."""
    return tuple(name for name in columns if name not in ABSENT_VALUES or getattr(row, name) != ABSENT_VALUES[name])


def meaningful_columns(columns: Iterable[str], row: object) -> tuple[str, ...]:
    """Select the columns that describe a row's training; a custom script has no settings of the catalogue."""
    idle = (*custom.SETTLED, "dataset_hash") if getattr(row, "training", "") else custom.FIELDS
    return tuple(name for name in columns if name not in idle)


def column_values(row: object, columns: Iterable[str]) -> tuple[object, ...]:
    """Return the values of a row, or of a light line of a row, in some columns."""
    return tuple(getattr(row, name) for name in columns)


def differing_columns(first: object, second: object, columns: Iterable[str]) -> list[str]:
    """Return the columns in which two rows, or light lines of rows, differ."""
    return [name for name in columns if getattr(first, name) != getattr(second, name)]


def require_equal(first: Trial, second: Trial, columns: Iterable[str]) -> None:
    """Raise an error if two rows differ in one of `columns`.

    Raises:
        NotComparable: a column differs; the message names the first one and both values.
    """
    for column in differing_columns(first, second, columns):
        wanted, given = getattr(first, column), getattr(second, column)
        raise NotComparable(
            f"{capitalize_name(inline_name(second.contender))} cannot be compared with {inline_name(first.contender)}: "
            "its "
            f"{field_title(column)} is {given!r:.80}, not {wanted!r:.80}."
        )


def identity_hash(*agreed: object) -> str:
    """Return a name of 12 hexadecimal digits, computed from the columns that agree."""
    return hashlib.sha256(repr(agreed).encode()).hexdigest()[:12]
