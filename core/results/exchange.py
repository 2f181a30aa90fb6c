"""Export of rows to files for other machines and programs, and import of such files.

A foreign file is checked as a whole before any of its rows is stored. Its rows record the name of the file. The file is
treated only as data: nothing is unpickled, evaluated or rendered.
"""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import ForeignFile
from ..text import to_csv_cell, to_file_name
from . import quarantine
from .index import Skipped
from .schema import SCHEMA
from .store import Store, completeness, keep_most_complete

Format = Literal["parquet", "csv"]

CONTRIBUTED = "contributed-"
"""Prefix of the origin of rows from a checked contribution; rows never record another file's name with it."""

CSV_ROWS = 256
"""Rows that are written to CSV at a time."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Result of checking a file, before anything of it is stored.

    Attributes:
        new: rows that would be added, checked and cleaned, of `SCHEMA`.
        duplicates: rows that exist already, measured here or at least as complete.
        refused: the file with the reason, if it is refused.
    """

    new: pa.Table = field(default_factory=SCHEMA.empty_table)
    duplicates: int = 0
    refused: tuple[Skipped, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """Result of importing a file.

    Attributes:
        added: rows that were new.
        duplicates: rows that existed already, measured here or at least as complete.
        refused: the file with the reason, if it was refused; then nothing was added.
    """

    added: int = 0
    duplicates: int = 0
    refused: tuple[Skipped, ...] = ()


def export(trials: pa.Table, kind: Format) -> bytes:
    """Return rows as the bytes of one file.

    Args:
        trials: rows of `SCHEMA`.
        kind: `parquet`, which `import_file` reads back; or `csv`, with lists as JSON (null for a number
            that is not finite), bytes in base64, and text in one line that no spreadsheet runs.
    """
    if kind == "csv":
        return _csv(trials)
    buffer = io.BytesIO()
    pq.write_table(trials.cast(SCHEMA), buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


def import_file(source: Path | bytes, name: str, store: Store) -> ImportReport:
    """Add the rows of a foreign parquet file to a store, all of them or none.

    Args:
        source: the file or its bytes.
        name: name of the file; each row records it.
        store: store to which the rows are added.

    Raises:
        StoreError: the file cannot be opened or the store cannot be written; nothing was added.
    """
    return keep(check_import(source, name, store), store)


def check_import(
    source: Path | bytes, name: str, store: Store, *, most_rows: int = quarantine.MAX_IMPORT_ROWS
) -> Proposal:
    """Check a file for `import_file` without adding anything; `keep` adds it.

    Args:
        source: the file or its bytes.
        name: name of the file.
        store: store to which the rows would be added.
        most_rows: limit of rows; a larger file is refused before anything of it is unpacked.

    Raises:
        StoreError: the file cannot be opened or the store cannot be read.
    """
    try:
        table = quarantine.read_foreign_file(source, most_rows=most_rows)
    except ForeignFile as error:
        return Proposal(refused=(Skipped(name=_origin(name), reason=str(error)),))
    return propose_rows(table, _origin(name), store)


def propose_rows(table: pa.Table, origin: str, store: Store) -> Proposal:
    """Compare checked rows of `SCHEMA` from a file with a store, without adding anything; `keep` adds them.

    Args:
        table: the rows.
        origin: origin that each row records.
        store: store to which the rows would be added.

    Raises:
        StoreError: the store cannot be read.
    """
    index = table.schema.get_field_index("origin")
    field = SCHEMA.field(index)
    origins = pa.array([origin] * table.num_rows, field.type)
    return _compare_with_store(table.set_column(index, field, origins), store)


def keep(proposal: Proposal, store: Store) -> ImportReport:
    """Add the proposed rows that are still new.

    Raises:
        StoreError: the store cannot be written; nothing was added.
    """
    found = _compare_with_store(proposal.new, store)
    if found.new.num_rows:
        store.check_writable()
        store.add_all(found.new)
    return ImportReport(
        added=found.new.num_rows, duplicates=proposal.duplicates + found.duplicates, refused=proposal.refused
    )


def _compare_with_store(table: pa.Table, store: Store) -> Proposal:
    """Return the rows that a store does not have, or has in a less complete form."""
    names = set(table["trial_id"].to_pylist())
    facts = ("trial_id", "origin", "outcome", "steps")
    known = {line["trial_id"]: line for line in store.rows(trial_id=names).select(facts).to_pylist()} if names else {}
    single = keep_most_complete(table)
    lines = single.select(facts).to_pylist()
    new = single.filter(pa.array([_is_new(line, known.get(line["trial_id"])) for line in lines], pa.bool_()))
    return Proposal(new=new, duplicates=table.num_rows - new.num_rows)


def _is_new(row: Mapping[str, Any], stored: Mapping[str, Any] | None) -> bool:
    """Return whether a row is more complete than the stored one of its name; local measurements are never replaced."""
    if stored is None:
        return True
    more = completeness(row["outcome"], row["steps"]) > completeness(stored["outcome"], stored["steps"])
    return bool(stored["origin"]) and more


def _origin(name: str) -> str:
    """Return a file's name without its folders, special characters and the prefix of contributions."""
    return to_file_name(re.split(r"[/\\]", name)[-1].removeprefix(CONTRIBUTED))


def _csv(trials: pa.Table) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(trials.column_names)
    for batch in trials.to_batches(max_chunksize=CSV_ROWS):  # as Python objects, rows need ten times the memory
        writer.writerows([to_csv_cell(value) for value in row.values()] for row in batch.to_pylist())
    return text.getvalue().encode()
