"""Exhibits that somebody changed, in the folder of a store: each is skipped with its name and reason, or shown."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from core.answer.charts import lesson_charts
from core.answer.export import sections
from core.results import exhibits
from core.results.exhibits import Clock, Exhibit
from pages.shared import layout
from tests import exhibited
from tests.fuzz import entries, mutations, shown, worlds
from tests.fuzz.campaign import Fuzzer, Given, Subject
from tests.fuzz.shown import View
from tests.fuzz.timings import require_harmless
from tests.fuzz.watching import Fault, Gauge, require_sentence
from tests.fuzz.worlds import Inhabited

NAME = "0-changed.json"
DRAWN, SEEN, NO_FILE = 0.05, 0.03, 0.04
"""Shares of the cases: of which a chart is drawn, and the pages; and in which something lies there that is no file."""

LESSONS = {"clock": "too little", "moving": "", "learning": ""}


class Exhibits:
    """A store with an exhibit that nobody changed, and another."""

    def __init__(self, world: Inhabited) -> None:
        self.world = world
        self.store = world.app.store.folder
        asked = (exhibited.CLOCK, exhibited.MOVING, exhibited.FIRST_STEP)
        self.sources = [exhibited.exhibit(kind, id=f"{number:012x}").to_json() for number, kind in enumerate(asked)]
        self.kept = exhibits.read_exhibits(self.store)[0]

    def good(self) -> Given:
        """One that nobody changed."""
        return Given(data=json.dumps(self.sources[0]).encode(), what="an exhibit")

    def make(self, draw: Random) -> Given:
        """One of any kind, changed."""
        if draw.random() < NO_FILE:
            entry = draw.choice(list(entries.ENTRIES))
            return Given(data=b"", entry=entry, what=f"{entry} in the place of an exhibit")
        source = json.loads(json.dumps(draw.choice(self.sources)))
        content = json.dumps(source).encode()
        return Given(data=mutations.content_of(draw, content, mutations.as_json, source), what="a changed exhibit")

    def take(self, given: Given, draw: Random, gauge: Gauge) -> bool:
        """Put it beside the other, read both, and show them."""
        path = self.store / exhibits.EXHIBITS_FOLDER / NAME
        entries.remove(path)
        if given.entry:
            entries.put(given.entry, path)
        else:
            path.write_bytes(given.data)
        left = entries.content(path)
        with gauge.part("reading"):
            found, skipped = exhibits.read_exhibits(self.store)
        if not {entry.id for entry in self.kept} <= {entry.id for entry in found}:
            raise Fault("the exhibit beside it is not read any more")
        for entry in skipped:
            require_sentence(entry.reason)
        mine = next((entry for entry in found if entry not in self.kept), None)
        if mine:
            self._show(mine, draw, gauge)
        if draw.random() < SEEN:
            for lesson, expected in LESSONS.items():
                link = {"lesson": lesson, "shown": lesson} | ({f"predict_{lesson}": expected} if expected else {})
                shown.opened(View(page=layout.LESSONS, link=link), gauge, f"lesson {lesson}")
            shown.opened(self.world.views("tutorials"), gauge, "page tutorials")
        gone, changed = self.world.changes()
        if gone or changed or entries.content(path) != left:
            raise Fault(f"reading removed {sorted(gone)} and changed {sorted(changed)}")
        return mine is not None

    def _show(self, mine: Exhibit, draw: Random, gauge: Gauge) -> None:
        with gauge.part("showing"):
            if not sections.exhibit_text(mine):
                raise Fault("an exhibit that says nothing")
        if isinstance(mine.content, Clock) and draw.random() < DRAWN:
            with gauge.part("drawing"):
                require_harmless(lesson_charts.clocks_chart(mine.content, {}))


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[Subject]:
    with worlds.inhabited(folder) as world:
        yield Exhibits(world)


FUZZER = Fuzzer(name="exhibits", about="exhibits of lessons", total=4_000, opened=_opened)
