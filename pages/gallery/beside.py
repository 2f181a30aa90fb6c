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

MOST_OFFERED = 200
"""Studies in the list of what can be put beside one; filters above make it shorter."""


def studies(of: Study, held: Held, shown: Sequence[int], basis: Basis) -> None:
    """Other studies on one chart with the one that is open, and what differs where there is one of them.

    `shown` are the places of the studies that the filters let through.
    """
    st.header("Beside other studies")
    names = _offered(of, held, shown)
    if not names:
        st.caption("There is no other study here. One of another machine appears as soon as its rows are imported.")
        return
    others = [other for name in _chosen(names) if (other := _read(name, names[name])) is not None]
    refused = {other.id: reason for other in others if (reason := side_by_side.refusal(of, other))}
    for name, reason in refused.items():
        st.warning(plain(f"{names[name]} is not drawn. {reason}"))
    together = [of, *(other for other in others if other.id not in refused)]
    if len(together) > 1:
        _chart(together, basis)
    if len(others) == 1:
        answers = (_answer(of, basis), _answer(others[0], basis))
        _differences(side_by_side.studies(of, others[0], answers), ("This study", names[others[0].id]))


def runs(first: Sequence[Trial], second: Sequence[Trial]) -> None:
    st.header("Two runs side by side")
    if first[0].protocol_version != second[0].protocol_version:
        st.warning("They were measured by different protocols: their times must not be compared with each other.")
    _differences(side_by_side.runs(first, second), (f"Run {first[0].run_id}", f"Run {second[0].run_id}"))


def _offered(of: Study, held: Held, shown: Sequence[int]) -> dict[str, str]:
    """Id → name of the studies that can be put beside one: those along its axis first."""
    lines = [held.studies[place] for place in shown if held.studies[place].id != of.id]
    first = sorted(lines, key=lambda line: _distance(of, line))[:MOST_OFFERED]
    names = {line.id: f"{lists.title(line)} · {line.machine}" for line in first}
    known = {line.id: line for line in held.studies}
    named = [name for name in others.beside() if name in known and name != of.id]
    return names | {name: f"{lists.title(known[name])} · {known[name].machine}" for name in named}


def _read(study_id: str, name: str) -> Study | None:
    try:
        return reads.study(study_id)
    except CrossoverError as error:
        st.warning(plain(f"{name} is not drawn. {error}"))
        return None


def _distance(of: Study, line: StudyLine) -> tuple[bool, ...]:
    row = of.runs[0][0]
    return line.axis != of.axis, line.dataset != row.dataset, line.model != row.model


def _chosen(names: dict[str, str]) -> list[str]:
    """The control; its choice is in the link as ids, which are shorter than names."""
    memory.put({"beside": [name for name in others.beside() if name in names][: MOST_TOGETHER - 1]})
    return st.multiselect(
        "Put beside it",
        list(names),
        key="beside",
        format_func=lambda name: as_line(names[name]),
        max_selections=MOST_TOGETHER - 1,
        on_change=lambda: others.put_beside(memory.standing("beside")),
        placeholder="choose up to three",
        help="The same training on other machines or devices shares one chart. One other is compared line by line.",
    )


def _chart(together: Sequence[Study], basis: Basis) -> None:
    curves = [curve for study in together if (curve := _curve(study, basis)) is not None]
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
        spec = draw(_told_apart(curves))
        charts.chart(spec, alt=f"{name} of {len(curves)} studies")
        rows = [row for study in together for run in study.runs for row in run]
        file = f"{name.lower().replace(' ', '-')}-{'-'.join(study.id for study in together)}"
        downloads.chart(spec, file, title=f"{name} of {len(curves)} studies", rows=rows, axis=together[0].axis)


def _curve(of: Study, basis: Basis) -> Curve | None:
    try:
        answer = prepared.located(of, basis).answer
    except CrossoverError as error:
        st.warning(plain(f"The study {of.id} is not drawn. {error}"))
        return None
    baseline, challenger = of.runs[0]
    machine = baseline.machine_id[:6]
    names = [f"{titled(row.contender)}, {row.device_name} [{machine}]" for row in (baseline, challenger)]
    return Curve(
        name=names[1], devices=(names[0], names[1]), answer=answer, kinds=(baseline.device_kind, challenger.device_kind)
    )


def _told_apart(curves: Sequence[Curve]) -> list[Curve]:
    """Curves get a number where two have one name: what their studies differ in is not in it."""
    names = [device for curve in curves for device in curve.devices]
    if len(set(names)) == len(names):
        return list(curves)
    return [_numbered(curve, number) for number, curve in enumerate(curves, 1)]


def _numbered(curve: Curve, number: int) -> Curve:
    first, second = curve.devices
    of = f"study {number}"
    return replace(curve, name=f"{curve.name}, {of}", devices=(f"{first}, {of}", f"{second}, {of}"))


def _answer(of: Study, basis: Basis) -> Crossover | None:
    try:
        return prepared.located(of, basis).answer
    except CrossoverError:
        return None


def _differences(found: SideBySide, names: tuple[str, str]) -> None:
    if not found.differences:
        st.caption(f"All {found.alike} things that are stored about both are the same.")
        return
    rows: list[dict[str, Any]] = [
        {"": one.group, "What": one.what, names[0]: one.first or "—", names[1]: one.second or "—"}
        for one in found.differences
        if not one.is_sentence
    ]
    for one in found.differences:
        if one.is_sentence:
            of = "" if one.what == IN_WORDS else f", {one.what}"
            for name, sentence in zip(names, (one.first, one.second), strict=True):
                st.markdown(f"**{plain(name + of)}:** {plain(sentence or 'no answer.')}")
    st.markdown("**Only what differs**")
    tables.table(rows, height="content", alt="What differs between the two")
    st.caption(f"{found.alike} other things are the same on both sides.")
