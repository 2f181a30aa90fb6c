"""A sweep as an answer: its crossover on every basis, the map and the sorted table of a grid, and how to take it along.

Draws what `core.answer` says and decides nothing.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from core.answer.charts.grids import Cell
from core.answer.export import sweep_report
from core.answer.run.run_answer import RowAnswer
from core.answer.study.result import Basis, Size
from core.answer.study.study import Study
from core.errors import CrossoverError, InvalidValue
from core.jobs.machine import Machine
from core.question.experiment import Contender, Point, spoken, titled
from core.question.fields import label
from core.question.sweep import Axis, Sweep, size_of
from core.results.schema import Trial
from pages.shared.answer import accelerators, downloads, headings, remedies, study_view
from pages.shared.data import prepared, reads
from pages.shared.draw import charts, tables
from pages.shared.draw.text import plain
from pages.shared.link import choices, links, memory, others


def draw_sweep(rows: Sequence[Trial], request: Sweep, machine: Machine | None = None) -> None:
    """Draw the rows of a sweep, and the chosen recorded accelerator beside them."""
    found = prepared.group_studies(rows, request.axes[0].name)
    chosen = _choose_study(found, request)
    basis: Basis = "steady"
    mapped = st.container()
    if chosen is not None:
        basis = _draw_one_study(chosen, [other for other in found if _is_same_slice(other, chosen, request)])
        remedies.draw_best_lanes(chosen, rows, found, basis)
    _draw_two_machines(rows, request.axes[0].name, machine, basis=basis if chosen else None)
    if len(request.axes) > 1:
        with mapped:
            _draw_map(request, found, chosen, basis)
        _draw_grid(rows, request, found)
    _draw_sweep_downloads(rows, request, {**links.make_sweep_link(request), "sweep": request.id}, name=request.id)


def draw_study(study: Study, machine: Machine | None = None) -> None:
    """Draw a study of the store, and the chosen recorded accelerator beside it."""
    rows = [row for run in study.runs for row in run]
    together = (study.challenger, study.axis, {run[0].run_id for run in study.runs})
    lines = [line for line in reads.list_study_lines() if (line.challenger, line.axis, set(line.run_ids)) == together]
    others = list(reads.find_studies(lines).values())
    basis = _draw_one_study(study, others)
    everybody = reads.find_rows(run_ids=[row.run_id for row in rows])
    remedies.draw_best_lanes(study, everybody, prepared.group_studies(everybody, study.axis), basis)
    _draw_two_machines(rows, study.axis, machine, basis=basis)
    _draw_sweep_downloads(rows, find_sweep_of_study(study), {"study": study.id}, name=study.id)


def _draw_two_machines(rows: Sequence[Trial], axis: str, machine: Machine | None, *, basis: Basis | None) -> None:
    """What rows say together with the chosen recorded accelerator; without one, that there is nothing to compare."""
    met = accelerators.find_meetings(rows, axis, machine)
    if met and basis is not None:
        st.divider()
        st.header("Beside a recorded accelerator")
    if met:
        accelerators.draw_meetings(met, basis)
    elif why := accelerators.explain_missing_meeting(rows, axis, machine):
        st.info(plain(why))
    elif basis is None:
        st.warning("No point was measured on two devices, so there is nothing to compare yet.")


def find_sweep_of_study(study: Study) -> Sweep | None:
    """The sweep that measures a study; None where its rows ask for what this version does not offer."""
    first, last = study.runs[0], study.runs[-1]
    try:
        point = Point.of(first[0])
        values = tuple(dict.fromkeys(size_of(run[0], study.axis) for run in study.runs))
        contenders = tuple(Contender.parse(row.contender) for row in last)
        return Sweep(point=point, axes=(Axis(name=study.axis, values=values),), contenders=contenders)
    except InvalidValue:
        return None


def _choose_study(studies: Sequence[Study], request: Sweep) -> Study | None:
    """The study that is looked at: of a grid and of several devices there are many."""
    usual = study_view.pick_main_study(studies, request)
    if usual is None or len(studies) == 1:
        return usual
    names = {}
    for study in studies:
        held = sweep_report.held_text(request, study)
        names[f"{study.challenger} against {study.baseline}{' · ' if held else ''}{held}"] = study
    options = sorted(names, key=lambda name: names[name] is not usual)
    return names[st.selectbox("Shown", options, **choices.bind_choice("slice", options, options[0], _name_study))]


def _name_study(name: str) -> str:
    """A study of a sweep as it is named in the link, with its contenders for people."""
    pair, dot, held = name.partition(" · ")
    return f"{' against '.join(map(titled, pair.split(' against ')))}{dot}{held}"


def _is_same_slice(other: Study, chosen: Study, request: Sweep) -> bool:
    """Whether a study is of the same slice and the same challenger, against any baseline."""
    return other.challenger == chosen.challenger and sweep_report.held(request, other) == sweep_report.held(
        request, chosen
    )


def _draw_one_study(study: Study, compared: Sequence[Study]) -> Basis:
    basis, located = study_view.draw_crossover_answer(study)
    if located is None:
        return basis
    study_view.draw_cause(study, located.answer)
    study_view.draw_speedup_chart(located)
    ordered = sorted(compared, key=lambda each: each is not study)
    columns = {
        f"{titled(each.challenger)} against {titled(each.baseline)}": partial(prepared.locate_crossover, each)
        for each in ordered
    }
    if not study.runs[0][0].training:
        study_view.draw_bases_table(columns, study.axis, alt="The crossover on each cost basis")
    st.markdown("**Size by size**")
    study_view.draw_sizes_table(located.answer, study.runs)
    return basis


def _draw_map(request: Sweep, studies: Sequence[Study], chosen: Study | None, basis: Basis) -> None:
    if chosen is None:
        return
    axes = (request.axes[0].name, request.axes[1].name)
    st.markdown(f"**Map**: which is faster, {plain(spoken(chosen.challenger))} or {plain(spoken(chosen.baseline))}")
    spec = prepared.make_winners_chart(_make_cells(request, studies, chosen, basis), axes, chosen)
    charts.draw_chart(spec, alt="Map of the faster device")


def _draw_grid(rows: Sequence[Trial], request: Sweep, studies: Sequence[Study]) -> None:
    shortest = "step" if request.point.training else "epoch"
    st.markdown(f"**Every point and device**, the shortest {shortest} first")
    speedups = _find_speedups(studies, str(request.contenders[0]))
    ordered = sorted(rows, key=lambda row: sweep_report.epoch_s(row) or math.inf)
    tables.draw_table(
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
    """One cell for each point of the first two axes, the others as in the chosen study."""
    first, second, *others = request.axes
    cells: dict[tuple[float, float], Cell] = {}
    if "parameters" not in (first.name, second.name):  # which are reached as nearly as the model allows
        places = itertools.product(first.values, second.values)
        cells = {(x, y): Cell(x=x, y=y, verdict="missing", reason="not measured") for x, y in places}
    for study in studies:
        held, wanted = sweep_report.held(request, study), sweep_report.held(request, chosen)
        same = all(held[axis.name] == wanted[axis.name] for axis in others)
        if same and (study.baseline, study.challenger) == (chosen.baseline, chosen.challenger):
            y = held[second.name]
            for size in _find_sizes(study, basis):
                x, speedup = size.size, size.speedup
                cells[x, y] = Cell(x=x, y=y, verdict=size.verdict, speedup=speedup, reason=size.reason)
    return list(cells.values())


def _find_sizes(study: Study, basis: Basis) -> tuple[Size, ...]:
    try:
        return prepared.locate_crossover(study, basis).answer.sizes
    except CrossoverError:
        return ()


def _find_speedups(studies: Sequence[Study], baseline: str) -> dict[str, float | None]:
    """By the id of the challenger's row, its speedup over the baseline of the sweep."""
    speedups: dict[str, float | None] = {}
    for study in studies:
        if study.baseline == baseline:
            by_size = {size.size: size.speedup for size in _find_sizes(study, "steady")}
            speedups |= {other.trial_id: by_size.get(size_of(base, study.axis)) for base, other in study.runs}
    return speedups


def _make_grid_row(row: Trial, request: Sweep, speedups: Mapping[str, float | None]) -> dict[str, Any]:
    step_s = RowAnswer(row).step.median_s
    is_baseline = row.contender == str(request.contenders[0])
    return {
        **{axis.title.capitalize(): size_of(row, axis.name) for axis in request.axes},
        "Device": titled(row.contender),
        "Threads": row.threads,
        **({} if row.training else {"Epoch (s)": sweep_report.epoch_s(row)}),
        "Step (ms)": step_s * 1e3 if step_s is not None else None,
        "Speedup": 1.0 if is_baseline and row.block_steps else speedups.get(row.trial_id),
        "Outcome": row.message or label("outcome", row.outcome),
    }


def _draw_sweep_downloads(
    rows: Sequence[Trial], request: Sweep | None, link: dict[str, str | list[str]], *, name: str
) -> None:
    st.header("Take it along")
    if rows:
        downloads.draw_row_downloads(rows, name=f"crossover-{name}")
    downloads.draw_command(request, "sweep")
    downloads.draw_link("Link to this result:", {**link, **others.make_accelerator_link()})


def draw_whole_sweep(
    rows: Sequence[Trial], request: Sweep, action: Callable[[], None], machine: Machine | None = None
) -> None:
    """Draw what was asked, a place for what can be done about it, and the answer."""
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
    headings.draw_question(newest, request, recalled=bool(request and memory.is_recalled(request.id)))
