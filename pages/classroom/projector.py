"""The projector's view of a class: how to join, the number of students, their predictions, and results after Reveal.

It shows nothing that only the teacher may know, so it can be projected for an hour.
"""

import functools
from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.answer import wording
from core.classroom import results
from core.classroom.classes import Class
from pages.classroom import access, findings, view
from pages.shared import elements, layout, permits, session
from pages.shared.elements import plain, show_errors

REFRESH_S = 3.0
"""Seconds between two updates of the projected numbers."""

QR_SIZE = 300
"""Pixels of the code that phones scan."""

LETTERS = 18
"""Size of the letters on a chart that is projected."""

NEAREST_NAMED = 3
"""Maximum number of named students whose predictions were nearest to the crossover."""


def draw_projector(class_: Class) -> None:
    """Draw the projector's view, which updates as students join, predict and measure."""
    st.title(plain(class_.name), anchor=False)
    st.markdown(f"**{plain(class_.question.title)}**")
    left, right = st.columns([2, 3], gap="large")
    with left:
        _draw_join_codes(class_)
    with right:
        st.fragment(layout.draw_isolated, run_every=REFRESH_S)(_draw_state, class_)
    _draw_buttons(class_)


@functools.lru_cache(maxsize=64)
def draw_qr_code(address: str) -> str:
    """Return an address as a QR code: the source of an image, black on white in every theme."""
    import segno

    source: str = segno.make(address, error="m").svg_data_uri(scale=4, border=2, dark="#000", light="#fff")
    return source


def _draw_join_codes(class_: Class) -> None:
    address = session.make_address({"class": class_.code})
    layout.draw_picture(draw_qr_code(address), alt="QR code of the address of this class", width=QR_SIZE)
    layout.draw_large_text(class_.code)
    st.markdown(plain(f"Scan the QR code, or open {address.partition('?')[0]} and enter the join code."))


def _draw_state(class_: Class) -> None:
    pool = findings.shared_pool(class_)
    joined, said, done = st.columns(3)
    joined.metric("Joined", len(pool.entries))
    said.metric("Predicted", pool.tally.students)
    done.metric("Measured", len(pool.results))
    if not findings.classes().find(class_.code).revealed:
        _draw_predictions(class_, pool)
    else:
        _draw_answer(class_, pool)


def _draw_predictions(class_: Class, pool: findings.Pool) -> None:
    if not pool.tally.students:
        st.caption("No predictions yet. Predictions appear here as a histogram.")
        return
    words = view.name_winners(pool)
    in_words = view.describe_tally(class_, pool, words)
    _draw_large_chart(findings.predictions_chart(class_, pool.tally, words), alt=in_words)
    st.caption(plain(in_words))


def _draw_answer(class_: Class, pool: findings.Pool) -> None:
    if curve := findings.find_curve(class_, pool):
        st.markdown(f"## {plain(curve.answer.sentence)}")
        _draw_large_chart(curve.spec, alt=curve.answer.sentence)
        sizes = len(class_.question.dealt_sizes)
        st.markdown(f"{len(curve.answer.sizes)} of {sizes} sizes measured by the class on this host.")
        if curve.answer.estimate is not None:
            _draw_nearest(class_, pool, curve.answer.estimate)
    if curve is None or findings.list_whole_results(class_, pool):
        _draw_machines(class_, pool)


def _draw_machines(class_: Class, pool: findings.Pool) -> None:
    """Draw the answers of students who measured every size, and the range of their crossovers."""
    spread = view.describe_spread(class_, pool)
    if spread:
        st.markdown(f"## {plain(spread)}")
    view.draw_results_chart(class_, pool, view.name_winners(pool))


def _draw_large_chart(spec: Mapping[str, Any], *, alt: str) -> None:
    axis = {**spec["config"].get("axis", {}), "labelFontSize": LETTERS, "titleFontSize": LETTERS}
    elements.draw_chart({**spec, "config": {**spec["config"], "axis": axis}}, alt=alt)


def _draw_nearest(class_: Class, pool: findings.Pool, estimate: float) -> None:
    predicted = {
        entry.student.nickname: float(said.place)
        for entry in pool.entries
        if (said := entry.student.prediction) and isinstance(said.place, int | float)
    }
    names = results.find_nearest(predicted, estimate)
    if names:
        more = f" and {len(names) - NEAREST_NAMED} more" if len(names) > NEAREST_NAMED else ""
        place = wording.nearest_size(class_.question.axis.name, estimate) if class_.question.axis else ""
        st.success(plain(f"Closest prediction to {place}: {', '.join(names[:NEAREST_NAMED])}{more}."))


@show_errors()
def _draw_buttons(class_: Class) -> None:
    """Draw the button that leaves the view, and for the teacher the one that shows or hides the results."""
    with st.container(horizontal=True):
        if access.teaches(class_):
            _draw_reveal_button(class_)
        if st.button("Leave the projector view", icon=":material/close:"):
            permits.show_projector(shown=False)
            st.rerun()


def _draw_reveal_button(class_: Class) -> None:
    label = "Hide the result" if class_.revealed else "Reveal"
    icon = ":material/visibility_off:" if class_.revealed else ":material/visibility:"
    if st.button(label, type="secondary" if class_.revealed else "primary", icon=icon):
        findings.classes().reveal(class_, revealed=not class_.revealed)
        st.rerun()
