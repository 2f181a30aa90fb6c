"""The live picture in a real browser: it follows the slider by itself, and sends one value when that is let go."""

import re

import pytest
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser.axe import violations
from tests.browser.views import expect_link, ready

pytestmark = pytest.mark.browser

OPENED = "/?dataset=disc&model=doubling-mlp&depth=9&batch_size=100&shuffle=false&devices=cpu%401&devices=cpu"

SEEN = """
(picture) => {
    const svg = (name) => picture.querySelector(name).innerHTML;
    return [picture.querySelector('.say').textContent, svg('.moving'), svg('.step'), svg('.network')];
}
"""
"""Sentence, line on the curve, step and network as they are drawn."""

COUNT_DRAWN = """
(picture) => {
    window.drawn = new Set();
    const line = () => window.drawn.add(picture.querySelector('.moving line').getAttribute('x1'));
    new MutationObserver(line).observe(picture.querySelector('.curve'), {childList: true, subtree: true});
}
"""


def picture(page):
    shown = page.locator(".picture")
    expect(shown.locator(".moving line")).to_be_attached()
    return shown


def test_a_drag_changes_all_four_without_a_frame_to_the_server_and_letting_go_sends_one_value(glance):
    sent = []
    page = glance(OPENED)
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    page.reload()  # so that the connection is one that is listened to
    shown = picture(ready(page))
    slider = shown.get_by_role("slider")
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    before = shown.evaluate(SEEN)
    shown.evaluate(COUNT_DRAWN)
    page.mouse.move(box["x"] + box["width"] * 0.59, middle)
    page.mouse.down()
    del sent[:]
    seen = set()
    for step in range(60):
        page.mouse.move(box["x"] + box["width"] * (0.05 + 0.015 * step), middle)
        page.wait_for_timeout(16)
        seen.add(shown.locator("output").inner_text())
    assert [frame for frame in sent if not _is_timed(frame)] == []
    assert len(seen) >= 10
    assert len(page.evaluate("[...window.drawn]")) >= 10
    assert all(now != then for now, then in zip(shown.evaluate(SEEN), before, strict=True))
    stands = shown.locator("output").inner_text()
    page.mouse.up()
    expect(page).to_have_url(re.compile(rf"depth={stands}(&|$)"))
    assert sent
    expect(page.locator(".st-key-depth").get_by_role("slider")).to_have_attribute("aria-valuetext", stands)
    expect(picture(ready(page)).locator("output")).to_have_text(stands)


def _is_timed(frame):
    """Whether a part of the page that looks again every few seconds sent this, as it does without a drag."""
    message = BackMsg()
    message.ParseFromString(frame)
    return message.rerun_script.is_auto_rerun


def test_the_keyboard_moves_it_and_a_screen_reader_is_told_the_sentence(glance):
    page = ready(glance(OPENED))
    shown = picture(page)
    shown.get_by_role("slider").press("ArrowRight")
    expect(shown.locator("output")).to_have_text("10")
    expect(shown.locator(".live")).to_contain_text("predicted")
    expect(page).to_have_url(re.compile("depth=10"))
    assert violations(ready(page)) == []


@pytest.mark.parametrize(("width", "theme"), [(1024, "light"), (390, "dark")])
def test_all_doors_are_in_sight_at_every_width(glance, width, theme):
    page = ready(glance("/", width=width, theme=theme))
    doors = page.locator(".st-key-doors a")
    expect(doors).to_have_count(5)
    for place in range(5):
        box = doors.nth(place).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    doors.nth(1).click()
    page.locator(".st-key-rooms").get_by_role("link", name="Cases").click()
    expect(page).to_have_url(re.compile("/cases"))
    assert violations(ready(page)) == []


def test_settings_survive_a_look_at_another_page(glance):
    page = ready(glance("/?dataset=digits&model=mlp"))
    page.locator(".st-key-hidden_size").get_by_role("slider").press("ArrowRight")
    expect(page).to_have_url(re.compile("hidden_size=256"))
    ready(page)
    page.locator(".st-key-doors a").nth(2).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Gallery")
    ready(page)
    page.locator(".st-key-doors a").nth(0).click()
    slider = page.locator(".st-key-hidden_size").get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", "256")
    expect_link(ready(page), {"hidden_size": ["256"]})
