"""Each tutorial at class size, from its page: expect, press Run, and read, with a real measuring process.

The image sets are made up, in MNIST's own format, with as many images as a class takes and some, and are read by
torchvision's own loaders.
"""

import time

import pytest
from streamlit.testing.v1 import AppTest

from core.jobs import client
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import Queue
from core.question import sweep
from core.question.presets import PRESETS
from core.results.store import Store
from pages.shared import queries
from tests import idx
from tests.ui.conftest import PROJECT, checked, words
from tests.ui.find import button

PATIENCE_S = 300.0
"""Far beyond what a class takes; a busy machine is no failure."""

LOOKED_S = 4.0
"""How long a page that shows nothing new is left alone; looking takes the processors from what it waits for."""

PAIRS = 3
"""At each size of a sweep, instead of as many as an answer needs; each takes a block of every contender."""

FOLDERS = {"mnist-linear": "MNIST", "fashion-cnn": "FashionMNIST"}


@pytest.fixture(scope="module")
def image_sets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("datasets")
    for loader in FOLDERS.values():
        idx.write(folder, train=6_000, test=1_000, loader=loader)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory, image_sets):
    """Folder of the jobs of all tutorials, whose worker starts once."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSOVER_JOBS", str(folder / "jobs"))
        patch.setenv(LOCK_VARIABLE, str(folder / "machine.lock"))
        patch.setenv("CROSSOVER_DATASETS", str(image_sets))
        yield folder
        Queue(folder / "jobs").worker_file.dismiss()


@pytest.fixture
def queue(place, tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSOVER_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(queries, "GALLERY", tmp_path / "gallery")
    monkeypatch.setattr(sweep, "GRID_PAIRS", PAIRS)
    monkeypatch.chdir(PROJECT)
    return Queue(place / "jobs")


def until(app, queue, condition):
    """The page, looked at whenever something has changed, until it shows what was waited for."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition(app):
        assert time.monotonic() < deadline, words(app)
        known, next_look = standing(queue), time.monotonic() + LOOKED_S
        while standing(queue) == known and time.monotonic() < next_look:
            time.sleep(0.1)
        checked(app.run())
    return app


def standing(queue):
    """What a page shows anew: whether the machine is known, and where the jobs are."""
    return client.load_machine(queue) is not None, [job.state for job in queue.jobs()]


def can_run(app):
    return any(found.label == "Run" and not found.disabled for found in app.button)


@pytest.mark.parametrize("name", PRESETS)
def test_a_tutorial_is_expected_run_and_read_on_its_page(queue, tmp_path, name):
    app = AppTest.from_file(str(PROJECT / "streamlit_app.py"), default_timeout=PATIENCE_S)
    app.query_params["tutorial"] = name
    app.query_params["devices"] = ["cpu@1", "cpu@2"]
    app.switch_page("pages/tutorials/tutorials.py")
    until(checked(app.run()), queue, can_run)
    before = len(queue.jobs())
    radio = app.radio(key=f"predict_{name}")
    checked(radio.set_value(radio.options[1]).run())
    checked(button(app, "Run").click().run())
    until(app, queue, lambda _: len(queue.jobs()) > before and not any(job.active for job in queue.jobs()))
    assert {job.state for job in queue.jobs()} == {"finished"}, [job.message for job in queue.jobs()]
    rows = Store(tmp_path / "results").trials()
    assert {row.contender for row in rows} == {"cpu@1", "cpu@2"}
    pairs = {len(set(row.block_pair)) for row in rows}
    assert not PRESETS[name].axes or pairs <= {PAIRS - 1, PAIRS}, "a slow machine's budget may end within the last"
    assert {row.dataset for row in rows} == {PRESETS[name].point.dataset}
    assert "You predicted" in words(checked(app.run()))
    assert "An epoch by each clock" in [chart.proto.alt for chart in app.get("vega_lite_chart")]
    tables = " ".join(frame.value.to_string() for frame in app.dataframe)
    assert "1 CPU thread" in tables
    assert "2 CPU threads" in tables
