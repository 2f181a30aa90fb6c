"""Tutorials: four that compare CPU and GPU, each to be expected, run and read beside what was published."""

from pages.shared.learning import frame
from pages.tutorials import content


def draw_tutorials_page() -> None:
    """The choice of a tutorial, what it claims and what is expected of it; beside it what came of it here."""
    frame.draw_learning_page("Tutorials", "tutorial", content.draw_tutorial)


draw_tutorials_page()
