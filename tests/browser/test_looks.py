"""Every page at five widths by day, at two by night: nothing is cut off, nothing raised, nobody shut out.

Explore in every state that visitors meet too, on three screens by day and night.

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
from tests.browser import explored as states
from tests.browser.conftest import Filled, Server, visits
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


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """A server with Explore in every state; this process stands in for its measuring process."""
    started = Server(tmp_path_factory.mktemp("explored"))
    names = states.fill(started)
    started.start()
    yield Filled(server=started, names=names)
    started.stop()


@pytest.fixture
def opened(visitors, explored):
    """Opens Explore in a state."""
    with contextlib.ExitStack() as stack:

        def opened(state):
            names = dict(explored.names)
            if state == "measuring":
                names["job"] = stack.enter_context(states.measuring(explored.server)).id
            look = stack.enter_context(visits(visitors, explored.server, names))
            return look(f"/?{states.STATES[state]}", *SCREENS[0])

        yield opened


SCREENS = ((1280, 800), (1024, 768), (390, 844))

DRAG = """
slider => {
    slider.value = Number(slider.max) - 2;
    slider.dispatchEvent(new Event('input', {bubbles: true}));
}
"""

CUT = """
picture => {
    const name = part => part.textContent.trim().slice(0, 60), found = [];
    for (const svg of picture.querySelectorAll('svg.curve, svg.step, svg.network')) {
        const of = svg.getBoundingClientRect();
        const texts = [...svg.querySelectorAll('text')].map(text => [name(text), text.getBoundingClientRect()]);
        texts.forEach(([said, box], place) => {
            const out = box.left < of.left - 2 || box.right > of.right + 2 || box.top < of.top - 2;
            if (out || box.bottom > of.bottom + 2) found.push(`${said}: outside of ${svg.classList}`);
            for (const [other, one] of texts.slice(place + 1)) {
                const wide = Math.min(box.right, one.right) - Math.max(box.left, one.left);
                const tall = Math.min(box.bottom, one.bottom) - Math.max(box.top, one.top);
                if (wide > 2 && tall > 4) found.push(`${said}: over ${other}`);
            }
        });
    }
    const main = document.querySelector('[data-testid=stMain]');
    for (const part of [...main.querySelectorAll('*'), ...picture.querySelectorAll('*')]) {
        const own = [...part.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
        if (!own || part.ownerSVGElement || !part.checkVisibility({opacityProperty: true})) continue;
        const style = getComputedStyle(part), box = part.getBoundingClientRect();
        if (part.closest('[data-testid=stDataFrame], [class*=st-key-skip], .live, template') || box.width < 2) continue;
        const cut = style.overflowX !== 'visible' && part.scrollWidth > part.clientWidth + 1;
        if (cut || box.right > window.innerWidth + 1 || box.left < -1) found.push(`${name(part)}: cut off`);
    }
    return found;
}
"""
"""Texts of Explore that leave their place, lie on one another or are cut off."""


@pytest.mark.parametrize("state", states.STATES)
def test_explore_fits_every_screen_in_every_state_by_day_and_night(opened, keep, state):
    page = ready(opened(state)) if state != "measuring" else opened(state)
    shown = page.locator(".picture")
    expect(shown.locator(".moving line")).to_be_attached()
    faults = {}
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(f"{DARK.strip()} === {str(theme == 'dark').lower()}")
        for width, height in SCREENS:
            page.set_viewport_size({"width": width, "height": height})
            if state != "measuring":
                ready(page)
            if state == "dragging":
                shown.get_by_role("slider").evaluate(DRAG)
            keep(page, f"explore-{state}-{width}-{theme}")
            found = [*shown.evaluate(CUT), *(["too wide"] if overflow(page) != [0, 0] else [])]
            faults |= {(width, theme): found} if found else {}
            expect(page.get_by_test_id("stException")).to_have_count(0)
            if width == CHECKED:
                assert axe.violations(page) == [], theme
    assert faults == {}
