"""Which columns must agree is said once; the names of studies that were made before follow from it."""

import dataclasses

import pytest

from core.answer import comparable
from core.errors import NotComparable
from core.results.schema import Trial
from tests.rows import run

COLUMNS = {entry.name for entry in dataclasses.fields(Trial)}
SETS = {name: columns for name, columns in vars(comparable).items() if name.isupper() and isinstance(columns, tuple)}


@pytest.mark.parametrize("columns", SETS.values(), ids=SETS)
def test_every_column_is_one_of_a_row_and_named_once(columns):
    assert set(columns) <= COLUMNS
    assert len(set(columns)) == len(columns)


def test_the_first_column_that_differs_is_named():
    base, other = run()
    changed = dataclasses.replace(other, batch_size=7, epochs=8)
    assert comparable.differing(base, changed, comparable.RUN) == ["batch_size", "epochs"]
    with pytest.raises(NotComparable, match="cannot be set against cpu: its batch_size is 7, not 64"):
        comparable.require_equal(base, changed, comparable.RUN)
    comparable.require_equal(base, other, comparable.RUN)


def test_along_an_axis_what_follows_from_it_may_differ():
    assert {"samples", "dataset_hash"}.isdisjoint(comparable.along(comparable.STUDY, "samples"))
    assert "dataset_hash" in comparable.along(comparable.STUDY, "hidden_size")
    assert {"hidden_size", "depth", "width"}.isdisjoint(comparable.along(comparable.STUDY, "parameters"))


def test_a_name_follows_from_all_that_agrees_and_from_nothing_else():
    assert comparable.name("hidden_size", (1, "a")) == comparable.name("hidden_size", (1, "a"))
    assert comparable.name("hidden_size", (1, "a")) != comparable.name("depth", (1, "a"))
    assert comparable.name("hidden_size", (1, "a")) == "db0a5faa36eb"
