"""A verdict in two lines: what is claimed, in words, and below it the small print that it rests on."""

from core import units
from core.answer.run.speedup import Speedup
from core.question.experiment import spoken


def headline(found: Speedup) -> str:
    """The first line: `2 CPU threads train 1.67× as fast as 1`; without a winner, that there is none."""
    return between(spoken(found.baseline), spoken(found.challenger), found.value, found.reason)


def small_print(found: Speedup) -> str:
    """The second line: the interval, what it rests on, which devices, and what is to be said of how it was measured."""
    what = f"{found.challenger_name} against {found.baseline_name}"
    told = [_sentence(found.reason)] if found.reason else []
    if found.value is not None and found.low is not None and found.high is not None:
        value, low, high = found.value, found.low, found.high
        won = bool(found.reason) or value > 1
        value, low, high = (value, low, high) if won else (1 / value, 1 / high, 1 / low)
        interval = f"95 % interval {units.ratio(low)} to {units.ratio(high)}"
        interval = f"{interval} around {units.ratio(value)}" if found.reason else interval
        told.append(f"{interval} from {units.counted(found.pairs, 'pair')} of blocks, start-up not counted.")
    return " ".join(filter(None, (*told, f"{what}.", found.busy, found.caution)))


def between(baseline: str, challenger: str, value: float | None, reason: str) -> str:
    """What is claimed of two whose names stand within a sentence.

    Args:
        baseline: `1 CPU thread`, `the CPU`.
        challenger: `2 CPU threads`, `the GPU`.
        value: time of the baseline over that of the challenger; None without a verdict.
        reason: why there is no winner or no verdict; empty where there is a winner.
    """
    if value is None or reason:
        lead = "No verdict on" if value is None else "Too close to call:"
        return f"{lead} {challenger} against {_after(challenger, baseline)}"
    winner, loser, ratio = (challenger, baseline, value) if value > 1 else (baseline, challenger, 1 / value)
    verb = "train" if _are_threads(winner) and not winner.startswith("1 ") else "trains"
    said = f"{winner} {verb} {units.ratio(ratio)} as fast as {_after(winner, loser)}"
    return said[:1].upper() + said[1:]


def _after(first: str, second: str) -> str:
    """The second name where the first has been said: of two numbers of threads only the number."""
    return second.split()[0] if _are_threads(first) and _are_threads(second) else second


def _are_threads(name: str) -> bool:
    number, _, rest = name.partition(" ")
    return number.isdecimal() and rest in ("CPU thread", "CPU threads")


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}."
