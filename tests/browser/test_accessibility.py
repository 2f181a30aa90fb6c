"""Pages by keyboard alone; `test_looks` has what is checked automatically."""

import pytest

from tests.browser import views
from tests.browser.views import ready

pytestmark = pytest.mark.browser

FOCUSED = """
() => {
    const part = document.activeElement;
    const box = part.closest('[class*="st-key-"]');
    const key = box && [...box.classList].find(word => word.startsWith('st-key-')).slice('st-key-'.length);
    return {key, text: part.innerText, body: part === document.body};
}
"""


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
        focused = page.evaluate(FOCUSED)
        reached.add(focused["key"])
        texts.add((focused["text"] or "").strip())
        if focused["body"]:
            break
    assert drawn <= reached
    assert any(text.endswith(runs) for text in texts)


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_enter_and_space_press_run(visit, server, key):
    page = ready(visit("/compare?model=linear&epochs=2&budget_s=10"))
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
    page = ready(glance("/compare", theme=theme))
    button = page.get_by_role("button", name="Run", exact=True)
    assert not button.evaluate(FOCUS_RING)
    page.locator(".st-key-devices").get_by_role("combobox").focus()
    for _ in range(5):
        page.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    assert button.evaluate(FOCUS_RING)
