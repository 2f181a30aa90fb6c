"""What the page says of a busy machine before it measures, and of an answer that it measures again."""

import dataclasses

import pytest

from core.jobs.machine import MachineUse
from core.progress import Progress
from pages.shared import job_view, queries
from tests import rows
from tests.ui.conftest import CPU, GPU, checked, words
from tests.ui.find import button

STEADY = MachineUse(processors=1.0, share=0.5, load=1.0, programs=("chromium", "ffmpeg"))
PASSING = dataclasses.replace(STEADY, load=0.1)


@pytest.fixture
def use(open_page, monkeypatch):
    """Let the machine be as busy as this."""
    return lambda seen: monkeypatch.setattr(queries, "read_machine_use", lambda: seen)


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Make this the machine of a host, on which everybody may run."""

    def become():
        (tmp_path / "policy.toml").write_text('who_may_run = "everybody"')
        monkeypatch.setenv("CROSSOVER_POLICY", str(tmp_path / "policy.toml"))

    return become


def test_before_it_measures_the_page_says_how_busy_the_machine_is_and_what_uses_it(world, open_page, use):
    world.has(CPU, GPU)
    use(STEADY)
    assert (
        "This machine is busy: other programs use about half of the processors (your browser: chromium, ffmpeg). "
        "Close other browser tabs; otherwise the verdict may hold only for this load."
    ) in words(open_page(model="mlp")).replace("\\", "")


def test_a_quiet_machine_is_not_spoken_of(world, open_page, use):
    world.has(CPU, GPU)
    use(MachineUse(processors=0.2, share=0.1))
    assert "busy" not in words(open_page(model="mlp"))


@pytest.mark.parametrize(("seen", "quiet_s"), [(STEADY, 0.0), (PASSING, 15.0), (MachineUse(), 0.0)])
def test_a_run_waits_up_to_15_seconds_where_quiet_is_near(world, open_page, use, seen, quiet_s):
    world.has(CPU, GPU)
    use(seen)
    app = open_page(model="mlp")
    assert ("A run waits up to 15 s for quiet." in words(app)) == (quiet_s > 0)
    checked(button(app, "Run").click().run())
    (job,) = world.queue.jobs()
    assert job.quiet_s == quiet_s


def test_the_visitors_of_a_host_learn_what_they_can_do_and_no_names_of_programs(world, open_page, use, host):
    host()
    world.has(CPU, GPU)
    use(STEADY)
    said = words(open_page(model="mlp")).replace("\\", "")
    assert "Try again later, or measure on your own machine." in said
    assert "ffmpeg" not in said


@pytest.mark.parametrize("is_host", [True, False])
def test_who_will_wait_for_a_turn_is_told_after_how_many(world, open_page, use, host, is_host):
    if is_host:
        host()
    world.has(CPU, GPU)
    use(STEADY)
    world.run()
    said = words(open_page(model="mlp", hidden_size="32"))
    assert "Your run will wait for 1 measurement to end." in said
    assert ("install Crossover on your own machine" in said) == is_host
    assert "busy" not in said


def test_a_page_that_follows_a_measurement_does_not_read_the_load_again(world, open_page, monkeypatch):
    world.has(CPU)
    job, every = world.run(), []
    fragment = job_view.st.fragment

    def noted(draw=None, *, run_every=None):
        every.append((draw, run_every))
        return fragment(draw, run_every=run_every)

    monkeypatch.setattr(job_view.st, "fragment", noted)
    for link in ({"job": job.id}, {"hidden_size": "64"}):
        open_page(**link)
    assert [seconds for draw, seconds in every if draw is job_view._draw_machine_use] == [None, job_view.USE_REFRESH_S]


def test_a_measurement_that_begins_on_a_busy_machine_says_so_on_the_page(world, open_page):
    world.has(CPU, GPU)
    note = "The machine was not quiet within 15 s, so the measurement starts anyway."
    job = world.run(progress=Progress(phase="training", note=note))
    assert note in words(open_page(job=job.id)).replace("\\", "")


def busy(row):
    return rows.beside_programs(row, waiting=0.9 if row.device_kind == "cpu" else 0.0)


SLOWER_CPU = {"cpu": 4.2e-4, "cuda:0": 3e-4}


@pytest.mark.parametrize("loaded", [True, False])
def test_an_answer_for_a_loaded_machine_is_measured_again_and_the_page_says_why(world, open_page, loaded):
    world.has(CPU, GPU)
    stored = rows.run(steps_s=SLOWER_CPU)
    world.keep(list(map(busy, stored)) if loaded else stored)
    said = words(open_page(job=world.run().id)).replace("\\", "")
    assert ("holds only for a loaded machine, so this is measured again." in said) == loaded


def test_the_page_looks_at_the_machine_at_most_every_three_seconds_for_all_who_look(monkeypatch):
    now, reads = [100.0], []

    class Meter:
        def __init__(self):
            reads.append("begin")

        def read(self):
            reads.append("read")
            return STEADY

    monkeypatch.setattr(queries, "UseMeter", Meter)
    monkeypatch.setattr(queries.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(queries, "_use", [])
    seen = []
    for now[0] in (100.0, 102.0, 104.0, 105.0, 200.0, 204.0):
        seen.append(queries.read_machine_use())
    quiet = MachineUse()
    assert seen == [quiet, quiet, STEADY, STEADY, quiet, STEADY]
    assert reads.count("read") == 2


@pytest.mark.parametrize("name", ["chromium", "Google Chrome Helper (Renderer)", "firefox-bin", "msedge.exe", "Safari"])
def test_a_browser_is_known_by_its_name(name):
    use = MachineUse(processors=1.0, share=0.5, load=1.0, programs=(name,))
    assert f"your browser: {name}" in job_view.describe_machine_use(use, on_own_machine=True)
