"""Lessons: five short ones on why timings of a GPU mislead, each with a question first and something to run."""

from pages.lessons import lesson
from pages.lessons.content import LESSONS
from pages.shared.learning import frame


def draw_lessons_page() -> None:
    """The choice of a lesson, its question and how to run it; beside it what it shows."""
    frame.draw_learning_page(
        "Lessons", "lesson", lambda name, machine, places: lesson.draw_lesson(LESSONS[name], machine, places)
    )


draw_lessons_page()
