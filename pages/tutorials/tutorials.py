"""Tutorials: four that compare CPU and GPU, each to be expected, run and read beside what was published."""

from pages.shared import learning
from pages.tutorials import view


def draw_tutorials_page() -> None:
    """The choice of a tutorial, what it claims and what is expected of it; beside it what came of it here."""
    learning.draw_learning_page("Tutorials", "tutorial", view.draw_tutorial)


draw_tutorials_page()
