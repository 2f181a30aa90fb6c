"""Studies that others published, evaluated like any other timings, with their machines and clocks.

The tables and their sources are in `data/published`; the figures of the tutorials are in `core.question.published`.
None of them is a row of the store, and no number combines them with local measurements.
"""

import functools
import statistics
from dataclasses import dataclass
from pathlib import Path

from ...files import documents
from ...files.project import SHIPPED_DATA
from ...question.experiment import Point
from ...question.models import families
from ...question.presets import PRESETS
from ...question.published import Figure, Published, list_published
from .. import crossover, timings_csv, wording
from ..judgement import Crossover, Evidence, Outcome

PUBLISHED_STUDIES_FOLDER = SHIPPED_DATA / "published"
VIRTUAL_CPUS = "virtual CPUs"


@dataclass(frozen=True, kw_only=True)
class StudySource:
    """The publisher of a table.

    Attributes:
        name: display name of the author and the work.
        address: address of the source; empty if unknown.
        date: date of the figures, ISO 8601; empty if it has none.
        licence: licence under which it may be shown; empty if single figures are quoted.
        cpu: machine of the CPU times.
        gpu: machine of the GPU times.
        note: how the figures were obtained.
        unknown: facts that the source does not state, in sentences; empty if there are none.
    """

    name: str
    address: str = ""
    date: str = ""
    licence: str = ""
    cpu: str
    gpu: str
    note: str
    unknown: str = ""

    @property
    def cited(self) -> str:
        """Author, work and date, as shown below every picture and in every file."""
        return ", ".join(filter(None, (self.name, self.date or "undated")))


@dataclass(frozen=True, kw_only=True)
class PublishedStudy:
    """One published table and its result.

    Attributes:
        name: name of the table, for links.
        per: unit of work that a time refers to: `training` or `epoch`.
    """

    name: str
    title: str
    axis: str
    per: str
    source: StudySource
    evidence: tuple[Evidence, ...]

    @functools.cached_property
    def answer(self) -> Crossover:
        """The crossover according to these figures."""
        return crossover.locate_crossover(self.evidence, axis=self.axis, baseline="the CPU", challenger="the GPU")

    @property
    def headline(self) -> str:
        """The answer in a sentence, with its assumptions."""
        said = wording.crossover_headline(self.answer)
        return said[:1].upper() + said[1:]

    @property
    def outcome(self) -> Outcome:
        """Outcome of the figures; single readings are evaluated under the assumption of typical noise."""
        return self.answer.assumed.outcome if self.answer.assumed else self.answer.outcome

    @property
    def is_by_size(self) -> bool:
        """Whether the figures vary the training, instead of the number of virtual CPUs of the machine."""
        return self.axis != VIRTUAL_CPUS

    @property
    def mark(self) -> str:
        """Note shown with the study everywhere."""
        return f"Published, not measured here: {self.source.cited}"


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """Published figures of one training without a size axis, one for each device or library.

    Attributes:
        name: name of the table, for tests and keys.
        unit: unit of the figures.
        says: comparison of the figures, in a sentence.
    """

    name: str
    title: str
    unit: str
    says: str
    source: StudySource
    figures: tuple[Figure, ...]


@dataclass(frozen=True, kw_only=True)
class _TableEntry:
    name: str
    title: str
    unit: str
    says: str
    source: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, kw_only=True)
class _Entry:
    name: str
    title: str
    axis: str
    source: str
    per: str


@dataclass(frozen=True, kw_only=True)
class _Listed:
    sources: dict[str, StudySource]
    studies: tuple[_Entry, ...]
    tables: tuple[_TableEntry, ...] = ()


def load_published_studies(folder: Path = PUBLISHED_STUDIES_FOLDER) -> tuple[PublishedStudy, ...]:
    """Return every published study, the tutorial's first.

    Args:
        folder: folder with `studies.toml` and one table per study.

    Raises:
        DamagedFile: the list of studies is not valid.
        ForeignFile: a table cannot be read.
    """
    listed = _read_list(folder)
    return (_tutorial(), *(_load_study(entry, listed.sources[entry.source], folder) for entry in listed.studies))


def load_published_tables(folder: Path = PUBLISHED_STUDIES_FOLDER) -> tuple[PublishedTable, ...]:
    """Return the published figures without a size axis.

    Raises:
        DamagedFile: `studies.toml` is not a valid list of studies and tables.
    """
    listed = _read_list(folder)
    return tuple(
        PublishedTable(
            name=entry.name,
            title=entry.title,
            unit=entry.unit,
            says=entry.says,
            source=listed.sources[entry.source],
            figures=entry.figures,
        )
        for entry in listed.tables
    )


@dataclass(frozen=True, kw_only=True)
class PublishedCurve:
    """Published figures of a comparable training at several sizes.

    Attributes:
        source: publisher and date of the figures.
        speedups: CPU time over GPU time by size; may be empty.
        wins_from: size from which the source reports the GPU as faster; None if it does not.
    """

    source: str
    address: str = ""
    speedups: tuple[tuple[float, float], ...] = ()
    wins_from: float | None = None


def find_published_curves(point: Point, axis: str) -> tuple[PublishedCurve, ...]:
    """Return published figures of the same data set and model, or of the same library of boosted trees."""
    if point.training:
        return ()
    if point.is_fit:
        alike = [study for study in load_published_studies() if study.name.split("-")[0] == point.model]
        return tuple(
            PublishedCurve(source=study.source.cited, address=study.source.address, speedups=_list_speedups(study))
            for study in alike
            if families.field_of_answer_axis(study.axis) == axis
        )
    names = [
        name for name, one in PRESETS.items() if (one.point.dataset, one.point.model) == (point.dataset, point.model)
    ]
    entries = [entry for name in names for entry in list_published(name) if entry.axis == axis]
    wins = next((entry for entry in entries if entry.quantity == "wins_from"), None)
    if wins is None:
        return ()
    timed = [entry for entry in entries if entry.quantity == "seconds"]
    speedups = _list_speedups(_tutorial()) if timed else ()
    cited = ", ".join(filter(None, (wins.source, wins.date or "undated")))
    return (PublishedCurve(source=cited, speedups=speedups, wins_from=wins.value),)


def _list_speedups(study: PublishedStudy) -> tuple[tuple[float, float], ...]:
    return tuple(
        (one.size, statistics.median(one.baseline_s) / statistics.median(one.challenger_s)) for one in study.evidence
    )


def _read_list(folder: Path) -> _Listed:
    return documents.convert_to_type(documents.read_toml(folder / "studies.toml") or {}, _Listed)


def _load_study(entry: _Entry, source: StudySource, folder: Path) -> PublishedStudy:
    file = folder / f"{entry.name}.csv"
    table = timings_csv.read_timings(file.read_bytes(), file.name, devices=("cpu", "gpu"))
    return PublishedStudy(
        name=entry.name, title=entry.title, axis=entry.axis, per=entry.per, source=source, evidence=table.evidence
    )


def _tutorial() -> PublishedStudy:
    """Return the figure of the signal tutorial, whose two lines were read by eye."""
    entries = list_published("signal", "seconds")
    first = entries[0]
    names = {entry.device: entry.device_name for entry in entries}
    return PublishedStudy(
        evidence=tuple(_evidence_at_size(entries, size) for size in sorted({entry.size or 0.0 for entry in entries})),
        name="signal",
        title="Two hidden layers, signal against background",
        axis="neurons a layer",
        per=first.per,
        source=StudySource(
            name=first.source,
            date=first.date,
            cpu=names["cpu"],
            gpu=names["gpu"],
            note=f"{first.note} A reading may be off by {first.plus_minus:.0f} s.",
        ),
    )


def _evidence_at_size(entries: tuple[Published, ...], size: float) -> Evidence:
    times = {entry.device: (entry.value,) for entry in entries if entry.size == size}
    return Evidence(size=size, baseline_s=times["cpu"], challenger_s=times["gpu"], paired=False)
