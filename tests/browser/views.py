"""What a page shows, as data: every control by its key, folded parts, charts, tables and headings."""

import dataclasses
import time
from unittest.mock import patch
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from core.answer.gallery import overview
from core.classroom import students as codes
from core.classroom.classes import Prediction
from core.classroom.question import CHALLENGER
from core.question.experiment import Contender, Point
from core.question.sweep import Axis, Sweep
from core.results import environment, exhibits
from core.results.parquet import to_table
from pages.shared import links
from pages.shared.controls import DEVICE_SEARCH
from tests import exhibited, rows, students
from tests.browser.conftest import DEADLINE_S, settled
from tests.students import QUESTION, hand_in
from tests.studies import OTHER_MACHINE, measured, stored, sweep

CONTROLS = """
() => {
    const shown = {};
    const kinds = 'input, textarea, [role=slider], [role=radio], [role=switch], [data-tag], summary';
    for (const box of document.querySelectorAll('[class*="st-key-"]')) {
        const name = [...box.classList].find(word => word.startsWith('st-key-')).slice('st-key-'.length);
        const said = [];
        for (const part of box.querySelectorAll(kinds)) {
            if (part.closest('[class*="st-key-"]') !== box && part.tagName !== 'SUMMARY') continue;
            if (part.closest('template')) continue;
            if (part.tagName === 'SUMMARY') {
                if (part.closest('[class*="st-key-"]') === box) said.push(part.parentElement.open);
            } else if (part.type === 'checkbox' || part.type === 'radio') said.push([part.value, part.checked]);
            else if (part.getAttribute('role') === 'radio') said.push([part.innerText, part.ariaChecked]);
            else if (part.getAttribute('role') === 'slider') said.push(part.ariaValueText || part.ariaValueNow);
            else said.push(part.value ?? part.innerText);
        }
        if (said.length) shown[name] = said;
    }
    return shown;
}
"""

FOCUSED = """
() => {
    const part = document.activeElement;
    const box = part.closest('[class*="st-key-"]');
    const key = box && [...box.classList].find(word => word.startsWith('st-key-')).slice('st-key-'.length);
    return {key, text: part.innerText, body: part === document.body};
}
"""

SLIDERS = """
() => Object.fromEntries([...document.querySelectorAll('[class*="st-key-"]')].flatMap(box => {
    const sliders = [...box.querySelectorAll('[role=slider]')].filter(one => one.closest('[class*="st-key-"]') === box);
    const name = [...box.classList].find(word => word.startsWith('st-key-')).slice('st-key-'.length);
    return sliders.length ? [[name, sliders.map(one => one.ariaValueText || one.ariaValueNow)]] : [];
}))
"""

PICTURES = """
() => {
    const all = (selector) => [...document.querySelectorAll(selector)];
    const marks = (chart) => [...chart.querySelectorAll('path, text')].map(
        mark => (mark.getAttribute('d') || mark.textContent) + (mark.getAttribute('fill') || ''));
    return {
        headings: all('h1, h2, h3, h4').map(heading => heading.innerText),
        charts: all('[data-testid=stVegaLiteChart]').map(
            chart => chart.checkVisibility() ? [chart.ariaLabel, marks(chart)] : 'folded'),
        tables: all('[data-testid=stDataFrame], [data-testid=stTable]').map(table => table.ariaLabel),
    };
}
"""

NOT_IN_LINKS = ("student", "answer_", "timings_", "import_", "share", "unfold", "price_")
"""Beginnings of the keys of what is nobody else's business or no view: names, answers, files, links, folds, prices."""

TABLES = {"studies", "gallery_rows", "learn_run", "stop", "watch"}
"""Keys of what has no state of its own to restore: tables whose selection is another parameter, and buttons."""

SHOWN = {
    "front": "/",
    "compare": "/compare",
    "compare-run": f"/compare?run={rows.RUN_ID}",
    "crossover": "/crossover",
    "crossover-study": "/crossover?axis=depth&more=true&study={study}",
    "devices": "/devices",
    "tutorials": "/tutorials?tutorial=signal&predict_signal=at+no+hidden+size&shown=signal",
    "lessons": "/lessons?lesson=clock&predict_clock=too+little&shown=clock",
    "cases": "/cases?symptom=idle&kind=images",
    "cases-one": "/cases?case=many-threads",
    "compare-race": f"/compare?run={rows.RUN_ID}&race=true",
    "tutorials-before": "/tutorials?tutorial=signal",
    "tutorials-files": "/tutorials?tutorial=fashion-cnn",
    "lessons-before": "/lessons?lesson=clock",
    "class": "/class",
    "class-projector": "/class?class={class}&view=projector",
    "class-revealed": "/class?class={revealed}&view=projector",
    "class-student": "/class?class={class}&me={me}",
    "gallery": "/gallery",
    "gallery-run": f"/gallery?run={rows.RUN_ID}",
    "gallery-machines": "/gallery?study={machines}&speedup=true",
    "gallery-published": "/gallery?view=Published",
    "class-teacher": "/class?class={class}&teacher=true",
    "guided": "/compare?preset=signal&lock=all,-hidden_size&text=Set+the+hidden+size,+then+press+Run.",
}
"""What every page looks like in daily use, by name."""

ELSEWHERE = "beefbeefbeef"


GRID = Sweep(
    point=Point(dataset="signal"),
    axes=(Axis(name="hidden_size", values=(16, 32, 64, 128, 256)), Axis(name="batch_size", values=(16, 100))),
    contenders=(Contender(threads=1), Contender()),
)
"""A grid over two axes, of which one looks at a slice."""


def grid(server):
    """The grid as measured on this machine; the link of its other slice."""
    here = environment.read_environment()
    facts = {"machine_id": here.machine_id, "torch_version": here.torch_version, "device_name": here.cpu_name}
    for place, point in enumerate(GRID.points):
        for contender, step_s in ((GRID.contenders[0], 1e-6 * point.hidden_size), (GRID.contenders[1], 5e-5)):
            row = rows.trial(
                run_id=f"abc{place:09x}",
                contender=str(contender),
                experiment=GRID.experiment(point),
                step_s=step_s,
                outcome="timed",
                pairs=GRID.pairs,
                **facts,
            )
            server.store.add(row)
    sliced = f"{GRID.contenders[1]} against {GRID.contenders[0]} · batch size 100"
    return urlencode({**links.make_sweep_link(GRID), "sweep": GRID.id, "slice": sliced}, doseq=True)


def fill(server):
    """Give a server something to show on every page; what links call its study, another, its machine and its GPU."""
    study = stored(server)
    for row in rows.run():
        server.store.add(row)
    for row in measured("signal", machine_id=ELSEWHERE):  # as runs of their own
        server.store.add(dataclasses.replace(row, run_id=f"e{row.run_id[1:]}", trial_id=f"e{row.trial_id[1:]}"))
    on_two_machines = sweep("b"), sweep("d", **OTHER_MACHINE)
    for row in (row for each in on_two_machines for run in each.runs for row in run):
        server.store.add(row)
    exhibits.add_exhibit(server.store.folder, exhibited.clock({"ours": 1.0, "no_drain": 0.2}, machine_id=ELSEWHERE))
    row = rows.trial()
    of, _ = server.classes.create("Physics 7b", QUESTION)
    for nickname, place in (("Ada", 100), ("Emmy", 10)):
        hand_in(server.classes, of, nickname, place=place)
    student, token = server.classes.join(of, "Grete")
    server.classes.predict(of, student, Prediction(winner=CHALLENGER, place=100))
    with patch.object(codes, "_random", lambda length: "W" * length):  # the widest code
        revealed, _ = server.classes.create("Physics 8c", QUESTION)
    for nickname, size in zip(("Ada", "Emmy", "Grete", "Lise", "Marie"), QUESTION.places, strict=True):
        one, _ = server.classes.join(revealed, nickname)
        server.classes.predict(revealed, one, Prediction(winner=CHALLENGER, place=size))
        dealt = [row for row in students.measured(200.0) if row.hidden_size == size]
        server.classes.store(revealed, one).add_all(to_table(dealt))
    server.classes.reveal(revealed, revealed=True)
    others = overview.find_study_lines(overview.load_overview([(server.store, "measured here")]).table)
    return {
        "study": study,
        "machines": on_two_machines[0].id,
        "other": next(line.id for line in others if line.id != study),
        "grid": grid(server),
        "class": of.code,
        "revealed": revealed.code,
        "me": f"{student.id}.{token}",
        "machine": quote_plus(f"{row.cpu_name} ({row.machine_id[:6]})"),
        "accelerator": quote_plus(f"NVIDIA Test GPU ({row.machine_id[:6]})"),
    }


KNOWN = ".st-key-devices, .st-key-contenders, .st-key-view, h2:has-text('Measuring process'), "
KNOWN += ".st-key-symptom, .st-key-close, .stForm:has-text('Join code'), :text('Join code'), [data-testid=stMetric]"
"""What a page shows only once it knows the machine, or what is stored."""


def ready(page):
    """The page once everything is drawn that it is going to show by itself."""
    expect(page.locator(KNOWN).first).to_be_attached()
    expect(page.locator("[data-testid=stVegaLiteChart]:not(:has(svg.marks, canvas.marks)):visible")).to_have_count(0)
    settled(page)
    expect(page.locator(f".st-key-{DEVICE_SEARCH}")).to_have_count(0)  # a part further down may still ask for devices
    return settled(page)


def controls(page):
    """By key, what each control that is drawn stands at."""
    return {name: said for name, said in page.evaluate(CONTROLS).items() if not name.startswith(NOT_IN_LINKS)}


def sliders(page):
    """By key, the values that a slider shows: one, or the ends of a range."""
    return page.evaluate(SLIDERS)


def pictures(page):
    """Headings, charts with their marks, and tables."""
    return page.evaluate(PICTURES)


def pictures_of_both(page, other):
    """Those of two pages, once they are alike: what is still drawn to its width is waited for, at most so long."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        first, second = pictures(page), pictures(other)
        if first == second or time.monotonic() > deadline:
            return first, second
        time.sleep(0.1)


def link(page):
    """The parameters of the address."""
    return parameters(page.url)


def expect_link(page, wanted, *, whole=False):
    """Wait until the address has these parameters; a page writes it at the end of a run, after what is seen.

    Args:
        page: the page.
        wanted: by parameter, the list of its values, or None for one that must not be there.
        whole: whether the address must have no others.
    """
    deadline = time.monotonic() + DEADLINE_S
    while {name: link(page).get(name) for name in (link(page) if whole else wanted)} != wanted:
        assert time.monotonic() < deadline, f"the address has {link(page)}, not {wanted}"
        page.wait_for_timeout(50)


def parameters(url):
    """Those of any address."""
    return parse_qs(urlsplit(url).query)


def names(page_name):
    """Every control of a page's link."""
    of = links.PAGES[page_name]
    return {*of.settings, *of.views}


def select_first_row(page, key):
    """Tick the first row of a table, once it is drawn and nothing above it moves it any more."""
    table = page.locator(f".st-key-{key}").get_by_test_id("stDataFrame")
    expect(table.locator("[role=gridcell]").first).to_be_attached()  # what the drawing tells who does not see it
    table.click(position={"x": 15, "y": 52})


def by_keyboard(page, wanted, most):
    """Press the tab key until what has the focus ends with a text, and Enter on every way to skip something."""
    for _ in range(most):
        page.keyboard.press("Tab")
        text = (page.evaluate(FOCUSED)["text"] or "").strip()
        if text.endswith(wanted):
            return
        if text.startswith("Skip"):
            page.keyboard.press("Enter")
            if (page.evaluate(FOCUSED)["text"] or "").strip().endswith(wanted):
                return
    pytest.fail(f"{wanted} was not reached")
