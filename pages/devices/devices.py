"""Devices: what this machine has, what PyTorch sees of it, and what to do where a GPU is missing."""

import streamlit as st

from core import units
from core.jobs.machine import Machine
from pages.shared.data import reads
from pages.shared.draw import tables
from pages.shared.draw.text import plain, told
from pages.shared.form import devices


def page() -> None:
    """The devices first, then the machine and its versions, then the measuring process."""
    st.title("Devices")
    st.caption("What this machine has and what PyTorch sees of it.")
    with told():
        if machine := reads.machine():
            _devices(machine)
            _machine(machine)
            _process(machine)
        elif reason := reads.only_looking():
            st.info(reason)
        else:
            devices.look(lambda: st.info("Looking at this machine's devices…"))


def _devices(machine: Machine) -> None:
    rows = [
        {
            "Device": info.device,
            "Kind": info.kind,
            "Name": info.name,
            "Memory": units.memory(info.memory_bytes),
            "Driver": info.driver,
            "First use": units.duration(machine.startup_s[info.device]) if info.device in machine.startup_s else "",
        }
        for info in machine.devices
    ]
    tables.table(rows, alt="Devices of this machine")
    if machine.hint:
        seen = "" if len(machine.devices) > 1 else "**No accelerator is seen here.** "
        st.info(f"{seen}{plain(machine.hint)}")


def _machine(machine: Machine) -> None:
    facts = machine.environment
    st.header("Machine and versions")
    shown = {
        "Processor": facts.cpu_name,
        "Processor threads": f"{facts.cores_usable} usable of {facts.cores}",
        "Memory": units.memory(facts.memory_bytes),
        "System": facts.system,
        "Python": facts.python_version,
        "torch": facts.torch_version,
        "torchvision": facts.torchvision_version,
        "Crossover": " ".join(filter(None, (facts.app_version, facts.app_commit))),
        "Waiting threads": f"OMP_WAIT_POLICY={facts.omp_wait_policy}" if facts.omp_wait_policy else "as OpenMP decides",
        "Machine id": facts.machine_id,
    }
    tables.table([{"Fact": name, "Value": value} for name, value in shown.items()], alt="Machine")
    if facts.cores_usable < facts.cores:
        st.caption("Affinity or a container's quota leaves this process fewer threads than the machine has.")


def _process(machine: Machine) -> None:
    st.header("Measuring process")
    jobs = [job for job in reads.queue().jobs() if job.active]
    if not machine.live:
        st.markdown("It is starting; what is shown above was reported by the one before it.")
    elif any(job.state == "running" for job in jobs):
        waiting = sum(job.state == "queued" for job in jobs)
        st.markdown(f"It is measuring; {waiting} more wait." if waiting else "It is measuring.")
    else:
        st.markdown("It is ready, with torch loaded; a run starts at once.")


page()
