"""Small files, JSON, TOML or SQLite, that somebody changed: of jobs, the measuring process, classes, the host.

Each is read by all that read it, now and then by a page, and then the app goes on: jobs are asked for, claimed, stopped
and settled, students join and expect. What was there stays, but for what the app says it does with a damaged file.
"""

import contextlib
import functools
import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from core.classroom import classes
from core.classroom.database import Database
from core.errors import CrossoverError
from pages.shared import server
from tests import rows
from tests.fuzz import entries, mutations, shown, worlds
from tests.fuzz.campaign import Fuzzer, Given, Subject
from tests.fuzz.watching import Fault, Gauge
from tests.fuzz.worlds import Inhabited

TOTAL = 2_000
"""Cases of each kind."""

SEEN = 0.05
"""Share of the cases that a page is drawn of."""

NO_FILE = 0.06
"""Share of the cases in which something that is no file lies in its place."""


IN_A_CELL = 0.5
"""Share of changed databases in which one cell is another; in the others, bytes of the file are."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of file.

    Attributes:
        name: of the fuzzer.
        places: where such files are, as `Inhabited.path` takes them; the first is taken when nobody changed it.
        look: reads it by all that read it; whether it was taken for what it is.
        views: pages that show something of it.
        act: lets the app go on.
        may_change: what may be replaced when it is looked at, as the app says.
        total: cases of a whole run.
        seen: share of the cases that a page is drawn of.
    """

    name: str
    places: tuple[str, ...]
    look: Callable[[Inhabited, str], bool]
    views: tuple[str, ...]
    act: Callable[[Inhabited, Random], None]
    may_change: Callable[[str], tuple[str, ...]] = lambda place: ()
    total: int = TOTAL
    seen: float = SEEN


class Files:
    """Files of one kind in an app with something of everything."""

    def __init__(self, world: Inhabited, kind: Kind) -> None:
        self.world, self.kind = world, kind

    def good(self) -> Given:
        """A file as the app wrote it."""
        place = self.kind.places[0]
        return Given(place=place, what=place, data=self._content(place), suffix=Path(place).suffix)

    def make(self, draw: Random) -> Given:
        """A changed file, or something else in its place."""
        place = draw.choice(self.kind.places)
        if draw.random() < NO_FILE:
            entry = draw.choice(list(entries.ENTRIES))
            return Given(place=place, entry=entry, what=f"{entry} in the place of {place}", data=b"")
        data = _changed(draw, self._content(place), Path(place).suffix)
        return Given(place=place, what=f"a changed {place}", data=data, suffix=Path(place).suffix)

    def take(self, given: Given, draw: Random, gauge: Gauge) -> bool:
        """Put it there, read it, draw a page of it now and then, and go on."""
        world, path = self.world, self.world.path(given.place)
        world.restore()
        _put(world.folder / path, given)
        left = entries.content(world.folder / path)
        over = _is_over(world)
        with gauge.part("reading"):
            taken = self.kind.look(world, given.place)
        if draw.random() < self.kind.seen or not (given.entry or given.what.startswith("a changed")):
            name = draw.choice(self.kind.views)
            shown.opened(world.views(name), gauge, f"page {name}")
            with gauge.part("health"):
                server.state_of_server()
        _require_kept(world, {path: left}, self._may_change(given.place), over=over)
        with gauge.part("going on"):
            self.kind.act(world, draw)
        _require_others(world, path, over=over)
        return taken

    def _may_change(self, place: str) -> set[str]:
        return {self.world.path(name) for name in self.kind.may_change(place)}

    def _content(self, place: str) -> bytes:
        return self.world.before[self.world.path(place)].removeprefix(entries.FILE)


def _put(path: Path, given: Given) -> None:
    if given.entry:
        entries.put(given.entry, path)
    else:
        path.write_bytes(given.data)


def _changed(draw: Random, content: bytes, suffix: str) -> bytes:
    match suffix:
        case ".json":
            return mutations.content_of(draw, content, mutations.as_json, json.loads(content))
        case ".sqlite3" if draw.random() < IN_A_CELL:
            return mutations.cell(draw, content)
        case ".toml":
            return mutations.content_of(draw, content, mutations.as_toml, tomllib.loads(content.decode()))
    return mutations.octets(draw, content)


# What must be there afterwards


def _require_kept(world: Inhabited, put: dict[str, bytes], may_change: set[str], *, over: bool) -> None:
    """Find out whether looking has left everything as it was; raises Fault."""
    gone, changed = world.changes()
    changed = (changed - put.keys()) | {path for path in put if put[path] != entries.content(world.folder / path)}
    aside = {path for path in put if put[path] == entries.content((world.folder / path).with_suffix(".damaged"))}
    gone, changed = gone - aside, changed - aside
    if over:
        gone = {path for path in gone if not path.startswith(world.path("classes/{of}"))}
    rescued = {path for path in gone if path.endswith("partial.parquet")}
    if rescued and _partial_is_stored(world):
        gone -= rescued
    if gone or changed - may_change:
        raise Fault(f"looking removed {sorted(gone)} and changed {sorted(changed - may_change)}")


def _require_others(world: Inhabited, path: str, *, over: bool) -> None:
    """Find out whether nothing is gone that no act of the app takes away; raises Fault."""
    gone, changed = world.changes()
    kept = ("results/", world.path("jobs/{ended}/request"), "crossover.toml")
    lost = {name for name in gone | changed if name.startswith(kept) and name != path}
    measured = {Path(name).name for name in world.before if name.startswith(world.path("{ada}/results"))}
    if not over:  # rows may have gone to another student, who was put together with theirs
        lost |= {name for name in measured - {Path(name).name for name in world.now()} if name.endswith(".parquet")}
    if lost:
        raise Fault(f"going on removed or changed {sorted(lost)}")


def _partial_is_stored(world: Inhabited) -> bool:
    """Whether the store has what a measurement had kept of itself."""
    wanted = {row.trial_id for row in rows.run(run_id=world.running.derive_run_id(world.running.question), pairs=4)}
    return wanted <= {row.trial_id for row in world.app.store.trials()}


def _is_over(world: Inhabited) -> bool:
    """Whether the class says, in a file that can be read, that its time is over: then it may be dropped."""
    with contextlib.suppress(CrossoverError), Database(world.classes.folder).read() as connection:
        of = classes._find_class(connection, world.of.id)
        return of is not None and of.expired
    return False


class _Any:
    """Files of any kind, in one and the same app."""

    def __init__(self, subjects: Sequence[Files]) -> None:
        self._by_place = {place: subject for subject in reversed(subjects) for place in subject.kind.places}
        self._subjects = subjects

    def good(self) -> Given:
        return self._subjects[0].good()

    def make(self, draw: Random) -> Given:
        return draw.choice(self._subjects).make(draw)

    def take(self, given: Given, draw: Random, gauge: Gauge) -> bool:
        return self._by_place[given.place].take(given, draw, gauge)


def fuzzer(kind: Kind) -> Fuzzer:
    """The fuzzer of one kind."""
    named = dict.fromkeys(Path(place).name for place in kind.places)
    return Fuzzer(name=kind.name, about=", ".join(named), total=kind.total, opened=functools.partial(_opened, kind))


def any_of(kinds: Sequence[Kind]) -> Fuzzer:
    """A fuzzer of several kinds: for the suite, where an app for each would take longer than the cases."""
    return Fuzzer(name="files", about="any", total=TOTAL, opened=functools.partial(_opened_for_all, kinds))


@contextlib.contextmanager
def _opened(kind: Kind, folder: Path) -> Iterator[Subject]:
    with worlds.inhabited(folder) as world:
        yield Files(world, kind)


@contextlib.contextmanager
def _opened_for_all(kinds: Sequence[Kind], folder: Path) -> Iterator[Subject]:
    with worlds.inhabited(folder) as world:
        yield _Any([Files(world, kind) for kind in kinds])
