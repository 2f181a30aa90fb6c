"""The Gallery's three lists: studies as cards, trials as a table, machines with a line each.

Only what is on the screen is worked out. Whatever a row's file wrote (names, messages) is shown as plain text.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import pandas as pd
import streamlit as st

from core import units
from core.answer.gallery import filters
from core.answer.gallery.filters import Found, Held
from core.answer.gallery.table import StudyLine
from core.answer.gallery.trust import Level
from core.answer.study import wording
from core.question import describe
from core.question.experiment import titled
from core.question.fields import label
from pages.gallery import stock
from pages.gallery.stock import Card, Choices
from pages.shared.answer import downloads, run_view
from pages.shared.data import reads
from pages.shared.draw import charts, tables
from pages.shared.draw.text import format_date, parse_date, plain
from pages.shared.frame import apart, layout
from pages.shared.link import links, memory, others, state

View = Literal["Studies", "Published", "Trials", "Machines"]
VIEWS: tuple[View, ...] = ("Studies", "Published", "Trials", "Machines")

CARDS = 6
"""Studies on one page."""

LINES = 100
"""Trials on one page of their table."""

TABLE: tuple[str, ...] = ("trial_id", "run_id", "started_at", "dataset", "model", "training", "size", "parameters")
TABLE += ("batch_size", "contender", "device_name", "step_s", "mark", "outcome", "machine", "source")
"""Columns of all trials that their table needs."""

MARKS: dict[Level, tuple[str, Literal["green", "blue", "orange"]]] = {
    "full": (":material/verified:", "green"),
    "partly": (":material/rule:", "blue"),
    "weak": (":material/warning:", "orange"),
}
"""Icon and colour of a trust mark; its words say the same."""

NO_STUDY = "The filters leave no study."
NO_STUDY_YET = "No study is stored yet: a sweep on the Crossover page makes one."
NONE_LEFT = "The filters let nothing through. Take one away to see more."


def choose_list() -> View:
    """The control of the list; choosing another one closes what is open."""
    chosen: View | None = st.segmented_control(
        "List",
        VIEWS,
        default="Studies",
        required=True,
        label_visibility="collapsed",
        **{**state.bind_control("view"), "on_change": close_item},
    )
    return chosen or "Studies"


def draw_list(view: View, contents: Held, chosen: Choices) -> None:
    """Draw one of the lists, of what the filters let through."""
    found = stock.apply_filters(contents, chosen)
    if view == "Studies" and found.studies:
        _draw_studies(contents, found, chosen)
    elif view == "Studies":
        trials = " These are the trials." if len(found.trials) else ""
        st.info(f"{NO_STUDY if contents.studies else NO_STUDY_YET}{trials}")
        _draw_trials(contents, found, chosen)
    elif view == "Trials":
        _draw_trials(contents, found, chosen)
    else:
        _draw_machines(contents, chosen)


def draw_trust_mark(level: Level, label: str) -> None:
    """A trust mark: an icon, a colour, and words that say the same."""
    icon, colour = MARKS[level]
    st.badge(f"Trust: {label}", icon=icon, color=colour)


def title_study(line: StudyLine) -> str:
    """What a study compares along what, for people."""
    sizes = f"{wording.size(line.sizes[0])} to {wording.size(line.sizes[-1])}"
    return f"{line.challenger_name} against {titled(line.baseline)}: {describe.along(line.axis, line.model)} {sizes}"


def describe_study(line: StudyLine) -> str:
    """The training, machine and time of a study, for people."""
    return (
        f"{describe.in_short(line)} · {len(line.sizes)} sizes · "
        f"on {line.machine} · protocol {line.protocol_version} · {format_date(line.newest)}"
    )


def _draw_studies(contents: Held, results: Found, chosen: Choices) -> None:
    st.caption(
        f"{len(results.studies):,} of {len(contents.studies):,} studies{stock.describe_filters(chosen)}, decided ones first"
    )
    cards = st.container()
    shown = _choose_page("studies_page", results.studies, CARDS)
    with cards:
        card_of = stock.make_cards([contents.studies[place] for place in shown])
        layout.in_pairs(shown, lambda place: apart.draw(_draw_study_card, contents, place, card_of))


def _draw_study_card(contents: Held, place: int, card_of: Callable[[StudyLine], Card]) -> None:
    line = contents.studies[place]
    said, chart = card_of(line)
    with st.container(border=True, height="stretch", key=f"card-{line.id}"):
        st.markdown(f"**{plain(title_study(line))}**")
        if chart is not None:
            charts.draw_chart(chart, height=None, alt=f"Time per step: {title_study(line)}")
        st.markdown(plain(said))
        st.caption(plain(describe_study(line)))
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            draw_trust_mark(contents.levels[place], contents.marks[place])
            draw_open_button(line.id)


def _draw_trials(contents: Held, results: Found, chosen: Choices) -> None:
    """The chart of all and the table of some; selecting one row opens its run, two set their runs side by side."""
    by = {name: values for name, values in chosen.items() if name != "in_answer"}  # which only studies have
    st.caption(f"{len(results.trials):,} of {len(contents.trials):,} trials{stock.describe_filters(by)}")
    if not len(results.trials):
        st.caption(NONE_LEFT)
        return
    spec = stock.make_step_times_chart(contents, chosen)
    charts.draw_chart(spec, height=run_view.CURVE_HEIGHT, alt="Time per step by parameters")
    st.caption(
        "A point is the median of trials with about as many parameters, its line their middle half. Select a row below "
        "to open its run, a second one to set their two runs side by side."
    )
    place = st.container()
    shown = filters.lines(contents, _choose_page("trials_page", results.trials.tolist(), LINES), TABLE)
    runs, own = shown["run_id"].tolist(), shown["training"].astype(str)
    files = own + ", size " + shown["size"].map("{:,}".format)
    tables.draw_table(
        {
            "Device": _map_column(shown["contender"], titled),
            "Step (ms)": shown["step_s"] * 1e3,
            "Data set": _map_column(shown["dataset"], partial(label, "dataset")).mask(own != "", ""),
            "Model": _map_column(shown["model"], partial(label, "model")).mask(own != "", files),
            "Parameters": shown["parameters"].mask(shown["parameters"] == 0),
            "Batch": shown["batch_size"].mask(own != ""),
            "Name": shown["device_name"].astype(str),
            "Trust": shown["mark"].astype(str),
            "Outcome": _map_column(shown["outcome"], partial(label, "outcome")),
            "Measured (UTC)": [parse_date(str(text)) for text in shown["started_at"]],
            "Machine": shown["machine"].astype(str),
            "Source": shown["source"].astype(str),
        },
        place=place,
        key="gallery_rows",
        on_select=lambda: _select_runs(runs),
        selection_mode="multi-row",
        column_config={
            "Measured (UTC)": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm", timezone="UTC"),
            "Parameters": st.column_config.NumberColumn(format="localized"),
            "Step (ms)": st.column_config.NumberColumn(format="%.4g"),
        },
        alt="Stored trials",
    )
    # reading them takes a moment
    if st.button(
        f"Prepare {units.counted(len(results.trials), 'row')} as files", icon=":material/download:", key="prepare"
    ):
        names = filters.lines(contents, results.trials, ("trial_id",))["trial_id"].tolist()
        apart.draw(lambda: downloads.draw_row_downloads(reads.find_rows(trial_ids=names), name="crossover-gallery"))


def _select_runs(runs: Sequence[str]) -> None:
    names = list(dict.fromkeys(runs[row] for row in memory.read_selected_rows("gallery_rows")))
    if names:
        open_item("run", names[0])
        others.set_compared(names[1:2])
    else:
        close_item()


def _draw_machines(contents: Held, chosen: Choices) -> None:
    known = stock.list_gallery_machines(contents, chosen)
    number = f"{len(known):,} of {len(contents.options['in_machine']):,} machines{stock.describe_filters(chosen)}"
    most = ", those with the most trials" if len(known) == filters.MOST_MACHINES else ""
    st.caption(f"{number}{most}. {'Select one to see its studies.' if known else NONE_LEFT}")
    if not known:
        return
    tables.draw_table(
        known,
        key="gallery_machines",
        on_select=lambda: _filter_by_machines([line["Machine"] for line in known]),
        selection_mode="single-row",
        alt="Machines",
    )


def _filter_by_machines(names: Sequence[str]) -> None:
    if rows := memory.read_selected_rows("gallery_machines"):
        memory.set_values({"in_machine": [names[rows[0]]], "view": "Studies"})


def draw_open_button(study_id: str) -> None:
    """Draw what opens a study from its card."""
    icon, opening = ":material/open_in_full:", ("study", study_id)
    st.button("Open", key=f"open-{study_id}", on_click=open_item, args=opening, icon=icon)


def open_item(kind: Literal["study", "run"], name: str) -> None:
    """Open a study or a run, with nothing beside it."""
    state.show_view(kind, name)
    _clear_compared()


def close_item() -> None:
    """Show the list again."""
    state.clear_view()
    _clear_compared()


def draw_back_button() -> None:
    st.button("Back to the list", on_click=close_item, icon=":material/arrow_back:", key="close")


def _clear_compared() -> None:
    for parameter in (links.BESIDE, links.AGAINST):
        others.set_compared((), parameter)


def _choose_page(name: str, items: Sequence[int], each: int) -> list[int]:
    """The items of the page that is chosen; the control is drawn where there are several."""
    pages = math.ceil(len(items) / each)
    chosen = st.pagination(pages, **state.bind_control(name)) if pages > 1 else 1
    return list(items[(chosen - 1) * each : chosen * each])


def _map_column(column: "pd.Series[Any]", describe: Callable[[str], str]) -> "pd.Series[Any]":
    """Texts of a column for people; each is looked up once, however many rows have it."""
    texts = column.astype(str)
    return texts.map({text: describe(text) for text in texts.unique()})
