"""Light lines of a store: the same figures and the same studies as whole rows give."""

import dataclasses
import math
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.answer import interference, speedup, study
from core.answer.gallery import overview
from core.answer.statistics import p90_to_median
from core.question.experiment import MAX_CONTENDERS, Point
from core.question.fields import SIZE_AXES
from core.results.parquet import to_table
from core.results.schema import Trial
from core.results.store import GALLERY, Store, compact
from tests.rows import run, trial


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rows")


def frame_of(store: Store, rows: list[Trial]) -> pd.DataFrame:
    store.add_all(to_table(rows))
    return overview.load_overview([(store, "measured here")]).frame


def line_of(store: Store, row: Trial) -> pd.Series:
    return frame_of(store, [row]).iloc[0]


def same(value: float, wanted: float | None) -> bool:
    return math.isnan(value) if wanted is None else math.isclose(value, wanted, rel_tol=1e-12)


# One line


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    times=st.lists(st.lists(st.floats(1e-6, 10.0), max_size=25), min_size=1, max_size=6),
    steps=st.integers(1, 500),
)
def test_the_figures_are_those_of_whole_rows(tmp_path_factory, times, steps):
    rows = [
        trial(
            run_id=f"{number:012x}",
            pairs=len(of),
            steps_per_block=steps,
            block_begin_ns=tuple(range(len(of))),
            block_end_ns=tuple(place + max(1, round(time * steps * 1e9)) for place, time in enumerate(of)),
            block_load=tuple(time / 2 for time in of),
            block_steal=tuple(time / 20 for time in of),
        )
        for number, of in enumerate(times)
    ]
    frame = frame_of(Store(tmp_path_factory.mktemp("rows")), rows).set_index("trial_id")
    for row in rows:
        line, about = frame.loc[row.trial_id], speedup.step_time(row)
        assert same(line["step_s"], about.median_s)
        assert same(line["noise"], about.noise) or math.isclose(line["noise"], about.noise, abs_tol=1e-12)
        enough = len(row.block_steps) >= interference.SPREAD_BLOCKS
        assert same(line["spread90"], p90_to_median(row.step_s) if enough else None)
        assert line["pairs"] == about.blocks
        assert same(line["load_max"], max(row.block_load, default=None))
        assert same(line["steal_max"], max(row.block_steal, default=None))


def test_scalars_are_as_stored_and_lists_are_not_there(store):
    row = trial()
    line = line_of(store, row)
    for name in overview.SCALARS:
        wanted = getattr(row, name)
        assert np.isnan(float(line[name] or math.nan)) if wanted in (None, math.nan) else line[name] == wanted, name
    assert not {"predictions", "loss", "block_steps", "confusion"} & set(line.index)
    assert (line["warmed"], line["threads_tried_count"]) == (True, 3)
    assert line["machine"] == "Test CPU (feedfa)"


def test_a_row_in_which_nothing_was_timed_has_no_figures(store):
    none = dict.fromkeys(("warmup_steps", "warmup_s", "threads_tried", "threads_tried_step_s"), ())
    line = line_of(store, trial(pairs=0, startup_build_s=None, **none))
    assert (line["pairs"], line["warmed"], line["threads_tried_count"]) == (0, False, 0)
    names = ("step_s", "noise", "spread90", "load_max", "steal_max", "startup_build_s")
    assert all(np.isnan(line[name]) for name in names)


def test_texts_that_many_share_are_categories(store):
    frame = frame_of(store, run())
    assert all(isinstance(frame[name].dtype, pd.CategoricalDtype) for name in ("dataset", "machine", "source"))


def test_no_store_and_an_empty_one_have_no_lines_but_all_columns(store):
    for found in (overview.load_overview([]).frame, overview.load_overview([(store, "measured here")]).frame):
        assert len(found) == 0
        assert {*overview.SCALARS, *overview.BLOCK_SUMMARY_SCHEMA.names, "machine", "source"} == set(found.columns)
        assert overview.find_study_lines(pa.Table.from_pandas(found)) == []


# Which lines


def test_the_newest_run_comes_first_and_its_contenders_in_their_order(store):
    late = run(run_id="f" * 12, started_at="2026-12-01T00:00:00+00:00")
    frame = frame_of(store, [*run(), *reversed(late)])
    assert list(frame["trial_id"]) == [row.trial_id for row in (*late, *run())]


def test_a_trial_in_two_stores_counts_where_it_is_found_first(store, tmp_path):
    gallery = Store(tmp_path / "gallery")
    gallery.add_all(to_table([*run(message="there"), *run(run_id="f" * 12)]))
    store.add_all(to_table([*run(message="here"), *run(run_id="e" * 12, origin="lab.parquet")]))
    frame = overview.load_overview([(store, "measured here"), (gallery, "gallery")]).frame.set_index("run_id")
    assert len(frame) == 6
    assert set(frame.loc["0123456789ab", "message"]) == {"here"}
    assert {run_id: set(of) for run_id, of in frame["source"].groupby(level=0)} == {
        "0123456789ab": {"measured here"},
        "e" * 12: {"imported"},
        "f" * 12: {"gallery"},
    }


def test_contributed_rows_are_unconfirmed_until_another_machine_with_the_same_card_agrees(store, tmp_path):
    first = run(origin="contributed-0123456789ab.zip")
    second = run(run_id="f" * 12, machine_id="a" * 12, origin="contributed-ba9876543210.zip")
    plain = run(run_id="e" * 12, machine_id="b" * 12, origin="lab.parquet")
    assert set(frame_of(Store(tmp_path / "one"), first)["source"]) == {"contributed"}
    assert set(frame_of(Store(tmp_path / "other"), [*first, *plain])["source"]) == {"contributed", "imported"}
    found = frame_of(store, [*first, *second])
    assert set(found["source"]) == {"contributed, confirmed"}
    assert isinstance(found["source"].dtype, pd.CategoricalDtype)


@pytest.mark.parametrize("order", [1, -1])
def test_of_rows_of_one_trial_the_most_complete_has_the_line(store, order):
    rows = [trial(outcome="interrupted", steps=90), trial(steps=50), trial(outcome="stopped", steps=99)]
    for row in rows[::order]:
        store.add(row)
    frame = overview.load_overview([(store, "measured here")]).frame
    assert list(frame["steps"]) == [50]
    assert list(frame["steps"]) == [row.steps for row in store.trials()]


def test_lines_follow_what_comes_and_goes_and_a_compaction_changes_none(store):
    first = store.add_all(to_table(run()))
    assert len(overview.load_overview([(store, "here")]).frame) == 2
    store.add(trial(run_id="f" * 12))
    before = overview.load_overview([(store, "here")]).frame
    assert len(before) == 3
    compact(store.folder)
    pd.testing.assert_frame_equal(overview.load_overview([(store, "here")]).frame, before, check_categorical=False)
    assert not first.exists()
    (part,) = store.folder.glob("*.parquet")
    part.unlink()
    assert len(overview.load_overview([(store, "here")]).frame) == 0


def test_files_that_cannot_be_read_are_named_and_others_shown(store):
    store.add(trial())
    (store.folder / "torn.parquet").write_bytes(b"PAR1")
    found = overview.load_overview([(store, "here")])
    assert [entry.name for entry in found.skipped] == ["torn.parquet"]
    assert len(found.frame) == 1


# Studies


def lines(frame: pd.DataFrame, **options) -> list[tuple]:
    return [
        (
            line.id,
            line.axis,
            line.baseline,
            line.challenger,
            line.sizes,
            line.run_ids,
            line.trial_ids,
            line.newest,
            (line.baseline_name, line.challenger_name),
        )
        for line in overview.find_study_lines(pa.Table.from_pandas(frame), **options)
    ]


def wholes(trials: list[Trial], **options) -> list[tuple]:
    return [
        (
            of.id,
            of.axis,
            of.baseline,
            of.challenger,
            of.sizes,
            tuple(pair[0].run_id for pair in of.runs),
            tuple(row.trial_id for pair in of.runs for row in pair),
            of.newest,
            tuple(study._study_contender(of, row) for row in of.runs[0]),
        )
        for of in study.studies(trials, **options)
    ]


@pytest.mark.slow
def test_studies_of_the_gallery_are_those_of_its_rows():
    gallery = Store(GALLERY)
    frame = overview.load_overview([(gallery, "gallery")]).frame
    trials = gallery.trials()
    for axis in (None, *SIZE_AXES):
        for least in (1, 2):
            assert lines(frame, axis=axis, least=least) == wholes(trials, axis=axis, least=least)
    assert lines(frame)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_studies_of_made_up_rows_are_those_of_the_rows(tmp_path, seed):
    """Rows that differ in a few columns at random, so that many nearly belong together."""
    draw = random.Random(seed)
    rows = []
    for _ in range(60):
        point = Point(
            hidden_size=draw.choice((16, 32, 64)),
            depth=draw.choice((1, 2)),
            batch_size=draw.choice((32, 64)),
            samples=draw.choice((600, 1_000)),
        )
        contenders = draw.choice((("cpu", "cuda:0"), ("cpu@1", "cpu@2"), ("cpu", "cpu@1", "cuda:0"), ("cuda:0", "cpu")))
        made = run(
            dict.fromkeys(contenders, 1e-3),
            point=point,
            run_id=f"{draw.randrange(16**12):012x}",
            started_at=f"2026-11-{draw.randint(1, 9):02}T00:00:00+00:00",
            machine_id=draw.choice(("feedfacecafe", "beefbeefbeef")),
            torch_version=draw.choice(("2.14.1", "2.14.1", "2.13.0")),
            outcome=draw.choice(("timed", "timed", "stopped")),
            dataset_hash="abc" if point.samples == 600 else "def",
            pairs=2,
        )
        threads = draw.choice((2, 4))
        some = made[: draw.choice((1, 2, 3))]
        rows += [row if "@" in row.contender else dataclasses.replace(row, threads=threads) for row in some]
    frame = frame_of(Store(tmp_path), rows)
    for axis in (None, *SIZE_AXES):
        assert lines(frame, axis=axis) == wholes(rows, axis=axis)
    assert len(lines(frame)) > 5


def test_of_a_run_no_more_rows_are_paired_than_it_may_have_contenders(store):
    """The door lets no such run in; rows that came by another way must not cost the square of their number."""
    many = [row for number in range(30) for row in run(run_id=f"{number:012x}", pairs=2)]
    frame = frame_of(store, many).assign(run_id="f" * 12)
    rows = [dataclasses.replace(row, run_id="f" * 12) for row in many]
    assert len(list(study.contender_pairs(rows))) == MAX_CONTENDERS * (MAX_CONTENDERS - 1) // 2
    assert lines(frame, least=1) == wholes(rows, least=1)


def test_a_line_says_what_its_study_is_of(store):
    rows = [row for size in (16, 32) for row in run(point=Point(hidden_size=size), run_id=f"{size:012x}")]
    (line,) = overview.find_study_lines(pa.Table.from_pandas(frame_of(store, rows)))
    assert (line.dataset, line.model, line.machine) == ("digits", "mlp", "Test CPU (feedfa)")
    assert (line.baseline_name, line.challenger_name) == ("CPU (Test CPU, 4 threads)", "GPU (NVIDIA Test GPU)")
    assert (line.sizes, line.protocol_version) == ((16.0, 32.0), rows[0].protocol_version)
    assert study.find_study(line.id, store.trials(trial_id=line.trial_ids), line.axis).sizes == line.sizes


def test_the_same_rows_of_another_machine_are_another_study(store):
    rows = [
        row
        for machine in ("a" * 12, "b" * 12)
        for size in (16, 32)
        for row in run(point=Point(hidden_size=size), run_id=f"{size:06x}{machine[:6]}", machine_id=machine)
    ]
    found = overview.find_study_lines(pa.Table.from_pandas(frame_of(store, rows)))
    assert len(found) == len({line.id for line in found}) == 2
    assert {line.machine for line in found} == {"Test CPU (aaaaaa)", "Test CPU (bbbbbb)"}


def test_of_very_many_trials_the_newest_files_are_listed_and_the_others_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(overview, "MOST_TRIALS", 3)
    store = Store(tmp_path / "rows")
    for day in range(1, 7):
        store.add(trial(run_id=f"{day:012x}", started_at=f"2026-01-0{day}T00:00:00+00:00"))
    known = overview.load_overview([(store, "measured here")])
    assert (known.frame["run_id"].tolist(), known.left_out) == ([f"{day:012x}" for day in (6, 5, 4)], 3)
    store.add(trial(run_id="f" * 12, started_at="2026-01-09T00:00:00+00:00"))
    known = overview.load_overview([(store, "measured here")])
    assert (known.frame["run_id"].tolist()[::2], known.left_out) == (["f" * 12, f"{5:012x}"], 4)
    assert store.trials(run_id=f"{1:012x}")[0].run_id == f"{1:012x}", "what is not listed is found by its name"
