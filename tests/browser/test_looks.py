"""Every page at three widths, by day and by night: nothing is cut off, nothing raised; pictures for people to look at.

With CROSSOVER_LOOKS set to a folder, the pictures are kept there as `page-width-theme.png`.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import views
from tests.browser.views import ready

pytestmark = pytest.mark.browser

WIDTHS = (1440, 800, 400)
TALL = 2600
"""Pixels; the page scrolls inside its window, so a picture of all of it needs a window as tall."""

OVERFLOW = """
() => [document.documentElement, document.querySelector('[data-testid=stMain]')]
    .map(part => part.scrollWidth - part.clientWidth)
"""


@pytest.fixture
def looks(tmp_path):
    """Where pictures go."""
    folder = Path(os.environ.get("CROSSOVER_LOOKS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("name", views.SHOWN)
def test_a_page_fits_any_window_by_day_and_by_night(look, looks, name):
    for theme in ("light", "dark"):
        page = look(views.SHOWN[name], width=WIDTHS[0], height=TALL, theme=theme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": TALL})
            ready(page)
            expect(page.locator("h1")).to_have_count(1)
            expect(page.locator("h1")).to_be_visible()
            page.screenshot(path=looks / f"{name}-{width}-{theme}.png", animations="disabled")
            assert page.evaluate(OVERFLOW) == [0, 0], (width, theme)
            expect(page.get_by_test_id("stException")).to_have_count(0)
