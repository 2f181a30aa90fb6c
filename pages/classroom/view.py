"""The class page for a student: join, predict, measure, and compare with the class.

Nicknames and names of classes come from visitors and are always escaped.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import streamlit as st

from core import units
from core.answer import wording
from core.classroom.classes import CLOSED, Class, Prediction, Student
from core.classroom.question import CHALLENGER, NEVER, WINNERS, WINNERS_WITH_GPU
from core.classroom.results import Result, group_by_devices
from core.classroom.students import NICKNAME_LENGTH
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.question import describe, presets
from core.question.experiment import Contender, Experiment
from core.question.sweep import Sweep, size_on_axis
from core.text import as_lines
from pages.classroom import access, findings
from pages.shared import controls, elements, job_view, layout, learning, permits, queries, session
from pages.shared.elements import plain, show_errors

REFRESH_S = 5.0
"""Seconds between two updates of the results of the class and of a waiting measurement."""

FAULTS_NAMED = 5
"""Maximum number of students with faulty rows that the class sees by name; the teacher sees all."""

REASONS_NAMED = 3
"""Maximum number of reasons shown for rows of a file that are not pooled."""

POINTS = (
    "Points with 95 % intervals are measured crossovers, one per student; a triangle at an end means faster at every "
    "size, or at none. "
)
"""Description of the chart of a class with results."""

OWN_LINK = "Bookmark this page to come back. Don't share its address; classmates use the join code."


def heading(class_: Class) -> None:
    st.header(plain(class_.name))
    asked = class_.question.question
    st.markdown(f"**{plain(class_.question.title)}** · {plain(describe.describe_question(asked))}")
    shared = (
        "on this host each student measures one size; on a laptop, all sizes"
        if class_.question.dealt_sizes
        else "everybody measures the same, each on their own devices"
    )
    st.caption(f"Join code **{class_.code}** · {shared}")
    if class_.closed:
        st.info(CLOSED)


def join(class_: Class) -> None:
    if permits.find_membership(class_.id)[0]:
        st.info("You have left this class, or your teacher removed you. If that was a mistake, join again.")
    with st.container(border=True), st.form("join", border=False):
        st.markdown("**1 · Join**")
        nickname = st.text_input(
            "Nickname",
            max_chars=NICKNAME_LENGTH,
            help="Everybody in the class can see it. Nothing else about you is stored. Do not use your full name.",
        )
        label = "Ask to join" if class_.admission else "Join"
        if class_.admission:
            st.caption("Your teacher admits you after that.")
        if not st.form_submit_button(label, type="primary", icon=":material/login:"):
            return
        with show_errors():
            access.join(class_, nickname)
            st.rerun()


def student(class_: Class, who: Student, machine: Callable[[], Machine | None]) -> None:
    """Draw the steps of a student: wait for admission if required, predict, then measure."""
    if who.waiting:
        st.fragment(_wait, run_every=REFRESH_S)(class_)
        st.caption(OWN_LINK)
        return
    st.markdown(f"You are **{plain(who.nickname)}** in this class.")
    st.caption(OWN_LINK)
    if who.fault:
        st.warning(plain(f"Please predict again: {who.fault}"))
    _predict(class_, who)
    if who.prediction is None and not class_.closed:
        return
    _measure(class_, who, machine())


def everybody(class_: Class) -> None:
    """Draw all results and predictions, and update them every few seconds."""
    st.fragment(layout.draw_isolated, run_every=REFRESH_S)(_everybody, class_)


def place_label(class_: Class, place: float | str) -> str:
    """Return a predicted place in words."""
    title = _title(class_)
    if place == NEVER or isinstance(place, str):
        return f"at no {title}"
    if place == class_.question.places[0]:
        return f"at every {title}"
    return f"from {title} {units.format_count(int(place))} on"


def summarize_student_result(class_: Class, found: Result) -> str:
    """Return the result of a student as the text of a table cell."""
    if class_.question.axis is None:
        return f"{units.format_ratio(found.speedup)} as fast" if found.speedup else "undecided"
    where = _crossover(class_, found)
    return where if found.estimate is None else f"from {_title(class_)} {where.replace(' (', ' on (', 1)}"


def name_winners(pool: findings.Pool | None = None) -> Mapping[str, str]:
    """Return the label of each possible winner, with a GPU if this host or a student of the class has one."""
    machine = job_view.find_machine()
    on_host = machine is not None and len(machine.device_names) > 1
    has_gpu = on_host or (pool is not None and any(entry.kind != "cpu" for entry in pool.results))
    return WINNERS_WITH_GPU if has_gpu else WINNERS


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
    name = st.column_config.TextColumn(
        width=elements.measure_column(["Student", *(entry.nickname for entry in results)])
    )
    elements.draw_table(lines, column_config={"Student": name}, alt="Results of everybody")


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
    elements.draw_table(lines, alt="Spread of crossovers by device")


def _predict(class_: Class, who: Student) -> None:
    said, words = who.prediction, name_winners(findings.shared_pool(class_))
    with st.container(border=True):
        st.markdown("**2 · Predict**")
        if said and (class_.closed or findings.finding(class_, who).result):
            st.markdown(_prediction_text(class_, said, words))
            return
        if said:  # the next step is in the same window
            st.markdown(_prediction_text(class_, said, words))
        with st.expander("Change it") if said else contextlib.nullcontext(), st.form("predict", border=False):
            places: list[float | str] = [*class_.question.places, NEVER] if class_.question.places else []
            winners = list(words)
            winner = st.radio(
                f"Which will be faster{_largest_size_text(class_)}?",
                winners,
                index=winners.index(said.winner) if said else None,
                format_func=words.__getitem__,
            )
            place: float | str | None = (
                st.selectbox(
                    f"From which {_title(class_)} will {words[CHALLENGER]} be faster?",
                    places,
                    index=places.index(said.place) if said and said.place in places else None,
                    format_func=lambda place: place_label(class_, place),
                )
                if places
                else None
            )
            label = "Change my prediction" if said else "Predict"
            pressed = st.form_submit_button(label, type="secondary" if said else "primary")
        if pressed:
            _keep_prediction(class_, who, winner, place)


def _keep_prediction(class_: Class, who: Student, winner: str | None, place: float | str | None) -> None:
    if winner is None or (class_.question.places and place is None):
        st.error("Choose an answer first.")
        return
    with show_errors():
        access.predict(class_, who, Prediction(winner=winner, place=place))
        st.rerun()


def _prediction_text(class_: Class, said: Prediction, words: Mapping[str, str]) -> str:
    where = f"You expect {words[CHALLENGER]} to be faster {place_label(class_, said.place)}." if said.place else ""
    return f"Your prediction{_largest_size_text(class_)}: {plain(words[said.winner])}. {plain(where)}"


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
            st.warning(plain(f"Some of your measurements do not count: {finding.fault}."))
        if class_.closed:
            return
        here, own = st.tabs(["On this host", "On my own machine"])
        with here:
            _on_host(class_, who, machine, again=found is not None)
        with own:
            _on_own_machine(class_, who)


def _on_host(class_: Class, who: Student, machine: Machine | None, *, again: bool) -> None:
    jobs = _list_jobs(class_)
    store = findings.classes().store(class_, who)
    job = next((job for job in reversed(jobs) if job.store == store.folder.absolute()), None)
    if job and job.active:
        waiting = job.state == "queued"
        st.fragment(_panel, run_every=REFRESH_S if waiting else job_view.REFRESH_S)(job.id, waiting)
        return
    if job and job.message:
        st.warning(plain(job.message))
    if machine is None:
        controls.wait_for_devices()
        return
    contenders = presets.default_contenders(machine.device_names, machine.environment.cores_usable)
    size, asked = _deal(class_, contenders, jobs)
    names = " against ".join(one.title for one in asked.contenders)
    one_each = "" if size is None else f"Your size: {_title(class_)} {wording.format_size(size)}. "
    st.caption(plain(f"{one_each}{names}, one measurement at a time for the whole class."))
    job_view.draw_machine_use()
    reason = permits.refusal(asked)
    if reason:
        st.caption(plain(reason))
    label = ("Measure another size" if size is not None else "Measure again") if again else "Measure here"
    kind: Literal["primary", "secondary"] = "secondary" if again else "primary"
    if st.button(label, key="class_run", type=kind, icon=":material/play_arrow:", disabled=bool(reason)):
        with show_errors():
            findings.classes().require_room(class_, who)
            fresh, quiet_s = again or size is not None, job_view.choose_quiet_seconds()
            permits.submit(asked, store, fresh=fresh, quiet_s=quiet_s)
            queries.start_measuring_process()
            st.rerun()


def _deal(
    class_: Class, contenders: Sequence[Contender], jobs: Sequence[Job]
) -> tuple[float | None, Experiment | Sweep]:
    """Return the size for the next student of this host, with its training; without dealt sizes, the whole question."""
    question = class_.question
    if not question.dealt_sizes:
        return None, question.with_contenders(contenders)
    pool = findings.shared_pool(class_)
    taken = Counter(findings.count_sizes(class_, pool))
    for job in jobs:
        if job.active and job.experiment and question.axis:
            taken[size_on_axis(job.experiment.point, question.axis.name)] += 1
    curve = findings.find_curve(class_, pool)
    uncertain = [one.size for one in curve.answer.sizes if one.verdict == "too_close"] if curve else []
    size = question.deal_size(taken, uncertain)
    return size, question.with_size(size, contenders)


def _on_own_machine(class_: Class, who: Student) -> None:
    st.markdown("Clone and install Crossover as its README describes, then run:")
    nickname = f" {who.nickname}" if who.nickname.isalnum() else f'="{who.nickname}"'  # it may begin with a dash
    command = f"python -m core class measure --code {class_.code} --nickname{nickname} {class_.question.words}"
    st.code(as_lines(command), language="sh", wrap_lines=True)
    with st.form("bring", border=False, clear_on_submit=True):
        file = st.file_uploader("File that the command wrote", type="parquet")
        pressed = st.form_submit_button("Upload", icon=":material/upload_file:")
    if pressed and file is not None:
        _bring(class_, who, file.getvalue(), file.name)


@show_errors()
def _bring(class_: Class, who: Student, data: bytes, name: str) -> None:
    receipt = access.add_student_file(class_, who, data, name)
    if receipt.refused:
        st.error(plain(f"The file was not imported: {receipt.refused}."))
        return
    left_out = "".join(f" Some rows are not pooled, because {reason}." for reason in receipt.left_out[:REASONS_NAMED])
    permits.announce(f"{receipt.added} rows added, {receipt.duplicates} already stored.{left_out}")
    st.rerun()


def _list_jobs(class_: Class) -> list[Job]:
    """Return the jobs that measure for a class on this host."""
    folder = (findings.classes().folder / class_.id).absolute()
    return [job for job in queries.open_queue().jobs() if job.store.is_relative_to(folder)]


def _panel(job_id: str, waiting: bool) -> None:
    """Draw a measurement. Once a waiting one starts, rerun the page, to update it more often."""
    job = job_view.draw_job_head(job_id)
    if job is None:
        _draw_waiting_time(job_id)
    elif waiting:
        st.rerun()
    else:
        learning.draw_progress_bar(job.progress)


def _draw_waiting_time(job_id: str) -> None:
    """Draw the longest wait in the queue, from the time limits of the measurements before this one."""
    jobs = queries.open_queue().jobs()
    ours = next((job for job in jobs if job.id == job_id and job.state == "queued"), None)
    if ours is not None:
        before = [job for job in jobs if job.active and (job.state == "running" or job.place < ours.place)]
        longest = sum(job.question.budget_s for job in before)
        st.caption(
            f"At most {units.format_rough_time(longest)} until yours starts. The class's curve below grows meanwhile."
        )


def _wait(class_: Class) -> None:
    who = access.me(class_)
    if who is None or not who.waiting:
        st.rerun()
    asked = f"You requested to join as **{plain(who.nickname)}**."
    st.info(f"{asked} This page continues once your teacher admits you.", icon=":material/hourglass_empty:")


def _everybody(class_: Class) -> None:
    pool = findings.shared_pool(class_)
    st.header("Everybody")
    joined, said, done = len(pool.entries), pool.tally.students, len(pool.results)
    if not said and not done:
        st.caption(f"{joined} joined. Predictions and results appear here.")
    else:
        st.markdown(f"{joined} joined · {said} predicted · {done} measured")
    if pool.unread:
        st.caption(f"Results that are still being read: {pool.unread}.")
    if pool.faults:
        st.caption(f"Not everything can be shown. {_list_faults(pool.faults)}")
    if not said and not done:
        return
    words = name_winners(pool)
    _draw_curve(class_, pool)
    draw_results_chart(class_, pool, words)
    st.caption(plain(describe_tally(class_, pool, words)))
    if whole := findings.list_whole_results(class_, pool):
        groups_table(class_, whole)
    if pool.results:
        with st.expander("Every result", **session.bind_view("results")) as part:
            if part.open:
                results_table(class_, pool.results)


def _list_faults(faults: Sequence[str]) -> str:
    more = f" And {len(faults) - FAULTS_NAMED} more." if len(faults) > FAULTS_NAMED else ""
    return plain(". ".join(faults[:FAULTS_NAMED])) + "." + more


def _draw_curve(class_: Class, pool: findings.Pool) -> None:
    """Draw the curve that the students of this host make together."""
    if curve := findings.find_curve(class_, pool):
        st.markdown(f"**The class on this host:** {plain(curve.answer.sentence)}")
        elements.draw_chart(curve.spec, alt=curve.answer.sentence)


def draw_results_chart(class_: Class, pool: findings.Pool, words: Mapping[str, str]) -> None:
    """Draw everybody's crossovers by device, with the predictions behind; until there is one, the predictions."""
    whole = findings.list_whole_results(class_, pool)
    if not whole:
        if pool.tally.students:
            spec = findings.predictions_chart(class_, pool.tally, words)
            elements.draw_chart(spec, alt=describe_tally(class_, pool, words))
        return
    spec = findings.chart(class_, whole, pool.tally)
    alt = f"Everybody's results by device, in front of the predictions. {describe_spread(class_, pool)}"
    elements.draw_chart(spec, height=spec["height"], alt=alt)
    if class_.question.places:
        st.caption(f"{POINTS}Grey bars count predictions.")


def describe_spread(class_: Class, pool: findings.Pool) -> str:
    """Return the range of the crossovers of several students; empty for fewer than two."""
    axis = class_.question.axis
    found = [entry.estimate for entry in findings.list_whole_results(class_, pool) if entry.estimate is not None]
    if axis is None or len(found) < 2:
        return ""
    low, high = (wording.nearest_size(axis.name, end) for end in (min(found), max(found)))
    return f"{len(found)} students found crossovers from {axis.title} {low} to {high}."


def describe_tally(class_: Class, pool: findings.Pool, words: Mapping[str, str]) -> str:
    """Describe the predictions of the class, with the winners in words."""
    winners = [f"{words[name]} ({count})" for name, count in pool.tally.winners.items() if count]
    where = [f"{place_label(class_, place)} ({count})" for place, count in pool.tally.places.items() if count]
    said = f"Predicted winner{_largest_size_text(class_)}: {', '.join(winners)}." if winners else ""
    return f"{said} Predicted to be faster {', '.join(where)}." if where else said


def _crossover(class_: Class, entry: Result) -> str:
    axis = class_.question.axis
    if axis is None or entry.estimate is None or entry.low is None or entry.high is None:
        ends = {"gpu_always": "faster at every size", "cpu_always": "faster at no size"}
        one = f"1 of {len(class_.question.places)} sizes" if axis and entry.sizes == 1 else "undecided"
        return ends.get(entry.outcome, one)
    low, high = wording.interval_ends(axis.name, entry.low, entry.high)
    return f"{wording.nearest_size(axis.name, entry.estimate)} ({low} to {high})"
