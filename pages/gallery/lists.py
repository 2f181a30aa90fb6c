"""The lists of the gallery: stored trials and studies, filters in the link, cards and tables, and import of files.

Of very many studies, only the first ones and those on the screen are read and answered.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import streamlit as st

from core import units
from core.answer import wording
from core.answer.charts import gallery_charts
from core.answer.gallery import trust
from core.answer.gallery.overview import (
    ANSWERS,
    MAX_MACHINE_LINES,
    FilterResult,
    GalleryData,
    Overview,
    StudyLine,
    apply_filters,
    build_gallery_data,
    machine_table,
    select_lines,
    select_studies,
)
from core.answer.gallery.trust import Level
from core.answer.judgement import Crossover, Outcome
from core.answer.study import Study
from core.errors import CrossoverError
from core.question import describe
from core.question.custom import CUSTOM
from core.question.experiment import display_name
from core.question.fields import value_label
from core.question.lanes import DEVICE_KINDS
from core.results import exchange
from core.results.exchange import Proposal
from core.text import as_line, as_lines
from pages.shared import elements, layout, links, permits, queries, run_view, session
from pages.shared.cache import cache_answers
from pages.shared.elements import format_date, parse_date, plain, show_errors
from pages.shared.links import GALLERY_FILTERS

if TYPE_CHECKING:
    import pandas as pd

FILTER_HELP = {
    "in_answer": (
        "Result of the study. The second device is the GPU where there is one. Runs that do not make a study, such as "
        'two comparisons that differ in one size, are only shown if you choose "Not measurable".'
    ),
    "in_trust": (
        "Checks of each row: synchronized, warmed up, enough pairs of blocks, steady times, thread counts tried, idle "
        "machine, whole GPU, versions and commit recorded. Full: all passed. Partly: one or two failed. Weak: more "
        "failed, or the device was not synchronized or not warmed up."
    ),
    "in_protocol": "Methodology version. Rows of different versions never share a line or a chart.",
}

CUSTOM_TITLE = "One's own"
"""Label of data set and model of a custom script."""

VALUE_TITLES: dict[str, Callable[[str], str]] = {
    "in_answer": lambda outcome: ANSWERS[cast(Outcome, outcome)],
    "in_dataset": lambda name: CUSTOM_TITLE if name == CUSTOM else value_label("dataset", name),
    "in_model": lambda name: CUSTOM_TITLE if name == CUSTOM else value_label("model", name),
    "in_training": lambda name: name or "none",
    "in_outcome": functools.partial(value_label, "outcome"),
    "in_kind": lambda kind: DEVICE_KINDS[kind].title if kind in DEVICE_KINDS else kind,
}
"""Labels of filter values whose stored form differs."""

NOT_READ = "The rows of this study were removed, cannot be read, or are more than a page reads at once."

MAX_NAMED_FILES = 200
"""Maximum number of unreadable files listed by name."""

MAX_ANSWERED, BATCH_SIZE = 48, 6
"""Maximum number of studies answered for the filter and the order, and number of studies read at once."""

Choices = Mapping[str, Sequence[str]]


Card = tuple[str, dict[str, Any] | None]
"""The card of a study: its answer in words, or the reason why there is none, and its finished chart."""

_Answered = tuple[Crossover | None, str, tuple[str, str]]
"""The answer of a study, the answer in words or the reason why there is none, and the kinds of its two devices."""

NO_KINDS = ("", "")


@cache_answers(2)
def read_contents(overview: Overview) -> GalleryData:
    return build_gallery_data(overview.frame, queries.list_study_lines())


def draw_unread_files(overview: Overview) -> None:
    """Draw the unreadable files by name, files of a newer version, and the number of trials too old for the lists."""
    if overview.left_out:
        newest, older = units.format_quantity(overview.table.num_rows, "trial"), f"{overview.left_out:,}"
        st.caption(f"These are the newest {newest}. {older} older ones are stored; open them by their run's link.")
    if newer := overview.newer:
        which = f" and {units.format_quantity(len(newer) - 1, 'more file')} were" if len(newer) > 1 else " was"
        st.warning(
            plain(f"{newer[0]}{which} written by a newer version; only values that this version knows are shown.")
        )
    skipped = tuple(dict.fromkeys((*overview.skipped, *queries.list_refused_files())))
    if skipped:
        with st.expander(
            f"{units.format_quantity(len(skipped), 'file')} could not be read", **session.bind_view("unread")
        ) as part:
            if part.open:
                named = skipped[:MAX_NAMED_FILES]
                lines = [{"File": file.name, "Reason": file.reason} for file in named]
                elements.draw_table(lines, alt="Files that could not be read")
                if len(named) < len(skipped):
                    st.caption(f"These are the first {MAX_NAMED_FILES}; `python -m core store check` names all.")


def draw_filters(options: Mapping[str, Sequence[str]]) -> Choices:
    """Draw the filters and return their choices; a filter without a choice passes all items.

    While the filters are folded and none has a choice, no control is needed.

    Args:
        options: values of each filter of the list.
    """
    chosen: dict[str, list[str]] = {name: [] for name in options}
    with st.expander("Filters", icon=":material/filter_alt:", **session.bind_view("filters")) as part:
        if not part.open and not any(map(session.read_choices, GALLERY_FILTERS)):
            return chosen
        unknown = {name: [word for word in session.read_choices(name) if word not in options[name]] for name in options}
        rows = [column for _ in range(0, len(options), 3) for column in st.columns(3)]
        for column, (name, values) in zip(rows, options.items(), strict=False):
            chosen[name] = _draw_filter(column, name, values)
    strange = [f"{GALLERY_FILTERS[name]}: {links.shorten_list(words)}" for name, words in unknown.items() if words]
    if strange:
        st.warning(plain(f"These filters of the link match nothing here and were dropped. {'; '.join(strange)}."))
    return chosen


def _draw_filter(place: Any, name: str, values: Sequence[str]) -> list[str]:
    bound = session.bind_choice(name, values, [], lambda value: as_line(VALUE_TITLES.get(name, str)(value)))
    chosen: list[str] = place.multiselect(
        GALLERY_FILTERS[name], values, placeholder="all", help=FILTER_HELP.get(name), **bound
    )
    return chosen


def list_options(contents: GalleryData, *, answers: bool) -> dict[str, Sequence[str]]:
    """Return the options of the filters of a list; only studies have answers."""
    known = {name: values for name, values in contents.options.items() if name != "in_training" or any(values)}
    return {**({"in_answer": tuple(ANSWERS)} if answers else {}), **known}


def describe_filters(chosen: Choices) -> str:
    """Return the names of the filters with a choice, to follow a count; the filters themselves may be folded."""
    names = [GALLERY_FILTERS[name].lower() for name, values in chosen.items() if values]
    return f", filtered by {' and '.join(names)}" if names else ""


@cache_answers(64)
def select_contents(contents: GalleryData, chosen: Choices) -> FilterResult:
    """Return the filtered items; decided and trusted studies come first."""
    some = apply_filters(contents, chosen)
    studies = select_studies(contents, some.studies, find_outcomes(contents), chosen.get("in_answer", ()))
    return replace(some, studies=studies)


@cache_answers(2)
def find_outcomes(contents: GalleryData) -> tuple[Outcome | None, ...]:
    """Return the outcome of each study; None if it is unknown."""
    levels = list(trust.LEVELS)
    first = sorted(range(len(contents.studies)), key=lambda place: (levels.index(contents.levels[place]), place))
    said: list[Outcome | None] = [None] * len(contents.studies)
    for begin in range(0, min(MAX_ANSWERED, len(first)), BATCH_SIZE):
        places = first[begin : begin + BATCH_SIZE]
        answer_of = _answer_lazily([contents.studies[place] for place in places])
        for place in places:
            answer, _, _ = answer_of(contents.studies[place])
            said[place] = "undecided" if answer and answer.is_conditional else answer.outcome if answer else None
    return tuple(said)


@cache_answers(64)
def make_step_times_chart(contents: GalleryData, chosen: Choices) -> dict[str, Any]:
    return gallery_charts.step_times_chart(
        select_lines(contents, select_contents(contents, chosen).trials, gallery_charts.STEP_TIME_COLUMNS)
    )


@cache_answers(64)
def list_gallery_machines(contents: GalleryData, chosen: Choices) -> list[dict[str, Any]]:
    return machine_table(contents, select_contents(contents, chosen).trials)


def make_cards(lines: Sequence[StudyLine]) -> Callable[[StudyLine], Card]:
    """Return a function that makes the card of one of these studies when the card is first visible."""
    answer_of = _answer_lazily(lines)
    return lambda line: _make_card(line.id, line.trial_ids, lambda: answer_of(line))


@cache_answers(512)
def _make_card(study_id: str, trial_ids: Sequence[str], _answer: Callable[[], _Answered]) -> Card:
    answer, said, kinds = _answer()
    return said, gallery_charts.study_thumbnail(answer, kinds) if answer else None


def _answer_lazily(lines: Sequence[StudyLine]) -> Callable[[StudyLine], _Answered]:
    """Return a function that computes the answer of one of these studies; it reads the rows of all together, once."""
    read = functools.cache(lambda: queries.find_studies(lines))
    return lambda line: _answer_study(line.id, line.trial_ids, read)


@cache_answers(2_048)
def _answer_study(study_id: str, trial_ids: Sequence[str], _read: Callable[[], Mapping[str, Study]]) -> _Answered:
    opened = _read().get(study_id)
    if opened is None:
        return None, NOT_READ, NO_KINDS
    try:
        answer = opened.crossover()
    except CrossoverError as error:
        return None, str(error), NO_KINDS
    baseline, challenger = opened.runs[0]
    return answer, wording.crossover_headline(answer), (baseline.device_kind, challenger.device_kind)


View = Literal["Studies", "Published", "Trials", "Machines"]
VIEWS: tuple[View, ...] = ("Studies", "Published", "Trials", "Machines")

CARDS = 6
"""Number of studies per page."""

LINES = 100
"""Number of trials per page of the table."""

TABLE: tuple[str, ...] = ("trial_id", "run_id", "started_at", "dataset", "model", "training", "size", "parameters")
TABLE += ("batch_size", "contender", "device_name", "step_s", "mark", "outcome", "machine", "source")
"""Columns of the trials that their table needs."""

MARKS: dict[Level, tuple[str, Literal["green", "blue", "orange"]]] = {
    "full": (":material/verified:", "green"),
    "partly": (":material/rule:", "blue"),
    "weak": (":material/warning:", "orange"),
}
"""Icon and colour of a trust mark; its label has the same meaning."""

NO_STUDY = "No study matches the filters."
NO_STUDY_YET = "No study is stored yet. Measure a range of sizes in Explore to create one."
NONE_LEFT = "Nothing matches the filters. Remove one to see more."


def choose_list() -> View:
    """Draw the choice of the list; choosing another list closes the open item."""
    chosen: View | None = st.segmented_control(
        "List",
        VIEWS,
        default="Studies",
        required=True,
        label_visibility="collapsed",
        **{**session.bind_control("view"), "on_change": close_item},
    )
    return chosen or "Studies"


def draw_list(view: View, contents: GalleryData, chosen: Choices) -> None:
    """Draw one of the lists with the filtered items."""
    found = select_contents(contents, chosen)
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
    """Draw a trust mark: an icon, a colour, and a label with the same meaning."""
    icon, colour = MARKS[level]
    st.badge(f"Trust: {label}", icon=icon, color=colour)


def title_study(line: StudyLine) -> str:
    """Return the compared devices, the axis and the sizes of a study, as a label."""
    sizes = f"{wording.format_size(line.sizes[0])} to {wording.format_size(line.sizes[-1])}"
    return (
        f"{line.challenger_name} against {display_name(line.baseline)}: {describe.label_axis(line.axis, line.model)} "
        f"{sizes}"
    )


def describe_study(line: StudyLine) -> str:
    """Return the training, machine and date of a study, as a caption."""
    return (
        f"{describe.describe_training(line)} · {len(line.sizes)} sizes · "
        f"on {line.machine} · protocol {line.protocol_version} · {format_date(line.newest)}"
    )


def _draw_studies(contents: GalleryData, results: FilterResult, chosen: Choices) -> None:
    st.caption(
        f"{len(results.studies):,} of {len(contents.studies):,} studies{describe_filters(chosen)}, decided ones first"
    )
    cards = st.container()
    shown = _choose_page("studies_page", results.studies, CARDS)
    with cards:
        card_of = make_cards([contents.studies[place] for place in shown])
        layout.draw_pairs(shown, lambda place: layout.draw_isolated(_draw_study_card, contents, place, card_of))


def _draw_study_card(contents: GalleryData, place: int, card_of: Callable[[StudyLine], Card]) -> None:
    line = contents.studies[place]
    said, chart = card_of(line)
    with st.container(border=True, height="stretch", key=f"card-{line.id}"):
        st.markdown(f"**{plain(title_study(line))}**")
        if chart is not None:
            elements.draw_chart(chart, height=None, alt=f"Time per step: {title_study(line)}")
        st.markdown(plain(said))
        st.caption(plain(describe_study(line)))
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            draw_trust_mark(contents.levels[place], contents.marks[place])
            draw_open_button(line.id)


def _draw_trials(contents: GalleryData, results: FilterResult, chosen: Choices) -> None:
    """Draw the chart of all trials and a page of their table; one selected row opens its run, two are compared."""
    by = {name: values for name, values in chosen.items() if name != "in_answer"}  # a filter of studies only
    st.caption(f"{len(results.trials):,} of {len(contents.trials):,} trials{describe_filters(by)}")
    if not len(results.trials):
        st.caption(NONE_LEFT)
        return
    spec = make_step_times_chart(contents, chosen)
    elements.draw_chart(spec, height=run_view.CURVE_HEIGHT, alt="Time per step by parameters")
    st.caption(
        "Point: median of trials with a similar parameter count. Line: interquartile range. Select a row below to open "
        "its run, or two rows to compare their runs."
    )
    place = st.container()
    shown = select_lines(contents, _choose_page("trials_page", results.trials.tolist(), LINES), TABLE)
    runs, own = shown["run_id"].tolist(), shown["training"].astype(str)
    files = own + ", size " + shown["size"].map("{:,}".format)
    elements.draw_table(
        {
            "Device": _map_column(shown["contender"], display_name),
            "Step (ms)": shown["step_s"] * 1e3,
            "Data set": _map_column(shown["dataset"], partial(value_label, "dataset")).mask(own != "", ""),
            "Model": _map_column(shown["model"], partial(value_label, "model")).mask(own != "", files),
            "Parameters": shown["parameters"].mask(shown["parameters"] == 0),
            "Batch": shown["batch_size"].mask(own != ""),
            "Name": shown["device_name"].astype(str),
            "Trust": shown["mark"].astype(str),
            "Outcome": _map_column(shown["outcome"], partial(value_label, "outcome")),
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
    # reading the rows takes a moment
    if st.button(
        f"Prepare {units.format_quantity(len(results.trials), 'row')} as files",
        icon=":material/download:",
        key="prepare",
    ):
        names = select_lines(contents, results.trials, ("trial_id",))["trial_id"].tolist()
        layout.draw_isolated(
            lambda: elements.draw_row_downloads(queries.find_rows(trial_ids=names), name="crossover-gallery")
        )


def _select_runs(runs: Sequence[str]) -> None:
    names = list(dict.fromkeys(runs[row] for row in session.read_selected_rows("gallery_rows")))
    if names:
        open_item("run", names[0])
        session.set_compared(names[1:2])
    else:
        close_item()


def _draw_machines(contents: GalleryData, chosen: Choices) -> None:
    known = list_gallery_machines(contents, chosen)
    number = f"{len(known):,} of {len(contents.options['in_machine']):,} machines{describe_filters(chosen)}"
    most = ", those with the most trials" if len(known) == MAX_MACHINE_LINES else ""
    st.caption(f"{number}{most}. {'Select one to see its studies.' if known else NONE_LEFT}")
    if not known:
        return
    elements.draw_table(
        known,
        key="gallery_machines",
        on_select=lambda: _filter_by_machines([line["Machine"] for line in known]),
        selection_mode="single-row",
        alt="Machines",
    )


def _filter_by_machines(names: Sequence[str]) -> None:
    if rows := session.read_selected_rows("gallery_machines"):
        session.set_values({"in_machine": [names[rows[0]]], "view": "Studies"})


def draw_open_button(study_id: str) -> None:
    """Draw the button that opens a study from its card."""
    icon, opening = ":material/open_in_full:", ("study", study_id)
    st.button("Open", key=f"open-{study_id}", on_click=open_item, args=opening, icon=icon)


def open_item(kind: Literal["study", "run"], name: str) -> None:
    """Open a study or a run, without items to compare it with."""
    session.show_view(kind, name)
    _clear_compared()


def close_item() -> None:
    """Show the list again."""
    session.clear_view()
    _clear_compared()


def draw_back_button() -> None:
    st.button("Back to the list", on_click=close_item, icon=":material/arrow_back:", key="close")


def _clear_compared() -> None:
    for parameter in (links.BESIDE, links.AGAINST):
        session.set_compared((), parameter)


def _choose_page(name: str, items: Sequence[int], each: int) -> list[int]:
    """Return the items of the chosen page; draw the control if there are several pages."""
    pages = math.ceil(len(items) / each)
    chosen = st.pagination(pages, **session.bind_control(name)) if pages > 1 else 1
    return list(items[(chosen - 1) * each : chosen * each])


def _map_column(column: "pd.Series[Any]", describe: Callable[[str], str]) -> "pd.Series[Any]":
    """Return the labels of a column; each distinct value is looked up once."""
    texts = column.astype(str)
    return texts.map({text: describe(text) for text in texts.unique()})


MAX_PREVIEW_LINES = 100
"""Maximum number of new rows in the preview; a file may have thousands."""

FACTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "Device": ("contender", display_name),
    "Name": ("device_name", str),
    "Data set": ("dataset", partial(value_label, "dataset")),
    "Model": ("model", partial(value_label, "model")),
    "Parameters": ("parameters", units.format_count),
    "Outcome": ("outcome", partial(value_label, "outcome")),
    "Machine": ("cpu_name", str),
    "Measured": ("started_at", format_date),
}
"""Title → column of a row, and the function that formats it."""


def draw_import() -> None:
    """Draw the import of a file, or the reason why this host allows none."""
    with st.expander("Add rows from another machine", icon=":material/upload_file:", **session.bind_view("add")):
        if reason := permits.may_import():
            st.text(as_lines(reason))
            return
        st.caption(
            "A parquet file written by this page or by the command line of another machine. The whole file is "
            "checked before it is shown. Its rows stay marked as imported and never replace rows measured here."
        )
        file = st.file_uploader("Parquet file", type="parquet", key="import_file")
        if file is not None:
            _offer_import(file.getvalue(), file.name)
        st.caption("The same on the command line, for larger files:")
        st.code("python -m core store import rows.parquet", language=None, wrap_lines=True)


@show_errors()
def _offer_import(data: bytes, name: str) -> None:
    proposal = queries.propose_import(data, name)
    if proposal.refused:
        st.error(plain(f"{proposal.refused[0].name} was not imported: {proposal.refused[0].reason}."))
        return
    new, known = proposal.new.num_rows, proposal.duplicates
    added = units.format_quantity(new, "row")
    there = (
        f", {units.format_quantity(known, 'row')} of the file {'is' if known == 1 else 'are'} here already"
        if known
        else ""
    )
    st.markdown(f"**{added} would be added**{there}." if new else "All rows of the file are already here.")
    if new:
        _draw_preview(proposal)
        st.button(f"Keep {added}", key="import_keep", type="primary", on_click=_keep_import, args=(proposal,))


def _draw_preview(proposal: Proposal) -> None:
    lines = proposal.new.slice(0, MAX_PREVIEW_LINES).select([column for column, _ in FACTS.values()]).to_pylist()
    shown = [{title: written(line[column]) for title, (column, written) in FACTS.items()} for line in lines]
    elements.draw_table(shown, alt="Rows that would be added")
    if proposal.new.num_rows > MAX_PREVIEW_LINES:
        st.caption(f"These are the first {MAX_PREVIEW_LINES}.")


def _keep_import(proposal: Proposal) -> None:
    if reason := permits.may_import():
        st.toast(plain(reason))
        return
    with show_errors(partial(st.toast, icon=":material/error:")):
        report = exchange.keep(proposal, queries.open_store())
        st.toast(f"{units.format_quantity(report.added, 'row')} added.", icon=":material/check:")
