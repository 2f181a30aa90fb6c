"""From the settings to something to look at: the store's answer if it has one, a queued measurement if not."""

import contextlib
import dataclasses

import streamlit as st

from core.answer.run import certainty
from core.errors import CrossoverError
from core.jobs.job import Job, RemoteTarget
from core.jobs.machine import Machine
from core.question import describe
from core.question.experiment import Experiment
from core.question.sweep import Sweep
from pages.shared import links, queries, session
from pages.shared.frame import permits
from pages.shared.text import plain, show_errors

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
    rows = queries.open_store().find(request, machine.local_machine, accepted=certainty.answers_experiment)
    return ("run", rows[0].run_id) if rows else None
