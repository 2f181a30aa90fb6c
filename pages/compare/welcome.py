"""What the Compare page says before anything was asked."""

import streamlit as st

from core.jobs.machine import Machine
from pages.shared.draw.text import plain
from pages.shared.form import own_controls
from pages.shared.link import others

WELCOME = """
1. **Set** a training; what it costs is shown as you change it.
2. **Run** trains it on every chosen device, in turns{alike}.
3. **Read** which device is faster, by how much (with an interval), why, and whether both learned the same.

The measurement runs in a process of its own: you may close this page and come back. The same settings asked again are
answered at once from the store.
"""

ALIKE = ", from the same weights and with the same batches"

WITHOUT_ACCELERATOR = (
    "So Compare sets one CPU thread against all of them. With an accelerator, it would train on the CPU and on that."
)
RECORDED = (
    "So Compare trains on the CPU here, and sets what the accelerator that you chose did elsewhere beside it: two "
    "machines."
)


def draw_welcome(machine: Machine | None, *, is_custom: bool = False) -> None:
    """Draw how the page works, with one's `is_custom` training too, and what is missing where there is no accelerator."""
    st.header("How this works")
    st.markdown(WELCOME.format(alike="; it is built anew for each" if is_custom else ALIKE))
    if machine and len(machine.devices) == 1:
        instead = RECORDED if others.read_accelerator() else WITHOUT_ACCELERATOR
        st.info(f"**No accelerator is seen here.** {plain(machine.hint)}\n\n{instead}")
    own_controls.invite_custom_training()
