"""Links of version 0.1.0, of every page, open as they did: every control, every chart, and no fault that was none."""

import datetime
import json

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from core.classroom import classes
from core.files.project import PROJECT
from core.jobs import process
from core.jobs.machine import Serving
from pages.shared import layout, links
from tests.earlier_files import LINKS, lay_out
from tests.ui.conftest import CPU, GPU, TIMEOUT_S, checked

KINDS = ("selectbox", "select_slider", "slider", "multiselect", "radio", "toggle", "checkbox", "number_input")
KINDS += ("text_input",)
FOLDERS = {"class": "classroom"}
EXPLORE = "explore"
SAID_SINCE = ("**There is no single crossover", "These filters of the link match nothing here")
"""What is a box by now that warns: an answer that is no good news, and a filter that nothing here has."""
OPENED = {"job", "run", "study"}
"""What a link opens that was asked for."""
THEN = datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)


@pytest.fixture
def earlier(world, tmp_path, monkeypatch):
    monkeypatch.setattr(classes, "read_clock", lambda: THEN)
    monkeypatch.setenv("CROSSOVER_CLASSES", str(tmp_path / "classes"))
    lay_out(tmp_path)
    world.queue.worker_file.take(Serving(process=process.current_process(), ready=True))  # else a page starts one
    world.has(CPU, GPU)


def seen(app, controls):
    """What was written down of a page, as JSON has it."""
    widgets = (widget for kind in KINDS for widget in getattr(app, kind) if widget.key in controls)
    link = {name: value if isinstance(value, list) else [value] for name, value in dict(app.query_params).items()}
    shown = {
        "controls": {widget.key: widget.value for widget in widgets},
        "becomes": link,
        "charts": len(app.get("vega_lite_chart")),
        "faults": [fault.value for fault in (*app.error, *app.warning)],
    }
    return json.loads(json.dumps(shown, default=str))


@pytest.mark.parametrize("page", list(dict.fromkeys(entry["page"] for entry in LINKS)))
def test_every_link_opens_as_it_did(earlier, open_page, page):
    settings = set(links.PAGES[EXPLORE if page in layout.FORMER else page].settings) - {"recorded"}
    address = f"/{page}" if page in layout.FORMER else f"pages/{FOLDERS.get(page, page)}/{page}.py"
    for entry in LINKS:
        if entry["page"] == page:
            app = open_page(address, **entry["link"])
            now, before = seen(app, entry["controls"]), {name: entry[name] for name in seen(app, ())}
            for side in (now, before):
                side["faults"] = [fault for fault in side["faults"] if not fault.startswith(SAID_SINCE)]
            for side in (now, before):  # the figures behind a colon are those of an estimator that has changed since
                side["faults"] = [fault.partition(":")[0] for fault in side["faults"]]
            assert now.pop("charts") >= before.pop("charts"), entry["link"]  # more may be shown, none less
            link, said = now.pop("becomes"), before.pop("becomes")
            link.pop("sizes", None)
            if not set(entry["link"]) & settings and entry["link"].keys() & OPENED:
                now["controls"] = before["controls"] = {}  # since then they take over what such a link opens
                said, link = [{name: of[name] for name in of if name not in settings} for of in (said, link)]
            assert now == before, entry["link"]
            unknown = set(link) - set(
                said
            )  # a filter that nothing here has, and what is usual, stay where a link says it
            assert "preset" in entry["link"] or unknown <= set(entry["link"]), entry["link"]
            assert {name: link[name] for name in set(link) - unknown} == {
                name: said[name] for name in set(link) - unknown
            }, entry["link"]
            assert set(said) - set(link) <= set(now["controls"])  # what a control stands at by itself need not be said


@pytest.mark.parametrize("address", layout.FORMER)
def test_an_address_of_before_leads_to_explore_with_all_that_its_link_says(earlier, monkeypatch, address):
    monkeypatch.chdir(PROJECT)
    entries = [entry for entry in LINKS if entry["page"] == address]
    assert entries
    for entry in entries:
        link = entry["link"]
        app = AppTest.from_file(str(PROJECT / "streamlit_app.py"), default_timeout=TIMEOUT_S)
        app._page_hash = calc_hash(address)
        for name, value in link.items():
            app.query_params[name] = value
        led = checked(app.run())
        assert led.title[0].value == "Explore"
        said = {name: value if isinstance(value, list) else [value] for name, value in dict(led.query_params).items()}
        opened = {name for name in link if name in links.PATTERNS}
        assert bool(opened) == bool(said.keys() & links.PATTERNS.keys()), "a job that has ended gives way to its run"
        assert said.get("sizes", ["one"]) == [layout.FORMER[address].get("sizes", "one")] or opened
        assert set(entry["becomes"]) & set(links.PAGES["explore"].settings) & set(link) <= set(said), link
