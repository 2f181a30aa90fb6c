"""The mutants of a module, and that the modules and tests that the mutation run names are there."""

import pytest

from core.files.project import PROJECT
from tests.mutation.__main__ import TESTS
from tests.mutation.mutants import mutants

SOURCE = '''"""Text."""
LEAST: int = 5
def middle(values: list, *, word="mean") -> float:
    """Text."""
    assert len(values) < 9
    if len(values) <= LEAST:
        log("short")
    return min(zip(values, strict=True))
'''


def test_each_place_that_does_something_is_changed_and_no_text_type_or_assertion():
    assert [(mutant.line, mutant.change) for mutant in mutants(SOURCE)] == [
        (2, "5 → 6"),
        (3, "'mean' → 'mean_'"),
        (6, "if len(values) <= LEAST: → if not len(values) <= LEAST:"),
        (6, "len(values) <= LEAST → len(values) < LEAST"),
        (6, "len(values) <= LEAST → len(values) > LEAST"),
        (7, "log('short') → pass"),
        (7, "'short' → 'short_'"),
        (8, "return min(zip(values, strict=True)) → return None"),
        (8, "min(zip(values, strict=True)) → max(zip(values, strict=True))"),
    ]


def test_a_mutant_changes_its_place_and_nothing_else():
    for mutant in mutants(SOURCE):
        before, after = (text.splitlines() for text in (mutants(SOURCE)[0].applied(SOURCE), mutant.applied(SOURCE)))
        assert len(before) == len(after)
        assert 1 <= sum(a != b for a, b in zip(before, after, strict=True)) + (mutant.line == 2) <= 2


@pytest.mark.parametrize("module", TESTS)
def test_what_is_mutated_and_what_should_notice_it_are_there(module):
    assert all((PROJECT / path).exists() for path in (module, *TESTS[module]))
