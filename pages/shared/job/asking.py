"""From the settings to something to look at: the store's answer if it has one, a queued measurement if not."""

import contextlib
import dataclasses

import streamlit as st

from core.answer.run import certainty
from core.errors import CrossoverError
from core.jobs.job import Elsewhere, Job
from core.jobs.machine import Machine
from core.question import describe
from core.question.experiment import Experiment
from core.question.sweep import Sweep
from pages.shared.data import reads
from pages.shared.draw.text import plain, told
from pages.shared.frame import permits
from pages.shared.link import links, memory, state

LOOK = "what is stored can be looked at"
"""How a refusal says by itself that the button may be pressed all the same."""


@told()
def machine() -> Machine | None:
    """This machine, or the sentence why it cannot be told."""
    return reads.machine()


def ours(*, sweeps: bool) -> tuple[links.Kind, str] | None:
    """The oldest job of ours that waits or runs, of sweeps or of comparisons: what a page shows that was asked nothing.

    Somebody else's is offered, and not shown unasked, and so is any to who comes with settings of their own: it would
    take the place of what a visitor is about to do.
    """
    mine = [] if state.arrived() else permits.ours(_active(sweeps=sweeps))
    if mine:
        state.show("job", mine[0].id)
        return "job", mine[0].id
    return None


def offer_others(*, sweeps: bool) -> None:
    """Offer to watch what waits or runs, if anything does."""
    if active := _active(sweeps=sweeps):
        whose = "" if permits.ours(active) else " that somebody else asked for"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"A measurement{whose} is under way.", width="content")
            shown, look = ("job", active[0].id), ":material/visibility:"
            st.button("Watch it", key="watch", icon=look, on_click=state.show, args=shown, type="tertiary")


def measured(view: tuple[links.Kind, str] | None) -> str:
    """What a page's job measures, or will, in a line; empty where what it shows is none that waits or runs."""
    if view is None or view[0] != "job":
        return ""
    with contextlib.suppress(CrossoverError):  # which is told where the job is drawn
        job = reads.queue().job(view[1])
        if job.active and (asked := job.sweep or job.experiment):
            names = ", ".join(contender.title for contender in asked.contenders)
            return f"{describe.sentence(asked)} · {names}"
    return ""


def _active(*, sweeps: bool) -> list[Job]:
    return [job for job in reads.queue().jobs() if job.active and (job.sweep if sweeps else job.experiment)]


def run_button(
    label: str,
    asked: Experiment | Sweep | None,
    fault: str,
    machine: Machine | None,
    elsewhere: Elsewhere | None = None,
) -> None:
    """Draw why a question cannot be asked if so, and the button that asks it.

    What the store has can be shown to who may not run it, so the button stays; what it leads to is decided later. That
    it was pressed is noted at once, as a part of the page that looks for something by itself may take the turn of the
    run in which it would be seen.
    """
    if fault:
        st.error(plain(fault))
    if fault and not state.touched():
        st.button("Use the settings shown", on_click=state.touch)
    if asked and (reason := permits.refusal(asked)):
        st.caption(plain(reason if LOOK in reason else f"{reason} What is stored is shown all the same."))
    ready = asked is not None if machine else not (fault or reads.only_looking())
    icon = ":material/play_arrow:"
    st.button(
        label, type="primary", icon=icon, width="stretch", disabled=not ready, on_click=memory.press, args=(label,)
    )
    if not memory.pressed(label):
        return
    if machine is None:  # once it is known the page runs anew
        st.caption("It begins as soon as the devices of this machine are known.")
        return
    memory.release()
    if asked:
        ask(asked, machine, elsewhere=elsewhere)


def again(asked: Experiment | Sweep | None, machine: Machine | None) -> None:
    """Draw the button that measures a question once more, every point of a sweep too."""
    if asked is None or machine is None:
        return
    reason = permits.refusal(asked)
    if reason:
        st.caption(plain(reason))
    if st.button("Measure again", icon=":material/replay:", width="stretch", disabled=bool(reason)):
        ask(asked, machine, fresh=True)


def go_on(asked: Experiment | None, machine: Machine | None) -> None:
    """Draw the button that trains to the end what ended once it was certain which device is faster."""
    if asked and machine and not (asked.whole or asked.point.training) and not permits.refusal(asked):
        label = "Train it to the end"
        if st.button(label, icon=":material/last_page:", width="stretch", help="Every epoch, and a test of both."):
            ask(dataclasses.replace(asked, whole=True), machine)


def ask(
    asked: Experiment | Sweep, machine: Machine, *, fresh: bool = False, elsewhere: Elsewhere | None = None
) -> None:
    """Show what this machine measured before, or queue the measurement and show that.

    Of a sweep, points that are in the store are not measured again either, unless the measurement is to be `fresh`.
    With `elsewhere` it is measured by other machines.
    """
    if isinstance(asked, Sweep):
        memory.sweeps()[asked.id] = asked
    state.touch()
    with told():
        stored = None if fresh or elsewhere else _stored(asked, machine)
        if stored:
            state.show(*stored, recalled=True)
        else:
            state.show("job", permits.submit(asked, reads.results(), fresh=fresh, elsewhere=elsewhere).id)
            reads.machine()
        st.rerun()


def _stored(asked: Experiment | Sweep, machine: Machine) -> tuple[links.Kind, str] | None:
    """What shows the whole answer that this machine measured before; which points an adaptive sweep needs is not known.

    It counts with the devices and the torch that the machine has now.
    """
    if isinstance(asked, Sweep):
        complete = not asked.adaptive and reads.answers(asked, machine)[1]
        return ("sweep", asked.id) if complete else None
    rows = reads.results().find(asked, machine.here, accepted=certainty.answers)
    return ("run", rows[0].run_id) if rows else None
