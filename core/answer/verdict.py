"""The verdict on two devices: the single rule for the faster device, and the wording that all outputs share.

A device wins if the 95 % interval of the speedup excludes 1 and the median differs from 1 by more than `TIE`; a
smaller difference has no winner, however certain it is. Runs, sizes of a study and rows of two machines are judged only
by `closeness_reason` and worded only by `Verdict`, so that all outputs agree. Nothing here reads a row.
"""

import math
from dataclasses import dataclass
from typing import Literal

from .. import units
from ..question.experiment import inline_name
from ..question.lanes import does
from .statistics import TIE

VerdictCode = Literal["gpu_faster", "cpu_faster", "too_close", "missing"]
"""A verdict in files and links: the kind of the winner, no winner, or no data for a verdict.

Between two devices of one kind, `gpu_faster` means the challenger and `cpu_faster` the baseline.
"""

WINNERS: frozenset[str] = frozenset(("gpu_faster", "cpu_faster"))

INCONCLUSIVE = "Inconclusive"
"""Beginning of a headline without a winner, unless the two devices are equally fast."""

QUIET_NOTE = "On a quiet machine this can be different."
"""Note after a verdict that is valid only for a loaded machine."""


def closeness_reason(middle: float, low: float, high: float) -> str:
    """Return why no device wins, as text that follows a colon; empty if one does.

    Args:
        middle: logarithm of a ratio of times.
        low: lower end of its interval, also a logarithm.
        high: upper end of its interval, also a logarithm.
    """
    if low <= 0 <= high:
        return "either could be faster"
    if abs(middle) <= math.log(TIE):
        return f"the difference is within {units.format_share(TIE - 1)}, too small to matter"
    return ""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on a challenger against a baseline.

    Attributes:
        baseline: written form, e.g. `cpu`; `baseline_name` is the readable form with device name and threads.
        challenger: written form of the other contender, e.g. `cuda:0`; `challenger_name` is its readable form.
        verdict: key of `VerdictCode`.
        value: baseline time over challenger time per step, with its 95 % interval from `low` to `high`; above 1 the
            challenger is faster; None exactly if the verdict is `missing`.
        pairs: number of pairs of blocks or readings that the verdict is based on.
        rounds: number of rounds of the run with these pairs; 0 if the interval excludes the shift between rounds.
        reason: text on why there is no winner, which follows a colon; empty if there is one.
        advice: advice for a clearer verdict, in the imperative and without the full stop; may be empty.
        caution: sentences on variants with other numerics and on throttled GPUs; usually empty.
        busy: sentence on other programs that ran but cannot have changed the verdict; usually empty.
        condition: load to which the verdict is limited: "with other programs using about half of the processors";
            empty if the verdict is valid for the quiet machine.
        counted: text on the basis of the verdict, if the basis is not pairs of blocks.
    """

    baseline: str
    challenger: str
    baseline_name: str
    challenger_name: str
    verdict: VerdictCode
    value: float | None
    low: float | None
    high: float | None
    pairs: int
    reason: str
    advice: str = ""
    caution: str = ""
    busy: str = ""
    condition: str = ""
    counted: str = ""
    rounds: int = 0

    @property
    def winner(self) -> str:
        """The written form of the faster contender; empty without a winner."""
        if not self.has_winner or self.value is None:
            return ""
        return self.challenger if self.value > 1 else self.baseline

    @property
    def has_winner(self) -> bool:
        """Whether the verdict names one of the two as faster."""
        return self.verdict in WINNERS

    @property
    def is_conditional(self) -> bool:
        """Whether the verdict is valid only for the load of the machine during the measurement."""
        return bool(self.condition)

    @property
    def is_equal(self) -> bool:
        """Whether the whole interval lies within ±10 %: no difference that matters."""
        return self.low is not None and self.high is not None and self.low >= 1 / TIE and self.high <= TIE

    @property
    def names(self) -> tuple[str, str]:
        """Names of baseline and challenger within a sentence: `1 CPU thread`, `the GPU`."""
        return inline_name(self.baseline), inline_name(self.challenger)

    @property
    def claim(self) -> str:
        """The headline, without a full stop: `The GPU is 4.00× faster than the CPU`."""
        said = self._state() if self.verdict == "missing" or not self.condition else self._state_conditionally()
        return said[:1].upper() + said[1:]

    @property
    def short_claim(self) -> str:
        """The faster contender, or why there is none, for a cell of a table: `The GPU is faster`."""
        if self.is_equal:
            said = "Equally fast"
        elif self.has_winner:
            said = f"{does(self._ranked()[0], 'is', 'are')} faster"
        else:
            said = f"No winner: {self.reason}"
        return f"{said[:1].upper()}{said[1:]}{', under load' if self.condition else ''}"

    @property
    def basis(self) -> str:
        """The text after the headline: the advice, the figures, the full names of both devices, and limitations."""
        advice = f"{self.advice}." if self.advice else ""
        quiet = QUIET_NOTE if self.condition else ""
        devices = f"{self.challenger_name} against {self.baseline_name}."
        return " ".join(filter(None, (quiet, advice, self._figures(), devices, self.busy, self.caution)))

    @property
    def sentence(self) -> str:
        """Headline and basis as one text, for a terminal, a report and a file."""
        return f"{self.claim}. {self.basis}"

    def _state(self) -> str:
        baseline, challenger = self.names
        if self.is_equal:
            second = shorten_second_name(challenger, baseline)
            return f"{challenger} and {second} are equally fast, to within {units.format_share(TIE - 1)}"
        if self.value is None or self.reason:
            span = "" if self.value is None else f" ({units.format_ratio_range(self.low, self.high)})"
            return f"{INCONCLUSIVE}: {self.reason}{span}"
        winner, loser, ratio = self._ranked()
        verb = does(winner, "is", "are")
        return f"{verb} {units.format_ratio(ratio)} faster than {shorten_second_name(winner, loser)}"

    def _state_conditionally(self) -> str:
        baseline, challenger = self.names
        if self.is_equal:
            second = shorten_second_name(challenger, baseline)
            return f"{self.condition}, {challenger} and {second} were equally fast, to within 10 %"
        if self.reason:
            return f"{INCONCLUSIVE}: {self.condition}, {self.reason} ({units.format_ratio_range(self.low, self.high)})"
        winner, loser, ratio = self._ranked()
        verb = does(winner, "was", "were")
        interval = units.format_ratio_range(*self._turned())
        than = shorten_second_name(winner, loser)
        return f"{self.condition}, {verb} {units.format_ratio(ratio)} as fast as {than} (95 % interval {interval})"

    def _ranked(self) -> tuple[str, str, float]:
        """Return the winner, the loser, and the ratio of their times."""
        (baseline, challenger), value = self.names, self.value or 1.0
        return (challenger, baseline, value) if value > 1 else (baseline, challenger, 1 / value)

    def _turned(self) -> tuple[float, float]:
        """Return the interval of the stated ratio, which is the one in favour of the winner."""
        low, high = self.low or 1.0, self.high or 1.0
        return (low, high) if not self.has_winner or (self.value or 1.0) > 1 else (1 / high, 1 / low)

    def _figures(self) -> str:
        if self.value is None:
            return ""
        counted = self.counted or f"{units.format_quantity(self.pairs, 'pair')} of blocks"
        counted += f" in {units.format_quantity(self.rounds, 'round')}" if self.rounds else ""
        rests = f"{counted}, start-up not counted."
        if self.has_winner and self.condition:
            return f"{rests[:1].upper()}{rests[1:]}"
        interval = f"95 % interval {units.format_ratio_range(*self._turned())}"
        if self.has_winner:
            return f"{interval}, {rests}"
        return f"Median {units.format_ratio(self.value)} ({interval}), {rests}"


def verdict_sentence(verdict: Verdict) -> str:
    """Return a verdict as one text: the headline and its basis."""
    return verdict.sentence


def shorten_second_name(first: str, second: str) -> str:
    """Return the second of two names, shortened to its number if both are CPU threads: `2 CPU threads … 1`."""
    return second.split()[0] if _are_threads(first) and _are_threads(second) else second


def _are_threads(name: str) -> bool:
    number, _, rest = name.partition(" ")
    return number.isdecimal() and rest in ("CPU thread", "CPU threads")
