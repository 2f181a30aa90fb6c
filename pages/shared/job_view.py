"""A measurement on a page: submit it, then show its queue position, progress, loss curve, and how it ended.

Polls every other second while the job is alive and not afterwards. The end of a job is one full run of the page.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import streamlit as st

from core import units
from core.answer import speedup
from core.answer.run import RunAnswer
from core.answer.speedup import Speedup
from core.errors import CrossoverError
from core.jobs import client
from core.jobs.job import Job, RemoteTarget
from core.jobs.machine import Machine
from core.progress import ContenderProgress, Progress
from core.question import describe
from core.question.experiment import Experiment, display_name, inline_name
from core.question.sweep import Sweep
from core.text import as_lines
from pages.shared import charts, links, navigation, permits, queries, session
from pages.shared.text import plain, show_errors

STARTING = "The measuring process is starting."
"""What stands in the place of progress before there is any."""

REFRESH_S = 2.0
"""Fast enough to follow, slow enough that neither a class of thirty watching nor one's own browser, which draws on the
same processor, disturbs what is measured."""

SHOWN_IN = {"clock": "clock", "moving": "moving", "first_step": "learning"}
"""Kind of a demonstration → the lesson that shows it."""

CHART_HEIGHT = 300
"""Pixels."""


def draw_job(job: Job) -> None:
    """Draw a comparison that waits or runs, and keep it up to date until it ends."""
    st.fragment(_draw_job_panel, run_every=REFRESH_S)(job.id)


def draw_job_end(job: Job, again: Callable[[], None]) -> None:
    """Draw what became of a job that did not simply finish; run again, a sweep goes on behind the points stored."""
    if job.state == "finished" and not job.message:
        return
    box = st.error if job.state in ("failed", "crashed") else st.warning
    said, *traceback = (job.message or f"This measurement has {job.state}.").splitlines()
    box(plain(said))
    if traceback:  # of one's own training, as it was written
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
    """Say that a link is to a job that another page shows, and lead there."""
    if job.sweep:
        what, page, label, link = "a sweep", navigation.CROSSOVER, "Show it in Crossover", {"job": job.id}
    elif job.experiment:
        what, page, label, link = "a comparison", navigation.COMPARE, "Show it in Compare", {"job": job.id}
    else:
        kind = job.demonstration.kind if job.demonstration else ""
        what, page, label = "a demonstration", navigation.LESSONS, "Show its lesson"
        link = {"lesson": SHOWN_IN[kind]} if kind in SHOWN_IN else {}
    st.info(f"This link is to {what}, which this page does not show.")
    st.page_link(page, label=label, query_params=link)


@show_errors()
def watch_job(job_id: str) -> Job | None:
    """A job as it is now, its worker seen to; None, with the sentence why, where that cannot be told."""
    return client.watch(queries.open_queue(), job_id)


def draw_job_head(job_id: str) -> Job | None:
    """Draw the head of a job that waits or runs, and the page anew once it has ended; the job while it is measured."""
    job = watch_job(job_id)
    if job is None:
        return None
    if not job.active:
        st.rerun()
    if job.elsewhere and queries.open_queue().files(job.id).is_stop_requested:
        st.caption("The machines are told to stop; each does at the end of its block.")
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
        _draw_speedups_so_far(job)
        _draw_live_curves(job, progress)


@show_errors(st.caption)
def _draw_speedups_so_far(job: Job) -> None:
    """The speedups that follow from the pairs by now, as they will be told in the end."""
    pairs = RunAnswer(queries.find_job_rows(job)).pairs
    with st.container(horizontal=True, key="so_far"):
        for pair in pairs:
            _draw_live_speedup(pair.speedup)


def _draw_live_speedup(speedup: Speedup) -> None:
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
    """Draw the button that ends jobs that belong together, in the order of the queue.

    It belongs above whatever grows while they run: a button that moves is missed by who is about to press it.
    """
    ids = tuple(job.id for job in jobs)
    with st.container(horizontal=True, vertical_alignment="center"):
        if reason := permits.stop_refusal(jobs):
            st.caption(plain(reason), width="content")
        else:
            st.button("Stop", key="stop", icon=":material/stop_circle:", on_click=_stop_jobs, args=(ids,))
        st.caption("It goes on when this page is closed; open the page again to see it.", width="content")


def draw_queue_place(job: Job) -> None:
    others = [other for other in queries.open_queue().jobs() if bool(other.elsewhere) == bool(job.elsewhere)]
    if job.place > 1 or any(other.state == "running" and other.id != job.id for other in others):
        whose = " of the other machines" if job.elsewhere else ""
        why = "One measurement at a time keeps the times honest; people take turns."
        st.info(f"Place {job.place} in the queue{whose}. {why}")
    elif job.elsewhere:
        st.info("Place 1 in the queue of the other machines. They are about to be asked.")
    else:
        st.info(f"Place 1 in the queue. {queries.describe_loading() or 'The measuring process is about to take it.'}")


def _draw_live_curves(job: Job, progress: Progress) -> None:
    own = bool(job.experiment and job.experiment.point.training)
    if any(len(contender.losses) > 1 for contender in progress.contenders):  # one point is no curve
        spec = queries.make_live_chart(job.id, progress.elapsed_s, progress, own)
        charts.draw_chart(spec, height=CHART_HEIGHT, alt="Training loss so far")
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
    """End the waiting ones first, so that none of them begins meanwhile."""
    permits.stop(reversed(job_ids))


LOOK = "what is stored can be looked at"
"""How a refusal says by itself that the button may be pressed all the same."""


@show_errors()
def find_machine() -> Machine | None:
    """This machine, or the sentence why it cannot be told."""
    return queries.read_machine()


def find_visitor_job(*, sweeps: bool) -> tuple[links.Kind, str] | None:
    """The oldest job of ours that waits or runs, of sweeps or of comparisons: what a page shows that was asked nothing.

    Somebody else's is offered, and not shown unasked, and so is any to who comes with settings of their own: it would
    take the place of what a visitor is about to do.
    """
    mine = [] if session.read_arrived_settings() else permits.list_visitor_jobs(_list_active_jobs(sweeps=sweeps))
    if mine:
        session.show_view("job", mine[0].id)
        return "job", mine[0].id
    return None


def offer_running_jobs(*, sweeps: bool) -> None:
    """Offer to watch what waits or runs, if anything does."""
    if active := _list_active_jobs(sweeps=sweeps):
        whose = "" if permits.list_visitor_jobs(active) else " that somebody else asked for"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"A measurement{whose} is under way.", width="content")
            shown, look = ("job", active[0].id), ":material/visibility:"
            st.button("Watch it", key="watch", icon=look, on_click=session.show_view, args=shown, type="tertiary")


def describe_measured_job(view: tuple[links.Kind, str] | None) -> str:
    """What a page's job measures, or will, in a line; empty where what it shows is none that waits or runs."""
    if view is None or view[0] != "job":
        return ""
    with contextlib.suppress(CrossoverError):  # which is told where the job is drawn
        job = queries.open_queue().job(view[1])
        if job.active and (asked := job.sweep or job.experiment):
            names = ", ".join(contender.title for contender in asked.contenders)
            return f"{describe.describe_question(asked)} · {names}"
    return ""


def _list_active_jobs(*, sweeps: bool) -> list[Job]:
    return [job for job in queries.open_queue().jobs() if job.active and (job.sweep if sweeps else job.experiment)]


def draw_run_button(
    label: str,
    request: Experiment | Sweep | None,
    fault: str,
    machine: Machine | None,
    elsewhere: RemoteTarget | None = None,
) -> None:
    """Draw why a question cannot be asked if so, and the button that asks it.

    What the store has can be shown to who may not run it, so the button stays; what it leads to is decided later. That
    it was pressed is noted at once, as a part of the page that looks for something by itself may take the turn of the
    run in which it would be seen.
    """
    if fault:
        st.error(plain(fault))
    if fault and not session.has_changed():
        st.button("Use the settings shown", on_click=session.note_change)
    if request and (reason := permits.refusal(request)):
        st.caption(plain(reason if LOOK in reason else f"{reason} What is stored is shown all the same."))
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
    if not session.is_pressed(label):
        return
    if machine is None:  # once it is known the page runs anew
        st.caption("It begins as soon as the devices of this machine are known.")
        return
    session.clear_press()
    if request:
        ask_question(request, machine, elsewhere=elsewhere)


def draw_again_button(request: Experiment | Sweep | None, machine: Machine | None) -> None:
    """Draw the button that measures a question once more, every point of a sweep too."""
    if request is None or machine is None:
        return
    reason = permits.refusal(request)
    if reason:
        st.caption(plain(reason))
    if st.button("Measure again", icon=":material/replay:", width="stretch", disabled=bool(reason)):
        ask_question(request, machine, fresh=True)


def draw_continue_button(request: Experiment | None, machine: Machine | None) -> None:
    """Draw the button that trains to the end what ended once it was certain which device is faster."""
    if request and machine and not (request.whole or request.point.training) and not permits.refusal(request):
        label = "Train it to the end"
        if st.button(label, icon=":material/last_page:", width="stretch", help="Every epoch, and a test of both."):
            ask_question(dataclasses.replace(request, whole=True), machine)


def ask_question(
    request: Experiment | Sweep, machine: Machine, *, fresh: bool = False, elsewhere: RemoteTarget | None = None
) -> None:
    """Show what this machine measured before, or queue the measurement and show that.

    Of a sweep, points that are in the store are not measured again either, unless the measurement is to be `fresh`.
    With `elsewhere` it is measured by other machines.
    """
    if isinstance(request, Sweep):
        session.read_asked_sweeps()[request.id] = request
    session.note_change()
    with show_errors():
        stored = None if fresh or elsewhere else _find_stored_view(request, machine)
        if stored:
            session.show_view(*stored, recalled=True)
        else:
            session.show_view("job", permits.submit(request, queries.open_store(), fresh=fresh, elsewhere=elsewhere).id)
            queries.read_machine()
        st.rerun()


def _find_stored_view(request: Experiment | Sweep, machine: Machine) -> tuple[links.Kind, str] | None:
    """What shows the whole answer that this machine measured before; which points an adaptive sweep needs is not known.

    It counts with the devices and the torch that the machine has now.
    """
    if isinstance(request, Sweep):
        complete = not request.adaptive and queries.find_sweep_answers(request, machine)[1]
        return ("sweep", request.id) if complete else None
    rows = queries.open_store().find(request, machine.local_machine, accepted=speedup.answers_experiment)
    return ("run", rows[0].run_id) if rows else None
