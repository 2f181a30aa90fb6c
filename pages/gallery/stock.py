"""What the Gallery has on its shelf, worked out once for all visitors, and the filters that are in the link.

Of very many studies only those are read and answered that come first, or are on the screen.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import streamlit as st

from core import units
from core.answer.charts import gallery
from core.answer.gallery import filters, trust
from core.answer.gallery.filters import Found, Held
from core.answer.gallery.table import Overview, StudyLine
from core.answer.study import study, wording
from core.answer.study.result import Crossover, Outcome
from core.answer.study.study import Study
from core.errors import CrossoverError
from core.question.device_kinds import DEVICE_KINDS
from core.question.fields import label
from core.question.own import OWN
from core.text import as_line
from pages.shared.cache import cache_answers
from pages.shared.data import reads
from pages.shared.draw import tables
from pages.shared.draw.text import plain
from pages.shared.link import choices, links, state
from pages.shared.link.links import GALLERY_FILTERS

FILTER_HELP = {
    "in_answer": (
        "What the study says. The second device is the GPU where there is one. Runs that do not make a study, such as "
        'two comparisons that differ in one size, are only shown if you choose "Not measurable".'
    ),
    "in_trust": (
        "From what is stored with a row: drained, warmed up, enough pairs of blocks, steady times, threads tried, a "
        "machine with nothing else to do, a whole GPU, versions and commit recorded. Full: all of it. Partly: one or "
        "two are missing. Weak: more are, or the device was not drained or not warmed up."
    ),
    "in_protocol": "The way of measuring. Rows of different protocols are never put on one line or chart.",
}

CUSTOM_TITLE = "One's own"
"""Data set and model of one's own training, for people."""

VALUE_TITLES: dict[str, Callable[[str], str]] = {
    "in_answer": lambda outcome: filters.ANSWERS[cast(Outcome, outcome)],
    "in_dataset": lambda name: CUSTOM_TITLE if name == OWN else label("dataset", name),
    "in_model": lambda name: CUSTOM_TITLE if name == OWN else label("model", name),
    "in_training": lambda name: name or "none",
    "in_outcome": functools.partial(label, "outcome"),
    "in_kind": lambda kind: DEVICE_KINDS[kind].title if kind in DEVICE_KINDS else kind,
}
"""How values of a filter are said to people, where rows and links have words of their own."""

NOT_READ = "The rows of this study were removed, cannot be read, or are more than a page reads at once."

MAX_NAMED_FILES = 200
"""Files that are named one by one, of those that could not be read."""

MAX_ANSWERED, BATCH_SIZE = 48, 6
"""Studies that are answered for the filter and the order, and those whose rows are read in one go."""

Choices = Mapping[str, Sequence[str]]


Card = tuple[str, dict[str, Any] | None]
"""A study as it is shown among others: its answer in words, or why there is none, and its finished chart."""

_Answered = tuple[Crossover | None, str, tuple[str, str]]
"""The answer of a study, the same in words or why there is none, and the kinds of its two devices."""

NO_KINDS = ("", "")


@cache_answers(2)
def read_contents(overview: Overview) -> Held:
    return filters.held(overview.frame, reads.list_study_lines())


def draw_unread_files(overview: Overview) -> None:
    """Name the files that could not be read as they are, and say how many trials are too old for the lists."""
    if overview.left_out:
        newest, older = units.counted(len(overview.frame), "trial"), f"{overview.left_out:,}"
        st.caption(
            f"These are the newest {newest}. {older} older ones are kept, and open by the link of their study or run."
        )
    if newer := overview.newer:
        which = f" and {units.counted(len(newer) - 1, 'more file')} were" if len(newer) > 1 else " was"
        st.warning(plain(f"{newer[0]}{which} written by a newer version; what this version knows of it is shown."))
    skipped = tuple(dict.fromkeys((*overview.skipped, *reads.list_refused_files())))
    if skipped:
        with st.expander(
            f"{units.counted(len(skipped), 'file')} could not be read", **state.bind_view("unread")
        ) as part:
            if part.open:
                named = skipped[:MAX_NAMED_FILES]
                lines = [{"File": file.name, "Reason": file.reason} for file in named]
                tables.draw_table(lines, alt="Files that could not be read")
                if len(named) < len(skipped):
                    st.caption(f"These are the first {MAX_NAMED_FILES}; `python -m core store check` names all.")


def draw_filters(options: Mapping[str, Sequence[str]]) -> Choices:
    """Draw filters; those without a choice let all through, and need no control while they are folded away.

    Args:
        options: of each filter that the list has.
    """
    chosen: dict[str, list[str]] = {name: [] for name in options}
    with st.expander("Filters", icon=":material/filter_alt:", **state.bind_view("filters")) as part:
        if not part.open and not any(map(choices.read_choices, GALLERY_FILTERS)):
            return chosen
        unknown = {name: [word for word in choices.read_choices(name) if word not in options[name]] for name in options}
        rows = [column for _ in range(0, len(options), 3) for column in st.columns(3)]
        for column, (name, values) in zip(rows, options.items(), strict=False):
            chosen[name] = _draw_filter(column, name, values)
    strange = [f"{GALLERY_FILTERS[name]}: {links.shorten_list(words)}" for name, words in unknown.items() if words]
    if strange:
        st.warning(plain(f"These filters of the link fit nothing here, so they are left out. {'; '.join(strange)}."))
    return chosen


def _draw_filter(place: Any, name: str, values: Sequence[str]) -> list[str]:
    bound = choices.bind_choice(name, values, [], lambda value: as_line(VALUE_TITLES.get(name, str)(value)))
    chosen: list[str] = place.multiselect(
        GALLERY_FILTERS[name], values, placeholder="all", help=FILTER_HELP.get(name), **bound
    )
    return chosen


def list_options(contents: Held, *, answers: bool) -> dict[str, Sequence[str]]:
    """What the filters of a list offer; only studies have answers."""
    known = {name: values for name, values in contents.options.items() if name != "in_training" or any(values)}
    return {**({"in_answer": tuple(filters.ANSWERS)} if answers else {}), **known}


def describe_filters(chosen: Choices) -> str:
    """Which filters have a choice, to go on after a count; they may be folded away."""
    names = [GALLERY_FILTERS[name].lower() for name, values in chosen.items() if values]
    return f", filtered by {' and '.join(names)}" if names else ""


@cache_answers(64)
def apply_filters(contents: Held, chosen: Choices) -> Found:
    """What the filters let through; studies that are decided and trusted come first."""
    some = filters.found(contents, chosen)
    studies = filters.listed_studies(contents, some.studies, find_outcomes(contents), chosen.get("in_answer", ()))
    return replace(some, studies=studies)


@cache_answers(2)
def find_outcomes(contents: Held) -> tuple[Outcome | None, ...]:
    """What each study says; None where that is not known."""
    levels = list(trust.LEVELS)
    first = sorted(range(len(contents.studies)), key=lambda place: (levels.index(contents.levels[place]), place))
    said: list[Outcome | None] = [None] * len(contents.studies)
    for begin in range(0, min(MAX_ANSWERED, len(first)), BATCH_SIZE):
        places = first[begin : begin + BATCH_SIZE]
        answer_of = _answer_lazily([contents.studies[place] for place in places])
        for place in places:
            answer, _, _ = answer_of(contents.studies[place])
            said[place] = answer.outcome if answer else None
    return tuple(said)


@cache_answers(64)
def make_step_times_chart(contents: Held, chosen: Choices) -> dict[str, Any]:
    return gallery.step_times(filters.lines(contents, apply_filters(contents, chosen).trials, gallery.COLUMNS))


@cache_answers(64)
def list_gallery_machines(contents: Held, chosen: Choices) -> list[dict[str, Any]]:
    return filters.machines(contents, apply_filters(contents, chosen).trials)


def make_cards(lines: Sequence[StudyLine]) -> Callable[[StudyLine], Card]:
    """What makes the card of each of these studies when it is first on a screen."""
    answer_of = _answer_lazily(lines)
    return lambda line: _make_card(line.id, line.trial_ids, lambda: answer_of(line))


@cache_answers(512)
def _make_card(study_id: str, trial_ids: Sequence[str], _answer: Callable[[], _Answered]) -> Card:
    answer, said, kinds = _answer()
    return said, gallery.small(answer, kinds) if answer else None


def _answer_lazily(lines: Sequence[StudyLine]) -> Callable[[StudyLine], _Answered]:
    """What answers each of these studies when it is first asked; their rows are read in one go."""
    read = functools.cache(lambda: reads.find_studies(lines))
    return lambda line: _answer_study(line.id, line.trial_ids, read)


@cache_answers(2_048)
def _answer_study(study_id: str, trial_ids: Sequence[str], _read: Callable[[], Mapping[str, Study]]) -> _Answered:
    opened = _read().get(study_id)
    if opened is None:
        return None, NOT_READ, NO_KINDS
    try:
        answer = study.crossover(opened)
    except CrossoverError as error:
        return None, str(error), NO_KINDS
    baseline, challenger = opened.runs[0]
    return answer, wording.headline(answer), (baseline.device_kind, challenger.device_kind)
