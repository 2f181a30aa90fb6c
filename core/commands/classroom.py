"""`class`: create and delete classes on a host, manage their students, and measure for a class on this machine."""

import argparse
import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import units
from ..classroom import results
from ..classroom.classes import DAYS, Class, Classes, Student
from ..classroom.question import ANYBODY, ClassQuestion
from ..classroom.students import EXAMPLE, check_nickname, fold_name, format_code, hash_code, may_join, secret
from ..errors import CrossoverError, InvalidValue, StoreError, unwritable
from ..files import documents
from ..jobs import client
from ..jobs.queue import Queue
from ..question import describe, presets
from ..question.fields import TRAINING
from ..results.store import Store
from ..text import to_file_name
from . import COMMAND_HELP, FAILED, OK, arguments, print_answer, print_result, run

OPTIONS = ("preset", "scale", "axis", "values", "range", "budget_s", "point_budget_s", "pairs")
"""Options that define the question in addition to those of a point; pages use them in commands for students."""


def add_class_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("class", help=COMMAND_HELP["class"])
    actions = parser.add_subparsers(required=True, metavar="action")
    create_parser = _action(actions, create, "create", "create a class; prints the join code and the teacher's code")
    create_parser.add_argument("--name", required=True, help="class name (required)")
    days = f"days until the class is deleted (default: {DAYS})"
    create_parser.add_argument("--days", type=arguments.parse_integer_option, default=DAYS, help=days)
    create_parser.add_argument(
        "--admission", action="store_true", help="let students wait until you admit them (default: off)"
    )
    _add_question(create_parser)
    list_parser = _action(actions, list_classes, "list", "list the classes of this host")
    delete_parser = _action(actions, delete, "delete", "delete a class with all its results")
    delete_parser.add_argument("--code", required=True, help="join code of the class (required)")
    students_parser = _add_students(actions)
    _action(actions, make_code, "code", "create the code that the page requires for new classes")
    measure_parser = _action(actions, measure, "measure", "measure for a class; writes one file to upload on its page")
    measure_parser.add_argument("--code", required=True, help="join code of the class (required)")
    measure_parser.add_argument("--nickname", required=True, help="your nickname on the class page (required)")
    measure_parser.add_argument("--out", type=Path, help="file to write (default: class-CODE-NICKNAME.parquet)")
    arguments.add_options(measure_parser, "fresh", "devices", "store")
    _add_question(measure_parser)
    for each in (create_parser, list_parser, students_parser):
        arguments.add_options(each, "json")


def _action(
    actions: Any, command: Callable[[argparse.Namespace], int], name: str, help: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=help)
    parser.set_defaults(command=command)
    return parser


def _add_students(actions: Any) -> argparse.ArgumentParser:
    """Add the actions on the students of a class; return the parser of the options that select students."""
    named = _action(actions, students, "students", "list the students of a class")
    admit_parser = _action(actions, admit, "admit", "admit waiting students")
    admit_parser.add_argument(
        "--nickname",
        action="append",
        default=[],
        help="student to admit; repeat it for several (default: all waiting students)",
    )
    remove_parser = _action(actions, remove, "remove", "remove students from a class, with all their results")
    remove_parser.add_argument(
        "--nickname", action="append", required=True, help="student to remove; repeat it for several (required)"
    )
    merge_parser = _action(actions, merge, "merge", "give the results of one student to another, then remove the first")
    merge_parser.add_argument("--nickname", required=True, help="student to remove (required)")
    merge_parser.add_argument("--into", required=True, help="student who gets the results (required)")
    for each in (named, admit_parser, remove_parser, merge_parser):
        each.add_argument("--code", required=True, help="join code of the class (required)")
    return named


def create(options: argparse.Namespace) -> int:
    """Print the codes of a new class."""
    question = build_class_question(options)
    made, secret = Classes().create(options.name, question, days=options.days, admission=options.admission)
    facts = {"name": made.name, "code": made.code, "teacher_code": secret, "expires_at": made.expires_at}
    lines = [
        f"Class {made.name}: {question.title}",
        f"Join code: {made.code}   (page: /class?class={made.code})",
        f"Teacher's code: {secret}   (not stored; write it down)",
        f"It is deleted on {made.expires_at[:10]}.",
    ]
    print_answer(options, facts | {"measure": question.words}, "\n".join(lines))
    return OK


def list_classes(options: argparse.Namespace) -> int:
    """Print all classes."""
    classes = Classes()
    lines = [_summary(class_, classes.students(class_)) for class_ in classes.all()]
    damaged = classes.damaged()
    shown = [
        f"{line['code']}  {line['name']}: {line['question']}, {units.format_quantity(line['students'], 'student')}"
        + (f" and {line['waiting']} waiting to be admitted" if line["waiting"] else "")
        for line in lines
    ]
    kept = [f"{classes.folder / name}: {reason} Nothing was deleted." for name, reason in damaged.items()]
    text = "\n".join([*shown, *kept]) or "There are no classes."
    print_answer(options, {"classes": lines, "damaged": damaged}, text)
    return OK


def delete(options: argparse.Namespace) -> int:
    """Delete a class."""
    print_result(f"The class {Classes().delete_by_code(options.code)} is deleted.")
    return OK


def students(options: argparse.Namespace) -> int:
    """Print the students who have joined a class or wait to be admitted."""
    classes, class_ = _class(options.code)
    lines = [_student(classes, class_, student) for student in classes.students(class_)]
    shown = [
        f"{line['nickname']}: {units.format_quantity(line['rows'], 'row')}"
        + ", waiting to be admitted" * line["waiting"]
        + (f". {line['fault']}" if line["fault"] else "")
        for line in lines
    ]
    print_answer(options, {"students": lines}, "\n".join(shown) or "Nobody has joined this class.")
    return OK


def admit(options: argparse.Namespace) -> int:
    """Admit waiting students."""
    classes, class_ = _class(options.code)
    wanted = _find_students(classes, class_, options.nickname) if options.nickname else classes.students(class_)
    count = classes.admit(class_, wanted)
    print_result(f"{units.format_quantity(count, 'student')} admitted.")
    return OK


def remove(options: argparse.Namespace) -> int:
    """Remove students from a class."""
    classes, class_ = _class(options.code)
    wanted = _find_students(classes, class_, options.nickname)
    classes.remove(class_, wanted)
    print_result(f"Removed: {', '.join(student.nickname for student in wanted)}.")
    return OK


def merge(options: argparse.Namespace) -> int:
    """Merge two students."""
    classes, class_ = _class(options.code)
    gone, kept = _find_students(classes, class_, [options.nickname, options.into])
    classes.merge(class_, gone, kept)
    print_result(f"All results of {gone.nickname} now belong to {kept.nickname}.")
    return OK


def make_code(_options: argparse.Namespace) -> int:
    """Print a new code for the host, and the entry for its settings file."""
    code = secret()
    print_result(f'{code}\n\n[class]\ncreate = "code"\ncode_hash = "{hash_code(code)}"')
    return OK


def measure(options: argparse.Namespace) -> int:
    """Measure the question of the class, and write the file to upload."""
    if not may_join(options.code):
        raise InvalidValue("code", options.code, f"a join code, such as {EXAMPLE}")
    nickname = check_nickname(options.nickname)
    question, queue, store = build_class_question(options), Queue(), Store(options.store)
    asked = question.with_contenders(run.choose_contenders(options.devices, queue))
    job = run.show_job_progress(queue, run.submit_question(queue, asked, store, fresh=options.fresh))
    rows = [row for row in client.load_job_rows(queue, job) if not question.objection(row)]
    if not rows:
        return FAILED
    code = format_code(options.code)
    file = options.out or Path(f"class-{code}-{to_file_name(nickname)}.parquet")
    try:
        documents.write_atomically(
            file, lambda into: into.write(results.build_file(rows, code=code, nickname=nickname))
        )
    except OSError as error:
        raise StoreError(unwritable(str(file), error)) from error
    print_result(f"{len(rows)} rows written to {file}; upload it on the class's page.")
    return OK if job.state == "finished" else FAILED


def build_class_question(options: argparse.Namespace) -> ClassQuestion:
    """Return the question that the options describe; raises InvalidValue if they do not describe one."""
    if options.preset and options.scale is None:
        options.scale = "class"
    fields = {name: getattr(options, name, None) for name in (*OPTIONS, *TRAINING)}
    words = describe.format_options(fields | ({"scale": None} if options.scale == "class" else {}))
    title = _class_title(options)
    given = options.axis or options.values or options.range
    if options.preset and not given and not presets.preset(options.preset).axes_at_scale(arguments.scale(options)):
        alone = presets.preset(options.preset).build_question(arguments.scale(options), ANYBODY)
        asked = dataclasses.replace(alone, point=arguments.point(options))
        return ClassQuestion(title=title, words=words, question=asked)
    if not options.preset and not given:
        raise InvalidValue("preset", "", "one of {}, unless --axis says what is varied", presets.PRESETS)
    varied = dataclasses.replace(run.build_sweep(options), contenders=ANYBODY)
    return ClassQuestion(title=title, words=words, question=varied)


def _class(code: str) -> tuple[Classes, Class]:
    classes = Classes()
    return classes, classes.find(code)


def _find_students(classes: Classes, class_: Class, nicknames: list[str]) -> list[Student]:
    by_look = {fold_name(student.nickname): student for student in classes.students(class_)}
    unknown = [nickname for nickname in nicknames if fold_name(nickname) not in by_look]
    if unknown:
        allowed = "a student of this class, as python -m core class students lists them"
        raise InvalidValue("nickname", unknown[0], allowed)
    return [by_look[fold_name(nickname)] for nickname in nicknames]


def _student(classes: Classes, class_: Class, student: Student) -> dict[str, Any]:
    facts = {name: getattr(student, name) for name in ("nickname", "joined_at", "waiting", "fault")}
    with contextlib.suppress(CrossoverError):
        return facts | {"rows": sum(map(results.count_rows, results.list_files(classes.store(class_, student).folder)))}
    return facts | {"rows": 0, "fault": student.fault or "The results cannot be read."}


def _summary(class_: Class, everybody: list[Student]) -> dict[str, Any]:
    waiting = sum(student.waiting for student in everybody)
    return {
        "code": class_.code,
        "name": class_.name,
        "question": class_.question.title,
        "students": len(everybody) - waiting,
        "waiting": waiting,
        "closed": class_.closed,
        "expires_at": class_.expires_at,
    }


def _add_question(parser: argparse.ArgumentParser) -> None:
    arguments.add_point(parser)
    run.add_axes(parser)
    run.add_limits(parser)
    parser.set_defaults(adaptive=False)  # all students measure the same sizes


def _class_title(options: argparse.Namespace) -> str:
    if options.preset:
        title = presets.preset(options.preset).title
        return title if options.scale == "class" else f"{title}, full scale"
    return f"{options.model or 'mlp'} on {options.dataset or 'digits'}"
