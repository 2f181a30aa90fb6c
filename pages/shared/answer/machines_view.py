"""What several machines say to one question: the crossover of each on one chart, a table of machines, each in full.

Draws what `core.answer` says and decides nothing. Machines never share a curve; names that others wrote are plain text,
and those of hosts are for who may see them (`permits.sees_hosts`): others read "machine 3 (AMD EPYC, 2 CPU threads)".
"""

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from core import units
from core.answer.charts import classroom
from core.answer.study import wording
from core.answer.study.machines import many
from core.answer.study.result import Crossover
from core.answer.study.study import Study
from core.errors import CrossoverError
from core.jobs.cluster_machine import ClusterMachine
from core.question.device_kinds import does, in_sentence
from core.question.experiment import titled
from core.question.fields import axis_title
from core.question.sweep import Sweep
from core.results.schema import Trial
from core.text import as_line
from pages.shared.answer import downloads, study_view, sweep_view
from pages.shared.data import prepared, reads
from pages.shared.data.kept import kept
from pages.shared.draw import charts, tables
from pages.shared.draw.text import moment, plain
from pages.shared.frame import permits
from pages.shared.link import choices

MOST_READ = 60
"""Studies of one training that are read to find those of other machines."""

NEWEST = "Newest (UTC)"
"""Name of the column of when the newest run began."""

WIDEST = {"Machine": 250, "Says": 450}
"""Columns that may hold long texts, and as many pixels as each may take."""

DOES = {"finished": "done", "waiting": "waits"}
"""What a machine does, where its word for it is none for people."""


def draw(rows: Sequence[Trial], asked: Sweep, members: Sequence[ClusterMachine]) -> None:
    """Draw what machines measured of a sweep: all on one chart and in a table, then the one that is chosen in full."""
    found = together(rows, asked, members)
    if len(found) > 1:
        names = _study_names(found, members)
        options = list(found)
        bound = choices.bound("machine", options, options[0], names.__getitem__)
        chosen = st.selectbox("One machine in full", options, **bound)
        st.header(plain(names[chosen]))
        rows = [row for row in rows if row.machine_id == chosen]
    if found:
        sweep_view.draw(rows, asked)


def together(
    rows: Sequence[Trial], asked: Sweep, members: Sequence[ClusterMachine], *, save: bool = True
) -> Mapping[str, Study]:
    """Draw one chart with the crossover of every machine, and a table of them; those that have something.

    Without `save` it cannot be taken along, as while it still grows.
    """
    found = many.by_machine(prepared.studies(rows, asked.axes[0].name), asked)
    _together(found, members, save=save)
    return found


def draw_last() -> None:
    """Draw the machines of the last sweep on a cluster, if there was one."""
    if found := reads.machines():
        st.header("Machines of the last sweep on a cluster")
        listing(found)


def listing(members: Sequence[ClusterMachine]) -> None:
    """Draw a table of machines."""
    _together({}, members)


def beside(of: Study) -> None:
    """Draw what other machines say to the question of a study, if one was asked it."""
    first = of.runs[0][0]
    alike = (of.axis, of.challenger, first.dataset, first.model, first.training)
    lines = [
        line
        for line in reads.study_lines()
        if (line.axis, line.challenger, line.dataset, line.model, line.training) == alike
    ]
    others = many.same_question(of, reads.whole(lines[:MOST_READ]).values()) if len(lines) > 1 else []
    if others:
        st.header(f"The same question on {len(others) + 1} machines")
        found = {many.machine_of(study): study for study in (of, *others)}
        _together(dict(sorted(found.items())), ())


def without_hosts(text: str, members: Sequence[ClusterMachine]) -> str:
    """What is said of machines, as who looks at the page may read it."""
    for host, name in sorted(_member_names(members).items(), reverse=True):  # of two, the longer one first
        text = name.join(re.split(rf"(?<!\w){re.escape(host)}(?!\w)", text))
    return text


def _together(found: Mapping[str, Study], members: Sequence[ClusterMachine], *, save: bool = True) -> None:
    names, called = _study_names(found, members), _member_names(members)
    located = {machine_id: answer for machine_id, study in found.items() if (answer := _located(study)).sizes}
    if any(answer.crossings or answer.outcome in classroom.ENDS for answer in located.values()):
        drawn = {machine_id: wording.short(names[machine_id]) for machine_id in located}
        drawn = drawn if len({*drawn.values()}) == len(drawn) else names
        answers = {drawn[machine_id]: answer for machine_id, answer in located.items()}
        kinds = {drawn[machine_id]: found[machine_id].runs[0][1].device_kind for machine_id in located}
        spec, first = _chart(answers, kinds), next(iter(found.values()))
        charts.chart(spec, alt=f"Crossover of {units.counted(len(answers), 'machine')}")
        base, other = titled(first.baseline), titled(first.challenger)
        along = axis_title(first.axis)
        st.caption(
            plain(
                f"From which {along} on {does(other, 'is', 'are')} faster than {in_sentence(base)}, with its 95 % "
                "interval; steps only. "
                "Each machine answers by itself: times of two are never put together."
            )
        )
        rows = [row for study in found.values() for run in study.runs for row in run]
        if save:
            downloads.chart(spec, f"machines-{first.id}", title="Crossover of each machine", rows=rows, axis=first.axis)
    by_name = sorted(members, key=lambda member: list(called).index(member.host))
    lines = [_line(called[member.host], found.get(_rows_id(member, found)), member) for member in by_name]
    asked = {_rows_id(member, found) for member in members}
    lines += [_line(names[machine_id], study, None) for machine_id, study in found.items() if machine_id not in asked]
    known = [column for column in (lines[0] if lines else ()) if any(line[column] not in ("", None) for line in lines)]
    if known:
        tables.table(
            [{name: line[name] for name in known} for line in lines],
            height="content",
            column_config={
                NEWEST: st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm", timezone="UTC"),
                **{name: st.column_config.Column(width=_width(lines, name)) for name in WIDEST},
            },
            alt="Machines",
        )


@kept(64)
def _chart(answers: Mapping[str, Crossover], kinds: Mapping[str, str]) -> dict[str, Any]:
    """The chart of the crossover of each machine, by their names."""
    return classroom.by_machine(answers, kinds)


def _width(lines: Sequence[Mapping[str, Any]], column: str) -> int:
    """Pixels of a column with its title, as far as it may have them."""
    return min(WIDEST[column], tables.room([column, *(str(line[column]) for line in lines)]))


def _located(study: Study) -> Crossover:
    """The answer of a machine; one without any size where its rows cannot be compared, which the table says."""
    try:
        return prepared.located(study, "steady").answer
    except CrossoverError:
        return Crossover(axis=study.axis, basis="steady", baseline=study.baseline, challenger=study.challenger)


def _numbers(members: Iterable[ClusterMachine]) -> dict[str, int]:
    """By host the number of a machine, in the order of what its rows are called by."""
    ordered = sorted(members, key=lambda member: (member.own_id, member.host))
    return {member.host: number for number, member in enumerate(ordered, 1)}


def _member_names(members: Sequence[ClusterMachine]) -> dict[str, str]:
    """By host, in the order of a list, what people call a machine."""
    if permits.sees_hosts():
        return {host: host for host in sorted(member.host for member in members)}
    numbers, about = _numbers(members), {member.host: member for member in members}
    return {host: many.label([number], about[host].cpu, about[host].threads) for host, number in numbers.items()}


def _study_names(found: Mapping[str, Study], members: Sequence[ClusterMachine]) -> dict[str, str]:
    """By machine of rows, what people call it; those that share points are one, as their rows are."""
    numbers, names, seen = _numbers(members), dict[str, str](), permits.sees_hosts()
    free = itertools.count(len(numbers) + 1)
    for machine_id in sorted(found):
        hosts = sorted(member.host for member in members if _rows_id(member, found) == machine_id)
        row = found[machine_id].runs[0][0]
        several = sorted(numbers[host] for host in hosts) or [next(free)]
        said = ", ".join(hosts) if hosts and seen else many.label(several, row.cpu_name, row.cores_usable)
        names[machine_id] = as_line(said)
    return names


def _rows_id(member: ClusterMachine, found: Collection[str]) -> str:
    """The machine that the rows of one name: itself, or all that are alike."""
    return member.own_id if member.own_id in found else member.machine_id


def _line(name: str, study: Study | None, member: ClusterMachine | None) -> dict[str, Any]:
    said = study_view.in_short(partial(prepared.located, study, "steady")) if study and len(study.runs) > 1 else ""
    device = study.runs[-1][1] if study else None
    return {
        "Machine": name,
        "State": DOES.get(member.state, member.state) if member else "",
        "Points": _points(member) if member else "",
        "Left": _left(member) if member else "",
        "Crossover": said,
        "Says": (member.doing if member.state == "measuring" else member.message) if member else "",
        "Devices": ", ".join(member.devices) if member else device.device_name if device else "",
        "Processor": member.cpu if member else study.runs[0][0].cpu_name if study else "",
        "Kind of machine": (member.machine_id if member else many.machine_of(study) if study else "")[:6],
        "Sizes": len(study.runs) if study and not member else None,
        NEWEST: moment(study.newest) if study else None,
    }


def _left(member: ClusterMachine) -> str:
    """How long what a machine measures may still take; what it said before it ended is left out."""
    return f"about {units.rough(member.left_s)}" if member.state == "measuring" and member.left_s is not None else ""


def _points(member: ClusterMachine) -> str:
    if member.state in ("free", "busy"):  # what it says is of a question of before
        return ""
    total = f" of {member.total}" if member.total else ""
    return f"{member.done}{total}" if member.done or total else ""
