"""Small files of ours, JSON or TOML, that somebody changed: of jobs, of the measuring process, of classes, of the host.

Each is read by all that read it, now and then by a page, and then the app goes on: jobs are asked for, claimed, stopped
and settled, students join and expect. What was there stays, but for what the app says it does with a damaged file.
"""

import contextlib
import dataclasses
import functools
import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from core import policy
from core.classroom import codes, pooled, records
from core.classroom.classes import Classes, Prediction
from core.classroom.question import BASELINE
from core.classroom.roster import Roster
from core.errors import CrossoverError, DamagedFile
from core.jobs import process, runner
from core.jobs.job_folder import JobFolder
from core.jobs.ledger import Terms
from core.jobs.queue import Queue
from core.policy import Policy
from pages.shared import health, permits
from tests import rows
from tests.fuzz import entries, mutations, worlds
from tests.fuzz.campaign import Fuzzer, Given, Subject
from tests.fuzz.watching import Fault, Gauge, require_sentence, said
from tests.fuzz.worlds import Inhabited

TOTAL = 2_000
"""Cases of each kind."""

SEEN = 0.05
"""Share of the cases that a page is drawn of."""

NO_FILE = 0.06
"""Share of the cases in which something that is no file lies in its place."""

SOMEBODY = "browser-0123456789abcdef"


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
            worlds.opened(world.views(name), gauge, f"page {name}")
            with gauge.part("health"):
                health.state_of_server()
        _require_kept(world, {path: left}, self._may_change(given.place), over=over)
        with gauge.part("going on"):
            self.kind.act(world, draw)
        _require_others(world, path)
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


def _require_others(world: Inhabited, path: str) -> None:
    """Find out whether nothing is gone that no act of the app takes away; raises Fault."""
    gone, changed = world.changes()
    kept = ("results/", world.path("jobs/{ended}/request"), world.path("classes/{other}"), "crossover.toml")
    lost = {name for name in gone | changed if name.startswith(kept) and name != path}
    mine = world.path("{ada}/results")
    if "classes" not in path:
        lost |= {name for name in gone | changed if name.startswith(mine)}
    if lost:
        raise Fault(f"going on removed or changed {sorted(lost)}")


def _partial_is_stored(world: Inhabited) -> bool:
    """Whether the store has what a measurement had kept of itself."""
    wanted = {row.trial_id for row in rows.run(run_id=world.running.run_of(world.running.asked), pairs=4)}
    return wanted <= {row.trial_id for row in world.app.store.trials()}


def _is_over(world: Inhabited) -> bool:
    """Whether the class says, in a file that can be read, that its time is over: then it may be dropped."""
    with contextlib.suppress(DamagedFile):
        of = records.read_class(world.folder / world.path("classes/{of}"))
        return of is not None and of.expired
    return False


# Jobs


def _look_at_jobs(world: Inhabited, place: str) -> bool:
    job_id = Path(world.path(place)).parent.name
    read = said(JobFolder(world.jobs / job_id).read)
    taken = read is not None and not read.damage
    queue = Queue(world.jobs)
    found = {job.id: job for job in said(queue.jobs) or ()}
    for job in world.all_jobs:
        if job.id != job_id and (job.id not in found or found[job.id].asked != job.asked or found[job.id].damage):
            raise Fault(f"the job {job.id} beside it is not read any more: {found.get(job.id)}")
        if known := said(functools.partial(queue.job, job.id)):
            said(functools.partial(runner.rows, queue, known))
            said(functools.partial(runner.exhibit, queue, known))
            known.progress and known.progress.share  # noqa: B018 - it is worked out, and must be
    said(queue.waiting)
    return taken


def _go_on_with_jobs(world: Inhabited, draw: Random) -> None:
    queue, store = Queue(world.jobs), world.app.store
    job = draw.choice(world.all_jobs)
    terms = Terms(seconds_per_day=3_600.0, waiting=5)
    asked = dataclasses.replace(rows.EXPERIMENT, budget_s=33.0)
    acts: tuple[Callable[[], object], ...] = (
        lambda: queue.submit(asked, store, asked_by=SOMEBODY, terms=terms),
        lambda: queue.submit(rows.EXPERIMENT, store, asked_by=SOMEBODY),
        lambda: queue.claim(process.this()),
        lambda: queue.request_stop(job.id),
        lambda: queue.kill(job.id),
        queue.settle,
        lambda: runner.watch(queue, job.id),
        lambda: queue.report(world.running),
        lambda: queue.end(dataclasses.replace(world.running, state="finished")),
    )
    for act in draw.sample(acts, draw.choice((1, 2, 4))):
        said(act)
    said(queue.jobs)


def _status_of(place: str) -> tuple[str, ...]:
    """A job that nobody measures any more is settled by who looks, and charged."""
    return (f"{place.rpartition('/')[0]}/status.json", "jobs/people.json")


JOB_VIEWS = ("compare", "compare-ended", "compare-running", "compare-waiting", "crossover", "crossover-swept")
JOB_VIEWS += ("devices", "class-student", "gallery")
JOBS = ("jobs/{running}", "jobs/{ended}", "jobs/{waiting}", "jobs/{swept}", "jobs/{shown}")
IN_A_JOB = tuple(f"{job}/{name}" for job in JOBS for name in ("request.json", "status.json"))
IN_A_JOB += ("jobs/{shown}/exhibit.json", "jobs/{running}/partial.parquet")


# The measuring process and the people


def _look_at_the_worker(world: Inhabited, place: str) -> bool:
    queue = Queue(world.jobs)
    known = said(lambda: queue.seat.occupant)
    said(lambda: (queue.seat.taken, queue.seat.locked))
    _look_at_jobs(world, "jobs/none/none")
    return known is not None


def _go_on_with_the_worker(world: Inhabited, draw: Random) -> None:
    queue = Queue(world.jobs)
    with contextlib.suppress(PermissionError):
        said(queue.seat.dismiss)  # before anybody is started, who would be one of ours
    with queue.seat.lock() if draw.random() < 0.7 else contextlib.nullcontext():
        said(lambda: runner.ensure_worker(queue))
    _go_on_with_jobs(world, draw)


def _look_at_the_machine(world: Inhabited, place: str) -> bool:
    queue = Queue(world.jobs)
    found = said(lambda: runner.machine(queue))
    if found:
        json.dumps(found.to_json())
        hash(found.here)
    return found is not None


def _look_at_the_people(world: Inhabited, place: str) -> bool:
    queue = Queue(world.jobs)
    terms = Terms(seconds_per_day=3_600.0, waiting=5)
    spent = said(lambda: queue.ledger.turns(["address-0123456789abcdef"]))
    said(lambda: queue.ledger.spent_s(SOMEBODY, "2026-11-22"))
    reason = said(lambda: queue.refusal([rows.EXPERIMENT], SOMEBODY, terms))
    if reason:
        require_sentence(reason)
    said(queue.jobs)
    return bool(spent and spent["address-0123456789abcdef"])


def _look_at_the_salt(world: Inhabited, place: str) -> bool:
    """What the names of people are made of: whatever is there, they can be told apart, or nobody is named."""
    return said(lambda: permits._salt(world.jobs)) == "0123456789abcdef" * 4


def _go_on_with_the_people(world: Inhabited, draw: Random) -> None:
    queue = Queue(world.jobs)
    said(lambda: queue.ledger.take_turn(SOMEBODY, "address-0123456789abcdef"))
    said(lambda: queue.ledger.charge(SOMEBODY, 3.5, "2026-11-22"))
    _go_on_with_jobs(world, draw)


# Classes


def _look_at_classes(world: Inhabited, place: str) -> bool:
    classes = Classes(world.folder / "classes")
    if world.other not in (said(classes.all) or ()):
        raise Fault("the class beside it is not read any more")
    said(classes.damaged)
    of = said(lambda: classes.find(world.of.code))
    students = {student.id: student for student in classes.students(of or world.of)}
    damaged = next((name for name in ("ada", "bob") if f"{{{name}}}" in place), "")
    for who in (world.ada, world.bob):
        good = who.id in students and not students[who.id].fault
        if of and not good and who.nickname != damaged and "class.json" not in place:
            raise Fault(f"{who.nickname} is not read any more")
    if of:
        _look_at_students(world, classes, list(students.values()))
    said(lambda: classes.find(world.other.code))
    said(classes.prune)
    return of is not None and all(not student.fault for student in students.values())


def _look_at_students(world: Inhabited, classes: Classes, students: list[Any]) -> None:
    of = said(lambda: classes.find(world.of.code)) or world.of
    said(lambda: classes.recognise(of, world.ada.id, world.token))
    said(lambda: classes.require_part(of, world.ada))
    for student in students:
        finding = pooled.finding(of.question, student, classes.store(of, student).folder)
        for text in filter(None, (student.fault, finding.fault)):
            require_sentence(text)
    pooled.tally(of.question, [student.prediction for student in students if student.prediction])


def _go_on_with_classes(world: Inhabited, draw: Random) -> None:
    classes = Classes(world.folder / "classes")
    of = said(lambda: classes.find(world.of.code)) or world.of
    roster = Roster(classes, of)
    prediction = Prediction(winner=BASELINE, place=world.of.question.places[0])
    students = classes.students(of)
    acts: tuple[Callable[[], object], ...] = (
        lambda: classes.join(of, "carl"),
        lambda: classes.join(of, "ada"),
        lambda: classes.predict(of, world.bob, prediction),
        lambda: classes.close(of),
        lambda: classes.ask_admission(of),
        lambda: roster.admit(students),
        lambda: roster.merge(students[-1], students[0]),
        lambda: classes.require_open(of),
        lambda: classes.delete_by_code(codes.join_code()),
    )
    for act in draw.sample(acts, draw.choice((1, 2, 4))):
        said(act)
    said(classes.all)


CLASS_VIEWS = ("class-visitor", "class-student", "class-teacher", "class")


# The host's settings


def _look_at_the_settings(world: Inhabited, place: str) -> bool:
    held = policy.current()
    broken = said(lambda: Policy.load(world.settings)) is None
    if broken != bool(held.fault):
        raise Fault(f"the settings hold although they cannot be read, or the other way: {held}")
    if broken and (held.who_may_run, held.classes.mode, held.read_only_gallery) != ("nobody", False, True):
        raise Fault(f"broken settings allow something: {held}")
    if held.fault:
        require_sentence(held.fault)
    said(lambda: held.check(rows.EXPERIMENT))
    said(held.check_open)
    return not broken


def _go_on_with_the_settings(world: Inhabited, draw: Random) -> None:
    for asked in (rows.EXPERIMENT, worlds.ASKED):
        with contextlib.suppress(CrossoverError):
            policy.current().check(asked)


KINDS = (
    Kind(
        name="job",
        places=IN_A_JOB,
        look=_look_at_jobs,
        views=JOB_VIEWS,
        act=_go_on_with_jobs,
        may_change=_status_of,
    ),
    Kind(
        name="request",
        places=tuple(f"{job}/request.json" for job in JOBS),
        look=_look_at_jobs,
        views=JOB_VIEWS,
        act=_go_on_with_jobs,
        may_change=_status_of,
    ),
    Kind(
        name="status",
        places=tuple(f"{job}/status.json" for job in JOBS),
        look=_look_at_jobs,
        views=JOB_VIEWS,
        act=_go_on_with_jobs,
        may_change=_status_of,
    ),
    Kind(
        name="worker",
        places=("jobs/worker.json",),
        look=_look_at_the_worker,
        views=JOB_VIEWS,
        act=_go_on_with_the_worker,
        may_change=lambda _: ("jobs/worker.json", "jobs/{waiting}/status.json", "jobs/{swept}/status.json"),
    ),
    Kind(
        name="machine",
        places=("jobs/machine.json",),
        look=_look_at_the_machine,
        views=("compare", "compare-run", "crossover", "devices", "lessons", "tutorials", "class-student"),
        act=_go_on_with_jobs,
    ),
    Kind(
        name="people",
        places=("jobs/people.json",),
        look=_look_at_the_people,
        views=JOB_VIEWS,
        act=_go_on_with_the_people,
    ),
    Kind(
        name="salt",
        places=("jobs/salt",),
        look=_look_at_the_salt,
        views=JOB_VIEWS,
        act=_go_on_with_jobs,
        total=500,
        seen=0.2,
    ),
    Kind(
        name="class",
        places=("classes/{of}/class.json",),
        look=_look_at_classes,
        views=CLASS_VIEWS,
        act=_go_on_with_classes,
    ),
    Kind(
        name="student",
        places=("{ada}/student.json", "{bob}/student.json"),
        look=_look_at_classes,
        views=CLASS_VIEWS,
        act=_go_on_with_classes,
    ),
    Kind(
        name="prediction",
        places=("{ada}/prediction.json", "{bob}/prediction.json"),
        look=_look_at_classes,
        views=CLASS_VIEWS,
        act=_go_on_with_classes,
    ),
    Kind(
        name="policy",
        places=("crossover.toml",),
        look=_look_at_the_settings,
        views=("compare", "crossover", "devices", "lessons", "tutorials", "class", "gallery"),
        act=_go_on_with_the_settings,
    ),
)


@contextlib.contextmanager
def _opened(kind: Kind, folder: Path) -> Iterator[Subject]:
    with worlds.inhabited(folder) as world:
        yield Files(world, kind)


@contextlib.contextmanager
def _opened_all(folder: Path) -> Iterator[Subject]:
    with worlds.inhabited(folder) as world:
        yield _Any([Files(world, kind) for kind in KINDS])


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


ANY = Fuzzer(name="files", about="small files of any kind", total=TOTAL, opened=_opened_all)
"""For the suite, where an app for each kind would take longer than the cases."""

FUZZERS = tuple(
    Fuzzer(
        name=kind.name,
        about=f"{', '.join(dict.fromkeys(Path(place).name for place in kind.places))}",
        total=kind.total,
        opened=functools.partial(_opened, kind),
    )
    for kind in KINDS
)
