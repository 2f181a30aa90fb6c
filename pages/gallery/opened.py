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
from pages.shared.draw.text import plain, told
from pages.shared.frame import apart, navigation, permits
from pages.shared.link import choices, links, others, state


def study(study_id: str, held: Held, shown: Sequence[int]) -> None:
    lists.back()
    apart.draw(_study, study_id, held, shown)


def _study(study_id: str, held: Held, shown: Sequence[int]) -> None:
    of = reads.study(study_id)
    if of is None:
        st.warning(
            f"There is no study {study_id} here; its rows were measured elsewhere, were removed, or cannot be read."
        )
        return
    rows = [row for run in of.runs for row in run]
    line = reads.study_line(study_id)
    st.header(plain(lists.title(line)) if line is not None else "Study")
    if line is not None:
        st.caption(plain(lists.about(line)))
    apart.draw(lambda: _trust(trust.of(rows)))
    basis = _answer(of)
    for part in (
        lambda: machines_view.beside(of),
        lambda: beside.studies(of, held, shown, basis),
        published.beside,
        lambda: _where_the_time_goes(of),
        lambda: _learned(of),
        lambda: _fingerprint(rows),
        lambda: _take_along(of, rows),
    ):
        apart.draw(part)


def run(run_id: str) -> None:
    """Draw a run, or that it is not here; with another run in the link, what differs between the two."""
    trials = reads.rows(run_ids=[run_id])
    if not trials:
        st.warning(
            f"There is no run {run_id} here; it was measured elsewhere, or its files were removed or cannot be read."
        )
        return
    named = [name for name in others.beside()[:1] if name != run_id]
    if named:
        apart.draw(_beside, trials, named)
    st.header("Run")
    run_view.heading(trials)
    apart.draw(lambda: _trust(trust.of(trials)))
    run_view.draw(trials)
    _set_up(trials)


def _set_up(trials: Sequence[Trial]) -> None:
    """Draw the way to the Compare page with the settings of a run, below its answer."""
    asked = run_view.experiment_of(trials)
    offered = asked and (not asked.point.training or asked.point.training in permits.trainings())
    if asked and offered and st.button("Set this up in Compare", icon=":material/balance:"):
        state.start("compare", links.settings(asked))
        st.switch_page(navigation.COMPARE, query_params=links.settings(asked))


def _beside(trials: Sequence[Trial], others: Sequence[str]) -> None:
    if second := reads.rows(run_ids=others):
        beside.runs(trials, second)


def _answer(of: Study) -> Basis:
    basis, located = study_view.answer(of)
    if located is None:
        return basis
    study_view.cause(of, located.answer)
    study_view.speedups(located)
    st.markdown("**Size by size**")
    study_view.sizes(located.answer, of.runs)
    return basis


def _trust(found: TrustMark) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        lists.mark(found.level, found.label)
        if not found.missing:
            st.caption(f"All {found.of} checks of what is stored with the rows are met.", width="content")
    if found.missing:
        with st.expander(f"What the trust mark lacks ({len(found.missing)})", **state.bound_view("lacks")) as part:
            for sentence in found.missing if part.open else ():
                st.markdown(f"- {plain(sentence)}")


def _where_the_time_goes(of: Study) -> None:
    known = grouping.parts(of)
    st.header("Where the time goes")
    if not any(known):
        st.caption("No step was taken apart in these runs.")
        return
    for place, (column, parts, row) in enumerate(zip(st.columns(2, gap="medium"), known, of.runs[0], strict=True), 1):
        with column:
            st.markdown(f"**{plain(label(row))}**")
            if not parts:
                st.caption("Not measured.")
                continue
            spec = gallery.parts_over_sizes(parts, of.axis)
            name = f"Parts of a step by {axis_title(of.axis)} on {spoken(row.contender)}"
            charts.chart(spec, height=None, alt=name)
            study_view.save(spec, of, f"parts-{of.id}-{place}-{row.contender}", name)  # two rows may name one device


def _learned(of: Study) -> None:
    """The classification reports of one size, and the way to its run."""
    numbers = [describe.plain(size_of(run[0], of.axis)) for run in of.runs]
    sizes = {str(number): choices.grouped(number) for number in numbers}
    st.header("One size in full")
    names = list(sizes)
    bound = choices.bound("size", names, names[-1], sizes.__getitem__)
    chosen = st.select_slider(axis_title(of.axis).capitalize(), names, value=names[-1], **bound)
    trials = of.runs[names.index(chosen)]
    with told(st.warning):
        run_view.learned(trials)
    if not any(trial.confusion for trial in trials):
        st.caption("This size was timed only, so there is no classification report.")
    st.button(
        "Open its run",
        on_click=state.show,
        args=("run", trials[0].run_id),
        icon=":material/open_in_full:",
        key="open-run",
    )


def _fingerprint(rows: Sequence[Trial]) -> None:
    label = "Fingerprint: the machine, its devices, versions and the way of measuring"
    with st.expander(label, **state.bound_view("fingerprint")) as part:
        if part.open:
            tables.table(
                [{"What": what, "As measured": said} for what, said in side_by_side.fingerprint(rows).items()],
                height="content",
                alt="Fingerprint of the machine and the way of measuring",
            )


def _take_along(of: Study, rows: Sequence[Trial]) -> None:
    st.header("Take it along")
    downloads.rows(rows, name=f"crossover-{of.id}", repeats=True)
    downloads.command(sweep_view.asked_by(of), "study")
    downloads.link("Link to this study:", {"study": of.id})
