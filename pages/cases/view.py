"""One case: its card in the list, and its view with published figures, measurements of this machine, cause and remedy.

Published and measured figures are two pictures and never enter one number.
"""

from collections.abc import Sequence

import streamlit as st

from core import units
from core.answer.charts import gallery_charts, run_charts
from core.answer.lessons import cases as answers
from core.answer.speedup import is_host
from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question import describe
from core.question.experiment import Experiment
from core.question.published import CAUSES, Case
from core.results.schema import Trial
from pages.shared import controls, elements, layout, learning, queries, session
from pages.shared.elements import plain

NO_FIGURE = "No figure was reported."

SHIPPED = "An example script that comes with Crossover. It runs like any custom training script."


def draw_case_cards(cases: Sequence[Case], *, answered: bool) -> None:
    """Draw a card for each case, two in a row."""
    counted = units.format_quantity(len(cases), "case")
    fit = " that fit your answers, the likeliest first" if len(cases) > 1 else " that fits your answers"
    st.caption(f"{counted}{fit if answered else ''}")
    layout.draw_pairs(cases, _draw_case_card)


def draw_case(case: Case, machine: Machine | None) -> None:
    """Draw a case: its report, cause and advice, its published figures, and the measurements of this machine."""
    if case.runnable:
        layout.skip("Skip the published part")
    st.button("Back to the list", on_click=session.clear_view, icon=":material/arrow_back:", key="close")
    st.header(case.title)
    _draw_case_mark(case)
    st.markdown(plain(case.reported))
    st.caption(plain(f"{case.model}. {case.devices}."))
    st.info(f"**The cause: {plain(CAUSES[case.cause])}.** {plain(case.found)}", icon=":material/search:")
    st.markdown(f"**Advice:** {plain(case.remedied)}")
    note = case.open if case.figures else case.open.removeprefix(NO_FIGURE).strip()  # shown below
    for said in (note and f"Note: {note}", case.gpu if case.runnable else ""):
        if said:
            st.caption(plain(said))
    task = _make_case_task(case, machine)
    known = learning.find_answers(task, machine) if machine and task else None
    before, after = (
        (known.rows.get(asked.id, ()) if known else () for asked in (*task, *task)[:2]) if task else ((), ())
    )
    if len(task) < 2:
        after = ()
    theirs, ours = st.columns(2, gap="medium")
    with theirs:
        _draw_published_figures(case)
    with ours:
        _draw_substitute(case, machine, task, known, before)
    for section in answers.case_sections(case, before, after):
        learning.draw_section(section)
    _draw_recorded_effect(case, machine)


def _draw_case_card(case: Case) -> None:
    with st.container(border=True, height="stretch", key=f"card-{case.name}"):
        st.markdown(f"**{plain(case.title)}**")
        st.markdown(plain(case.reported))
        st.markdown(f"*Cause:* {plain(CAUSES[case.cause])}")
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.caption(plain(answers.case_source(case)), width="content")
            st.button("Open", key=f"open-{case.name}", on_click=session.show_view, args=("case", case.name))


def _draw_case_mark(case: Case) -> None:
    """Draw the badge that marks a case as published, with its source and a link to the thread."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("Published", icon=":material/menu_book:", color="violet")
        st.caption(plain(answers.case_source(case)), width="content")
        st.link_button("Open the thread", case.address, type="tertiary", icon=":material/open_in_new:")


def _make_case_task(case: Case, machine: Machine | None) -> tuple[Experiment, ...]:
    """Return the experiments of a case on this machine; empty without a machine, or if nothing of the case runs."""
    if machine is None or not case.runnable:
        return ()
    return case.build_experiments(case.contenders(machine.device_names, machine.environment.cores_usable))


def _draw_published_figures(case: Case) -> None:
    st.header("Published", anchor=False)
    if case.figures:
        elements.draw_chart(
            gallery_charts.case_figures_chart(case.figures, case.unit),
            height=None,
            alt=f"Published: {case.title}, {case.unit}",
        )
    else:
        st.caption(NO_FIGURE)


def _draw_substitute(
    case: Case,
    machine: Machine | None,
    task: tuple[Experiment, ...],
    answers: learning.TaskAnswers | None,
    rows: Sequence[Trial],
) -> None:
    """Draw the equivalent training with its measurements, and the button that measures it."""
    st.header("On this machine", anchor=False)
    if not case.runnable:
        st.markdown(plain(f"Nothing of it can run here. {case.gpu or 'This version has no training that shows it.'}"))
        if case.lesson:
            link = {"lesson": case.lesson}
            st.page_link(layout.LESSONS, label="Lesson on this cause", icon=":material/lightbulb:", query_params=link)
        return
    if any(row.step_s for row in rows):
        elements.draw_chart(
            queries.make_chart(run_charts.step_bars_chart, rows), height="content", alt="Time of a step, measured here"
        )
    point = case.point()
    st.markdown(plain(SHIPPED if point.training else describe.describe_question(point)))
    change = f"The fix that is measured with it: {case.remedy.title}." if case.remedy else ""
    st.caption(plain(" ".join(filter(None, (case.note, change)))))
    with st.container(key="ask"):
        if answers:
            learning.draw_task_button(task, answers)
        elif machine is None:
            controls.wait_for_devices()
            learning.draw_waiting_button()
    st.code(f"python -m core case {case.name} --run", language=None, wrap_lines=True)


def _draw_recorded_effect(case: Case, machine: Machine | None) -> None:
    """Draw recorded results of the same training on another machine's GPU, if this machine has none."""
    if machine is None or not case.runnable or len(machine.devices) > 1:
        return
    try:
        point = case.point()
        rows = () if point.training else learning.find_recorded_trials([point], machine)
    except CrossoverError:
        return
    if any(not is_host(row) for row in rows):
        st.header("Recorded on another machine")
        elements.draw_chart(
            queries.make_chart(run_charts.step_bars_chart, rows), alt="Time of a step, recorded elsewhere"
        )
        for one in answers.find_causes(rows):
            st.markdown(plain(one.sentence))
