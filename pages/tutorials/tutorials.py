"""Tutorials: four that compare CPU and GPU, each to be expected, run and read beside what was published."""

from pages.shared.learning import frame
from pages.tutorials import content


def page() -> None:
    """The choice of a tutorial, what it claims and what is expected of it; beside it what came of it here."""
    frame.page("Tutorials", "tutorial", content.draw)


page()
