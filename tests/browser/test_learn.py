"""Tutorials and lessons in a real browser: expect, run, see, come back by link, and take the report along."""

import re
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.students import QUESTION

pytestmark = pytest.mark.browser

MOVING = "/lessons?lesson=moving"


def option(page, name):
    return page.get_by_role("radio", name=name, exact=True)


def choose(page, name):
    option(page, name).locator("xpath=ancestor::label").click()


def report(page, folder):
    page.get_by_role("button", name="Create the report").click()
    with page.expect_download() as taken:
        page.get_by_role("button", name="Report as HTML").click()
    taken.value.save_as(folder / "report.html")
    return Path(folder / "report.html").read_text()


def test_a_lesson_from_the_question_to_the_report_and_back_by_its_link(visit, server, tmp_path):
    page = visit(MOVING)
    run = page.locator(".st-key-learn_run").get_by_role("button")
    expect(run).to_be_enabled()
    choose(page, "neither")
    expect(page).to_have_url(re.compile("predict_moving=neither"))
    with FileLock(server.folder / "lock"):  # or it may be over before anybody has looked
        run.click()
        expect(page.locator(".st-key-answer_side").get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_role("heading", name="PyTorch's behavior and messages", exact=True)).to_be_visible()
    fits = "The measurement disagrees. The matching answer: the module's parameters."
    expect(page.get_by_text(f"You predicted: neither. {fits}")).to_be_visible()
    assert server.queue.jobs()[0].demonstration.kind == "moving"

    page.get_by_label("Your name, for the report").fill("Ada <b>Lovelace</b>")
    text = report(page, tmp_path)
    assert "Ada &lt;b&gt;Lovelace&lt;/b&gt;" in text
    assert "neither" in text
    assert "Lovelace" not in page.url

    again = visit(page.url.removeprefix(server.url))
    expect(again.get_by_text("You predicted: neither")).to_be_visible()
    expect(again.get_by_role("heading", name="PyTorch's behavior and messages", exact=True)).to_be_visible()
    assert len(server.queue.jobs()) == 1


def test_expectations_survive_a_look_at_another_tutorial_and_a_reload(glance):
    page = settled(glance("/tutorials?tutorial=disc"))
    choose(page, "at no depth")
    expect(page).to_have_url(re.compile(r"predict_disc=at\+no\+depth"))
    expect(option(page, "at no depth")).to_be_checked()
    page.get_by_role("radio", name="Signal and background", exact=True).click()
    expect(page.get_by_role("heading", name="Signal and background")).to_be_visible()
    page.get_by_role("radio", name="Points in a disc", exact=True).click()
    expect(option(page, "at no depth")).to_be_checked()
    expect(page).to_have_url(re.compile(r"predict_disc=at\+no\+depth"))
    page.reload()
    expect(option(page, "at no depth")).to_be_checked()


def test_the_report_of_a_tutorial_has_its_charts_inside(look, tmp_path):
    page = look("/tutorials?tutorial=signal&predict_signal=at+no+hidden+size&shown=signal")
    expect(page.get_by_role("heading", name="Published and recorded")).to_be_visible()
    text = report(page, tmp_path)
    assert text.count("<svg") == 3, "the published study, the recorded one, and the gallery's epoch by each clock"
    assert "Recorded on another machine" in text


def test_a_teachers_table_follows_the_class_and_comes_back_by_the_teachers_own_link(glance, calm):
    of, secret = calm.classes.create("Physics 7b", QUESTION)
    page = settled(glance(f"/class?class={of.code}&teacher=true"))
    page.get_by_label("Teacher's code").fill(secret)
    page.get_by_role("button", name="Open the teacher's view").click()
    expect(page.get_by_text("Nobody has joined yet", exact=False)).to_be_visible()
    calm.classes.join(of, "ada")
    table = page.get_by_label("Students with their predictions and results", exact=True).first
    expect(table).to_be_attached()
    assert secret not in page.url
    page.goto(f"{page.url.partition('?')[0]}?class={of.code}&teach={secret}")
    expect(table).to_be_attached()
    expect(page.get_by_role("button", name="Close the class")).to_be_visible()
