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
from core.jobs.shared.members import Member
from core.question.device_kinds import does, in_sentence
from core.question.experiment import titled
from core.question.fields import axis_title
from core.question.sweep import Sweep
from core.results.schema import Trial
from core.text import as_line
from pages.shared.answer import downloads, study_view, sweep_view
from pages.shared.cache import cache_answers
from pages.shared.data import prepared, reads
from pages.shared.draw import charts, tables
from pages.shared.draw.text import parse_date, plain
from pages.shared.frame import permits
from pages.shared.link import choices

MAX_READ_ROWS = 60
"""Studies of one training that are read to find those of other machines."""

NOBODY = "No machine is at work there now. On each: `python -m core worker --store …`, with the address of this store."

NEWEST = "Newest (UTC)"
"""Name of the column of when the newest run began."""

WIDEST = {"Machine": 250, "Says": 450}
"""Columns that may hold long texts, and as many pixels as each may take."""

DOES = {"finished": "done", "waiting": "waits"}
"""What a machine does, where its word for it is none for people."""


def draw_machines(rows: Sequence[Trial], request: Sweep, members: Sequence[Member]) -> None:
    """Draw what machines measured of a sweep: all on one chart and in a table, then the one that is chosen in full."""
    found = draw_machines_chart(rows, request, members)
    if len(found) > 1:
        names = _name_machine_studies(found, members)
        options = list(found)
        bound = choices.bind_choice("machine", options, options[0], names.__getitem__)
        chosen = st.selectbox("One machine in full", options, **bound)
        st.header(plain(names[chosen]))
        rows = [row for row in rows if row.machine_id == chosen]
    if found:
        sweep_view.draw_sweep(rows, request)


def draw_machines_chart(
    rows: Sequence[Trial], request: Sweep, members: Sequence[Member], *, save: bool = True
) -> Mapping[str, Study]:
    """Draw one chart with the crossover of every machine, and a table of them; those that have something.

    Without `save` it cannot be taken along, as while it still grows.
    """
    found = many.by_machine(prepared.group_studies(rows, request.axes[0].name), request)
    _draw_crossovers(found, members, save=save)
    return found


def draw_working_machines() -> None:
    """Draw the machines that work for whoever shares this store."""
    members, failure = reads.list_machines()
    st.header("Machines that share this store")
    if failure:
        st.warning(plain(failure))
    elif members:
        draw_machines_table(members)
    else:
        st.caption(NOBODY)


def draw_machines_table(members: Sequence[Member]) -> None:
    """Draw a table of machines."""
    _draw_crossovers({}, members)


def draw_other_machines(study: Study) -> None:
    """Draw what other machines say to the question of a study, if one was asked it."""
    first = study.runs[0][0]
    alike = (study.axis, study.challenger, first.dataset, first.model, first.training)
    lines = [
        line
        for line in reads.list_study_lines()
        if (line.axis, line.challenger, line.dataset, line.model, line.training) == alike
    ]
    others = many.same_question(study, reads.find_studies(lines[:MAX_READ_ROWS]).values()) if len(lines) > 1 else []
    if others:
        st.header(f"The same question on {len(others) + 1} machines")
        found = {many.machine_of(each): each for each in (study, *others)}
        _draw_crossovers(dict(sorted(found.items())), ())


def hide_hosts(text: str, members: Sequence[Member]) -> str:
    """What is said of machines, as who looks at the page may read it."""
    for host, name in sorted(_name_members(members).items(), reverse=True):  # of two, the longer one first
        text = name.join(re.split(rf"(?<!\w){re.escape(host)}(?!\w)", text))
    return text


def _draw_crossovers(studies: Mapping[str, Study], members: Sequence[Member], *, save: bool = True) -> None:
    names, called = _name_machine_studies(studies, members), _name_members(members)
    located = {machine_id: answer for machine_id, study in studies.items() if (answer := _locate_or_empty(study)).sizes}
    if any(answer.crossings or answer.outcome in classroom.ENDS for answer in located.values()):
        drawn = {machine_id: wording.short(names[machine_id]) for machine_id in located}
        drawn = drawn if len({*drawn.values()}) == len(drawn) else names
        answers = {drawn[machine_id]: answer for machine_id, answer in located.items()}
        kinds = {drawn[machine_id]: studies[machine_id].runs[0][1].device_kind for machine_id in located}
        spec, first = _make_machines_chart(answers, kinds), next(iter(studies.values()))
        charts.draw_chart(spec, alt=f"Crossover of {units.counted(len(answers), 'machine')}")
        base, other = titled(first.baseline), titled(first.challenger)
        along = axis_title(first.axis)
        st.caption(
            plain(
                f"From which {along} on {does(other, 'is', 'are')} faster than {in_sentence(base)}, with its 95 % "
                "interval; steps only. "
                "Each machine answers by itself: times of two are never put together."
            )
        )
        rows = [row for study in studies.values() for run in study.runs for row in run]
        if save:
            downloads.draw_chart_downloads(
                spec, f"machines-{first.id}", title="Crossover of each machine", rows=rows, axis=first.axis
            )
    by_name = sorted(members, key=lambda member: list(called).index(member.host))
    lines = [
        _make_machine_line(called[member.host], studies.get(_find_rows_id(member, studies)), member)
        for member in by_name
    ]
    asked = {_find_rows_id(member, studies) for member in members}
    lines += [
        _make_machine_line(names[machine_id], study, None)
        for machine_id, study in studies.items()
        if machine_id not in asked
    ]
    known = [column for column in (lines[0] if lines else ()) if any(line[column] not in ("", None) for line in lines)]
    if known:
        tables.draw_table(
            [{name: line[name] for name in known} for line in lines],
            height="content",
            column_config={
                NEWEST: st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm", timezone="UTC"),
                **{name: st.column_config.Column(width=_measure_width(lines, name)) for name in WIDEST},
            },
            alt="Machines",
        )


@cache_answers(64)
def _make_machines_chart(answers: Mapping[str, Crossover], kinds: Mapping[str, str]) -> dict[str, Any]:
    """The chart of the crossover of each machine, by their names."""
    return classroom.by_machine(answers, kinds)


def _measure_width(lines: Sequence[Mapping[str, Any]], column: str) -> int:
    """Pixels of a column with its title, as far as it may have them."""
    return min(WIDEST[column], tables.measure_column([column, *(str(line[column]) for line in lines)]))


def _locate_or_empty(study: Study) -> Crossover:
    """The answer of a machine; one without any size where its rows cannot be compared, which the table says."""
    try:
        return prepared.locate_crossover(study, "steady").answer
    except CrossoverError:
        return Crossover(axis=study.axis, basis="steady", baseline=study.baseline, challenger=study.challenger)


def _number_machines(members: Iterable[Member]) -> dict[str, int]:
    """By host the number of a machine, in the order of what its rows are called by."""
    ordered = sorted(members, key=lambda member: (member.own_id, member.host))
    return {member.host: number for number, member in enumerate(ordered, 1)}


def _name_members(members: Sequence[Member]) -> dict[str, str]:
    """By host, in the order of a list, what people call a machine."""
    if permits.sees_hosts():
        return {host: host for host in sorted(member.host for member in members)}
    numbers, about = _number_machines(members), {member.host: member for member in members}
    return {host: many.label([number], about[host].cpu, about[host].threads) for host, number in numbers.items()}


def _name_machine_studies(studies: Mapping[str, Study], members: Sequence[Member]) -> dict[str, str]:
    """By machine of rows, what people call it; those that share points are one, as their rows are."""
    numbers, names, seen = _number_machines(members), dict[str, str](), permits.sees_hosts()
    free = itertools.count(len(numbers) + 1)
    for machine_id in sorted(studies):
        hosts = sorted(member.host for member in members if _find_rows_id(member, studies) == machine_id)
        row = studies[machine_id].runs[0][0]
        several = sorted(numbers[host] for host in hosts) or [next(free)]
        said = ", ".join(hosts) if hosts and seen else many.label(several, row.cpu_name, row.cores_usable)
        names[machine_id] = as_line(said)
    return names


def _find_rows_id(member: Member, row_ids: Collection[str]) -> str:
    """The machine that the rows of one name: itself, or all that are alike."""
    return member.own_id if member.own_id in row_ids else member.machine_id


def _make_machine_line(name: str, study: Study | None, member: Member | None) -> dict[str, Any]:
    said = (
        study_view.summarize_located(partial(prepared.locate_crossover, study, "steady"))
        if study and len(study.runs) > 1
        else ""
    )
    device = study.runs[-1][1] if study else None
    return {
        "Machine": name,
        "State": DOES.get(member.state, member.state) if member else "",
        "Points": _describe_points(member) if member else "",
        "Left": _describe_time_left(member) if member else "",
        "Crossover": said,
        "Says": (member.doing if member.state == "measuring" else member.message) if member else "",
        "Devices": ", ".join(member.devices) if member else device.device_name if device else "",
        "Processor": member.cpu if member else study.runs[0][0].cpu_name if study else "",
        "Kind of machine": (member.machine_id if member else many.machine_of(study) if study else "")[:6],
        "Sizes": len(study.runs) if study and not member else None,
        NEWEST: parse_date(study.newest) if study else None,
    }


def _describe_time_left(member: Member) -> str:
    """How long what a machine measures may still take; what it said before it ended is left out."""
    return f"about {units.rough(member.left_s)}" if member.state == "measuring" and member.left_s is not None else ""


def _describe_points(member: Member) -> str:
    if member.state in ("free", "busy"):  # what it says is of a question of before
        return ""
    total = f" of {member.total}" if member.total else ""
    return f"{member.done}{total}" if member.done or total else ""
