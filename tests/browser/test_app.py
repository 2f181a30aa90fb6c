"""The app in a real browser: the main job end to end, links, the queue, a closed browser, a killed process."""

import re

import pytest
from playwright.sync_api import expect

from core.answer import speedup
from core.jobs import client
from tests import rows
from tests.browser.conftest import settled, stop_button, until
from tests.browser.views import expect_link, link, select_first_row

pytestmark = pytest.mark.browser

SHORT = "/compare?model=linear&epochs=2&budget_s=120"
"""Over in seconds; what is taken from it by a busy machine is no part of the budget that it needs."""

OF_RUN = re.compile("[?&]run=[0-9a-f]{12}(&|$)")

LONG = "/compare?dataset=disc&samples=100000&hidden_size=64&epochs=10000&budget_s=600&devices=cpu%401&whole=true"
OTHER = LONG.replace("hidden_size=64", "hidden_size=32")
"""Hours of training each, so that none is over before a busy machine has looked."""


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def run(page):
    """Press Run as soon as the machine's devices are known."""
    button = page.get_by_role("button", name="Run", exact=True)
    expect(button).to_be_enabled()
    button.click()
    return page


def test_a_first_comparison_from_an_empty_machine_to_the_answer_and_back_tomorrow(visit, server):
    page = run(visit(SHORT))
    expect(page.get_by_role("heading", name="Export")).to_be_visible()
    verdict = page.get_by_role("heading", name=re.compile("faster than|as fast as|equally fast|Inconclusive"))
    expect(verdict).to_be_visible()
    (job,) = server.queue.jobs()
    expect(page).to_have_url(OF_RUN)
    (run_id,) = link(page)["run"]
    decided = speedup.answers_experiment(job.experiment, server.store.trials(run_id=run_id))
    expect(page.get_by_role("heading", name="Evaluation")).to_be_visible()
    assert len(server.store.trials(run_id=run_id)) == len(server.queue.jobs()[0].experiment.contenders)

    tomorrow = run(visit(SHORT))
    expect(tomorrow.get_by_text(re.compile("Measured before, on" if decided else "Measured on")).first).to_be_visible()
    expect(tomorrow).to_have_url(OF_RUN)
    assert (link(tomorrow)["run"] == [run_id]) is decided, "what a busy machine left open is measured again"
    assert len(server.queue.jobs()) == (1 if decided else 2)
    expect(tomorrow.get_by_role("button", name="Measure again")).to_be_visible()


def test_moving_a_control_rewrites_the_link(glance):
    page = settled(glance("/compare?hidden_size=128"))
    page.locator(".st-key-depth").get_by_role("slider").press("ArrowRight")
    expect(page).to_have_url(re.compile("depth=3"))
    expect(page.get_by_text("42,634", exact=True)).to_be_visible()


@pytest.mark.parametrize("path", ["/compare", "/crossover"])
def test_settings_stand_beside_the_answer_on_a_wide_window_and_fold_on_a_phone(glance, path):
    page = settled(glance(path, height=800))
    sizes = page.locator(".st-key-depth").get_by_role("slider")
    run = page.locator(".st-key-ask").get_by_role("button").last
    settings, answer = (page.locator(f".st-key-{side}_side") for side in ("settings", "answer"))
    expect(sizes).to_be_visible()
    expect(run).to_be_in_viewport()
    left, right = settings.bounding_box(), answer.bounding_box()
    assert left["x"] + left["width"] <= right["x"]
    assert left["y"] == pytest.approx(right["y"], abs=2)
    page.set_viewport_size({"width": 400, "height": 800})
    expect(sizes).to_be_hidden()
    expect(run).to_be_in_viewport()
    page.get_by_text("Settings", exact=True).click()
    expect(sizes).to_be_visible()


@pytest.mark.parametrize(("path", "title"), [("/gallery", "Gallery"), ("/devices", "Devices")])
def test_the_first_visitor_of_a_fresh_server_can_come_by_a_deep_link(visit, path, title):
    page = settled(visit(path))
    expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("Page not found")).to_have_count(0)


def test_the_second_of_two_visitors_sees_the_queue_and_each_can_stop_their_own(visit, server):
    first = run(visit(LONG))
    until(lambda: len(server.queue.jobs()) == 1)  # a press takes a while to arrive, and another may overtake it
    second = run(visit(OTHER))
    expect(first.get_by_text(re.compile("step [0-9,]+ of"))).to_be_visible()
    asked = second.get_by_text(re.compile("hidden size 32.* · 1 CPU thread"))
    expect(asked.filter(visible=True)).to_be_visible()
    expect(second.get_by_text(re.compile("Place 1 in the queue. One measurement at a time"))).to_be_visible()
    stop_button(second).click()
    expect(second.get_by_text("Stopped before it began.")).to_be_visible()
    stop_button(first).click()
    expect(first.get_by_text(re.compile("^Stopped"))).to_be_visible()
    assert [job.state for job in server.queue.jobs()] == ["stopped", "stopped"]


def test_closing_the_browser_loses_nothing_and_opening_the_page_shows_it_again(visit, server):
    page = run(visit(LONG))
    expect(stop_button(page)).to_be_visible()
    (job,) = server.queue.jobs()
    page.context.close()
    again = visit("/compare")
    expect(stop_button(again)).to_be_visible()
    expect(again.get_by_text(re.compile("step [0-9,]+ of"))).to_be_visible()
    expect_link(again, {"job": [job.id]})
    client.stop(server.queue, job.id)
    expect(again.get_by_role("button", name=re.compile("^Run again"))).to_be_visible()


def test_a_killed_measurement_is_reported_with_what_it_had_and_can_go_on(visit, server):
    page = run(visit(LONG))
    expect(page.get_by_text(re.compile("step [0-9,]+ of"))).to_be_visible()
    server.kill_worker()
    expect(page.get_by_text(re.compile("^The measuring process was killed"))).to_be_visible()
    press(page, page.get_by_role("button", name=re.compile("^Run again")).inner_text().strip())
    until(lambda: [job.state for job in server.queue.jobs()] == ["crashed", "running"])
    expect(page.get_by_text(re.compile("step [0-9,]+ of"))).to_be_visible()
    stop_button(page).click()
    expect(page.get_by_role("button", name=re.compile("^Run again"))).to_be_visible()


def test_a_killed_server_loses_no_measurement(visit, server):
    page = run(visit(LONG))
    expect(page.get_by_text(re.compile("step [0-9,]+ of"))).to_be_visible()
    (job,) = server.queue.jobs()
    server.stop()
    assert server.queue.job(job.id).state == "running"
    server.start()
    page.goto(server.url + "/compare")
    expect(stop_button(page)).to_be_visible()
    expect_link(page, {"job": [job.id]})
    client.stop(server.queue, job.id)


def test_a_link_with_a_value_out_of_range_says_so_until_the_user_takes_over(glance, calm):
    page = settled(glance("/compare?epochs=0"))
    sentence = page.get_by_text("Epochs must be a whole number between 1 and 10,000 (got 0).")
    expect(sentence).to_be_visible()
    until(lambda: client.load_machine(calm.queue) is not None)
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    press(page, "Use the settings shown")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    expect(sentence).to_have_count(0)


def test_selecting_a_row_of_the_gallery_opens_its_run_and_its_link_does_too(visit, server):
    for trial in rows.run():
        server.store.add(trial)
    page = settled(visit("/gallery?in_source=measured+here"))  # what ships with the app may be newer
    select_first_row(page, "gallery_rows")
    expect(page.get_by_text(re.compile("The GPU is"))).to_be_visible()
    expect_link(page, {"run": [rows.RUN_ID]})
    other = visit(page.url.removeprefix(server.url))
    expect(other.get_by_text(re.compile("The GPU is"))).to_be_visible()
