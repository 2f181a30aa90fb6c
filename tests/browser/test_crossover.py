"""The Crossover page in a real browser: from the button to the answer, links, a phone, day and night."""

import re

import pytest
from playwright.sync_api import expect

from core.answer import speedup, study
from core.jobs import client
from tests.browser.conftest import settled, stop_button, until
from tests.browser.views import expect_link, ready, select_first_row
from tests.studies import stored

pytestmark = pytest.mark.browser

TINY = "/crossover?axis=hidden_size&hidden_size_range=16&hidden_size_range=64&adaptive=false&pairs=6&point_budget_s=300"
LONG = "/crossover?axis=hidden_size&hidden_size_range=16&hidden_size_range=2048&adaptive=false&pairs=100&fair=false"


def find(page):
    """Press the button as soon as the machine's devices are known."""
    button = page.get_by_role("button", name="Find the crossover", exact=True)
    expect(button).to_be_enabled()
    button.click()
    return page


def test_the_button_leads_to_the_answer_and_the_second_time_at_once(visit, server):
    page = find(visit(TINY))
    expect(page.get_by_role("heading", name="Export")).to_be_visible()
    (found,) = study.studies(server.store.trials())
    expect(page.get_by_test_id("stAlert").first).to_contain_text(found.crossover().sentence)
    (job,) = server.queue.jobs()
    assert job.state == "finished"
    expect_link(page, {"job": [job.id]})
    assert {trial.hidden_size for trial in server.store.trials()} == {16, 32, 64}

    decided = all(
        speedup.answers_experiment(
            job.sweep.experiment(point), [row for row in server.store.trials() if row.hidden_size == point.hidden_size]
        )
        for point in job.sweep.points
    )
    again = find(visit(TINY))
    if not decided:  # what a busy machine left open is measured again
        until(lambda: len(server.queue.jobs()) == 2)
        return
    expect(again.get_by_text(re.compile("Measured before, on"))).to_be_visible()
    expect_link(again, {"sweep": [job.sweep.id]})
    assert len(server.queue.jobs()) == 1


def test_a_running_sweep_is_followed_and_stopped_and_keeps_what_it_has(visit, server):
    page = find(visit(LONG))
    expect(page.get_by_text(re.compile("of [0-9]+ points done"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"under way \([1-9][0-9]* of [0-9]+ pairs\)"))).to_be_visible()
    (job,) = server.queue.jobs()
    until(lambda: client.load_job_rows(server.queue, job))  # what a stop keeps that has to end the process
    stop_button(page).click()
    expect(page.get_by_role("button", name=re.compile("^Run again"))).to_be_visible()
    assert server.queue.jobs()[0].state == "stopped"
    assert server.store.trials()


def test_the_first_visitor_of_a_fresh_server_can_come_by_a_link_to_a_study(visit, server):
    page = settled(visit(f"/crossover?study={stored(server)}"))
    expect(page.get_by_test_id("stAlert").first).to_contain_text("is faster than")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_selecting_a_recorded_study_opens_it(look):
    page = settled(look("/crossover"))
    select_first_row(page, "studies")
    expect(page.get_by_role("heading", name="Export")).to_be_visible()
    expect(page).to_have_url(re.compile(r"[?&]study="))


def test_the_cost_basis_is_in_the_link(look):
    page = settled(look("/crossover?study={study}"))
    page.locator(".st-key-basis").get_by_text("with start-up", exact=True).click()
    expect(page.get_by_text(re.compile("^Included .with start-up"))).to_be_visible()
    expect(page).to_have_url(re.compile("basis=cold_start"))


def test_one_size_and_a_range_have_their_own_settings_and_the_same_devices(glance):
    page = ready(glance("/crossover?pairs=5&contenders=cpu%401&contenders=cpu%402"))
    expect(page.get_by_role("button", name="Find the crossover", exact=True)).to_be_enabled()
    page.locator(".st-key-sizes").get_by_text("One size").click()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    expect(page.locator(".st-key-devices")).to_contain_text("1 CPU thread")
    expect_link(page, {"sizes": ["one"], "contenders": None})
