"""The server's headers and the files that it hands out, in a real browser: everything draws, nothing is blocked."""

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core.answer.gallery import overview
from core.results.store import GALLERY, Store
from tests.browser.conftest import settled

pytestmark = pytest.mark.browser

COMPLAINT = "Content Security"
"""What the browser's messages of blocked content have in common."""

PAGES = ("/", "/compare", "/crossover", "/tutorials", "/lessons", "/cases", "/gallery", "/devices")


def study_link() -> str:
    (line, *_) = overview.find_study_lines(overview.load_overview([(Store(GALLERY), "gallery")]).table)
    return f"/gallery?study={line.id}"


def complaints(page: Page) -> list[str]:
    """What the browser says of blocked content, from now on."""
    found: list[str] = []
    page.on("console", lambda message: found.append(message.text) if COMPLAINT in message.text else None)
    return found


def test_no_page_asks_for_what_the_headers_forbid(glance, calm):
    page = glance("/")
    found = complaints(page)
    for path in (*PAGES, study_link()):
        page.goto(calm.url + path)
        settled(page)
    expect(page.get_by_test_id("stVegaLiteChart").first.locator("canvas, svg").first).to_be_visible()
    assert found == []


def test_a_script_that_was_brought_in_may_not_ask_another_host(glance):
    page = settled(glance("/gallery"))
    with page.expect_console_message(lambda message: COMPLAINT in message.text):
        asked = page.evaluate("fetch('http://example.org/').then(() => 'answered', () => 'refused')")
    assert asked == "refused"


def test_a_chart_is_saved_as_a_picture_and_as_a_page_that_draws_itself(glance, chromium: Browser, tmp_path: Path):
    page = settled(glance(study_link()))
    page.get_by_role("button", name="Save this chart").first.click()
    for label, suffix, start in (("PNG picture", ".png", b"\x89PNG"), ("SVG picture", ".svg", b"<svg")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=label).click()
        assert saved.value.suggested_filename.endswith(suffix)
        assert Path(saved.value.path()).read_bytes().startswith(start)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Page with tooltips (HTML)").click()
    saved.value.save_as(tmp_path / "chart.html")
    context = chromium.new_context(offline=True)
    alone = context.new_page()
    errors: list[str] = []
    alone.on("pageerror", lambda error: errors.append(str(error)))
    alone.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    alone.goto((tmp_path / "chart.html").as_uri())
    expect(alone.locator("#chart canvas, #chart svg").first).to_be_visible()
    context.close()
    assert errors == []


def test_the_health_and_the_closed_doors_of_a_running_server(calm):
    with urllib.request.urlopen(f"{calm.url}/health") as answer:
        assert json.load(answer)["ok"] is True
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{calm.url}/_stcore/metrics")
    refused.value.close()
    assert refused.value.code == 404
