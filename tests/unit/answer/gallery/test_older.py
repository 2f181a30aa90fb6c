"""Studies that are too old for the lists: found by name, whole, in parts with and without keys beside them."""

from pathlib import Path

import pytest

from core.answer import study as study_keys
from core.answer.gallery import older, overview
from core.answer.gallery.overview import StudyLine
from core.answer.study import STUDIES
from core.question.experiment import Point
from core.results import compaction
from core.results.finding import keys
from core.results.store import Store
from core.results.tables import to_table
from tests.rows import run, trial

SIZES = (16, 32, 64)

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rows")


def measured(store: Store, month: int, sizes: tuple[int, ...] = SIZES, *, sweep: int = 0, **changes) -> None:
    for number, size in enumerate(sizes):
        name, begun = f"{sweep or month:04x}{size:08x}", f"2026-{month:02}-01T00:00:{number:02}+00:00"
        store.add_all(to_table(run(point=Point(hidden_size=size), run_id=name, started_at=begun, **changes)))


def all_lines(store: Store) -> list[StudyLine]:
    return overview.find_study_lines(overview.to_dataframe(store.read().table.select(overview.SCALARS)))


def older_line(store: Store, study_id: str) -> StudyLine | None:
    return older.line([store], overview.load_overview([(store, "measured here")]).frame, study_id)


@pytest.fixture
def listed_are_few(monkeypatch):
    monkeypatch.setattr(overview, "MOST_TRIALS", 2)


@pytest.fixture
def parts_are_small(monkeypatch):
    monkeypatch.setattr(compaction, "SMALL_BYTES", 1)
    monkeypatch.setattr(compaction, "OWN_ROWS", 1)


@pytest.mark.usefixtures("listed_are_few", "parts_are_small")
@pytest.mark.parametrize("keyed", [True, False], ids=["keys beside the parts", "parts of a version before"])
def test_a_study_of_which_nothing_is_listed_is_found_with_all_its_sizes(store, keyed):
    measured(store, 1)
    measured(store, 2, machine_id="b" * 12)
    compaction.compact(store.folder, STUDIES if keyed else None)
    store.add(trial(run_id="f" * 12, started_at="2026-09-01T00:00:00+00:00"))
    store.add(trial(run_id="e" * 12, started_at="2026-09-01T00:00:01+00:00"))
    assert len(list(store.folder.glob("*.keys"))) == (2 if keyed else 0)
    wanted = all_lines(store)
    assert [line.sizes for line in wanted] == [SIZES, SIZES]
    assert [older_line(store, line.id) for line in wanted] == wanted


@pytest.mark.usefixtures("listed_are_few", "parts_are_small")
def test_a_run_whose_rows_lie_in_a_file_each_is_not_parted_where_a_compaction_takes_several_goes(store, monkeypatch):
    monkeypatch.setattr(compaction, "BATCH_FILES", 3)
    for number, size in enumerate(SIZES):
        for row in run(point=Point(hidden_size=size), run_id=f"{size:012x}", started_at=f"2026-01-01T00:00:0{number}Z"):
            store.add(row)
    compaction.compact(store.folder, STUDIES)
    for name in "ef":
        store.add(trial(run_id=name * 12, started_at="2026-09-01T00:00:00+00:00"))
    (wanted,) = (line for line in all_lines(store) if line.sizes == SIZES)
    assert older_line(store, wanted.id) == wanted


@pytest.mark.usefixtures("listed_are_few")
def test_a_study_is_whole_of_which_some_sizes_are_listed_and_others_older(store):
    measured(store, 1, SIZES[:2])
    measured(store, 2, SIZES[2:])
    (wanted,) = all_lines(store)
    listed = overview.load_overview([(store, "measured here")]).frame
    assert set(listed["hidden_size"]) == {64}
    assert older_line(store, wanted.id) == wanted


@pytest.mark.usefixtures("listed_are_few")
def test_of_runs_of_one_size_the_newest_counts_wherever_it_lies(store):
    for month in (1, 2, 3):
        measured(store, month)
    (wanted,) = all_lines(store)
    assert {name[:4] for name in wanted.run_ids} == {"0003"}
    assert older_line(store, wanted.id) == wanted


@pytest.mark.usefixtures("listed_are_few")
@pytest.mark.parametrize("name", ["0123456789ab", "published-study", ""])
def test_a_name_that_no_study_has_finds_none(store, name):
    measured(store, 1)
    assert older_line(store, name) is None


@pytest.mark.usefixtures("listed_are_few", "parts_are_small")
def test_only_row_groups_with_rows_of_the_study_are_read_and_of_them_some_columns(store, monkeypatch):
    monkeypatch.setattr(compaction.writing, "GROUP_ROWS", 6)
    measured(store, 1)
    measured(store, 1, sweep=2, dataset="mnist", model="cnn")
    compaction.compact(store.folder, STUDIES)
    measured(store, 3, machine_id="b" * 12)
    read, real = [], older.read_piece
    monkeypatch.setattr(older, "read_piece", lambda path, **what: read.append(what) or real(path, **what))
    wanted = next(line for line in all_lines(store) if line.dataset == "mnist")
    assert older_line(store, wanted.id) == wanted
    by_keys = [what["groups"] for what in read if "groups" in what]
    assert by_keys == [[1]]
    assert {what["columns"] for what in read} == {study_keys.STUDY_KEY_COLUMNS}


@pytest.mark.usefixtures("listed_are_few", "parts_are_small")
@pytest.mark.parametrize(
    "content",
    [b"", b"torn", keys.HEADER + b"\0" * 5, b"X" * 14, keys.HEADER + b"\xff" * 6],
    ids=["empty", "torn", "cut off", "foreign", "of no study"],
)
def test_what_lies_beside_a_part_and_holds_no_keys_hides_no_other_part(store, content):
    measured(store, 1)
    measured(store, 2, machine_id="b" * 12)
    compaction.compact(store.folder, STUDIES)
    measured(store, 9, machine_id="c" * 12)
    wanted = {line.machine: line for line in all_lines(store)}["Test CPU (bbbbbb)"]
    broken = min(store.folder.glob("*.keys"))
    broken.write_bytes(content)
    assert older_line(store, wanted.id) == wanted


@pytest.mark.usefixtures("listed_are_few", "parts_are_small")
def test_a_row_group_that_is_not_there_is_not_read(store):
    measured(store, 1)
    compaction.compact(store.folder, STUDIES)
    (wanted,) = all_lines(store)
    measured(store, 9, machine_id="c" * 12)
    (beside,) = store.folder.glob("*.keys")
    made = STUDIES.pairs(store.read().table.select(study_keys.STUDY_KEY_COLUMNS), [12])
    made["group"] = 7
    beside.write_bytes(keys.HEADER + made["key"].tobytes() + made["group"].tobytes())
    assert older_line(store, wanted.id) is None
