"""A training of one's own on the pages: offered on one's own machine alone, by its name alone, and never run there."""

import sys

import pytest

from core.files import sources
from core.question.experiment import Experiment, Point
from core.question.sweep import Sweep
from pages.shared.data import own_files
from pages.shared.frame import permits
from tests.own_trainings import PLAIN, asked
from tests.ui.conftest import CPU, checked, words
from tests.ui.find import button, control, drawn

COMPARE, CROSSOVER = "pages/compare/compare.py", "pages/crossover/crossover.py"
NAME = "my_training.py:build"
RUNS = "raise SystemExit('a page has run it')\n"
"""Begins a file that must only be read."""


@pytest.fixture
def file(world, tmp_path, monkeypatch):
    """A file that the server was started with, whose import would be the end of this process."""
    path = tmp_path / "mine" / "my_training.py"
    path.parent.mkdir()
    path.write_text(RUNS + PLAIN)
    monkeypatch.setenv(own_files.TRAINING_VARIABLE, str(path))
    world.has(CPU)
    return path


def control_drawn(app):
    return "training" in drawn(app)


def offered(monkeypatch, *texts):
    monkeypatch.delenv(own_files.TRAINING_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "argv", ["streamlit_app.py", *texts])
    return list(own_files.offered())


def test_a_file_is_offered_by_what_the_server_was_started_with(tmp_path, monkeypatch):
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("def build(size, device): ...\n")
    other.write_text(
        "def small(size, device): ...\ndef _hidden(size, device): ...\ndef helper(x): ...\nbuild = small\n"
    )
    (tmp_path / "notes.py").write_text("x = 1\n")
    assert offered(monkeypatch) == []
    assert offered(monkeypatch, "--training", str(one)) == ["one.py:build"]
    assert offered(monkeypatch, f"--training={other}") == ["other.py:small", "other.py:build"]
    assert offered(monkeypatch, "--training", f"{other}:anything") == ["other.py:anything"]
    assert offered(monkeypatch, "--training", str(tmp_path)) == ["one.py:build", "other.py:small", "other.py:build"]
    assert offered(monkeypatch, "--training", str(tmp_path / "gone.py")) == []
    assert offered(monkeypatch, "--training") == []
    monkeypatch.setenv(own_files.TRAINING_VARIABLE, str(one))
    assert list(own_files.offered()) == ["one.py:build"]


def test_a_file_that_cannot_be_parsed_is_offered_and_its_own_traceback_tells(tmp_path, monkeypatch):
    (tmp_path / "torn.py").write_text("def build(:\n")
    assert offered(monkeypatch, "--training", str(tmp_path / "torn.py")) == ["torn.py:build"]
    assert offered(monkeypatch, "--training", str(tmp_path)) == []


def test_nothing_of_ones_own_is_offered_unless_the_server_was_started_with_it(world, open_page):
    world.has(CPU)
    app = open_page(COMPARE)
    assert not control_drawn(app)
    assert own_files.COMMAND in words(app)
    assert not control_drawn(open_page(CROSSOVER))


def test_compare_asks_for_the_file_and_shows_the_controls_that_mean_something(file, world, open_page):
    app = open_page(COMPARE)
    assert own_files.COMMAND not in words(app)
    app = checked(control(app, "training").set_value(NAME).run())
    assert drawn(app) == {"training", "pairs", "budget_s"}
    assert sources.hashed(file)[:6] in words(app)
    checked(control(app, "size").set_value(512).run())
    checked(button(app, "Run").click().run())

    (job,) = world.queue.jobs()
    wanted = Experiment(
        point=Point(training=NAME, source_hash=sources.hashed(file), size=512),
        contenders=job.experiment.contenders,
        folder=str(file.parent),
        whole=False,
    )
    assert job.experiment == wanted
    assert "my_training" not in sys.modules


def test_crossover_varies_its_size(file, world, open_page):
    app = open_page(CROSSOVER, training=NAME, size_range=["16", "1024"])
    assert control(app, "size_range").value == (16, 1024)
    assert {"dataset", "model", "axis", "also"}.isdisjoint(drawn(app))
    checked(button(app, "Find the crossover").click().run())

    (job,) = world.queue.jobs()
    assert isinstance(job.sweep, Sweep)
    assert job.sweep.adaptive
    assert (job.sweep.axes[0].name, job.sweep.axes[0].values[0], job.sweep.axes[0].values[-1]) == ("size", 16, 1024)
    assert (job.sweep.point.training, job.sweep.folder) == (NAME, str(file.parent))


@pytest.mark.parametrize("page", [COMPARE, CROSSOVER])
@pytest.mark.parametrize(
    "name", ["../../x.py:build", "other.py:build", "my_training.py:other", "/etc/passwd", "{folder}/my_training.py"]
)
def test_a_link_to_anything_else_is_ignored_with_a_sentence(file, world, open_page, page, name):
    (file.parent / "other.py").write_text(RUNS)
    app = open_page(page, training=name.format(folder=file.parent))
    assert "is not offered here" in words(app)
    assert control(app, "training").value == ""
    assert "training" not in app.query_params
    assert "dataset" in drawn(app)


def test_a_link_to_a_training_means_nothing_where_none_is_offered(world, open_page):
    world.has(CPU)
    app = open_page(COMPARE, training=NAME, size="512")
    assert "is not offered here" in words(app)
    assert not control_drawn(app)
    assert "training" not in app.query_params


def test_a_link_with_a_size_that_none_can_have_is_told_so(file, open_page):
    assert "size is 'many', which is not allowed" in words(open_page(COMPARE, training=NAME, size="many"))


def test_a_host_offers_none_and_runs_none(file, world, open_page, tmp_path, monkeypatch):
    settings = tmp_path / "policy.toml"
    settings.write_text('who_may_run = "everybody"\n')
    monkeypatch.setenv("CROSSOVER_POLICY", str(settings))
    app = open_page(COMPARE, training=NAME)
    assert not control_drawn(app)
    assert own_files.COMMAND not in words(app)
    assert "never run on a host" in permits.refusal(asked(file))


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("192.0.2.7", {"Host": "localhost:8501"}),
        (None, {"Host": "evil.example"}),
        (None, {"Host": "localhost:8501", "X-Forwarded-For": "192.0.2.7"}),
    ],
    ids=["from-elsewhere", "by-a-name-that-points-here", "through-a-proxy"],
)
def test_who_is_not_at_this_machine_is_offered_none_and_may_run_none(
    file, world, open_page, monkeypatch, address, headers
):
    class Elsewhere:
        ip_address, cookies, url = address, {}, "http://localhost:8501"

    Elsewhere.headers = headers
    monkeypatch.setattr(permits.st, "context", Elsewhere)
    assert not control_drawn(open_page(COMPARE, training=NAME))
    assert "who sits at the machine" in permits.refusal(asked(file))


@pytest.mark.parametrize("host", ["localhost:8501", "127.0.0.1:8501", "[::1]:8501"])
def test_who_sits_at_this_machine_is_known_by_its_own_names(file, monkeypatch, host):
    class Here:
        ip_address, cookies, url, headers = None, {}, None, {"Host": host}

    monkeypatch.setattr(permits.st, "context", Here)
    assert list(permits.trainings()) == [NAME]


def test_a_file_that_has_changed_or_is_another_may_not_be_run_as_it_was(file, world, tmp_path):
    before = asked(file)
    assert permits.refusal(before) == ""
    file.write_text(RUNS + PLAIN + "\n# changed\n")
    assert "my_training.py has changed since" in permits.refusal(before)
    (tmp_path / "strange.py").write_text(PLAIN)
    assert "is not among the files" in permits.refusal(asked(tmp_path / "strange.py"))


def test_the_source_that_is_shown_is_that_of_the_file_as_it_is(file, open_page):
    app = open_page(COMPARE, training=NAME)
    file.write_text(RUNS + PLAIN + "\n# changed\n")
    assert sources.hashed(file)[:6] in words(checked(app.run()))
