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
from pages.shared.draw.text import date, plain, unbroken
from pages.shared.form import devices as form
from pages.shared.frame import layout
from pages.shared.frame.layout import Sides
from pages.shared.job import asking
from pages.shared.learning.tasks import Found
from pages.shared.link import choices, links, memory, state

MOST_NAMED = 3
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


def page(title: str, parameter: str, draw: Callable[[str, Machine | None, Sides], None]) -> None:
    """Draw the choice of a tutorial or a lesson, the one that is chosen, and what could not be read beside it."""
    places, titles = layout.sides(title, folds=False), links.CHOICES[parameter]
    names = list(titles)
    with places.settings:
        bound = choices.bound(parameter, names, names[0], titles.__getitem__)
        chosen = st.pills(parameter.capitalize(), names, required=True, **bound)
    draw(chosen or names[0], asking.machine(), places)
    with places.answer:
        _unread()


def expect(question: Expectation) -> bool:
    """Draw the question with what was expected; whether it was answered or skipped."""
    key = links.PREDICTION.format(name=question.name)
    kept = memory.expectations().get(question.name)
    if kept in question.options:
        memory.give_back(key, kept)
    st.markdown("### 1 · Predict")
    chosen = st.radio(question.text, question.options, index=None, **state.bound(key))
    if chosen is not None:
        memory.expectations()[question.name] = chosen
    return chosen is not None or memory.opened_unexpected(question.name)


def may_see(question: Expectation, *, said: bool, ran: bool, running: bool) -> bool:
    """Whether what comes of it is shown: once something was expected and run, or who looks at it has skipped that."""
    if memory.opened_unexpected(question.name) or (said and ran):
        return True
    st.markdown("## 3 · See")
    if running:
        first = "It is being measured" if said else "Say what you expect while it is measured"
    else:
        first = "Run it first" if said else "Say what you expect" if ran else "Say what you expect, then run it"
    st.markdown(f"{first}. Whether you were right, and why, will stand here.")
    st.button("Skip", on_click=memory.open_unexpected, args=(question.name,), key="skip")
    return False


def devices(machine: Machine | None) -> list[str]:
    """The control of the devices, the baseline first; none while the machine is not known."""
    chosen = form.choose(machine)
    if machine and len(machine.devices) == 1:
        st.caption(WITHOUT_ACCELERATOR)
    return chosen


@cache_answers(128)
def built(key: tuple[str, ...], _build: Callable[[], Sequence[Section]]) -> tuple[Section, ...]:
    """What `_build` makes, kept under a key that changes with everything it depends on."""
    return tuple(_build())


def marked(sections: Iterable[Section]) -> list[Section]:
    """Pieces that were recorded elsewhere, with headings that say so."""
    return [dataclasses.replace(section, title=f"Recorded: {section.title}") for section in sections]


def draw(sections: Sequence[Section], question: Expectation, outcome: Outcome | None, note: str = "") -> None:
    """Draw what is shown, below what was expected and whether it was so, and a note on what is not to be seen here."""
    st.markdown("## 3 · See")
    if said := _unsaid(_closed(question, outcome), outcome, sections):
        right = outcome is not None and outcome.right(question.options.index(memory.expectations()[question.name]))
        shown, icon = (st.success, ":material/check:") if right else (st.info, ":material/psychology:")
        shown(unbroken(plain(said)), icon=icon)
    if note:
        st.caption(plain(note))
    for section in sections:
        _section(section)


def _section(section: Section) -> None:
    st.header(plain(section.title))
    for sentence in section.sentences:
        st.markdown(unbroken(plain(sentence)))
    for figure in section.figures:
        st.markdown(f"**{plain(figure.title)}**")
        charts.chart(figure.spec, alt=figure.title)
    for table in section.tables:
        _table(table)
    for listing in section.listings:
        st.markdown(f"**{plain(listing.title)}**")
        code, output = st.columns(2, gap="small")
        code.code(as_lines(listing.code), language="python", wrap_lines=True)
        output.code(as_lines(listing.output), language=None, wrap_lines=True)
    for note in section.notes:
        st.caption(plain(note))


def _table(table: Table) -> None:
    st.markdown(f"**{plain(table.title)}**")
    if table.prose:
        lines = [f"- **{plain(row[0])}**: {plain(row[1])}" if row[1:] else f"- {plain(row[0])}" for row in table.rows]
        st.markdown("\n".join(lines))
        return
    cells = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    first = st.column_config.TextColumn(
        width=min(MOST_WIDE, tables.room([table.header[0], *(row[0] for row in table.rows)]))
    )
    tables.table(cells, height="content", alt=table.title, column_config={table.header[0]: first})


def _closed(question: Expectation, outcome: Outcome | None) -> str:
    """What was expected and whether it was so; empty where nothing was."""
    said = memory.expectations().get(question.name)
    if said not in question.options:
        return ""
    return outcome.sentence(question.options, question.options.index(said)) if outcome else f"You expected: {said}."


def _unsaid(closed: str, outcome: Outcome | None, sections: Sequence[Section]) -> str:
    """The same without what was measured, where a piece below says just that."""
    told = outcome and any(outcome.fact in sentence for section in sections for sentence in section.sentences)
    return closed.removesuffix(outcome.fact).rstrip() if outcome and told else closed


def report(
    title: str, question: Expectation, sections: Sequence[Section], found: Found, outcome: Outcome | None
) -> None:
    """Draw the fields of a student and the report: what the page shows, and what that rests on."""
    st.header("4 · Hand in")
    exhibits = tuple((f"Shown: {entry.kind}", whence(entry)) for entry in found.exhibits)
    _hand_in(title, question, sections, (*handout.fingerprint(found.trials), *exhibits), _closed(question, outcome))


@st.fragment
def _hand_in(
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
            link=state.address(state.in_link()),
            predictions=(Reply(question=question.text, text=closed),),
            sections=tuple(sections),
            answers=(Reply(question=question.after, text=answer or ""),),
            machine=machine,
        )
        files = {"html": lesson_report.html(paper), "md": lesson_report.markdown(paper)}
        memory.reports()[question.name] = (basis, files)
    made_of, kept = memory.reports().get(question.name, (None, {}))
    with st.container(horizontal=True):
        for ending, text in kept.items() if made_of == basis else ():
            label, media = REPORTS[ending]
            file, key = f"crossover-{question.name}.{ending}", f"report_{ending}"
            st.download_button(label, text, file, media, key=key, on_click="ignore", icon=":material/download:")


def whence(shown: Exhibit) -> str:
    """Devices, processor, torch and date of an exhibit."""
    named = ", ".join(f"{titled(entry.contender)}: {entry.device_name}" for entry in shown.participants)
    where = f"{shown.cpu_name}, machine {shown.machine_id}"
    return f"{named}; {where}, torch {shown.torch_version}, {date(shown.measured_at)}"


def _unread() -> None:
    """Name the exhibits that cannot be read, the first few of them."""
    skipped = reads.unread_exhibits()
    for entry in skipped[:MOST_NAMED]:
        st.caption(plain(f"{entry.name} is not shown: {entry.reason}."))
    if len(skipped) > MOST_NAMED:
        st.caption(f"So are {len(skipped) - MOST_NAMED:,} other files in that folder.")


def recorded_note(shown: Exhibit | None, rows: Sequence[Trial] = ()) -> str:
    """That something was recorded elsewhere, and where; empty if there is nothing."""
    where = whence(shown) if shown else ""
    if rows:
        names, first = ", ".join(dict.fromkeys(f"{titled(row.contender)}: {row.device_name}" for row in rows)), rows[0]
        where = f"{names}; {first.cpu_name}, torch {first.torch_version}, {date(first.started_at)}"
    return f"Recorded on another machine ({where}), not measured here." if where else ""
