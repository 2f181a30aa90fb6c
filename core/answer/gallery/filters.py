"""What a store holds, as a list can show it: filters, the studies among what they let through, and the machines.

Works on the light table of `core.answer.gallery.table` alone, so that many thousand trials are filtered at once; whole
rows are read by whoever opens one. Nothing here reads a file or draws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from core import units
from core.answer.gallery import trust
from core.answer.gallery.table import StudyLine
from core.answer.gallery.trust import Level
from core.answer.study.result import DECIDED, Outcome
from core.question.device_kinds import DEVICE_KINDS

FILTERS: dict[str, str] = {
    "in_machine": "machine",
    "in_kind": "device_kind",
    "in_device": "device_name",
    "in_dataset": "dataset",
    "in_model": "model",
    "in_training": "training",
    "in_protocol": "protocol_version",
    "in_trust": "trust",
    "in_source": "source",
    "in_outcome": "outcome",
}
"""Name of a filter, as in the link → column of the table."""

MACHINE_LINE_COLUMNS = (
    *("machine", "cores", "memory_bytes", "device_kind", "device_name", "run_id", "trust", "system"),
    *("torch_version", "source", "started_at"),
)
"""Columns that a line about a machine needs."""

MAX_MACHINE_LINES = 200
"""Machines that have a line; a line takes some milliseconds, and nobody reads so many."""

ANSWERS: dict[Outcome, str] = {
    "crossing": "Crossover",
    "gpu_always": "Second device always",
    "cpu_always": "First device always",
    "several": "Several crossovers",
    "undecided": "Undecided",
    "not_measurable": "Not measurable",
}
"""What a study says, for people; the second device is the GPU where there is one."""

MAX_NAMES_LISTED = 3
"""Names in one cell before the rest is counted."""

LinePlaces = Sequence[int] | npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class GalleryData:
    """Everything a store holds, with what follows from it.

    Attributes:
        trials: lines of `core.answer.gallery.table`, with `trust` (the level) and `mark` (level and count).
        studies: every study, those with the most sizes first.
        marks: the mark of each study: a check is met where all its rows meet it; `levels` has its level.
        row_of: place of a row in `trials`, for each row of each study; `study_of` the place of that study in `studies`.
        options: of each filter, ascending.
    """

    trials: pd.DataFrame
    studies: tuple[StudyLine, ...]
    marks: tuple[str, ...]
    levels: tuple[Level, ...]
    row_of: npt.NDArray[np.intp]
    study_of: npt.NDArray[np.intp]
    options: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class FilterResult:
    """What filters let through, as places in `Held.trials` and in `Held.studies`, ascending."""

    trials: npt.NDArray[np.int32]
    studies: tuple[int, ...]


def build_gallery_data(trials: pd.DataFrame, studies: Sequence[StudyLine]) -> GalleryData:
    """What follows from the table of all trials and the studies that it holds."""
    met = trust.check_matrix(trials) if len(trials) else np.ones((0, len(trust.CHECKS)), dtype=bool)
    known = trials.assign(trust=pd.Categorical(trust.mark_levels(met)), mark=pd.Categorical(trust.mark_labels(met)))
    known["protocol_version"] = pd.Categorical(known["protocol_version"].astype(str))
    places = {name: place for place, name in enumerate(known["trial_id"])}
    rows = [np.array([places[name] for name in line.trial_ids], dtype=np.intp) for line in studies]
    together = [met[group].all(axis=0) for group in rows]
    of_studies = np.array(together, dtype=bool).reshape(-1, len(trust.CHECKS))
    return GalleryData(
        trials=known,
        studies=tuple(studies),
        marks=tuple(trust.mark_labels(of_studies)),
        levels=tuple(trust.mark_levels(of_studies).tolist()),
        row_of=np.concatenate([np.zeros(0, dtype=np.intp), *rows]),
        study_of=np.repeat(np.arange(len(rows)), list(map(len, rows))),
        options={name: tuple(sorted(set(map(str, known[column].unique())))) for name, column in FILTERS.items()},
    )


def apply_filters(data: GalleryData, chosen: Mapping[str, Sequence[str]]) -> FilterResult:
    """What the chosen values of each filter let through; a filter without any lets all through.

    A study is there if one of its rows is, so that filtering by a GPU finds the study of it; but its own mark counts.
    """
    kept = np.ones(len(data.trials), dtype=bool)
    for name, values in chosen.items():
        if values and name in FILTERS and name != "in_trust":
            kept &= data.trials[FILTERS[name]].isin(list(values)).to_numpy()
    present = np.unique(data.study_of[kept[data.row_of]]).tolist()
    levels = set(chosen.get("in_trust", ())) or set(trust.LEVELS)
    if chosen.get("in_trust"):
        kept &= data.trials["trust"].isin(list(levels)).to_numpy()
    return FilterResult(
        trials=np.flatnonzero(kept).astype(np.int32),
        studies=tuple(place for place in present if data.levels[place] in levels),
    )


def select_studies(
    data: GalleryData, places: Sequence[int], answers: Sequence[Outcome | None], outcomes: Sequence[str] = ()
) -> tuple[int, ...]:
    """Of these studies those with a wanted answer, those that are decided and trusted first.

    Runs that happen to differ in one size are no study that anybody asked for: what is not measurable is left out
    unless it is wanted.

    Args:
        data: with the trust level of each study.
        places: of studies.
        answers: of every study; None where its rows cannot be read or compared, and where nobody has looked yet.
        outcomes: some of them; none lets all through but what is not measurable.
    """
    unasked = {None, *ANSWERS} - {"not_measurable"}
    shown = [place for place in places if answers[place] in (set(outcomes) or unasked)]
    levels = list(trust.LEVELS)
    return tuple(sorted(shown, key=lambda at: (answers[at] not in DECIDED, levels.index(data.levels[at]), at)))


def gallery_summary(data: GalleryData) -> str:
    """What is here, for people: trials, studies, machines, and the sorts of devices."""
    if not len(data.trials):
        return "Results of real machines, to look at and to compare."
    machines, kinds = data.trials["machine_id"].nunique(), data.trials["device_kind"].astype(str).unique()
    accelerators = sorted(DEVICE_KINDS[kind].title for kind in {*kinds} - {"cpu"} if kind in DEVICE_KINDS)
    *others, last = ["CPUs", *(f"{title.removeprefix('another ')}s" for title in accelerators)]
    devices = f"{', '.join(others)} and {last}" if others else "CPUs only"
    parts = [
        units.format_quantity(len(data.trials), "trial"),
        units.format_quantity(len(data.studies), "study", "studies"),
    ]
    return f"{parts[0]} in {parts[1]} from {units.format_quantity(machines, 'machine')}; {devices}."


def select_lines(data: GalleryData, places: LinePlaces, columns: Sequence[str]) -> pd.DataFrame:
    """Some columns of some lines."""
    return data.trials[list(columns)].iloc[np.asarray(places, dtype=np.intp)]


def machine_table(data: GalleryData, places: LinePlaces) -> list[dict[str, Any]]:
    """One line a machine, the one with the most trials first: what it is, its devices, and what was measured on it.

    Of very many machines the `MAX_MACHINE_LINES` with the most trials.
    """
    rows = select_lines(data, places, MACHINE_LINE_COLUMNS)
    counts = rows["machine"].astype(str).value_counts()
    first = sorted(counts.index, key=lambda name: (-counts[name], name))[:MAX_MACHINE_LINES]
    some = rows[rows["machine"].isin(first)]
    known = {str(name): group for name, group in some.groupby("machine", observed=True, sort=False)}
    return [_machine(name, known[name]) for name in first]


def _machine(name: str, rows: pd.DataFrame) -> dict[str, Any]:
    first = rows.iloc[0]
    accelerators = rows.loc[(rows["device_kind"] != "cpu").to_numpy(), "device_name"]
    return {
        "Machine": name,
        "Processor threads": int(first["cores"]),
        "Memory": units.format_memory(float(first["memory_bytes"])),
        "Accelerators": frequent_names(accelerators) or "none",
        "Trials": len(rows),
        "Runs": int(rows["run_id"].nunique()),
        "Fully trusted": units.format_share(float((rows["trust"] == "full").mean())),
        "System": str(first["system"]),
        "torch": frequent_names(rows["torch_version"]),
        "Source": frequent_names(rows["source"]),
        "Newest (UTC)": str(max(rows["started_at"]))[:10],
    }


def frequent_names(values: "pd.Series[Any]") -> str:
    """The names that occur, the most frequent first; those beyond `MAX_NAMES_LISTED` are counted."""
    names = [str(name) for name, count in values.value_counts().items() if count and name != ""]
    return ", ".join(names[:MAX_NAMES_LISTED]) + (
        f" and {len(names) - MAX_NAMES_LISTED} more" if len(names) > MAX_NAMES_LISTED else ""
    )
