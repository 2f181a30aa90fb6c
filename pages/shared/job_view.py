"""A measurement on a page: submit it, then show its queue position, progress, loss curve, and how it ended.

Polls every other second while the job is alive and not afterwards. The end of a job is one full run of the page.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import streamlit as st

from core import units
from core.answer import speedup
from core.answer.run import Run
from core.answer.verdict import Verdict
from core.errors import CrossoverError
from core.jobs import client
from core.jobs.job import Job, RemoteTarget
from core.jobs.machine import Machine, MachineUse
from core.progress import ContenderProgress, Progress
from core.question import describe
from core.question.experiment import Experiment, display_name, inline_name
from core.question.sweep import Sweep
from core.text import as_lines
from pages.shared import elements, layout, links, permits, queries, session
from pages.shared.elements import format_date, plain, show_errors

STARTING = "The measuring process is starting."
"""Text shown before there is any progress."""

REFRESH_S = 4.0
"""Seconds between two updates of texts: each takes some 0.1 s of a processor, most of it in the browser, which disturbs
a measurement on the same machine."""

CHART_REFRESH_S = 10.0
"""Seconds between two updates of a chart, and before the first: drawing one disturbs a measurement for a block or two,
and many runs end earlier."""

SHOWN_IN = {"clock": "clock", "moving": "moving", "first_step": "learning"}
"""Lesson that shows a demonstration, by its kind."""

CHART_HEIGHT = 300
"""Height of a chart in pixels."""


def draw_job(job: Job) -> None:
    """Draw a comparison that waits or runs, and keep it up to date until it ends."""
    st.fragment(_draw_job_panel, run_every=REFRESH_S)(job.id)


def draw_job_end(job: Job, again: Callable[[], None]) -> None:
    """Draw how a job ended unless it finished normally; a sweep that runs again continues after its stored points."""
    if job.state == "finished" and not job.message:
        return
    box = st.error if job.state in ("failed", "crashed") else st.warning
    said, *traceback = (job.message or f"This measurement has {job.state}.").splitlines()
    box(plain(said))
    if traceback:  # the traceback of a custom script, unchanged
        st.code(as_lines("\n".join(traceback)), language=None)
    continues = bool(job.sweep and job.trial_ids)
    if job.state == "finished":
        return
    reason = permits.refusal(job.question)
    if reason:
        st.caption(plain(reason))
    if st.button("Run again (continues)" if continues else "Run again", disabled=bool(reason)):
        again()


def point_to_job_page(job: Job) -> None:
    """Show that a link is to a demonstration, and draw a link to the page of that demonstration."""
    kind = job.demonstration.kind if job.demonstration else ""
    link = {"lesson": SHOWN_IN[kind]} if kind in SHOWN_IN else {}
    st.info("This link is to a demonstration, which this page does not show.")
    st.page_link(layout.LESSONS, label="Show its lesson", query_params=link)


@show_errors()
def watch_job(job_id: str) -> Job | None:
    """Return a job with its present state, and start its worker if needed.

    On failure, shows the reason and returns None.
    """
    return client.watch(queries.open_queue(), job_id)


def draw_job_head(job_id: str) -> Job | None:
    """Draw the head of a job and return it if it is measured now; rerun the page if it has ended."""
    job = watch_job(job_id)
    if job is None:
        return None
    if not job.active:
        st.rerun()
    if job.elsewhere and queries.open_queue().files(job.id).is_stop_requested:
        st.caption("Stopping the machines. Each stops at the end of its block.")
    else:
        draw_stop_button([job])
    if job.state == "queued":
        draw_queue_place(job)
        return None
    return job


def _draw_job_panel(job_id: str) -> None:
    if job := draw_job_head(job_id):
        progress = job.progress or Progress(phase="starting")
        phase, left = progress.phase, progress.remaining_s
        after = "" if not left else f" · at most {units.format_rough_time(left)} left"
        st.progress(job.share, text=f"**{plain(phase[:1].upper() + phase[1:])}**{after}")
        draw_machine_note(job)
        _draw_speedups_so_far(job)
        _draw_live_curves(job, progress)


def draw_machine_note(job: Job) -> None:
    """Draw the note of a measurement about the machine, if any."""
    if job.progress and job.progress.note:
        st.caption(plain(job.progress.note))


@show_errors(st.caption)
def _draw_speedups_so_far(job: Job) -> None:
    """Draw the speedups from the pairs so far, computed as at the end."""
    pairs = Run(queries.find_job_rows(job)).pairs
    with st.container(horizontal=True, key="so_far"):
        for pair in pairs:
            _draw_live_speedup(pair.speedup)


def _draw_live_speedup(speedup: Verdict) -> None:
    name, measured = plain(inline_name(speedup.challenger)), units.format_quantity(speedup.pairs, "pair")
    label = f"Speedup of {name} so far"
    if speedup.value is None or speedup.low is None or speedup.high is None:
        with st.container(width="content"):
            st.metric(label, "…", delta=measured, delta_color="off", delta_arrow="off", width="content")
            if speedup.reason:
                st.caption(plain(f"No verdict yet: {speedup.reason}."))
        return
    interval = f"95 %: {units.format_ratio(speedup.low)} to {units.format_ratio(speedup.high)}, {measured}"
    st.metric(
        label, units.format_ratio(speedup.value), delta=interval, delta_color="off", delta_arrow="off", width="content"
    )


def draw_stop_button(jobs: Sequence[Job]) -> None:
    """Draw the button that ends related jobs, in the order of the queue.

    The button belongs above everything that grows during the jobs, because a moving button is hard to press.
    """
    ids = tuple(job.id for job in jobs)
    with st.container(horizontal=True, vertical_alignment="center"):
        if reason := permits.stop_refusal(jobs):
            st.caption(plain(reason), width="content")
        else:
            st.button("Stop", key="stop", icon=":material/stop_circle:", on_click=_stop_jobs, args=(ids,))
        st.caption("It continues when you close this page. To see it again, reopen the page.", width="content")


def draw_queue_place(job: Job) -> None:
    if job.place > 1 or _waits_for_another(job):
        whose = " of the cluster" if job.elsewhere else ""
        why = "One measurement at a time keeps the times honest; people take turns."
        st.info(f"Place {job.place} in the queue{whose}. {why}")
    elif job.elsewhere:
        st.info("Place 1 in the queue of the cluster. Starting its machines.")
    else:
        st.info(f"Place 1 in the queue. {queries.describe_loading() or 'Starting the measuring process.'}")


def _waits_for_another(job: Job) -> bool:
    """Return whether another job is measured now, on this machine or on the cluster as this one will be."""
    others = [other for other in queries.open_queue().jobs() if bool(other.elsewhere) == bool(job.elsewhere)]
    return any(other.state == "running" and other.id != job.id for other in others)


def _draw_live_curves(job: Job, progress: Progress) -> None:
    own, update = bool(job.experiment and job.experiment.point.training), int(progress.elapsed_s // CHART_REFRESH_S)
    if update and any(len(contender.losses) > 1 for contender in progress.contenders):  # one point is not a curve
        spec = queries.make_live_chart(job.id, update, progress, own)
        elements.draw_chart(spec, height=CHART_HEIGHT, alt="Training loss so far")
    st.caption("  \n".join(map(_describe_contender, progress.contenders)))


def _describe_contender(contender: ContenderProgress) -> str:
    total = contender.total_steps
    done = (
        f"{units.format_count(min(contender.steps, total))} of {units.format_count(total)}"
        if total
        else units.format_count(contender.steps)
    )
    name = display_name(contender.contender)
    parts = [f"**{plain(name)}**", f"step {done}"]
    if contender.step_s is not None:
        parts.append(f"{units.format_duration(contender.step_s)} a step")
    if contender.losses:
        parts.append(f"loss {units.format_significant(contender.losses[-1])}")
    if contender.threads and "thread" not in name:
        parts.append(units.format_quantity(contender.threads, "thread"))
    return " · ".join(parts)


@show_errors()
def _stop_jobs(job_ids: Sequence[str]) -> None:
    """End the waiting jobs first, so that none of them begins meanwhile."""
    permits.stop(reversed(job_ids))


LOOK = "you can look at stored results"
"""Part of a refusal which shows that the button still works for stored results."""


@show_errors()
def find_machine() -> Machine | None:
    """Start the measuring process, and return this machine as reported; None before its first report.

    An error is shown on the page.
    """
    queries.start_measuring_process()
    return queries.read_machine()


def find_visitor_job() -> tuple[links.Kind, str] | None:
    """Return the visitor's oldest waiting or running job, as the default view of a page.

    A job of another visitor is offered but not shown by default. A visitor who arrives with settings does not get a
    default view either, because it would replace the results of these settings.
    """
    own = set(session.read_arrived_settings()) - {"sizes"}
    mine = [] if own else permits.list_visitor_jobs(_list_active_jobs())
    if mine:
        session.show_view("job", mine[0].id)
        return "job", mine[0].id
    return None


def offer_running_jobs() -> None:
    """Draw an offer to watch the oldest waiting or running job, if any."""
    if active := _list_active_jobs():
        whose = "" if permits.list_visitor_jobs(active) else " of another user"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"A measurement{whose} is running.", width="content")
            shown, look = ("job", active[0].id), ":material/visibility:"
            st.button("Watch it", key="watch", icon=look, on_click=session.show_view, args=shown, type="tertiary")


def describe_measured_job(view: tuple[links.Kind, str] | None) -> str:
    """Describe the waiting or running job of a page in a line; empty if it shows another result."""
    if view is None or view[0] != "job":
        return ""
    with contextlib.suppress(CrossoverError):  # the page shows the error with the job
        job = queries.open_queue().job(view[1])
        if job.active and (asked := job.sweep or job.experiment):
            names = ", ".join(contender.title for contender in asked.contenders)
            return f"{describe.describe_question(asked)} · {names}"
    return ""


def explain_second_measurement(job: Job, machine: Machine | None) -> str:
    """Explain why a run is measured although the store has its answer, in a sentence; empty if there is no reason."""
    if job.experiment is None or machine is None:
        return ""
    rows = queries.open_store().find(job.experiment, machine.local_machine)
    if not rows or speedup.answers_experiment(job.experiment, rows):
        return ""
    loaded = any(speedup.load_condition(rows[0], other) for other in rows[1:])
    reason = "holds only for a loaded machine" if loaded else "ended before it was certain"
    return f"The stored answer of {format_date(rows[0].started_at)} {reason}, so this is measured again."


def _list_active_jobs() -> list[Job]:
    return [job for job in queries.open_queue().jobs() if job.active and (job.sweep or job.experiment)]


def draw_run_button(
    label: str,
    request: Experiment | Sweep | None,
    fault: str,
    machine: Machine | None,
    elsewhere: RemoteTarget | None = None,
) -> None:
    """Draw the button that submits a question, and the reason if it cannot be submitted.

    Stored results can be shown even if the visitor may not measure, so the button stays; its effect is decided later. A
    press is noted at once: another part of the page that reruns by itself could otherwise replace the run in which the
    press is visible.
    """
    if fault:
        st.error(plain(fault))
    if fault and not session.has_changed():
        st.button("Use the settings shown", on_click=session.note_change)
    if request and (reason := permits.refusal(request)):
        st.caption(plain(reason if LOOK in reason else f"{reason} Stored results are still shown."))
    ready = request is not None if machine else not (fault or queries.explain_no_runs())
    icon = ":material/play_arrow:"
    st.button(
        label,
        type="primary",
        icon=icon,
        width="stretch",
        disabled=not ready,
        on_click=session.note_press,
        args=(label,),
    )
    if machine is not None and elsewhere is None and not queries.explain_no_runs():
        draw_machine_use()
    if not session.is_pressed(label):
        return
    if machine is None:  # the page reruns once the machine is known
        st.caption("It starts as soon as this machine's devices are known.")
        return
    session.clear_press()
    if request:
        ask_question(request, machine, elsewhere=elsewhere)


USE_REFRESH_S = 4.0
"""Seconds between two readings of the machine's load on a page that measures nothing."""

QUIET_S = 15.0
"""Longest time that a run waits for a quiet machine, if the load is about to pass."""

BROWSERS = ("brave", "chrome", "chromium", "firefox", "msedge", "opera", "safari", "webkit")
"""Parts of the names of browser programs, in lower case; a page may be open in one of them."""


def draw_machine_use() -> None:
    """Draw how busy the machine is, which programs use it, and a hint for the visitor; nothing if it is quiet.

    A page that follows a measurement does not update it, because every update disturbs the measurement.
    """
    shown = session.read_view()
    st.fragment(_draw_machine_use, run_every=None if shown and shown[0] == "job" else USE_REFRESH_S)()


def _draw_machine_use() -> None:
    if waiting := len(_list_active_jobs()):
        whose = units.format_quantity(waiting, "measurement")
        st.caption(f"Your run will wait for {whose} to end.{'' if permits.on_own_machine() else OWN_LAPTOP}")
    elif not (use := queries.read_machine_use()).is_quiet:
        st.caption(plain(describe_machine_use(use, on_own_machine=permits.on_own_machine())))


OWN_LAPTOP = " To measure at once, install Crossover on your own machine."


def describe_machine_use(use: MachineUse, *, on_own_machine: bool) -> str:
    """Describe the load of a busy machine and what to do about it; names only on your own machine."""
    shown = use if on_own_machine else dataclasses.replace(use, programs=())
    named = tuple(f"your browser: {name}" if _is_browser(name) else name for name in shown.programs)
    busy = f"This machine is busy: {dataclasses.replace(shown, programs=named).description}."
    wait = f" A run waits up to {QUIET_S:g} s for quiet." if use.is_passing else ""
    if not on_own_machine:
        return f"{busy}{wait} The verdict may hold only for this load. Try again later, or measure on your own machine."
    page = "other browser tabs" if any(map(_is_browser, use.programs)) else "other programs"
    return f"{busy}{wait} Close {page}; otherwise the verdict may hold only for this load."


def choose_quiet_seconds() -> float:
    """Return how long a measurement waits for a quiet machine; 0 if it is quiet or stays busy."""
    return QUIET_S if queries.read_machine_use().is_passing else 0.0


def _is_browser(program: str) -> bool:
    return any(name in program.lower() for name in BROWSERS)


def draw_again_button(request: Experiment | Sweep | None, machine: Machine | None) -> None:
    """Draw the button that measures a question again, with every point of a sweep."""
    if request is None or machine is None:
        return
    reason = permits.refusal(request)
    if reason:
        st.caption(plain(reason))
    if st.button("Measure again", icon=":material/replay:", width="stretch", disabled=bool(reason)):
        ask_question(request, machine, fresh=True)


def draw_continue_button(request: Experiment | None, machine: Machine | None) -> None:
    """Draw the button that completes a training which stopped once the faster device was certain."""
    if request and machine and not (request.whole or request.point.training) and not permits.refusal(request):
        label = "Train it to the end"
        if st.button(
            label, icon=":material/last_page:", width="stretch", help="Trains every epoch, then tests both models."
        ):
            ask_question(dataclasses.replace(request, whole=True), machine)


def ask_question(
    request: Experiment | Sweep, machine: Machine, *, fresh: bool = False, elsewhere: RemoteTarget | None = None
) -> None:
    """Show the stored result of this machine, or queue the measurement and show that.

    Stored points of a sweep are not measured again unless the measurement is `fresh`. With `elsewhere`, other machines
    measure.
    """
    if isinstance(request, Sweep):
        session.read_asked_sweeps()[request.id] = request
    session.note_change()
    with show_errors():
        stored = None if fresh or elsewhere else _find_stored_view(request, machine)
        if stored:
            session.show_view(*stored, recalled=True)
        else:
            quiet_s = 0.0 if elsewhere else choose_quiet_seconds()
            job = permits.submit(request, queries.open_store(), fresh=fresh, elsewhere=elsewhere, quiet_s=quiet_s)
            session.show_view("job", job.id)
            queries.start_measuring_process()
        st.rerun()


def _find_stored_view(request: Experiment | Sweep, machine: Machine) -> tuple[links.Kind, str] | None:
    """Return the view of the complete stored answer of this machine; None if there is none.

    The answer must be from the current devices and torch version. An adaptive sweep has none, because the points that
    it needs are unknown.
    """
    if isinstance(request, Sweep):
        complete = not request.adaptive and queries.find_sweep_answers(request, machine)[1]
        return ("sweep", request.id) if complete else None
    rows = queries.open_store().find(request, machine.local_machine, accepted=speedup.answers_experiment)
    return ("run", rows[0].run_id) if rows else None
