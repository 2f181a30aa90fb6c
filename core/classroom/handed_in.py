"""A student's rows as a file for the class, and files from students into their stores.

A file carries the class's code and the nickname beside its rows, so that the wrong one is noticed; who it counts for
is decided by who brings it. Its rows are checked as any foreign file is, and only those of the class's question are
kept.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from core.classroom import codes
from core.classroom.classes import Class, Classes, Student
from core.errors import NotAllowed
from core.results import exchange
from core.results.schema import SCHEMA, Trial, from_table, to_table

CODE_KEY, NICKNAME_KEY = b"crossover_class_code", b"crossover_class_nickname"

MAX_UPLOAD_BYTES = 5_000_000
MAX_ROWS = 1_000
"""Rows that are kept of one student; a question of a class has some tens."""


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What became of a file.

    Attributes:
        added: rows that were new.
        duplicates: rows that were there already.
        refused: why the file was not taken; empty if it was.
        left_out: why some of its rows were not.
    """

    added: int = 0
    duplicates: int = 0
    refused: str = ""
    left_out: tuple[str, ...] = ()


def to_file(rows: Sequence[Trial], *, code: str, nickname: str) -> bytes:
    """A student's rows as the bytes of a parquet file that says whose they are."""
    said = {CODE_KEY: codes.normal(code).encode(), NICKNAME_KEY: nickname.encode()}
    return _parquet(to_table(list(rows)), said)


def take(classes: Classes, of: Class, student: Student, data: bytes, name: str) -> Receipt:
    """Add the rows of a student's file to that student's results.

    Args:
        classes: where the class is.
        of: the class.
        student: who brings it.
        data: the file.
        name: of the file.

    Raises:
        NotAllowed: the class is closed, or the student has too many rows.
        StoreError: the store cannot be written.
    """
    classes.require_open(of)
    store = classes.store(of, student)
    if len(data) > MAX_UPLOAD_BYTES:
        return Receipt(refused=f"it has more than the {MAX_UPLOAD_BYTES:,} bytes that a student's file may have")
    proposal = exchange.check(data, name, store)
    if proposal.refused:
        return Receipt(refused=proposal.refused[0].reason)
    if reason := _of_another(data, of, student):
        return Receipt(refused=reason)
    reasons = [of.question.objection(row) for row in from_table(proposal.new)]
    mine = proposal.new.filter(pa.array([not reason for reason in reasons], pa.bool_()))
    if store.check().rows + mine.num_rows > MAX_ROWS:
        raise NotAllowed(f"A student may have {MAX_ROWS:,} rows in a class, and this file would make more.")
    kept = exchange.keep(exchange.Proposal(new=mine, duplicates=proposal.duplicates), store)
    left_out = tuple(dict.fromkeys(filter(None, reasons)))
    if not kept.added and not kept.duplicates:
        return Receipt(refused=f"none of its rows can be pooled, because {left_out[0]}" if left_out else "it is empty")
    return Receipt(added=kept.added, duplicates=kept.duplicates, left_out=left_out)


def everything(by_nickname: Mapping[str, Sequence[Trial]], kind: exchange.Format) -> bytes:
    """All rows of a class as one file, with the nickname as a last column."""
    tables = [
        to_table(list(rows)).append_column("nickname", pa.array([nickname] * len(rows), pa.string()))
        for nickname, rows in by_nickname.items()
    ]
    empty = SCHEMA.empty_table().append_column("nickname", pa.array([], pa.string()))
    table = pa.concat_tables([empty, *tables])
    return exchange.export(table, kind) if kind == "csv" else _parquet(table, {})


def _of_another(data: bytes, of: Class, student: Student) -> str:
    """Why a file that was read whole is not this student's for this class; one that does not say is."""
    said = pq.read_schema(pa.BufferReader(data)).metadata or {}
    code = said.get(CODE_KEY, b"").decode(errors="replace")
    nickname = said.get(NICKNAME_KEY, b"").decode(errors="replace")
    if code and codes.normal(code) != of.code:
        return "it was measured for another class"
    if nickname and nickname.casefold() != student.nickname.casefold():
        return f"it was measured under the nickname {nickname[:40]!r}, and you are {student.nickname!r} here"
    return ""


def _parquet(table: pa.Table, said: Mapping[bytes, bytes]) -> bytes:
    buffer = io.BytesIO()
    marked = table.replace_schema_metadata({**(SCHEMA.metadata or {}), **said})
    pq.write_table(marked, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()
