"""What a lesson is, and how any of them is drawn: a question, something to run, and what it shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from core.answer.lesson import expected
from core.answer.lesson.expected import Outcome
from core.answer.lesson.handout import Section
from core.jobs.machine import Machine
from core.question.experiment import Contender, Experiment
from pages.shared.draw.text import plain, show_errors
from pages.shared.frame import apart
from pages.shared.frame.layout import Sides
from pages.shared.learning import frame, tasks
from pages.shared.learning.frame import Expectation
from pages.shared.learning.tasks import Task, TaskAnswers, TaskResults
from pages.shared.link import links


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a lesson is given: devices, the baseline first, and its own settings; its margin is a share of items."""

    contenders: tuple[Contender, ...]
    machine: Machine
    data: str = ""
    seeds: int = 0
    margin: float = 0.0

    @property
    def names(self) -> tuple[str, str]:
        return str(self.contenders[0]), str(self.contenders[-1])

    @property
    def alone(self) -> bool:
        return all(contender.on_host for contender in self.contenders)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One lesson.

    Attributes:
        without: what an accelerator would add, where there is none.
        build: makes what is shown, with the charts in it.
        settings: draws the settings that it has of its own, and what is trained; may raise CrossoverError.
        recorded: kinds of exhibits that may be replayed.
        outcome: what was measured beside the answers to the question; None where nothing says anything of it.
    """

    intro: str
    question: Expectation
    without: str
    task: Callable[[Choice], Task]
    build: Callable[[Choice, TaskResults], Sequence[Section]]
    takeaway: str
    outcome: Callable[[Choice, TaskResults], Outcome | None]
    settings: Callable[[Choice], Choice] = lambda choice: choice
    recorded: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return links.LESSON_TITLES[self.question.name]


def draw_lesson(lesson: Lesson, machine: Machine | None, places: Sides) -> None:
    """Draw a lesson: what it is about, what is expected, how to run it, and beside it what came of it."""
    with places.settings:
        st.markdown(f"## {plain(lesson.title)}")
        st.markdown(plain(lesson.intro))
        said = frame.ask_expectation(lesson.question)
        st.markdown("### 2 · Run")
        run = _draw_lesson_task(lesson, machine, places)
    known, running = run[2:] if run else (None, False)
    with places.answer:
        ran = bool(known and (known.rows or known.exhibits))
        if frame.can_see_outcome(lesson.question, has_expectation=said, ran=ran, running=running) and run:
            apart.draw(_draw_lesson_outcome, lesson, *run[:3])


def _draw_lesson_task(
    lesson: Lesson, machine: Machine | None, places: Sides
) -> tuple[Choice, Task, TaskAnswers, bool] | None:
    """What was chosen, what it asks for, what is known of that, and whether it is being measured."""
    chosen = frame.choose_learning_devices(machine)
    if machine is None:
        with places.ask:
            tasks.draw_waiting_button()
        return None
    if not chosen:
        st.warning("Choose a device.")
        return None
    with show_errors():
        choice = lesson.settings(Choice(contenders=tuple(map(Contender.parse, chosen)), machine=machine))
        task = lesson.task(choice)
        known = tasks.find_answers(task, machine)
        with places.ask:
            running = tasks.draw_task_button(task, known, places.answer)
        return choice, task, known, running
    return None


def _draw_lesson_outcome(lesson: Lesson, choice: Choice, task: Task, answers: TaskAnswers) -> None:
    points = [asked.point for asked in task if isinstance(asked, Experiment)]
    found = tasks.collect_results(answers, points, choice.machine, [(kind, "") for kind in lesson.recorded])
    if not found.trials and not found.exhibits:
        st.markdown("## 3 · See")
        st.markdown("Nothing was run yet. Press Run: what it shows will stand here.")
        return
    key = (lesson.question.name, *choice.names, choice.data, str(choice.margin), found.key)
    keep = Section(title="What to keep in mind", sentences=(lesson.takeaway,))
    built = frame.build_sections(key, lambda: [*lesson.build(choice, found), keep])
    outcome = expected.told(lambda: lesson.outcome(choice, found))
    frame.draw_sections(built, lesson.question, outcome, note=lesson.without if choice.alone else "")
    frame.draw_report(f"Lesson: {lesson.title}", lesson.question, built, found, outcome)
