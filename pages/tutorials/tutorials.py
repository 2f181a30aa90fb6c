"""Tutorials: four comparisons of CPU and GPU, each to predict, run and compare with the published figures."""

from pages.shared import learning
from pages.tutorials import view


def draw_tutorials_page() -> None:
    """Draw the choice of a tutorial, its claim and the prediction, next to the result on this machine."""
    learning.draw_learning_page("Tutorials", "tutorial", view.draw_tutorial)


draw_tutorials_page()
