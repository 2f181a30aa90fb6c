"""An app in which everything that others can write is hostile: rows, exhibits, a class, file names, jobs, settings."""

import dataclasses
import io
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from core.classroom import results
from core.classroom.classes import Classes, Prediction
from core.classroom.question import CHALLENGER, ClassQuestion
from core.jobs.machine import Machine
from core.question.experiment import Point
from core.results import exhibits
from core.results.environment import DeviceInfo, Environment
from core.results.parquet import to_table
from core.results.schema import SCHEMA_VERSION, VERSION_KEY
from core.results.store import Store
from tests import exhibited, rows
from tests.hostile import STRANGER, TEXTS, bundle
from tests.students import change_database

TRAINING = Point(dataset="signal", depth=2, batch_size=64, epochs=10)
SIZES = (16, 64, 256)
ELSEWHERE = "beefbeefbeef"
QUESTION = ClassQuestion.from_preset("signal")

FREE = (
    *("device_name", "cpu_name", "message", "system", "torch_version", "python_version", "torchvision_version"),
    *("app_version", "app_commit", "device_driver", "omp_wait_policy"),
)
"""Texts of a row that have no form; each begins with another of the hostile ones, so that every one stands first."""

PRINTABLE = f'=HYPERLINK("https://{STRANGER}";"x");=1 www.{STRANGER} a@{STRANGER} :material_home: :heart: <img> $x$ @x'
"""As a name may be that an earlier version let through."""

NAMED = {"device_name": PRINTABLE, "torch_version": PRINTABLE}
"""What this machine's devices and its torch are called: by it a row is told to be of just this machine."""

FILE_NAMES = ("\x1b]0;owned\x07=1;=2", "＝1 \u202eabc\u3164", f"www.{STRANGER} :material_home: \x9b31m")

DEVICES = f"=cmd|' /C calc'!A0;=1 www.{STRANGER}", f"-1 :material_home: https://{STRANGER}"
TIMINGS = "size,device,seconds," + "\x1b]0;owned\x07\u202e\u3164 " + TEXTS[4] + "\n"
TIMINGS += "".join(
    f'{size},"{name}{role}",{seconds},x\n'
    for size, *times in ((10, 1.0, 2.0), (100, 2.0, 2.1), (1_000, 9.0, 2.2))
    for role, name, seconds in zip((" cpu", ""), DEVICES, times, strict=True)
)
"""Somebody's timings, whose devices are called so."""


def free(shift: int = 0) -> dict[str, str]:
    """The columns of free text, each hostile."""
    return {name: bundle((2 * place + shift) % (len(TEXTS) - 1)) for place, name in enumerate(FREE)}


def here() -> dict[str, str]:
    """The same of rows of this machine."""
    return free() | NAMED


def run(run_id: str = rows.RUN_ID, *, point: Point = rows.EXPERIMENT.point, **changes: Any) -> list[Any]:
    """A run of this machine, whose free texts are hostile."""
    return rows.run(run_id=run_id, point=point, **{**here(), **changes})


def sweep(letter: str, **changes: Any) -> list[Any]:
    """The runs of a study."""
    return [
        row
        for size in SIZES
        for row in rows.run(
            {"cpu": 1e-4 * size / 64, "cuda:0": 1e-4},
            point=dataclasses.replace(TRAINING, hidden_size=size),
            run_id=f"{letter}{size:011d}",
            **{**here(), **changes},
        )
    ]


def fill(store: Store, gallery: Store) -> None:
    """Put runs, studies of two machines, exhibits and files that cannot be read into the stores."""
    deeper = dataclasses.replace(TRAINING, depth=3)
    store.add_all(to_table([*run(), *sweep("a"), *run("c" * 12, outcome="out_of_memory", point=deeper)]))
    elsewhere = {"machine_id": ELSEWHERE, **free(1)}
    gallery.add_all(to_table([*sweep("b", **elsewhere), *run("d" * 12, **elsewhere)]))
    for shown in shows():
        exhibits.add_exhibit(store.folder, shown)
    for shown in shows(machine_id=ELSEWHERE):
        exhibits.add_exhibit(gallery.folder, shown)
    for name in FILE_NAMES:
        (store.folder / f"{name}.parquet").write_bytes(b"torn")
        (store.folder / "exhibits" / f"{name}.json").write_bytes(b"torn")
    newer = store.folder / f"{FILE_NAMES[0]} newer.parquet"
    shutil.copy(next(store.folder.glob("*-0-*.parquet")), newer)
    newer.write_bytes(_newer(newer))


def machine(*, gpu: bool = True) -> Machine:
    """This machine, whose parts are called so."""
    facts = {entry.name: getattr(rows.trial(), entry.name) for entry in dataclasses.fields(Environment)}
    names = {name: text for name, text in here().items() if name in facts}
    kinds = {"cpu": "cpu", "cuda:0": "cuda"} if gpu else {"cpu": "cpu"}
    devices = [
        DeviceInfo(device=device, kind=kind, name=PRINTABLE, memory_bytes=2**34, driver=bundle(13))
        for device, kind in kinds.items()
    ]
    return Machine(
        environment=Environment(**{**facts, **names}),
        devices=tuple(devices),
        startup_s={"cpu": 0.5},
        hint="" if gpu else bundle(3),
    )


@dataclass(frozen=True, kw_only=True)
class Classroom:
    """A class.

    Attributes:
        id: of it.
        code: to join by.
        secret: of its teacher.
        me: who a student is, for a link.
        students: ids of all.
    """

    id: str
    code: str
    secret: str
    me: str
    students: tuple[str, ...]


def classroom(classes: Classes) -> Classroom:
    """A class whose name and students are called so, with results, one who waits and one whose files are damaged."""
    of, secret = classes.create("Physics 7b", QUESTION)
    joined = [classes.join(of, name) for name in ("ada", "emmy", "grete", "lise")]
    for student, _token in joined[:2]:
        classes.predict(of, student, Prediction(winner=CHALLENGER, place=100))
        data = results.build_file(_measured(), code=of.code, nickname=student.nickname)
        classes.take_file(of, student, data, f"{FILE_NAMES[0]}.parquet")
    change_database(classes, "UPDATE classes SET name = ?", PRINTABLE)
    for number, (student, _token) in enumerate(joined):
        nickname = f"{'=-@'[number % 3]}{number} {PRINTABLE}"
        values = (nickname, number == 2, student.id)
        change_database(classes, "UPDATE students SET nickname = ?, waiting = ? WHERE id = ?", *values)
        if number == 3:
            values = (TEXTS[14], PRINTABLE, student.id)
            change_database(classes, "UPDATE students SET winner = ?, place = ? WHERE id = ?", *values)
            results_folder = classes.store(of, student).folder
            results_folder.mkdir(exist_ok=True)
            (results_folder / f"{FILE_NAMES[1]}.parquet").write_bytes(b"torn")
    student, token = joined[0]
    ids = tuple(student.id for student, _token in joined)
    return Classroom(id=of.id, code=of.code, secret=secret, me=f"{student.id}.{token}", students=ids)


def settings(*, broken: bool = False) -> str:
    """What a host wrote: a banner for everybody; or a line that cannot be read."""
    banner = '"' + "".join(f"\\U{ord(letter):08x}" for letter in bundle(0, 480)) + '"'
    who = banner if broken else '"everybody"'
    return f"who_may_run = {who}\nbanner = {banner}\n[class]\nmode = true\n"


def _measured() -> list[Any]:
    found = []
    for number, point in enumerate(QUESTION.points):
        steps = {"cpu": 1e-3, "cuda:0": 1e-3 * (100 / point.hidden_size) ** 0.8}
        found += rows.run(steps, point=point, run_id=f"{number:012x}", outcome="timed", pairs=8, **free())
    return found


def shows(**changes: Any) -> list[Any]:
    """An exhibit of every kind, of this machine unless told."""
    text = bundle(2, 2_000)
    snippet = exhibited.Snippet(title=PRINTABLE, code=text, output=text, error=text, device="meta")
    clock = exhibited.clock({"ours": 1.0, "no_drain": 0.2})
    variants = [
        dataclasses.replace(one, title=f"{PRINTABLE} {one.name}", explains=text) for one in clock.content.variants
    ]
    pair = ("cpu", "cuda:0")
    found = [
        dataclasses.replace(clock, content=exhibited.Clock(variants=tuple(variants), notes=(text,))),
        exhibited.moving(snippet, contenders=pair),
        exhibited.first_step(contenders=pair),
    ]
    facts = {"cpu_name": PRINTABLE, "torch_version": PRINTABLE, "app_commit": PRINTABLE, **changes}
    return [
        dataclasses.replace(
            shown,
            participants=tuple(dataclasses.replace(one, device_name=PRINTABLE) for one in shown.participants),
            **facts,
        )
        for shown in found
    ]


def _newer(path: Path) -> bytes:
    table = pq.read_table(path)
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION + 1).encode()}), buffer)
    return buffer.getvalue()
