"""Who comes into a class and what they may do there: codes, proofs of having joined, and how often each is tried.

How often codes are tried, and classes made and joined, is counted here, for all sessions together; who has been let in
is never asked for it again.
"""

import logging
from pathlib import Path

from core.classroom import codes, limits
from core.classroom.classes import Class, Classes, Prediction, Student
from core.classroom.limits import Limits, Source
from core.classroom.question import ClassQuestion
from core.classroom.results import Receipt
from core.errors import CrossoverError, NotAllowed
from core.question import policy
from pages.classroom import findings
from pages.shared import membership, permits
from pages.shared.cache import cache_answers

PRUNED_S = 3600.0
"""How often classes whose time is over are looked for, at most."""

WRONG_CODES = "Too many wrong codes were tried"

_tried = Limits(WRONG_CODES, limits.CODES)
_secrets_tried = Limits(WRONG_CODES, limits.SECRETS)
_joined = Limits("Too many students joined this class", limits.JOINS)
_made = Limits("Too many classes were made", limits.MADE)
_brought = Limits("Too many files were brought", limits.FILES)

_log = logging.getLogger(__name__)


def find(code: str) -> Class:
    """The class with a join code.

    Who has opened it before, or proves to have joined it, is never held up by how many codes were tried. A code that
    was typed differently is told so at once; any other wrong one counts, once in a session.

    Raises:
        TooOften: too many wrong codes were tried.
        NotAllowed: there is no such class.
        StoreError: its file is damaged.
    """
    if not codes.may_join(code):
        raise NotAllowed(codes.MISTYPED)
    code = codes.format_code(code)
    if code in membership.list_entered_codes() or _proves_joining(code):
        return findings.classes().find(code)
    if sentence := membership.find_refusal(code):
        raise NotAllowed(sentence)
    with _tried.tried(permits.source()):
        try:
            class_ = findings.classes().find(code)
        except NotAllowed as error:
            membership.note_refusal(code, str(error))
            raise
    membership.list_entered_codes().add(code)
    return class_


def require_secret(code: str, kept: str) -> None:
    """Raise NotAllowed if a secret code is wrong, which is counted, or if too many wrong ones were tried."""
    wrong = NotAllowed("This is not the right code.")
    if not codes.may_match(code):
        raise wrong
    with _secrets_tried.tried(permits.source()):
        if not codes.matches(code, kept):
            raise wrong


def create(name: str, preset: str, *, admission: bool, code: str) -> tuple[Class, str]:
    """Make a class, as far as the host lets who looks at the page; returns it and the teacher's code.

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
    """Let who looks at the page take part in a class, or wait to be admitted.

    Raises:
        InvalidValue: the nickname is not allowed.
        NotAllowed: it is taken, the class is closed or full, or too many have joined from here.
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
    membership.join_class(class_.id, student.id, token)
    return student


def predict(class_: Class, student: Student, prediction: Prediction) -> None:
    """Write down what a student expects; raises as `Classes.predict` does."""
    findings.classes().predict(class_, student, prediction)
    findings.changed(class_)


def me(class_: Class) -> Student | None:
    """Who looks at the page, in this class; None who has not joined it. Raises StoreError if their file is damaged."""
    student_id, token = membership.find_membership(class_.id)
    if not student_id:
        return _student_of_link(class_)
    try:
        student = findings.classes().recognise(class_, student_id, token)
    except NotAllowed:  # taken out since
        return None
    membership.join_class(class_.id, student_id, token)
    return student


def teaches(class_: Class) -> bool:
    """Whether who looks at the page gave the teacher's code of a class, in this session or by the teacher's own link.

    A wrong one in the link counts as one that was typed does, once in a session, and stays in the link.
    """
    if secret := membership.find_teacher_code(class_.id):
        membership.note_teacher_code(class_.id, secret)
        return True
    link = membership.read_teacher_code()
    if not link or membership.find_refusal(link):
        return False
    try:
        teach(class_, link)
    except limits.TooOften:
        return False
    except NotAllowed as error:
        membership.note_refusal(link, str(error))
        return False
    return True


def teach(class_: Class, secret: str) -> None:
    """Open the teacher's view of a class with the teacher's code; raises as `require_secret` does."""
    require_secret(secret, class_.secret_hash)
    membership.note_teacher_code(class_.id, codes.format_code(secret))


def add_student_file(class_: Class, student: Student, data: bytes, name: str) -> Receipt:
    """Add the rows of a student's file; raises as `Classes.take_file` does, and TooOften."""
    _brought.take(Source(visitor=f"{class_.id} {student.id}", address=class_.id))
    receipt = findings.classes().take_file(class_, student, data, name)
    findings.changed(class_)
    return receipt


@cache_answers(16, ttl_s=PRUNED_S)
def prune(folder: Path) -> None:
    """Drop classes whose time is over, now and then; what cannot be dropped waits for the next time."""
    try:
        Classes(folder).prune()
    except (CrossoverError, OSError) as error:
        _log.warning("Classes could not be looked through: %s", error)


def _proves_joining(code: str) -> bool:
    """Whether the link says who one is in the class of a code, and proves it; nothing is said of why not."""
    student_id, _, token = membership.read_class_proof().partition(".")
    try:
        class_ = findings.classes().find(code)
        student = findings.classes().recognise(class_, student_id, token)
    except CrossoverError:
        return False
    membership.join_class(class_.id, student.id, token)
    membership.list_entered_codes().add(code)
    return True


def _student_of_link(class_: Class) -> Student | None:
    """Who one is by the link; a wrong proof counts as a wrong code does, once in a session, and stays in the link."""
    link = membership.read_class_proof()
    student_id, _, token = link.partition(".")
    if not link or membership.find_refusal(link):
        return None
    try:
        with _tried.tried(permits.source()):
            student = findings.classes().recognise(class_, student_id, token)
    except limits.TooOften:
        return None
    except NotAllowed as error:
        membership.note_refusal(link, str(error))
        return None
    membership.join_class(class_.id, student_id, token)
    return student
