"""A link opened in a fresh browser restores every control, hidden control and chart of every page."""

import itertools
import re

import pytest
from playwright.sync_api import expect

from tests import rows
from tests.browser import views
from tests.browser.views import expect_link, link, ready

pytestmark = pytest.mark.browser

POINT = (
    "samples=12345&batch_size=77&epochs=7&learning_rate=0.03&data_path=loader&loader_workers=2&shuffle=false&seed=42"
)
SIZES = {"mlp": "&hidden_size=100&depth=3", "doubling-mlp": "&model=doubling-mlp&depth=5"}
LIMITS = "&sweep_budget_s=90&point_budget_s=7&pairs=5"
LINKS = {
    "explore": [
        f"/compare?dataset=signal&{POINT}{SIZES['mlp']}&devices=cpu&lanes=compiled10&lanes=fused&budget_s=25&whole=true&more=true",
        f"/?sizes=one&dataset=signal&{POINT}{SIZES['doubling-mlp']}&budget_s=25&card=h100&accuracy=true",
        f"/compare?dataset=fashion-mnist&{POINT}&model=cnn&width=3",
        "/compare?dataset=token-order&model=transformer&heads=2&sequence_length=16&dtype=float64",
        "/compare?dataset=clicks&embedding_rows=1000",
        "/compare?dataset=signal&model=hist-boosting&rounds=20&leaves=16",
        f"/compare?run={rows.RUN_ID}&epochs=3&loss=true&reports=true",
        f"/compare?run={rows.RUN_ID}&blocks=true&race=true",
        "/compare?recorded={accelerator}&stock=true&more=true",
        f"/compare?run={rows.RUN_ID}&recorded={{accelerator}}&fingerprints=true",
        f"/crossover?dataset=signal&{POINT}&axis=depth&depth_range=3&depth_range=7&adaptive=false&hidden_size=100"
        f"&contenders=cpu%401&contenders=cpu&contenders=cpu%401%2Bcompiled{LIMITS}&more=true",
        f"/crossover?dataset=signal&{POINT}&axis=hidden_size&hidden_size_range=10&hidden_size_range=1000&depth=3"
        "&also=batch_size&batch_size_values=16&batch_size_values=100",
        "/crossover?dataset=disc&axis=parameters&parameters_range=500&parameters_range=20000",
        "/crossover?dataset=fashion-mnist&model=cnn&axis=width&width_range=2&width_range=5&also=learning_rate"
        "&learning_rate_values=0.02&learning_rate_values=0.2",
        "/crossover?dataset=signal&axis=depth&also=samples&also=hidden_size&samples_values=200&samples_values=500"
        "&hidden_size_values=32&hidden_size_values=64",
        "/crossover?axis=hidden_size&data_path=loader&also=depth&also=loader_workers&depth_values=3&depth_values=5"
        "&loader_workers_values=1&loader_workers_values=4",
        "/crossover?axis=batch_size&also=parameters&parameters_values=2000&parameters_values=5000",
        "/crossover?dataset=fashion-mnist&model=cnn&width=3",
        "/crossover?dataset=fashion-mnist&model=cnn&axis=batch_size&also=width&width_values=2&width_values=3",
        "/crossover?dataset=signal&axis=samples&samples_range=200&samples_range=5000",
        "/crossover?axis=batch_size&batch_size_range=8&batch_size_range=512&study={study}&basis=cold_start"
        "&speedup=true&recorded_studies=false&timings=true",
        "/crossover?axis=hidden_size&recorded={accelerator}&recorded_sizes=false&stock=true&more=true",
        "/crossover?dataset=token-order&model=transformer&axis=heads&heads_range=1&heads_range=8&also=sequence_length"
        "&sequence_length_values=8&sequence_length_values=16",
        "/crossover?dataset=token-order&model=transformer&axis=sequence_length&sequence_length_range=8"
        "&sequence_length_range=64&also=heads&heads_values=2&heads_values=4",
        "/crossover?dataset=token-order&model=transformer&heads=2&sequence_length=16&dtype=float64",
        "/crossover?dataset=clicks&axis=embedding_rows&embedding_rows_range=1000&embedding_rows_range=100000",
        "/crossover?dataset=clicks&axis=hidden_size&also=embedding_rows&embedding_rows_values=100"
        "&embedding_rows_values=10000",
        "/crossover?dataset=clicks&axis=hidden_size&embedding_rows=1000",
        "/crossover?dataset=signal&model=hist-boosting&axis=rounds&rounds_range=10&rounds_range=100&also=leaves"
        "&leaves_values=8&leaves_values=64",
        "/crossover?dataset=signal&model=hist-boosting&axis=leaves&leaves_range=8&leaves_range=64&also=rounds"
        "&rounds_values=10&rounds_values=50",
        "/crossover?dataset=signal&model=hist-boosting&axis=samples&rounds=20&leaves=16",
        "/crossover?{grid}",
    ],
    "devices": ["/devices"],
    "tutorials": [
        "/tutorials?tutorial=signal&scale=full&predict_signal=at+no+hidden+size",
        "/tutorials?tutorial=fashion-cnn&devices=cpu&devices=cpu%401&shown=fashion-cnn",
        "/tutorials?tutorial=mnist-linear&predict_mnist-linear=slower",
        "/tutorials?tutorial=fashion-cnn&digits=true&predict_fashion-cnn=slower",
        "/tutorials?predict_disc=at+no+depth",
    ],
    "lessons": [
        "/lessons?predict_clock=too+little",
        "/lessons?lesson=moving&predict_moving=neither&devices=cpu",
        "/lessons?lesson=loader&data=mnist&predict_loader=10+to+50+%25&shown=loader",
        "/lessons?lesson=learning&seeds=10&margin=2.0&predict_learning=it+depends+on+the+seed",
        "/lessons?lesson=small&predict_small=about+as+long",
    ],
    "cases": ["/cases?symptom=idle&kind=images&batch=some&loop=files", "/cases?case=many-threads&symptom=slower"],
    "class": ["/class", "/class?class={class}&results=true", "/class?class={class}&me={me}"],
    "gallery": [
        "/gallery?filters=true&in_dataset=digits&in_model=mlp&in_kind=cuda&in_source=measured+here",
        "/gallery?view=Trials&in_dataset=signal&trials_page=2",
        "/gallery?view=Machines",
        "/gallery?study=cnn-mnist&against={study}",
        "/gallery?view=Published&in_answer=crossing&in_publisher=Szilard+Pafka%2C+GBM-perf&filters=true",
        f"/gallery?run={rows.RUN_ID}&blocks=true&loss=true&race=true",
        "/gallery?study={study}&basis=cold_start&size=256&speedup=true&reports=true",
        "/gallery?study={study}&lacks=true&fingerprint=true",
        "/gallery?add=true",
        "/gallery?studies_page=2",
        "/gallery?in_device=NVIDIA+Test+GPU&in_protocol=1&in_outcome=completed&in_trust=full&filters=true",
        "/gallery?in_machine={machine}",
        "/gallery?study={study}&beside={other}",
    ],
}
NOT_HERE = {
    "explore": {"fair", "recorded_speedup", "own_speedup", "training", "size", "size_range", "machine", "slice"},
    "gallery": {"unread", "in_training"},
    "class": {"codes", "teacher"},
}
"""Controls of a machine with an accelerator, of two machines' sizes, of one's own file or training, of a damaged file,
of machines of a cluster, of a grid, which is named by what it holds, and of a teacher; tests of the pages have them."""


def compare(page):
    """What the first link says and no slider shows."""
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    expect(page.get_by_role("combobox", name="Data set")).to_have_value("Signal and background")
    expect(page.locator(".st-key-devices")).to_contain_text("CPU")
    expect(page.locator(".st-key-data_path").get_by_role("radio", name="DataLoader", exact=True)).to_be_checked()
    expect(page.locator(".st-key-shuffle").get_by_role("switch")).not_to_be_checked()
    expect(page.locator(".st-key-seed").get_by_role("spinbutton")).to_have_value("42")


def crossover(page):
    """The same of the first link to a range of sizes."""
    expect(page.get_by_role("button", name="Find the crossover", exact=True)).to_be_enabled()
    expect(page.get_by_role("combobox", name="Vary", exact=True)).to_have_value("Depth")
    expect(page.locator(".st-key-adaptive").get_by_role("switch")).not_to_be_checked()
    expect(page.locator(".st-key-depth")).to_have_count(0)


FIRST = {("explore", 0): compare, ("explore", 10): crossover}


@pytest.mark.parametrize("name", LINKS)
def test_every_control_of_a_page_is_in_one_of_these_links(name):
    given = {*itertools.chain(*map(views.parameters, LINKS[name]))}
    assert views.names(name) <= given | NOT_HERE.get(name, set())


@pytest.mark.parametrize(("name", "place"), [(name, place) for name in LINKS for place in range(len(LINKS[name]))])
def test_what_a_link_says_is_shown_and_comes_up_the_same_in_a_fresh_browser(look, filled, name, place):
    path = LINKS[name][place].format(**filled.names)
    first = ready(look(path))
    asked, drawn = link(first), views.controls(first)
    given = views.parameters(filled.server.url + path)
    assert set(drawn) <= views.names(name) | views.TABLES
    assert set(given) <= {*asked, *drawn}
    expect(first.get_by_text("link was damaged")).to_have_count(0)
    sliders = views.sliders(first)
    shown = {key: [said.replace(",", "") for said in sliders[key]] for key in sliders if key in asked}
    assert shown == {key: asked[key] for key in asked if key in sliders}
    FIRST.get((name, place), lambda page: None)(first)
    if asked != given:
        other = ready(look(first.url.removeprefix(filled.server.url)))
        assert views.controls(other) == drawn
        pictures, again = views.pictures_of_both(first, other)
        assert again == pictures
        assert link(other) == asked


def choose(page, key, option):
    """Another option of a select box, by its keys."""
    box = page.locator(f".st-key-{key}").get_by_role("combobox")
    box.click()
    box.fill(option)
    box.press("Enter")


def test_a_control_that_gave_way_to_another_model_stays_in_the_link(glance, calm):
    page = ready(glance("/compare?hidden_size=512&depth=4"))
    choose(page, "model", "Linear")
    expect(page.locator(".st-key-hidden_size")).to_have_count(0)
    ready(page)
    expect(page).to_have_url(re.compile("kept=depth"))
    expect_link(page, {"model": ["linear"], "kept": ["hidden_size:512", "depth:4"]}, whole=True)
    other = ready(glance(page.url.removeprefix(calm.url)))
    expect_link(other, {"model": ["linear"], "hidden_size": ["512"], "depth": ["4"]}, whole=True)
    for back in (page, other):
        choose(back, "model", "Fully connected")
        slider = back.locator(".st-key-hidden_size").get_by_role("slider")
        expect(slider).to_have_attribute("aria-valuetext", "512")
        expect(back.locator(".st-key-depth").get_by_role("slider")).to_have_attribute("aria-valuetext", "4")
        expect_link(ready(back), {"model": ["mlp"], "hidden_size": ["512"], "depth": ["4"]}, whole=True)


def test_what_was_set_to_its_default_stays_in_the_link_and_what_nobody_set_is_not_there(glance):
    page = ready(glance("/compare?model=mlp"))
    slider = page.locator(".st-key-depth").get_by_role("slider")
    slider.press("ArrowRight")
    expect(page).to_have_url(re.compile("depth=3"))
    ready(page)
    slider.press("ArrowLeft")
    expect(page).to_have_url(re.compile("depth=2"))
    expect_link(ready(page), {"model": ["mlp"], "depth": ["2"]}, whole=True)


def test_a_locked_control_cannot_be_moved_and_hidden_ones_are_out_of_sight(glance):
    page = ready(glance("/compare?depth=4&epochs=7&lock=depth&hide=epochs,seed&text=Set+the+*hidden*+size"))
    expect(page.get_by_text("Set the *hidden* size")).to_be_visible()
    expect(page.locator(".st-key-depth").get_by_role("slider")).to_be_disabled()
    expect(page.locator(".st-key-epochs")).to_be_hidden()
    expect_link(page, {"epochs": ["7"]})


def test_the_share_button_gives_the_link_and_makes_one_for_a_class(glance, calm):
    page = ready(glance("/compare?depth=4"))
    page.locator(".st-key-hidden_size").get_by_role("slider").press("ArrowRight")
    expect(page).to_have_url(re.compile("hidden_size=256"))
    ready(page)
    page.get_by_role("button", name="Share").click()
    shared = page.get_by_test_id("stPopoverBody")
    expect(shared.get_by_test_id("stCode")).to_contain_text("hidden_size=256&depth=4")
    shared.get_by_text("Make a link for a class").click()
    shared.get_by_label("Task, in your own words").fill("Find where it turns")
    shared.get_by_label("Task, in your own words").press("Control+Enter")
    code = shared.get_by_test_id("stCode").last
    expect(code).to_contain_text("text=Find")
    shared.get_by_text("Fix the settings").click()
    expect(code).to_contain_text("lock=all")
    expect(code).to_contain_text("text=Find")
    other = ready(glance(code.inner_text().strip().removeprefix(calm.url)))
    expect(other.get_by_text("Find where it turns")).to_be_visible()
    expect(other.locator(".st-key-depth").get_by_role("slider")).to_have_attribute("aria-valuetext", "4")
    expect(other.locator(".st-key-depth").get_by_role("slider")).to_be_disabled()
