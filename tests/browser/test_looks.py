"""Every page at five widths by day, at two by night: nothing is cut off, nothing raised, nobody shut out.

With CROSSOVER_LOOKS set to a folder, pictures for people to look at are put there as `page-width-theme.png`, at all
widths by night too.
"""

import contextlib
import os
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect

from tests.browser import axe, views
from tests.browser.views import ready

pytestmark = pytest.mark.browser

WIDTHS = (1440, 1280, 800, 400, 360)
CHECKED = 1280
"""The width at which accessibility is checked."""

BY_NIGHT = WIDTHS if os.environ.get("CROSSOVER_LOOKS") else (CHECKED, WIDTHS[-1])
"""Colours lay nothing out: the width at which accessibility is checked, and the narrowest, tell what they might."""

TALL = 2600
"""Pixels; the page scrolls inside its window, so a picture of all of it needs a window as tall."""

RECORDED = ("tutorials", "lessons")
"""Pages that show what another machine recorded."""

DARK = """
getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor.match(/\\d+/g).every(part => part < 128)
"""

OVERFLOW = """
() => [document.documentElement, document.querySelector('[data-testid=stMain]')]
    .map(part => part.scrollWidth - part.clientWidth)
"""


@pytest.fixture
def keep():
    """Keeps a picture of a page, where pictures are asked for."""
    folder = os.environ.get("CROSSOVER_LOOKS")

    def keep(page, name):
        if folder:  # Playwright makes it where it is not there yet
            page.screenshot(path=Path(folder) / f"{name}.png", animations="disabled")

    return keep


def overflow(page):
    """Pixels beyond the window, waiting for parts that still resize; one is a rounded fraction of a chart's width."""
    with contextlib.suppress(PlaywrightTimeout):
        page.wait_for_function(f"({OVERFLOW.strip()})().every(beyond => beyond <= 1)")
        return [0, 0]
    return page.evaluate(OVERFLOW)


@pytest.mark.parametrize("name", views.SHOWN)
def test_a_page_fits_any_window_and_has_no_serious_fault_of_accessibility_by_day_or_night(look, keep, name):
    page = ready(look(views.SHOWN[name], width=WIDTHS[0], height=TALL))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(f"{DARK.strip()} === {str(theme == 'dark').lower()}")
        for width in WIDTHS if theme == "light" else BY_NIGHT:
            page.set_viewport_size({"width": width, "height": TALL})
            ready(page)
            expect(page.locator("h1")).to_have_count(1)
            expect(page.locator("h1")).to_be_visible()
            keep(page, f"{name}-{width}-{theme}")
            assert overflow(page) == [0, 0], (width, theme)
            expect(page.get_by_test_id("stException")).to_have_count(0)
            if width == CHECKED:
                assert axe.violations(page) == [], theme
        if name in RECORDED:
            expect(page.get_by_text("Recorded on another machine").first).to_be_visible()


def test_on_a_phone_a_training_that_is_not_offered_is_named_above_the_button(glance):
    page = ready(glance("/compare?training=nobody.py:build", width=400))
    expect(page.get_by_text("nobody.py:build", exact=False)).to_be_visible()
