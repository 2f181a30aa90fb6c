"""Lessons: five short ones on why timings of a GPU mislead, each with a question first and something to run."""

from pages.lessons import view
from pages.lessons.view import LESSONS
from pages.shared import learning


def draw_lessons_page() -> None:
    """The choice of a lesson, its question and how to run it; beside it what it shows."""
    learning.draw_learning_page(
        "Lessons", "lesson", lambda name, machine, places: view.draw_lesson(LESSONS[name], machine, places)
    )


draw_lessons_page()
