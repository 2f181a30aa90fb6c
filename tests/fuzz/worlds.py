"""An app with something of everything: jobs, rows, exhibits, classes, settings; what became of its files; its pages.

What a case changes is put back before the next one. Nobody measures: whoever is started as a worker leaves at once.
"""

import contextlib
import dataclasses
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from streamlit import config

from core.classroom import results
from core.classroom.classes import CLASSES_VARIABLE, Class, Classes, Prediction, Student
from core.classroom.question import CHALLENGER, ClassQuestion
from core.jobs import client, process, recovery
from core.jobs.job import Job
from core.jobs.machine import LOCK_VARIABLE, Moment, Serving
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.progress import Progress
from core.question.policy import POLICY_VARIABLE
from core.question.sweep import Axis, Sweep
from core.results import exhibits
from core.results.store import Store
from pages.shared import layout, queries
from tests import exhibited, rows
from tests.earlier_files import EARLIER
from tests.fuzz import entries, shown
from tests.integration import scripted_worker
from tests.ui.conftest import CPU, GPU, World

QUESTION = ClassQuestion.from_preset("signal")
ASKED = Sweep(
    point=rows.EXPERIMENT.point,
    axes=(Axis(name="hidden_size", values=(16, 64, 256)),),
    contenders=rows.EXPERIMENT.contenders,
)
OTHER_RUN = "b" * 12
SETTINGS = """\
who_may_run = "everybody"
who_may_stop = "asker"
banner = "Measurements may be interrupted."
queue_length = 100
read_only_gallery = false
sign_in_domains = ["school.example"]
[run]
seconds = 600.0
parameters = 100_000_000
epochs = 1_000
[person]
seconds_per_day = 3_600.0
waiting = 5
[class]
mode = true
create = "anybody"
"""
LOCKS = (".lock",)
"""Endings of files whose content is nobody's business."""

HEARD_EVERY_S = 30.0
"""How often the process that measures says so; much longer, and it would have lost its way."""

NOBODY = (sys.executable, "-S", "-c", "")
"""Started in place of a worker."""


@dataclass(kw_only=True)
class Inhabited:
    """The folders, and who is in them.

    Attributes:
        folder: all of it.
        app: the queue and the stores.
        classes: of which there are two.
        of: the class with students.
        other: the one without.
        ada: a student with everything.
        token: of theirs.
        bob: one who expects something and has measured nothing.
        ended: a job that ended, with its rows.
        running: one that is being measured, with a part of its rows.
        waiting: one that waits.
        shown: a lesson's, that ended.
        swept: a sweep that waits.
        before: path of each file → what it holds.
        heard_s: when the running job was heard of last.
    """

    folder: Path
    app: World
    classes: Classes
    of: Class
    other: Class
    ada: Student
    token: str
    bob: Student
    ended: Job
    running: Job
    waiting: Job
    shown: Job
    swept: Job
    before: dict[str, bytes]
    heard_s: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def jobs(self) -> Path:
        return self.app.queue.folder

    @property
    def settings(self) -> Path:
        return self.folder / "crossover.toml"

    @property
    def all_jobs(self) -> tuple[Job, ...]:
        return (self.ended, self.running, self.waiting, self.shown, self.swept)

    @property
    def me(self) -> str:
        """Who ada is, as her link says it."""
        return f"{self.ada.id}.{self.token}"

    def path(self, place: str) -> str:
        """A path below the folder, whose parts in braces are somebody's: `jobs/{running}/status.json`."""
        names = {name: getattr(self, name).id for name in ("ended", "running", "waiting", "shown", "swept")}
        students = {
            name: f"classes/{self.of.id}/students/{who.id}" for name, who in (("ada", self.ada), ("bob", self.bob))
        }
        return place.format(**names, **students, of=self.of.id, other=self.other.id)

    def now(self) -> dict[str, bytes]:
        """Path of each file → what it holds."""
        return contents(self.folder)

    def changes(self) -> tuple[set[str], set[str]]:
        """Paths that are gone, and paths that hold something else, since all was as in `before`."""
        now = self.now()
        gone = self.before.keys() - now.keys()
        return gone, {path for path in self.before.keys() & now.keys() if self.before[path] != now[path]}

    def restore(self) -> None:
        """Put everything back."""
        self._go_on_measuring()
        now = self.now()
        for path in sorted(now.keys() - self.before.keys()):
            entries.remove(self.folder / path)
        for path, held in sorted(self.before.items()):
            if now.get(path) != held:
                there = self.folder / path
                entries.remove(there)
                if held == entries.FOLDER:
                    there.mkdir()
                else:
                    there.write_bytes(held.removeprefix(entries.FILE))

    def _go_on_measuring(self) -> None:
        """Let the running job be heard of now and then, or whoever looks would take its process for lost."""
        if time.monotonic() - self.heard_s > HEARD_EVERY_S:
            status = self.path("jobs/{running}/status.json")
            entries.remove(self.folder / status)
            self.app.queue.files(self.running.id).write(dataclasses.replace(self.running, reported=Moment.read_clock()))
            self.before[status] = entries.content(self.folder / status)
            self.heard_s = time.monotonic()

    def views(self, name: str) -> shown.View:
        """A page by what is looked at."""
        code, teaches = self.of.code, {"_teaches": {self.of.id: "-"}}
        known = {
            "compare": shown.View(page="/compare"),
            "compare-ended": shown.View(page="/compare", link={"job": self.ended.id}),
            "compare-running": shown.View(page="/compare", link={"job": self.running.id}),
            "compare-waiting": shown.View(page="/compare", link={"job": self.waiting.id}),
            "compare-run": shown.View(page="/compare", link={"run": OTHER_RUN}),
            "crossover": shown.View(page="/crossover"),
            "crossover-swept": shown.View(page="/crossover", link={"job": self.swept.id}),
            "devices": shown.View(page=layout.DEVICES),
            "class": shown.View(page=layout.CLASS),
            "class-visitor": shown.View(page=layout.CLASS, link={"class": code}),
            "class-student": shown.View(page=layout.CLASS, link={"class": code, "me": self.me}),
            "class-teacher": shown.View(page=layout.CLASS, link={"class": code}, session=teaches),
            "gallery": shown.View(page=layout.GALLERY),
            "lessons": shown.View(page=layout.LESSONS, link={"lesson": "clock", "predict_clock": "too little"}),
            "tutorials": shown.View(page=layout.TUTORIALS),
        }
        return known[name]


@contextlib.contextmanager
def inhabited(folder: Path) -> Iterator[Inhabited]:
    """A folder with all of it, which the app and its pages take for theirs; a scratch folder is the current one."""
    with alone(folder) as app:
        yield _inhabit(folder, app)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[World]:
    """Empty folders that the app and its pages take for theirs; nobody measures."""
    scratch = folder / "scratch"
    scratch.mkdir()
    (folder / "crossover.toml").write_text(SETTINGS)
    variables = {
        JOBS_VARIABLE: str(folder / "jobs"),
        queries.RESULTS_VARIABLE: str(folder / "results"),
        CLASSES_VARIABLE: str(folder / "classes"),
        LOCK_VARIABLE: str(folder / "machine.lock"),
        POLICY_VARIABLE: str(folder / "crossover.toml"),
    }
    queue = Queue(folder / "jobs")
    queue.folder.mkdir()
    before = Path.cwd()
    config.get_config_options()  # now: Streamlit looks for the settings where it is when first asked
    with (
        mock.patch.dict(os.environ, variables),
        mock.patch.object(queries, "GALLERY", folder / "gallery"),
        mock.patch.object(client, "COMMAND", NOBODY),
        shown.quietly(),
    ):
        os.chdir(scratch)  # whatever is written beside the folders is found here
        try:
            app = World(queue=queue, store=Store(folder / "results"), gallery=Store(folder / "gallery"))
            queue.worker_file.take(Serving(process=process.current_process(), ready=True))
            app.has(CPU, GPU)
            yield app
        finally:
            shown.forget()
            os.chdir(before)


def contents(folder: Path) -> dict[str, bytes]:
    """Path of each thing below a folder → what it holds."""
    found: dict[str, bytes] = {}
    for at, folders, names in os.walk(folder):
        for name in (*folders, *names):
            if not name.endswith(LOCKS):
                path = Path(at) / name
                found[str(path.relative_to(folder))] = entries.content(path)
    return found


def study_rows(letter: str, sizes: Sequence[int] = (16, 64, 256), **changes: Any) -> list[list[Any]]:
    """Runs of `ASKED`, each at one size."""
    found = []
    for size in sizes:
        point = dataclasses.replace(rows.EXPERIMENT.point, hidden_size=size)
        steps = {"cpu": 1e-4 * size / 64, "cuda:0": 1e-4}
        found.append(rows.run(steps, point=point, run_id=f"{letter}{size:011d}", pairs=8, **changes))
    return found


def class_rows(crossing: float = 100.0, **changes: Any) -> list[Any]:
    """Rows of the class's question, whose GPU is faster above a size."""
    found = []
    for number, point in enumerate(QUESTION.points):
        steps = {"cpu": 1e-3, "cuda:0": 1e-3 * (crossing / point.hidden_size) ** 0.8}
        found += rows.run(steps, point=point, run_id=f"{number:012x}", outcome="timed", pairs=8, **changes)
    return found


def _inhabit(folder: Path, app: World) -> Inhabited:
    classes = Classes(folder / "classes")
    of, _ = classes.create("Physics 7b", QUESTION)
    other, _ = classes.create("Chemistry", ClassQuestion.from_preset("disc"))
    ada, token = classes.join(of, "ada")
    bob, _ = classes.join(of, "bob")
    for student in (ada, bob):
        classes.predict(of, student, Prediction(winner=CHALLENGER, place=100))
    (app.queue.folder / "salt").write_text("0123456789abcdef" * 4)
    data = results.build_file(class_rows(), code=of.code, nickname="ada")
    classes.take_file(of, ada, data, "rows.parquet")
    for run in (*study_rows("c"), rows.run(run_id=OTHER_RUN)):
        app.keep(run)
    _lay_out_earlier(folder / "earlier")
    exhibits.add_exhibit(app.store.folder, exhibited.exhibit(exhibited.CLOCK))
    jobs = _jobs(app)
    return Inhabited(
        folder=folder,
        app=app,
        classes=classes,
        of=of,
        other=other,
        ada=ada,
        token=token,
        bob=bob,
        before=contents(folder),
        **jobs,
    )


def _lay_out_earlier(folder: Path) -> None:
    """Put a class there as version 0.1.0 wrote it, whose time is not over."""
    shutil.copytree(EARLIER / "classes", folder)
    for file in folder.glob("*/class.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"expires_at": "2999-01-01T00:00:00+00:00"}))


def _jobs(app: World) -> dict[str, Job]:
    queue, store = app.queue, app.store
    ended = app.run(rows.EXPERIMENT, progress=scripted_worker.progress(rows.EXPERIMENT, 3))
    mine = rows.run(run_id=ended.derive_run_id(rows.EXPERIMENT))
    queue.end(recovery.complete(queue.files(ended.id), ended, mine))
    lesson = app.run(exhibited.CLOCK)
    queue.end(recovery.complete_exhibit(queue.files(lesson.id), lesson, exhibited.exhibit(exhibited.CLOCK)))
    asked = dataclasses.replace(rows.EXPERIMENT, budget_s=31.0)
    queue.submit(asked, store, asked_by="browser-0123456789abcdef", asked_from="address-0123456789abcdef")
    claimed = queue.claim(process.current_process())
    assert claimed is not None
    running = dataclasses.replace(claimed, progress=_progress(asked))
    queue.report(running)
    queue.files(running.id).keep_partial(rows.run(run_id=running.derive_run_id(asked), pairs=4, outcome="interrupted"))
    waiting = queue.submit(dataclasses.replace(rows.EXPERIMENT, budget_s=32.0), store)
    swept = queue.submit(ASKED, store, asked_by="browser-0123456789abcdef")
    return {"ended": ended, "running": running, "waiting": waiting, "shown": lesson, "swept": swept}


def _progress(asked: Any) -> Progress:
    told = scripted_worker.progress(asked, 3)
    contender = dataclasses.replace(
        told.contenders[0], loss_steps=(19, 38), losses=(2.2, 2.0), loss_seconds=(0.1, 0.2), step_s=1e-3, threads=2
    )
    return dataclasses.replace(told, contenders=(contender, *told.contenders[1:]), budget_s=31.0, elapsed_s=3.0)
