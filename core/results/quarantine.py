"""Reading of a foreign file in a separate process with limited memory and time, which may crash safely.

pyarrow ends the whole process on some broken files, and unpacks a bomb of a few kilobytes into gigabytes before it can
report the size. So a child process reads and checks the bytes and returns the rows unpacked. The size of its reply is
the size of the rows in memory. Nothing is stored here, and rows are not compared with each other.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ForeignFile, StoreError
from ..files.project import START_FOLDER, locate_module
from .parquet import BYTE_BYTES, MAX_FILE_BYTES, object_bytes, read_file
from .schema import SCHEMA, SCHEMA_VERSION

MEMORY_BYTES = 640 * 2**20
"""Limit of the child's memory: three times the rows of the largest file, and 120 MiB for Python and pyarrow."""

SECONDS = 120
"""Time limit of the child in seconds; the largest file takes 3 s on an idle core, and the child has low priority."""

MAX_IMPORT_ROWS = 20_000
"""Limit of the rows of one file, checked before anything is unpacked. A larger store is imported in several files."""

MAX_BLOCKS = 20_000
"""Maximum timed blocks of one row: 40 minutes of the shortest blocks. Rows that were measured here may have any number;
a foreign row must not delay its readers.
"""

MAX_OBJECT_BYTES = 256 * 2**20
"""Memory limit of the rows of one file as objects: `MAX_IMPORT_ROWS` rows with times only, or about 10,000 others."""

MAX_UNPACKED_BYTES = MAX_OBJECT_BYTES // BYTE_BYTES
"""Memory limit of the rows of one file as a table."""

MAX_CHILDREN = 2
"""Maximum number of children at a time; further callers wait, so that uploads of a class do not use all memory."""

_REASON_LENGTH = 300
_TOO_LONG = f"reading it takes more than the {SECONDS} seconds that a foreign file may take"
_BROKE = f"reading it ends the process that checks it, or takes more than {MEMORY_BYTES // 2**20:,} MiB of memory"

_places = threading.BoundedSemaphore(MAX_CHILDREN)


def read_foreign_file(source: Path | bytes, *, most_rows: int = MAX_IMPORT_ROWS) -> pa.Table:
    """Read and check the rows of a foreign file.

    Args:
        source: the file or its bytes.
        most_rows: limit of the rows that the file declares; a larger file is refused before anything is unpacked.

    Returns:
        Rows of `SCHEMA`, every value checked.

    Raises:
        ForeignFile: the file is truncated, not Crossover's, too large, hostile, or of a newer version.
        StoreError: the file cannot be opened, or no process can be started.
    """
    try:
        with _open_copy(source) as content, tempfile.TemporaryFile() as reply, _places:
            code = _run_child(content, reply, most_rows)
            return _parse_reply(code, reply)
    except OSError as error:
        name = source if isinstance(source, Path) else "The file"
        raise StoreError(f"{name!s:.200} cannot be read: {error.strerror or error}.") from error


def _open_copy(source: Path | bytes) -> IO[bytes]:
    """Return a copy with exactly the counted bytes, even if the original changes meanwhile."""
    with tempfile.TemporaryFile() if isinstance(source, bytes) else source.open("rb") as original:
        data = source if isinstance(source, bytes) else original.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ForeignFile(f"it has more than the {MAX_FILE_BYTES:,} bytes that are read")
    content = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    content.write(data)
    content.seek(0)
    return content


def _run_child(content: IO[bytes], reply: IO[bytes], most_rows: int) -> int:
    """Let a child read `content` and write `reply`; returns its exit status, negative if a signal ended it."""
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", locate_module(__package__, "quarantine"), str(most_rows)]
    try:
        return subprocess.run(
            command,
            stdin=content,
            stdout=reply,
            stderr=subprocess.DEVNULL,
            cwd=START_FOLDER,
            env=environment,
            timeout=SECONDS,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired as error:
        raise ForeignFile(_TOO_LONG) from error


def _parse_reply(code: int, reply: IO[bytes]) -> pa.Table:
    """Parse the child's reply with the same checks as a foreign file: its size first, then its form."""
    size = reply.seek(0, os.SEEK_END)
    reply.seek(0)
    heading = reply.readline(4 * _REASON_LENGTH + 100)
    try:
        refused = json.loads(heading)["refused"]
    except (ValueError, TypeError, KeyError):
        raise ForeignFile(_TOO_LONG if code == _cpu_signal() else _BROKE) from None
    if refused:
        raise ForeignFile(str(refused)[:_REASON_LENGTH])
    if code != 0 or size > _most_reply_bytes():
        raise ForeignFile(_BROKE)
    try:
        table = pa.ipc.open_stream(pa.py_buffer(reply.read())).read_all()
        table.validate(full=True)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise ForeignFile(_BROKE) from error
    if not table.schema.equals(SCHEMA):
        raise ForeignFile(_BROKE)
    return table


def _most_reply_bytes() -> int:
    """Return the limit of a reply in bytes: the rows, their framing, and the header."""
    return MAX_UNPACKED_BYTES + 16 * 2**20


def _cpu_signal() -> int | None:
    """Return the exit status of a process that exceeded its processor time; None if there is no such limit."""
    if sys.platform == "win32":
        return None
    import signal

    return -int(signal.SIGXCPU)


def check_foreign_rows(data: bytes, most_rows: int = MAX_IMPORT_ROWS) -> pa.Table:
    """Return the rows of a file in the child process; call it nowhere else, because it may end the process.

    Args:
        data: content of the file.
        most_rows: maximum rows; a larger file is refused.

    Raises:
        ForeignFile: the file is truncated, not Crossover's, too large, hostile, or of a newer version.
    """
    try:
        version, table = read_file(pa.BufferReader(data), most_rows=most_rows)
        if version > SCHEMA_VERSION:  # its rows would lose unknown columns, and later count as complete
            raise ForeignFile("it was written by a newer version of Crossover, which is needed to import it")
        if (pc.max(pc.list_value_length(table["block_steps"])).as_py() or 0) > MAX_BLOCKS:
            raise ForeignFile(f"it has a row of more than the {MAX_BLOCKS:,} timed blocks that are imported")
        if object_bytes(table) > MAX_OBJECT_BYTES:
            most = MAX_OBJECT_BYTES // 2**20
            raise ForeignFile(f"its rows take more than the {most:,} MiB of memory that are imported at once")
        return table
    except MemoryError as error:
        raise ForeignFile("it unpacks to more memory than there is") from error


def _limit() -> None:
    """Set the limits of this process if the system supports them; on Windows only the time is limited."""
    if sys.platform == "win32":
        return
    import resource

    os.nice(10)  # a measurement may be running
    # macOS ignores the data limit; Linux applies it to all allocations
    for name, value in (
        (resource.RLIMIT_DATA, MEMORY_BYTES),
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_FSIZE, _most_reply_bytes()),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(name)[1]
        resource.setrlimit(name, (value if hard == resource.RLIM_INFINITY else min(value, hard),) * 2)


def _main(source: BinaryIO, reply: BinaryIO, most_rows: int) -> None:
    _limit()
    try:
        table = check_foreign_rows(source.read(MAX_FILE_BYTES), most_rows)
    except ForeignFile as error:
        reply.write(json.dumps({"refused": str(error)[:_REASON_LENGTH]}).encode() + b"\n")
        return
    reply.write(json.dumps({"refused": ""}).encode() + b"\n")
    with pa.ipc.new_stream(reply, SCHEMA) as stream:
        stream.write_table(table)
    reply.flush()


class WithoutPandas:
    """Import hook that hides pandas, whose import by pyarrow would take as long as everything else."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


if __name__ == "__main__":
    sys.meta_path.insert(0, WithoutPandas())
    _main(sys.stdin.buffer, sys.stdout.buffer, int(sys.argv[1]))
