"""Compare the fastest same-numerics variant of each of two devices, next to the default variant on both.

Choosing the best of several noisy variants and evaluating it by the same readings would overestimate it. Therefore
variants are chosen by every other pair of blocks and evaluated by the pairs in between. Nothing is measured.
"""

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import units
from ..question.experiment import display_name, inline_name
from ..question.sweep import size_on_axis
from ..results.schema import Trial
from . import interference, remedies, speedup, wording
from . import study as studies
from .crossover import locate_crossover
from .result import Basis, Crossover, Evidence
from .study import Study
from .verdict import Verdict

CHOSEN_SEPARATELY = "The variants were chosen on every other pair of blocks and judged on the remaining pairs"
"""Explanation of why the choice does not bias the result."""

BLOCK_COLUMNS = tuple(entry.name for entry in dataclasses.fields(Trial) if entry.name.startswith("block_"))


@dataclass(frozen=True, kw_only=True)
class BestVariantPair:
    """The best variant of each of two devices in one run.

    Attributes:
        baseline: variant chosen for the first device.
        challenger: variant chosen for the other device.
        best: verdict on the two variants, by the pairs that were not used for the choice.
        plain: verdict on the default variant on both devices, by all pairs; None if a device has no default variant.
    """

    baseline: str
    challenger: str
    best: Verdict
    plain: Verdict | None
    sentence: str


@dataclass(frozen=True, kw_only=True)
class LanePick:
    """The variants chosen at one size.

    Attributes:
        size: size on the axis.
        baseline: row of the baseline device with only the blocks that are evaluated; None if no variant could be
            chosen.
        challenger: row of the other device, as `baseline`.
        obstacle: reason why nothing could be chosen; empty if a pair was chosen.
    """

    size: float
    baseline: Trial | None = None
    challenger: Trial | None = None
    obstacle: str = ""


def find_best_variants(trials: Sequence[Trial]) -> BestVariantPair | None:
    """Return the best variants of the first device of a run and of the first other device.

    On a machine with an accelerator, the devices are the CPU, with any number of threads, and the first accelerator.

    Returns:
        The pair; None if neither device has several variants.

    Raises:
        NotComparable: the rows are not of one run.
    """
    pair = _find_pair(trials)
    if pair is None or not _has_choice(trials, pair):
        return None
    sides = [_candidates(trials, _side(row, pair), pair) for row in pair]
    rounds = _rounds([row for side in sides for row in side])
    chosen = [_choose_row(side, "steady", rounds) for side in sides]
    if chosen[0] is None or chosen[1] is None:
        return None
    best = speedup.speedup(*(_with_rounds(row, _judging_rounds(rounds)) for row in chosen if row))
    plain = speedup.speedup(*pair) if all(map(remedies.is_plain, pair)) else None
    return BestVariantPair(
        baseline=best.baseline,
        challenger=best.challenger,
        best=best,
        plain=plain,
        sentence=_best_variants_sentence(best, plain),
    )


def pick_lanes(study: Study, rows: Sequence[Trial], basis: Basis = "steady") -> tuple[LanePick, ...]:
    """Choose the best variant of both devices of a study at each size, ascending.

    Returns:
        A choice for each size; empty if no device has several variants.
    """
    runs: dict[str, list[Trial]] = {}
    for row in rows:
        runs.setdefault(row.run_id, []).append(row)
    pairs = [(pair, runs.get(pair[0].run_id, list(pair))) for pair in study.runs]
    if not any(_has_choice(run, pair) for pair, run in pairs):
        return ()
    return tuple(_pick(size_on_axis(pair[0], study.axis), pair, run, basis) for pair, run in pairs)


def best_lanes_crossover(
    study: Study, picked: Sequence[LanePick], basis: Basis = "steady"
) -> tuple[Crossover, tuple[Evidence, ...]]:
    """Locate the crossover of a study's chosen variants for a cost basis, and return it with its evidence.

    Raises:
        CrossoverError: the rows cannot be compared.
    """
    evidence = _pick_evidence(picked, study, basis)
    base, other = (f"{display_name(_side(row, study.runs[-1]))} with its best variant" for row in study.runs[-1])
    answer = locate_crossover(evidence, axis=study.axis, basis=basis, baseline=base, challenger=other)
    chosen = [(pick.baseline, pick.challenger) for pick in picked if pick.baseline and pick.challenger]
    return interference.mark_interference(answer, interference.study_interference(chosen)), evidence


def find_plain_study(study: Study, other_studies: Sequence[Study]) -> Study | None:
    """Find the study of the default variant on the same two devices, over the same runs."""
    wanted = tuple(_side(row, study.runs[-1]) for row in study.runs[-1])
    runs = {pair[0].run_id for pair in study.runs}
    for one in (study, *other_studies):
        pair = one.runs[-1]
        same = {each[0].run_id for each in one.runs} == runs and one.axis == study.axis
        if same and all(map(remedies.is_plain, pair)) and tuple(_side(row, pair) for row in pair) == wanted:
            return one
    return None


def crossover_shift_sentence(plain: Crossover, best: Crossover) -> str:
    """Describe how far the best variants move the crossover; empty unless both studies have a crossover."""
    if plain.estimate is None or best.estimate is None:
        return ""
    shown = units.format_significant(best.estimate / plain.estimate, 2)
    way = "the same size to two digits" if float(shown) == 1 else f"{shown} of that size"
    return (
        f"The default loops cross at {_crossover_figures(plain)}, the best variants at "
        f"{_crossover_figures(best)}: {way}."
    )


def _best_variants_sentence(best: Verdict, plain: Verdict | None) -> str:
    told = [f"Best against best: {best.sentence}"]
    if plain is not None and plain.value is not None:
        ends = units.format_interval(plain.low, plain.high, units.format_ratio)
        figures = f"{units.format_ratio(plain.value)} (95 % interval {ends})"
        told.append(
            f"With the default loop on both devices, the speedup of {inline_name(plain.challenger)} is {figures}."
        )
    return " ".join([*told, f"{CHOSEN_SEPARATELY}."])


def _find_pair(trials: Sequence[Trial]) -> tuple[Trial, Trial] | None:
    """Return the rows of the baseline and of the other device, with the default variant if possible."""
    ordered = sorted(trials, key=lambda row: not remedies.is_plain(row))
    host = next(iter(ordered), None)
    accelerator = next((row for row in ordered if not speedup.is_host(row)), None)
    if accelerator is not None:
        host = next((row for row in ordered if speedup.is_host(row)), None)
        return (host, accelerator) if host else None
    other = next(
        (row for row in ordered if host and remedies.base_contender(row) != remedies.base_contender(host)), None
    )
    return (host, other) if host and other else None


def _side(row: Trial, pair: Sequence[Trial]) -> str:
    """Return the device of a row; in a pair with an accelerator, the CPU is one device for any number of threads."""
    return remedies.base_contender(row) if all(map(speedup.is_host, pair)) else row.device


def _candidates(run: Sequence[Trial], side: str, pair: Sequence[Trial]) -> list[Trial]:
    """Select the timed rows of a device whose variants have the same numerics as the default variant."""
    ours = [row for row in run if _side(row, pair) == side]
    return [
        row
        for row in ours
        if remedies.lane_standing(row) == "same" and row.step_s and not speedup.verdict_obstacle(row, row)
    ]


def _has_choice(run: Sequence[Trial], pair: Sequence[Trial]) -> bool:
    """Return whether a device of a pair has several variants to choose from."""
    return any(len({speedup.find_lane(row) for row in _candidates(run, _side(one, pair), pair)}) > 1 for one in pair)


def _rounds(rows: Sequence[Trial]) -> list[int]:
    """Return the rounds in which all rows have a block."""
    return sorted(set.intersection(*(set(row.block_pair) for row in rows)))


def _judging_rounds(rounds: Sequence[int]) -> frozenset[int]:
    """Return the rounds for the evaluation: the larger half, because the interval is computed from them."""
    return frozenset(rounds[0::2])


def _with_rounds(row: Trial, rounds: frozenset[int]) -> Trial:
    """Return a copy of a row with only the blocks of some rounds; the copy is never stored."""
    kept = [place for place, each in enumerate(row.block_pair) if each in rounds]
    lists = {name: getattr(row, name) for name in BLOCK_COLUMNS}
    fewer: dict[str, Any] = {name: tuple(of[at] for at in kept) for name, of in lists.items() if of}
    return replace(row, **fewer)


def _choose_row(rows: Sequence[Trial], basis: Basis, rounds: Sequence[int]) -> Trial | None:
    """Return the row with the shortest time per step in the pairs for the choice; a single row needs no choice."""
    if len(rows) < 2:
        return rows[0] if rows else None
    known = [(cost, row) for row in rows if (cost := _cost(row, frozenset(rounds[1::2]), basis)) is not None]
    return min(known, key=lambda entry: entry[0])[1] if known else None


def _cost(row: Trial, rounds: frozenset[int], basis: Basis) -> float | None:
    """Return the seconds per step of some rounds, including the step's share of the one-time cost."""
    times, once_s = _with_rounds(row, rounds).step_s if rounds else (), studies.one_time_cost_s(row, basis)
    if not times or once_s is None:
        return None
    return statistics.median(times) + once_s / (row.epochs * row.steps_per_epoch)


def _pick(size: float, pair: tuple[Trial, Trial], run: Sequence[Trial], basis: Basis) -> LanePick:
    sides = [_candidates(run, _side(row, pair), pair) for row in pair]
    if not all(sides):
        hindrance = speedup.verdict_obstacle(*pair) or "one of the devices has no variant that could be timed"
        return LanePick(size=size, obstacle=hindrance)
    rounds = _rounds([*sides[0], *sides[1]])
    if len(rounds) < 2:
        return LanePick(
            size=size, obstacle="at least two pairs of blocks are needed, one to choose the variant and one to judge it"
        )
    baseline, challenger = (_choose_row(rows, basis, rounds) for rows in sides)
    if baseline is None or challenger is None:
        return LanePick(size=size, obstacle="start-up was not measured")
    judging = _judging_rounds(rounds)
    return LanePick(size=size, baseline=_with_rounds(baseline, judging), challenger=_with_rounds(challenger, judging))


def _pick_evidence(picked: Sequence[LanePick], study: Study, basis: Basis) -> tuple[Evidence, ...]:
    """Collect the evidence of the chosen variants at each size, in the order of the choices."""
    runs = tuple((pick.baseline, pick.challenger) for pick in picked if pick.baseline and pick.challenger)
    timed = iter(replace(study, runs=runs).evidence(basis))
    return tuple(
        next(timed) if pick.baseline and pick.challenger else Evidence(size=pick.size, obstacle=pick.obstacle)
        for pick in picked
    )


def _crossover_figures(answer: Crossover) -> str:
    """Format the size of a crossover with its interval."""
    about, low, high = (
        wording.format_size(float(f"{end or 0.0:.3g}")) for end in (answer.estimate, answer.low, answer.high)
    )
    return f"about {about} ({low} to {high})"
