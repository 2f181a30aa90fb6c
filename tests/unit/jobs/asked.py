"""What is asked of a queue, and by whom."""

from core.jobs import process
from core.question.experiment import Contender, Experiment, Point

ME = process.current_process()


def experiment(width: int = 128, **changes) -> Experiment:
    return Experiment(point=Point(hidden_size=width), contenders=(Contender(), Contender(threads=1)), **changes)
