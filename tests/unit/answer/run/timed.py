"""Rows of contenders with the times that a test wants."""

from core.results.schema import Trial
from tests.rows import trial


def timed(times_s, contender="cpu", **changes) -> Trial:
    """A row whose blocks took exactly these seconds a step, 1,000 steps each."""
    begin = tuple(range(0, len(times_s) * 10**12, 10**12))
    values = {
        "block_pair": tuple(range(len(times_s))),
        "block_steps": (1000,) * len(times_s),
        "block_begin_ns": begin,
        "block_end_ns": tuple(start + round(s * 1e12) for start, s in zip(begin, times_s, strict=True)),
    }
    return trial(contender=contender, **{**values, **changes})
