"""The Back button: one entry a step, and everything as it was left."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.views import ready

pytestmark = pytest.mark.browser


def entries(page):
    return page.evaluate("history.length")


def menu(page, name):
    places = {"Explore": 0, "Tutorials": 1, "Gallery": 2, "Class": 3, "Devices": 4}
    page.locator(".st-key-doors a").nth(places[name]).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    ready(page)


def test_back_returns_from_what_was_opened_to_the_list_as_it_was_left(glance):
    page = ready(glance("/gallery?view=Published&in_publisher=Szilard+Pafka%2C+GBM-perf"))
    expect(page.get_by_text("3 of 17 published studies")).to_be_visible()
    before = entries(page)
    page.get_by_role("button", name="Open").first.click()
    expect(page.get_by_role("button", name="Back to the list")).to_be_visible()
    expect(page).to_have_url(re.compile("study=xgboost"))
    ready(page)  # a page that still runs could write its address after the browser went back
    assert entries(page) == before + 1
    page.go_back()
    expect(page.get_by_text("3 of 17 published studies")).to_be_visible()
    expect(page).not_to_have_url(re.compile("study"))
    page.go_forward()
    expect(page.get_by_role("button", name="Back to the list")).to_be_visible()


def test_a_case_is_one_entry_and_back_returns_to_the_answers(glance):
    page = ready(glance("/cases?symptom=idle&kind=images&loop=files"))
    before = entries(page)
    page.get_by_role("button", name="Open").first.click()
    expect(page.get_by_role("heading", name="On this machine")).to_be_visible()
    expect(page).to_have_url(re.compile("case=imagenet-loader"))
    ready(page)
    assert entries(page) == before + 1
    page.go_back()
    expect(page.get_by_text("2 cases that fit your answers")).to_be_visible()
    expect(page).not_to_have_url(re.compile(r"\?.*case"))


def test_the_menu_adds_one_entry_and_back_restores_the_settings(glance):
    page = ready(glance("/compare?dataset=signal&hidden_size=512&epochs=7"))
    before = entries(page)
    menu(page, "Gallery")
    assert entries(page) == before + 1
    page.get_by_role("button", name="Open").first.click()
    expect(page.get_by_role("button", name="Back to the list")).to_be_visible()
    ready(page)
    menu(page, "Devices")
    assert entries(page) == before + 3
    page.go_back()
    expect(page.get_by_role("button", name="Back to the list")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("button", name="Open").first).to_be_visible()
    expect(page).not_to_have_url(re.compile("study"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"/\?.*hidden_size=512"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("Explore")
    ready(page)
    expect(page).to_have_url(re.compile("epochs=7"))
    assert entries(page) == before + 3
