"""What a row may say, column by column: the forms of texts, the known words, the bounds of numbers and lists.

Plain data; `core.results.checks` holds rows against it. Whatever is parsed later, counted up to, multiplied or put
into a link has its line here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from core.question import custom, lanes
from core.question.devices import DEVICE_KINDS, DEVICES, NUMBERED, SINGLE
from core.question.experiment import MAX_CONTENDERS
from core.question.fields import DATA_PATHS, DTYPES, FIELDS, TRAINING
from core.results.schema import OUTCOMES, TRIAL_COLUMNS

MAX_LIST = 1_000_000
"""Entries of a list of blocks: a day of blocks of a tenth of a second, the longest budget, makes 864,000."""

SHORT_LIST = 1_000
"""Entries of any other list. Ours have a few hundred at most: the loss curve 200, a step that is taken apart 50."""

MAX_TEXT_BYTES = 500
"""Bytes of a text; the longest of ours are names of processors and drivers."""

MAX_CLASSES = 256
"""Classes of a data set: a prediction is one byte."""

MAX_ITEMS = 1_000_000
"""Test items, each of which is one entry of whatever is computed from their counts."""

LARGEST = 2**60
"""No count, time or size comes near it, and what is computed from such numbers would not be one any more."""

YEARS = (1970, 2199)
"""First and last year of a date: a clock that was never set begins with one, tables of dates end after the other."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a text looks like.

    Attributes:
        pattern: of the whole of it.
        meaning: in words, after "which is not".
    """

    pattern: str
    meaning: str


WORD = Form(pattern=r"[a-z0-9][a-z0-9_.-]{0,63}", meaning="a name of small letters and digits")
_NAME = Form(pattern=r"[0-9A-Za-z_.-]{1,64}", meaning="a name of letters and digits")

FORMS: Mapping[str, Form] = {
    "run_id": Form(pattern=r"[0-9a-f]{12}", meaning="a name of 12 hexadecimal digits"),
    "trial_id": Form(
        pattern=rf"[0-9a-f]{{12}}-[0-{MAX_CONTENDERS - 1}]",
        meaning=f"the name of its run with its place in it, 0 to {MAX_CONTENDERS - 1}",
    ),
    "experiment_id": Form(pattern=r"[0-9a-f]{1,64}", meaning="a name of hexadecimal digits"),
    "machine_id": _NAME,
    "dataset": WORD,
    "dataset_hash": _NAME,
    "training": Form(pattern=rf"({custom.NAME.pattern})?", meaning="a Python file with a function"),
    "source_hash": Form(pattern=rf"({custom.SOURCE.pattern})?", meaning="16 hexadecimal digits"),
    "model": WORD,
    "device": Form(
        pattern=rf"{'|'.join(SINGLE)}|({'|'.join(NUMBERED)}):[0-9]{{1,2}}",
        meaning=DEVICES,
    ),
    "contender": Form(
        pattern=r"[a-z]{1,8}(:[0-9]{1,2})?(@[0-9]{1,4})?([+][0-9a-z_]{1,32}){0,8}", meaning="a device with its lane"
    ),
    "started_at": Form(
        pattern=r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.]\d{1,6})?(Z|[+]00:00)", meaning="a time in ISO 8601 and UTC"
    ),
}
"""Texts that are parsed, or become part of a link or of a file's name. A run has no more rows than it may have
contenders, because the place of a row is in its name, and of each name one row counts."""

WORDS: Mapping[str, Collection[str]] = {
    "outcome": tuple(OUTCOMES),
    "device_kind": DEVICE_KINDS,
    "data_path": (*DATA_PATHS, custom.CUSTOM),
    "dtype": tuple(DTYPES),
    **lanes.LANE_WORDS,
}
"""Texts that are one of a few words."""

MAY_BE_NEWER = frozenset(WORDS) - {"outcome", "device_kind"}
"""Of these, a newer version may know words that are not known here; then any name will do."""

LONG_TEXTS = {"message": 2_000}
"""Bytes of texts that may be longer than others: the reason of an end is a sentence."""

ANY_NUMBER = ("loss", "lane_loss", "reference_loss", "nudged_loss", "own_first_loss", "own_evaluation")
"""Losses and what one's own training says of itself may be NaN or infinite; no other number may, and none but these may
be negative."""

AT_LEAST_ONE = (
    *("block_steps", "warmup_steps", "steps_per_epoch", "samples", "epochs"),
    *("steps_per_call", "cores", "cores_usable", "protocol_version"),
)

AT_MOST: Mapping[str, float] = {
    **{name: FIELDS[name].high for name in (*TRAINING, "budget_s") if FIELDS[name].is_number},
    "test_samples": MAX_ITEMS,
    "steps_per_epoch": FIELDS["samples"].high,
    "steps_per_call": lanes.MAX_STEPS_PER_CALL,
    "micro_batch": lanes.MAX_MICRO_BATCH,
    **dict.fromkeys(("cores", "cores_usable", "threads", "threads_tried"), 2**16),
    "protocol_version": 10_000,
    "block_use_before": 1,
    "confusion": MAX_ITEMS,
    "train_accuracy": 1,
    "validation_accuracy": 1,
}
"""Highest value of numbers that are multiplied, counted up to, or shown as a share; what is asked for has its range."""

OF_CARDS = tuple(
    f"block_{entry}"
    for entry in (
        *("clock_before_mhz", "clock_mhz", "power_w", "temperature_c"),
        *("throttle", "throttled_s", "use_before", "other_processes"),
    )
)
"""What is read of a card around each block; empty where it cannot be read."""

_BLOCK_LISTS = tuple(c.name for c in TRIAL_COLUMNS if c.name.startswith("block_") and c.name not in OF_CARDS)
EQUALLY_LONG = (
    _BLOCK_LISTS,
    ("warmup_steps", "warmup_s"),
    ("loss_step", "loss"),
    ("threads_tried", "threads_tried_step_s"),
)
"""Lists whose entries belong together."""

LONGEST: Mapping[str, int] = {
    **dict.fromkeys((*_BLOCK_LISTS, *OF_CARDS), MAX_LIST),
    "confusion": MAX_CLASSES**2,
}
