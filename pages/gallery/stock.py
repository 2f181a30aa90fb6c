"""What the Gallery has on its shelf, worked out once for all visitors, and the filters that are in the link.

A study is read and answered only when it is on the screen.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from core.answer.charts import gallery
from core.answer.gallery import filters
from core.answer.gallery.filters import Found, Held
from core.answer.gallery.table import Overview, StudyLine
from core.answer.study import study
from core.answer.study.study import Study
from core.errors import CrossoverError
from core.text import as_line
from pages.shared.data import reads
from pages.shared.data.kept import kept
from pages.shared.draw import tables
from pages.shared.draw.text import plain
from pages.shared.link import state

LABELS = {
    "in_machine": "Machine",
    "in_kind": "Device kind",
    "in_device": "Device",
    "in_dataset": "Dataset",
    "in_model": "Model",
    "in_protocol": "Protocol",
    "in_trust": "Trust mark",
    "in_source": "Source",
    "in_outcome": "Outcome",
}
HELP = {
    "in_trust": (
        "From what is stored with a row: drained, warmed up, enough pairs of blocks, steady times, threads tried, a "
        "machine with nothing else to do, a whole GPU, versions and commit recorded. Full: all of it. Partly: one or "
        "two are missing. Weak: more are, or the device was not drained or not warmed up."
    ),
    "in_protocol": "The way of measuring. Rows of different protocols are never put on one line or chart.",
}

NOT_READ = "The rows of this study were removed, cannot be read, or are more than a page reads at once."

MOST_NAMED, MOST_WARNED = 200, 3
"""Files that are named one by one, of those that could not be read and of those of a newer version."""

Choices = Mapping[str, Sequence[str]]


Card = tuple[str, dict[str, Any] | None]
"""A study as it is shown among others: its answer in words, or why there is none, and its finished chart."""


@kept(2)
def held(overview: Overview) -> Held:
    return filters.held(overview.frame, reads.study_lines())


def unread(overview: Overview) -> None:
    """Name the files that could not be read as they are."""
    for name in overview.newer[:MOST_WARNED]:
        st.warning(plain(f"{name} was written by a newer version; what this version knows of it is shown."))
    if len(overview.newer) > MOST_WARNED:
        st.warning(f"So were {len(overview.newer) - MOST_WARNED:,} other files.")
    skipped = tuple(dict.fromkeys((*overview.skipped, *reads.refused())))
    if skipped:
        with st.expander(f"{len(skipped)} files could not be read", **state.bound_view("unread")) as part:
            if part.open:
                named = skipped[:MOST_NAMED]
                lines = [{"File": file.name, "Reason": file.reason} for file in named]
                tables.table(lines, alt="Files that could not be read")
                if len(named) < len(skipped):
                    st.caption(f"These are the first {MOST_NAMED}; `python -m core store check` names all.")


def draw_filters(held: Held) -> Choices:
    """Draw the filters; those without a choice let all through, and need no control while they are folded away."""
    chosen: dict[str, list[str]] = {name: [] for name in LABELS}
    with st.expander("Filters", icon=":material/filter_alt:", **state.bound_view("filters")) as part:
        if not part.open and not state.filtered():
            return chosen
        columns = [*st.columns(3), *st.columns(3), *st.columns(3)]
        for column, (name, label) in zip(columns, LABELS.items(), strict=True):
            chosen[name] = column.multiselect(
                label,
                held.options[name],
                format_func=as_line,
                placeholder="all",
                help=HELP.get(name),
                **state.bound(name),
            )
    return chosen


def filtered_by(chosen: Choices) -> str:
    """Which filters have a choice, to go on after a count; they may be folded away."""
    names = [LABELS[name].lower() for name, values in chosen.items() if values]
    return f", filtered by {' and '.join(names)}" if names else ""


@kept(64)
def found(held: Held, chosen: Choices) -> Found:
    return filters.found(held, chosen)


@kept(64)
def step_times(held: Held, chosen: Choices) -> dict[str, Any]:
    return gallery.step_times(filters.lines(held, found(held, chosen).trials, gallery.COLUMNS))


@kept(64)
def machines(held: Held, chosen: Choices) -> list[dict[str, Any]]:
    return filters.machines(held, found(held, chosen).trials)


def cards(lines: Sequence[StudyLine]) -> Callable[[StudyLine], Card]:
    """What makes the card of each of these studies when it is first on a screen; their rows are read in one go."""
    read = functools.cache(lambda: reads.whole(lines))
    return lambda line: _card(line.id, line.trial_ids, read)


@kept(512)
def _card(study_id: str, trial_ids: Sequence[str], _read: Callable[[], Mapping[str, Study]]) -> Card:
    opened = _read().get(study_id)
    if opened is None:
        return NOT_READ, None
    try:
        answer = study.crossover(opened)
    except CrossoverError as error:
        return str(error), None
    baseline, challenger = opened.runs[0]
    return answer.sentence, gallery.small(answer, (baseline.device_kind, challenger.device_kind))
