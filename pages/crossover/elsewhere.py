"""A sweep on a Ray cluster, where the host's settings name one: where it is measured, how it stands, what came of it.

Where nothing is named, nothing of this is drawn. The choice is in no link: who opens one measures here.
"""

import dataclasses
from urllib.parse import urlsplit

import streamlit as st

from core import units
from core.jobs.cluster_machine import Spread
from core.jobs.job import Elsewhere, Job
from core.jobs.machine import Machine
from core.progress import Progress
from core.question import describe, experiment
from core.question.device_kinds import DEVICE_KINDS
from core.question.experiment import Contender, titled
from core.question.sweep import Sweep
from pages.shared.answer import machines_view
from pages.shared.data import reads
from pages.shared.draw.text import plain, told
from pages.shared.frame import permits
from pages.shared.job import asking, live

HERE = "This machine"
HIDDEN = "its address"
"""Stands for the address of a cluster where hosts are not named."""

ALONE = {"cpu", "cpu@1"}
"""What is compared where no accelerator is: one thread against all of them."""

ACCELERATORS = tuple(
    dict.fromkeys(str(Contender.parse(kind.torch_type)) for kind in DEVICE_KINDS.values() if kind.torch_type != "cpu")
)
"""The first of each kind, whether this machine has one or not."""

SPREADS: dict[Spread, str] = {
    "everywhere": "Every machine measures all points",
    "shared": "Machines of one kind share the points",
}
SPREAD_HELP = (
    "Every machine has a crossover of its own. Machines of one kind (processor, threads, memory, system) may share the "
    "points instead: it is faster, and they have one crossover."
)
WHERE_HELP = "The machines of a cluster measure it, each by itself; times of two are never put together."
DEVICES_HELP = "What every machine is asked to compare. One that lacks a device says so, and the others go on."


def choose() -> Elsewhere | None:
    """Draw the choice of where a sweep is measured; None where that is here."""
    ways = permits.clusters()
    if not ways or reads.only_looking():
        return None
    where = st.radio("Where", [HERE, *ways], format_func=_named, horizontal=True, help=WHERE_HELP, key="where")
    if where == HERE:
        return None
    spread: Spread = st.radio("How", list(SPREADS), format_func=SPREADS.__getitem__, help=SPREAD_HELP, key="spread")
    return Elsewhere(on=where, spread=spread)


def devices() -> list[str]:
    """The control of devices of machines that are not this one: any that there are."""
    options = ["cpu", "cpu@1", *ACCELERATORS]
    has_more = any(len(machine.devices) > 1 for machine in reads.machines())
    usual = ["cpu", "cuda:0"] if has_more else sorted(ALONE)
    chosen = st.multiselect(
        "Devices there",
        options,
        usual,
        max_selections=experiment.MAX_CONTENDERS,
        format_func=titled,
        help=DEVICES_HELP,
        key="devices_there",
    )
    return sorted(chosen, key=(options if set(chosen) - ALONE else sorted(ALONE, reverse=True)).index)


def progress(job: Job, asked: Sweep) -> None:
    """Draw a sweep that other machines measure, as it is now."""
    now = job.progress or Progress(phase="The cluster is asked.")
    left_s = now.sweep.remaining_s if now.sweep else None
    left = f" · about {units.rough(left_s)} left" if left_s is not None else ""
    st.progress(job.share, text=plain(f"{now.phase}{left}"))
    _so_far(job, asked)


@told(st.caption)
def _so_far(job: Job, asked: Sweep) -> None:
    machines_view.together(reads.job_rows(job), asked, job.machines, save=False)


def ended(job: Job, asked: Sweep, machine: Machine | None) -> None:
    """Draw what machines found, and what failed."""
    rows = reads.job_rows(job)
    live.draw_end(_without_hosts(job), again=lambda: _again(job, asked, machine))
    if not rows:
        machines_view.listing(job.machines)
        return
    words, place = st.columns([4, 1], vertical_alignment="center")
    with words:
        st.caption(plain(describe.sentence(asked)))
    if job.state == "finished":
        with place:
            if st.button("Ask again", icon=":material/replay:", width="stretch", help="For machines that came since."):
                _again(job, asked, machine)
    machines_view.draw(rows, asked, job.machines)


def _without_hosts(job: Job) -> Job:
    """A job whose message names no host to those who may not see any."""
    said = machines_view.without_hosts(job.message, job.machines)
    where = job.elsewhere.on if job.elsewhere else ""
    if (host := urlsplit(where).netloc) and not permits.sees_hosts():
        said = said.replace(where, HIDDEN).replace(host, HIDDEN)
    return dataclasses.replace(job, message=said)


def _again(job: Job, asked: Sweep, machine: Machine | None) -> None:
    if machine is not None:
        asking.ask(asked, machine, elsewhere=job.elsewhere)


def _named(way: str) -> str:
    """Where a sweep is measured, for people."""
    if way == HERE:
        return way
    said = way.removeprefix("ray").removeprefix("://")
    if said and not permits.sees_hosts():
        there = permits.clusters()
        said = str(there.index(way) + 1) if way in there[1:] else ""
    return ", ".join(filter(None, ("Ray cluster", said)))
