"""A sweep as pages show it: its studies, a grid of several axes, and the machines that measured it."""

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from core import units
from core.answer import recorded_machines, wording
from core.answer.charts import lesson_charts
from core.answer.charts.study_charts import Cell
from core.answer.export import report
from core.answer.judgement import Basis, Crossover, Size
from core.answer.run import RunRow
from core.answer.study import Study, find_same_question, group_by_machine
from core.errors import CrossoverError, InvalidValue
from core.jobs.cluster_machine import ClusterMachine
from core.jobs.machine import Machine
from core.question.experiment import Contender, Point, display_name, inline_name
from core.question.fields import axis_title, value_label
from core.question.lanes import does, inline_device_name
from core.question.sweep import Axis, Sweep, size_on_axis
from core.results.schema import Trial
from core.text import as_line
from pages.shared import accelerators_view, elements, links, permits, queries, run_view, session, study_view
from pages.shared.cache import cache_answers
from pages.shared.elements import parse_date, plain, show_errors


def draw_sweep(rows: Sequence[Trial], request: Sweep, machine: Machine | None = None) -> None:
    """Draw the rows of a sweep with the chosen recorded accelerator, below an index."""
    with elements.draw_index():
        _draw_sweep_sections(rows, request, machine)


def _draw_sweep_sections(rows: Sequence[Trial], request: Sweep, machine: Machine | None) -> None:
    found = queries.group_studies(rows, request.axes[0].name)
    chosen = _choose_study(found, request)
    basis: Basis = "steady"
    mapped = st.container()
    if chosen is not None:
        basis = _draw_one_study(chosen, [other for other in found if _is_same_slice(other, chosen, request)])
        run_view.draw_best_lanes(chosen, rows, found, basis)
    _draw_two_machines(rows, request.axes[0].name, machine, basis=basis if chosen else None)
    if len(request.axes) > 1:
        with mapped:
            _draw_map(request, found, chosen, basis)
        _draw_grid(rows, request, found)
    _draw_sweep_downloads(rows, request, {**links.make_sweep_link(request), "sweep": request.id}, name=request.id)


def draw_study(study: Study, machine: Machine | None = None) -> None:
    """Draw a stored study with the chosen recorded accelerator, below an index."""
    with elements.draw_index():
        _draw_study_sections(study, machine)


def _draw_study_sections(study: Study, machine: Machine | None) -> None:
    rows = [row for run in study.runs for row in run]
    together = (study.challenger, study.axis, {run[0].run_id for run in study.runs})
    lines = [line for line in queries.list_study_lines() if (line.challenger, line.axis, set(line.run_ids)) == together]
    others = list(queries.find_studies(lines).values())
    basis = _draw_one_study(study, others)
    everybody = queries.find_rows(run_ids=[row.run_id for row in rows])
    run_view.draw_best_lanes(study, everybody, queries.group_studies(everybody, study.axis), basis)
    _draw_two_machines(rows, study.axis, machine, basis=basis)
    _draw_sweep_downloads(rows, find_sweep_of_study(study), {"study": study.id}, name=study.id)


def _draw_two_machines(rows: Sequence[Trial], axis: str, machine: Machine | None, *, basis: Basis | None) -> None:
    """Draw the comparison of rows with the chosen recorded accelerator, or a note that there is none."""
    met = accelerators_view.find_meetings(rows, axis, machine)
    if met and basis is not None:
        st.divider()
        elements.draw_heading("Beside a recorded accelerator")
    if met:
        accelerators_view.draw_meetings(met, basis)
    elif why := accelerators_view.explain_missing_meeting(rows, axis, machine):
        st.info(plain(why))
    elif basis is None:
        st.warning("No point was measured on two devices, so there is nothing to compare yet.")


def find_sweep_of_study(study: Study) -> Sweep | None:
    """Return the sweep that measures a study; None if this version does not support the settings of its rows."""
    first, last = study.runs[0], study.runs[-1]
    try:
        point = Point.from_row(first[0])
        values = tuple(dict.fromkeys(size_on_axis(run[0], study.axis) for run in study.runs))
        contenders = tuple(Contender.parse(row.contender) for row in last)
        return Sweep(point=point, axes=(Axis(name=study.axis, values=values),), contenders=contenders)
    except InvalidValue:
        return None


def _choose_study(studies: Sequence[Study], request: Sweep) -> Study | None:
    """Draw the choice of the study to show and return it: a grid or several devices have many."""
    usual = study_view.pick_main_study(studies, request)
    if usual is None or len(studies) == 1:
        return usual
    names = {}
    for study in studies:
        held = report.other_axes_text(request, study)
        names[f"{study.challenger} against {study.baseline}{' · ' if held else ''}{held}"] = study
    options = sorted(names, key=lambda name: names[name] is not usual)
    return names[st.selectbox("Shown", options, **session.bind_choice("slice", options, options[0], _name_study))]


def _name_study(name: str) -> str:
    """Return the readable name of a study, from its name in the link."""
    pair, dot, held = name.partition(" · ")
    return f"{' against '.join(map(display_name, pair.split(' against ')))}{dot}{held}"


def _is_same_slice(other: Study, chosen: Study, request: Sweep) -> bool:
    """Return whether a study has the same slice and the same challenger, with any baseline."""
    return other.challenger == chosen.challenger and report.other_axis_values(
        request, other
    ) == report.other_axis_values(request, chosen)


def _draw_one_study(study: Study, compared: Sequence[Study]) -> Basis:
    basis, located = study_view.draw_crossover_answer(study)
    if located is None:
        return basis
    study_view.draw_speedup_chart(located)
    ordered = sorted(compared, key=lambda each: each is not study)
    columns = {
        f"{display_name(each.challenger)} against {display_name(each.baseline)}": partial(
            queries.locate_crossover, each
        )
        for each in ordered
    }
    if not study.runs[0][0].training:
        study_view.draw_bases_table(columns, study.axis, alt="The crossover on each cost basis")
    with show_errors(st.caption):
        if study.cause(located.answer):
            elements.draw_heading("Where the time goes")
            study_view.draw_cause(study, located.answer)
    elements.draw_heading("Size by size")
    study_view.draw_sizes_table(located.answer, study.runs)
    return basis


def _draw_map(request: Sweep, studies: Sequence[Study], chosen: Study | None, basis: Basis) -> None:
    if chosen is None:
        return
    axes = (request.axes[0].name, request.axes[1].name)
    st.markdown(
        f"**Map**: which is faster, {plain(inline_name(chosen.challenger))} or {plain(inline_name(chosen.baseline))}"
    )
    spec = queries.make_winners_chart(_make_cells(request, studies, chosen, basis), axes, chosen)
    elements.draw_chart(spec, alt="Map of the faster device")


def _draw_grid(rows: Sequence[Trial], request: Sweep, studies: Sequence[Study]) -> None:
    shortest = "step" if request.point.training else "epoch"
    elements.draw_heading("Every point and device")
    st.caption(f"The shortest {shortest} first")
    speedups = _find_speedups(studies, str(request.contenders[0]))
    ordered = sorted(rows, key=lambda row: report.median_epoch_s(row) or math.inf)
    elements.draw_table(
        [_make_grid_row(row, request, speedups) for row in ordered],
        column_config={
            **{axis.title.capitalize(): st.column_config.NumberColumn(format="localized") for axis in request.axes},
            "Epoch (s)": st.column_config.NumberColumn(format="%.4g"),
            "Step (ms)": st.column_config.NumberColumn(format="%.4g"),
            "Speedup": st.column_config.NumberColumn(format="%.2f×"),
        },
        alt=f"Every point and device by {shortest} time",
    )


def _make_cells(request: Sweep, studies: Sequence[Study], chosen: Study, basis: Basis) -> list[Cell]:
    """Return one cell for each point of the first two axes, with the other axes as in the chosen study."""
    first, second, *others = request.axes
    cells: dict[tuple[float, float], Cell] = {}
    if "parameters" not in (first.name, second.name):  # the model reaches parameter counts only approximately
        places = itertools.product(first.values, second.values)
        cells = {(x, y): Cell(x=x, y=y, verdict="missing", reason="not measured") for x, y in places}
    for study in studies:
        held, wanted = report.other_axis_values(request, study), report.other_axis_values(request, chosen)
        same = all(held[axis.name] == wanted[axis.name] for axis in others)
        if same and (study.baseline, study.challenger) == (chosen.baseline, chosen.challenger):
            y = held[second.name]
            for size in _find_sizes(study, basis):
                x, speedup = size.size, size.speedup
                cells[x, y] = Cell(x=x, y=y, verdict=size.verdict, speedup=speedup, reason=size.reason)
    return list(cells.values())


def _find_sizes(study: Study, basis: Basis) -> tuple[Size, ...]:
    try:
        return queries.locate_crossover(study, basis).answer.sizes
    except CrossoverError:
        return ()


def _find_speedups(studies: Sequence[Study], baseline: str) -> dict[str, float | None]:
    """Return the speedup over the baseline of the sweep, by the id of the challenger's row."""
    speedups: dict[str, float | None] = {}
    for study in studies:
        if study.baseline == baseline:
            by_size = {size.size: size.speedup for size in _find_sizes(study, "steady")}
            speedups |= {other.trial_id: by_size.get(size_on_axis(base, study.axis)) for base, other in study.runs}
    return speedups


def _make_grid_row(row: Trial, request: Sweep, speedups: Mapping[str, float | None]) -> dict[str, Any]:
    step_s = RunRow(row).step.median_s
    is_baseline = row.contender == str(request.contenders[0])
    return {
        **{axis.title.capitalize(): size_on_axis(row, axis.name) for axis in request.axes},
        "Device": display_name(row.contender),
        "Threads": row.threads,
        **({} if row.training else {"Epoch (s)": report.median_epoch_s(row)}),
        "Step (ms)": step_s * 1e3 if step_s is not None else None,
        "Speedup": 1.0 if is_baseline and row.block_steps else speedups.get(row.trial_id),
        "Outcome": row.message or value_label("outcome", row.outcome),
    }


def _draw_sweep_downloads(
    rows: Sequence[Trial], request: Sweep | None, link: dict[str, str | list[str]], *, name: str
) -> None:
    elements.draw_heading("Export")
    if rows:
        elements.draw_row_downloads(rows, name=f"crossover-{name}")
    elements.draw_command(request, "sweep")
    elements.draw_link("Link to this result:", {**link, **session.make_accelerator_link()})


def draw_whole_sweep(
    rows: Sequence[Trial], request: Sweep, action: Callable[[], None], machine: Machine | None = None
) -> None:
    """Draw the question, a container for actions, and the answer."""
    if not rows:
        st.caption("No point of this sweep has rows yet.")
        return
    words, place = st.columns([4, 1], vertical_alignment="center")
    with words:
        draw_sweep_heading(rows, request)
    with place:
        action()
    draw_sweep(rows, request, machine)


def draw_sweep_heading(rows: Sequence[Trial], request: Sweep | None) -> None:
    newest = max(rows, key=lambda row: row.started_at)
    study_view.draw_question(newest, request, recalled=bool(request and session.is_recalled(request.id)))


MAX_READ_ROWS = 60
"""Largest number of studies of one training that are read to find those of other machines."""

NEWEST = "Newest (UTC)"
"""Title of the column with the time at which the newest run began."""

WIDEST = {"Machine": 250, "Says": 450}
"""Columns with possibly long texts, and the largest width of each in pixels."""

DOES = {"finished": "done", "waiting": "waits"}
"""Labels of machine states whose stored word is internal."""


def draw_machines(rows: Sequence[Trial], request: Sweep, members: Sequence[ClusterMachine]) -> None:
    """Draw a sweep's results by machine: all in one chart and one table, then the chosen machine in full."""
    found = draw_machines_chart(rows, request, members)
    if len(found) > 1:
        names = _name_machine_studies(found, members)
        options = list(found)
        bound = session.bind_choice("machine", options, options[0], names.__getitem__)
        chosen = st.selectbox("One machine in full", options, **bound)
        st.header(plain(names[chosen]))
        rows = [row for row in rows if row.machine_id == chosen]
    if found:
        draw_sweep(rows, request)


def draw_machines_chart(
    rows: Sequence[Trial], request: Sweep, members: Sequence[ClusterMachine], *, save: bool = True
) -> Mapping[str, Study]:
    """Draw one chart with the crossover of every machine and a table; return the studies by machine.

    Without `save`, the chart has no download, because its data still grow.
    """
    found = group_by_machine(queries.group_studies(rows, request.axes[0].name), request)
    _draw_crossovers(found, members, save=save)
    return found


def draw_last_cluster() -> None:
    """Draw the machines of the last sweep on a cluster, if there was one."""
    if found := queries.list_cluster_machines():
        st.header("Machines of the last sweep on a cluster")
        draw_machines_table(found)


def draw_machines_table(members: Sequence[ClusterMachine]) -> None:
    """Draw a table of machines."""
    _draw_crossovers({}, members)


def draw_other_machines(study: Study) -> None:
    """Draw the results of other machines for the question of a study."""
    first = study.runs[0][0]
    alike = (study.axis, study.challenger, first.dataset, first.model, first.training)
    lines = [
        line
        for line in queries.list_study_lines()
        if (line.axis, line.challenger, line.dataset, line.model, line.training) == alike
    ]
    others = find_same_question(study, queries.find_studies(lines[:MAX_READ_ROWS]).values()) if len(lines) > 1 else []
    if others:
        st.header(f"The same question on {len(others) + 1} machines")
        found = {each.machine_id: each for each in (study, *others)}
        _draw_crossovers(dict(sorted(found.items())), ())


def hide_hosts(text: str, members: Sequence[ClusterMachine]) -> str:
    """Return a text with hosts replaced by the names that the visitor may see."""
    for host, name in sorted(_name_members(members).items(), reverse=True):  # one may begin with another
        text = name.join(re.split(rf"(?<!\w){re.escape(host)}(?!\w)", text))
    return text


def _draw_crossovers(studies: Mapping[str, Study], members: Sequence[ClusterMachine], *, save: bool = True) -> None:
    names, called = _name_machine_studies(studies, members), _name_members(members)
    located = {
        machine_id: answer for machine_id, study in studies.items() if _is_drawn(answer := _locate_or_empty(study))
    }
    if any(
        answer.crossings or answer.outcome in lesson_charts.OUTCOMES_WITHOUT_CROSSOVER for answer in located.values()
    ):
        drawn = {machine_id: wording.short_device(names[machine_id]) for machine_id in located}
        drawn = drawn if len({*drawn.values()}) == len(drawn) else names
        answers = {drawn[machine_id]: answer for machine_id, answer in located.items()}
        kinds = {drawn[machine_id]: studies[machine_id].runs[0][1].device_kind for machine_id in located}
        spec, first = _make_machines_chart(answers, kinds), next(iter(studies.values()))
        elements.draw_chart(spec, alt=f"Crossover of {units.format_quantity(len(answers), 'machine')}")
        base, other = display_name(first.baseline), display_name(first.challenger)
        along = axis_title(first.axis)
        st.caption(
            plain(
                f"From which {along} on {does(other, 'is', 'are')} faster than {inline_device_name(base)}, with its "
                "95 % "
                "interval; steps only. "
                "Each machine is evaluated separately: times of two machines are never combined."
            )
        )
        rows = [row for study in studies.values() for run in study.runs for row in run]
        if save:
            elements.draw_chart_downloads(
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
        elements.draw_table(
            [{name: line[name] for name in known} for line in lines],
            height="content",
            column_config={
                NEWEST: st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm", timezone="UTC"),
                **{name: st.column_config.Column(width=_measure_width(lines, name)) for name in WIDEST},
            },
            alt="Machines",
        )


def _is_drawn(answer: Crossover) -> bool:
    """Return whether an answer appears in the chart of all machines; conditional answers do not."""
    return bool(answer.sizes) and not answer.is_conditional


@cache_answers(64)
def _make_machines_chart(answers: Mapping[str, Crossover], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the chart of the crossover of each machine, by name."""
    return lesson_charts.machine_crossovers_chart(answers, kinds)


def _measure_width(lines: Sequence[Mapping[str, Any]], column: str) -> int:
    """Return the width of a column with its title in pixels, within its limit."""
    return min(WIDEST[column], elements.measure_column([column, *(str(line[column]) for line in lines)]))


def _locate_or_empty(study: Study) -> Crossover:
    """Return the answer of a machine; an answer without sizes if its rows cannot be compared, which the table shows."""
    try:
        return queries.locate_crossover(study, "steady").answer
    except CrossoverError:
        return Crossover(axis=study.axis, basis="steady", baseline=study.baseline, challenger=study.challenger)


def _number_machines(members: Iterable[ClusterMachine]) -> dict[str, int]:
    """Return a number for each host, in the order of the machines' own ids."""
    ordered = sorted(members, key=lambda member: (member.own_id, member.host))
    return {member.host: number for number, member in enumerate(ordered, 1)}


def _name_members(members: Sequence[ClusterMachine]) -> dict[str, str]:
    """Return the readable name of each machine by host, in the order of a list."""
    if permits.sees_hosts():
        return {host: host for host in sorted(member.host for member in members)}
    numbers, about = _number_machines(members), {member.host: member for member in members}
    return {
        host: recorded_machines.name_machines([number], about[host].cpu, about[host].threads)
        for host, number in numbers.items()
    }


def _name_machine_studies(studies: Mapping[str, Study], members: Sequence[ClusterMachine]) -> dict[str, str]:
    """Return the readable name for each machine id of rows; machines that share points share a name."""
    numbers, names, seen = _number_machines(members), dict[str, str](), permits.sees_hosts()
    free = itertools.count(len(numbers) + 1)
    for machine_id in sorted(studies):
        hosts = sorted(member.host for member in members if _find_rows_id(member, studies) == machine_id)
        row = studies[machine_id].runs[0][0]
        several = sorted(numbers[host] for host in hosts) or [next(free)]
        said = (
            ", ".join(hosts)
            if hosts and seen
            else recorded_machines.name_machines(several, row.cpu_name, row.cores_usable)
        )
        names[machine_id] = as_line(said)
    return names


def _find_rows_id(member: ClusterMachine, row_ids: Collection[str]) -> str:
    """Return the machine id in the rows of a member: its own, or the shared id of identical machines."""
    return member.own_id if member.own_id in row_ids else member.machine_id


def _make_machine_line(name: str, study: Study | None, member: ClusterMachine | None) -> dict[str, Any]:
    said = (
        study_view.summarize_located(partial(queries.locate_crossover, study, "steady"))
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
        "Kind of machine": (member.machine_id if member else study.machine_id if study else "")[:6],
        "Sizes": len(study.runs) if study and not member else None,
        NEWEST: parse_date(study.newest) if study else None,
    }


def _describe_time_left(member: ClusterMachine) -> str:
    """Return the remaining time of a machine that measures; empty in any other state."""
    return (
        f"about {units.format_rough_time(member.left_s)}"
        if member.state == "measuring" and member.left_s is not None
        else ""
    )


def _describe_points(member: ClusterMachine) -> str:
    if member.state in ("free", "busy"):  # its report belongs to an earlier question
        return ""
    total = f" of {member.total}" if member.total else ""
    return f"{member.done}{total}" if member.done or total else ""
