"""Lessons: five short ones on why timings of a GPU mislead, each with a question first and something to run."""

from pages.lessons import lesson
from pages.lessons.content import LESSONS
from pages.shared.learning import frame


def page() -> None:
    """The choice of a lesson, its question and how to run it; beside it what it shows."""
    frame.page("Lessons", "lesson", lambda name, machine, places: lesson.draw(LESSONS[name], machine, places))


page()
