"""The class page for a student: join, expect, measure, and see what everybody found.

Nicknames and names of classes come from people and are only ever shown as plain text.
"""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import streamlit as st

from core import units
from core.answer import wording
from core.classroom.classes import CLOSED, Class, Prediction, Student
from core.classroom.question import NEVER, WINNERS
from core.classroom.results import Result, group_by_devices
from core.classroom.students import NICKNAME_LENGTH
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.question import defaults, describe
from core.text import as_lines
from pages.classroom import access, findings
from pages.shared import charts, controls, job_view, layout, learning, membership, permits, queries, session, tables
from pages.shared.text import plain, show_errors

REFRESH_S = 5.0
"""How often everybody's results are looked at again."""

FAULTS_NAMED = 5
"""Students whose rows have something wrong with them that are named to everybody; the teacher sees all."""

REASONS_NAMED = 3
"""Reasons why rows of a file are left out that are named."""

POINTS = (
    "Points with their 95 % intervals are crossovers that were measured, one a student; a triangle at an end means "
    "faster at every size, or at none. "
)
"""What is told of the chart of a class in which something was measured."""

OWN_LINK = (
    "The address of this page is now yours: keep it to come back, and do not hand it on. "
    "Others join with the code of the class."
)


def heading(class_: Class) -> None:
    st.header(plain(class_.name))
    asked = class_.question.question
    st.markdown(f"**{plain(class_.question.title)}** · {plain(describe.describe_question(asked))}")
    st.caption(f"Join code **{class_.code}** · everybody measures the same, each on their own devices")
    if class_.closed:
        st.info(CLOSED)


def join(class_: Class) -> None:
    if membership.find_membership(class_.id)[0]:
        st.info("You are not in this class any more. If that was a mistake, join it again.")
    with st.container(border=True), st.form("join", border=False):
        st.markdown("**1 · Join**")
        nickname = st.text_input(
            "Nickname",
            max_chars=NICKNAME_LENGTH,
            help="Everybody in the class can see it. It is all that is kept of you; do not take your full name.",
        )
        label = "Ask to join" if class_.admission else "Join"
        if class_.admission:
            st.caption("Your teacher lets you in after that.")
        if not st.form_submit_button(label, type="primary", icon=":material/login:"):
            return
        with show_errors():
            access.join(class_, nickname)
            st.rerun()


def student(class_: Class, who: Student, machine: Callable[[], Machine | None]) -> None:
    """Draw what a student does: wait to be admitted where that is asked, expect, then measure."""
    if who.waiting:
        st.fragment(_wait, run_every=REFRESH_S)(class_)
        st.caption(OWN_LINK)
        return
    st.markdown(f"You are **{plain(who.nickname)}** in this class.")
    st.caption(OWN_LINK)
    if who.fault:
        st.warning(plain(f"Please say again what you expect: {who.fault}"))
    _predict(class_, who)
    if who.prediction is None and not class_.closed:
        return
    _measure(class_, who, machine())


def everybody(class_: Class) -> None:
    """Draw all results and expectations, and look at them again every few seconds."""
    st.fragment(layout.draw_isolated, run_every=REFRESH_S)(_everybody, class_)


def place_label(class_: Class, place: float | str) -> str:
    """A predicted place in words."""
    title = _title(class_)
    if place == NEVER or isinstance(place, str):
        return f"at no {title}"
    if place == class_.question.places[0]:
        return f"at every {title}"
    return f"from {title} {units.format_count(int(place))} on"


def summarize_student_result(class_: Class, found: Result) -> str:
    """What a student found, short enough for a cell."""
    if class_.question.axis is None:
        return f"{units.format_ratio(found.speedup)} as fast" if found.speedup else "undecided"
    where = _crossover(class_, found)
    return where if found.estimate is None else f"from {_title(class_)} {where.replace(' (', ' on (', 1)}"


def results_table(class_: Class, results: Sequence[Result]) -> None:
    axis = class_.question.axis
    speedup = "Speedup at the largest size" if axis else "Speedup"
    lines = [
        {
            "Student": entry.nickname,
            **({f"Crossover ({axis.title})": _crossover(class_, entry)} if axis else {}),
            speedup: units.format_ratio(entry.speedup) if entry.speedup else "",
            "Devices": entry.devices,
            "Measured": "on their own machine" if entry.from_file else "on this host",
        }
        for entry in results
    ]
    name = st.column_config.TextColumn(width=tables.measure_column(["Student", *(entry.nickname for entry in results)]))
    tables.draw_table(lines, column_config={"Student": name}, alt="Results of everybody")


def groups_table(class_: Class, results: Sequence[Result]) -> None:
    """Draw how crossovers spread, by pair of devices."""
    axis = class_.question.axis
    if axis is None:
        return
    written = partial(wording.nearest_size, axis.name)
    lines = [
        {
            "Devices": group.devices,
            "Median": units.format_if_known(group.median, written),
            "Lowest": units.format_if_known(group.lowest, written),
            "Highest": units.format_if_known(group.highest, written),
            "Found a crossover": group.crossings,
            "Students": group.results,
        }
        for group in group_by_devices(results)
    ]
    tables.draw_table(lines, alt="Spread of crossovers by device")


def _predict(class_: Class, who: Student) -> None:
    said = who.prediction
    with st.container(border=True):
        st.markdown("**2 · Expect**")
        if said and (class_.closed or findings.finding(class_, who).result):
            st.markdown(_prediction_text(class_, said))
            return
        if said:  # what comes next stands in the same window
            st.markdown(_prediction_text(class_, said))
        with st.expander("Change it") if said else contextlib.nullcontext(), st.form("predict", border=False):
            places: list[float | str] = [*class_.question.places, NEVER] if class_.question.places else []
            winners = list(WINNERS)
            winner = st.radio(
                f"Who will be faster{_largest_size_text(class_)}?",
                winners,
                index=winners.index(said.winner) if said else None,
                format_func=WINNERS.__getitem__,
            )
            place: float | str | None = (
                st.selectbox(
                    f"From which {_title(class_)} on will the accelerator be faster (without one, all threads)?",
                    places,
                    index=places.index(said.place) if said and said.place in places else None,
                    format_func=lambda place: place_label(class_, place),
                )
                if places
                else None
            )
            label = "Change what I expect" if said else "This is what I expect"
            pressed = st.form_submit_button(label, type="secondary" if said else "primary")
        if pressed:
            _keep_prediction(class_, who, winner, place)


def _keep_prediction(class_: Class, who: Student, winner: str | None, place: float | str | None) -> None:
    if winner is None or (class_.question.places and place is None):
        st.error("Answer first, then it is kept.")
        return
    with show_errors():
        access.predict(class_, who, Prediction(winner=winner, place=place))
        st.rerun()


def _prediction_text(class_: Class, said: Prediction) -> str:
    where = f"You expected the accelerator to be faster {place_label(class_, said.place)}." if said.place else ""
    return f"The winner that you expected{_largest_size_text(class_)}: {plain(WINNERS[said.winner])}. {plain(where)}"


def _largest_size_text(class_: Class) -> str:
    return " at the largest size" if class_.question.places else ""


def _title(class_: Class) -> str:
    return class_.question.axis.title if class_.question.axis else "size"


def _measure(class_: Class, who: Student, machine: Machine | None) -> None:
    with st.container(border=True):
        st.markdown("**3 · Measure**")
        finding = findings.finding(class_, who)
        found = finding.result
        if found:
            told = st.success if found.outcome in ("crossing", "gpu_always", "cpu_always") else st.info
            told(plain(found.sentence))
        if finding.fault:
            st.warning(plain(f"Not all that you measured counts: {finding.fault}."))
        if class_.closed:
            return
        here, own = st.tabs(["On this host", "On my own machine"])
        with here:
            _on_host(class_, who, machine, again=found is not None)
        with own:
            _on_own_machine(class_, who)


def _on_host(class_: Class, who: Student, machine: Machine | None, *, again: bool) -> None:
    job = _job(class_, who)
    if job and job.active:
        st.fragment(_panel, run_every=job_view.REFRESH_S)(job.id)
        return
    if job and job.message:
        st.warning(plain(job.message))
    if machine is None:
        controls.wait_for_devices()
        return
    asked = class_.question.with_contenders(
        defaults.default_contenders(machine.device_names, machine.environment.cores_usable)
    )
    names = " against ".join(one.title for one in asked.contenders)
    st.caption(plain(f"{names}, one measurement at a time for the whole class."))
    reason = permits.refusal(asked)
    if reason:
        st.caption(plain(reason))
    label = "Measure again" if again else "Measure here"
    kind: Literal["primary", "secondary"] = "secondary" if again else "primary"
    if st.button(label, key="class_run", type=kind, icon=":material/play_arrow:", disabled=bool(reason)):
        with show_errors():
            findings.classes().require_room(class_, who)
            permits.submit(asked, findings.classes().store(class_, who), fresh=again)
            queries.read_machine()
            st.rerun()


def _on_own_machine(class_: Class, who: Student) -> None:
    st.markdown("Clone and install Crossover as its README says, then run there:")
    nickname = f" {who.nickname}" if who.nickname.isalnum() else f'="{who.nickname}"'  # it may begin with a dash
    command = f"python -m core class measure --code {class_.code} --nickname{nickname} {class_.question.words}"
    st.code(as_lines(command), language="sh", wrap_lines=True)
    with st.form("bring", border=False, clear_on_submit=True):
        file = st.file_uploader("The file that it wrote", type="parquet")
        pressed = st.form_submit_button("Bring it", icon=":material/upload_file:")
    if pressed and file is not None:
        _bring(class_, who, file.getvalue(), file.name)


@show_errors()
def _bring(class_: Class, who: Student, data: bytes, name: str) -> None:
    receipt = access.add_student_file(class_, who, data, name)
    if receipt.refused:
        st.error(plain(f"The file was not taken: {receipt.refused}."))
        return
    left_out = "".join(f" Some rows are not pooled, because {reason}." for reason in receipt.left_out[:REASONS_NAMED])
    membership.announce(f"{receipt.added} rows added, {receipt.duplicates} were there already.{left_out}")
    st.rerun()


def _job(class_: Class, who: Student) -> Job | None:
    store = findings.classes().store(class_, who).folder.absolute()
    mine = [job for job in queries.open_queue().jobs() if job.store == store]
    return mine[-1] if mine else None


def _panel(job_id: str) -> None:
    if job := job_view.draw_job_head(job_id):
        learning.draw_progress_bar(job.progress)


def _wait(class_: Class) -> None:
    who = access.me(class_)
    if who is None or not who.waiting:
        st.rerun()
    asked = f"You have asked to join as **{plain(who.nickname)}**."
    st.info(f"{asked} Your teacher lets you in; this page then goes on by itself.", icon=":material/hourglass_empty:")


def _everybody(class_: Class) -> None:
    pool = findings.shared_pool(class_)
    st.header("Everybody")
    joined, said, done = len(pool.entries), pool.tally.students, len(pool.results)
    if not said and not done:
        st.caption(f"{joined} joined. What they expect and find will stand here.")
    else:
        st.markdown(f"{joined} joined · {said} said what they expect · {done} measured")
    if pool.unread:
        st.caption(f"Results that are still being read: {pool.unread}.")
    if pool.faults:
        st.caption(f"Not everything can be shown. {_list_faults(pool.faults)}")
    if not said and not done:
        return
    spec = findings.chart(class_, pool.results, pool.tally)
    alt = "Everybody's results by device, with what was expected behind"
    charts.draw_chart(spec, height=spec["height"], alt=alt)
    if class_.question.places:
        st.caption(f"{POINTS if pool.results else ''}Grey bars count who expected the crossover there.")
    _tally_table(class_, pool)
    if pool.results:
        groups_table(class_, pool.results)
        with st.expander("Every result", **session.bind_view("results")) as part:
            if part.open:
                results_table(class_, pool.results)


def _list_faults(faults: Sequence[str]) -> str:
    more = f" And {len(faults) - FAULTS_NAMED} more." if len(faults) > FAULTS_NAMED else ""
    return plain(". ".join(faults[:FAULTS_NAMED])) + "." + more


def _tally_table(class_: Class, pool: findings.Pool) -> None:
    winners = [f"{WINNERS[name]}: {count}" for name, count in pool.tally.winners.items() if count]
    where = [f"{place_label(class_, place)}: {count}" for place, count in pool.tally.places.items() if count]
    if winners:
        st.caption(plain(f"Expected winner{_largest_size_text(class_)}: {'; '.join(winners)}."))
    if where:
        st.caption(plain(f"Expected the accelerator to be faster {'; '.join(where)}."))


def _crossover(class_: Class, entry: Result) -> str:
    axis = class_.question.axis
    if axis is None or entry.estimate is None or entry.low is None or entry.high is None:
        ends = {"gpu_always": "faster at every size", "cpu_always": "faster at no size"}
        return ends.get(entry.outcome, "undecided")
    low, high = wording.interval_ends(axis.name, entry.low, entry.high)
    return f"{wording.nearest_size(axis.name, entry.estimate)} ({low} to {high})"
