"""What is said of one run, on a terminal and to scripts."""

import dataclasses

from core.answer.export import report
from tests import rows


def test_the_thread_counts_that_were_tried_are_said():
    run = rows.run()
    text, document = report.run_text(run), report.run_document(run, from_store=False)
    assert "; threads tried: 1, 2, 4\n" in text
    assert text.count("threads tried") == 1  # the accelerator tried none
    cpu, gpu = document["trials"]
    assert list(cpu["threads_tried"]) == [1, 2, 4]
    assert min(cpu["threads_tried"], key=cpu["threads_tried"].__getitem__) == cpu["threads"]
    assert gpu["threads_tried"] == {}


def test_numbers_of_64_bits_are_said():
    assert "parameters, batch" in report.run_text(rows.run())
    assert "parameters in float64, batch" in report.run_text(rows.run(dtype="float64"))


def test_what_became_of_a_contender_is_a_sentence_of_its_own():
    cpu, gpu = rows.run()
    cut = dataclasses.replace(cpu, outcome="budget_spent", message="The budget of 8 s ended.")
    assert "threads tried: 1, 2, 4. The budget of 8 s ended.\n" in report.run_text([cut, gpu])
