"""The one table of columns: what each must say of itself, and rows that survive becoming a table."""

import dataclasses
import itertools
import tracemalloc
from typing import get_args

import pyarrow as pa
import pytest

from core.question.lanes import DEVICE_KINDS
from core.results.parquet import from_table, object_bytes, to_table
from core.results.schema import OUTCOMES, SCHEMA, SCHEMA_VERSION, TRIAL_COLUMNS, VERSION_KEY, Outcome, Trial, dictionary
from tests.rows import trial

UNIT_OF_ENDING = {"_s": "s", "_bytes": "bytes", "_ns": "ns", "_mhz": "MHz"}


def test_the_schema_has_the_fields_of_a_row_in_their_order_and_its_version():
    assert [field.name for field in dataclasses.fields(Trial)] == SCHEMA.names
    assert SCHEMA.metadata == {VERSION_KEY: str(SCHEMA_VERSION).encode()}


def test_every_column_says_what_it_means():
    for entry in TRIAL_COLUMNS:
        assert len(entry.metadata["meaning"]) > 2, entry.name
        assert isinstance(entry.metadata["type"], pa.DataType), entry.name


def test_the_ending_of_a_name_and_its_unit_agree():
    for entry, (ending, unit) in itertools.product(TRIAL_COLUMNS, UNIT_OF_ENDING.items()):
        if entry.name.endswith(ending):
            assert entry.metadata["unit"].startswith(unit), entry.name


def test_what_was_not_measured_is_an_empty_list_or_nothing_never_a_made_up_number():
    for entry in TRIAL_COLUMNS:
        if pa.types.is_list(entry.metadata["type"]):
            assert entry.default_factory() == (), entry.name
        elif pa.types.is_floating(entry.metadata["type"]) and entry.default is not dataclasses.MISSING:
            assert entry.default is None, entry.name


def test_the_outcomes_are_those_of_their_type_and_each_is_explained_in_the_dictionary():
    assert tuple(OUTCOMES) == get_args(Outcome)
    assert all(f"`{name}`: {meaning}" in dictionary() for name, meaning in OUTCOMES.items())


def test_every_device_kind_is_explained_in_the_dictionary():
    line = next(line for line in dictionary().splitlines() if line.startswith("| `device_kind` |"))
    assert all(f"`{kind}`" in line for kind in DEVICE_KINDS)


def test_the_dictionary_has_a_line_of_four_cells_for_each_column():
    lines = dictionary().splitlines()
    assert len(lines) == 2 + len(TRIAL_COLUMNS)
    assert all(line.count("|") == 5 for line in lines)


def test_rows_come_back_from_a_table_as_they_were():
    rows = [trial(), trial(contender="cuda:0", pairs=0, startup_build_s=None, predictions=b"", message="ü ≠ u")]
    assert from_table(to_table(rows)) == rows


def test_no_rows_are_an_empty_table_of_the_schema():
    assert to_table([]).schema.equals(SCHEMA, check_metadata=True)
    assert from_table(to_table([])) == []


def test_lists_come_back_as_tuples_so_that_a_row_can_be_hashed():
    (row,) = from_table(to_table([trial()]))
    assert hash(row) == hash(trial())


def test_a_row_of_the_wrong_type_does_not_become_a_table():
    with pytest.raises(pa.ArrowException):
        to_table([trial(steps="many")])


def test_the_time_of_a_block_is_the_difference_of_its_clock_readings_in_seconds():
    row = trial(pairs=0, block_begin_ns=(1_000, 10), block_end_ns=(1_500_001_000, 10), block_steps=(5, 2))
    assert row.block_s == (1.5, 0.0)
    assert row.step_s == (0.3, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "count"), [(0, 600), (20, 600), (2_000, 60)])
def test_what_rows_take_as_objects_is_known_before_they_are_made(pairs, count):
    rows = to_table([trial(pairs=pairs)] * count)
    tracemalloc.start()
    try:
        made = from_table(rows)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(made) == count
    assert kept < 1.2 * object_bytes(rows)
    assert most < 2 * object_bytes(rows)
