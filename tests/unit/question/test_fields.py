"""The one table of what can be asked: entries that can be drawn, varied, stored and said."""

import itertools

import pytest

from core.question import fields, models
from core.question.experiment import Point
from core.question.fields import FIELDS, PANELS, TRAINING, short_label, value_label

AXES = [name for name, entry in FIELDS.items() if entry.axis]


@pytest.mark.parametrize("name", FIELDS)
def test_an_entry_is_called_something_and_its_stops_ascend_within_its_range(name):
    entry = FIELDS[name]
    assert entry.title == entry.title.strip() != ""
    assert entry.panel in PANELS
    assert all(low < high for low, high in itertools.pairwise(entry.stops))
    assert all(entry.low <= stop <= entry.high for stop in (*entry.stops, *entry.axis_stops, *entry.usual_values))


@pytest.mark.parametrize("name", TRAINING)
def test_a_field_of_a_training_has_the_words_of_its_column_and_a_default_that_may_be_asked(name):
    entry = FIELDS[name]
    assert len(entry.meaning) > 2
    assert entry.is_number or entry.words
    assert Point.parse({name: str(entry.default).lower()}) == Point()


@pytest.mark.parametrize("name", AXES)
def test_an_axis_begins_and_ends_within_its_range_and_a_size_says_how_its_places_are_called(name):
    entry = FIELDS[name]
    assert entry.usual_values
    if entry.axis == "size":
        assert entry.place.count("{}") == 1
        low, high = entry.usual_range
        assert entry.low <= low < high <= entry.high


def test_axes_are_offered_by_the_parts_of_a_form_the_sizes_of_models_first():
    assert list(fields.SIZE_AXES) == [
        "hidden_size",
        "depth",
        "width",
        "heads",
        "sequence_length",
        "embedding_rows",
        "rounds",
        "leaves",
        "parameters",
        "size",
        "batch_size",
        "samples",
    ]
    assert list(fields.OTHER_AXES) == ["learning_rate", "loader_workers"]
    assert set(models.AXES) <= set(fields.SIZE_AXES)


def test_a_title_is_for_people_and_a_label_begins_with_a_capital_and_has_its_unit():
    assert fields.field_title("samples") == "training samples"
    assert fields.field_title("of_somebody_else") == "of somebody else"
    assert FIELDS["samples"].label == "Training samples"
    assert FIELDS["point_budget_s"].label == "Time for one point (seconds)"


@pytest.mark.parametrize(("name", "words"), [(name, entry.words) for name, entry in FIELDS.items() if entry.labels])
def test_every_word_that_links_write_has_a_label_for_people(name, words):
    labels = [value_label(name, word) for word in words]
    assert len(set(labels)) == len(words)
    assert not set(labels) & set(words)
    assert value_label(name, "of another version") == "of another version"


def test_labels_say_how_much_there_is_and_short_ones_do_not():
    assert value_label("dataset", "digits") == "Digits (1,797 images)"
    assert short_label("dataset", "digits") == "Digits"
    assert value_label("model", "mlp") == "Fully connected"
    assert value_label("data_path", "per_batch") == "Copied for every batch"
    assert value_label("seed", 3) == "3"
