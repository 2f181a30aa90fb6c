"""Studies and runs beside each other: several machines on one chart, and two with only what differs.

What may share a chart is decided by `core.answer.gallery.side_by_side`; whatever may not is refused with its reason.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from core.answer.charts import gallery
from core.answer.charts.gallery import MOST_TOGETHER, Curve
from core.answer.gallery import side_by_side
from core.answer.gallery.filters import Held
from core.answer.gallery.side_by_side import IN_WORDS, SideBySide
from core.answer.gallery.table import StudyLine
from core.answer.study.result import Basis, Crossover
from core.answer.study.study import Study
from core.errors import CrossoverError
from core.question.experiment import titled
from core.results.schema import Trial
from core.text import as_line
from pages.gallery import lists
from pages.shared.answer import downloads
from pages.shared.data import prepared, reads
from pages.shared.draw import charts, tables
from pages.shared.draw.text import plain
from pages.shared.link import memory, others

MAX_COMPARED_STUDIES = 200
"""Studies in the list of what can be put beside one; filters above make it shorter."""


def draw_compared_studies(study: Study, contents: Held, places: Sequence[int], basis: Basis) -> None:
    """Other studies on one chart with the one that is open, and what differs where there is one of them.

    `places` are the places of the studies that the filters let through.
    """
    st.header("Beside other studies")
    names = _list_comparable_studies(study, contents, places)
    if not names:
        st.caption("There is no other study here. One of another machine appears as soon as its rows are imported.")
        return
    others = [
        other for name in _choose_compared(names) if (other := _read_compared_study(name, names[name])) is not None
    ]
    refused = {other.id: reason for other in others if (reason := side_by_side.refusal(study, other))}
    for name, reason in refused.items():
        st.warning(plain(f"{names[name]} is not drawn. {reason}"))
    together = [study, *(other for other in others if other.id not in refused)]
    if len(together) > 1:
        _draw_compared_chart(together, basis)
    if len(others) == 1:
        answers = (_find_study_answer(study, basis), _find_study_answer(others[0], basis))
        _draw_differences(side_by_side.studies(study, others[0], answers), ("This study", names[others[0].id]))


def draw_compared_runs(first: Sequence[Trial], second: Sequence[Trial]) -> None:
    st.header("Two runs side by side")
    if first[0].protocol_version != second[0].protocol_version:
        st.warning("They were measured by different protocols: their times must not be compared with each other.")
    _draw_differences(side_by_side.runs(first, second), (f"Run {first[0].run_id}", f"Run {second[0].run_id}"))


def _list_comparable_studies(study: Study, contents: Held, places: Sequence[int]) -> dict[str, str]:
    """Id → name of the studies that can be put beside one: those along its axis first."""
    lines = [contents.studies[place] for place in places if contents.studies[place].id != study.id]
    first = sorted(lines, key=lambda line: _measure_distance(study, line))[:MAX_COMPARED_STUDIES]
    names = {line.id: f"{lists.title_study(line)} · {line.machine}" for line in first}
    known = {line.id: line for line in contents.studies}
    named = [name for name in others.read_compared() if name in known and name != study.id]
    return names | {name: f"{lists.title_study(known[name])} · {known[name].machine}" for name in named}


def _read_compared_study(study_id: str, name: str) -> Study | None:
    try:
        return reads.find_study(study_id)
    except CrossoverError as error:
        st.warning(plain(f"{name} is not drawn. {error}"))
        return None


def _measure_distance(study: Study, line: StudyLine) -> tuple[bool, ...]:
    row = study.runs[0][0]
    return line.axis != study.axis, line.dataset != row.dataset, line.model != row.model


def _choose_compared(names: dict[str, str]) -> list[str]:
    """The control; its choice is in the link as ids, which are shorter than names."""
    memory.set_values({"beside": [name for name in others.read_compared() if name in names][: MOST_TOGETHER - 1]})
    return st.multiselect(
        "Put beside it",
        list(names),
        key="beside",
        format_func=lambda name: as_line(names[name]),
        max_selections=MOST_TOGETHER - 1,
        on_change=lambda: others.set_compared(memory.read_value("beside")),
        placeholder="choose up to three",
        help="The same training on other machines or devices shares one chart. One other is compared line by line.",
    )


def _draw_compared_chart(together: Sequence[Study], basis: Basis) -> None:
    curves = [curve for study in together if (curve := _make_curve(study, basis)) is not None]
    if len(curves) < 2:
        st.caption("Only one of them has an answer, so there is nothing to put beside each other.")
        return
    machines = {study.runs[0][0].machine_id for study in together}
    st.caption(
        f"{len(machines)} machines, each with a fingerprint of its own: their blocks did not take turns, so a "
        "difference between machines has no interval here."
        if len(machines) > 1
        else "All were measured on one machine."
    )
    for draw, name in ((gallery.together, "Time per step"), (gallery.speedups_together, "Speedup")):
        st.markdown(f"**{name}**")
        spec = draw(_number_curves(curves))
        charts.draw_chart(spec, alt=f"{name} of {len(curves)} studies")
        rows = [row for study in together for run in study.runs for row in run]
        file = f"{name.lower().replace(' ', '-')}-{'-'.join(study.id for study in together)}"
        downloads.draw_chart_downloads(
            spec, file, title=f"{name} of {len(curves)} studies", rows=rows, axis=together[0].axis
        )


def _make_curve(study: Study, basis: Basis) -> Curve | None:
    try:
        answer = prepared.locate_crossover(study, basis).answer
    except CrossoverError as error:
        st.warning(plain(f"The study {study.id} is not drawn. {error}"))
        return None
    baseline, challenger = study.runs[0]
    machine = baseline.machine_id[:6]
    names = [f"{titled(row.contender)}, {row.device_name} [{machine}]" for row in (baseline, challenger)]
    return Curve(
        name=names[1], devices=(names[0], names[1]), answer=answer, kinds=(baseline.device_kind, challenger.device_kind)
    )


def _number_curves(curves: Sequence[Curve]) -> list[Curve]:
    """Curves get a number where two have one name: what their studies differ in is not in it."""
    names = [device for curve in curves for device in curve.devices]
    if len(set(names)) == len(names):
        return list(curves)
    return [_number_curve(curve, number) for number, curve in enumerate(curves, 1)]


def _number_curve(curve: Curve, number: int) -> Curve:
    first, second = curve.devices
    of = f"study {number}"
    return replace(curve, name=f"{curve.name}, {of}", devices=(f"{first}, {of}", f"{second}, {of}"))


def _find_study_answer(study: Study, basis: Basis) -> Crossover | None:
    try:
        return prepared.locate_crossover(study, basis).answer
    except CrossoverError:
        return None


def _draw_differences(comparison: SideBySide, names: tuple[str, str]) -> None:
    if not comparison.differences:
        st.caption(f"All {comparison.alike} things that are stored about both are the same.")
        return
    rows: list[dict[str, Any]] = [
        {"": one.group, "What": one.what, names[0]: one.first or "—", names[1]: one.second or "—"}
        for one in comparison.differences
        if not one.is_sentence
    ]
    for one in comparison.differences:
        if one.is_sentence:
            of = "" if one.what == IN_WORDS else f", {one.what}"
            for name, sentence in zip(names, (one.first, one.second), strict=True):
                st.markdown(f"**{plain(name + of)}:** {plain(sentence or 'no answer.')}")
    st.markdown("**Only what differs**")
    tables.draw_table(rows, height="content", alt="What differs between the two")
    st.caption(f"{comparison.alike} other things are the same on both sides.")
