"""One study or one run of the Gallery, opened: its answer, what it rests on, and how to take it along.

Draws what `core.answer` says and decides nothing. Whatever a row's file wrote is shown as plain text.
"""

from collections.abc import Sequence

import streamlit as st

from core.answer import breakdown, report, side_by_side, summary, trust
from core.answer.charts import gallery
from core.answer.holdings import Held
from core.answer.outcome import Basis
from core.answer.study import Study
from core.answer.trust import Mark
from core.errors import CrossoverError
from core.results.schema import Trial
from core.sweep import size_of
from pages.shared import (
    apart,
    downloads,
    drawing,
    gallery_beside,
    gallery_list,
    links,
    loaders,
    navigation,
    result,
    state,
    study_view,
    sweep_view,
    tables,
)
from pages.shared.text import plain


def study(study_id: str, held: Held, shown: Sequence[int]) -> None:
    """Draw a study, or that it is not here."""
    back()
    apart.draw(_study, study_id, held, shown)


def _study(study_id: str, held: Held, shown: Sequence[int]) -> None:
    of = loaders.study(study_id)
    if of is None:
        st.warning(
            f"There is no study {study_id} here; its rows were measured elsewhere, were removed, or cannot be read."
        )
        return
    rows = [row for run in of.runs for row in run]
    line = next((line for line in held.studies if line.id == study_id), None)
    st.header("Study")
    if line is not None:
        st.markdown(f"**{plain(gallery_list.title(line))}**")
        st.caption(plain(gallery_list.about(line)))
    apart.draw(lambda: _trust(trust.of(rows)))
    basis = _answer(of)
    for part in (
        lambda: gallery_beside.studies(of, held, shown, basis),
        lambda: _where_the_time_goes(of),
        lambda: _learned(of),
        lambda: _fingerprint(rows),
        lambda: _take_along(of, rows),
    ):
        apart.draw(part)


def run(run_id: str) -> None:
    """Draw a run, or that it is not here; with another run in the link, what differs between the two."""
    trials = loaders.rows(run_ids=[run_id])
    if not trials:
        st.warning(
            f"There is no run {run_id} here; it was measured elsewhere, or its files were removed or cannot be read."
        )
        return
    others = [name for name in state.beside()[:1] if name != run_id]
    if others:
        apart.draw(_beside, trials, others)
    st.header("Run")
    result.heading(trials)
    apart.draw(lambda: _trust(trust.of(trials)))
    asked = result.experiment_of(trials)
    if asked and st.button("Set this up in Compare", icon=":material/balance:"):
        state.arrive(asked)
        st.switch_page(navigation.COMPARE, query_params=links.settings(asked))
    result.draw(trials)


def _beside(trials: Sequence[Trial], others: Sequence[str]) -> None:
    if second := loaders.rows(run_ids=others):
        gallery_beside.runs(trials, second)


def back() -> None:
    """Draw the button that closes what is open."""
    st.button("Back to the list", on_click=gallery_list.close, icon=":material/arrow_back:", key="close")


def _answer(of: Study) -> Basis:
    """The crossover in words, as a chart and size by size; the cost basis that was chosen."""
    basis, located = study_view.answer(of)
    if located is None:
        return basis
    downloads.chart(located.chart, f"crossover-{of.id}-{basis}")
    study_view.cause(of, located.answer)
    st.markdown("**Size by size**")
    study_view.sizes(located.answer, of.runs)
    study_view.speedups(located)
    return basis


def _trust(found: Mark) -> None:
    """The trust mark and, for each check that is not met, why."""
    gallery_list.mark(found.level, found.label)
    if found.missing:
        with st.expander(f"What the trust mark lacks ({len(found.missing)})", **state.bound_view("lacks")) as part:
            for sentence in found.missing if part.open else ():
                st.markdown(f"- {plain(sentence)}")
    else:
        st.caption(f"All {found.of} checks of what is stored with the rows are met.")


def _where_the_time_goes(of: Study) -> None:
    """The parts of a step over the sizes, for each device."""
    steps = [{size_of(run[0], of.axis): breakdown.parts(run[place]) for run in of.runs} for place in (0, 1)]
    known = [{size: parts for size, parts in each.items() if parts is not None} for each in steps]
    st.header("Where the time goes")
    if not any(known):
        st.caption("No step was taken apart in these runs.")
        return
    for place, (column, parts, row) in enumerate(zip(st.columns(2, gap="medium"), known, of.runs[0], strict=True), 1):
        with column:
            st.markdown(f"**{plain(summary.label(row))}**")
            if not parts:
                st.caption("Not measured.")
                continue
            spec = gallery.parts_over_sizes(parts, of.axis)
            name = f"Parts of a step by {report.axis_title(of.axis)} on {row.contender}"
            drawing.chart(spec, height=None, alt=name)
            downloads.chart(spec, f"parts-{of.id}-{place}-{row.contender}")  # two rows may name one device


def _learned(of: Study) -> None:
    """The classification reports of one size, and the way to its run."""
    sizes = [str(links.plain(size_of(run[0], of.axis))) for run in of.runs]
    st.header("One size in full")
    chosen = st.select_slider(
        report.axis_title(of.axis).capitalize(),
        sizes,
        value=sizes[-1],
        **state.bound("size"),
    )
    trials = of.runs[sizes.index(chosen)]
    try:
        result.learned(trials)
    except CrossoverError as error:
        st.warning(plain(str(error)))
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
    """Rows, a script, the command and the link."""
    st.header("Take it along")
    downloads.rows(rows, name=f"crossover-{of.id}")
    downloads.script(rows)
    asked = sweep_view.asked_by(of)
    if asked is None:
        st.caption("These settings are not offered by this version, so it cannot repeat the study.")
    else:
        st.caption("Repeat it on any machine, without the app:")
        st.code(sweep_view.command(asked), language="bash", wrap_lines=True)
    st.caption("Link to this study:")
    st.code(state.address({"study": of.id}), language=None, wrap_lines=True)
