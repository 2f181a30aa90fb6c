"""A student's rows as a file for the class, and files from students into their stores.

A file carries the class's code and the nickname beside its rows, so that the wrong one is noticed; who it counts for
is decided by who brings it. How much there is of it is looked at before anything of it becomes an object; its rows are
checked as any foreign file is, and only those of the class's question are kept.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.classroom import codes, measured, names, pooled
from core.classroom.classes import Classes
from core.classroom.measured import MAX_EXCHANGE_BYTES, MAX_ROWS
from core.classroom.question import ClassQuestion
from core.classroom.records import Class, Student
from core.errors import StoreError
from core.question.experiment import MAX_CONTENDERS
from core.results.intake import exchange
from core.results.schema import SCHEMA, Trial
from core.results.tables import from_table, to_table

CODE_KEY, NICKNAME_KEY = b"crossover_class_code", b"crossover_class_nickname"

MAX_UPLOAD_BYTES = 5_000_000

MOST_TAKEN_BYTES = 64 * 2**20
"""Rows of a whole class in memory that are given out as one file; those of thirty students take ten MiB at most."""


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What became of a file: rows that were new or there already, why it was not taken, why some rows were not."""

    added: int = 0
    duplicates: int = 0
    refused: str = ""
    left_out: tuple[str, ...] = ()


def to_file(rows: Sequence[Trial], *, code: str, nickname: str) -> bytes:
    """A student's rows as the bytes of a parquet file that says whose they are."""
    said = {CODE_KEY: codes.format_code(code).encode(), NICKNAME_KEY: nickname.encode()}
    return _parquet(to_table(list(rows)), said)


def take(classes: Classes, class_: Class, student: Student, data: bytes, name: str) -> Receipt:
    """Add the rows of a student's file to that student's results.

    Raises:
        NotAllowed: the class is closed, or the student waits to be admitted, was removed, or would have too many rows.
        StoreError: the store cannot be written.
    """
    classes.require_part(class_, student)
    store = classes.store(class_, student)
    if len(data) > MAX_UPLOAD_BYTES:
        return Receipt(refused=f"it has more than the {MAX_UPLOAD_BYTES:,} bytes that a student's file may have")
    proposal = exchange.check_import(data, name, store, most_rows=MAX_ROWS)
    if proposal.refused:
        return Receipt(refused=proposal.refused[0].reason)
    if reason := _too_much(proposal.new, class_.question) or _other_owner_reason(data, class_, student):
        return Receipt(refused=reason)
    mine, left_out = _select_valid_rows(proposal.new, class_.question)
    measured.require_room(measured.files(store.folder), rows=mine.num_rows, size=mine.nbytes)
    kept = exchange.keep(exchange.Proposal(new=mine, duplicates=proposal.duplicates), store)
    if not kept.added and not kept.duplicates:
        return Receipt(refused=f"none of its rows can be pooled, because {left_out[0]}" if left_out else "it is empty")
    return Receipt(added=kept.added, duplicates=kept.duplicates, left_out=left_out)


def require_room(classes: Classes, class_: Class, student: Student) -> None:
    """Find out whether a student may measure once more.

    Raises:
        NotAllowed: they have as many rows as a student may have, or take no part in the class.
        StoreError: their results cannot be read.
    """
    classes.require_part(class_, student)
    measured.require_room(measured.files(classes.store(class_, student).folder), rows=1)


def everything(tables: Iterable[tuple[str, pa.Table]], kind: exchange.Format) -> bytes:
    """All rows of a class as one file, the nickname as last column; raises StoreError where they are too many."""
    parts, size = [SCHEMA.empty_table().append_column("nickname", pa.array([], pa.string()))], 0
    for nickname, rows in tables:
        parts.append(rows.append_column("nickname", pa.array([nickname] * rows.num_rows, pa.string())))
        size += rows.nbytes
        if size > MOST_TAKEN_BYTES:
            raise StoreError(f"All rows take more than the {MOST_TAKEN_BYTES // 2**20} MiB that one file may have.")
    table = pa.concat_tables(parts)
    return exchange.export(table, kind) if kind == "csv" else _parquet(table, {})


def _too_much(rows: pa.Table, question: ClassQuestion) -> str:
    """Why rows are more than can have been measured for a class, before any of them is looked at; empty if not."""
    runs = pc.value_counts(rows["run_id"])
    most = pc.max(runs.field("counts")).as_py() or 0
    if most > MAX_CONTENDERS:
        return f"it has a run of {most:,} rows, and a run has {MAX_CONTENDERS} contenders at most"
    if len(runs) > question.most_runs:
        return f"it has {len(runs):,} runs, and the class takes {question.most_runs:,} at once"
    if rows.nbytes > MAX_EXCHANGE_BYTES:
        return f"its rows take more than the {MAX_EXCHANGE_BYTES // 2**20} MiB that those of a student may take"
    return ""


def _select_valid_rows(rows: pa.Table, question: ClassQuestion) -> tuple[pa.Table, tuple[str, ...]]:
    mine, reasons = pooled.split_comparable(question, from_table(rows))
    names_of_mine = pa.array([row.trial_id for row in mine], pa.string())
    return rows.filter(pc.is_in(rows["trial_id"], names_of_mine)), tuple(reasons)


def _other_owner_reason(data: bytes, class_: Class, student: Student) -> str:
    """Why a file that was read whole is not this student's for this class; one that does not say is."""
    said = pq.read_schema(pa.BufferReader(data)).metadata or {}
    code = said.get(CODE_KEY, b"").decode(errors="replace")
    nickname = said.get(NICKNAME_KEY, b"").decode(errors="replace")
    if code and codes.format_code(code) != class_.code:
        return "it was measured for another class"
    if nickname and names.fold_name(nickname) != names.fold_name(student.nickname):
        return f"it was measured under the nickname {nickname[:40]!r}, and you are {student.nickname!r} here"
    return ""


def _parquet(table: pa.Table, said: Mapping[bytes, bytes]) -> bytes:
    buffer = io.BytesIO()
    marked = table.replace_schema_metadata({**(SCHEMA.metadata or {}), **said})
    pq.write_table(marked, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()
