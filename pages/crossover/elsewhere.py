"""A sweep on other machines, where the host's settings name some: where it is measured, how it stands, what came of it.

Where nothing is named, nothing of this is drawn. The choice is in no link: who opens one measures here.
"""

import dataclasses
from urllib.parse import urlsplit

import streamlit as st

from core import units
from core.jobs.job import Elsewhere, Job
from core.jobs.machine import Machine
from core.jobs.shared.members import Spread
from core.progress import Progress
from core.question import describe, experiment
from core.question.device_kinds import DEVICE_KINDS
from core.question.experiment import Contender, titled
from core.question.sweep import Sweep
from pages.shared.answer import machines_view
from pages.shared.data import reads
from pages.shared.draw.text import plain, show_errors
from pages.shared.frame import permits
from pages.shared.job import asking, live

HERE = "This machine"
HIDDEN = "its address"
"""Stands for the address of a cluster where hosts are not named."""

SAME_MACHINE = {"cpu", "cpu@1"}
"""What is compared where no accelerator is: one thread against all of them."""

ACCELERATORS = tuple(
    dict.fromkeys(str(Contender.parse(kind.torch_type)) for kind in DEVICE_KINDS.values() if kind.torch_type != "cpu")
)
"""The first of each kind, whether this machine has one or not."""

SPREADS: dict[Spread, str] = {
    "everywhere": "The same question on every machine",
    "shared": "One sweep, shared among machines that are alike",
}
SPREAD_HELP = (
    "Every machine has a crossover of its own. Machines that are alike (processor, threads, memory, system) may share "
    "the sizes instead: it is faster, and they have one answer."
)
WHERE_HELP = "Other machines that share this store measure it, each by itself; times of two are never put together."
DEVICES_HELP = "What every machine is asked to compare. One that lacks a device says so, and the others go on."
NOT_SHARED = (
    "The host's settings name other machines, but results lie where no other machine sees them: start the app with "
    "`CROSSOVER_RESULTS` set to the address, or the folder, of a store that they share."
)


def choose_measuring_place() -> Elsewhere | None:
    """Draw the choice of where a sweep is measured; None where that is here."""
    ways = permits.clusters()
    if not ways or reads.explain_no_runs():
        return None
    if not reads.is_store_shared():
        st.caption(NOT_SHARED)
        return None
    where = st.radio("Where", [HERE, *ways], format_func=_name_place, horizontal=True, help=WHERE_HELP, key="where")
    if where == HERE:
        return None
    spread: Spread = st.radio("How", list(SPREADS), format_func=SPREADS.__getitem__, help=SPREAD_HELP, key="spread")
    _describe_place(where)
    return Elsewhere(on=where, spread=spread)


def choose_remote_devices() -> list[str]:
    """The control of devices of machines that are not this one: any that there are."""
    options = ["cpu", "cpu@1", *ACCELERATORS]
    members, _ = reads.list_machines()
    usual = ["cpu", "cuda:0"] if any(len(member.devices) > 1 for member in members) else sorted(SAME_MACHINE)
    chosen = st.multiselect(
        "Devices there",
        options,
        usual,
        max_selections=experiment.MAX_CONTENDERS,
        format_func=titled,
        help=DEVICES_HELP,
        key="devices_there",
    )
    return sorted(chosen, key=(options if set(chosen) - SAME_MACHINE else sorted(SAME_MACHINE, reverse=True)).index)


def draw_remote_sweep(job: Job, request: Sweep) -> None:
    """Draw a sweep that other machines measure, as it is now."""
    now = job.progress or Progress(phase="The machines are asked.")
    left_s = now.sweep.remaining_s if now.sweep else None
    left = f" · about {units.rough(left_s)} left" if left_s is not None else ""
    st.progress(job.share, text=plain(f"{now.phase}{left}"))
    _draw_remote_results(job, request)


@show_errors(st.caption)
def _draw_remote_results(job: Job, request: Sweep) -> None:
    machines_view.draw_machines_chart(reads.find_job_rows(job), request, job.machines, save=False)


def draw_remote_end(job: Job, request: Sweep, machine: Machine | None) -> None:
    """Draw what machines found, and what failed."""
    rows = reads.find_job_rows(job)
    live.draw_job_end(_hide_job_hosts(job), again=lambda: _draw_remote_again(job, request, machine))
    if not rows:
        machines_view.draw_machines_table(job.machines)
        return
    words, place = st.columns([4, 1], vertical_alignment="center")
    with words:
        st.caption(plain(describe.sentence(request)))
    if job.state == "finished":
        with place:
            if st.button("Ask again", icon=":material/replay:", width="stretch", help="For machines that came since."):
                _draw_remote_again(job, request, machine)
    machines_view.draw_machines(rows, request, job.machines)


def _hide_job_hosts(job: Job) -> Job:
    """A job whose message names no host to those who may not see any."""
    said = machines_view.hide_hosts(job.message, job.machines)
    where = job.elsewhere.on if job.elsewhere else ""
    if (host := urlsplit(where).netloc) and not permits.sees_hosts():
        said = said.replace(where, HIDDEN).replace(host, HIDDEN)
    return dataclasses.replace(job, message=said)


def _draw_remote_again(job: Job, request: Sweep, machine: Machine | None) -> None:
    if machine is not None:
        asking.ask_question(request, machine, elsewhere=job.elsewhere)


def _name_place(way: str) -> str:
    """Where a sweep is measured, for people."""
    kind, _, which = way.partition(":")
    names = {"workers": "Machines that joined", "ray": "Ray cluster", "slurm": "Slurm"}
    said = which.removeprefix("//") + (" machines" if kind == "slurm" else "")
    if kind == "ray" and which and not permits.sees_hosts():
        there = [other for other in permits.clusters() if other.startswith("ray")]
        said = str(there.index(way) + 1) if way in there[1:] else ""
    return ", ".join(filter(None, (names.get(kind, way), said)))


def _describe_place(where: str) -> None:
    members, failure = reads.list_machines()
    if failure:
        st.warning(plain(failure))
    elif members:
        free = sum(member.state == "free" for member in members)
        st.caption(f"{units.counted(len(members), 'machine')} there, {free} free. They are listed under Devices.")
    elif where == "workers":
        st.caption(machines_view.NOBODY)
