"""Devices: what this machine has, what PyTorch sees of it, and what to do where a GPU is missing."""

import streamlit as st

from core import units
from core.jobs.machine import Machine
from core.question.experiment import titled
from core.text import as_line
from pages.shared.answer import machines_view
from pages.shared.data import reads
from pages.shared.draw import tables
from pages.shared.draw.text import plain, told
from pages.shared.form import devices
from pages.shared.frame import navigation, permits

WITHOUT = (
    (navigation.COMPARE, "Train with one CPU thread against all of them", ":material/balance:"),
    (navigation.CROSSOVER, "Find the size from which more CPU threads pay off", ":material/timeline:"),
    (navigation.GALLERY, "See what GPUs did on other machines", ":material/grid_view:"),
)
"""Where a machine without an accelerator has something to show: page, label and icon."""


def page() -> None:
    """The devices first, then the machine and its versions, then the measuring process."""
    st.title("Devices")
    st.caption("What this machine has and what PyTorch sees of it.")
    with told():
        if machine := reads.machine():
            _devices(machine)
            _machine(machine)
            _process(machine)
            if permits.clusters():
                machines_view.draw_last()
        elif reason := reads.only_looking():
            st.info(reason)
        else:
            devices.look(lambda: st.info("Looking at this machine's devices…"))


def _devices(machine: Machine) -> None:
    rows = [
        {
            "Device": titled(info.device),
            "Name": info.name,
            "Memory": units.memory(info.memory_bytes),
            "Driver": info.driver,
            "First use": units.duration(machine.startup_s[info.device]) if info.device in machine.startup_s else "",
            "In commands": info.device,
        }
        for info in machine.devices
    ]
    known = [name for name in rows[0] if any(row[name] for row in rows)]
    tables.table([{name: row[name] for name in known} for row in rows], alt="Devices of this machine")
    alone = len(machine.devices) == 1
    if machine.hint:
        st.info(f"{'**No accelerator is seen here.** ' if alone else ''}{plain(machine.hint)}")
    if alone:
        st.header("What you can do here anyway")
        for file, label, icon in WITHOUT:
            st.page_link(file, label=label, icon=icon)


def _machine(machine: Machine) -> None:
    facts = machine.environment
    st.header("Machine and versions")
    shown = {
        "Processor": facts.cpu_name,
        "Processor threads": f"{facts.cores_usable} usable of {facts.cores}",
        "Memory": units.memory(facts.memory_bytes),
        "System": facts.system,
        "Python": facts.python_version,
        "PyTorch": facts.torch_version,
        "torchvision": facts.torchvision_version,
        "Crossover": " ".join(filter(None, (facts.app_version, facts.app_commit))),
        "Machine id": facts.machine_id,
    }
    tables.table([{"Fact": name, "Value": value} for name, value in shown.items()], alt="Machine")
    if policy := as_line(facts.omp_wait_policy):
        st.markdown("How CPU threads wait for each other (settings of OpenMP):")
        st.code(f"OMP_WAIT_POLICY={policy}", language=None, wrap_lines=True)
    if facts.cores_usable < facts.cores:
        st.caption("Affinity or a container's quota leaves this process fewer threads than the machine has.")


def _process(machine: Machine) -> None:
    st.header("Measuring process")
    jobs = [job for job in reads.queue().jobs() if job.active and not job.elsewhere]
    if not machine.live:
        st.markdown("It is starting; what is shown above was reported by the one before it.")
    elif any(job.state == "running" for job in jobs):
        waiting = sum(job.state == "queued" for job in jobs)
        st.markdown(
            f"It is measuring; {waiting} more {'waits' if waiting == 1 else 'wait'}." if waiting else "It is measuring."
        )
    else:
        st.markdown("It is ready, with torch loaded; a run starts at once.")


page()
