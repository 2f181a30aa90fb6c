"""Rows that may come through the door, however odd: through every page and view that shows them, and every download."""

import contextlib
import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.classroom.classes import Class, Classes, Prediction, Student
from core.classroom.question import CHALLENGER
from core.errors import CrossoverError, ForeignFile
from core.results.parquet import from_table, read_file, to_table
from core.results.schema import SCHEMA, SCHEMA_VERSION, VERSION_KEY, Trial
from pages.shared import layout, queries
from tests import hostile
from tests import rows as real
from tests.fuzz import entries, shown, values, worlds
from tests.fuzz.campaign import Fuzzer, Given, Subject
from tests.fuzz.shown import View
from tests.fuzz.watching import Fault, Gauge, require_sentence
from tests.ui.conftest import World

csv.field_size_limit(2**30)  # the blocks of a long run are one cell

NEWER, PICTURED, REPORTED = 0.1, 0.02, 0.1
"""Shares of the cases: of a newer version, in which charts become pictures (in seconds), and reports are made."""

IN_CLASS = "0000000"
"""Beginning of the names of runs that a student has measured."""

LANES = {"cpu": 1e-3, "cpu@1": 2e-3, "cpu+compiled": 8e-4, "cuda:0": 3e-4, "cuda:0+graph10": 1e-4, "cuda:0+bf16": 2e-4}
OPEN = dict.fromkeys(
    (
        "more",
        "stock",
        "loss",
        "reports",
        "blocks",
        "fingerprints",
        "fingerprint",
        "speedup",
        "lacks",
        "filters",
        "unread",
    ),
    "true",
)
"""Parts of pages that open and close."""

IN_FULL = ("compare, a run", "crossover, a study", "gallery, a study", "gallery, a run", "class, a student")
"""Views of whole rows, which are looked at in every case; of the …"""

OTHERS = 3
"""… others so many are drawn, since all of them take four seconds."""

Taken = list[tuple[str, Any]]
"""Files that a page offers: the label, and the data or what makes them."""


@dataclass
class Rows:
    """A store and a student with nothing but such rows."""

    app: World
    classes: Classes
    of: Class
    ada: Student
    token: str
    base: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base = [
            row for run in (*worlds.study_rows("c"), *worlds.study_rows("d", machine_id="d" * 12)) for row in run
        ]
        self.base += real.run(LANES, run_id="e" * 12, point=real.EXPERIMENT.point)
        self.base += real.run(run_id="f" * 12)
        self.base += worlds.class_rows()

    def good(self) -> Given:
        """Rows as real runs have them."""
        return _given(self.base, newer=False)

    def make(self, draw: Random) -> Given:
        """The same rows, with odd values."""
        newer = draw.random() < NEWER
        return _given(values.odd(draw, self.base, newer=newer), newer=newer)

    def take(self, given: Given, draw: Random, gauge: Gauge) -> bool:
        """Put them into the store and into the class, and look at everything that shows them."""
        mine = self.classes.store(self.of, self.ada).folder
        for folder in (self.app.store.folder, mine):
            entries.remove(folder)
            folder.mkdir()
        path = self.app.store.folder / "odd.parquet"
        path.write_bytes(given.data)
        try:
            rows = from_table(read_file(path)[1])
        except ForeignFile as error:
            require_sentence(str(error))
            return False
        in_class = [row for row in rows if row.run_id.startswith(IN_CLASS)]
        (mine / "odd.parquet").write_bytes(_written(in_class, newer=_version(path) > SCHEMA_VERSION))
        views = self._views(draw, rows)
        for name in (*IN_FULL, *draw.sample(sorted(views.keys() - set(IN_FULL)), OTHERS)):
            self._look(name, views[name], draw, gauge)
        if path.read_bytes() != given.data:
            raise Fault("looking changed the rows")
        return True

    def _look(self, name: str, view: View, draw: Random, gauge: Gauge) -> None:
        taken: Taken = []
        with _offered(taken):
            app = shown.opened(view, gauge, name)
            _go_on(app, name, draw, gauge)
        pictured = draw.random() < PICTURED
        for label, data in dict(taken).items():
            if label.split(" ")[0] not in ("PNG", "SVG") or pictured:
                with gauge.part(f"{name}, {label}"):
                    _require_harmless(label, data() if callable(data) else data)

    def _views(self, draw: Random, rows: list[Trial]) -> Mapping[str, View]:
        runs = sorted({row.run_id for row in rows if not row.run_id.startswith(IN_CLASS)})
        shown.forget()
        studies = [line.id for line in queries.list_study_lines()]
        study = {"study": draw.choice(studies)} if studies else {}
        beside = {"beside": ",".join(draw.sample(studies, min(len(studies), 3)))} if studies else {}
        run, other = draw.choice(runs), draw.choice(runs)
        basis = {"basis": draw.choice(("steady", "with_transfer", "cold_start"))}
        tutorial = draw.choice(("disc", "signal", "mnist-linear", "fashion-cnn"))
        lesson = draw.choice(("loader", "learning", "small"))
        me = f"{self.ada.id}.{self.token}"
        seen = {"class": self.of.code, "results": "true"}
        return {
            "compare": View(page="/compare", link=OPEN),
            "compare, a run": View(page="/compare", link={**OPEN, "run": run}),
            "crossover": View(page="/crossover", link={"recorded_studies": "true"}),
            "crossover, a study": View(page="/crossover", link={**OPEN, **study, **basis}),
            "gallery, studies": View(page=layout.GALLERY, link=OPEN),
            "gallery, trials": View(page=layout.GALLERY, link={**OPEN, "view": "Trials"}),
            "gallery, machines": View(page=layout.GALLERY, link={"view": "Machines"}),
            "gallery, a study": View(page=layout.GALLERY, link={**OPEN, **study, **beside, **basis}),
            "gallery, a run": View(page=layout.GALLERY, link={**OPEN, "run": run, "beside": other}),
            "class, a student": View(page=layout.CLASS, link={**seen, "me": me}),
            "class, a teacher": View(page=layout.CLASS, link=seen, session={"_teaches": {self.of.id: "-"}}),
            "tutorial": View(page=layout.TUTORIALS, link={"tutorial": tutorial, "shown": tutorial}),
            "lesson": View(page=layout.LESSONS, link={"lesson": lesson, "shown": lesson}),
        }


def _go_on(app: AppTest, name: str, draw: Random, gauge: Gauge) -> None:
    """Set the rows beside a recorded accelerator where one is offered, and make a report where that is."""
    offered = next((box for box in app.selectbox if box.key == "recorded" and box.options), None)
    report = next((button for button in app.button if button.label == "Create the report"), None)
    if offered is not None:
        offered.set_value(draw.choice(offered.options))
    elif report is not None and draw.random() < REPORTED:
        report.click()
    else:
        return
    shown.drawn_again(app, gauge, f"{name}, gone on with")


@contextlib.contextmanager
def _offered(taken: Taken) -> Iterator[None]:
    """Notes every file that a page offers."""
    draw: Callable[..., Any] = st.download_button

    def noted(label: str, data: Any, *rest: Any, **more: Any) -> Any:
        taken.append((label, data))
        return draw(label, data, *rest, **more)

    with mock.patch.object(st, "download_button", noted):
        yield


def _require_harmless(label: str, data: Any) -> None:
    """Find out whether a file does nothing where it is opened; raises Fault, or what opening it raises."""
    content = data if isinstance(data, bytes) else str(data).encode()
    if "csv" in label.lower() and (found := hostile.formulas(content)):
        raise Fault(f"{label} has formulas: {found[:3]}")
    if "Script" in label:
        compile(content, "script.py", "exec")
    if "HTML" in label and b"<script>alert" in content:
        raise Fault(f"{label} has a script of a row")
    if not content:
        raise Fault(f"{label} is empty")


def _given(rows: list[Trial], *, newer: bool) -> Given:
    what = f"{len(rows)} rows{' of a newer version' if newer else ''}"
    return Given(data=_written(rows, newer=newer), what=what, suffix=".parquet")


def _written(rows: list[Trial], *, newer: bool) -> bytes:
    buffer, version = io.BytesIO(), SCHEMA_VERSION + newer
    table = to_table(rows).replace_schema_metadata({**(SCHEMA.metadata or {}), VERSION_KEY: str(version).encode()})
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _version(path: Path) -> int:
    return int((pq.read_schema(path).metadata or {})[VERSION_KEY])


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[Subject]:
    with worlds.alone(folder) as app:
        classes = Classes(folder / "classes")
        of, _ = classes.create("Physics 7b", worlds.QUESTION)
        ada, token = classes.join(of, "ada")
        with contextlib.suppress(CrossoverError):
            classes.predict(of, ada, Prediction(winner=CHALLENGER, place=100))
        yield Rows(app, classes, of, ada, token)


FUZZER = Fuzzer(name="rows", about="odd values, through every page and download", total=2_000, opened=_opened)
