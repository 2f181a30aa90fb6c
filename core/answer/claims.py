"""A verdict in two lines: what is claimed, in words, and below it the small print that it rests on."""

from .. import units
from ..question.experiment import inline_name
from .speedup import Speedup


def speedup_headline(speedup: Speedup) -> str:
    """The first line: `2 CPU threads train 1.67× as fast as 1`; without a winner, that there is none."""
    return verdict_headline(
        inline_name(speedup.baseline), inline_name(speedup.challenger), speedup.value, speedup.reason
    )


def speedup_small_print(speedup: Speedup) -> str:
    """The second line: the interval, what it rests on, which devices, and what is to be said of how it was measured."""
    what = f"{speedup.challenger_name} against {speedup.baseline_name}"
    told = [_reason_sentence(speedup.reason)] if speedup.reason else []
    if speedup.value is not None and speedup.low is not None and speedup.high is not None:
        value, low, high = speedup.value, speedup.low, speedup.high
        won = bool(speedup.reason) or value > 1
        value, low, high = (value, low, high) if won else (1 / value, 1 / high, 1 / low)
        interval = f"95 % interval {units.format_ratio(low)} to {units.format_ratio(high)}"
        interval = f"{interval} around {units.format_ratio(value)}" if speedup.reason else interval
        told.append(f"{interval} from {units.format_quantity(speedup.pairs, 'pair')} of blocks, start-up not counted.")
    return " ".join(filter(None, (*told, f"{what}.", speedup.busy, speedup.caution)))


def verdict_headline(baseline: str, challenger: str, value: float | None, reason: str) -> str:
    """What is claimed of two whose names stand within a sentence.

    Args:
        baseline: `1 CPU thread`, `the CPU`.
        challenger: `2 CPU threads`, `the GPU`.
        value: time of the baseline over that of the challenger; None without a verdict.
        reason: why there is no winner or no verdict; empty where there is a winner.
    """
    if value is None or reason:
        lead = "No verdict on" if value is None else "Too close to call:"
        return f"{lead} {challenger} against {_second_name(challenger, baseline)}"
    winner, loser, ratio = (challenger, baseline, value) if value > 1 else (baseline, challenger, 1 / value)
    verb = "train" if _are_threads(winner) and not winner.startswith("1 ") else "trains"
    said = f"{winner} {verb} {units.format_ratio(ratio)} as fast as {_second_name(winner, loser)}"
    return said[:1].upper() + said[1:]


def _second_name(first: str, second: str) -> str:
    """The second name where the first has been said: of two numbers of threads only the number."""
    return second.split()[0] if _are_threads(first) and _are_threads(second) else second


def _are_threads(name: str) -> bool:
    number, _, rest = name.partition(" ")
    return number.isdecimal() and rest in ("CPU thread", "CPU threads")


def _reason_sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}."
