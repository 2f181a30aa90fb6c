"""Every page by keyboard and with an automated check (axe-core), by day and by night."""

from importlib import resources

import pytest

from tests.browser import views
from tests.browser.views import ready

pytestmark = pytest.mark.browser

AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text()
"""As the package ships it; nothing is fetched while testing."""

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
SEVERE = {"serious", "critical"}
ALSO = {"heading-order"}
"""Rules of less weight that hold here as well: who listens to a page finds its parts by their headings."""

CHECK = """
async rules => {
    const {violations} = await axe.run(document, {runOnly: rules, elementRef: true});
    const locked = part => part?.closest('[class*="st-key-"]')?.querySelector('input:disabled');
    return violations.flatMap(violation => violation.nodes
        .filter(node => !(violation.id === 'color-contrast' && locked(node.element)))
        .map(node => ({rule: violation.id, impact: violation.impact, html: node.html, why: node.failureSummary})));
}
"""
"""What axe finds; controls that are locked may be pale (WCAG 1.4.3 leaves inactive ones out, axe cannot tell)."""

KNOWN = {
    "svg-img-alt": "role-mark",  # Vega names every mark but not the empty group that holds them
}
"""By rule, part of the code of what Streamlit and Vega draw and no page can change."""


def violations(page):
    """What axe finds that is serious or that we hold to as well, a line each."""
    page.evaluate(AXE)
    return [
        f"{found['rule']}: {found['html'][:200]}: {found['why'][:300]}"
        for found in page.evaluate(CHECK, RULES)
        if (found["impact"] in SEVERE or found["rule"] in ALSO) and KNOWN.get(found["rule"], "\0") not in found["html"]
    ]


@pytest.mark.parametrize("name", views.SHOWN)
def test_a_page_has_no_serious_fault_of_accessibility_by_day_or_night(look, name):
    for theme in ("light", "dark"):
        page = ready(look(views.SHOWN[name], theme=theme, height=2000))
        assert violations(page) == [], theme


FOCUSED = """
() => {
    const part = document.activeElement;
    const box = part.closest('[class*="st-key-"]');
    const key = box && [...box.classList].find(word => word.startsWith('st-key-')).slice('st-key-'.length);
    return {key, text: part.innerText, body: part === document.body};
}
"""


@pytest.mark.parametrize(("path", "runs"), [("/?more=true", "Run"), ("/crossover?more=true", "Find the crossover")])
def test_the_tab_key_reaches_every_control_and_the_button_that_runs(glance, path, runs):
    page = ready(glance(path))
    drawn = set(views.controls(page)) - views.TABLES
    reached, texts = set(), set()
    page.locator("h1").click()
    for _ in range(150):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        reached.add(focused["key"])
        texts.add((focused["text"] or "").strip())
        if focused["body"]:
            break
    assert drawn <= reached
    assert any(text.endswith(runs) for text in texts)


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_enter_and_space_press_run(visit, server, key):
    page = ready(visit("/?model=linear&epochs=2&budget_s=10"))
    button = page.get_by_role("button", name="Run", exact=True)
    button.focus()
    page.keyboard.press(key)
    page.wait_for_url("**job=**")
    assert server.queue.jobs()


FOCUS_RING = """
button => {
    const style = getComputedStyle(button);
    return style.boxShadow !== 'none' || (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0);
}
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_has_the_focus_can_be_seen(glance, theme):
    page = ready(glance("/", theme=theme))
    button = page.get_by_role("button", name="Run", exact=True)
    assert not button.evaluate(FOCUS_RING)
    page.locator(".st-key-devices").get_by_role("combobox").focus()
    for _ in range(5):
        page.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    assert button.evaluate(FOCUS_RING)
