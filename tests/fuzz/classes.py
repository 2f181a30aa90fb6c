"""Files of classes and of their students: who reads them, and what the app goes on to do."""

from collections.abc import Callable
from random import Random
from typing import Any

from core.classroom import codes, pooled
from core.classroom.classes import Classes, Prediction
from core.classroom.question import BASELINE
from core.classroom.roster import Roster
from tests.fuzz.files import Kind
from tests.fuzz.watching import Fault, require_sentence, said
from tests.fuzz.worlds import Inhabited


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
        lambda: codes.matches(codes.secret(), of.secret_hash),
    )
    for act in draw.sample(acts, draw.choice((1, 2, 4))):
        said(act)
    said(classes.all)


CLASS_VIEWS = ("class-visitor", "class-student", "class-teacher", "class")


KINDS = (
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
)
