"""What a store holds: filters on many trials at once, studies and machines among what they let through."""

import dataclasses

import pandas as pd
import pytest

from core.answer.gallery import overview, trust
from core.question.experiment import Point
from core.results.store import Store
from tests import rows
from tests.studies import OTHER_MACHINE, sweep

SINGLE = rows.run(run_id="c" * 12, point=Point(dataset="mnist", hidden_size=32), app_commit="")
TRIALS = [row for of in (sweep("a"), sweep("b", pairs=3, **OTHER_MACHINE)) for run in of.runs for row in run] + SINGLE


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """Two studies of three sizes on two machines, and one run of another training."""
    store = Store(tmp_path_factory.mktemp("store"))
    for row in TRIALS:
        store.add(row)
    known = overview.load_overview([(store, "measured here")])
    return overview.build_gallery_data(known.frame, overview.find_study_lines(known.table))


@pytest.mark.slow
def test_everything_is_counted_in_one_line(held):
    assert overview.gallery_summary(held) == "14 trials in 2 studies from 2 machines; CPUs and NVIDIA GPUs."


def test_an_empty_store_says_what_would_be_here(tmp_path):
    frame = overview.load_overview([(Store(tmp_path), "measured here")]).frame
    nothing = overview.build_gallery_data(frame, [])
    assert overview.gallery_summary(nothing).startswith("Browse and compare results of real machines")
    assert overview.apply_filters(nothing, {}).studies == ()


def test_the_mark_of_each_line_is_that_of_its_row(held):
    expected = {row.trial_id: trust.trust_mark([row]).label for row in TRIALS}
    assert dict(zip(held.trials["trial_id"], held.trials["mark"].astype(str), strict=True)) == expected


def test_the_mark_of_a_study_is_that_of_all_its_rows(held):
    by_machine = {line.machine: level for line, level in zip(held.studies, held.levels, strict=True)}
    assert by_machine == {"Test CPU (feedfa)": "full", "Other CPU (beefbe)": "partly"}


@pytest.mark.parametrize(
    ("chosen", "trials", "studies"),
    [
        ({}, 14, 2),
        ({"in_dataset": ["mnist"]}, 2, 0),
        ({"in_kind": ["cuda"]}, 7, 2),
        ({"in_machine": ["Other CPU (beefbe)"]}, 6, 1),
        ({"in_machine": ["Other CPU (beefbe)", "Test CPU (feedfa)"], "in_model": ["mlp"]}, 14, 2),
        ({"in_trust": ["full"]}, 6, 1),
        ({"in_trust": ["partly"], "in_dataset": ["signal"]}, 6, 1),
        ({"in_protocol": [str(rows.trial().protocol_version)]}, 14, 2),
        ({"in_protocol": ["99"]}, 0, 0),
        ({"in_dataset": []}, 14, 2),
    ],
)
def test_filters_let_through_what_agrees_with_all_of_them(held, chosen, trials, studies):
    found = overview.apply_filters(held, chosen)
    assert (len(found.trials), len(found.studies)) == (trials, studies)


def test_every_value_that_occurs_can_be_chosen(held):
    for name, column in overview.FILTERS.items():
        assert set(held.options[name]) == set(held.trials[column].astype(str))


def test_a_machine_has_one_line_with_its_devices_and_counts(held):
    lines = overview.machine_table(held, overview.apply_filters(held, {}).trials)
    assert [(line["Machine"], line["Trials"], line["Runs"]) for line in lines] == [
        ("Test CPU (feedfa)", 8, 4),
        ("Other CPU (beefbe)", 6, 3),
    ]
    assert lines[0]["Accelerators"] == "NVIDIA Test GPU"
    assert lines[1]["Fully trusted"] == "0 %"


def test_a_machine_without_an_accelerator_says_so(held):
    (only, *_) = overview.machine_table(held, overview.apply_filters(held, {"in_kind": ["cpu"]}).trials)
    assert only["Accelerators"] == "none"


def test_filtering_leaves_the_table_as_it_is(held):
    before = held.trials.copy()
    overview.apply_filters(held, {"in_trust": ["full"]})
    overview.machine_table(held, overview.apply_filters(held, {}).trials)
    pd.testing.assert_frame_equal(before, held.trials)


def test_long_lists_of_names_are_counted_beyond_three():
    many = [dataclasses.replace(row, torch_version=f"2.{n}") for n, row in enumerate(TRIALS[:5])]
    assert overview.frequent_names(pd.Series([row.torch_version for row in many])).endswith("and 2 more")


def test_of_very_many_machines_those_with_the_most_trials_have_a_line(held, monkeypatch):
    everything = overview.apply_filters(held, {}).trials
    known = overview.machine_table(held, everything)
    assert len(known) == 2
    monkeypatch.setattr(overview, "MAX_MACHINE_LINES", 1)
    assert overview.machine_table(held, everything) == known[:1]


def test_decided_and_trusted_studies_come_first_and_what_is_not_measurable_only_if_it_is_wanted(held):
    places = (0, 1)
    assert overview.select_studies(held, places, ("undecided", "crossing")) == (1, 0)
    trusted_first = tuple(sorted(places, key=lambda place: held.levels[place] != "full"))
    assert overview.select_studies(held, places, ("crossing", "crossing")) == trusted_first
    neither = ("not_measurable", None)
    assert overview.select_studies(held, places, neither) == (1,)
    assert overview.select_studies(held, places, neither, ["not_measurable"]) == (0,)


def test_a_cpu_against_an_accelerator_comes_before_all_others_and_its_crossing_and_default_loop_first(held):
    pairs = [
        ("cpu@1", "cpu@2"),
        ("cpu", "cuda:0"),
        ("cpu", "cuda:0+graph10"),
        ("cuda:0", "cuda:0+bf16"),
        ("cpu", "xpu:0"),
    ]
    studies = [dataclasses.replace(held.studies[0], baseline=one, challenger=other) for one, other in pairs]
    data = dataclasses.replace(held, studies=tuple(studies), levels=(held.levels[0],) * len(pairs))
    answers = ("crossing", "cpu_always", "crossing", "crossing", "crossing")
    assert overview.select_studies(data, range(len(pairs)), answers) == (4, 2, 1, 0, 3)
