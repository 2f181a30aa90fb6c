"""The database of classes, and class files of earlier versions: who reads them, and what the app goes on to do."""

from collections.abc import Callable
from random import Random
from typing import Any

from core.classroom import results
from core.classroom.classes import Classes, Prediction
from core.classroom.database import FILE_NAME
from core.classroom.question import BASELINE
from core.classroom.students import join_code, matches, secret
from tests.earlier_files import EARLIER, NAMES
from tests.fuzz.files import Kind
from tests.fuzz.watching import Fault, require_sentence, said
from tests.fuzz.worlds import Inhabited


def _look_at_classes(world: Inhabited, place: str) -> bool:
    classes = Classes(world.folder / "classes")
    said(classes.all)
    damaged = said(classes.damaged)
    said(lambda: classes.find(world.other.code))
    of = said(lambda: classes.find(world.of.code))
    students = (said(lambda: classes.students(of)) if of else None) or []
    if of:
        _look_at_students(world, classes, list(students))
    said(classes.prune)
    return of is not None and not damaged and len(students) == 2 and all(not student.fault for student in students)


def _look_at_earlier(world: Inhabited, place: str) -> bool:
    """Read what an earlier version wrote; a damaged file of one student costs nobody else anything."""
    classes = Classes(world.folder / "earlier")
    said(classes.damaged)
    of = said(lambda: classes.find(NAMES["code"]))
    if of is None:
        if "class.json" not in place:
            raise Fault("the class is not read any more")
        return False
    students = {student.id: student for student in classes.students(of)}
    wrong = [one for one, student in students.items() if student.fault and one not in place]
    if wrong and "class.json" not in place:  # another question may have other answers
        raise Fault(f"{wrong} are not read any more")
    if len(students) != 2:
        raise Fault(f"there are {len(students)} students")
    said(lambda: classes.recognise(of, NAMES["student"], NAMES["token"]))
    for text in filter(None, (student.fault for student in students.values())):
        require_sentence(text)
    return not any(student.fault for student in students.values())


def _import_earlier(world: Inhabited, draw: Random) -> None:
    classes = Classes(world.folder / "earlier")
    said(classes.prune)
    of = said(lambda: classes.find(NAMES["code"]))
    if of:
        said(lambda: classes.join(of, draw.choice(("carl", "ada"))))
        said(lambda: classes.merge(of, *draw.sample(classes.students(of), 2)))
    said(classes.all)


def _look_at_students(world: Inhabited, classes: Classes, students: list[Any]) -> None:
    of = said(lambda: classes.find(world.of.code)) or world.of
    said(lambda: classes.recognise(of, world.ada.id, world.token))
    said(lambda: classes.require_part(of, world.ada))
    for student in students:
        finding = results.evaluate_student(of.question, student, classes.store(of, student).folder)
        if finding.fault:
            require_sentence(finding.fault)
    results.count_predictions(of.question, [student.prediction for student in students if student.prediction])


def _go_on_with_classes(world: Inhabited, draw: Random) -> None:
    classes = Classes(world.folder / "classes")
    of = said(lambda: classes.find(world.of.code)) or world.of
    prediction = Prediction(winner=BASELINE, place=world.of.question.places[0])
    students = said(lambda: classes.students(of)) or [world.ada, world.bob]
    acts: tuple[Callable[[], object], ...] = (
        lambda: classes.join(of, "carl"),
        lambda: classes.join(of, "ada"),
        lambda: classes.predict(of, world.bob, prediction),
        lambda: classes.close(of),
        lambda: classes.ask_admission(of),
        lambda: classes.admit(of, students),
        lambda: classes.merge(of, students[-1], students[0]),
        lambda: classes.delete_by_code(join_code()),
        lambda: matches(secret(), of.secret_hash),
    )
    for act in draw.sample(acts, draw.choice((1, 2, 4))):
        said(act)
    said(classes.all)


EARLIER_CLASSES = ["earlier" / path.relative_to(EARLIER / "classes") for path in EARLIER.glob("classes/**/*.json")]
"""Class files of version 0.1.0, where `tests.fuzz.worlds` puts them."""

CLASS_VIEWS = ("class-visitor", "class-student", "class-teacher", "class")


KINDS = (
    Kind(
        name="classes",
        places=(f"classes/{FILE_NAME}",),
        look=_look_at_classes,
        views=CLASS_VIEWS,
        act=_go_on_with_classes,
    ),
    Kind(
        name="class-json",
        places=tuple(str(path) for path in sorted(EARLIER_CLASSES)),
        look=_look_at_earlier,
        views=("class",),
        act=_import_earlier,
    ),
)
