"""The controls of a training of one's own, which take the place of those of the catalogue where it is chosen.

It can be chosen where `pages.shared.frame.permits` offers it, by its name alone. Its file is hashed here and never run.
"""

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import InvalidValue
from core.question.experiment import OWN_PAIRS
from core.question.fields import FIELDS
from core.question.own import LARGEST_SIZE
from pages.shared.data import own_files
from pages.shared.data.own_files import OwnFile
from pages.shared.draw.text import plain
from pages.shared.form import controls
from pages.shared.frame import permits
from pages.shared.link import choices, links, state

SIZES = [2**power for power in range(25)]
"""Sizes that the ends of a range can be set to; a link may have others."""

REFRESH_S = 2.0
"""Seconds after which a change of the file is noticed, at most."""

CATALOGUE = "A model of the catalogue"
SIZE_HELP = "What the function of the file is called with: whatever its training grows with."
PAIRS, POSSIBLE = (2, 4, 6, 10, 15, 20, 30, 50, 100), range(1, 101)
"""Pairs that are offered, and that a link may ask for."""

PAIRS_HELP = "One block of every device makes a pair. More pairs make the intervals narrower."
ABOUT = "It is run as it is, in a process of its own that ends with it. What it does not say of itself is not known."


def choose(refusals: DeltaGenerator) -> OwnFile | None:
    """Draw which training it is, where one of one's own is offered, and what is known of its file.

    Args:
        refusals: where it is said that a link names one that is not offered; not where it would be folded away.

    Returns:
        The chosen one, or None for the catalogue.
    """
    offered = permits.trainings()
    with refusals:
        _refuse(list(offered))
    if not offered:
        state.say("training", [])
        return None
    titles = {"": CATALOGUE, **{name: f"Your own training: {file.title}" for name, file in offered.items()}}
    chosen = st.selectbox("Training", list(titles), **choices.bound("training", list(titles), "", titles.__getitem__))
    if not chosen:
        return None
    file = offered[chosen]
    st.caption(f"{plain(file.name)} · source {file.source_hash[:6] or 'cannot be read'} · {ABOUT}")
    st.fragment(_look, run_every=REFRESH_S)(file, file.source_hash)  # a change is seen while nothing else happens
    return file


def size() -> dict[str, int]:
    """The control of the one number that a file is called with."""
    usual = int(FIELDS["size"].usual_values[1])
    chosen = st.number_input("Size", 1, LARGEST_SIZE, usual, help=SIZE_HELP, **state.bound("size"))
    return {"size": int(chosen or usual)}


def limits() -> dict[str, float]:
    """The controls of how far a training of one's own is measured."""
    stops = sorted({*PAIRS, *(pairs for pairs in controls.linked_numbers("pairs", last=True) if pairs in POSSIBLE)})
    pairs = st.select_slider("Pairs of blocks", stops, OWN_PAIRS, help=PAIRS_HELP, **state.bound("pairs"))
    return {"pairs": int(pairs), "budget_s": float(controls.ladder("budget_s"))}


def check(link: Mapping[str, Sequence[str]]) -> None:
    """Refuse a link with a size that no file can be called with; raises InvalidValue."""
    for text in link.get("size", ())[-1:] if link.get("training") else ():
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) <= LARGEST_SIZE:
            raise InvalidValue("size", text, f"a whole number between 1 and {LARGEST_SIZE:,}")


def invite() -> None:
    """Draw one line on how to bring one's own training; nothing where that cannot be done, or was."""
    if permits.on_own_machine() and not permits.trainings():
        st.caption("To compare your own training, write a function `build(size, device)` and start the app with it:")
        st.code(own_files.COMMAND, language=None, wrap_lines=True)


def _look(file: OwnFile, source_hash: str) -> None:
    if file.source_hash != source_hash:
        st.rerun()


def _refuse(offered: list[str]) -> None:
    """Say that a link names a training that is not offered, which is all that becomes of it."""
    for name in state.arrived().get("training", ())[-1:]:
        if name and name not in offered and not state.touched():
            here = f"What is offered: {', '.join(offered)}." if offered else "No training of one's own is."
            st.warning(plain(f"This link asks for the training {links.few([name])}, which is not offered here. {here}"))
