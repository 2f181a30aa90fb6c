"""The Devices page before the machine is known, with and without an accelerator, at rest and at work."""

import pytest

from core.answer import contribution
from core.question.policy import POLICY_VARIABLE
from pages.shared import job_view, queries
from tests import rows
from tests.ui.conftest import CPU, GPU, HINT, words

PAGE = "pages/devices/devices.py"


def test_it_says_that_it_is_looking_before_the_machine_is_known(world, open_page):
    assert "Looking at this machine's devices" in words(open_page(PAGE))


@pytest.mark.parametrize("page", [PAGE, "/compare", "/crossover"])
def test_where_nobody_may_run_anything_nobody_waits_for_the_devices(world, open_page, tmp_path, monkeypatch, page):
    (tmp_path / "policy.toml").write_text('who_may_run = "nobody"')
    monkeypatch.setenv(POLICY_VARIABLE, str(tmp_path / "policy.toml"))
    app = open_page(page)
    assert "This host runs nothing" in words(app)
    assert not any("Looking at" in str(box.value) for box in app.selectbox)
    assert "Looking at" not in words(app)


def test_without_an_accelerator_it_says_why_and_what_to_do(world, open_page):
    world.has(CPU)
    app = open_page(PAGE)
    assert list(app.dataframe[0].value["Device"]) == ["CPU"]
    assert list(app.dataframe[0].value["In commands"]) == ["cpu"]
    assert "Driver" not in app.dataframe[0].value, "no device has one"
    assert HINT in words(app)
    assert "Available without a GPU" in words(app)
    assert len(app.get("page_link")[5:]) == 3, "behind the doors and the chip"


def test_every_device_has_its_line_and_every_version_is_named(world, open_page):
    world.has(CPU, GPU)
    app = open_page(PAGE)
    devices, facts = (frame.value for frame in app.dataframe)
    assert list(devices["Device"]) == ["CPU", "GPU"]
    assert list(devices["In commands"]) == ["cpu", "cuda:0"]
    assert "Available without a GPU" not in words(app)
    assert list(devices["Name"]) == ["Test CPU", "NVIDIA Test GPU"]
    assert list(devices["First use"]) == ["500 ms", ""]
    assert "2.14.1" in set(facts["Value"])
    assert HINT not in words(app)


def test_it_says_how_well_results_repeat_once_an_experiment_was_repeated(world, open_page):
    world.has(CPU)
    world.keep(rows.run({"cpu@1": 1e-3, "cpu@2": 1e-3}, run_id="a" * 12, pairs=20))
    assert "repeat to within" not in words(open_page(PAGE))
    world.keep(rows.run({"cpu@1": 1e-3, "cpu@2": 1.1e-3}, run_id="b" * 12, pairs=20))
    said = "Results on this machine repeat to within about ±12 % (1 repeated run)."
    assert said in words(open_page(PAGE))
    (chip,) = [link for link in open_page("/gallery").get("page_link") if link.proto.label == "No GPU here"]
    assert "repeat to within" in chip.proto.help


def test_a_device_that_is_left_out_beside_others_is_named(world, open_page):
    world.has(CPU, GPU, left_out="cuda:1 (Tesla K80) is left out.")
    said = words(open_page(PAGE))
    assert "cuda:1 (Tesla K80) is left out." in said
    assert "No accelerator found" not in said


@pytest.mark.parametrize("state", ["ready", "measuring", "failed"])
def test_it_says_what_the_measuring_process_does(world, open_page, state):
    world.has(CPU)
    if state != "ready":
        job = world.run()
        if state == "failed":
            world.end(job, state="failed", message="No.")
    said = words(open_page(PAGE))
    assert ("It is measuring." in said) == (state == "measuring")
    assert ("It is ready" in said) == (state != "measuring")


def test_a_button_says_how_the_measurements_of_this_machine_can_be_sent_in(world, open_page, monkeypatch):
    world.has(CPU, GPU)
    monkeypatch.setattr(contribution, "find_form_address", lambda: "https://example.org/form")
    app = open_page(PAGE)
    label = "Contribute a measurement"
    (button,) = (each for each in app.get("popover") if each.proto.popover.label == label)
    assert "python -m core contribute" in [each.value for each in button.code]
    assert button.get("link_button")[0].proto.url == "https://example.org/form"


def test_the_measuring_process_starts_while_the_machine_is_unknown(world, monkeypatch):
    starts = []
    monkeypatch.setattr(queries, "start_measuring_process", lambda: starts.append("start"))
    assert job_view.find_machine() is None
    assert starts == ["start"]
