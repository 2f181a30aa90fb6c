"""Pages by keyboard alone; `test_looks` has what is checked automatically."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import views
from tests.browser.views import by_keyboard, ready

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("path", "runs"), [("/compare?more=true", "Run"), ("/crossover?more=true", "Find the crossover")]
)
def test_the_tab_key_reaches_every_control_and_the_button_that_runs(glance, path, runs):
    page = ready(glance(path))
    drawn = set(views.controls(page)) - views.TABLES
    reached, texts = set(), set()
    page.locator("h1").click()
    for _ in range(150):
        page.keyboard.press("Tab")
        focused = page.evaluate(views.FOCUSED)
        reached.add(focused["key"])
        texts.add((focused["text"] or "").strip())
        if focused["body"]:
            break
    assert drawn <= reached
    assert any(text.endswith(runs) for text in texts)


EIGHT = {
    "/compare": "Run",
    "/crossover": "Find the crossover",
    "/tutorials?tutorial=mnist-linear": "Run",
    "/lessons?lesson=moving": "Run",
    "/cases?case=many-threads": "Run",
}
"""What runs, by the address of its page."""


@pytest.mark.parametrize(("path", "runs"), EIGHT.items())
def test_the_button_that_runs_is_reached_within_eight_tabs(glance, path, runs):
    page = ready(glance(path))
    expect(page.get_by_role("button", name=runs, exact=True)).to_be_visible()
    by_keyboard(page, runs, 8)


def test_the_main_job_is_done_by_keyboard_alone(visit, server):
    page = ready(visit("/"))
    expect(page.locator(".st-key-ask").get_by_role("button", name="Run", exact=True)).to_be_enabled()
    by_keyboard(ready(page), "Run", 8)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"[?&]run="))
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    assert [job.state for job in server.queue.jobs()] == ["finished"]


def test_enter_and_space_press_run(visit, server):
    for asked, key in enumerate(("Enter", "Space"), start=1):
        page = ready(visit(f"/compare?model=linear&epochs={asked}&budget_s=10"))
        button = page.get_by_role("button", name="Run", exact=True)
        expect(button).to_be_enabled()
        button.focus()
        page.keyboard.press(key)
        page.wait_for_url("**job=**")
        assert len(server.queue.jobs()) == asked, key


FOCUS_RING = """
button => {
    const style = getComputedStyle(button);
    return style.boxShadow !== 'none' || (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0);
}
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_has_the_focus_can_be_seen(glance, theme):
    page = ready(glance("/compare", theme=theme))
    button = page.get_by_role("button", name="Run", exact=True)
    assert not button.evaluate(FOCUS_RING)
    page.locator(".st-key-more summary").focus()
    for _ in range(5):
        page.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    assert button.evaluate(FOCUS_RING)
