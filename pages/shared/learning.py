"""Tutorials and lessons: their questions, answers, predictions, sections and reports."""

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.answer.export import handout
from core.answer.export.handout import Handout, HandoutReply
from core.answer.lessons import outcomes
from core.answer.lessons.outcomes import PredictionOutcome, Section, SectionTable
from core.errors import StoreError
from core.jobs.job import Job
from core.jobs.machine import Machine
from core.progress import Progress
from core.question.demonstrations import Demonstration
from core.question.experiment import Experiment, Point, display_name
from core.question.fields import TRAINING
from core.question.lanes import PLAIN
from core.question.policy import AnyQuestion
from core.question.sweep import Sweep
from core.results import exhibits
from core.results.exhibits import Exhibit
from core.results.schema import Trial
from core.text import as_lines
from pages.shared import controls as form
from pages.shared import elements, job_view, layout, links, permits, queries, session
from pages.shared.cache import cache_answers
from pages.shared.elements import bind_percent, format_date, plain, show_errors
from pages.shared.layout import Sides

Task = tuple[AnyQuestion, ...]
"""Several questions, in the order in which they are measured."""

Pair = tuple[str, str]
"""Two contenders, the baseline first."""

Judge = Callable[[Sequence[Trial], Sequence[Exhibit], Pair], PredictionOutcome | None]
"""Compares rows, exhibits and, in the rows, a pair of contenders with the answers to a question."""


@dataclass(frozen=True, kw_only=True)
class TaskAnswers:
    """Results of this machine for a task, by question id; `missing` lists the questions without a full answer."""

    rows: dict[str, tuple[Trial, ...]]
    exhibits: dict[str, Exhibit]
    missing: tuple[AnyQuestion, ...]

    @property
    def trials(self) -> tuple[Trial, ...]:
        return tuple(row for rows in self.rows.values() for row in rows)


@dataclass(frozen=True, kw_only=True)
class TaskResults:
    """Results for a page: measured here, and recorded on another machine with an accelerator."""

    rows: tuple[Trial, ...] = ()
    shown: tuple[Exhibit, ...] = ()
    recorded_rows: tuple[Trial, ...] = ()
    recorded: tuple[Exhibit, ...] = ()

    @property
    def trials(self) -> tuple[Trial, ...]:
        return (*self.rows, *self.recorded_rows)

    @property
    def exhibits(self) -> tuple[Exhibit, ...]:
        return (*self.shown, *self.recorded)

    def find_outcome(self, judge: Judge, pair: Pair) -> PredictionOutcome | None:
        """Return the outcome of what this machine measured or, if that has none, of what another recorded.

        Args:
            judge: compares rows and exhibits, and in the rows a pair of contenders, with the answers to a question.
            pair: the contenders that are compared on this machine; of recorded rows the first and the last are.
        """
        outcome = outcomes.outcome_or_reason(lambda: judge(self.rows, self.shown, pair))
        if outcome:
            return outcome
        rows = self.recorded_rows
        pair = (rows[0].contender, rows[-1].contender) if rows else pair
        outcome = outcomes.outcome_or_reason(lambda: judge(rows, self.recorded, pair))
        return dataclasses.replace(outcome, is_recorded=True) if outcome else None

    @property
    def key(self) -> str:
        """A hash of these rows and exhibits: equal contents have the same key."""
        parts = [f"{row.trial_id} {row.outcome} {len(row.block_steps)}" for row in self.trials]
        return hashlib.sha256("\n".join([*parts, *(entry.id for entry in self.exhibits)]).encode()).hexdigest()[:16]


def collect_results(
    answers: TaskAnswers | None, points: Sequence[Point], machine: Machine | None, replays: Iterable[tuple[str, str]]
) -> TaskResults:
    """Return the results for a task; on a machine without an accelerator, also those recorded on another machine.

    Args:
        answers: the answers of this machine.
        points: the trainings of the task.
        machine: this machine.
        replays: kinds and recipes of exhibits that may be replayed (see `find_recorded_exhibit`).
    """
    here = TaskResults(rows=answers.trials, shown=tuple(answers.exhibits.values())) if answers else TaskResults()
    if machine and len(machine.devices) > 1:
        return here
    recorded = (find_recorded_exhibit(kind, machine, recipe) for kind, recipe in replays)
    return dataclasses.replace(
        here, recorded_rows=find_recorded_trials(points, machine), recorded=tuple(filter(None, recorded))
    )


def find_answers(task: Task, machine: Machine) -> TaskAnswers:
    experiments = [asked for asked in task if isinstance(asked, Experiment)]
    rows = {name: tuple(found) for name, found in queries.find_newest_answers(experiments, machine).items()}
    found: dict[str, Exhibit] = {}
    complete = set(queries.find_known_answers(experiments, machine))
    for asked in task:
        if isinstance(asked, Sweep):
            answer, whole = queries.find_sweep_answers(asked, machine)
            rows |= {asked.id: answer} if answer else {}
            complete |= {asked.id} if whole else set()
        elif isinstance(asked, Demonstration):
            shown = _find_newest_exhibit(asked, machine)
            found |= {asked.id: shown} if shown else {}
            complete |= {asked.id} if shown else set()
    return TaskAnswers(rows=rows, exhibits=found, missing=tuple(asked for asked in task if asked.id not in complete))


def find_recorded_exhibit(kind: str, machine: Machine | None, recipe: str = "") -> Exhibit | None:
    """Return the newest exhibit of a kind with an accelerator, recorded on another machine.

    If a recipe is named, the exhibit shows it.
    """
    here = machine.environment.machine_id if machine else ""
    found = [
        shown
        for shown in queries.list_exhibits()
        if shown.kind == kind
        and shown.machine_id != here
        and any(entry.kind != "cpu" for entry in shown.participants)
        and (not recipe or recipe in shown.demonstration.recipes)
    ]
    return max(found, key=lambda shown: shown.measured_at, default=None)


def find_recorded_trials(points: Sequence[Point], machine: Machine | None) -> tuple[Trial, ...]:
    """Return rows of these trainings from the machine with an accelerator that has most of them.

    The newest run of each training counts. Rows of this machine and of execution variants are left out.
    """
    if not points:
        return ()
    import pandas as pd  # here only: the import takes a third of a second

    wanted = pd.DataFrame([dataclasses.asdict(point) for point in points], columns=list(TRAINING))
    frame = queries.read_overview().frame
    elsewhere = frame["machine_id"] != (machine.environment.machine_id if machine else "")
    is_plain = pd.concat([frame[name] == value for name, value in PLAIN.columns.items()], axis=1).all(axis=1)
    columns = [*TRAINING, "machine_id", "run_id", "trial_id", "device_kind", "started_at"]
    timed = frame.loc[elsewhere & is_plain & (frame["pairs"] > 0), columns]
    found = timed.merge(wanted.assign(number=range(len(points))), on=list(TRAINING))
    runs = found.groupby("run_id")["device_kind"]
    found = found[(runs.transform("size") > 1) & runs.transform(lambda kinds: (kinds != "cpu").any())]
    newest = found.sort_values(["started_at", "run_id"]).drop_duplicates(["machine_id", "number"], keep="last")
    if newest.empty:
        return ()
    machine_id = newest.groupby("machine_id", observed=True).size().idxmax()
    best = newest[newest["machine_id"] == machine_id]
    number = dict(zip(best["run_id"], best["number"], strict=True))
    try:
        trial_ids = list(found.loc[found["run_id"].isin(list(number)), "trial_id"])
        rows = [row for row in queries.find_rows(trial_ids=trial_ids) if row.block_steps]
    except StoreError as error:
        st.caption(plain(f"The recordings of {machine_id} are not shown: {error}"))
        return ()
    return tuple(sorted(rows, key=lambda row: (number[row.run_id], row.device_kind != "cpu", row.trial_id)))


def list_task_jobs(task: Task) -> list[Job]:
    """Return the newest job of each question that has one, in the order of the task."""
    store = queries.open_store().folder.absolute()
    newest: dict[str, Job] = {}
    for job in queries.open_queue().jobs():
        if job.store == store:
            newest[_make_question_key(job.question)] = job
    return [newest[_make_question_key(asked)] for asked in task if _make_question_key(asked) in newest]


def submit_task(task: Task, questions: Sequence[AnyQuestion], *, fresh: bool) -> None:
    """Queue the wanted questions of a task, and rerun the page."""
    with show_errors():
        for asked in task:
            if asked in questions:
                permits.submit(asked, queries.open_store(), fresh=fresh)
        queries.start_measuring_process()
        st.rerun()


def draw_task_button(task: Task, answers: TaskAnswers, answer: DeltaGenerator | None = None) -> bool:
    """Draw the button that submits a task, or measures it again; during a measurement draw its progress.

    The progress appears at the place of the `answer`, if given.

    Returns:
        Whether a measurement runs or waits.
    """
    active = [job for job in list_task_jobs(task) if job.active]
    if active:
        with answer or contextlib.nullcontext():
            st.fragment(_draw_task_panel, run_every=job_view.REFRESH_S)(task, len(active))
        return True
    _draw_task_faults(task, answers)
    again = bool(answers.rows or answers.exhibits)
    words = "Run again" if not answers.missing else "Run the rest" if again else "Run"
    icon = ":material/replay:" if not answers.missing else ":material/play_arrow:"
    kind: Any = "secondary" if not answers.missing else "primary"
    wanted = answers.missing or task
    reason = permits.refusal(*wanted)
    if reason:
        st.caption(plain(reason))
    if st.button(words, key="learn_run", type=kind, icon=icon, disabled=bool(reason)):
        submit_task(task, wanted, fresh=not answers.missing)
    return False


def draw_waiting_button() -> None:
    """Draw the button while the devices are unknown; nothing if this host allows no measurement."""
    if not queries.explain_no_runs():
        st.button("Run", key="learn_waits", type="primary", icon=":material/play_arrow:", disabled=True)


def _draw_task_faults(task: Task, answers: TaskAnswers) -> None:
    """Show why parts have no answer; for jobs that were stopped together, show only those that had begun, if any."""
    missing = {_make_question_key(asked) for asked in answers.missing}
    ended = [
        job
        for job in list_task_jobs(task)
        if not job.active and job.message and _make_question_key(job.question) in missing
    ]
    for message in dict.fromkeys(job.message for job in [job for job in ended if job.began] or ended):
        st.warning(plain(message))


def _draw_task_panel(task: Task, active_before: int) -> None:
    mine = list_task_jobs(task)
    active = [job for job in mine if job.active]
    if len(active) != active_before:
        st.rerun()
    if job_view.watch_job(active[0].id) is None:
        return
    job_view.draw_stop_button(active)
    now = next((job for job in active if job.state == "running"), None)
    done = len(task) - len(active)
    if now is None:
        job_view.draw_queue_place(active[0])
    else:
        draw_progress_bar(now.progress, f"Part {done + 1} of {len(task)} · " if len(task) > 1 else "")


def draw_progress_bar(progress: Progress | None, part: str = "") -> None:
    """Draw the progress of a measurement, after the name of its part, if any."""
    said = _name_phase(progress)
    st.progress(progress.share if progress else 0.0, text=f"{part}{said[:1].upper()}{said[1:]}")


def _name_phase(progress: Progress | None) -> str:
    if progress is None:
        return "the measuring process is starting"
    sweep = progress.sweep
    if sweep is None:
        return plain(progress.phase)
    now = f", now {plain(sweep.size_label)}" if sweep.size_label else ""
    return f"{sweep.done} of {sweep.total} points done{now}, {plain(progress.phase)}"


def _make_question_key(request: AnyQuestion) -> str:
    return f"{type(request).__name__} {request.id}"


def _find_newest_exhibit(request: Demonstration, machine: Machine) -> Exhibit | None:
    facts = machine.environment
    found = exhibits.find_newest_exhibit(
        queries.list_exhibits(), request, machine_id=facts.machine_id, torch_version=facts.torch_version
    )
    names = machine.device_names
    if found and any(names.get(entry.device, entry.device_name) != entry.device_name for entry in found.participants):
        return None  # the GPU was replaced
    return found


MAX_NAMED_EXHIBITS = 3
"""Maximum number of files that are named individually."""

MOST_WIDE = 240
"""Maximum width in pixels of the first column of a table, which names the lines and is not cut up to this width."""

MOST_LETTERS = 2_000
"""Maximum number of characters of a student's answer."""

REPORTS = {"html": ("Report as HTML", "text/html"), "md": ("Report as Markdown", "text/markdown")}
"""Label and media type by file extension."""

WITHOUT_ACCELERATOR = (
    "No accelerator was found on this machine, so one CPU thread is compared with all of them. With a GPU, the CPU "
    "would be compared with it."
)


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """The question before the result of the tutorial or lesson `name`, and the question `after` it."""

    name: str
    text: str
    options: tuple[str, ...]
    after: str


def draw_learning_page(title: str, parameter: str, draw: Callable[[str, Machine | None, Sides], None]) -> None:
    """Draw the choice of a tutorial or a lesson, the chosen one, and notes on unreadable files."""
    places, titles = layout.sides(title, folds=False), links.CHOICES[parameter]
    names = list(titles)
    with places.settings:
        bound = session.bind_choice(parameter, names, names[0], titles.__getitem__)
        chosen = st.pills(parameter.capitalize(), names, required=True, **bound)
    draw(chosen or names[0], job_view.find_machine(), places)
    with places.answer:
        _warn_unread_exhibits()


def ask_expectation(question: Expectation) -> bool:
    """Draw the question and the prediction; return whether it was answered or skipped."""
    key = links.PREDICTION.format(name=question.name)
    kept = session.read_expectations().get(question.name)
    if kept in question.options:
        session.restore_value(key, kept)
    st.markdown("### 1 · Predict")
    chosen = st.radio(question.text, question.options, index=None, **session.bind_control(key))
    if chosen is not None:
        session.read_expectations()[question.name] = chosen
    return chosen is not None or session.has_skipped_expectation(question.name)


def can_see_outcome(
    question: Expectation,
    *,
    has_expectation: bool,
    ran: bool,
    running: bool,
    show: Callable[[], None] = lambda: None,
) -> bool:
    """Return whether the outcome may be shown: after a prediction and a run, or after Skip.

    Until then `show` draws the subject of the question, with its answer covered.
    """
    if session.has_skipped_expectation(question.name) or (has_expectation and ran):
        return True
    st.markdown("## 3 · See")
    if running:
        first = "It is being measured" if has_expectation else "Predict while it is measured"
    else:
        first = "Run it first" if has_expectation else "Predict" if ran else "Predict, then run it"
    st.markdown(f"{first}. This pane then shows whether you were right, and why.")
    st.button("Skip", on_click=session.skip_expectation, args=(question.name,), key="skip")
    layout.draw_isolated(show)
    return False


def choose_learning_devices(machine: Machine | None) -> list[str]:
    """Draw the control of the devices, the baseline first; return none while the machine is unknown."""
    chosen = form.choose_devices(machine)
    if machine and len(machine.devices) == 1:
        st.caption(WITHOUT_ACCELERATOR)
    return chosen


@cache_answers(128)
def build_sections(key: tuple[str, ...], _build: Callable[[], Sequence[Section]]) -> tuple[Section, ...]:
    """Return the sections of `_build`, cached under a key that changes with all of its inputs."""
    return tuple(_build())


def mark_recorded(sections: Iterable[Section]) -> list[Section]:
    """Return sections that were recorded on another machine, with headings that name this."""
    return [dataclasses.replace(section, title=f"Recorded: {section.title}") for section in sections]


def draw_sections(
    sections: Sequence[Section],
    question: Expectation,
    outcome: PredictionOutcome | None,
    *,
    why: str,
    note: str = "",
    show: Callable[[], None] = lambda: None,
) -> None:
    """Draw prediction, measurement and reason, in this order; below them every result.

    Args:
        sections: every result.
        question: question with the prediction of the visitor.
        outcome: the measurement, compared with the answers.
        why: the reason.
        note: the part that this machine cannot show.
        show: function that draws the subject of the question, uncovered.
    """
    st.markdown("## 3 · See")
    if said := _compare_expectation(question, outcome, is_short=True):
        right = outcome is not None and outcome.is_right(
            question.options.index(session.read_expectations()[question.name])
        )
        shown, icon = (st.success, ":material/check:") if right else (st.info, ":material/psychology:")
        shown(bind_percent(plain(said)), icon=icon)
    if outcome:
        source = "Recorded" if outcome.is_recorded else "Measured"
        st.markdown(f"**{source}.** {bind_percent(plain(outcome.fact))}")
    st.markdown(f"**Why.** {bind_percent(plain(why))}")
    if note:
        st.caption(plain(note))
    layout.draw_isolated(show)
    for section in sections:
        draw_section(section)


def draw_section(section: Section) -> None:
    """Draw a section: sentences, charts, tables, code and notes."""
    st.header(plain(section.title))
    for sentence in section.sentences:
        st.markdown(bind_percent(plain(sentence)))
    for figure in section.figures:
        st.markdown(f"**{plain(figure.title)}**")
        elements.draw_chart(figure.spec, alt=figure.title)
    for table in section.tables:
        _draw_section_table(table)
    for listing in section.listings:
        st.markdown(f"**{plain(listing.title)}**")
        code, output = st.columns(2, gap="small")
        code.code(as_lines(listing.code), language="python", wrap_lines=True)
        output.code(as_lines(listing.output), language=None, wrap_lines=True)
    for note in section.notes:
        st.caption(plain(note))


def _draw_section_table(table: SectionTable) -> None:
    st.markdown(f"**{plain(table.title)}**")
    if table.prose:
        lines = [f"- **{plain(row[0])}**: {plain(row[1])}" if row[1:] else f"- {plain(row[0])}" for row in table.rows]
        st.markdown("\n".join(lines))
        return
    cells = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    first = st.column_config.TextColumn(
        width=min(MOST_WIDE, elements.measure_column([table.header[0], *(row[0] for row in table.rows)]))
    )
    elements.draw_table(cells, height="content", alt=table.title, column_config={table.header[0]: first})


def _compare_expectation(question: Expectation, outcome: PredictionOutcome | None, *, is_short: bool = False) -> str:
    """Return the prediction and whether it was right, without the measurement if `is_short`; empty without one."""
    said = session.read_expectations().get(question.name)
    if said not in question.options:
        return ""
    if outcome is None:
        return f"You predicted: {said}. No result decides that yet."
    tell = outcome.verdict if is_short else outcome.sentence
    return tell(question.options, question.options.index(said))


def draw_report(
    title: str,
    question: Expectation,
    sections: Sequence[Section],
    results: TaskResults,
    outcome: PredictionOutcome | None,
) -> None:
    """Draw the input fields of a student and the report with the contents of the page and their basis."""
    st.header("4 · Hand in")
    exhibits = tuple((f"Shown: {entry.kind}", describe_origin(entry)) for entry in results.exhibits)
    _draw_report_form(
        title,
        question,
        sections,
        (*handout.handout_environment(results.trials), *exhibits),
        _compare_expectation(question, outcome),
    )


@st.fragment
def _draw_report_form(
    title: str,
    question: Expectation,
    sections: Sequence[Section],
    machine: tuple[tuple[str, str], ...],
    closed: str,
) -> None:
    """Draw a form, so that the report contains the last input, and the buttons to download the files."""
    basis = (closed, *sections)
    with st.form(f"hand_in_{question.name}", border=False):
        answer = st.text_area(question.after, key=f"answer_{question.name}", max_chars=MOST_LETTERS)
        student = st.text_input("Your name, for the report", key="student", max_chars=100)
        st.caption("Your name and answer appear in the report only. They are not in the link.")
        wanted = st.form_submit_button("Create the report", icon=":material/description:")
    if wanted:
        paper = Handout(
            title=title,
            student=student or "",
            date=f"{datetime.now(UTC):%d %B %Y}",
            link=session.make_address(session.read_link()),
            predictions=(HandoutReply(question=question.text, text=closed),),
            sections=tuple(sections),
            answers=(HandoutReply(question=question.after, text=answer or ""),),
            machine=machine,
        )
        files = {"html": handout.handout_html(paper), "md": handout.handout_markdown(paper)}
        session.read_reports()[question.name] = (basis, files)
    made_of, kept = session.read_reports().get(question.name, (None, {}))
    with st.container(horizontal=True):
        for ending, text in kept.items() if made_of == basis else ():
            label, media = REPORTS[ending]
            file, key = f"crossover-{question.name}.{ending}", f"report_{ending}"
            st.download_button(label, text, file, media, key=key, on_click="ignore", icon=":material/download:")


def describe_origin(exhibit: Exhibit) -> str:
    """Describe an exhibit: its devices, processor, torch version and date."""
    named = ", ".join(f"{display_name(entry.contender)}: {entry.device_name}" for entry in exhibit.participants)
    where = f"{exhibit.cpu_name}, machine {exhibit.machine_id}"
    return f"{named}; {where}, torch {exhibit.torch_version}, {format_date(exhibit.measured_at)}"


def _warn_unread_exhibits() -> None:
    """Show the names of the first unreadable exhibits, and how many more there are."""
    skipped = queries.list_unread_exhibits()
    for entry in skipped[:MAX_NAMED_EXHIBITS]:
        st.caption(plain(f"{entry.name} is not shown: {entry.reason}."))
    if len(skipped) > MAX_NAMED_EXHIBITS:
        st.caption(f"Neither are {len(skipped) - MAX_NAMED_EXHIBITS:,} other files in that folder.")


def describe_recording(exhibit: Exhibit | None, rows: Sequence[Trial] = ()) -> str:
    """Describe where a recording was made; empty if there is none."""
    where = describe_origin(exhibit) if exhibit else ""
    if rows:
        names, first = (
            ", ".join(dict.fromkeys(f"{display_name(row.contender)}: {row.device_name}" for row in rows)),
            rows[0],
        )
        where = f"{names}; {first.cpu_name}, torch {first.torch_version}, {format_date(first.started_at)}"
    return f"Recorded on another machine ({where}), not measured here." if where else ""
