"""Studies that others published, answered as anybody's timings are: their figures, their machines, their clocks.

Tables lie in `data/published`, with their sources; the tutorials' own figures are in
`core.question.published.tutorials`. None of them is a row of the store, and nothing that was measured here is ever put
into one number with them.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

from core.answer.study import crossover, wording
from core.answer.study.brought import timings
from core.answer.study.result import Crossover, Evidence, Outcome
from core.files import documents
from core.files.project import PROJECT
from core.question.published.tutorials import Published, published

FOLDER = PROJECT / "data" / "published"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Who published a table.

    Attributes:
        name: of the author and the work, for people.
        address: where it lies; empty if not known.
        date: of the figures, ISO 8601; empty if it bears none.
        licence: under which it may be shown; empty where single figures are quoted.
        cpu: what the CPU's times were taken on.
        gpu: what the GPU's times were taken on.
        note: how the figures were come by.
    """

    name: str
    address: str = ""
    date: str = ""
    licence: str = ""
    cpu: str
    gpu: str
    note: str

    @property
    def cited(self) -> str:
        """Author, work and date, as they stand below every picture and in every file."""
        return ", ".join(filter(None, (self.name, self.date or "undated")))


@dataclass(frozen=True, kw_only=True)
class PublishedStudy:
    """One published table and what it says.

    Attributes:
        name: of the table, for links.
        per: what a time is of: `training` or `epoch`.
    """

    name: str
    title: str
    axis: str
    per: str
    source: Source
    evidence: tuple[Evidence, ...]

    @functools.cached_property
    def answer(self) -> Crossover:
        """Where the faster device changes, by these figures."""
        return crossover.locate(self.evidence, axis=self.axis, baseline="the CPU", challenger="the GPU")

    @property
    def headline(self) -> str:
        """The answer in a sentence, with what it assumes."""
        return wording.headline(self.answer)

    @property
    def outcome(self) -> Outcome:
        """What the figures say; of single readings, if they scatter as is usual."""
        return self.answer.assumed.outcome if self.answer.assumed else self.answer.outcome

    @property
    def mark(self) -> str:
        """What stands wherever the study is shown."""
        return f"Published, not measured here: {self.source.cited}"


@dataclass(frozen=True, kw_only=True)
class _Entry:
    name: str
    title: str
    axis: str
    source: str
    per: str


@dataclass(frozen=True, kw_only=True)
class _Listed:
    sources: dict[str, Source]
    studies: tuple[_Entry, ...]


def published_studies(folder: Path = FOLDER) -> tuple[PublishedStudy, ...]:
    """Every published study, the tutorial's first.

    Args:
        folder: with `studies.toml` and a table each.

    Raises:
        DamagedFile: the list of studies is not what it should be.
        ForeignFile: a table cannot be read.
    """
    listed = documents.typed(documents.read_toml(folder / "studies.toml") or {}, _Listed)
    return (_tutorial(), *(_study(entry, listed.sources[entry.source], folder) for entry in listed.studies))


def _study(entry: _Entry, source: Source, folder: Path) -> PublishedStudy:
    file = folder / f"{entry.name}.csv"
    table = timings.read(file.read_bytes(), file.name, devices=("cpu", "gpu"))
    return PublishedStudy(
        name=entry.name, title=entry.title, axis=entry.axis, per=entry.per, source=source, evidence=table.evidence
    )


def _tutorial() -> PublishedStudy:
    """The figure of the signal tutorial, whose two lines were read off by eye."""
    entries = published("signal", "seconds")
    first = entries[0]
    names = {entry.device: entry.device_name for entry in entries}
    return PublishedStudy(
        evidence=tuple(_evidence(entries, size) for size in sorted({entry.size or 0.0 for entry in entries})),
        name="signal",
        title="Two hidden layers, signal against background",
        axis="neurons a layer",
        per=first.per,
        source=Source(
            name=first.source,
            date=first.date,
            cpu=names["cpu"],
            gpu=names["gpu"],
            note=f"{first.note} A reading may be off by {first.plus_minus:.0f} s.",
        ),
    )


def _evidence(entries: tuple[Published, ...], size: float) -> Evidence:
    times = {entry.device: (entry.value,) for entry in entries if entry.size == size}
    return Evidence(size=size, baseline_s=times["cpu"], challenger_s=times["gpu"], paired=False)
