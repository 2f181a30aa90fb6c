"""One study or one run of the Gallery, opened: its answer, what it rests on, and how to take it along.

Draws what `core.answer` says and decides nothing. Whatever a row's file wrote is shown as plain text.
"""

from collections.abc import Sequence

import streamlit as st

from core.answer.charts import gallery
from core.answer.gallery import side_by_side, trust
from core.answer.gallery.filters import Held
from core.answer.gallery.trust import TrustMark
from core.answer.run.speedup import label
from core.answer.study import study as grouping
from core.answer.study.result import Basis
from core.answer.study.study import Study
from core.question import describe
from core.question.experiment import spoken
from core.question.fields import axis_title
from core.question.sweep import size_of
from core.results.schema import Trial
from pages.gallery import beside, lists, published
from pages.shared.answer import downloads, machines_view, run_view, study_view, sweep_view
from pages.shared.data import reads
from pages.shared.draw import charts, tables
from pages.shared.draw.text import plain, show_errors
from pages.shared.frame import apart, navigation, permits
from pages.shared.link import choices, links, others, state


def draw_opened_study(study_id: str, contents: Held, places: Sequence[int]) -> None:
    lists.draw_back_button()
    apart.draw(_draw_study_parts, study_id, contents, places)


def _draw_study_parts(study_id: str, contents: Held, places: Sequence[int]) -> None:
    of = reads.find_study(study_id)
    if of is None:
        st.warning(
            f"There is no study {study_id} here; its rows were measured elsewhere, were removed, or cannot be read."
        )
        return
    rows = [row for run in of.runs for row in run]
    line = reads.find_study_line(study_id)
    st.header(plain(lists.title_study(line)) if line is not None else "Study")
    if line is not None:
        st.caption(plain(lists.describe_study(line)))
    apart.draw(lambda: _draw_trust(trust.of(rows)))
    basis = _draw_study_answer(of)
    for part in (
        lambda: machines_view.draw_other_machines(of),
        lambda: beside.draw_compared_studies(of, contents, places, basis),
        published.draw_published_choice,
        lambda: _draw_study_breakdown(of),
        lambda: _draw_learning_reports(of),
        lambda: _draw_study_fingerprint(rows),
        lambda: _draw_study_downloads(of, rows),
    ):
        apart.draw(part)


def draw_opened_run(run_id: str) -> None:
    """Draw a run, or that it is not here; with another run in the link, what differs between the two."""
    trials = reads.find_rows(run_ids=[run_id])
    if not trials:
        st.warning(
            f"There is no run {run_id} here; it was measured elsewhere, or its files were removed or cannot be read."
        )
        return
    named = [name for name in others.read_compared()[:1] if name != run_id]
    if named:
        apart.draw(_draw_compared_run, trials, named)
    st.header("Run")
    run_view.draw_run_heading(trials)
    apart.draw(lambda: _draw_trust(trust.of(trials)))
    run_view.draw_run(trials)
    _draw_setup_link(trials)


def _draw_setup_link(trials: Sequence[Trial]) -> None:
    """Draw the way to the Compare page with the settings of a run, below its answer."""
    asked = run_view.make_run_question(trials)
    offered = asked and (not asked.point.training or asked.point.training in permits.trainings())
    if asked and offered and st.button("Set this up in Compare", icon=":material/balance:"):
        state.restart_page("compare", links.make_run_link(asked))
        st.switch_page(navigation.COMPARE, query_params=links.make_run_link(asked))


def _draw_compared_run(trials: Sequence[Trial], other_ids: Sequence[str]) -> None:
    if second := reads.find_rows(run_ids=other_ids):
        beside.draw_compared_runs(trials, second)


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
            st.caption(f"All {trust_mark.of} checks of what is stored with the rows are met.", width="content")
    if trust_mark.missing:
        with st.expander(f"What the trust mark lacks ({len(trust_mark.missing)})", **state.bind_view("lacks")) as part:
            for sentence in trust_mark.missing if part.open else ():
                st.markdown(f"- {plain(sentence)}")


def _draw_study_breakdown(study: Study) -> None:
    known = grouping.parts(study)
    st.header("Where the time goes")
    if not any(known):
        st.caption("No step was taken apart in these runs.")
        return
    for place, (column, parts, row) in enumerate(
        zip(st.columns(2, gap="medium"), known, study.runs[0], strict=True), 1
    ):
        with column:
            st.markdown(f"**{plain(label(row))}**")
            if not parts:
                st.caption("Not measured.")
                continue
            spec = gallery.parts_over_sizes(parts, study.axis)
            name = f"Parts of a step by {axis_title(study.axis)} on {spoken(row.contender)}"
            charts.draw_chart(spec, height=None, alt=name)
            study_view.draw_study_downloads(
                spec, study, f"parts-{study.id}-{place}-{row.contender}", name
            )  # two rows may name one device


def _draw_learning_reports(study: Study) -> None:
    """The classification reports of one size, and the way to its run."""
    numbers = [describe.plain(size_of(run[0], study.axis)) for run in study.runs]
    sizes = {str(number): choices.format_number(number) for number in numbers}
    st.header("One size in full")
    names = list(sizes)
    bound = choices.bind_choice("size", names, names[-1], sizes.__getitem__)
    chosen = st.select_slider(axis_title(study.axis).capitalize(), names, value=names[-1], **bound)
    trials = study.runs[names.index(chosen)]
    with show_errors(st.warning):
        run_view.draw_learning(trials)
    if not any(trial.confusion for trial in trials):
        st.caption("This size was timed only, so there is no classification report.")
    st.button(
        "Open its run",
        on_click=state.show_view,
        args=("run", trials[0].run_id),
        icon=":material/open_in_full:",
        key="open-run",
    )


def _draw_study_fingerprint(rows: Sequence[Trial]) -> None:
    label = "Fingerprint: the machine, its devices, versions and the way of measuring"
    with st.expander(label, **state.bind_view("fingerprint")) as part:
        if part.open:
            tables.draw_table(
                [{"What": what, "As measured": said} for what, said in side_by_side.fingerprint(rows).items()],
                height="content",
                alt="Fingerprint of the machine and the way of measuring",
            )


def _draw_study_downloads(study: Study, rows: Sequence[Trial]) -> None:
    st.header("Take it along")
    downloads.draw_row_downloads(rows, name=f"crossover-{study.id}", repeats=True)
    downloads.draw_command(sweep_view.find_sweep_of_study(study), "study")
    downloads.draw_link("Link to this study:", {"study": study.id})
