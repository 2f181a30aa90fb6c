"""Devices: the devices of this machine, those that PyTorch can use, and advice if a GPU is missing."""

import streamlit as st

from core import units
from core.answer import contribution
from core.jobs.machine import Machine
from core.question.experiment import display_name
from core.text import as_line
from pages.shared import controls, elements, layout, permits, queries, sweep_view
from pages.shared.elements import plain, show_errors

WITHOUT: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    (layout.EXPLORE, "Train with one CPU thread against all of them", ":material/balance:", {}),
    (
        layout.EXPLORE,
        "Find where more CPU threads pay off",
        ":material/timeline:",
        {"sizes": "range"},
    ),
    (layout.GALLERY, "See what GPUs did on other machines", ":material/grid_view:", {}),
)
"""Pages that work without an accelerator: page, label, icon and link."""


def draw_devices_page() -> None:
    """Draw the devices, the machine with its versions, and the measuring process."""
    st.title("Devices")
    st.caption("The devices of this machine, and which ones PyTorch can use.")
    with show_errors():
        queries.start_measuring_process()
        if machine := queries.read_machine():
            _draw_devices(machine)
            _draw_machine_facts(machine)
            _draw_process(machine)
            _draw_contribution()
            if permits.clusters():
                sweep_view.draw_last_cluster()
        elif reason := queries.explain_no_runs():
            st.info(reason)
        else:
            controls.poll_machine(lambda: st.info("Looking at this machine's devices…"))


def _draw_devices(machine: Machine) -> None:
    rows = [
        {
            "Device": display_name(info.device),
            "Name": info.name,
            "Memory": units.format_memory(info.memory_bytes),
            "Driver": info.driver,
            "First use": units.format_duration(machine.startup_s[info.device])
            if info.device in machine.startup_s
            else "",
            "In commands": info.device,
        }
        for info in machine.devices
    ]
    known = [name for name in rows[0] if any(row[name] for row in rows)]
    elements.draw_table([{name: row[name] for name in known} for row in rows], alt="Devices of this machine")
    alone = len(machine.devices) == 1
    if machine.hint:
        st.info(f"{'**No accelerator found.** ' if alone else ''}{plain(machine.hint)}")
    if alone:
        st.header("Available without a GPU")
        for file, label, icon, link in WITHOUT:
            st.page_link(file, label=label, icon=icon, query_params=link)


def _draw_contribution() -> None:
    """Draw how to contribute measurements of this machine."""
    with st.popover("Contribute a measurement", icon=":material/upload:"):
        st.markdown(
            "This command measures this machine for about five minutes, shows what the file holds, and asks before it "
            "writes the file. Nothing is sent."
        )
        st.code("python -m core contribute", language=None, wrap_lines=True)
        if address := contribution.find_form_address():
            st.link_button("Send the file in", address, icon=":material/open_in_new:")


def _draw_machine_facts(machine: Machine) -> None:
    facts = machine.environment
    st.header("Machine and versions")
    shown = {
        "Processor": facts.cpu_name,
        "Processor threads": f"{facts.cores_usable} usable of {facts.cores}",
        "Memory": units.format_memory(facts.memory_bytes),
        "System": facts.system,
        "Python": facts.python_version,
        "PyTorch": facts.torch_version,
        "torchvision": facts.torchvision_version,
        "Crossover": " ".join(filter(None, (facts.app_version, facts.app_commit))),
        "Machine id": facts.machine_id,
    }
    elements.draw_table([{"Fact": name, "Value": value} for name, value in shown.items()], alt="Machine")
    if repeats := queries.describe_repeatability():
        st.markdown(plain(repeats))
    if policy := as_line(facts.omp_wait_policy):
        st.markdown("OpenMP settings (how CPU threads wait for each other):")
        st.code(f"OMP_WAIT_POLICY={policy}", language=None, wrap_lines=True)
    if facts.cores_usable < facts.cores:
        st.caption("Affinity or a container's quota leaves this process fewer threads than the machine has.")


def _draw_process(machine: Machine) -> None:
    st.header("Measuring process")
    jobs = [job for job in queries.open_queue().jobs() if job.active and not job.elsewhere]
    if not machine.live:
        st.markdown("It is starting. The devices above were reported by the previous one.")
    elif any(job.state == "running" for job in jobs):
        waiting = sum(job.state == "queued" for job in jobs)
        st.markdown(
            f"It is measuring; {waiting} more {'waits' if waiting == 1 else 'wait'}." if waiting else "It is measuring."
        )
    else:
        st.markdown("It is ready, with torch loaded; a run starts at once.")


draw_devices_page()
