"""A training of one's own in a real browser: chosen, run, read, and seen to have changed."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import axe
from tests.browser.views import by_keyboard, ready

pytestmark = pytest.mark.browser


def test_ones_own_training_from_its_file_to_the_answer_and_to_the_next_version(visit_own, own_server):
    page = visit_own("/compare?budget_s=120&pairs=2&size=16&devices=cpu%401&devices=cpu")
    page.locator(".st-key-training").get_by_role("combobox").click()
    page.get_by_role("option", name="Your script: plain.py").click()
    expect(page).to_have_url(re.compile(r"training=plain\.py"))
    expect(page.get_by_label("Data set")).to_have_count(0)
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_enabled()
    assert axe.violations(ready(page)) == []
    by_keyboard(page, "Run", 12)
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Export")).to_be_visible()
    expect(page.locator("[aria-label='Time per step by part']").first).to_be_visible()
    assert axe.violations(page) == []
    (job,) = own_server.queue.jobs()
    assert (job.state, job.experiment.point.training) == ("finished", "plain.py:build")

    file = Path(own_server.training)
    file.write_text(file.read_text() + "\n# changed\n")
    expect(page.get_by_text("plain.py has changed since")).to_be_visible()
    expect(page.get_by_role("button", name="Measure again")).to_be_disabled()
    expect(run).to_be_enabled()
