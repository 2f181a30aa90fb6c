"""What a lesson is, and how any of them is drawn: a question, something to run, and what it shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from core.answer.lesson.handout import Section
from core.errors import CrossoverError
from core.jobs.machine import Machine
from core.question.experiment import Contender, Experiment
from core.results.exhibit import Exhibit
from core.results.schema import Trial
from pages.shared.draw.text import plain
from pages.shared.frame import apart
from pages.shared.learning import frame, tasks
from pages.shared.learning.frame import Expectation
from pages.shared.learning.tasks import Known, Task
from pages.shared.link import memory


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a lesson is given: the devices, the baseline first, and its own settings.

    `data` is of the lesson on the loader, `seeds` and `margin`, a share of the test items, of the one on learning.
    """

    contenders: tuple[Contender, ...]
    machine: Machine
    data: str = ""
    seeds: int = 0
    margin: float = 0.0

    @property
    def names(self) -> tuple[str, str]:
        """First and last contender as asked for."""
        return str(self.contenders[0]), str(self.contenders[-1])

    @property
    def alone(self) -> bool:
        """Whether no accelerator takes part."""
        return all(contender.on_host for contender in self.contenders)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a lesson has to show: measured here, and recorded on another machine with an accelerator."""

    rows: tuple[Trial, ...] = ()
    shown: tuple[Exhibit, ...] = ()
    recorded_rows: tuple[Trial, ...] = ()
    recorded: tuple[Exhibit, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One lesson.

    Attributes:
        without: what an accelerator would add, where there is none.
        build: makes what is shown, with the charts in it.
        settings: draws the settings that it has of its own, and what is trained; may raise CrossoverError.
        recorded: kinds of exhibits that may be replayed.
    """

    title: str
    intro: str
    question: Expectation
    without: str
    task: Callable[[Choice], Task]
    build: Callable[[Choice, Found], Sequence[Section]]
    takeaway: str
    settings: Callable[[Choice], Choice] = lambda choice: choice
    recorded: tuple[str, ...] = ()


def draw(lesson: Lesson, machine: Machine | None) -> None:
    """Draw a lesson: what it is about, what is expected, how to run it, and what came of it."""
    st.markdown(f"## {plain(lesson.title)}")
    st.markdown(plain(lesson.intro))
    ready = frame.expect(lesson.question)
    with st.container(border=True):
        st.markdown("**2 · Run**")
        run = _run(lesson, machine)
    if ready and run:
        apart.draw(_see, lesson, *run)


def _run(lesson: Lesson, machine: Machine | None) -> tuple[Choice, Task, Known] | None:
    chosen = frame.devices(machine)
    if machine is None:
        return None
    if not chosen:
        st.warning("Choose a device.")
        return None
    try:
        choice = lesson.settings(Choice(contenders=tuple(map(Contender.parse, chosen)), machine=machine))
        task = lesson.task(choice)
        known = tasks.known(task, machine)
    except CrossoverError as error:
        st.error(plain(str(error)))
        return None
    tasks.run_button(task, known)
    return choice, task, known


def _see(lesson: Lesson, choice: Choice, task: Task, known: Known) -> None:
    found = _found(lesson, choice, task, known)
    trials, shown = (*found.rows, *found.recorded_rows), (*found.shown, *found.recorded)
    if not trials and not shown:
        st.caption("Nothing was run yet. What it shows will be here.")
        return
    key = (lesson.question.name, *choice.names, choice.data, str(choice.margin), tasks.content_key(trials, shown))
    keep = Section(title="What to keep in mind", sentences=(lesson.takeaway,))
    built = frame.built(key, lambda: [*lesson.build(choice, found), keep])
    if choice.alone:
        st.info(plain(lesson.without), icon=":material/info:")
    frame.draw(built, memory.expected(lesson.question.name))
    frame.report(f"Lesson: {lesson.title}", lesson.question, built, trials, shown)


def _found(lesson: Lesson, choice: Choice, task: Task, known: Known) -> Found:
    alone = len(choice.machine.devices) == 1
    points = [asked.point for asked in task.asked if isinstance(asked, Experiment)]
    replays = [tasks.recorded_exhibit(kind, choice.machine) for kind in lesson.recorded] if alone else []
    return Found(
        rows=known.trials,
        shown=tuple(known.exhibits.values()),
        recorded_rows=tasks.recorded_rows(points, choice.machine) if alone else (),
        recorded=tuple(shown for shown in replays if shown),
    )
