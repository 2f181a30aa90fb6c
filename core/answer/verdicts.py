"""The verdict on two devices in words: what is claimed, and what the claim rests on.

The same words stand on pages, in the terminal, in reports, in a class and in the gallery. Compares nothing itself.
"""

from dataclasses import dataclass

from core import units

Figures = tuple[float, float, float]
"""Time of the baseline over that of the challenger, and the ends of its 95 % interval."""


@dataclass(frozen=True, kw_only=True)
class WordedVerdict:
    """A verdict in words.

    Attributes:
        claim: who is faster, or that nobody is, without a full stop: `2 CPU threads train 1.67× as fast as 1`.
        basis: sentences below it: interval, readings, both devices by their own names, and what limits the claim.
    """

    claim: str
    basis: str

    @property
    def sentence(self) -> str:
        """Both as one text."""
        return f"{self.claim}. {self.basis}"


def write_verdict(
    names: tuple[str, str],
    titles: tuple[str, str],
    figures: Figures | None,
    reason: str,
    *,
    counted: str,
    notes: tuple[str, ...] = (),
) -> WordedVerdict:
    """Write a verdict from its figures.

    Args:
        names: baseline and challenger as they stand within a sentence: `1 CPU thread`, `the GPU`.
        titles: the same with the devices' own names.
        figures: None without a verdict.
        reason: why there is no winner or no verdict; empty where there is a winner.
        counted: what the figures rest on: `20 pairs of blocks`.
        notes: further sentences on how it was measured; empty ones are left out.
    """
    said = [f"{reason[:1].upper()}{reason[1:]}."] if reason else []
    if figures is not None:
        value, low, high = figures if reason or figures[0] > 1 else (1 / figures[0], 1 / figures[2], 1 / figures[1])
        around = f" around {units.ratio(value)}" if reason else ""
        interval = f"95 % interval {units.ratio(low)} to {units.ratio(high)}{around}"
        said.append(f"{interval} from {counted}, start-up not counted.")
    first, second = titles if figures is not None and not reason and figures[0] <= 1 else reversed(titles)
    said.append(f"{first} against {second}.")
    return WordedVerdict(claim=_write_claim(*names, figures, reason), basis=" ".join((*said, *filter(None, notes))))


def _write_claim(baseline: str, challenger: str, figures: Figures | None, reason: str) -> str:
    if figures is None or reason:
        lead = "No verdict on" if figures is None else "Too close to call:"
        return f"{lead} {challenger} against {_shorten_second(challenger, baseline)}"
    value = figures[0]
    winner, loser, ratio = (challenger, baseline, value) if value > 1 else (baseline, challenger, 1 / value)
    verb = "train" if _are_threads(winner) and not winner.startswith("1 ") else "trains"
    said = f"{winner} {verb} {units.ratio(ratio)} as fast as {_shorten_second(winner, loser)}"
    return said[:1].upper() + said[1:]


def _shorten_second(first: str, second: str) -> str:
    """Shorten the second of two numbers of threads to its number."""
    return second.split()[0] if _are_threads(first) and _are_threads(second) else second


def _are_threads(name: str) -> bool:
    number, _, rest = name.partition(" ")
    return number.isdecimal() and rest in ("CPU thread", "CPU threads")
