"""Who may run and stop: the refusal meets every button of every page, pressed although it is disabled."""

import dataclasses
import re

import pytest
from streamlit.testing.v1 import AppTest

from core.classroom.classes import Classes, Prediction
from core.classroom.question import CHALLENGER, ClassQuestion
from core.files import documents
from core.question.experiment import Contender, Experiment, Point
from core.question.presets import PRESETS
from core.question.sweep import Axis, Sweep
from pages.lessons.view import LESSONS
from pages.shared import links, permits
from tests import rows
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import CLASS_PAGE as CLASS
from tests.ui.find import button

COMPARE, CROSSOVER = "/compare", "/crossover"
TUTORIALS, LESSONS_PAGE = "pages/tutorials/tutorials.py", "pages/lessons/lessons.py"

SWEEP = Sweep(
    point=Point(),
    axes=(Axis(name="hidden_size", values=(8, 16, 32)),),
    contenders=(Contender(), Contender(device="cuda:0")),
)
SIGN_IN = 'who_may_run = "signed_in"'


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Writes the settings of the host, which lets everybody run unless they say who may."""
    file = tmp_path / "policy.toml"
    monkeypatch.setenv("CROSSOVER_POLICY", str(file))
    monkeypatch.setenv("CROSSOVER_CLASSES", str(tmp_path / "classes"))

    def write(text):
        file.write_text(text if "who_may_run" in text else f'who_may_run = "everybody"\n{text}')

    write("")
    return write


def expected(app, name):
    radio = app.radio(key=f"predict_{name}")
    return checked(radio.set_value(radio.options[0]).run())


def press(app, label):
    """Press a button as a message over the websocket can, whether the page lets it be pressed or not."""
    found = button(app, label)
    found.proto.disabled = False
    return checked(found.click().run())


def compare(world, open_page):
    return open_page(COMPARE), "Run"


def compare_link(world, open_page):
    return open_page(COMPARE, **links.make_run_link(rows.EXPERIMENT)), "Run"


def run_again(world, open_page):
    job = world.run()
    return open_page(COMPARE, job=world.end(job, state="crashed", message="It died.").id), "Run again"


def measure_again(world, open_page):
    return open_page(COMPARE, run=world.keep(rows.run())[0].run_id), "Measure again"


def crossover(world, open_page):
    return open_page(CROSSOVER), "Find the crossover"


def crossover_link(world, open_page):
    return open_page(CROSSOVER, **links.make_sweep_link(SWEEP)), "Find the crossover"


def sweep_again(world, open_page):
    job = world.run(SWEEP)
    return open_page(CROSSOVER, job=world.end(job, state="stopped", message="Stopped.").id), "Run again"


def sweep_measured_again(world, open_page):
    for number, point in enumerate(SWEEP.points):
        world.keep(rows.run(point=point, run_id=f"{number:012x}", outcome="timed"))
    app = open_page(CROSSOVER, **links.make_sweep_link(SWEEP), sweep=SWEEP.id)
    return app, "Measure again"


def of_class(world, open_page):
    classes = Classes()
    of, _ = classes.create("Physics", ClassQuestion.from_preset("disc"))
    student, token = classes.join(of, "ada")
    classes.predict(of, student, Prediction(winner=CHALLENGER, place=of.question.places[0]))
    return open_page(CLASS, **{"class": of.code, "me": f"{student.id}.{token}"}), "Measure here"


def tutorial(name):
    def opened(world, open_page):
        return expected(open_page(TUTORIALS, tutorial=name), name), "Run"

    return pytest.param(opened, id=f"tutorial {name}")


def lesson(name):
    def opened(world, open_page):
        return expected(open_page(LESSONS_PAGE, lesson=name), name), "Run"

    return pytest.param(opened, id=f"lesson {name}")


STARTS = [
    compare,
    compare_link,
    run_again,
    measure_again,
    crossover,
    crossover_link,
    sweep_again,
    sweep_measured_again,
    of_class,
    *map(tutorial, PRESETS),
    *map(lesson, LESSONS),
]


@pytest.mark.parametrize("start", STARTS)
def test_what_can_start_a_run_starts_none_without_the_sign_in_that_is_required(world, open_page, host, start):
    world.has(CPU, GPU)
    host("")
    app, label = start(world, open_page)
    before = len(world.queue.jobs())
    host(SIGN_IN)
    for _ in range(2):  # drawn before the sign-in was required, and after
        press(app, label)
        assert len(world.queue.jobs()) == before
    host("")
    press(app, label)
    assert len(world.queue.jobs()) > before, "the button that was tried starts nothing at all"


def signed_in(app: AppTest, monkeypatch, **user) -> AppTest:
    from pages.shared import permits

    monkeypatch.setattr(permits, "_user", lambda: {"is_logged_in": True, "iss": "https://id", "sub": "7", **user})
    return app


def test_who_has_signed_in_may_run_and_only_a_hash_of_the_account_is_kept(world, open_page, host, monkeypatch):
    world.has(CPU, GPU)
    host(SIGN_IN)
    app = signed_in(open_page(COMPARE), monkeypatch, email="ada@school.example")
    checked(button(app, "Run").click().run())
    (job,) = world.queue.jobs()
    assert job.asked_by.startswith("account-")
    kept = "".join(file.read_text(errors="replace") for file in world.queue.folder.rglob("*") if file.is_file())
    assert "ada@" not in kept
    assert "school" not in kept


@pytest.mark.parametrize(
    ("user", "jobs"),
    [
        ({"email": "ada@school.example"}, 1),
        ({"email": "ada@school.example", "email_verified": True}, 1),
        ({"email": "ada@school.example", "email_verified": False}, 0),
        ({"email": "ada@notschool.example"}, 0),
        ({}, 0),
        ({"email": "ada@school.example", "is_logged_in": False}, 0),
        ({"email": "ada@school.example", "sub": ""}, 0),
    ],
)
def test_only_accounts_of_the_hosts_domains_may_run(world, open_page, host, monkeypatch, user, jobs):
    world.has(CPU, GPU)
    host(f'{SIGN_IN}\nsign_in_domains = ["school.example"]')
    app = signed_in(open_page(COMPARE), monkeypatch, **user)
    checked(button(app, "Run").click().run())
    assert len(world.queue.jobs()) == jobs


@pytest.mark.parametrize("settings", ['who_may_run = "nobody"', "who_may_run = 1", "[run]\nseconds = 59"])
def test_a_host_where_nobody_may_run_this_says_why_and_runs_nothing(world, open_page, host, settings):
    world.has(CPU, GPU)
    host(settings)
    app = open_page(COMPARE)
    checked(button(app, "Run").click().run())
    assert world.queue.jobs() == []
    assert app.error


@pytest.mark.parametrize(
    ("settings", "once"),
    [('who_may_run = "nobody"', "Stored results are still shown."), ("who_may_run = 1", "policy.toml")],
)
def test_why_nobody_may_run_this_is_said_once(world, open_page, host, settings, once):
    world.has(CPU, GPU)
    host(settings)
    assert words(open_page(COMPARE)).count(once) == 1


def test_where_nobody_may_run_what_is_stored_is_shown_all_the_same(world, open_page, host):
    world.has(CPU, GPU)
    host('who_may_run = "nobody"')
    stored = world.keep(rows.run())
    app = open_page(
        COMPARE, **links.make_run_link(Experiment(point=rows.EXPERIMENT.point, contenders=SWEEP.contenders))
    )
    checked(button(app, "Run").click().run())
    assert app.query_params["run"] == stored[0].run_id


def test_two_sessions_that_hold_one_account_share_its_budget(world, open_page, host, monkeypatch):
    world.has(CPU, GPU)
    host(f"{SIGN_IN}\n[person]\nseconds_per_day = 100")
    for seed, jobs in ((1, 1), (2, 1)):
        app = signed_in(open_page(COMPARE, seed=str(seed)), monkeypatch)
        checked(button(app, "Run").click().run())
        assert len(world.queue.jobs()) == jobs
    assert "of your 1 min 40 s for today" in words(app)


@pytest.fixture
def asked(world, open_page, host):
    """A measurement on a host where only its asker may stop it: the page that asked, and the job."""
    world.has(CPU, GPU)
    host('who_may_stop = "asker"')
    app = open_page(COMPARE)
    checked(button(app, "Run").click().run())
    (job,) = world.queue.jobs()
    return app, job


def test_only_who_asked_may_stop_where_the_host_says_so(world, open_page, host, asked):
    app, job = asked
    other = open_page(COMPARE, job=job.id)
    assert "Stop" not in [found.label for found in other.button]
    assert "Only the user who started" in words(other)
    host('who_may_stop = "anybody"')
    other = open_page(COMPARE, job=job.id)
    host('who_may_stop = "asker"')
    checked(button(other, "Stop").click().run())
    assert world.queue.job(job.id).state == "queued"
    checked(button(app, "Stop").click().run())
    assert world.queue.job(job.id).state == "stopped"


def test_the_banner_is_plain_text_on_every_page(world, open_page, host):
    banner = "**Exam** <b>today</b> [x](http://example.org)"
    host(f'banner = "{banner}"')
    for page in (COMPARE, CROSSOVER, TUTORIALS, LESSONS_PAGE, CLASS, "pages/gallery/gallery.py"):
        assert next(text.value for text in open_page(page).text) == banner


def test_a_job_that_nobody_asked_for_on_a_page_belongs_to_no_visitor(world, open_page, host):
    world.has(CPU)
    host('who_may_stop = "asker"')
    job = world.submit()
    assert "Stop" not in [found.label for found in open_page(COMPARE, job=job.id).button]
    assert dataclasses.replace(job, place=0).asked_by == ""


def test_on_a_host_a_measurement_of_somebody_else_is_offered_and_not_shown_unasked(open_page, host, asked):
    _, job = asked
    other = open_page(COMPARE)
    assert "A measurement of another user is running" in words(other)
    assert "How this works" in words(other)
    assert "job" not in other.query_params
    watching = checked(button(other, "Watch it").click().run())
    assert job.id in watching.query_params["job"]
    assert "Only the user who started" in words(watching)
    host('who_may_stop = "anybody"')
    assert job.id in open_page(COMPARE).query_params["job"]


@pytest.mark.parametrize(
    "left", [b"", bytes(64), b"\xff" * 64, b"0" * 10_000_000, None], ids=["empty", "zeros", "no text", "long", "folder"]
)
def test_a_damaged_secret_of_the_host_is_put_aside_and_people_are_named_anew(world, host, open_page, left):
    world.has(CPU)
    salt = world.queue.folder / "salt"
    salt.write_bytes(left) if left is not None else salt.mkdir()
    assert not button(open_page(COMPARE), "Run").disabled
    assert re.fullmatch("[0-9a-f]{64}", salt.read_text())
    aside = world.queue.folder / "salt.damaged"
    assert aside.is_dir() if left is None else aside.read_bytes() == left
    kept = salt.read_text()
    open_page(COMPARE)
    assert salt.read_text() == kept


def test_a_secret_that_could_not_be_written_to_its_end_is_swept_like_any_temporary_file(world, host, monkeypatch):
    left = []
    monkeypatch.setattr(permits.os, "link", lambda draft, path: left.append(draft.name) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        permits._salt(world.queue.folder)
    assert [documents._OURS.fullmatch(name) is not None for name in left] == [True]
