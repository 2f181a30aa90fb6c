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
from pages.shared.data.own_files import CustomFile
from pages.shared.draw.text import plain
from pages.shared.form import controls
from pages.shared.frame import permits
from pages.shared.link import choices, links, state

CUSTOM_SIZES = [2**power for power in range(25)]
"""Sizes that the ends of a range can be set to; a link may have others."""

FILE_REFRESH_S = 2.0
"""Seconds after which a change of the file is noticed, at most."""

CATALOGUE_TITLE = "A model of the catalogue"
SIZE_HELP = "What the function of the file is called with: whatever its training grows with."
PAIR_STOPS, POSSIBLE_PAIRS = (2, 4, 6, 10, 15, 20, 30, 50, 100), range(1, 101)
"""Pairs that are offered, and that a link may ask for."""

PAIRS_HELP = "One block of every device makes a pair. More pairs make the intervals narrower."
CUSTOM_CAPTION = (
    "It is run as it is, in a process of its own that ends with it. What it does not say of itself is not known."
)


def choose_custom_training(refusals: DeltaGenerator) -> CustomFile | None:
    """Draw which training it is, where one of one's own is offered, and what is known of its file.

    Args:
        refusals: where it is said that a link names one that is not offered; not where it would be folded away.

    Returns:
        The chosen one, or None for the catalogue.
    """
    offered = permits.trainings()
    with refusals:
        _warn_unavailable(list(offered))
    if not offered:
        state.write_link("training", [])
        return None
    titles = {"": CATALOGUE_TITLE, **{name: f"Your own training: {file.title}" for name, file in offered.items()}}
    chosen = st.selectbox(
        "Training", list(titles), **choices.bind_choice("training", list(titles), "", titles.__getitem__)
    )
    if not chosen:
        return None
    file = offered[chosen]
    st.caption(f"{plain(file.name)} · source {file.source_hash[:6] or 'cannot be read'} · {CUSTOM_CAPTION}")
    st.fragment(_rerun_on_change, run_every=FILE_REFRESH_S)(
        file, file.source_hash
    )  # a change is seen while nothing else happens
    return file


def choose_custom_size() -> dict[str, int]:
    """The control of the one number that a file is called with."""
    usual = int(FIELDS["size"].usual_values[1])
    chosen = st.number_input("Size", 1, LARGEST_SIZE, usual, help=SIZE_HELP, **state.bind_control("size"))
    return {"size": int(chosen or usual)}


def choose_custom_limits() -> dict[str, float]:
    """The controls of how far a training of one's own is measured."""
    stops = sorted(
        {*PAIR_STOPS, *(pairs for pairs in controls.read_linked_numbers("pairs", last=True) if pairs in POSSIBLE_PAIRS)}
    )
    pairs = st.select_slider("Pairs of blocks", stops, OWN_PAIRS, help=PAIRS_HELP, **state.bind_control("pairs"))
    return {"pairs": int(pairs), "budget_s": float(controls.choose_stop("budget_s"))}


def check_custom_size(link: Mapping[str, Sequence[str]]) -> None:
    """Refuse a link with a size that no file can be called with; raises InvalidValue."""
    for text in link.get("size", ())[-1:] if link.get("training") else ():
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) <= LARGEST_SIZE:
            raise InvalidValue("size", text, f"a whole number between 1 and {LARGEST_SIZE:,}")


def invite_custom_training() -> None:
    """Draw one line on how to bring one's own training; nothing where that cannot be done, or was."""
    if permits.on_own_machine() and not permits.trainings():
        st.caption("To compare your own training, write a function `build(size, device)` and start the app with it:")
        st.code(own_files.START_COMMAND, language=None, wrap_lines=True)


def _rerun_on_change(file: CustomFile, source_hash: str) -> None:
    if file.source_hash != source_hash:
        st.rerun()


def _warn_unavailable(offered: list[str]) -> None:
    """Say that a link names a training that is not offered, which is all that becomes of it."""
    for name in state.read_arrived_settings().get("training", ())[-1:]:
        if name and name not in offered and not state.has_changed():
            here = f"What is offered: {', '.join(offered)}." if offered else "No training of one's own is."
            st.warning(
                plain(
                    f"This link asks for the training {links.shorten_list([name])}, which is not offered here. {here}"
                )
            )
