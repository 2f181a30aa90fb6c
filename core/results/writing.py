"""Files of many rows, as large as readers take: how rows are split into them, and how one is written.

Row groups are small, so that a question that needs few rows decodes few; checksums and statistics are for readers of
any kind. Nothing here decides which rows belong together, or removes a file.
"""

import errno
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from core.files import atomic
from core.results.finding import mirrored
from core.results.reading import MAX_FILE_BYTES, readable
from core.results.schema import Trial
from core.results.tables import to_table

PART_BYTES = 48 * 2**20
"""Largest part in memory. Compressed it is a third of that as a rule, and never more than readers take."""

PART_ROWS = 50_000
"""Most rows of a part."""

GROUP_ROWS = 512
"""Rows of a row group: what is decoded to get at one of them."""

SIZE_KEY = b"crossover_part_bytes"
"""Key of the part's size in memory in its metadata; a hint by which full parts are told from small ones."""


def split(table: pa.Table) -> Iterator[pa.Table]:
    """Rows in their order in parts that are not too large; of one row, however large, there is one part.

    Rows of one run that follow each other stay together, as what is made of them is told by the part that they are in.
    """
    if table.num_rows <= 1 or (table.nbytes <= PART_BYTES and table.num_rows <= PART_ROWS):
        yield table
        return
    half, runs = table.num_rows // 2, table["run_id"]
    half = next((place for place in range(half, table.num_rows) if runs[place] != runs[place - 1]), half)
    yield from split(table.slice(0, half))
    yield from split(table.slice(half))


def write_table(target: Path, table: pa.Table) -> None:
    """Write rows into a file of their own, whole or not at all, so that it outlives a loss of power.

    Where the folder mirrors a place that is shared, the file is sent there; it waits if that cannot be reached.

    Raises:
        OSError: the folder cannot be written, or no reader would take the file; nothing is left behind.
    """
    if table.num_rows > 1:
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), SIZE_KEY: str(table.nbytes).encode()})
    single = table.num_rows == 1  # statistics of a single value are that value again, three times

    def fill(file: BinaryIO) -> None:
        pq.write_table(
            table,
            file,
            compression="zstd",
            row_group_size=GROUP_ROWS,
            write_page_checksum=True,
            write_statistics=not single,
        )
        if file.tell() > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, f"it would have more than the {MAX_FILE_BYTES:,} bytes that are read")

    with mirrored.adding(target, table):
        atomic.write_atomically(target, fill)


def write_names(part: Path, table: pa.Table, names: pa.Table) -> None:
    """Put the names of a part's rows beside it, whole or not at all, here and in a shared place.

    Args:
        part: file of the rows.
        table: some columns of its rows, with machine and time.
        names: as `core.results.finding.lookup.names_of` has them.

    Raises:
        OSError: the folder cannot be written.
    """

    def fill(file: BinaryIO) -> None:
        pq.write_table(names, file, compression="zstd", write_page_checksum=True)

    write_sidecar(part, mirrored.NAMES_SUFFIX, table, fill)


def write_sidecar(part: Path, suffix: str, table: pa.Table, fill: Callable[[BinaryIO], object]) -> None:
    """Put a small file beside a part, whole or not at all, here and in a shared place; raises as `write_names` does."""
    target = part.with_suffix(suffix)
    with mirrored.adding(target, table):
        atomic.write_atomically(target, fill)


def format_file_date(started_at: str) -> str:
    """A time as names of files have it, where only letters, digits and hyphens are safe."""
    return re.sub(r"[^0-9T-]", "", started_at[:19])


def write_rows(path: Path, trials: Sequence[Trial]) -> None:
    """Replace `path` by a parquet file of `trials`, without those for which the whole file would be refused.

    Raises:
        OSError: the folder cannot be written.
    """
    table = to_table(readable(trials))
    atomic.replace(path, lambda file: pq.write_table(table, file, write_page_checksum=True))
