"""Published studies: their list, an open one, and one compared with a measured study as two pictures.

Each is always marked as published, and shares no chart, count or selection with measured rows.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import streamlit as st

from core.answer.charts import gallery_charts as charts_of
from core.answer.export import lesson_report
from core.answer.export import published as published_report
from core.answer.gallery.overview import GalleryData, StudyLine
from core.answer.gallery.published import (
    PublishedStudy,
    PublishedTable,
    StudySource,
    load_published_studies,
    load_published_tables,
)
from core.answer.result import DECIDED
from core.text import as_line
from pages.gallery import lists
from pages.shared import elements, layout, links, session, study_view
from pages.shared.cache import cache_answers
from pages.shared.elements import plain

MAX_OFFERED_STUDIES = 200
"""Limit of measured studies to compare with a published one."""

OPENED = 420
"""Height in pixels of the picture of an open study, with source and axes."""


@cache_answers(1)
def list_published() -> Mapping[str, PublishedStudy]:
    """Return every published study by its name in links."""
    return {study.name: study for study in load_published_studies()}


@cache_answers(1)
def list_tables() -> tuple[PublishedTable, ...]:
    """Return the published figures without a size axis."""
    return load_published_tables()


def draw_published_cards() -> None:
    """Draw the cards of published studies, with separate filters."""
    known = list(list_published().values())
    publishers = dict.fromkeys(study.source.name for study in known)
    outcomes = dict.fromkeys(study.outcome for study in known)
    chosen = lists.draw_filters({"in_answer": tuple(outcomes), "in_publisher": tuple(publishers)})
    found = [
        one
        for one in known
        if one.outcome in (chosen["in_answer"] or outcomes)
        and one.source.name in (chosen["in_publisher"] or publishers)
    ]
    st.caption(
        f"{len(found)} of {len(known)} published studies{lists.describe_filters(chosen)}. Others measured them on "
        "their own machines with their own methods. Crossover's results never include them."
    )
    if not found:
        st.caption(lists.NONE_LEFT)
    ordered = sorted(found, key=lambda one: (not one.is_by_size, one.outcome not in DECIDED))
    layout.draw_pairs(ordered, lambda study: layout.draw_isolated(_draw_published_card, study))
    if not any(chosen.values()):
        st.header("Published figures without a size axis")
        layout.draw_pairs(list_tables(), lambda one: layout.draw_isolated(_draw_published_table, one))


def draw_published_study(name: str, contents: GalleryData) -> None:
    """Draw a published study with its source, and its export."""
    study = list_published()[name]
    lists.draw_back_button()
    st.header(study.title)
    draw_published_mark(study)
    _draw_published_answer(study)
    st.markdown(f"**Time of one {study.per}**")
    draw_published_chart(study, height=OPENED)
    elements.draw_chart_downloads(charts_of.chart_published_study(study), f"published-{name}")
    study_view.draw_sizes_table(replace(study.answer, baseline="CPU", challenger="GPU"))
    _draw_publisher(study)
    layout.draw_isolated(_draw_measured_choice, contents)
    _draw_published_downloads(study)


def draw_published_choice() -> None:
    """Draw the choice of a published study below a measured one, as a separate picture."""
    st.header("Beside a published study")
    names = {one.name: f"{one.title} · {one.source.name}" for one in list_published().values()}
    if name := _choose_picture("Published study", names):
        study = list_published()[name]
        draw_published_mark(study)
        _draw_published_answer(study)
        draw_published_chart(study)
        _draw_publisher(study)


def draw_published_mark(study: PublishedStudy | PublishedTable) -> None:
    """Draw the badge that marks a study as published, with its source."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("Published", icon=":material/menu_book:", color="violet")
        st.caption(plain(f"{study.source.cited}. Not measured here."))


def draw_published_chart(study: PublishedStudy, *, height: int | None = None) -> None:
    elements.draw_chart(
        _make_published_chart(study.name), height=height, alt=f"Published: {study.title}, time by {study.axis}"
    )


@cache_answers(64)
def _make_published_chart(name: str) -> dict[str, object]:
    return charts_of.chart_published_study(list_published()[name])


def _draw_published_card(study: PublishedStudy) -> None:
    with st.container(border=True, height="stretch", key=f"card-{study.name}"):
        st.markdown(f"**{plain(study.title)}**: CPU against GPU by {plain(study.axis)}")
        draw_published_chart(study)
        st.markdown(plain(study.headline))
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            draw_published_mark(study)
            lists.draw_open_button(study.name)


def _draw_published_table(one: PublishedTable) -> None:
    with st.container(border=True, height="stretch", key=f"table-{one.name}"):
        st.markdown(f"**{plain(one.title)}**")
        spec = charts_of.case_figures_chart(one.figures, one.unit)
        elements.draw_chart(spec, height=None, alt=f"Published: {one.title}, {one.unit}")
        st.markdown(plain(one.says))
        draw_published_mark(one)
        _draw_source(one.source)


def _draw_published_answer(study: PublishedStudy) -> None:
    st.info(f"**{plain(study.headline)}**", icon=study_view.BOXES[study.outcome][1])
    for caution in study.answer.cautions:
        st.caption(plain(caution))


def _draw_publisher(study: PublishedStudy) -> None:
    _draw_source(study.source)


def _draw_source(source: StudySource) -> None:
    """Draw the machines, the method, unknown facts, the licence and the address of a source."""
    unknown = f" Unknown: {source.unknown}" if source.unknown else ""
    st.caption(plain(f"CPU: {source.cpu}. GPU: {source.gpu}. {source.note}{unknown}"))
    st.caption(plain(f"{source.name}{f', licence {source.licence}' if source.licence else ''}"))
    if source.address:
        st.code(source.address, language=None, wrap_lines=True)


def _draw_measured_choice(contents: GalleryData) -> None:
    """Draw the choice of a measured study below a published one, as a second picture."""
    if not contents.studies:
        return
    st.header("Beside a measured study")
    lines = {line.id: line for line in contents.studies[:MAX_OFFERED_STUDIES]}
    chosen = _choose_picture(
        "Measured study", {name: f"{lists.title_study(line)} · {line.machine}" for name, line in lines.items()}
    )
    if chosen:
        _draw_measured_picture(lines[chosen])


def _choose_picture(label: str, names: Mapping[str, str]) -> str | None:
    """Return the study to compare the open one with; the link has its name, the control its title."""
    linked = [name for name in session.read_compared(links.AGAINST) if name in names]
    session.set_values({"against": linked[0] if linked else None})
    chosen: str | None = st.selectbox(
        label,
        list(names),
        key="against",
        format_func=lambda name: as_line(names[name]),
        index=None,
        placeholder="choose one",
        on_change=lambda: session.set_compared([*filter(None, [session.read_value("against")])], links.AGAINST),
    )
    return chosen


def _draw_measured_picture(line: StudyLine) -> None:
    said, chart = lists.make_cards([line])(line)
    st.markdown(f"**{plain(lists.title_study(line))}**")
    if chart is not None:
        elements.draw_chart(chart, height=None, alt=f"Time per step: {lists.title_study(line)}")
    st.markdown(plain(said))
    st.caption(plain(lists.describe_study(line)))


def _draw_published_downloads(study: PublishedStudy) -> None:
    st.header("Export")
    name, address = f"published-{study.name}", session.make_address({"study": study.name})
    with st.container(horizontal=True):
        elements.draw_download_button(
            "Figures as csv", published_report.study_csv(study), f"{name}.csv", "text/csv", key="published-csv"
        )
        paper = partial(_write_paper, study, address)
        elements.draw_download_button("Report as HTML", paper, f"{name}.html", "text/html", key="published-report")
    st.caption("Each names the author, the date and the licence.")
    elements.draw_link("Link to this study:", {"study": study.name})


def _write_paper(study: PublishedStudy, address: str) -> str:
    return lesson_report.handout_html(published_report.study_report(study, address))
