"""What scripts read must be JSON to every parser, and only the result may be on stdout."""

import json

import pytest

from core import commands


def test_numbers_that_json_does_not_have_become_null(capsys):
    commands.print_json({"a": float("nan"), "b": [float("inf"), 1.5, (2, float("-inf"))], "c": {"d": "x", "e": True}})
    document = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    assert document == {"a": None, "b": [None, 1.5, [2, None]], "c": {"d": "x", "e": True}}


def test_results_end_with_one_line_break_and_sentences_go_elsewhere(capsys):
    commands.print_result("result\n\n")
    commands.print_note("sentence")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("result\n", "sentence\n")
