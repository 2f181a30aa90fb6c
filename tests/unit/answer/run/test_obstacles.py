"""What is said where a speedup has no winner, word by word."""

from core.answer.run import speedup
from tests import rows


def test_nothing_stands_in_the_way_of_two_rows_that_were_timed():
    assert speedup.obstacle(*rows.run()) == ""


def test_an_interval_that_holds_one_is_named_as_that_of_the_speedup():
    found = speedup.speedup(*rows.run({"cpu": 1e-3, "cuda:0": 1e-3}, jitter=0.2))
    assert (found.verdict, found.reason) == (
        "too_close",
        "either could be faster, the interval of the speedup contains 1",
    )
    assert "contains 1. 95 % interval " in speedup.verdict_sentence(found)
