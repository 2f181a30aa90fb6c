"""Number formats for people: durations, counts, bytes, operations and ratios.

The functions return text; they measure nothing and compute no statistic.
"""

import math
from collections.abc import Callable

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
JUST_BELOW = 0.9995
"""Smallest share of a unit that rounds to the whole unit with three digits: 999.6 µs is 1.00 ms, not 1,000 µs."""

RANGE_DECIMALS = ((100.0, 0), (10.0, 1), (0.5, 2), (0.05, 3))
"""Smallest upper end of a range of ratios, and the number of decimals from there on."""

WHOLE = 1 - 1e-6
"""Smallest share that counts as the whole: sums of parts differ from it by rounding errors."""

_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def format_significant(value: float, digits: int = 3) -> str:
    """Format `value` to `digits` significant digits, without an exponent: 0.01234 → "0.0123"."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])  # exponent of the rounded value: 0.9996 is 1.00
    places = max(0, digits - 1 - exponent)
    return f"{value:,.{places}f}"


def format_duration(seconds: float, digits: int = 3) -> str:
    """Format a duration with its unit, to `digits` digits below a minute: 0.00123 → "1.23 ms", 93 → "1 min 33 s"."""
    if not math.isfinite(seconds):
        return "unknown"
    if seconds >= 60:
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        if hours:
            return f"{hours} h {minutes} min" if minutes else f"{hours} h"
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    for size, unit in _TIMES:
        if seconds >= size * JUST_BELOW:
            return f"{format_significant(seconds / size, digits)} {unit}"
    return f"{format_significant(seconds / 1e-9, digits)} ns" if seconds > 0 else "0 s"


def format_power(value: float) -> str:
    """Format a number to two significant digits, as a power of ten: 2e-7 → "2.0 × 10⁻⁷".

    The power is left out if its exponent is 0.
    """
    digits, _, exponent = f"{value:.1e}".partition("e")
    return f"{digits} × 10{str(int(exponent)).translate(_RAISED)}" if int(exponent) else digits


def format_limit(seconds: float) -> str:
    """Format a time limit, without superfluous digits: 30 → "30 s", 620 → "10 min 20 s"."""
    return format_duration(seconds, 2)


def format_rough_time(seconds: float) -> str:
    """Return an estimated time without false precision: 37.2 → "40 s", 93 → "1 min 30 s", 400 → "7 min"."""
    step_s = 1 if seconds < 10 else 5 if seconds < 30 else 10 if seconds < 120 else 60
    whole_s = max(1, round(seconds / step_s)) * step_s
    return f"{whole_s} s" if whole_s < 60 else format_duration(whole_s)


def format_time_left(seconds: float | None) -> str:
    """Return the remaining time, as the end of a line: ", about 2 min left"; empty without an estimate."""
    return "" if seconds is None else f", about {format_duration(max(1.0, seconds))} left"


def format_count(number: int) -> str:
    """Return a whole number with separators: 703142 → "703,142"."""
    return f"{number:,}"


def format_quantity(number: int, one: str, several: str = "") -> str:
    """Return a number of things: "1 run", "1,024 studies"."""
    return f"{format_count(number)} {one if number == 1 else several or one + 's'}"


def format_operations(flops: float) -> str:
    """Format floating-point operations: 2.4e9 → "2.4 GFLOP"."""
    for size, prefix in _DECIMAL:
        if flops >= size:
            return f"{format_significant(flops / size)} {prefix}FLOP"
    return f"{format_significant(flops)} FLOP"


def format_memory(amount_bytes: float) -> str:
    """Return an amount of memory in binary units: 1536 → "1.50 KiB"."""
    for size, unit in _BINARY:
        if amount_bytes >= size:
            return f"{format_significant(amount_bytes / size)} {unit}"
    return f"{amount_bytes:.0f} B"


def format_if_known(value: float | None, formatter: Callable[[float], str]) -> str:
    """Return a value as `formatter` writes it; empty if it is None."""
    return "" if value is None else formatter(value)


def format_interval(low: float | None, high: float | None, formatter: Callable[[float], str]) -> str:
    """Return both ends as `formatter` writes them: "1.20× to 1.40×"; empty if one of them is None."""
    return "" if low is None or high is None else f"{formatter(low)} to {formatter(high)}"


def format_ratio(value: float) -> str:
    """Format a speedup, never as a percentage: 4.1 → "4.10×"."""
    return f"{format_significant(value)}×"


def format_rough_ratio(value: float) -> str:
    """Return a predicted speedup or cost ratio, to two digits: 4.1 → "4.1×"."""
    return f"{format_significant(value, 2)}×"


def format_ratio_range(low: float | None, high: float | None) -> str:
    """Return the ends of an interval of ratios with the same digits: "0.78 to 1.11"; empty if one is unknown."""
    if low is None or high is None:
        return ""
    decimals = next((digits for least, digits in RANGE_DECIMALS if high >= least), 4)
    return (
        f"{low:,.{decimals}f} to {high:,.{decimals}f}"
        if low >= 10**-decimals
        else format_interval(low, high, format_significant)
    )


def format_share(fraction: float) -> str:
    """Return a part of a whole: 0.784 → "78 %"."""
    return f"{100 * fraction:.0f} %"


def format_processor_share(share: float) -> str:
    """Return a share of all processors in words: "half of the processors", "40 % of the processors"."""
    return f"{'half' if abs(share - 0.5) <= 0.05 else format_share(share)} of the processors"


def format_counted_share(fraction: float, digits: int = 0) -> str:
    """Return a share of counted things. Only the whole is shown as 100 %: 0.9996 → "99.96 %"."""
    shown = f"{100 * fraction:.{digits}f}"
    return format_counted_share(fraction, digits + 1) if float(shown) == 100 and fraction < WHOLE else f"{shown} %"
