"""Results of a class: each student's rows, the files that students upload, and the joint result of all rows.

A student's rows are read within limits, so that excess files in the folder affect only that student. An uploaded file
is checked like any foreign file; its code and nickname only serve to detect a wrong file. Only rows of the class's
question count; the others are listed with the reason. Nothing is averaged over machines: a student's crossover is
computed from that student's rows alone, and a spread is computed from such crossovers.
"""

import collections
import hashlib
import io
import logging
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .. import units
from ..answer import speedup, wording
from ..answer import study as studies
from ..answer import verdict as verdicts
from ..answer.judgement import Outcome
from ..answer.statistics import TIE
from ..answer.study import Study
from ..errors import CrossoverError, ForeignFile, NotAllowed, StoreError
from ..question.experiment import BEST_THREADS, MAX_CONTENDERS, Contender
from ..results import exchange, index
from ..results.index import File, unreadable_because
from ..results.parquet import from_table, read_file, to_table
from ..results.schema import SCHEMA, Trial
from ..results.store import Store, keep_most_complete
from ..text import as_line
from . import students
from .question import BASELINE, CHALLENGER, NEVER, SAME, ClassQuestion
from .students import Prediction, Student, fold_name

MAX_ROWS = 1_000
"""Maximum rows in a student's file and store; a question of a class has some tens."""

MOST_ROWS = 2 * MAX_ROWS
"""Maximum rows that are read, so that a measurement that was running when the limit was reached is still shown."""

MAX_EXCHANGE_BYTES = 16 * 2**20
"""Limit of a student's rows in bytes; as Python objects they need five times as much. A row has some thousand bytes."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Rows of a student without duplicates, by run and contender, and the reasons why others are unreadable."""

    rows: tuple[Trial, ...] = ()
    faults: tuple[str, ...] = ()


class StudentStore(Store):
    """The store of a student, which is not created again after the student or the class was removed."""

    def check_writable(self) -> None:
        """Check whether rows can be written, as for any store; raises StoreError, also if the student was removed."""
        if not self.folder.parent.is_dir():
            raise StoreError(f"The store {self.folder} cannot be written: its student or class was removed.")
        super().check_writable()


def read_rows(folder: Path) -> Measured:
    """Return the rows of a student's store; empty if the folder does not exist. Raises as `read_table` does."""
    table, faults = read_table(folder)
    ordered = table.sort_by([("started_at", "ascending"), ("trial_id", "ascending")])
    return Measured(rows=tuple(from_table(ordered)), faults=faults)


def read_table(folder: Path) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the rows of a student's store as a table of `SCHEMA`, in any order, and why others were not read.

    Raises:
        StoreError: the folder cannot be read.
    """
    faults: list[str] = []
    newest_first = sorted(index.list_files(folder), key=lambda file: (file.written_ns, file.path.name), reverse=True)
    tables = list(_read_within_bounds(newest_first, faults))
    return keep_most_complete(pa.concat_tables([SCHEMA.empty_table(), *tables])), tuple(faults)


def list_files(folder: Path) -> list[Path]:
    """Return the files of a student's store; raises as `read_table` does."""
    return sorted(file.path for file in index.list_files(folder))


def count_rows(file: Path) -> int:
    """Return the number of rows that a file declares; 0 if it cannot be read."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError, ValueError):
        return 0


def require_room(files: Sequence[Path], *, rows: int = 0, size: int = 0) -> None:
    """Raise NotAllowed if files, plus some additional rows and bytes, exceed what a student may have."""
    rows += sum(map(count_rows, files))
    size += sum(file.stat().st_size for file in files if file.exists())
    if rows > MAX_ROWS or size > MAX_EXCHANGE_BYTES:
        most = f"{MAX_ROWS:,} rows of {MAX_EXCHANGE_BYTES // 2**20} MiB"
        raise NotAllowed(
            f"A student may store {most} in a class, but these would be {rows:,} of {size / 2**20:,.1f} MiB."
        )


def compute_signature(folder: Path) -> str:
    """Return a text that changes with the files of a folder, empty without files; raises as `read_table` does."""
    found = sorted((file.path.name, file.size, file.written_ns) for file in index.list_files(folder))
    return hashlib.sha256(repr(found).encode(errors="surrogatepass")).hexdigest() if found else ""


def _read_within_bounds(newest_first: Sequence[File], faults: list[str]) -> Iterator[pa.Table]:
    rows = size = 0
    for file in newest_first:
        if rows >= MOST_ROWS:
            faults.append(f"only the newest {MOST_ROWS:,} rows count")
            return
        try:
            table = read_file(file.path, most_rows=MOST_ROWS - rows)[1]
        except FileNotFoundError:  # merged or removed since it was listed
            continue
        except ForeignFile as error:
            faults.append(f"a file cannot be read, because {error}")
            continue
        except OSError as error:
            faults.append(f"a file cannot be read, because {unreadable_because(error)}")
            continue
        rows, size = rows + table.num_rows, size + table.nbytes
        if size > MAX_EXCHANGE_BYTES:
            faults.append(f"only the newest rows count, as all take more than {MAX_EXCHANGE_BYTES // 2**20} MiB")
            return
        yield table


CODE_KEY, NICKNAME_KEY = b"crossover_class_code", b"crossover_class_nickname"

MAX_UPLOAD_BYTES = 5_000_000

MOST_TAKEN_BYTES = 64 * 2**20
"""Maximum memory of a class's rows for an export as one file; the rows of thirty students need at most ten MiB."""


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Result of receiving a file: new rows, rows that existed already, and why the file or rows were refused."""

    added: int = 0
    duplicates: int = 0
    refused: str = ""
    left_out: tuple[str, ...] = ()


def build_file(rows: Sequence[Trial], *, code: str, nickname: str) -> bytes:
    """Return a student's rows as the bytes of a parquet file that names its owner."""
    said = {CODE_KEY: students.format_code(code).encode(), NICKNAME_KEY: nickname.encode()}
    return _to_parquet(to_table(list(rows)), said)


def add_file(store: Store, data: bytes, name: str, *, question: ClassQuestion, code: str, nickname: str) -> Receipt:
    """Add the rows of an uploaded file to a student's store.

    Args:
        store: store of the student.
        data: content of the file.
        name: name of the file, for messages.
        question: question of the class; only its rows are added.
        code: join code of the class.
        nickname: nickname of the student.

    Raises:
        NotAllowed: the student would have too many rows.
        StoreError: the store cannot be written.
    """
    if len(data) > MAX_UPLOAD_BYTES:
        return Receipt(refused=f"it has more than the {MAX_UPLOAD_BYTES:,} bytes that a student's file may have")
    proposal = exchange.check_import(data, name, store, most_rows=MAX_ROWS)
    if proposal.refused:
        return Receipt(refused=proposal.refused[0].reason)
    if reason := _explain_excess(proposal.new, question) or _explain_wrong_file(data, code, nickname):
        return Receipt(refused=reason)
    mine, left_out = _select_from_table(proposal.new, question)
    require_room(list_files(store.folder), rows=mine.num_rows, size=mine.nbytes)
    kept = exchange.keep(exchange.Proposal(new=mine, duplicates=proposal.duplicates), store)
    if not kept.added and not kept.duplicates:
        return Receipt(refused=f"none of its rows can be pooled, because {left_out[0]}" if left_out else "it is empty")
    return Receipt(added=kept.added, duplicates=kept.duplicates, left_out=left_out)


def export_class(tables: Iterable[tuple[str, pa.Table]], kind: exchange.Format) -> bytes:
    """Return all rows of a class as one file, with the nickname as the last column.

    Raises StoreError if there are too many rows.
    """
    parts, size = [SCHEMA.empty_table().append_column("nickname", pa.array([], pa.string()))], 0
    for nickname, rows in tables:
        parts.append(rows.append_column("nickname", pa.array([nickname] * rows.num_rows, pa.string())))
        size += rows.nbytes
        if size > MOST_TAKEN_BYTES:
            raise StoreError(f"All rows take more than the {MOST_TAKEN_BYTES // 2**20} MiB that one file may have.")
    table = pa.concat_tables(parts)
    return exchange.export(table, kind) if kind == "csv" else _to_parquet(table, {})


def _explain_excess(rows: pa.Table, question: ClassQuestion) -> str:
    """Return why there are more rows than can have been measured for a class; the rows themselves are not checked.

    The result is empty if there are not too many rows.
    """
    runs = pc.value_counts(rows["run_id"])
    most = pc.max(runs.field("counts")).as_py() or 0
    if most > MAX_CONTENDERS:
        return f"it has a run of {most:,} rows, but a run has at most {MAX_CONTENDERS} contenders"
    if len(runs) > question.most_runs:
        return f"it has {len(runs):,} runs, but the class takes at most {question.most_runs:,} at once"
    if rows.nbytes > MAX_EXCHANGE_BYTES:
        return f"its rows take more than the {MAX_EXCHANGE_BYTES // 2**20} MiB that the rows of a student may take"
    return ""


def _select_from_table(rows: pa.Table, question: ClassQuestion) -> tuple[pa.Table, tuple[str, ...]]:
    mine, reasons = select_rows(question, from_table(rows))
    names_of_mine = pa.array([row.trial_id for row in mine], pa.string())
    return rows.filter(pc.is_in(rows["trial_id"], names_of_mine)), tuple(reasons)


def _explain_wrong_file(data: bytes, code: str, nickname: str) -> str:
    """Return why a complete file belongs to another student or class; empty if not, or if it names none."""
    said = pq.read_schema(pa.BufferReader(data)).metadata or {}
    said_code = said.get(CODE_KEY, b"").decode(errors="replace")
    said_nickname = said.get(NICKNAME_KEY, b"").decode(errors="replace")
    if said_code and students.format_code(said_code) != code:
        return "it was measured for another class"
    if said_nickname and fold_name(said_nickname) != fold_name(nickname):
        return f"it was measured under the nickname {said_nickname[:40]!r}, but you are {nickname!r} here"
    return ""


def _to_parquet(table: pa.Table, said: Mapping[bytes, bytes]) -> bytes:
    buffer = io.BytesIO()
    marked = table.replace_schema_metadata({**(SCHEMA.metadata or {}), **said})
    pq.write_table(marked, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


NAME_LENGTH, SENTENCE_LENGTH = 80, 500
"""Maximum displayed characters of a device's name and of a result in words, which may come from a foreign file."""

WithInterval = tuple[float | None, float | None, float | None]
"""A figure with the ends of its interval; each may be unknown."""

UNKNOWN: WithInterval = (None, None, None)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Result:
    """Result of one student, with the hardware names of the devices.

    Attributes:
        kind: device kind of the challenger, as in the rows.
        outcome: outcome of the crossover; for one training it follows from the faster device and is never `crossing`.
        estimate: size from which the challenger is faster, with its 95 % interval from `low` to `high`; None unless the
            outcome is `crossing`.
        speedup: speedup at the largest timed size; above 1 the challenger is faster. None if nothing was timed.
        speedup_low: lower end of its interval, up to `speedup_high`; None if the noise is unknown.
        winner: faster device at the largest size, according to the verdict; None if it is inconclusive.
        sizes: number of timed sizes.
        decided_sizes: sizes with a winner; empty for one training.
        from_file: whether it was measured elsewhere and uploaded as a file.
    """

    nickname: str
    baseline: str
    challenger: str
    kind: str
    outcome: Outcome
    estimate: float | None
    low: float | None
    high: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    winner: str | None
    sizes: int
    decided_sizes: tuple[float, ...]
    from_file: bool
    sentence: str

    @property
    def devices(self) -> str:
        """Both devices in words, by which results are grouped."""
        return f"{self.challenger} against {self.baseline}"

    def place(self, question: ClassQuestion) -> float | str | None:
        """Return the correct prediction; None if the result does not show it, or the size there is undecided."""
        if self.outcome == "gpu_always" and question.places and question.places[0] in self.decided_sizes:
            return question.places[0]
        if self.outcome == "cpu_always" and question.places and question.places[-1] in self.decided_sizes:
            return NEVER
        if self.estimate is None:
            return None
        return next((place for place in question.places if place >= self.estimate), NEVER)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Results of one pair of devices: their number, and the number and range of crossovers, None without any."""

    devices: str
    results: int
    crossings: int
    median: float | None
    lowest: float | None
    highest: float | None


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Number of predictions per key of `WINNERS`, and per size or `NEVER`, including answers without predictions."""

    students: int
    winners: Mapping[str, int]
    places: Mapping[float | str, int]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Findings about one student's rows, with reasons why some or all do not count, as clauses after a colon.

    Attributes:
        rows: rows that were measured on this host and count, for the curve of the class.
    """

    result: Result | None = None
    fault: str = ""
    rows: tuple[Trial, ...] = ()


def evaluate_student(question: ClassQuestion, student: Student, folder: Path) -> Finding:
    """Evaluate the rows in a student's folder; errors in them are part of the finding, never raised."""
    try:
        has = read_rows(folder)
        mine, reasons = select_rows(question, has.rows)
        fault = next(iter(has.faults), "") or (f"a row does not count, because {reasons[0]}" if reasons else "")
        here = tuple(row for row in mine if not row.origin)
        return Finding(result=_compute_result(question, student, mine), fault=fault, rows=here)
    except Exception as error:  # an unforeseen row affects only its sender
        _log.exception("The rows of a student could not be pooled")
        said = str(error).rstrip(".") if isinstance(error, CrossoverError) else type(error).__name__
        return Finding(fault=f"these rows cannot be evaluated: {said}")


def compute_result(question: ClassQuestion, student: Student, rows: Sequence[Trial]) -> Result | None:
    """Compute the result of a student's rows; None if none of them answers the question."""
    return _compute_result(question, student, select_rows(question, rows)[0])


def _compute_result(question: ClassQuestion, student: Student, mine: Sequence[Trial]) -> Result | None:
    axis = question.axis
    found = studies.studies(mine, axis=axis.name if axis else "samples", least=1)
    if not found:
        return None
    best = max(found, key=lambda entry: (len(entry.runs), not speedup.is_host(entry.runs[-1][1]), entry.newest))
    return _summarize_sweep(student, best) if axis else _summarize_training(student, best)


def select_rows(question: ClassQuestion, rows: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """Return the rows that are pooled, and the distinct reasons why others are not.

    Each contender of a run counts once, up to the maximum number of contenders. This limits the cost of pairwise
    comparisons within a run from a file.
    """
    mine: list[Trial] = []
    reasons: dict[str, None] = {}
    contenders: dict[str, set[str]] = {}
    for row in rows:
        there = contenders.setdefault(row.run_id, set())
        reason = question.objection(row)
        if not reason and row.contender in there:
            reason = f"its run has a second row of {row.contender!r:.40}"
        if not reason and len(there) >= MAX_CONTENDERS:
            reason = f"its run has more than the {MAX_CONTENDERS} contenders that a run can have"
        if reason:
            reasons[reason] = None
            continue
        there.add(row.contender)
        mine.append(row)
    return mine, list(reasons)


def pool_rows(question: ClassQuestion, rows: Sequence[Trial]) -> Study | None:
    """Return the curve of a class: all measurements of students on one host as one study; None without a size axis.

    The runs of a size that several students measured are pooled.
    """
    axis = question.axis
    found = studies.studies(rows, axis=axis.name, least=1, repeats=True) if axis else []
    return max(found, key=lambda entry: (len(entry.runs), entry.newest), default=None)


def find_nearest(predicted: Mapping[str, float], estimate: float) -> list[str]:
    """Return the nicknames whose predicted size is nearest to a crossover, as a ratio.

    The result has several nicknames if they are equally near.
    """
    away = {name: abs(math.log(place / estimate)) for name, place in predicted.items()}
    nearest = min(away.values(), default=0.0)
    return [name for name, distance in away.items() if math.isclose(distance, nearest, abs_tol=1e-9)]


def group_by_devices(results: Sequence[Result]) -> list[Group]:
    """Return the spread of crossovers by pair of devices, most results first."""
    by_devices: dict[str, list[Result]] = {}
    for entry in results:
        by_devices.setdefault(entry.devices, []).append(entry)
    found = []
    for devices, entries in by_devices.items():
        places = [entry.estimate for entry in entries if entry.estimate is not None]
        found.append(
            Group(
                devices=devices,
                results=len(entries),
                crossings=len(places),
                median=statistics.median(places) if places else None,
                lowest=min(places, default=None),
                highest=max(places, default=None),
            )
        )
    return sorted(found, key=lambda group: (-group.results, group.devices))


def count_predictions(question: ClassQuestion, predictions: Sequence[Prediction]) -> Tally:
    """Return how often each answer is expected."""
    places: dict[float | str, int] = dict.fromkeys((*question.places, NEVER) if question.places else (), 0)
    for entry in predictions:
        if entry.place in places and entry.place is not None:
            places[entry.place] += 1
    winners = collections.Counter(entry.winner for entry in predictions)
    return Tally(
        students=len(predictions), winners={name: winners[name] for name in (BASELINE, CHALLENGER, SAME)}, places=places
    )


def _summarize_sweep(student: Student, study: Study) -> Result:
    if len(study.runs) == 1:
        return _summarize_size(student, study)
    try:
        answer = study.crossover()
    except CrossoverError as error:
        return _build_result(student, study, "not_measurable", str(error))
    if answer.is_conditional:  # answers of loaded and quiet machines are never pooled
        return _build_result(student, study, "undecided", answer.sentence)
    timed = [size for size in answer.sizes if size.speedup is not None]
    last = timed[-1] if timed else None
    above = bool(answer.crossings) and answer.crossings[0].challenger_above
    crossing = answer.outcome == "crossing" and above
    # a challenger that wins below a size is an answer, but not to "from which size on"
    outcome = answer.outcome if crossing or answer.outcome != "crossing" else "several"
    place = (answer.estimate, answer.low, answer.high) if crossing else UNKNOWN
    figures = (last.speedup, last.low, last.high) if last else UNKNOWN
    winner = _find_winner(last.verdict, figures) if last else None
    return _build_result(
        *(student, study, outcome, answer.sentence),
        place=place,
        speedup=figures,
        winner=winner,
        decided_sizes=answer.decided_sizes,
    )


def _summarize_size(student: Student, study: Study) -> Result:
    """Return the result of a student who measured one size of the class: a speedup without a crossover."""
    found = speedup.speedup(*study.runs[-1])
    place = wording.place_on_axis(study.axis, wording.format_size(study.sizes[0]))
    sentence = f"At {place}: {verdicts.verdict_sentence(found)}"
    if found.is_conditional:
        return _build_result(student, study, "not_measurable", sentence)
    figures = (found.value, found.low, found.high)
    winner = _find_winner(found.verdict, figures)
    return _build_result(student, study, "not_measurable", sentence, speedup=figures, winner=winner)


def _summarize_training(student: Student, study: Study) -> Result:
    found = speedup.speedup(*study.runs[-1])
    if found.is_conditional:
        return _build_result(student, study, "undecided", found.sentence)
    outcomes: dict[str, Outcome] = {"gpu_faster": "gpu_always", "cpu_faster": "cpu_always", "too_close": "undecided"}
    outcome, figures = outcomes.get(found.verdict, "not_measurable"), (found.value, found.low, found.high)
    winner = _find_winner(found.verdict, figures)
    return _build_result(student, study, outcome, found.sentence, speedup=figures, winner=winner)


def _find_winner(verdict: verdicts.VerdictCode, figures: WithInterval) -> str | None:
    """Return the faster device by a verdict, or that both were about as fast; None if it is inconclusive."""
    value, low, high = figures
    if value is None or low is None or high is None:
        return None
    if verdict in verdicts.WINNERS:
        return CHALLENGER if value > 1 else BASELINE
    within = abs(math.log(value)) <= math.log(TIE) and not low < 1 < high
    return SAME if within or (low >= 1 / TIE and high <= TIE) else None


def _build_result(
    student: Student,
    study: Study,
    outcome: Outcome,
    sentence: str,
    *,
    place: WithInterval = UNKNOWN,
    speedup: WithInterval = UNKNOWN,
    winner: str | None = None,
    decided_sizes: tuple[float, ...] = (),
) -> Result:
    baseline, challenger = study.runs[-1]
    return Result(
        nickname=student.nickname,
        baseline=_name_device(baseline),
        challenger=_name_device(challenger),
        kind=challenger.device_kind,
        outcome=outcome,
        estimate=place[0],
        low=place[1],
        high=place[2],
        speedup=speedup[0],
        speedup_low=speedup[1],
        speedup_high=speedup[2],
        winner=winner,
        sizes=len(study.runs),
        decided_sizes=decided_sizes,
        from_file=bool(challenger.origin),
        sentence=as_line(sentence, SENTENCE_LENGTH),
    )


def _name_device(row: Trial) -> str:
    """Return the display name of a device: its hardware name and, for a CPU without all threads, their number."""
    name = as_line(row.device_name, NAME_LENGTH)
    threads = Contender.parse(row.contender).threads
    return (
        name
        if not speedup.is_host(row) or threads == BEST_THREADS
        else f"{name}, {units.format_quantity(threads, 'thread')}"
    )
