"""Links that somebody changed, made up or put together, through every page: each is drawn, and writes nothing."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from core.question import catalog, models
from core.question.experiment import Contender, Experiment, Point
from core.question.fields import AXES, SIZE_AXES
from core.question.presets import PRESETS
from core.question.sweep import Axis, Sweep
from pages.shared import layout, links, queries
from tests import rows
from tests.fuzz import mutations, oddities, shown, worlds
from tests.fuzz.campaign import Fuzzer, Given, Subject
from tests.fuzz.shown import View
from tests.fuzz.watching import Fault, Gauge
from tests.fuzz.worlds import Inhabited

FILES: Mapping[links.PageName, str] = {
    "explore": layout.EXPLORE,
    "devices": layout.DEVICES,
    "tutorials": layout.TUTORIALS,
    "lessons": layout.LESSONS,
    "cases": layout.CASES,
    "class": layout.CLASS,
    "gallery": layout.GALLERY,
}

SWITCHES = ("true", "false")
VARIED = Sweep(
    point=Point(dataset="fashion-mnist", model="cnn", width=2, depth=2, batch_size=256),
    axes=(Axis(name="width", values=(1, 2, 4)), Axis(name="batch_size", values=(64, 256))),
    contenders=(Contender(threads=1), Contender(), Contender(device="cuda:0")),
)
EXPERIMENTS = (
    rows.EXPERIMENT,
    Experiment(point=Point(dataset="disc", model="doubling-mlp", depth=4, batch_size=100)),
    Experiment(point=Point(dataset="mnist", data_path="loader", loader_workers=2), budget_s=90.0),
)

Parameters = dict[str, list[str]]

_MOST = 100


class Links:
    """Every page of an app with something of everything."""

    def __init__(self, world: Inhabited) -> None:
        self.world = world
        self.known = _known(world)

    def good(self) -> Given:
        """A link as the app makes it."""
        link = {name: _listed(value) for name, value in links.make_run_link(rows.EXPERIMENT).items()}
        return _given("explore", {**link, "run": [worlds.OTHER_RUN]})

    def make(self, draw: Random) -> Given:
        """A link of anybody."""
        page = draw.choice(list(FILES))
        names = [*links.PAGES[page].parameters, "preset", "me"]
        count = min(draw.choice((1, 2, 3, 6, 12, len(names))), len(names))
        link = {self._name(draw, name): self._values(draw, name) for name in draw.sample(names, count)}
        if draw.random() < 0.02:
            link |= {f"parameter{number}": ["1"] for number in range(draw.choice((90, 101, 900)))}
        return _given(page, link)

    def take(self, given: Given, draw: Random, gauge: Gauge) -> bool:
        """Open it, and look at the page once more."""
        asked = json.loads(given.data)
        link: dict[str, Any] = {
            name: values if len(values) > 1 else values[0] for name, values in asked["link"].items()
        }
        view = View(page=FILES[asked["page"]], link=link)
        app = shown.opened(view, gauge, f"page {asked['page']}")
        if draw.random() < 0.2:
            shown.drawn_again(app, gauge, f"page {asked['page']} again")
        gone, changed = self.world.changes()
        if gone or changed:
            raise Fault(f"the link removed {sorted(gone)} and changed {sorted(changed)}")
        return not app.warning and not app.error

    def _name(self, draw: Random, name: str) -> str:
        if draw.random() < 0.95:
            return name
        return _whole(draw.choice((name.upper(), f"{name} ", "__class__", "embed", *oddities.KEYS))) or "x"

    def _values(self, draw: Random, name: str) -> list[str]:
        """What a parameter says."""
        count = draw.choice((1, 1, 1, 1, 2, 5, draw.choice((2, 199, 300))))
        values = [self._value(draw, name) for _ in range(min(count, 3))]
        return [_whole(text) for text in values * (count // len(values))]

    def _value(self, draw: Random, name: str) -> str:
        known = self.known.get(name) or SWITCHES
        own = draw.choice(known)
        match draw.choice(("own", "own", "own", "own", "another's", "nearly", "nearly", "odd", "many")):
            case "own":
                return own
            case "another's":
                return draw.choice(self.known[draw.choice(list(self.known))])
            case "nearly":
                other = mutations.octets(draw, own.encode()).decode(errors="replace")
                return draw.choice((other, _near(draw, own)))
            case "many":
                return ",".join(draw.choice(known) for _ in range(draw.choice((2, 5, _MOST))))
        return draw.choice(oddities.TEXTS)


def _whole(text: str) -> str:
    """Text as a link can hold it: halves of letters are replaced on their way."""
    return text.encode(errors="replace").decode()


def _near(draw: Random, text: str) -> str:
    near = (text.upper(), f" {text}", f"{text}\n", f"-{text}", f"{text}.0", f"{text}e9", f"{text}{text}", text[:-1])
    return draw.choice((*near, f"{text},{text}", f"{text}:{text}", f"{text}+{text}", f"{text}@{text}", f"0{text}"))


def _given(page: str, link: Parameters) -> Given:
    data = json.dumps({"page": page, "link": link}).encode()
    return Given(data=data, what=f"a link to {page} with {', '.join(link)}"[:200])


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _known(world: Inhabited) -> dict[str, list[str]]:
    """What is right for each parameter, as far as it can be known."""
    found: dict[str, list[str]] = {}
    made = [links.make_run_link(asked) for asked in EXPERIMENTS]
    made += [
        links.make_sweep_link(asked)
        for asked in (worlds.ASKED, VARIED, dataclasses.replace(worlds.ASKED, adaptive=True))
    ]
    for link in made:
        for name, value in link.items():
            found.setdefault(name, []).extend(_listed(value))
    studies = [line.id for line in queries.list_study_lines()]
    fixed = {
        "dataset": list(catalog.DATASETS),
        "model": list(models.FAMILIES),
        "lanes": ["compiled10", "bf16", "fused+kept", "graph10", "channels_last"],
        "recorded": [rows.MACHINE_ID, "NVIDIA Test GPU"],
        "axis": list(SIZE_AXES),
        "also": list(AXES),
        **{links.VALUES.format(axis=axis): ["8", "64", "128"] for axis in AXES},
        **{links.RANGE.format(axis=axis): ["8", "64", "4096"] for axis in SIZE_AXES},
        "job": [job.id for job in world.all_jobs],
        "run": [worlds.OTHER_RUN, world.ended.derive_run_id(world.ended.question)],
        "study": studies,
        "sweep": [worlds.ASKED.id],
        links.BESIDE: [*studies, worlds.OTHER_RUN],
        "basis": ["steady", "with_transfer", "cold_start"],
        "view": ["Studies", "Trials", "Machines"],
        "size": ["16", "64", "256"],
        "studies_page": ["1", "2"],
        "trials_page": ["1", "2"],
        "in_kind": ["cpu", "cuda"],
        "in_dataset": ["digits"],
        "in_trust": ["full", "partly", "weak"],
        "class": [world.of.code, world.other.code, world.of.code.lower()],
        "me": [world.me, f"{world.bob.id}.{world.token}"],
        "lesson": list(links.LESSON_TITLES),
        "tutorial": list(PRESETS),
        "preset": list(PRESETS),
        "scale": ["class", "full"],
        "data": ["digits", "mnist"],
        "seeds": ["2", "5"],
        "margin": ["0.25", "1.0"],
        "predict_clock": ["too little"],
        "shown": [*links.LESSON_TITLES, *PRESETS],
        "lock": ["all", "-hidden_size", "depth"],
        "hide": ["depth", "batch_size"],
        "text": ["Set the hidden size, then press Run.", *oddities.TEXTS[:6]],
        links.KEPT_VALUES: ["depth:5", "devices:cpu", "hidden_size:64", "width:2"],
    }
    return {name: values for name, values in {**found, **fixed}.items() if values}


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[Subject]:
    with worlds.inhabited(folder) as world:
        yield Links(world)


FUZZER = Fuzzer(name="links", about="parameters of every page", total=2_000, opened=_opened)
