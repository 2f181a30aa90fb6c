"""The frame of every tutorial and lesson: expect first, then see; and a report to hand in.

Draws the pieces of `core.answer.lesson.handout`, the same ones that go into the report. Whatever a row, an exhibit or a
student wrote is shown as plain text.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import streamlit as st

from core.answer.export import lesson_report
from core.answer.lesson import handout
from core.answer.lesson.expected import Outcome
from core.answer.lesson.handout import Handout, Reply, Section, Table
from core.jobs.machine import Machine
from core.question.experiment import titled
from core.results.exhibits.exhibit import Exhibit
from core.results.schema import Trial
from core.text import as_lines
from pages.shared.cache import cache_answers
from pages.shared.data import reads
from pages.shared.draw import charts, tables
from pages.shared.draw.text import bind_percent, format_date, plain
from pages.shared.form import devices as form
from pages.shared.frame import layout
from pages.shared.frame.layout import Sides
from pages.shared.job import asking
from pages.shared.learning.tasks import TaskResults
from pages.shared.link import choices, links, memory, state

MAX_NAMED_EXHIBITS = 3
"""Files that are named one by one."""

MOST_WIDE = 240
"""Pixels of the first column of a table, which names its lines and is shown whole up to there."""

MOST_LETTERS = 2_000
"""Letters of a student's answer."""

REPORTS = {"html": ("Report as HTML", "text/html"), "md": ("Report as Markdown", "text/markdown")}
"""Label and media type by the ending of the file."""

WITHOUT_ACCELERATOR = (
    "No accelerator is seen on this machine, so one thread of the processor takes part against all of them. "
    "With a GPU, the CPU would take part against that."
)


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What is asked before anything is shown, by the name of a tutorial or lesson, and `after` it at the end."""

    name: str
    text: str
    options: tuple[str, ...]
    after: str


def draw_learning_page(title: str, parameter: str, draw: Callable[[str, Machine | None, Sides], None]) -> None:
    """Draw the choice of a tutorial or a lesson, the one that is chosen, and what could not be read beside it."""
    places, titles = layout.sides(title, folds=False), links.CHOICES[parameter]
    names = list(titles)
    with places.settings:
        bound = choices.bind_choice(parameter, names, names[0], titles.__getitem__)
        chosen = st.pills(parameter.capitalize(), names, required=True, **bound)
    draw(chosen or names[0], asking.find_machine(), places)
    with places.answer:
        _warn_unread_exhibits()


def ask_expectation(question: Expectation) -> bool:
    """Draw the question with what was expected; whether it was answered or skipped."""
    key = links.PREDICTION.format(name=question.name)
    kept = memory.read_expectations().get(question.name)
    if kept in question.options:
        memory.restore_value(key, kept)
    st.markdown("### 1 · Predict")
    chosen = st.radio(question.text, question.options, index=None, **state.bind_control(key))
    if chosen is not None:
        memory.read_expectations()[question.name] = chosen
    return chosen is not None or memory.has_skipped_expectation(question.name)


def can_see_outcome(question: Expectation, *, has_expectation: bool, ran: bool, running: bool) -> bool:
    """Whether what comes of it is shown: once something was expected and run, or who looks at it has skipped that."""
    if memory.has_skipped_expectation(question.name) or (has_expectation and ran):
        return True
    st.markdown("## 3 · See")
    if running:
        first = "It is being measured" if has_expectation else "Say what you expect while it is measured"
    else:
        first = (
            "Run it first" if has_expectation else "Say what you expect" if ran else "Say what you expect, then run it"
        )
    st.markdown(f"{first}. Whether you were right, and why, will stand here.")
    st.button("Skip", on_click=memory.skip_expectation, args=(question.name,), key="skip")
    return False


def choose_learning_devices(machine: Machine | None) -> list[str]:
    """The control of the devices, the baseline first; none while the machine is not known."""
    chosen = form.choose_devices(machine)
    if machine and len(machine.devices) == 1:
        st.caption(WITHOUT_ACCELERATOR)
    return chosen


@cache_answers(128)
def build_sections(key: tuple[str, ...], _build: Callable[[], Sequence[Section]]) -> tuple[Section, ...]:
    """What `_build` makes, kept under a key that changes with everything it depends on."""
    return tuple(_build())


def mark_recorded(sections: Iterable[Section]) -> list[Section]:
    """Pieces that were recorded elsewhere, with headings that say so."""
    return [dataclasses.replace(section, title=f"Recorded: {section.title}") for section in sections]


def draw_sections(sections: Sequence[Section], question: Expectation, outcome: Outcome | None, note: str = "") -> None:
    """Draw what is shown, below what was expected and whether it was so, and a note on what is not to be seen here."""
    st.markdown("## 3 · See")
    if said := _shorten_comparison(_compare_expectation(question, outcome), outcome, sections):
        right = outcome is not None and outcome.right(question.options.index(memory.read_expectations()[question.name]))
        shown, icon = (st.success, ":material/check:") if right else (st.info, ":material/psychology:")
        shown(bind_percent(plain(said)), icon=icon)
    if note:
        st.caption(plain(note))
    for section in sections:
        _draw_section(section)


def _draw_section(section: Section) -> None:
    st.header(plain(section.title))
    for sentence in section.sentences:
        st.markdown(bind_percent(plain(sentence)))
    for figure in section.figures:
        st.markdown(f"**{plain(figure.title)}**")
        charts.draw_chart(figure.spec, alt=figure.title)
    for table in section.tables:
        _draw_section_table(table)
    for listing in section.listings:
        st.markdown(f"**{plain(listing.title)}**")
        code, output = st.columns(2, gap="small")
        code.code(as_lines(listing.code), language="python", wrap_lines=True)
        output.code(as_lines(listing.output), language=None, wrap_lines=True)
    for note in section.notes:
        st.caption(plain(note))


def _draw_section_table(table: Table) -> None:
    st.markdown(f"**{plain(table.title)}**")
    if table.prose:
        lines = [f"- **{plain(row[0])}**: {plain(row[1])}" if row[1:] else f"- {plain(row[0])}" for row in table.rows]
        st.markdown("\n".join(lines))
        return
    cells = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    first = st.column_config.TextColumn(
        width=min(MOST_WIDE, tables.measure_column([table.header[0], *(row[0] for row in table.rows)]))
    )
    tables.draw_table(cells, height="content", alt=table.title, column_config={table.header[0]: first})


def _compare_expectation(question: Expectation, outcome: Outcome | None) -> str:
    """What was expected and whether it was so; empty where nothing was."""
    said = memory.read_expectations().get(question.name)
    if said not in question.options:
        return ""
    return outcome.sentence(question.options, question.options.index(said)) if outcome else f"You expected: {said}."


def _shorten_comparison(closed: str, outcome: Outcome | None, sections: Sequence[Section]) -> str:
    """The same without what was measured, where a piece below says just that."""
    told = outcome and any(outcome.fact in sentence for section in sections for sentence in section.sentences)
    return closed.removesuffix(outcome.fact).rstrip() if outcome and told else closed


def draw_report(
    title: str, question: Expectation, sections: Sequence[Section], results: TaskResults, outcome: Outcome | None
) -> None:
    """Draw the fields of a student and the report: what the page shows, and what that rests on."""
    st.header("4 · Hand in")
    exhibits = tuple((f"Shown: {entry.kind}", describe_origin(entry)) for entry in results.exhibits)
    _draw_report_form(
        title,
        question,
        sections,
        (*handout.fingerprint(results.trials), *exhibits),
        _compare_expectation(question, outcome),
    )


@st.fragment
def _draw_report_form(
    title: str, question: Expectation, sections: Sequence[Section], machine: tuple[tuple[str, str], ...], closed: str
) -> None:
    """A form, so that what was typed last is in the report, and files that are there before they are asked for."""
    basis = (closed, *sections)
    with st.form(f"hand_in_{question.name}", border=False):
        answer = st.text_area(question.after, key=f"answer_{question.name}", max_chars=MOST_LETTERS)
        student = st.text_input("Your name, for the report", key="student", max_chars=100)
        st.caption("Name and answer go into the report and nowhere else; they are not in the link.")
        wanted = st.form_submit_button("Make the report", icon=":material/description:")
    if wanted:
        paper = Handout(
            title=title,
            student=student or "",
            date=f"{datetime.now(UTC):%d %B %Y}",
            link=state.make_address(state.read_link()),
            predictions=(Reply(question=question.text, text=closed),),
            sections=tuple(sections),
            answers=(Reply(question=question.after, text=answer or ""),),
            machine=machine,
        )
        files = {"html": lesson_report.html(paper), "md": lesson_report.markdown(paper)}
        memory.read_reports()[question.name] = (basis, files)
    made_of, kept = memory.read_reports().get(question.name, (None, {}))
    with st.container(horizontal=True):
        for ending, text in kept.items() if made_of == basis else ():
            label, media = REPORTS[ending]
            file, key = f"crossover-{question.name}.{ending}", f"report_{ending}"
            st.download_button(label, text, file, media, key=key, on_click="ignore", icon=":material/download:")


def describe_origin(exhibit: Exhibit) -> str:
    """Devices, processor, torch and date of an exhibit."""
    named = ", ".join(f"{titled(entry.contender)}: {entry.device_name}" for entry in exhibit.participants)
    where = f"{exhibit.cpu_name}, machine {exhibit.machine_id}"
    return f"{named}; {where}, torch {exhibit.torch_version}, {format_date(exhibit.measured_at)}"


def _warn_unread_exhibits() -> None:
    """Name the exhibits that cannot be read, the first few of them."""
    skipped = reads.list_unread_exhibits()
    for entry in skipped[:MAX_NAMED_EXHIBITS]:
        st.caption(plain(f"{entry.name} is not shown: {entry.reason}."))
    if len(skipped) > MAX_NAMED_EXHIBITS:
        st.caption(f"So are {len(skipped) - MAX_NAMED_EXHIBITS:,} other files in that folder.")


def describe_recording(exhibit: Exhibit | None, rows: Sequence[Trial] = ()) -> str:
    """That something was recorded elsewhere, and where; empty if there is nothing."""
    where = describe_origin(exhibit) if exhibit else ""
    if rows:
        names, first = ", ".join(dict.fromkeys(f"{titled(row.contender)}: {row.device_name}" for row in rows)), rows[0]
        where = f"{names}; {first.cpu_name}, torch {first.torch_version}, {format_date(first.started_at)}"
    return f"Recorded on another machine ({where}), not measured here." if where else ""
