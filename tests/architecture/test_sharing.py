"""Which worker gets which tests, and in which order."""

import itertools

from tests import sharing
from tests.sharing import Sharing

FILES = [
    "tests/browser/test_links.py",
    "tests/browser/test_looks.py",
    *(f"tests/integration/test_{number}.py" for number in range(4)),
    *(f"tests/unit/answer/test_{number}.py" for number in range(20)),
]


def test_what_waits_has_its_turn_among_what_computes_and_not_at_the_end():
    turns = sharing.turns(FILES)
    ordered = sorted(FILES, key=turns.__getitem__)
    assert ordered[:2] == FILES[:2]
    waiting = [place for place, file in enumerate(ordered) if "integration" in file]
    assert [ordered[place] for place in waiting] == FILES[2:6]
    assert all(later - first > 3 for first, later in itertools.pairwise(waiting))
    assert waiting[-1] < 20
    assert [file for file in ordered if "unit" in file] == FILES[6:]


def test_a_file_is_one_worker_s_and_so_are_all_of_the_browser():
    shared = Sharing.__new__(Sharing)  # which would ask who the workers are
    scopes = [shared._split_scope(f"{file}::test_it[a::b]") for file in FILES]
    assert scopes == ["tests/browser/"] * 2 + FILES[2:]
