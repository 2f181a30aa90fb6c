"""Pages run as scripts against real folders; the measuring process is this one, so that none is started."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from core.answer.charts import look
from core.answer.export import rendering
from core.files.project import PROJECT
from core.jobs import process
from core.jobs.job import Job
from core.jobs.machine import Machine, MachineUse, Serving
from core.jobs.queue import Queue
from core.progress import Progress
from core.question.experiment import Experiment
from core.question.sweep import Sweep
from core.results.environment import DeviceInfo, Environment
from core.results.parquet import to_table
from core.results.schema import Trial
from core.results.store import Store
from pages.shared import layout, queries
from tests import rows
from tests.ui import drawing

TIMEOUT_S = 240
"""Far beyond any run of a page; a busy machine is no failure."""

CPU = DeviceInfo(device="cpu", kind="cpu", name="Test CPU", memory_bytes=16 * 2**30)
GPU = DeviceInfo(device="cuda:0", kind="cuda", name="NVIDIA Test GPU", memory_bytes=80 * 2**30, driver="driver 1")
HINT = "There is no NVIDIA or AMD driver."


Files = set[tuple[Path, int]]
"""Those of a folder, and when each was written."""


@dataclass(frozen=True, kw_only=True)
class Stores:
    """What was measured here, and what came with the app."""

    store: Store
    gallery: Store

    @staticmethod
    def named(folder: Path) -> dict[str, Store]:
        """Both, in a folder."""
        return {"store": Store(folder / "results"), "gallery": Store(folder / "gallery")}

    @classmethod
    def of(cls, folder: Path) -> "Stores":
        return Stores(**cls.named(folder))

    def keep(self, trials: list[Trial]) -> list[Trial]:
        """Store rows as if they were measured here, in one file, as runs are and what was merged."""
        if trials:
            self.store.add_all(to_table(trials))
        return trials

    def ship(self, trials: list[Trial]) -> list[Trial]:
        """Store rows as if they had come with the app, in one file."""
        self.gallery.add_all(to_table(trials))
        return trials


@dataclass(frozen=True, kw_only=True)
class World(Stores):
    """The folders that the pages see."""

    queue: Queue

    def has(self, *devices: DeviceInfo, left_out: str = "") -> None:
        """Let the measuring process report these devices, and what it says of one that is left out."""
        row = rows.trial()
        environment = Environment(**{field.name: getattr(row, field.name) for field in dataclasses.fields(Environment)})
        hint = HINT if len(devices) == 1 else left_out
        machine = Machine(environment=environment, devices=devices, startup_s={"cpu": 0.5}, hint=hint)
        self.queue.worker_file.report(machine, process.current_process())

    def submit(self, experiment: Experiment | Sweep = rows.EXPERIMENT) -> Job:
        return self.queue.submit(experiment, self.store)

    def run(self, experiment: Experiment | Sweep = rows.EXPERIMENT, progress: Progress | None = None) -> Job:
        """A job that is being measured, by this process."""
        self.submit(experiment)
        claimed = self.queue.claim(process.current_process())
        assert claimed is not None
        running = dataclasses.replace(claimed, progress=progress)
        self.queue.report(running)
        return running

    def end(self, job: Job, **changes: Any) -> Job:
        ended = dataclasses.replace(job, **changes)
        self.queue.end(ended)
        return ended


@pytest.fixture(scope="session", autouse=True)
def packages_are_read_once() -> Iterator[None]:
    """Streamlit reads the metadata of every installed package for each `AppTest`, half of what a test would take."""
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", once)
        yield


@pytest.fixture(scope="session", autouse=True)
def every_chart_is_checked() -> Iterator[None]:
    """What a page draws is what Vega-Lite knows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(look, "CHECKED", True)
        yield


@pytest.fixture(scope="session")
def one_process_that_draws() -> Iterator[drawing.Drawing]:
    with contextlib.closing(drawing.Drawing()) as drawn:
        yield drawn


@pytest.fixture(autouse=True)
def charts_become_files_in_one_process(
    one_process_that_draws: drawing.Drawing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "_convert_chart", one_process_that_draws)


@pytest.fixture(autouse=True)
def read_here(foreign_files_are_read_here: None) -> None:
    pass


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Empty folders, and a measuring process that has not reported yet."""
    monkeypatch.setenv("CROSSOVER_JOBS", str(tmp_path / "jobs"))
    queue = Queue(tmp_path / "jobs")
    queue.folder.mkdir()
    queue.worker_file.take(Serving(process=process.current_process(), ready=True))
    return _seen(World(queue=queue, **Stores.named(tmp_path)), monkeypatch)


def _seen(world: World, patch: pytest.MonkeyPatch) -> World:
    """The world, whose stores pages now see."""
    patch.setenv("CROSSOVER_RESULTS", str(world.store.folder))
    patch.setattr(queries, "GALLERY", world.gallery.folder)
    return world


@pytest.fixture
def lent(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], World]]:
    """Gives the world the stores of a folder, which are filled once, and read once, for all tests that only look."""
    before: dict[Path, Files] = {}

    def lend(folder: Path) -> World:
        before[folder] = _files(folder)
        return _seen(dataclasses.replace(world, **Stores.named(folder)), monkeypatch)

    yield lend
    assert before == {folder: _files(folder) for folder in before}, "who changes a store takes one of its own"


def _files(folder: Path) -> Files:
    return {(path, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def open_page(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Opens a page by its file, or by an address of before, with the parameters of a link; fails if it raised."""
    monkeypatch.chdir(PROJECT)
    monkeypatch.setattr(queries, "read_machine_use", MachineUse)  # what else runs is no matter of a test

    def opened(page: str = "/", **link: Any) -> AppTest:
        app = AppTest.from_file(str(PROJECT / "streamlit_app.py"), default_timeout=TIMEOUT_S)
        if page.startswith("/"):  # where an address leads on to; that it does is tests/ui/test_earlier_links.py
            page, link = layout.EXPLORE, layout.renew_link(page[1:], link)
        for name, value in link.items():
            app.query_params[name] = value
        app.switch_page(page)
        return checked(app.run())

    return opened


def checked(app: AppTest) -> AppTest:
    """The page, if it ran without an exception."""
    assert not app.exception, app.exception
    return app


def words(app: AppTest) -> str:
    """Everything the page says, one piece a line."""
    kinds = (
        "title",
        "header",
        "subheader",
        "caption",
        "markdown",
        "info",
        "warning",
        "error",
        "success",
        "text",
        "code",
    )
    pieces = [element.value for kind in kinds for element in getattr(app, kind)]
    return "\n".join(str(piece).replace("\\", "").replace(":small[]", "").replace("\u00a0", " ") for piece in pieces)
