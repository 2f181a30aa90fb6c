"""`worker`, `machines`, and `--on` of a sweep: one question on many machines that share a store."""

import argparse
import contextlib
import dataclasses
import re
import shutil
import signal
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from .. import units
from ..answer import many_machines, study
from ..answer.export import report
from ..answer.result import Basis, Crossover
from ..errors import CrossoverError, InvalidValue, JobError, require_choice
from ..jobs.queue import Queue
from ..jobs.shared import asking, board
from ..jobs.shared.asking import Seen
from ..jobs.shared.board import Board, Question
from ..jobs.shared.launching import Launcher, launcher
from ..jobs.shared.member import Working
from ..jobs.shared.members import SPREADS, Member
from ..jobs.shared.presence import introduced
from ..question import describe
from ..question.sweep import Sweep
from ..results import environment, index
from ..results.schema import Trial
from ..results.store import Store
from . import COMMAND_HELP, FAILED, OK, arguments, measuring, output

_HERE_FOR = ("--for", f"{2 * asking.GATHER_S:.0f}s")
"""Told to machines that shall only say who they are; they end sooner where they can be ended."""

FOREVER_S = 10 * 365 * 86_400.0

_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)(s|min|h|d)")
_SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}


def add_machines_command(commands: Any) -> None:
    """Add both commands to the parser's commands."""
    parser = commands.add_parser("worker", help=COMMAND_HELP["worker"])
    arguments.add_options(parser, "store")
    parser.add_argument(
        "--for", dest="for_s", type=_span, metavar="TIME", default=FOREVER_S, help="how long, as 90s, 30min or 2h"
    )
    parser.add_argument("--question", default="", help="only this one, and until it is over; any unless given")
    parser.set_defaults(command=worker)
    parser = commands.add_parser("machines", help=COMMAND_HELP["machines"])
    arguments.add_options(parser, "store")
    parser.add_argument("--on", default="workers", help=f"whose: {measuring.WHERE}")
    parser.add_argument("--close", metavar="QUESTION", help="take away a question that is asked there; all stop")
    arguments.add_options(parser, "json")
    parser.set_defaults(command=machines)


def require(options: argparse.Namespace) -> None:
    """Refuse what other machines cannot be asked; raises InvalidValue."""
    if options.devices is None:
        raise InvalidValue("devices", "", "given with --on, as machines differ: cpu@1,cpu or cpu,cuda:0")
    if options.training is not None:
        raise InvalidValue("training", options.training, "measured here: code is given to no other machine")


def worker(options: argparse.Namespace) -> int:
    """Measure what others ask until the time is over, or the one question is."""
    queue = Queue()
    store, at = Store(options.store), board.board_of(options.store)
    store.check_writable()
    signal.signal(signal.SIGTERM, _leave)  # as Slurm ends what has no time left, or was cancelled
    try:
        found = measuring.require_machine(queue)
    except JobError as error:
        about = introduced(at, queue, environment.read_environment())
        at.tell(dataclasses.replace(about, state="failed", question=options.question, message=str(error)))
        raise
    output.print_note(f"{found.environment.cpu_name} answers what is asked at {options.store}; Ctrl+C ends it.")
    working = Working(at, store, queue, found, lambda member: output.print_note(_line(member)))
    try:
        last = working.work(for_s=options.for_s, only=options.question)
    except KeyboardInterrupt:
        return OK
    finally:
        _tidy_up(queue)
    return FAILED if last.state == "failed" else OK


def _tidy_up(queue: Queue) -> None:
    """End a measuring process that nobody needs now: it is another's machine, or that of a cluster."""
    with contextlib.suppress(JobError, PermissionError), queue.guard():
        if not queue.active():
            queue.worker_file.dismiss()


def _leave(_number: int, _frame: object) -> NoReturn:
    """End as at a keyboard's interrupt: what is measured is stopped, and what is held is given back."""
    raise KeyboardInterrupt


def machines(options: argparse.Namespace) -> int:
    """Print who is there, and what is asked; machines of a cluster are brought to say who they are."""
    at = board.board_of(options.store)
    if options.close is not None:
        return _closed(at, options.close)
    with launcher(options.on, options.store, *_HERE_FOR) as keeper:
        members = asking.gathered(at, keeper)
        if len(members) < keeper.machines:
            output.print_note(
                f"{len(members)} of {units.format_quantity(keeper.machines, 'machine')} said who they are."
            )
    asked = at.asked(lapsed=True)
    alone_s = at.alone_s() if asked else {}
    ended = {question_id: list(at.ends(question_id).values()) for question_id in asked}
    lines = _overview(members)
    for name, question in asked.items():
        lines += _standing(name, question, members, ended[name]) + _left_alone(name, alone_s.get(name, 0.0))
    questions = [
        {
            "id": name,
            **_question_plain(question, members),
            "alone_s": alone_s.get(name, 0.0),
            "ended": list(map(_plain, ended[name])),
        }
        for name, question in asked.items()
    ]
    output.print_answer(options, {"machines": list(map(_plain, members)), "questions": questions}, "\n".join(lines))
    return OK


def _overview(members: list[Member]) -> list[str]:
    """Machines in lines for people, those that are alike together."""
    lines = [] if members else ["No machine is at work here."]
    for alike in _groups(members, alike=True):
        first = alike[0]
        devices = ", ".join(dict.fromkeys((first.cpu, *first.devices)))
        title = f"{units.format_quantity(len(alike), 'machine')} of kind {first.machine_id}: {devices}"
        lines += [_wrapped("", title), *_table(alike)]
    return lines


def _standing(question_id: str, question: Question | str, members: list[Member], ended: list[Member]) -> list[str]:
    """How a question stands, in lines for people."""
    if isinstance(question, str):
        return ["", f"Asked: {question_id}", _wrapped("  ", question)]
    rest = units.format_time_left(asking.left_s(question, members))
    asked = f"{describe.describe_question(question.sweep)}; {SPREADS[question.spread]}."
    lines = ["", f"Asked: {question_id}{rest}", _wrapped("  ", asked)]
    left = [member for member in ended if member.host not in {other.host for other in members}]
    return lines + (["Done with it, and not there any more:", *_table(left)] if left else [])


def _left_alone(question_id: str, alone_s: float) -> list[str]:
    """What is said of a question whose asker is gone."""
    if alone_s < 2 * asking.FOLLOW_S:
        return []
    rest_s = board.LAPSE_S - alone_s
    lapses = f"lapses in {units.format_rough_time(rest_s)}" if rest_s > 0 else "has lapsed"
    said = (
        f"Nobody has followed it for {units.format_rough_time(alone_s)}; it {lapses}. The same sweep goes on with "
        "it, and"
    )
    return [_wrapped("  ", f"{said} machines --close {question_id} takes it away.")]


def _closed(at: Board, question_id: str) -> int:
    """Take a question away."""
    if question_id not in at.asked(lapsed=True):
        raise InvalidValue("close", question_id, "a question that is asked there, as machines lists them")
    at.close(question_id)
    output.print_note(f"{question_id} was taken away: all who work on it stop.")
    return OK


def _question_plain(question: Question | str, members: list[Member]) -> dict[str, Any]:
    if isinstance(question, str):
        return {"refused": question}
    left_s = asking.left_s(question, members)
    return {"sentence": describe.describe_question(question.sweep), "spread": question.spread, "left_s": left_s}


def _table(members: list[Member]) -> list[str]:
    """A line for each machine, long sentences below each other."""
    host, state = (max(len(getattr(member, name)) for member in members) for name in ("host", "state"))
    return [_wrapped(f"  {each.host:{host}}  {each.state:{state}}  ", each.message) for each in members]


def _wrapped(start: str, text: str) -> str:
    """A start and a text behind it, in as many lines as the terminal needs, below each other."""
    columns = max(40, shutil.get_terminal_size().columns)
    return textwrap.fill(start + text, columns, subsequent_indent=" " * (len(start) or 2)).rstrip()


def ask(asked: Sweep, options: argparse.Namespace) -> int:
    """Have a sweep measured by the machines that share the store; print what each says."""
    question = Question(sweep=asked, spread=require_choice("spread", options.spread, SPREADS))
    at, keeper = board.board_of(options.store), launcher(options.on, options.store, "--question", question.id)
    seen = _followed(at, question, keeper)
    index.list_files(options.store, now=True)
    found: dict[str, list[Trial]] = {}
    ids = {host: member.rows_id(question.spread) for host, member in seen.ended.items()}
    for row in many_machines.rows(Store(options.store), asked, set(ids.values())):
        found.setdefault(row.machine_id, []).append(row)
    answered = {host: rows for host, machine_id in ids.items() if (rows := found.get(machine_id))}
    _show(asked, seen, answered, options)
    groups = _groups(seen.ended.values(), alike=options.spread == "shared")
    complete = all(any(member.state == "finished" for member in group) for group in groups)
    return OK if answered and complete else FAILED


def _followed(at: Board, question: Question, keeper: Launcher) -> Seen:
    output.print_note(f"Asked as {question.id}: python -m core worker joins with the same --store.")
    last = Seen()

    def tell(seen: Seen) -> None:
        nonlocal last
        before, last = {**last.present, **last.ended}, seen
        for host, member in {**seen.present, **seen.ended}.items():
            if before.get(host) != member:
                output.print_note(_line(member))
        if seen.failure:
            output.print_note(seen.failure)

    with keeper:
        try:
            return asking.follow(at, question, tell, keeper.keep)
        except KeyboardInterrupt:
            output.print_note("Stopped; what was measured by then is in the store.")
            return last


def _show(asked: Sweep, seen: Seen, answered: Mapping[str, list[Trial]], options: argparse.Namespace) -> None:
    """Print the answer of every machine; of those that are alike and share a question there is one."""
    basis: Basis = options.basis or "steady"
    shared = options.spread == "shared"
    lines, found = [], []
    for hosts in _groups(seen.ended.values(), alike=shared):
        rows = answered.get(hosts[0].host, [])
        answers, why = _answers(asked, rows, basis)
        said = [answer.sentence for answer in answers] or list(filter(None, [why]))
        names = ", ".join(member.host for member in hosts)
        troubles = " ".join(dict.fromkeys(member.message for member in hosts if member.message))
        lines.append(f"{names} ({hosts[0].cpu}): {' '.join(said) or troubles or 'nothing was measured.'}")
        points = len({row.experiment_id for row in rows})
        documents = list(map(report.crossover_document, answers))
        found.append({"members": list(map(_plain, hosts)), "points": points, "crossovers": said, "answers": documents})
    if options.json:
        output.print_json({"sweep_id": asked.id, **asked.to_json(), "machines": found})
    else:
        output.print_result("\n".join(lines) or "No machine answered.")


def _groups(members: Iterable[Member], *, alike: bool) -> list[list[Member]]:
    groups: dict[str, list[Member]] = {}
    for member in sorted(members, key=lambda member: member.host):
        groups.setdefault(member.machine_id if alike else member.host, []).append(member)
    return list(groups.values())


def _answers(asked: Sweep, rows: list[Trial], basis: Basis) -> tuple[list[Crossover], str]:
    """The crossovers of a machine, or why there are none."""
    try:
        return [study.crossover(entry, basis) for entry in study.studies(rows, axis=asked.axes[0].name)], ""
    except CrossoverError as error:
        return [], str(error) if rows else ""


def _line(member: Member) -> str:
    return ": ".join(filter(None, (f"{member.host} ({member.cpu})", member.state, member.message)))


def _plain(member: Member) -> dict[str, Any]:
    return dataclasses.asdict(member)


def _span(text: str) -> float:
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"a time such as 90s, 30min or 2h, not {text}")
    return float(match[1]) * _SECONDS[match[2]]
