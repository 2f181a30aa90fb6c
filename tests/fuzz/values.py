"""Rows of any kind that may come through the door, however odd: of runs that belong together, with odd values in them.

Made from the table of `core.results.validation`, as `tests.possible` is; those here are drawn from a seed and are
mostly like real ones, so that pages find studies, pairs and classes in them.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pyarrow as pa

from core.errors import ForeignFile
from core.question import catalog
from core.question.experiment import Contender
from core.question.lanes import Lane
from core.results import validation
from core.results.parquet import to_table
from core.results.schema import TRIAL_COLUMNS, Trial
from tests.fuzz import oddities
from tests.possible import DEVICES, LANES

Changes = dict[str, Any]
Change = Callable[[Random, Trial], Changes]

TRIES = 8
"""How often other values are drawn where what was drawn does not go together."""

NEWER = dict.fromkeys(validation.MAY_BE_NEWER, ("invented", "x", "0", "later-0.1"))
"""Words of a later version."""

FORMED: dict[str, tuple[str, ...]] = {
    "experiment_id": ("0", "f" * 64),
    "machine_id": (".", "..", "-", "_", "con", "x" * 64, "NaN", "0"),
    "dataset": ("invented-later", "0", "a" * 64, "nan", *catalog.DATASETS),
    "dataset_hash": ("0", "x" * 64),
    "model": ("invented-later", "0", "a" * 64, "linear", "mlp", "cnn", "doubling-mlp"),
    "started_at": (
        *("2001-01-01T00:00:00Z", "2199-12-31T23:59:59.999999+00:00", "2026-11-21T09:30:00.1Z"),
        *("2024-02-29T23:59:60Z", "2026-11-22T00:00:00+00:00"),
    ),
}
"""Texts that have a form."""

LENGTHS = (0, 1, 1, 2, 3, 8, 20, 100, 1_000)
"""Of lists."""

MANY = (2_000, 5_000, 20_000)
"""Blocks of a long run; seldom, since each row takes megabytes."""

_TOGETHER = {name for group in validation.EQUALLY_LONG for name in group}
_TOGETHER |= {*validation.OF_CARDS, "confusion", "predictions", "test_samples"}
_NAMES = {"run_id", "trial_id", "contender", "device", "device_kind", "threads", *Lane().columns}
_COLUMNS = tuple(column for column in TRIAL_COLUMNS if column.name not in _TOGETHER | _NAMES)


def odd(draw: Random, rows: Sequence[Trial], *, newer: bool = False) -> list[Trial]:
    """The rows with odd values in some columns: of one row, of one contender's, of one run's, or of all."""
    changed = list(rows)
    for _ in range(draw.choice((1, 2, 4, 8))):
        for _ in range(TRIES):
            tried = _changed(draw, changed, newer=newer)
            if passes(tried, newer=newer):
                changed = tried
                break
    return changed


def passes(rows: Sequence[Trial], *, newer: bool = False) -> bool:
    """Whether rows may come through the door."""
    try:
        validation.validate_rows(to_table(list(rows)), newer=newer)
    except (ForeignFile, pa.ArrowException, OverflowError):
        return False
    return True


def _changed(draw: Random, rows: list[Trial], *, newer: bool) -> list[Trial]:
    one = draw.choice(rows)
    of: Callable[[Trial], bool] = draw.choice(
        (
            lambda row: row is one,
            lambda row: row.contender == one.contender,
            lambda row: row.run_id == one.run_id,
            lambda row: True,
        )
    )
    change, alike = draw.choice(_CHANGES), draw.random() < 0.6
    if newer and draw.random() < 0.5:
        change = _newer_words
    if alike:
        changes = change(draw, one)
        return [dataclasses.replace(row, **changes) if of(row) else row for row in rows]
    return [dataclasses.replace(row, **change(draw, row)) if of(row) else row for row in rows]


# What is changed together


def _column(draw: Random, row: Trial) -> Changes:
    column = draw.choice(_COLUMNS)
    return {column.name: _value(draw, column)}


def _newer_words(draw: Random, row: Trial) -> Changes:
    name = draw.choice(sorted(NEWER))
    return {name: draw.choice(NEWER[name])}


def _blocks(draw: Random, row: Trial) -> Changes:
    """Timed blocks: how many, how long, in which rounds, of how many steps."""
    count = draw.choice(MANY) if draw.random() < 0.03 else draw.choice(LENGTHS)
    lengths_ns = _lengths_ns(draw, count)
    begin = draw.choice((0, 5_000_000_000_000, validation.LARGEST - sum(lengths_ns) - 1))
    begins = [max(0, begin) + sum(lengths_ns[:place]) for place in range(count)] if count < 200 else [0] * count
    steps = draw.choice((1, 100, 2**40))
    return {
        "block_pair": _rounds(draw, count),
        "block_first_step": (_whole(draw, "block_first_step"),) * count,
        "block_steps": (steps,) * count,
        "block_begin_ns": tuple(begins),
        "block_end_ns": tuple(at + length for at, length in zip(begins, lengths_ns, strict=True)),
        "block_load": (_number(draw, "block_load"),) * count,
        "block_steal": (_number(draw, "block_steal"),) * count,
        "block_switches": (_whole(draw, "block_switches"),) * count,
        **{name: _of_card(draw, name, draw.choice((0, count))) for name in validation.OF_CARDS},
    }


def _of_card(draw: Random, name: str, count: int) -> tuple[float, ...]:
    whole = name in ("block_throttle", "block_other_processes")
    return ((_whole if whole else _number)(draw, name),) * count


def _lengths_ns(draw: Random, count: int) -> list[int]:
    way = draw.choice(("shortest", "equal", "longest", "any", "like real ones"))
    if way == "any":
        return [max(1, min(2**50, round(draw.lognormvariate(15, 12)))) for _ in range(count)]
    if way == "like real ones":
        return [round(1e8 * math.exp(draw.gauss(0, 0.05))) for _ in range(count)]
    return [{"shortest": 1, "equal": 10**8, "longest": 2**50}[way]] * count


def _rounds(draw: Random, count: int) -> tuple[int, ...]:
    way = draw.choice(("in order", "in order", "all one", "backwards", "far apart"))
    rounds = {"in order": range(count), "all one": [0] * count, "backwards": range(count - 1, -1, -1)}
    return tuple(rounds.get(way) or [place * 2**30 for place in range(count)])


def _losses(draw: Random, row: Trial) -> Changes:
    count = draw.choice(LENGTHS)
    return {
        "loss_step": tuple(sorted(_whole(draw, "loss_step") for _ in range(count))),
        "loss": tuple(_number(draw, "loss") for _ in range(count)),
    }


def _warm_up(draw: Random, row: Trial) -> Changes:
    count = draw.choice(LENGTHS)
    return {"warmup_steps": (_whole(draw, "warmup_steps"),) * count, "warmup_s": (_number(draw, "warmup_s"),) * count}


def _tried(draw: Random, row: Trial) -> Changes:
    count = draw.choice(LENGTHS[:-2])
    steps = tuple(_number(draw, "threads_tried_step_s") for _ in range(count))
    return {"threads_tried": (_whole(draw, "threads_tried"),) * count, "threads_tried_step_s": steps}


def _tested(draw: Random, row: Trial) -> Changes:
    """Test items: none, one, all of one class, all wrong, or as many as may be."""
    known = catalog.DATASETS.get(row.dataset)
    classes = len(known.classes) if known else draw.choice((1, 2, 30, 256))
    items = draw.choice((0, 1, 270, 10_000))
    if not items:
        return {"confusion": (), "predictions": b"", "test_samples": _whole(draw, "test_samples")}
    counts, predicted = [0] * classes**2, draw.randrange(classes)
    way = draw.choice(("one class", "all predicted alike", "any"))
    answers = bytearray()
    for item in range(items):
        truth = 0 if way == "one class" else item % classes
        answer = predicted if way != "any" else draw.randrange(classes)
        counts[truth * classes + answer] += 1
        answers.append(answer)
    kept = bytes(answers) if draw.random() < 0.7 else b""
    return {"confusion": tuple(counts), "predictions": kept, "test_samples": items}


def _device(draw: Random, row: Trial) -> Changes:
    """Another device, thread count or lane, and the columns that follow from it."""
    device, threads = draw.choice(sorted(DEVICES)), draw.choice((0, 1, 4, 1_024))
    lane = Lane.parse([word for word in draw.choice(LANES).split("+") if word])
    asked = Contender(device=device, threads=threads, lane=lane)
    return {
        "contender": str(asked),
        "device": device,
        "device_kind": DEVICES[device],
        "threads": threads or draw.choice((0, 1, 64)),
        **lane.columns,
    }


_CHANGES: tuple[Change, ...] = (
    *(_column, _column, _column, _column, _blocks, _blocks, _losses, _warm_up, _tried, _tested, _device),
)


# One value


def _value(draw: Random, column: Any) -> Any:
    name, kind = column.name, column.metadata["type"]
    if column.default is None and draw.random() < 0.3:
        return None
    if name in FORMED:
        return draw.choice(FORMED[name])
    if name in validation.WORDS:
        return draw.choice(sorted(validation.WORDS[name]))
    if pa.types.is_list(kind):
        one = _whole if kind.value_type == pa.int64() else _number
        return tuple(one(draw, name) for _ in range(draw.choice(LENGTHS)))
    if kind == pa.string():
        return _text(draw, validation.LONG_TEXTS.get(name, validation.MAX_TEXT_BYTES))
    if kind == pa.bool_():
        return draw.random() < 0.5
    return _whole(draw, name) if kind == pa.int64() else _number(draw, name)


def _text(draw: Random, most_bytes: int) -> str:
    text = draw.choice(oddities.TEXTS).encode(errors="replace")
    return text[:most_bytes].decode(errors="ignore")


def _whole(draw: Random, name: str) -> int:
    low = 1 if name in validation.AT_LEAST_ONE else 0
    high = int(min(validation.LARGEST, validation.AT_MOST.get(name, validation.LARGEST)))
    found: int = draw.choice((low, low + 1, 2, 7, 100, 2**31, 2**53, high // 2, high - 1, high))
    return min(max(found, low), high)


def _number(draw: Random, name: str) -> float:
    if name in validation.ANY_NUMBER:
        return draw.choice((math.nan, math.inf, -math.inf, -1.0, 0.0, 5e-324, 1e308, -1e308, 2.3))
    high = float(min(validation.LARGEST, validation.AT_MOST.get(name, validation.LARGEST)))
    found: float = draw.choice((0.0, 5e-324, 1e-310, 1e-100, 1e-9, 1e-3, 0.5, 1.0, 3.0, 1e9, 1e15, high))
    return min(found, high)
