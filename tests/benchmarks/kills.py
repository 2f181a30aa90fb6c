"""Kills of the server and of the measuring process while a class takes part: is anything lost, or there twice?

    python -m tests.benchmarks.kills [--students 10] [--server 20] [--worker 20] [--seed 20261122]

Scripted students come to a real server over the websocket: they join, expect, measure, and measure again, until all
kills (SIGKILL, at random moments) are over, and then once more. The server is started anew at once; the measuring
process by the app itself, as soon as anybody looks. What measures is `tests.integration.scripted_worker`, so nothing is
trained. Whatever a student was shown as done has to be there at the end, once; what was ever seen in a store too.

Exit status 1 if anything is lost, doubled, damaged or left behind. Only processes that this program started are killed.
"""

import argparse
import asyncio
import collections
import contextlib
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

import psutil
import pyarrow.parquet as pq
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.Radio_pb2 import Radio
from streamlit.proto.Selectbox_pb2 import Selectbox
from streamlit.proto.WidgetStates_pb2 import WidgetState

from core.classroom import names
from core.classroom.classes import CLASSES_VARIABLE, Class, Classes, Student
from core.classroom.question import NEVER, WINNERS, ClassQuestion
from core.errors import CrossoverError
from core.files import atomic
from core.files.project import PROJECT
from core.files.spare import SPARE_VARIABLE
from core.jobs.machine import LOCK_VARIABLE
from core.jobs.queue import JOBS_VARIABLE, Queue
from core.results.store import Store
from pages.shared.data import reads
from tests.benchmarks.sessions import Refused, Session, await_health
from tests.integration import scripted_worker
from tests.ports import free_port

SEED = 20261122
PAIRS = 60
"""Rounds at each size: a third of a second, so that a student's sweep takes two and is hit by some of the kills."""

SIZES = (25, 50, 100, 200, 400)
QUESTION = ClassQuestion(title="Hidden size", asked=scripted_worker.sweep(sizes=SIZES, pairs=PAIRS), words="")

BETWEEN_S = 2.0
"""Mean seconds from one kill to the next; short enough to hit who is just starting, too."""

LOOKED_S = 0.2
PATIENCE_S = 1_800.0
"""How long everybody has to come to an end after the last kill."""

JOIN, EXPECT, EXPECT_AGAIN = ("Join", "This is what I expect", "Change what I expect")
WHO, WHERE = "Who will", "From which"
MEASURE, AGAIN = "Measure here", "Measure again"


@dataclass(kw_only=True)
class Shown:
    """What a student was shown as done.

    Attributes:
        nickname: that they joined by.
        link: who they are, as their link says it.
        expected: winner and place, as chosen.
        results: how often a result was shown.
        rows: names of the rows that were there when one was.
    """

    nickname: str = ""
    link: str = ""
    expected: tuple[str, str] | None = None
    results: int = 0
    rows: set[str] = field(default_factory=set)


class Field(NamedTuple):
    """A field as the page sent it last.

    Attributes:
        identity: of the widget.
        options: what can be chosen; empty where one types.
        chosen: what is chosen by what was kept; empty if nothing is.
    """

    identity: str
    options: tuple[str, ...] = ()
    chosen: str = ""


class Visit(Session):
    """A student's browser from the opened link until the connection ends.

    Attributes:
        said: what the page says.
        fields: what can be typed or chosen, by its label.
        address: parameters of the link as it is now.
    """

    def __init__(self, port: int, query: str) -> None:
        super().__init__(port, query, page="class")
        self.said: list[str] = []
        self.fields: dict[str, Field] = {}
        self.address = query

    def fill(self, label: str, value: str) -> None:
        """Type or choose something, which is sent with the next button."""
        identity = self.fields[label].identity
        self._states[identity] = WidgetState(id=identity, string_value=value)

    def label(self, beginning: str) -> str:
        """The label of a field by how it begins."""
        return next(label for label in self.fields if label.startswith(beginning))

    def _take(self, data: str | bytes) -> None:
        message = ForwardMsg()
        message.ParseFromString(data)
        match message.WhichOneof("type"):
            case "new_session" if not message.metadata.run.fragment_ids:
                self.said.clear()
                self.buttons.clear()
                self.fields.clear()
            case "page_info_changed":
                self.address = message.page_info_changed.query_string
        super()._take(data)

    def _note(self, message: ForwardMsg) -> None:
        super()._note(message)
        element = message.delta.new_element
        match element.WhichOneof("type"):
            case "alert":
                self.said.append(element.alert.body)
            case "markdown":
                self.said.append(element.markdown.body)
            case "text_input":
                self.fields[element.text_input.label] = Field(element.text_input.id)
            case "radio":
                self.fields[element.radio.label] = _choice(element.radio)
            case "selectbox":
                self.fields[element.selectbox.label] = _choice(element.selectbox)


def _choice(of: Radio | Selectbox) -> Field:
    options = tuple(of.options)
    return Field(of.id, options, options[of.default] if of.HasField("default") else "")


class Pupil:
    """A student who comes back whenever the server does, and does what comes next.

    Attributes:
        shown: what they were shown as done.
        faults: exceptions that a page showed.
        over: whether they have what they came for: a result that they asked for once all kills were over.
    """

    def __init__(self, number: int, port: int, code: str, house: "House") -> None:
        self.shown, self.faults, self.over = Shown(), list[str](), False
        self._number, self._port, self._code, self._house = number, port, code, house
        self._draw = random.Random(f"{house.seed} {number}")
        self._tries, self._asked_last = 0, False

    async def attend(self) -> None:
        """Take part until the last measurement is done."""
        await asyncio.sleep(self._draw.uniform(0, self._house.spread_s))
        while not self.over:
            link = f"class={self._code}" + (f"&me={self.shown.link}" if self.shown.link else "")
            visit = Visit(self._port, link)
            try:
                await asyncio.wait_for(visit.open(), timeout=60)
                await self._stay(visit)
            except (Refused, TimeoutError, OSError):
                await asyncio.sleep(LOOKED_S)
            finally:
                self.faults += visit.faults
                with contextlib.suppress(Exception):
                    await visit.close()

    async def _stay(self, visit: Visit) -> None:
        while not self.over:
            self._note(visit)
            if JOIN in visit.buttons:
                await self._join(visit)
            elif EXPECT in visit.buttons:
                await self._expect(visit, EXPECT)
            elif EXPECT_AGAIN in visit.buttons and self._draw.random() < 0.1:
                await self._expect(visit, EXPECT_AGAIN)
            elif MEASURE in visit.buttons or (AGAIN in visit.buttons and not self._asked_last):
                pressed, last = visit.buttons.get(MEASURE) or visit.buttons[AGAIN], self._house.last
                await asyncio.wait_for(visit.press(pressed), timeout=60)
                self._asked_last = last
            elif not self._done(visit):
                await asyncio.sleep(LOOKED_S)
                await asyncio.wait_for(visit.rerun(), timeout=60)

    def _done(self, visit: Visit) -> bool:
        """Whether the result of what was asked for once all kills were over is shown, and nobody waits for another."""
        self.over = self._asked_last and AGAIN in visit.buttons and self._house.idle()
        return self.over

    async def _join(self, visit: Visit) -> None:
        nickname = f"pupil {self._number}" + (f" no {self._tries}" if self._tries else "")
        visit.fill("Nickname", nickname)
        self._tries += 1  # if it is taken, by ourselves before a kill, the next one is another
        await asyncio.wait_for(visit.press(visit.buttons[JOIN]), timeout=60)

    async def _expect(self, visit: Visit, button: str) -> None:
        for question in (WHO, WHERE):
            label = visit.label(question)
            visit.fill(label, self._draw.choice(visit.fields[label].options))
        self.shown.expected = None  # until the page says what is kept, either may be
        await asyncio.wait_for(visit.press(visit.buttons[button]), timeout=60)

    def _note(self, visit: Visit) -> None:
        """Keep what the page shows as done."""
        me = parse_qs(visit.address).get("me", [""])[0]
        known = next((found[1] for text in visit.said if (found := re.match(r"You are \*\*(.+)\*\*", text))), "")
        if me and known:
            self.shown.link, self.shown.nickname = me, known.replace("\\", "")
        if EXPECT_AGAIN in visit.buttons:
            winner, place = (visit.fields[label].chosen for label in (visit.label(WHO), visit.label(WHERE)))
            self.shown.expected = winner, place
        if AGAIN in visit.buttons:
            self.shown.results += 1
            self.shown.rows |= self._house.rows_of(me.partition(".")[0])


class House:
    """The server, the folders, and who kills.

    Attributes:
        folder: of everything.
        seed: of all that is drawn.
        last: whether all kills are over.
        killed: how often each of the two was.
        seen: names of the rows that were ever seen in a store, by student.
        spread_s: within which students come.
    """

    def __init__(self, folder: Path, *, seed: int, spread_s: float) -> None:
        self.folder, self.seed, self.spread_s, self.last = folder, seed, spread_s, False
        self.killed: collections.Counter[str] = collections.Counter()
        self.seen: dict[str, set[str]] = {}
        self.port = free_port()
        self.queue, self.classes = Queue(folder / "jobs"), Classes(folder / "classes")
        self.of, _ = self.classes.create("Physics 7b", QUESTION)
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server; what it prints goes into a file."""
        variables = {
            JOBS_VARIABLE: str(self.queue.folder),
            reads.RESULTS_VARIABLE: str(self.folder / "results"),
            CLASSES_VARIABLE: str(self.classes.folder),
            SPARE_VARIABLE: str(self.folder / "memory"),
            LOCK_VARIABLE: str(self.folder / "machine.lock"),
        }
        command = [sys.executable, "-m", "tests.benchmarks.scripted_server", str(self.port)]
        with (self.folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                command, cwd=PROJECT, env={**os.environ, **variables}, stdout=log, stderr=log
            )

    async def healthy(self) -> None:
        """Wait until the server answers."""
        await asyncio.to_thread(await_health, self.port)

    async def kill(self, whom: str) -> bool:
        """Kill one of the two, if it is there; the server is started anew at once."""
        if whom == "server":
            assert self._server is not None
            self._server.kill()
            self._server.wait()
            self.start()
        elif not self._kill_worker():
            return False
        self.killed[whom] += 1
        return True

    def stop(self) -> None:
        """End both."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        self.queue.worker_file.dismiss()

    def idle(self) -> bool:
        """Whether nothing waits or is measured."""
        return not any(job.active for job in self.queue.jobs())

    def look(self) -> None:
        """Remember every row that is in a store now."""
        for student in self.classes.students(self.of):
            self.seen.setdefault(student.id, set()).update(self.rows_of(student.id))

    def rows_of(self, student_id: str) -> set[str]:
        """Names of the rows in a student's store."""
        return set(_rows(self._place(student_id)))

    def _place(self, student_id: str) -> Path:
        return self.classes.folder / self.of.id / "students" / student_id

    def _kill_worker(self) -> bool:
        """Kill who serves the queue; False if nobody does just now."""
        serving = self.queue.worker_file.serving
        if serving is None or not serving.process.alive:
            return False
        with contextlib.suppress(psutil.NoSuchProcess, PermissionError):
            serving.process.kill(self.queue.worker_file.serves)
            return True
        return False


@dataclass(frozen=True, kw_only=True)
class Account:
    """What became of everything.

    Attributes:
        figures: what happened, counted.
        faults: what must not be; empty if all is well.
    """

    figures: dict[str, int]
    faults: tuple[str, ...]


async def campaign(folder: Path, *, students: int, server: int, worker: int, seed: int = SEED) -> Account:
    """Let a class take part while both are killed, and look at what is there afterwards."""
    house = House(folder, seed=seed, spread_s=BETWEEN_S * (server + worker) / 3)
    house.start()
    try:
        await house.healthy()
        pupils = [Pupil(number, house.port, house.of.code, house) for number in range(students)]
        attending = [asyncio.create_task(pupil.attend()) for pupil in pupils]
        await _kill_all(house, server=server, worker=worker)
        await asyncio.wait_for(asyncio.gather(*attending), timeout=PATIENCE_S)
        house.look()
    finally:
        house.stop()
    return account(house, pupils)


async def _kill_all(house: House, *, server: int, worker: int) -> None:
    """Kill both as often as asked, at random moments."""
    draw = random.Random(house.seed)
    order = ["server"] * server + ["worker"] * worker
    draw.shuffle(order)
    for whom in order:
        until = time.monotonic() + draw.expovariate(1 / BETWEEN_S)
        while time.monotonic() < until:
            house.look()
            await asyncio.sleep(LOOKED_S)
        while not await house.kill(whom):
            await asyncio.sleep(LOOKED_S)  # nobody serves just now
    house.last = True


def account(house: House, pupils: list[Pupil]) -> Account:
    """Look at what is there, once nobody writes any more."""
    students = {student.id: student for student in house.classes.students(house.of)}
    faults = [f"page: {fault}" for pupil in pupils for fault in pupil.faults]
    faults += _damages(house.classes, list(students.values()))
    for pupil in pupils:
        faults += _lost(pupil, house, students)
    doubled = [name for student in students for name, count in _rows_in(house, student).items() if count > 1]
    faults += [f"the row {name} is there twice" for name in doubled]
    alike = collections.Counter(names.folded(student.nickname) for student in students.values())
    faults += [f"{nickname!r} is in the class twice" for nickname, count in alike.items() if count > 1]
    jobs = collections.Counter(job.state for job in house.queue.jobs())
    faults += _unsaved(house)
    left, swept = _left_behind(house)
    faults += [f"left behind: {path}" for path in swept]
    shown = [pupil.shown for pupil in pupils]
    figures = {
        "server killed": house.killed["server"],
        "worker killed": house.killed["worker"],
        "students": len(pupils),
        "joins shown": sum(bool(one.link) for one in shown),
        "joins stored": len(students),
        "predictions shown": sum(one.expected is not None for one in shown),
        "results shown": sum(one.results for one in shown),
        "jobs finished": jobs["finished"],
        "jobs cut off": jobs["crashed"],
        "jobs otherwise": sum(jobs.values()) - jobs["finished"] - jobs["crashed"],
        "rows": sum(len(_rows_in(house, student)) for student in students),
        "temporary files of the dead": left,
        "lost, doubled, damaged or left": len(faults),
    }
    return Account(figures=figures, faults=tuple(faults))


def _damages(classes: Classes, students: list[Student]) -> Iterator[str]:
    yield from classes.damaged().values()
    for student in students:
        if student.fault:
            yield f"{student.nickname}: {student.fault}"


def _lost(pupil: Pupil, house: House, students: dict[str, Student]) -> Iterator[str]:
    """What somebody was shown as done and is not there."""
    shown = pupil.shown
    student_id, _, token = shown.link.partition(".")
    if not shown.link or student_id not in students:
        yield f"{shown.nickname or 'a pupil'} has joined and is not in the class"
        return
    try:
        known = house.classes.recognise(house.of, student_id, token)
    except CrossoverError as error:
        yield f"{shown.nickname} is not recognised: {error}"
        return
    if known.nickname != shown.nickname:
        yield f"{shown.nickname} is called {known.nickname}"
    if shown.expected is not None and shown.expected != in_words(house.of, known):
        yield f"{shown.nickname} expected {shown.expected}, and {known.prediction} is kept"
    there = house.rows_of(student_id)
    if missing := (shown.rows | house.seen.get(student_id, set())) - there:
        yield f"{shown.nickname} lost the rows {sorted(missing)}"


def in_words(of: Class, student: Student) -> tuple[str, str] | None:
    """What a student expects as the page words it."""
    from pages.classroom import view

    said = student.prediction
    if said is None:
        return None
    place = said.place if said.place is not None else NEVER
    return WINNERS[said.winner], view.place_label(of, place)


def _unsaved(house: House) -> Iterator[str]:
    """Jobs that go on although nobody measures, and rows that a job says it has and no store does."""
    stored = {name for student in house.classes.students(house.of) for name in house.rows_of(student.id)}
    for job in house.queue.jobs():
        if job.active or job.damage:
            yield f"the job {job.id} is {job.state}{job.damage and ' and damaged'}"
        if missing := set(job.trial_ids) - stored:
            yield f"the job {job.id} has rows that are in no store: {sorted(missing)}"


def _rows_in(house: House, student_id: str) -> collections.Counter[str]:
    return _rows(house._place(student_id))


def _rows(folder: Path) -> collections.Counter[str]:
    """How often each row is in the files below a folder."""
    found: collections.Counter[str] = collections.Counter()
    for path in folder.glob("results*/*.parquet"):
        with contextlib.suppress(FileNotFoundError):
            found.update(pq.read_table(path, columns=["trial_id"])["trial_id"].to_pylist())
    return found


def _left_behind(house: House) -> tuple[int, list[Path]]:
    """How much the dead left, and what of it is still there when it is old and the app has gone on."""
    left = [path for path in house.folder.rglob(".*") if path.parent != house.folder]
    old = time.time() - 2 * atomic.ABANDONED_S
    for path in left:
        os.utime(path, (old, old), follow_symlinks=False)
    house.classes.prune()
    for student in house.classes.students(house.of):
        house.classes.store(house.of, student).check_writable()
    asked = house.queue.submit(scripted_worker.experiment(scripted_worker.QUICK), Store(house.folder / "results"))
    house.queue.request_stop(asked.id)
    return len(left), [path for path in left if path.exists()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=10)
    parser.add_argument("--server", type=int, default=20, help="kills of the server")
    parser.add_argument("--worker", type=int, default=20, help="kills of the measuring process")
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="crossover-kills-"))
    numbers = {"students": asked.students, "server": asked.server, "worker": asked.worker, "seed": asked.seed}
    found = asyncio.run(campaign(folder, **numbers))
    print("| what | how many |\n|---|---|")
    for name, count in found.figures.items():
        print(f"| {name} | {count:,} |")
    for fault in found.faults:
        print(fault)
    print(f"Everything is in {folder}.", file=sys.stderr)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
