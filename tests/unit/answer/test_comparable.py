"""What must agree is named once: of columns that rows have, and as the names of studies were always made."""

import dataclasses

import pytest

from core.answer import speedup
from core.errors import NotComparable
from core.question import models
from core.question.experiment import Point
from tests import rows

LISTS = {
    name: columns for name, columns in vars(speedup).items() if name.endswith("_COLUMNS") and isinstance(columns, tuple)
}


@pytest.mark.parametrize("name", LISTS)
def test_each_list_names_columns_of_rows_each_once(name):
    columns = LISTS[name]
    assert len(speedup.column_values(rows.trial(), columns)) == len(set(columns)) == len(columns)


def test_all_of_the_training_must_agree_in_a_run_and_in_a_study():
    fields = {entry.name for entry in dataclasses.fields(Point)}
    assert fields <= set(speedup.SETTING_COLUMNS) <= set(speedup.RUN_COLUMNS)
    assert fields <= set(speedup.STUDY_COLUMNS)
    assert fields <= set(speedup.CHART_COLUMNS)
    assert set(speedup.STUDY_COLUMNS) - set(speedup.CHART_COLUMNS) == {"machine_id", "torch_version"}
    assert fields - set(speedup.SEED_COLUMNS) == {"seed"}
    assert fields - set(speedup.DELIVERY_COLUMNS) == {"data_path", "loader_workers"}


def test_along_an_axis_it_may_differ_itself_and_what_follows_from_it():
    assert speedup.axis_dependent_columns("batch_size") == {"batch_size"}
    assert speedup.axis_dependent_columns("samples") == {"samples", "dataset_hash"}
    assert (
        speedup.axis_dependent_columns("parameters")
        == {"parameters", *models.AXES}
        >= {"hidden_size", "depth", "width"}
    )
    assert speedup.columns_except_axis(("samples", "seed", "dataset_hash"), "samples") == ("seed",)
    assert speedup.columns_except_axis(("samples", "seed", "dataset_hash"), "depth") == (
        "samples",
        "seed",
        "dataset_hash",
    )


def test_the_first_column_that_differs_is_named_with_both_values():
    one, other = rows.trial(seed=1), rows.trial(contender="cuda:0", seed=2, samples=9)
    assert speedup.differing_columns(one, other, ("epochs", "seed", "samples")) == ["seed", "samples"]
    with pytest.raises(NotComparable, match=r"^The GPU cannot be compared with the CPU: its seed is 2, not 1\.$"):
        speedup.require_equal(one, other, ("epochs", "seed", "samples"))
    speedup.require_equal(one, other, ("epochs",))


def test_a_name_is_made_as_it_always_was_so_that_links_of_before_still_open():
    assert speedup.identity_hash("a", 1, (2.5, None)) == "5b350dc6a0af"
    assert speedup.identity_hash("a") != speedup.identity_hash(("a",))
