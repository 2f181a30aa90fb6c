"""The open item of the gallery: a study or a run, with others to compare it with, or a published study.

A published study is always marked as published, and shares no chart, count or selection with measured rows. Next to a
measured study it is a picture of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from core.answer import speedup
from core.answer.charts import gallery_charts
from core.answer.charts.gallery_charts import MAX_STUDIES_DRAWN, StudyCurves
from core.answer.export import handout
from core.answer.gallery import side_by_side, trust
from core.answer.gallery.overview import GalleryData, StudyLine
from core.answer.gallery.published import (
    PublishedStudy,
    PublishedTable,
    StudySource,
    load_published_studies,
    load_published_tables,
)
from core.answer.gallery.side_by_side import IN_WORDS, SideBySide
from core.answer.gallery.trust import TrustMark
from core.answer.judgement import DECIDED, Basis, Crossover
from core.answer.speedup import contender_label
from core.answer.study import Study
from core.errors import CrossoverError
from core.question import describe
from core.question.experiment import display_name, inline_name
from core.question.fields import axis_title
from core.question.sweep import size_on_axis
from core.results.schema import Trial
from core.text import as_line
from pages.gallery import lists
from pages.shared import elements, layout, links, permits, queries, run_view, session, study_view, sweep_view
from pages.shared.cache import cache_answers
from pages.shared.elements import plain, show_errors

MAX_COMPARED_STUDIES = 200
"""Maximum number of studies offered for comparison; the filters above shorten the list."""


def draw_compared_studies(study: Study, contents: GalleryData, places: Sequence[int], basis: Basis) -> None:
    """Draw other studies on one chart with the open one; with a single other study, also draw the differences.

    `places` are the positions of the filtered studies.
    """
    st.header("Compared with other studies")
    names = _list_comparable_studies(study, contents, places)
    if not names:
        st.caption("There is no study to compare with. Import results of the same training from another machine.")
        return
    others = [
        other for name in _choose_compared(names) if (other := _read_compared_study(name, names[name])) is not None
    ]
    refused = {other.id: reason for other in others if (reason := side_by_side.chart_refusal(study, other))}
    for name, reason in refused.items():
        st.warning(plain(f"{names[name]} is not shown. {reason}"))
    together = [study, *(other for other in others if other.id not in refused)]
    if len(together) > 1:
        _draw_compared_chart(together, basis)
    if len(others) == 1:
        answers = (_find_study_answer(study, basis), _find_study_answer(others[0], basis))
        _draw_differences(side_by_side.compare_studies(study, others[0], answers), ("This study", names[others[0].id]))


def draw_compared_runs(first: Sequence[Trial], second: Sequence[Trial]) -> None:
    st.header("Two runs side by side")
    if first[0].protocol_version != second[0].protocol_version:
        st.warning("The two runs follow different methodology versions, so their times cannot be compared.")
    _draw_differences(side_by_side.compare_runs(first, second), (f"Run {first[0].run_id}", f"Run {second[0].run_id}"))


def _list_comparable_studies(study: Study, contents: GalleryData, places: Sequence[int]) -> dict[str, str]:
    """Return id → name of the studies that can share a chart with this one, and of all studies that the link names."""
    alike = [place for place in places if _may_share_chart(study, contents, place)][:MAX_COMPARED_STUDIES]
    lines = [contents.studies[place] for place in alike]
    names = {line.id: f"{lists.title_study(line)} · {line.machine}" for line in lines}
    known = {line.id: line for line in contents.studies}
    named = [name for name in session.read_compared() if name in known and name != study.id]
    return names | {name: f"{lists.title_study(known[name])} · {known[name].machine}" for name in named}


def _read_compared_study(study_id: str, name: str) -> Study | None:
    try:
        return queries.find_study(study_id)
    except CrossoverError as error:
        st.warning(plain(f"{name} is not shown. {error}"))
        return None


def _may_share_chart(study: Study, contents: GalleryData, place: int) -> bool:
    """Return whether another study varies the same setting of the same training, with the same methodology version."""
    line, row = contents.studies[place], study.runs[0][0]
    if line.id == study.id or (line.axis, line.protocol_version) != (study.axis, row.protocol_version):
        return False
    first = contents.row_of[contents.study_of == place][:1]
    columns = set(speedup.columns_except_axis(speedup.CHART_COLUMNS, study.axis))
    columns -= {"protocol_version"}  # text in this table
    others = contents.trials.iloc[first].itertuples(index=False)
    return all(not speedup.differing_columns(row, other, columns) for other in others)


def _choose_compared(names: dict[str, str]) -> list[str]:
    """Draw the choice of studies to compare; the link stores their ids, which are shorter than names."""
    session.set_values({"beside": [name for name in session.read_compared() if name in names][: MAX_STUDIES_DRAWN - 1]})
    return st.multiselect(
        "Compare with",
        list(names),
        key="beside",
        format_func=lambda name: as_line(names[name]),
        max_selections=MAX_STUDIES_DRAWN - 1,
        on_change=lambda: session.set_compared(session.read_value("beside")),
        placeholder="choose up to three",
        help="The same training on other machines or devices shares one chart. One other is compared line by line.",
    )


def _draw_compared_chart(together: Sequence[Study], basis: Basis) -> None:
    curves = [curve for study in together if (curve := _make_curve(study, basis)) is not None]
    if len(curves) < 2:
        st.caption("Only one of the studies has a result, so there is nothing to compare.")
        return
    machines = {study.runs[0][0].machine_id for study in together}
    st.caption(
        f"{len(machines)} machines, each with a fingerprint of its own: their blocks did not alternate, so a "
        "difference between machines has no interval."
        if len(machines) > 1
        else "All were measured on one machine."
    )
    for draw, name in (
        (gallery_charts.study_times_chart, "Time per step"),
        (gallery_charts.study_speedups_chart, "Speedup"),
    ):
        st.markdown(f"**{name}**")
        spec = draw(_number_curves(curves))
        elements.draw_chart(spec, alt=f"{name} of {len(curves)} studies")
        rows = [row for study in together for run in study.runs for row in run]
        file = f"{name.lower().replace(' ', '-')}-{'-'.join(study.id for study in together)}"
        elements.draw_chart_downloads(
            spec, file, title=f"{name} of {len(curves)} studies", rows=rows, axis=together[0].axis
        )


def _make_curve(study: Study, basis: Basis) -> StudyCurves | None:
    try:
        answer = queries.locate_crossover(study, basis).answer
    except CrossoverError as error:
        st.warning(plain(f"The study {study.id} is not shown. {error}"))
        return None
    baseline, challenger = study.runs[0]
    machine = baseline.machine_id[:6]
    names = [f"{display_name(row.contender)}, {row.device_name} [{machine}]" for row in (baseline, challenger)]
    return StudyCurves(
        name=names[1], devices=(names[0], names[1]), answer=answer, kinds=(baseline.device_kind, challenger.device_kind)
    )


def _number_curves(curves: Sequence[StudyCurves]) -> list[StudyCurves]:
    """Number the curves if two have the same name: the name does not show how their studies differ."""
    names = [device for curve in curves for device in curve.devices]
    if len(set(names)) == len(names):
        return list(curves)
    return [_number_curve(curve, number) for number, curve in enumerate(curves, 1)]


def _number_curve(curve: StudyCurves, number: int) -> StudyCurves:
    first, second = curve.devices
    of = f"study {number}"
    return replace(curve, name=f"{curve.name}, {of}", devices=(f"{first}, {of}", f"{second}, {of}"))


def _find_study_answer(study: Study, basis: Basis) -> Crossover | None:
    try:
        return queries.locate_crossover(study, basis).answer
    except CrossoverError:
        return None


def _draw_differences(comparison: SideBySide, names: tuple[str, str]) -> None:
    if not comparison.differences:
        st.caption(f"All {comparison.alike} stored properties of both are the same.")
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
    elements.draw_table(rows, height="content", alt="Differences between the two")
    st.caption(f"{comparison.alike} other properties are the same on both sides.")


def draw_opened_study(study_id: str, contents: GalleryData, places: Sequence[int]) -> None:
    lists.draw_back_button()
    layout.draw_isolated(_draw_study_parts, study_id, contents, places)


def _draw_study_parts(study_id: str, contents: GalleryData, places: Sequence[int]) -> None:
    of = queries.find_study(study_id)
    if of is None:
        st.warning(
            f"There is no study {study_id} here; its rows were measured elsewhere, were removed, or cannot be read."
        )
        return
    rows = [row for run in of.runs for row in run]
    line = queries.find_study_line(study_id)
    st.header(plain(lists.title_study(line)) if line is not None else "Study")
    if line is not None:
        st.caption(plain(lists.describe_study(line)))
    layout.draw_isolated(lambda: _draw_trust(trust.trust_mark(rows)))
    basis = _draw_study_answer(of)
    for part in (
        lambda: sweep_view.draw_other_machines(of),
        lambda: draw_compared_studies(of, contents, places, basis),
        draw_published_choice,
        lambda: _draw_study_breakdown(of),
        lambda: _draw_learning_reports(of),
        lambda: _draw_study_fingerprint(rows),
        lambda: _draw_study_downloads(of, rows),
    ):
        layout.draw_isolated(part)


def draw_opened_run(run_id: str) -> None:
    """Draw a run, or a warning if it is missing; with another run in the link, also draw their differences."""
    trials = queries.find_rows(run_ids=[run_id])
    if not trials:
        st.warning(
            f"There is no run {run_id} here; it was measured elsewhere, or its files were removed or cannot be read."
        )
        return
    named = [name for name in session.read_compared()[:1] if name != run_id]
    if named:
        layout.draw_isolated(_draw_compared_run, trials, named)
    st.header("Run")
    run_view.draw_run_heading(trials)
    layout.draw_isolated(lambda: _draw_trust(trust.trust_mark(trials)))
    run_view.draw_run(trials)
    _draw_setup_link(trials)


def _draw_setup_link(trials: Sequence[Trial]) -> None:
    """Draw the button that opens Explore with the settings of a run, below its answer."""
    asked = run_view.make_run_question(trials)
    offered = asked and (not asked.point.training or asked.point.training in permits.trainings())
    if asked and offered and st.button("Set this up in Explore", icon=":material/balance:"):
        session.restart_page("explore", links.make_run_link(asked))
        st.switch_page(layout.EXPLORE, query_params=links.make_run_link(asked))


def _draw_compared_run(trials: Sequence[Trial], other_ids: Sequence[str]) -> None:
    if second := queries.find_rows(run_ids=other_ids):
        draw_compared_runs(trials, second)


def _draw_study_answer(study: Study) -> Basis:
    basis, located = study_view.draw_crossover_answer(study)
    if located is None:
        return basis
    study_view.draw_cause(study, located.answer)
    study_view.draw_speedup_chart(located)
    st.markdown("**Size by size**")
    study_view.draw_sizes_table(located.answer, study.runs)
    return basis


def _draw_trust(trust_mark: TrustMark) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        lists.draw_trust_mark(trust_mark.level, trust_mark.label)
        if not trust_mark.missing:
            st.caption(f"All {trust_mark.of} quality checks passed.", width="content")
    if trust_mark.missing:
        with st.expander(f"Failed quality checks ({len(trust_mark.missing)})", **session.bind_view("lacks")) as part:
            for sentence in trust_mark.missing if part.open else ():
                st.markdown(f"- {plain(sentence)}")


def _draw_study_breakdown(study: Study) -> None:
    known = study.part_times()
    st.header("Where the time goes")
    if not any(known):
        st.caption("No step breakdown for these runs.")
        return
    for place, (column, parts, row) in enumerate(
        zip(st.columns(2, gap="medium"), known, study.runs[0], strict=True), 1
    ):
        with column:
            st.markdown(f"**{plain(contender_label(row))}**")
            if not parts:
                st.caption("Not measured.")
                continue
            spec = gallery_charts.parts_over_sizes_chart(parts, study.axis)
            name = f"Parts of a step by {axis_title(study.axis)} on {inline_name(row.contender)}"
            elements.draw_chart(spec, height=None, alt=name)
            study_view.draw_study_downloads(
                spec, study, f"parts-{study.id}-{place}-{row.contender}", name
            )  # two rows may name one device


def _draw_learning_reports(study: Study) -> None:
    """Draw the classification reports of one size, and the button that opens its run."""
    numbers = [describe.simplify_number(size_on_axis(run[0], study.axis)) for run in study.runs]
    sizes = {str(number): session.format_number(number) for number in numbers}
    st.header("One size in full")
    names = list(sizes)
    bound = session.bind_choice("size", names, names[-1], sizes.__getitem__)
    chosen = st.select_slider(axis_title(study.axis).capitalize(), names, value=names[-1], **bound)
    trials = study.runs[names.index(chosen)]
    with show_errors(st.warning):
        run_view.draw_learning(trials)
    if not any(trial.confusion for trial in trials):
        st.caption("This size was timed only, so there is no classification report.")
    st.button(
        "Open its run",
        on_click=session.show_view,
        args=("run", trials[0].run_id),
        icon=":material/open_in_full:",
        key="open-run",
    )


def _draw_study_fingerprint(rows: Sequence[Trial]) -> None:
    label = "Fingerprint: the machine, its devices, versions and measurement settings"
    with st.expander(label, **session.bind_view("fingerprint")) as part:
        if part.open:
            elements.draw_table(
                [{"What": what, "As measured": said} for what, said in side_by_side.environment_facts(rows).items()],
                height="content",
                alt="Fingerprint of the machine and the measurement settings",
            )


def _draw_study_downloads(study: Study, rows: Sequence[Trial]) -> None:
    st.header("Export")
    elements.draw_row_downloads(rows, name=f"crossover-{study.id}", repeats=True)
    elements.draw_command(sweep_view.find_sweep_of_study(study), "study")
    elements.draw_link("Link to this study:", {"study": study.id})


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
    elements.draw_chart_downloads(gallery_charts.chart_published_study(study), f"published-{name}")
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
    return gallery_charts.chart_published_study(list_published()[name])


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
        spec = gallery_charts.case_figures_chart(one.figures, one.unit)
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
            "Figures as csv", handout.study_csv(study), f"{name}.csv", "text/csv", key="published-csv"
        )
        paper = partial(_write_paper, study, address)
        elements.draw_download_button("Report as HTML", paper, f"{name}.html", "text/html", key="published-report")
    st.caption("Each names the author, the date and the licence.")
    elements.draw_link("Link to this study:", {"study": study.name})


def _write_paper(study: PublishedStudy, address: str) -> str:
    return handout.handout_html(handout.study_report(study, address))
