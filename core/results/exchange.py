"""Rows in and out: files for other machines and programs, and files from them.

What comes from elsewhere is checked as a whole before any of it is kept, keeps the name of the file it came in,
and is only ever data: nothing is unpickled, evaluated or rendered.
"""

import base64
import csv
import dataclasses
import io
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import ForeignFile, StoreError
from core.results.reading import MAX_FILE_BYTES, read_file
from core.results.schema import SCHEMA, SCHEMA_VERSION, Trial, from_table
from core.results.store import Skipped, Store, completeness, each_once

Format = Literal["parquet", "csv"]

FORMULA_LEADS = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet run a cell as a formula; such text gets an apostrophe in front."""

ORIGIN_LENGTH = 80


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """What became of a file.

    Attributes:
        added: rows that were new.
        duplicates: rows that were there already, measured here or at least as complete.
        refused: the file with the reason, if it was refused; then nothing was added.
    """

    added: int = 0
    duplicates: int = 0
    refused: tuple[Skipped, ...] = ()


def export(trials: pa.Table, kind: Format) -> bytes:
    """Rows as the bytes of one file.

    Args:
        trials: of `SCHEMA`.
        kind: `parquet`, which `import_file` reads back; or `csv`, with lists as JSON (null for a number
            that is not finite) and bytes in base64.
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
        name: of the file; kept with each row.
        store: where the rows go, a file each.

    Raises:
        StoreError: the file cannot be opened or the store cannot be written; nothing was added.
    """
    try:
        table = _read(source)
    except ForeignFile as error:
        return ImportReport(refused=(Skipped(name=name, reason=str(error)),))
    known = {trial.trial_id: trial for trial in store.trials()}
    new = [row for row in from_table(each_once(table)) if _is_new(row, known.get(row.trial_id))]
    _add_all([dataclasses.replace(row, origin=_origin(name)) for row in new], store)
    return ImportReport(added=len(new), duplicates=table.num_rows - len(new))


def _is_new(row: Trial, known: Trial | None) -> bool:
    """Whether a row says more than the one of the same name; what was measured here is never replaced."""
    if known is None:
        return True
    return bool(known.origin) and completeness(row.outcome, row.steps) > completeness(known.outcome, known.steps)


def _add_all(rows: list[Trial], store: Store) -> None:
    """Add every row, or none if the store refuses one."""
    if rows:
        store.check_writable()
    added: list[Path] = []
    try:
        for row in rows:
            added.append(store.add(row))
    except StoreError:
        for path in added:
            path.unlink(missing_ok=True)
        raise


def _read(source: Path | bytes) -> pa.Table:
    try:
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ForeignFile(f"it has {size:,} bytes, more than the {MAX_FILE_BYTES:,} that are read")
        version, table = read_file(pa.BufferReader(source) if isinstance(source, bytes) else source)
    except OSError as error:
        raise StoreError(f"{source!s:.200} cannot be read: {error.strerror or error}.") from error
    if version > SCHEMA_VERSION:  # its rows would lose the columns that are not known here, and count as known later
        raise ForeignFile("it was written by a newer version of Crossover, which is needed to import it")
    return table


def _origin(name: str) -> str:
    """A file's name without its folders and without characters that mean something elsewhere."""
    return re.sub(r"[^\w.-]", "_", re.split(r"[/\\]", name)[-1])[:ORIGIN_LENGTH] or "unnamed"


def _csv(trials: pa.Table) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(trials.column_names)
    for row in trials.to_pylist():
        writer.writerow([_cell(value) for value in row.values()])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    match value:
        case list():
            return json.dumps([None if isinstance(item, float) and not math.isfinite(item) else item for item in value])
        case bytes():
            value = base64.b64encode(value).decode()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_LEADS) else value
