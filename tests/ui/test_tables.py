"""A table on a page: its texts are cleaned, whatever it is made of, and what has nothing to clean is not made anew."""

import pandas as pd
import pyarrow as pa
import pytest

from pages.shared import elements

LINES = [{"=Name": "=1+1", "Size": 3, "Noise": None}, {"=Name": "x;@y", "Size": 4, "Noise": 0.5}]
CLEAN = [{"'=Name": "'=1+1", "Size": 3, "Noise": None}, {"'=Name": "x;'@y", "Size": 4, "Noise": 0.5}]


class Place:
    """Keeps what is drawn in it."""

    def dataframe(self, data, **options):
        self.data, self.options = data, options


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        (LINES, list),
        (pa.Table.from_pylist(LINES), pa.Table.to_pylist),
        ({name: [line[name] for line in LINES] for name in LINES[0]}, lambda data: pa.table(data).to_pylist()),
        (
            {name: pd.Series([line[name] for line in LINES], dtype=object) for name in LINES[0]},
            lambda data: pa.table(data).to_pylist(),
        ),
    ],
    ids=["lines", "arrow", "columns", "series"],
)
def test_every_text_is_cleaned_and_every_number_stays(rows, lines):
    place = Place()
    elements.draw_table(rows, alt="What\nit\x1b shows", place=place, column_config={"=Name": 1})
    assert lines(place.data) == CLEAN
    assert place.options == {"hide_index": True, "alt": "What it\ufffd shows", "column_config": {"'=Name": 1}}


def test_a_table_that_was_made_once_for_all_visitors_stays_that_one():
    place, made = Place(), pa.Table.from_pylist([{"Name": "NVIDIA H200", "Size": -1}])
    elements.draw_table(made, alt="x", place=place)
    assert place.data is made


def test_a_column_has_room_for_its_longest_text():
    assert elements.measure_column(["a", "a" * 40]) > elements.measure_column(["a" * 39]) > 39 * 5
    assert elements.measure_column(["CPU 16"]) > elements.measure_column(["cpu to"])
    assert 0 < elements.measure_column([]) < elements.measure_column(["a"])
