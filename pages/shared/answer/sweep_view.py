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


def draw(rows: Sequence[Trial], asked: Sweep, machine: Machine | None = None) -> None:
    """Draw the rows of a sweep, and the chosen recorded accelerator beside them."""
    found = prepared.studies(rows, asked.axes[0].name)
    chosen = _choice(found, asked)
    basis: Basis = "steady"
    mapped = st.container()
    if chosen is not None:
        basis = _study(chosen, [other for other in found if _beside(other, chosen, asked)])
        remedies.best_lanes(chosen, rows, found, basis)
    _two_machines(rows, asked.axes[0].name, machine, basis=basis if chosen else None)
    if len(asked.axes) > 1:
        with mapped:
            _map(asked, found, chosen, basis)
        _grid(rows, asked, found)
    _take_along(rows, asked, {**links.sweep_settings(asked), "sweep": asked.id}, name=asked.id)


def draw_study(of: Study, machine: Machine | None = None) -> None:
    """Draw a study of the store, and the chosen recorded accelerator beside it."""
    rows = [row for run in of.runs for row in run]
    together = (of.challenger, of.axis, {run[0].run_id for run in of.runs})
    lines = [line for line in reads.study_lines() if (line.challenger, line.axis, set(line.run_ids)) == together]
    others = list(reads.whole(lines).values())
    basis = _study(of, others)
    everybody = reads.rows(run_ids=[row.run_id for row in rows])
    remedies.best_lanes(of, everybody, prepared.studies(everybody, of.axis), basis)
    _two_machines(rows, of.axis, machine, basis=basis)
    _take_along(rows, asked_by(of), {"study": of.id}, name=of.id)


def _two_machines(rows: Sequence[Trial], axis: str, machine: Machine | None, *, basis: Basis | None) -> None:
    """What rows say together with the chosen recorded accelerator; without one, that there is nothing to compare."""
    met = accelerators.meetings(rows, axis, machine)
    if met and basis is not None:
        st.divider()
        st.header("Beside a recorded accelerator")
    if met:
        accelerators.draw_meetings(met, basis)
    elif why := accelerators.missing(rows, axis, machine):
        st.info(plain(why))
    elif basis is None:
        st.warning("No point was measured on two devices, so there is nothing to compare yet.")


def asked_by(of: Study) -> Sweep | None:
    """The sweep that measures a study; None where its rows ask for what this version does not offer."""
    first, last = of.runs[0], of.runs[-1]
    try:
        point = Point.of(first[0])
        values = tuple(dict.fromkeys(size_of(run[0], of.axis) for run in of.runs))
        contenders = tuple(Contender.parse(row.contender) for row in last)
        return Sweep(point=point, axes=(Axis(name=of.axis, values=values),), contenders=contenders)
    except InvalidValue:
        return None


def _choice(found: Sequence[Study], asked: Sweep) -> Study | None:
    """The study that is looked at: of a grid and of several devices there are many."""
    usual = study_view.main(found, asked)
    if usual is None or len(found) == 1:
        return usual
    names = {}
    for study in found:
        held = sweep_report.held_text(asked, study)
        names[f"{study.challenger} against {study.baseline}{' · ' if held else ''}{held}"] = study
    options = sorted(names, key=lambda name: names[name] is not usual)
    return names[st.selectbox("Shown", options, **choices.bound("slice", options, options[0], _in_words))]


def _in_words(name: str) -> str:
    """A study of a sweep as it is named in the link, with its contenders for people."""
    pair, dot, held = name.partition(" · ")
    return f"{' against '.join(map(titled, pair.split(' against ')))}{dot}{held}"


def _beside(other: Study, chosen: Study, asked: Sweep) -> bool:
    """Whether a study is of the same slice and the same challenger, against any baseline."""
    return other.challenger == chosen.challenger and sweep_report.held(asked, other) == sweep_report.held(asked, chosen)


def _study(of: Study, beside: Sequence[Study]) -> Basis:
    basis, located = study_view.answer(of)
    if located is None:
        return basis
    study_view.cause(of, located.answer)
    study_view.speedups(located)
    ordered = sorted(beside, key=lambda study: study is not of)
    columns = {
        f"{titled(study.challenger)} against {titled(study.baseline)}": partial(prepared.located, study)
        for study in ordered
    }
    if not of.runs[0][0].training:
        study_view.bases(columns, of.axis, alt="The crossover on each cost basis")
    st.markdown("**Size by size**")
    study_view.sizes(located.answer, of.runs)
    return basis


def _map(asked: Sweep, found: Sequence[Study], chosen: Study | None, basis: Basis) -> None:
    if chosen is None:
        return
    axes = (asked.axes[0].name, asked.axes[1].name)
    st.markdown(f"**Map**: which is faster, {plain(spoken(chosen.challenger))} or {plain(spoken(chosen.baseline))}")
    spec = prepared.winners(_cells(asked, found, chosen, basis), axes, chosen)
    charts.chart(spec, alt="Map of the faster device")


def _grid(rows: Sequence[Trial], asked: Sweep, found: Sequence[Study]) -> None:
    shortest = "step" if asked.point.training else "epoch"
    st.markdown(f"**Every point and device**, the shortest {shortest} first")
    speedups = _speedups(found, str(asked.contenders[0]))
    ordered = sorted(rows, key=lambda row: sweep_report.epoch_s(row) or math.inf)
    tables.table(
        [_row(row, asked, speedups) for row in ordered],
        column_config={
            **{axis.title.capitalize(): st.column_config.NumberColumn(format="localized") for axis in asked.axes},
            "Epoch (s)": st.column_config.NumberColumn(format="%.4g"),
            "Step (ms)": st.column_config.NumberColumn(format="%.4g"),
            "Speedup": st.column_config.NumberColumn(format="%.2f×"),
        },
        alt=f"Every point and device by {shortest} time",
    )


def _cells(asked: Sweep, found: Sequence[Study], chosen: Study, basis: Basis) -> list[Cell]:
    """One cell for each point of the first two axes, the others as in the chosen study."""
    first, second, *others = asked.axes
    cells: dict[tuple[float, float], Cell] = {}
    if "parameters" not in (first.name, second.name):  # which are reached as nearly as the model allows
        places = itertools.product(first.values, second.values)
        cells = {(x, y): Cell(x=x, y=y, verdict="missing", reason="not measured") for x, y in places}
    for study in found:
        held, wanted = sweep_report.held(asked, study), sweep_report.held(asked, chosen)
        same = all(held[axis.name] == wanted[axis.name] for axis in others)
        if same and (study.baseline, study.challenger) == (chosen.baseline, chosen.challenger):
            y = held[second.name]
            for size in _sizes(study, basis):
                x, speedup = size.size, size.speedup
                cells[x, y] = Cell(x=x, y=y, verdict=size.verdict, speedup=speedup, reason=size.reason)
    return list(cells.values())


def _sizes(of: Study, basis: Basis) -> tuple[Size, ...]:
    try:
        return prepared.located(of, basis).answer.sizes
    except CrossoverError:
        return ()


def _speedups(found: Sequence[Study], baseline: str) -> dict[str, float | None]:
    """By the id of the challenger's row, its speedup over the baseline of the sweep."""
    speedups: dict[str, float | None] = {}
    for study in found:
        if study.baseline == baseline:
            by_size = {size.size: size.speedup for size in _sizes(study, "steady")}
            speedups |= {other.trial_id: by_size.get(size_of(base, study.axis)) for base, other in study.runs}
    return speedups


def _row(row: Trial, asked: Sweep, speedups: Mapping[str, float | None]) -> dict[str, Any]:
    step_s = RowAnswer(row).step.median_s
    is_baseline = row.contender == str(asked.contenders[0])
    return {
        **{axis.title.capitalize(): size_of(row, axis.name) for axis in asked.axes},
        "Device": titled(row.contender),
        "Threads": row.threads,
        **({} if row.training else {"Epoch (s)": sweep_report.epoch_s(row)}),
        "Step (ms)": step_s * 1e3 if step_s is not None else None,
        "Speedup": 1.0 if is_baseline and row.block_steps else speedups.get(row.trial_id),
        "Outcome": row.message or label("outcome", row.outcome),
    }


def _take_along(rows: Sequence[Trial], asked: Sweep | None, link: dict[str, str | list[str]], *, name: str) -> None:
    st.header("Take it along")
    if rows:
        downloads.rows(rows, name=f"crossover-{name}")
    downloads.command(asked, "sweep")
    downloads.link("Link to this result:", {**link, **others.beside_machine()})


def whole(rows: Sequence[Trial], asked: Sweep, action: Callable[[], None], machine: Machine | None = None) -> None:
    """Draw what was asked, a place for what can be done about it, and the answer."""
    if not rows:
        st.caption("No point of this sweep has rows yet.")
        return
    words, place = st.columns([4, 1], vertical_alignment="center")
    with words:
        heading(rows, asked)
    with place:
        action()
    draw(rows, asked, machine)


def heading(rows: Sequence[Trial], asked: Sweep | None) -> None:
    newest = max(rows, key=lambda row: row.started_at)
    headings.asked(newest, asked, recalled=bool(asked and memory.recalled(asked.id)))
