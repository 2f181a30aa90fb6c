"""Files out and in: nothing is lost on the way, nothing foreign is run, and a refused file adds nothing."""

import base64
import csv
import dataclasses
import io
import json
import math
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import StoreError
from core.files import documents
from core.results import exchange, quarantine
from core.results.exchange import ImportReport, check_import, export, import_file, keep
from core.results.parquet import to_table
from core.results.schema import SCHEMA, SCHEMA_VERSION, VERSION_KEY, Trial
from core.results.store import Store
from core.text import MOST_IN_FILE_NAME, to_csv_cell
from tests.hostile import TEXTS, UNSEEN, formulas
from tests.rows import RUN_ID, run, trial

OTHER_RUN = "ba9876543210"
FORMULA = '=HYPERLINK("http://example.org")'


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rows")


def _parquet(rows: list[Trial]) -> bytes:
    return export(to_table(rows), "parquet")


def _cells(rows: list[Trial]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(export(to_table(rows), "csv").decode(), newline="")))


def _without_origin(rows: list[Trial]) -> list[Trial]:
    return [dataclasses.replace(row, origin="") for row in rows]


# Out


def test_an_exported_parquet_file_is_one_of_the_schema():
    table = pq.read_table(pa.BufferReader(_parquet(run())))
    assert table.schema.equals(SCHEMA)
    assert table.schema.metadata == SCHEMA.metadata
    assert table.num_rows == 2


def test_a_file_without_rows_can_be_imported(store):
    assert import_file(_parquet([]), "none.parquet", store).added == 0


def test_rows_that_were_filtered_can_be_exported(store):
    for row in run():
        store.add(row)
    table = store.read().table
    assert import_file(export(table.slice(1), "parquet"), "x", Store(store.folder / "other")).added == 1


def test_csv_has_every_column_and_row():
    cells = _cells(run())
    assert list(cells[0]) == SCHEMA.names
    assert [row["trial_id"] for row in cells] == [f"{RUN_ID}-0", f"{RUN_ID}-1"]


def test_csv_without_rows_is_the_heading():
    assert export(to_table([]), "csv").decode().strip() == ",".join(SCHEMA.names)


def test_csv_holds_every_value():
    row = trial()
    (cells,) = _cells([row])
    assert float(cells["learning_rate"]) == row.learning_rate
    assert tuple(json.loads(cells["block_end_ns"])) == row.block_end_ns
    assert tuple(json.loads(cells["warmup_s"])) == row.warmup_s
    assert base64.b64decode(cells["predictions"]) == row.predictions
    assert cells["shuffle"] == "True"


def test_csv_leaves_empty_what_was_not_measured():
    (cells,) = _cells([trial(epoch_check_s=None)])
    assert cells["epoch_check_s"] == ""


def test_a_loss_that_is_no_number_is_null_in_csv():
    (cells,) = _cells([trial(pairs=3, loss=(1.0, math.nan, math.inf))])
    assert json.loads(cells["loss"]) == [1.0, None, None]


@pytest.mark.parametrize("lead", ["=", "+", "-", "@"])
def test_text_that_a_spreadsheet_would_run_is_neutralised(lead):
    (cells,) = _cells([trial(message=f"{lead}1+1", device_name="A100 = fast")])
    assert cells["message"] == f"'{lead}1+1"
    assert cells["device_name"] == "A100 = fast"


@pytest.mark.slow
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20), data=st.binary(max_size=4))
def test_no_cell_of_text_begins_a_formula(text, data):
    (cells,) = _cells([trial(message=text, cpu_name=text, predictions=data)])
    for column in ("message", "cpu_name", "predictions"):
        assert not re.match(r"[=+\-@＝＋－＠\t\r\n]", cells[column])


@pytest.mark.slow
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20))
def test_text_with_commas_quotes_and_lines_stays_one_cell(text):
    (cells,) = _cells([trial(message=f"a{text}")])
    assert cells["message"] == to_csv_cell(f"a{text}")


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:20])
def test_a_program_that_parts_cells_by_semicolons_runs_none_either(text):
    data = export(to_table([trial(message=text.encode(errors="replace").decode())]), "csv")
    assert formulas(data) == []
    assert not UNSEEN.search(data.decode().replace("\r\n", "\n"))


# In


def test_what_would_be_added_is_known_before_anything_is(store):
    store.add(run()[0])
    proposal = check_import(_parquet([*run(), *run(run_id=OTHER_RUN)]), "lab.parquet", store)
    assert (proposal.new.num_rows, proposal.duplicates, proposal.refused) == (3, 1, ())
    assert len(store.trials()) == 1
    assert keep(proposal, store) == ImportReport(added=3, duplicates=1)
    assert len(store.trials()) == 4


def test_what_has_come_in_meanwhile_is_not_added_twice(store):
    proposal = check_import(_parquet(run()), "lab.parquet", store)
    store.add(run()[0])
    assert keep(proposal, store) == ImportReport(added=1, duplicates=1)
    assert len(store.trials()) == 2


def test_characters_that_cannot_be_seen_are_replaced(store):
    odd = trial(message="a\x00b\u202ec\u2066d\x1b[31m\u200b", device_name="two\tlines\nhere")
    import_file(_parquet([odd]), "x", store)
    (row,) = store.trials()
    assert row.message == "a\ufffdb\ufffdc\ufffdd\ufffd[31m\ufffd"
    assert row.device_name == "two\tlines\nhere"


@pytest.mark.parametrize("from_disk", [True, False])
def test_a_file_from_another_store_is_added(store, tmp_path, from_disk):
    content = _parquet(run())
    (tmp_path / "lab.parquet").write_bytes(content)
    source = tmp_path / "lab.parquet" if from_disk else content
    assert import_file(source, "lab.parquet", store) == ImportReport(added=2)
    assert _without_origin(store.trials()) == run()
    assert {row.origin for row in store.trials()} == {"lab.parquet"}


def test_the_same_file_again_adds_nothing(store):
    import_file(_parquet(run()), "lab.parquet", store)
    before = list(store.folder.iterdir())
    assert import_file(_parquet(run()), "renamed.parquet", store) == ImportReport(duplicates=2)
    assert list(store.folder.iterdir()) == before


def test_a_file_that_holds_a_row_twice_adds_it_once(store):
    assert import_file(_parquet([*run(), *run()]), "lab.parquet", store) == ImportReport(added=2, duplicates=2)


def test_only_the_new_rows_of_a_file_are_added(store):
    import_file(_parquet(run()), "lab.parquet", store)
    more = [*run(), *run(run_id=OTHER_RUN)]
    assert import_file(_parquet(more), "lab.parquet", store) == ImportReport(added=2, duplicates=2)


def test_an_imported_row_that_was_continued_elsewhere_takes_the_place_of_the_one_cut_off(store):
    import_file(_parquet([trial(outcome="interrupted", steps=900)]), "first.parquet", store)
    assert import_file(_parquet([trial()]), "second.parquet", store) == ImportReport(added=1)
    assert import_file(_parquet([trial(outcome="interrupted", steps=900)]), "first.parquet", store).duplicates == 1
    assert [(row.outcome, row.origin) for row in store.trials()] == [("completed", "second.parquet")]


def test_what_was_measured_here_is_never_replaced(store):
    store.add(trial(outcome="budget_spent", steps=100))
    forged = trial(steps=10**9, device_name="Forged")
    assert import_file(_parquet([forged]), "forged.parquet", store) == ImportReport(duplicates=1)
    assert [row.steps for row in store.trials()] == [100]


def test_an_older_file_is_added_with_defaults(store):
    older = to_table([trial()]).drop_columns(["busy_step_s", "train_accuracy"])
    buffer = io.BytesIO()
    pq.write_table(older, buffer)
    assert import_file(buffer.getvalue(), "older.parquet", store).added == 1
    assert _without_origin(store.trials()) == [trial(busy_step_s=(), train_accuracy=None)]


def _written(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _newer() -> bytes:
    table = to_table([trial()]).append_column("invented_later", pa.array([1]))
    return _written(table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION + 1).encode()}))


def _ending_early() -> bytes:
    """A file whose first page is damaged so that the reader ends there without an error."""
    content = bytearray(_parquet(run()))
    kind_of_page = 5  # after the magic number and the header's first byte
    content[kind_of_page] ^= 2
    return bytes(content)


REFUSED: dict[str, tuple[Any, str]] = {
    "nothing": (lambda: b"", "incomplete or not a parquet file"),
    "a pickle": (lambda: pickle.dumps([trial()]), "incomplete or not a parquet file"),
    "csv": (lambda: export(to_table(run()), "csv"), "incomplete or not a parquet file"),
    "torn": (lambda: _parquet(run())[:-9], "incomplete or not a parquet file"),
    "another table": (lambda: _written(pa.table({"trial_id": ["a"]})), "not written by Crossover"),
    "one bad row among good ones": (lambda: _parquet([trial(), trial(run_id=OTHER_RUN, samples=-1)]), "samples"),
    "fewer rows than it claims": (_ending_early, "claims 2 rows and has 0"),
    "newer": (_newer, "newer version of Crossover"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_file_says_why_and_adds_nothing(store, case):
    make, reason = REFUSED[case]
    store.add(trial(run_id="aaaaaaaaaaaa"))
    report = import_file(make(), "foreign.parquet", store)
    assert (report.added, report.duplicates) == (0, 0)
    assert [skipped.name for skipped in report.refused] == ["foreign.parquet"]
    assert reason in report.refused[0].reason
    assert len(store.trials()) == 1


@pytest.mark.parametrize("from_disk", [True, False])
def test_a_file_that_is_too_large_is_refused_unread(store, tmp_path, monkeypatch, from_disk):
    monkeypatch.setattr(quarantine, "MAX_FILE_BYTES", 10)
    (tmp_path / "large").write_bytes(b"x" * 11)
    report = import_file(tmp_path / "large" if from_disk else b"x" * 11, "large", store)
    assert "more than the 10 bytes that are read" in report.refused[0].reason


def test_a_file_that_is_not_there_is_an_error(store, tmp_path):
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        import_file(tmp_path / "absent.parquet", "absent.parquet", store)


def test_a_store_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError):
        import_file(_parquet(run()), "lab.parquet", Store(tmp_path / "file"))


def test_a_disk_that_is_full_leaves_nothing_of_the_file(store, monkeypatch):
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(documents.os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        import_file(_parquet(run()), "lab.parquet", store)
    monkeypatch.undo()
    assert list(store.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("lab.parquet", "lab.parquet"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\lab.parquet", "lab.parquet"),
        ("<script>alert(1)</script>", "script"),
        ("a b\n.parquet", "a-b-.parquet"),
        (FORMULA, "example.org"),
        ("", "unnamed"),
        ("folder/", "unnamed"),
    ],
)
def test_the_name_of_the_file_is_kept_without_what_could_harm(store, name, origin):
    import_file(_parquet([trial()]), name, store)
    assert [row.origin for row in store.trials()] == [origin]


@given(name=st.text(max_size=300))
def test_an_origin_is_short_and_only_text(name):
    origin = exchange._origin(name)
    assert 1 <= len(origin) <= MOST_IN_FILE_NAME
    assert not set(origin) & set("<>&\"'/\\ \n\t=+@;`$")


def test_a_folder_is_no_file(store, tmp_path):
    with pytest.raises(StoreError, match="cannot be read"):
        import_file(tmp_path, "folder", store)


@pytest.mark.parametrize("name", ["x" * 5_000, "../../../outside"])
def test_a_name_of_a_row_that_no_run_gives_is_refused(store, name):
    (refused,) = import_file(_parquet([trial(), trial(trial_id=name)]), "named.parquet", store).refused
    assert refused.name == "named.parquet"
    assert "its column trial_id" in refused.reason
    assert store.trials() == []


def test_what_a_row_says_of_its_origin_does_not_count(store):
    import_file(_parquet([trial(origin="")]), "lab.parquet", store)
    import_file(_parquet([trial(run_id=OTHER_RUN, origin="measured here, honestly")]), "lab.parquet", store)
    assert [row.origin for row in store.trials()] == ["lab.parquet"] * 2
