"""What pages share: text from elsewhere, links, and the command that repeats a run."""

import os
import shlex
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest

from core import __main__ as command_line
from core.commands import arguments
from core.question import describe
from core.question.experiment import Contender, Experiment, Point
from pages.shared import cache, elements
from tests.ui.conftest import PROJECT, TIMEOUT_S, words


@pytest.mark.parametrize(
    ("started_at", "shown"),
    [
        ("2026-11-21T09:30:00+00:00", "21 November 2026, 09:30 UTC"),
        ("2026-11-21T09:30:00+02:00", "21 November 2026, 07:30 UTC"),
        ("yesterday", "yesterday"),
    ],
)
def test_dates_are_for_people_and_whatever_is_none_stays_as_it_is(started_at, shown):
    assert elements.format_date(started_at) == shown


POINTS = some.builds(
    Point,
    dataset=some.sampled_from(["disc", "signal"]),
    model=some.sampled_from(["linear", "mlp", "cnn"]),
    hidden_size=some.integers(1, 4096),
    depth=some.integers(1, 16),
    width=some.integers(1, 32),
    batch_size=some.integers(1, 1000),
    learning_rate=some.floats(1e-6, 10),
    data_path=some.sampled_from(["resident", "loader"]),
    loader_workers=some.integers(0, 16),
    shuffle=some.booleans(),
    seed=some.integers(0, 1000),
)
EXPERIMENTS = some.builds(
    Experiment,
    point=POINTS,
    contenders=some.lists(some.builds(Contender, threads=some.integers(0, 64)), min_size=1, max_size=8, unique=True),
    budget_s=some.integers(1, 86_400).map(float),
)


@given(EXPERIMENTS)
def test_the_command_that_is_shown_asks_the_same_question(asked):
    words = shlex.split(describe.build_command(asked))
    assert words[:3] == ["python", "-m", "core"]
    options = command_line.parser().parse_args(words[3:])
    contenders = tuple(Contender.parse(part) for part in options.devices.split(","))
    again = Experiment(point=arguments.point(options), contenders=contenders, budget_s=options.budget_s)
    assert again == asked


def test_the_app_loads_no_torch():
    wanted = "pages.shared.server, pages.shared.run_view, pages.shared.job_view"
    code = f"import sys; import {wanted}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout.split()


def test_the_entry_point_opens_on_the_question(world, open_page):
    app = AppTest.from_file(str(PROJECT / "streamlit_app.py"), default_timeout=TIMEOUT_S).run()
    assert app.title[0].value == "Explore"
    assert "When does training on a GPU pay off?" in words(app)


@pytest.mark.skipif(os.name == "nt", reason="making links needs rights on Windows")
def test_what_cannot_be_looked_at_in_a_folder_hides_no_change_of_another(tmp_path, monkeypatch):
    now = 1_000.0
    monkeypatch.setattr(cache.time, "monotonic", lambda: now)
    (tmp_path / "dead.parquet").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop.parquet").symlink_to(tmp_path / "loop.parquet")
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"half")
    os.utime(tmp_path, (1, 1))
    first = cache.sign_folder(tmp_path)
    file.write_bytes(b"half and half")
    now += cache.RECHECK_S
    assert cache.sign_folder(tmp_path) != first


def test_a_new_file_of_a_store_is_seen_at_once_and_one_that_grows_there_a_moment_later(tmp_path, monkeypatch):
    now = 1_000.0
    monkeypatch.setattr(cache.time, "monotonic", lambda: now)
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"half")
    os.utime(tmp_path, (1, 1))  # long ago
    first = cache.sign_folder(tmp_path)
    file.write_bytes(b"half and half")
    assert cache.sign_folder(tmp_path) == first, "the folder keeps its date when a file in it grows"
    now += cache.RECHECK_S
    grown = cache.sign_folder(tmp_path)
    assert grown != first
    (tmp_path / "more.parquet").touch()
    assert cache.sign_folder(tmp_path) != grown
    (tmp_path / "even more.parquet").touch()
    os.utime(tmp_path)
    before = cache.sign_folder(tmp_path)
    (tmp_path / "at the same moment.parquet").touch()
    assert cache.sign_folder(tmp_path) != before, "a folder that has just changed is looked through each time"
