"""Lessons: five short lessons on why GPU timings mislead, each with a question and a measurement to run."""

from pages.lessons import view
from pages.lessons.view import LESSONS
from pages.shared import learning


def draw_lessons_page() -> None:
    """Draw the choice of a lesson, its question and settings on the left, its results on the right."""
    learning.draw_learning_page(
        "Lessons", "lesson", lambda name, machine, places: view.draw_lesson(LESSONS[name], machine, places)
    )


draw_lessons_page()
