"""Quality checks of stored rows: the conditions that a row records, and the checks that it fails, with the figure.

The mark counts checks that use stored facts alone; it does not show whether a result is surprising. The limits are
those by which `core.answer.speedup` gives or refuses a verdict. The checks apply to one row, to several rows together,
and to a table of many thousand rows.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ... import units
from ...question.experiment import inline_name
from ...results.schema import Trial
from .. import interference, speedup
from ..interference import LOAD_ROOM, MAX_STEAL
from ..statistics import MIN_PAIRS, TIE, p90_to_median

Level = Literal["full", "partly", "weak"]

LEVELS: dict[Level, str] = {
    "full": "every check passed",
    "partly": "one or two checks failed",
    "weak": "more than two failed, or the device was not synchronized or not warmed up",
}

MOST_MISSING = 2
"""Maximum number of failed checks before a mark is weak."""

NEEDED_CHECKS = ("drained", "warmed")
"""Checks whose failure alone makes a mark weak, because then the times are not those of the training."""

MAX_NOISE = TIE - 1
"""Highest interquartile range of block times over their median, equal to the difference that is too small to matter."""

_PART_OF_A_GPU = re.compile(" MIG |GRID |vGPU")
"""Pattern in the name of a device that is a part of a GPU, whose other parts somebody else may use."""

VERSIONS = {
    "torch_version": "torch",
    "python_version": "Python",
    "app_version": "Crossover",
    "system": "the operating system",
}

SCALAR_CHECK_COLUMNS = (
    *("drained", "contender", "device_kind", "device_name", "device_driver", "threads", "cores", "cores_usable"),
    *("app_commit", *VERSIONS),
)
BLOCK_CHECK_COLUMNS = ("warmed", "pairs", "noise", "spread90", "threads_tried_count", "load_max", "steal_max")
"""Columns that the checks use: scalar columns of a row, and summaries of its blocks in the table of all rows."""


class CheckColumns(Protocol):
    """Values of each row by column of `core.answer.gallery.overview`: a pandas frame, or arrays by name."""

    def __getitem__(self, name: str, /) -> Any: ...


CheckRow = Mapping[str, Any]
"""Values of one row by column."""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A condition that a row should fulfil.

    Attributes:
        title: the fulfilled condition, in a few words.
        lacking: returns the sentence for a row that fails the check, with its figure.
        severity: returns by how much a row fails the check, to select the worst of several rows.
    """

    name: str
    title: str
    met: Callable[[CheckColumns], Bools]
    lacking: Callable[[CheckRow], str]
    severity: Callable[[CheckRow], float] = lambda row: 0.0


@dataclass(frozen=True, kw_only=True)
class TrustMark:
    """Number of checks that pass for a row, or for all of several rows, and a sentence for each failed check."""

    level: Level
    met: int
    of: int
    missing: tuple[str, ...]

    @property
    def label(self) -> str:
        """The mark in a few words: `partly, 7 of 9`."""
        return f"{self.level}, {self.met} of {self.of}"


def check_matrix(columns: CheckColumns) -> Bools:
    """Return whether each row passes each check: a line per row, a column for each of `CHECKS`."""
    return np.column_stack([check.met(columns) for check in CHECKS])


def mark_levels(met: Bools) -> npt.NDArray[np.str_]:
    """Return the level of each line of `check_matrix`; the line of several rows together is `met.all(axis=0)`."""
    absent = (~met).sum(axis=1)
    needed = met[:, [place for place, check in enumerate(CHECKS) if check.name in NEEDED_CHECKS]].all(axis=1)
    found = np.where(absent == 0, "full", "partly")
    return np.where(needed & (absent <= MOST_MISSING), found, "weak")


def mark_labels(met: Bools) -> list[str]:
    """Return the label of each line of `check_matrix`, as in `TrustMark.label`."""
    pairs = zip(mark_levels(met).tolist(), met.sum(axis=1).tolist(), strict=True)
    return [f"{level}, {count} of {len(CHECKS)}" for level, count in pairs]


def trust_mark(trials: Sequence[Trial]) -> TrustMark:
    """Return the mark of one row, or of several together: a check passes if it passes for every row."""
    rows = [check_facts(trial) for trial in trials]
    return table_trust_mark({name: np.array([row[name] for row in rows]) for name in rows[0]})


def table_trust_mark(columns: CheckColumns) -> TrustMark:
    """Return the common mark of the rows of a table."""
    met = check_matrix(columns)
    together = np.asarray(met.all(axis=0, keepdims=True))
    level: Level = mark_levels(together).tolist()[0]
    missing = tuple(
        _missing_sentence(check, columns, np.flatnonzero(~met[:, place]), len(met))
        for place, check in enumerate(CHECKS)
        if not together[0, place]
    )
    return TrustMark(level=level, met=int(together.sum()), of=len(CHECKS), missing=missing)


def check_facts(trial: Trial) -> dict[str, Any]:
    """Return the facts of a whole row that the checks need, named as in the table of all rows."""
    times = trial.step_s
    noise = speedup.step_time(trial).noise
    timed = len(times) >= interference.SPREAD_BLOCKS and all(time > 0 for time in times)
    return {
        **{name: getattr(trial, name) for name in SCALAR_CHECK_COLUMNS},
        "warmed": bool(trial.warmup_s),
        "pairs": len(times),
        "noise": np.nan if noise is None else noise,
        "spread90": p90_to_median(times) if timed else np.nan,
        "load_max": max(trial.block_load, default=np.nan),
        "steal_max": max(trial.block_steal, default=np.nan),
        "threads_tried_count": len(trial.threads_tried),
    }


def _missing_sentence(check: Check, columns: CheckColumns, places: npt.NDArray[np.intp], count: int) -> str:
    """Return the sentence of the row that fails a check by most, with the number of rows that fail it."""
    rows = [_row_values(columns, place) for place in places]
    said = check.lacking(max(rows, key=check.severity))
    if count == 1:
        return said
    share = "In every row" if len(rows) == count else f"In {len(rows):,} of {count:,} rows"
    worst = "; at worst" if len({check.severity(row) for row in rows}) > 1 else ""
    return f"{share}{worst}: {said}"


def _row_values(columns: CheckColumns, place: int) -> dict[str, Any]:
    return {name: np.asarray(columns[name])[place] for name in (*SCALAR_CHECK_COLUMNS, *BLOCK_CHECK_COLUMNS)}


def _numbers(columns: CheckColumns, name: str) -> npt.NDArray[np.float64]:
    return np.asarray(columns[name], dtype=float)


def _check_texts(columns: CheckColumns, name: str, holds: Callable[[str], bool]) -> Bools:
    """Return whether a check passes for each text of a column; each distinct text is evaluated once."""
    values = np.asarray(columns[name], dtype=object).tolist()
    known = {value: holds(str(value or "")) for value in set(values)}
    return np.fromiter((known[value] for value in values), bool, len(values))


def _is_steady(columns: CheckColumns) -> Bools:
    spread = _numbers(columns, "spread90")
    return (_numbers(columns, "noise") <= MAX_NOISE) & (np.isnan(spread) | (spread <= interference.MAX_SPREAD))


def _noise_sentence(row: CheckRow) -> str:
    if row["spread90"] > interference.MAX_SPREAD:
        took, accepted = units.format_ratio(float(row["spread90"])), units.format_ratio(interference.MAX_SPREAD)
        return f"One block in ten took at least {took} the median; {accepted} is accepted."
    if not row["noise"] >= 0:
        return "Too few blocks were timed to know the noise."
    spans, accepted = units.format_share(float(row["noise"])), units.format_share(MAX_NOISE)
    return f"The interquartile range of the block times is {spans} of their median; {accepted} is accepted."


def _has_known_threads(columns: CheckColumns) -> Bools:
    on_accelerator = _check_texts(columns, "device_kind", lambda kind: kind != "cpu")
    asked = _check_texts(columns, "contender", lambda contender: "@" in contender)
    no_choice = _numbers(columns, "cores_usable") <= 1
    return on_accelerator | asked | no_choice | (_numbers(columns, "threads_tried_count") > 0)


def _is_quiet(columns: CheckColumns) -> Bools:
    room = _numbers(columns, "cores") + LOAD_ROOM
    return (_numbers(columns, "load_max") <= room) & (_numbers(columns, "steal_max") <= MAX_STEAL)


def _load_sentence(row: CheckRow) -> str:
    if row["load_max"] > row["cores"] + LOAD_ROOM:
        load, cores = f"{float(row['load_max']):.1f}", units.format_count(int(row["cores"]))
        return f"The load reached {load} on a machine of {cores} processor threads: other programs were waiting."
    if row["steal_max"] > MAX_STEAL:
        taken, accepted = units.format_share(float(row["steal_max"])), units.format_share(MAX_STEAL)
        return f"Other guests of the host took {taken} of the processor time of a block; {accepted} is accepted."
    return "How busy the machine was is not recorded."


def _has_known_versions(columns: CheckColumns) -> Bools:
    known = _check_texts(columns, "device_driver", _is_known_driver) | _check_texts(
        columns, "device_kind", lambda kind: kind == "cpu"
    )
    for name in VERSIONS:
        known &= _check_texts(columns, name, lambda text: bool(text.strip()))
    return known


def _is_known_driver(driver: str) -> bool:
    return bool(driver.strip()) and "unknown" not in driver


def _versions_sentence(row: CheckRow) -> str:
    names = [title for name, title in VERSIONS.items() if not str(row[name] or "").strip()]
    if row["device_kind"] != "cpu" and not _is_known_driver(str(row["device_driver"] or "")):
        names.append(f"the driver of {inline_name(row['contender'])}")
    return f"The version of {' and '.join(names)} is not recorded."


def _commit_sentence(row: CheckRow) -> str:
    commit = str(row["app_commit"] or "")
    if commit:
        return f"The code had uncommitted changes ({commit})."
    return "The commit of the measuring code is not recorded."


CHECKS: tuple[Check, ...] = (
    Check(
        name="drained",
        title="synchronized before every clock reading",
        met=lambda columns: np.asarray(columns["drained"], dtype=bool),
        lacking=lambda row: (
            "The device was not synchronized before every clock reading, so unfinished work may not be counted."
        ),
    ),
    Check(
        name="warmed",
        title="warmed up first",
        met=lambda columns: np.asarray(columns["warmed"], dtype=bool),
        lacking=lambda row: "No warm-up block was run first, so one-time costs may be part of the times.",
    ),
    Check(
        name="pairs",
        title="enough pairs of blocks",
        met=lambda columns: _numbers(columns, "pairs") >= MIN_PAIRS,
        lacking=lambda row: (
            f"{units.format_count(int(row['pairs']))} blocks were timed; from {MIN_PAIRS} on, a row has a 95 % "
            "interval of its own."
        ),
        severity=lambda row: -float(row["pairs"]),
    ),
    Check(
        name="steady",
        title="steady times",
        met=_is_steady,
        lacking=_noise_sentence,
        severity=lambda row: float(np.nan_to_num(row["noise"])),
    ),
    Check(
        name="threads",
        title="threads tried, or fixed on purpose",
        met=_has_known_threads,
        lacking=lambda row: (
            f"It ran on {units.format_count(int(row['threads']))} CPU threads: no other number was tried, and none "
            "was chosen."
        ),
    ),
    Check(
        name="quiet",
        title="an otherwise idle machine",
        met=_is_quiet,
        lacking=_load_sentence,
        severity=lambda row: float(np.nan_to_num(max(row["load_max"] / max(1, row["cores"]), row["steal_max"]))),
    ),
    Check(
        name="unshared",
        title="a whole GPU, judging by its name",
        met=lambda columns: _check_texts(columns, "device_name", lambda name: not _PART_OF_A_GPU.search(f" {name} ")),
        lacking=lambda row: f"{row['device_name']} is a part of a GPU, whose other parts may have been in use.",
    ),
    Check(name="versions", title="versions recorded", met=_has_known_versions, lacking=_versions_sentence),
    Check(
        name="commit",
        title="measured by a recorded commit",
        met=lambda columns: _check_texts(
            columns, "app_commit", lambda commit: commit != "" and not commit.endswith("+")
        ),
        lacking=_commit_sentence,
    ),
)
