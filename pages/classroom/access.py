"""Access to classes: codes, proofs of membership, limits of attempts, and the forms to enter or create a class.

Attempts of codes, new classes and joins are counted for all sessions together. An admitted visitor needs no code again.

A link stays as it is: if its code is refused, the reason is shown above the forms. If codes are looked up slowly at the
moment, the page tries again by itself.
"""

import logging
from pathlib import Path

import streamlit as st

from core.classroom import students
from core.classroom.classes import Class, Classes, Prediction, Student
from core.classroom.question import ClassQuestion
from core.classroom.results import Receipt
from core.classroom.students import Limits, TooOften, VisitorSource
from core.errors import CrossoverError, NotAllowed
from core.question import policy
from pages.classroom import findings, teacher
from pages.shared import permits
from pages.shared.cache import cache_answers
from pages.shared.elements import plain, show_errors

PRUNED_S = 3600.0
"""Shortest time between two searches for expired classes."""

WRONG_CODES = "Too many wrong codes were tried"

_tried = Limits(WRONG_CODES, students.CODE_RATES)
_secrets_tried = Limits(WRONG_CODES, students.SECRET_RATES)
_joined = Limits("Too many students joined this class", students.JOIN_RATES)
_made = Limits("Too many classes were created", students.CLASS_RATES)
_brought = Limits("Too many files were uploaded", students.FILE_RATES)

_log = logging.getLogger(__name__)


def find(code: str) -> Class:
    """Return the class with a join code.

    The limit of attempts does not apply to a visitor who has opened the class before or proves membership. A
    mistyped code is refused at once and does not count; any other wrong code counts once per session.

    Raises:
        TooOften: too many wrong codes were tried.
        NotAllowed: there is no such class.
        StoreError: its file is damaged.
    """
    if not students.may_join(code):
        raise NotAllowed(students.MISTYPED)
    code = students.format_code(code)
    if code in permits.list_entered_codes() or _proves_joining(code):
        return findings.classes().find(code)
    if sentence := permits.find_refusal(code):
        raise NotAllowed(sentence)
    with _tried.tried(permits.source()):
        try:
            class_ = findings.classes().find(code)
        except NotAllowed as error:
            permits.note_refusal(code, str(error))
            raise
    permits.list_entered_codes().add(code)
    return class_


def require_secret(code: str, kept: str) -> None:
    """Raise NotAllowed if a secret code is wrong, which counts, and TooOften after too many wrong codes."""
    wrong = NotAllowed("This is not the right code.")
    if not students.may_match(code):
        raise wrong
    with _secrets_tried.tried(permits.source()):
        if not students.matches(code, kept):
            raise wrong


def create(name: str, preset: str, *, admission: bool, code: str) -> tuple[Class, str]:
    """Create a class, if the host allows it for this visitor; return it and the teacher's code.

    Raises:
        InvalidValue: the name is not allowed.
        NotAllowed: the host's code is wrong, or there are too many classes.
        StoreError: the folder cannot be written.
    """
    held = policy.load_policy().classes
    if held.create == "code":
        require_secret(code, held.code_hash)
    source = permits.source()
    _made.take(source)
    try:
        return findings.classes().create(name, ClassQuestion.from_preset(preset), admission=admission)
    except CrossoverError:
        _made.give_back(source)
        raise


def join(class_: Class, nickname: str) -> Student:
    """Let the visitor take part in a class, or wait to be admitted.

    Raises:
        InvalidValue: the nickname is not allowed.
        NotAllowed: the nickname is in use, the class is closed or full, or too many have joined from this address.
        StoreError: the folder cannot be written.
    """
    source = permits.source()
    _joined.take(source, class_.id)
    try:
        student, token = findings.classes().join(class_, nickname)
    except CrossoverError:
        _joined.give_back(source, class_.id)
        raise
    findings.changed(class_)
    permits.join_class(class_.id, student.id, token)
    return student


def predict(class_: Class, student: Student, prediction: Prediction) -> None:
    """Store the prediction of a student; raises as `Classes.predict` does."""
    findings.classes().predict(class_, student, prediction)
    findings.changed(class_)


def me(class_: Class) -> Student | None:
    """Return the visitor as a student of this class, or None. Raises StoreError if the stored student is damaged."""
    student_id, token = permits.find_membership(class_.id)
    if not student_id:
        return _student_of_link(class_)
    try:
        student = findings.classes().recognise(class_, student_id, token)
    except NotAllowed:  # removed since
        return None
    permits.join_class(class_.id, student_id, token)
    return student


def teaches(class_: Class) -> bool:
    """Return whether the visitor gave the teacher's code of a class, in this session or by the teacher's link.

    A wrong code in the link counts like a typed one, once per session, and stays in the link.
    """
    if secret := permits.find_teacher_code(class_.id):
        permits.note_teacher_code(class_.id, secret)
        return True
    link = permits.read_teacher_code()
    if not link or permits.find_refusal(link):
        return False
    try:
        teach(class_, link)
    except students.TooOften:
        return False
    except NotAllowed as error:
        permits.note_refusal(link, str(error))
        return False
    return True


def teach(class_: Class, secret: str) -> None:
    """Open the teacher's view of a class with the teacher's code; raises as `require_secret` does."""
    require_secret(secret, class_.secret_hash)
    permits.note_teacher_code(class_.id, students.format_code(secret))


def add_student_file(class_: Class, student: Student, data: bytes, name: str) -> Receipt:
    """Add the rows of a student's file; raises as `Classes.take_file` does, and TooOften."""
    _brought.take(VisitorSource(visitor=f"{class_.id} {student.id}", address=class_.id))
    receipt = findings.classes().take_file(class_, student, data, name)
    findings.changed(class_)
    return receipt


@cache_answers(16, ttl_s=PRUNED_S)
def prune(folder: Path) -> None:
    """Delete expired classes, at most once per `PRUNED_S`; a class that cannot be deleted waits for the next time."""
    try:
        Classes(folder).prune()
    except (CrossoverError, OSError) as error:
        _log.warning("Classes could not be looked through: %s", error)


def _proves_joining(code: str) -> bool:
    """Return whether the link names and proves a student of the class with this code, without a reason if not."""
    student_id, _, token = permits.read_class_proof().partition(".")
    try:
        class_ = findings.classes().find(code)
        student = findings.classes().recognise(class_, student_id, token)
    except CrossoverError:
        return False
    permits.join_class(class_.id, student.id, token)
    permits.list_entered_codes().add(code)
    return True


def _student_of_link(class_: Class) -> Student | None:
    """Return the student that the link proves; a wrong proof counts as a wrong code, once per session, and stays."""
    link = permits.read_class_proof()
    student_id, _, token = link.partition(".")
    if not link or permits.find_refusal(link):
        return None
    try:
        with _tried.tried(permits.source()):
            student = findings.classes().recognise(class_, student_id, token)
    except students.TooOften:
        return None
    except NotAllowed as error:
        permits.note_refusal(link, str(error))
        return None
    permits.join_class(class_.id, student_id, token)
    return student


RETRY_S = 2.0
"""Seconds between two attempts of a page whose code was tried too often."""


def find_linked_class() -> Class | None:
    """Return the class of the link; None if there is none, and then draw the reason."""
    code = permits.read_class_code()
    if not code:
        return None
    with show_errors():
        try:
            return find(code)
        except TooOften:
            st.fragment(_knock, run_every=RETRY_S)(code)
    return None


def draw_class_entrance() -> None:
    left, right = st.columns(2, gap="medium")
    with left, st.form("enter", border=True):
        st.markdown("**Join a class**")
        code = st.text_input("Join code", max_chars=20, placeholder=students.EXAMPLE)
        if st.form_submit_button("Go to the class", type="primary", icon=":material/login:"):
            _enter(code)
    with right:
        teacher.create()


def _enter(code: str) -> None:
    with show_errors():
        try:
            permits.open_class(find(code).code)
        except TooOften:
            permits.open_class(students.format_code(code))  # this page tries again by itself
        st.rerun()


def _knock(code: str) -> None:
    try:
        find(code)
    except TooOften as error:
        st.warning(plain(f"{error} This page tries again by itself."))
        return
    except CrossoverError:  # the page shows it
        pass
    st.rerun()
