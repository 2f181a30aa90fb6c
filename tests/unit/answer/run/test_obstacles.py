"""What is said where a speedup has no winner, word by word."""

from core.answer import speedup
from core.answer.verdict import verdict_sentence
from tests import rows


def test_nothing_stands_in_the_way_of_two_rows_that_were_timed():
    assert speedup.verdict_obstacle(*rows.run()) == ""


def test_an_interval_that_holds_one_is_named_as_that_of_the_speedup():
    found = speedup.speedup(*rows.run({"cpu": 1e-3, "cuda:0": 1e-3}, jitter=0.2))
    assert (found.verdict, found.reason) == (
        "too_close",
        "either could be faster",
    )
    assert verdict_sentence(found).startswith("Inconclusive: either could be faster (0.")
