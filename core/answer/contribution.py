"""A contribution: one zip file with the rows of one machine, facts about it, and checks of its timing.

`pack_contribution` writes it and `check_contribution` reads a received file: a modified, damaged or implausible file is
refused with one sentence. Accepted rows are marked by their origin and count as unconfirmed until a second machine with
the same card agrees. Nothing here measures.
"""

import hashlib
import io
import itertools
import json
import math
import re
import statistics
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from .. import units
from ..errors import ForeignFile, StoreError
from ..files.project import find_origin
from ..question.experiment import PROTOCOL_VERSION, Contender, Experiment, Point, display_name
from ..question.fields import TRAINING
from ..results import exchange, quarantine
from ..results.parquet import from_table, to_table
from ..results.schema import Trial
from .statistics import TIE

ROWS, FACTS, CHECKS = "rows.parquet", "facts.json", "checks.json"

FORMAT = 1
"""Version of the file format; files of other versions are refused."""

PAIRS = 6
"""Pairs of blocks of each training: the minimum for a 95 % interval of the median."""

TOTAL_S = 300.0
"""Time limit of all trainings in seconds; time that the first trainings do not use goes to the last, which are the
largest.
"""

MAX_BYTES = {ROWS: 8 * 2**20, FACTS: 2**16, CHECKS: 2**16}
"""Maximum bytes of each unpacked part; eight trainings need some hundred kilobytes."""

TRAININGS: Mapping[str, Point] = {
    **{f"disc, depth {depth}": Point(dataset="disc", depth=depth) for depth in (4, 8, 11)},
    **{
        f"signal, hidden size {size:,}": Point(dataset="signal", hidden_size=size, data_path="resident")
        for size in (100, 1_000, 4_000)
    },
    "digits, convolutional": Point(dataset="digits", model="cnn"),
    "token order, transformer": Point(dataset="token-order", model="transformer"),
}
"""Trainings by name, from far too small for a GPU to large enough."""

RECORDED = ("disc, depth 8", "signal, hidden size 1,000")
"""Trainings that are also timed as a recorded graph, whose replay shows how long the card is busy."""

SCRIPTED = "disc, depth 8"
"""The training whose generated PyTorch script is run as well."""


def plan_experiments(device: str, cores: int, *, has_graphs: bool) -> Iterator[tuple[str, Experiment]]:
    """Yield the trainings of a contribution with their names.

    Args:
        device: the accelerator; `cpu` on a machine without one, where one thread is compared with all threads.
        cores: usable processor threads.
        has_graphs: whether the accelerator replays recorded graphs.
    """
    both = (Contender(), Contender(device=device))
    if device == "cpu":
        both = (Contender(threads=1), Contender(threads=max(2, cores)))
    for name, point in TRAININGS.items():
        graph = (Contender.parse(f"{device}+graph10"),) if has_graphs and name in RECORDED else ()
        yield (
            name,
            Experiment(point=point, contenders=(*both, *graph), budget_s=TOTAL_S, pairs=PAIRS),
        )


FORM = "issues/new?template=contribution.yml"
"""Address of the issue form, relative to the repository."""


def find_form_address() -> str:
    """Return the address of the issue form in the repository of this code; empty without an https address."""
    address = find_origin().address.removesuffix(".git").rstrip("/")
    return f"{address}/{FORM}" if address.startswith("https://") else ""


# Packing


def pack_contribution(trials: Sequence[Trial], facts: Mapping[str, Any], checks: Mapping[str, Any]) -> bytes:
    """Return the bytes of the file: rows without messages, facts, and checks with the hashes of both."""
    table = to_table(trials)
    index = table.schema.get_field_index("message")  # an error message may contain a path
    table = table.set_column(index, table.schema.field(index), pa.array([""] * len(trials), pa.string()))
    parts = {ROWS: exchange.export(table, "parquet"), FACTS: _to_json(facts)}
    hashes = {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}
    parts[CHECKS] = _to_json({"format": FORMAT, "sha256": hashes, **checks})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, part in parts.items():
            packed.writestr(name, part)
    return buffer.getvalue()


def describe_contribution(data: bytes) -> str:
    """Describe the contents of a packed file for its sender: facts and checks in full, rows as columns."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    table = quarantine.read_foreign_file(parts[ROWS])
    lines = [f"{name}: {units.format_memory(len(part))}" for name, part in parts.items()]
    lines += ["", FACTS, parts[FACTS].decode(), "", CHECKS, parts[CHECKS].decode(), "", f"{ROWS}, by column"]
    for column in table.column_names:
        values = table[column].to_pylist()
        numbers = sum(len(value) for value in values) if isinstance(values[0], list) else 0
        words = sorted({str(value) for value in values if value not in (None, "")}) if not numbers else []
        shown = f"{numbers:,} numbers" if numbers else ", ".join(words[:4]) + (", …" if len(words) > 4 else "")
        if shown and not isinstance(values[0], bytes):
            lines.append(f"  {column}: {shown[:160]}")
    return "\n".join(lines)


def _to_json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


# Reading


def check_contribution(source: Path | bytes) -> tuple[pa.Table, str]:
    """Read a contributed file and check everything that can be checked without its machine.

    Returns:
        The rows and their origin, which depends on the content of the file and not on its name.

    Raises:
        ForeignFile: the file is damaged, modified or implausible; the message states the reason.
        StoreError: the file cannot be read.
    """
    parts = _unpack(source)
    facts, checks = (_from_json(parts[name], name) for name in (FACTS, CHECKS))
    if checks.get("format") != FORMAT:
        raise ForeignFile(f"{CHECKS} has format {checks.get('format')!r:.20}; this version reads format {FORMAT}")
    for name in (ROWS, FACTS):
        hashes = checks.get("sha256")
        if not isinstance(hashes, dict) or hashes.get(name) != hashlib.sha256(parts[name]).hexdigest():
            raise ForeignFile(f"{name} was changed after it was packed: its SHA-256 is not the one in {CHECKS}")
    table = quarantine.read_foreign_file(parts[ROWS])
    check_rows(from_table(table), checks, facts)
    return table, f"{exchange.CONTRIBUTED}{hashlib.sha256(parts[ROWS]).hexdigest()[:12]}.zip"


def _unpack(source: Path | bytes) -> dict[str, bytes]:
    """Return the parts of the file, each unpacked up to its size limit."""
    most_packed = sum(MAX_BYTES.values())
    try:
        data = source if isinstance(source, bytes) else source.read_bytes()
    except OSError as error:
        raise StoreError(f"{source!s:.200} cannot be read: {error.strerror or error}.") from error
    if len(data) > most_packed:
        raise ForeignFile(f"it exceeds the limit of {units.format_memory(most_packed)}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            if sorted(packed.namelist()) != sorted(MAX_BYTES):
                raise ForeignFile(f"it must contain {ROWS}, {FACTS} and {CHECKS}, and nothing else")
            parts = {}
            for name, most in MAX_BYTES.items():
                with packed.open(name) as part:
                    parts[name] = part.read(most + 1)
                if len(parts[name]) > most:
                    raise ForeignFile(f"{name} exceeds the limit of {units.format_memory(most)}")
            return parts
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise ForeignFile(f"it is not a readable zip file: {str(error)[:100]}") from error
    except zlib.error as error:
        raise ForeignFile("it is damaged: part of it cannot be unpacked") from error


def _from_json(data: bytes, name: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ForeignFile(f"{name} is not a JSON object")
    return found


# Credible values


@dataclass(frozen=True, kw_only=True)
class Peak:
    """Peak rates of a device according to its data sheet.

    Attributes:
        fp32: operations per second in fp32.
        reduced: dense operations per second in TF32, bf16 or fp16.
        memory: bytes per second.
    """

    fp32: float
    reduced: float
    memory: float


def _peak(fp32_tflops: float, reduced_tflops: float, memory_gb_s: float) -> Peak:
    return Peak(fp32=fp32_tflops * 1e12, reduced=reduced_tflops * 1e12, memory=memory_gb_s * 1e9)


PEAKS: Mapping[str, Peak] = {
    r"\bT4\b": _peak(8.1, 65, 320),
    r"\bP100\b": _peak(10.6, 21.2, 732),
    r"\bV100\b": _peak(16.4, 130, 1_134),
    r"\bA100\b": _peak(19.5, 312, 2_039),
    r"\bA10G?\b": _peak(35, 125, 600),
    r"\bL4\b": _peak(30.3, 121, 300),
    r"\bL40S?\b": _peak(91.6, 362, 864),
    r"\bH100\b": _peak(67, 989, 3_352),
    r"\bH200\b": _peak(67, 989, 4_800),
    r"RTX 30\d\d": _peak(40, 160, 1_008),
    r"RTX 40\d\d": _peak(82.6, 330, 1_008),
    r"RTX 50\d\d": _peak(104.8, 419, 1_792),
    r"MI300": _peak(163.4, 1_307, 5_300),
    r"RX 7\d\d\d": _peak(61.4, 123, 960),
    r"Apple M\d": _peak(36, 72, 820),
}
"""Peak rates by pattern of the device's name, from the makers' data sheets; a family has the rates of its fastest card.
"""

ANY_ACCELERATOR = _peak(200, 5_000, 10_000)
"""Peak rates of a card that is not listed, above the rates of all cards on sale."""

CPU_THREAD = _peak(0.4, 6.4, 0)
"""Peak rates of one processor thread: 64 fp32 operations per cycle at 6 GHz; 16 times as many with matrix units."""

CPU_MEMORY = 1.3e12
"""Memory bandwidth of two sockets with twelve channels, in bytes per second."""

MARGIN = 1.3
"""Factor on data-sheet rates, because boost clocks exceed them."""

CACHE_BYTES, CACHE_SPEED = 512 * 2**20, 10
"""Maximum size of weights that may stay in a cache, and maximum speed of the cache relative to the memory."""

BYTES_PER_PARAMETER = 8
"""Minimum memory traffic per parameter: every step reads each fp32 weight at least once and writes it once."""

MOST_BELOW_MEDIAN = 10
"""Maximum factor by which a block may be faster than the median of its row; other programs only make blocks slower."""

MOST_DRAIN_SHARE = 0.05

MOST_LOSS_DIFFERENCE, OTHER_SEGMENT_DIFFERENCE = 0.02, 0.15
"""Maximum relative difference of the first losses of two devices: the first covers rounding over one segment of the
loss curve. The second is for segments of different lengths, and also covers the decrease of the loss.
"""

SAME_IN_A_RUN = ("experiment_id", "dataset_hash", "parameters", "flops_per_step", *TRAINING)
"""Columns that describe the training, equal in all rows of a run."""

BUSY_ROOM = 1.1
"""Tolerance of the busy time: it is measured separately from the blocks, and clocks vary by some percent."""

COMMIT = re.compile(r"[0-9a-f]{12}")


def check_rows(trials: Sequence[Trial], checks: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Raise an error if rows are implausible.

    Raises:
        ForeignFile: a row is implausible; the message states the first reason.
    """
    _check_protocol(trials)
    _check_facts(trials, checks, facts)
    for trial in trials:
        _check_blocks(trial)
        _check_busy(trial)
    runs: dict[str, list[Trial]] = {}
    for trial in trials:
        runs.setdefault(trial.run_id, []).append(trial)
    for rows in runs.values():
        _check_run(rows)


def _check_protocol(trials: Sequence[Trial]) -> None:
    if not trials:
        raise ForeignFile("it has no rows")
    for trial in trials:
        if trial.protocol_version != PROTOCOL_VERSION:
            raise ForeignFile(
                f"its rows were measured by protocol {trial.protocol_version}; protocol {PROTOCOL_VERSION} is needed"
            )
        if not COMMIT.fullmatch(trial.app_commit):
            raise ForeignFile(
                "its rows were measured by changed or unknown code "
                f"(commit {trial.app_commit[:20]!r}); a commit without changes is needed"
            )
        if trial.training:
            raise ForeignFile("it has rows of a custom script; only the built-in trainings are accepted")
        if not trial.drained:
            raise ForeignFile(f"{_name(trial)} was timed without synchronizing the device")
    if len({trial.machine_id for trial in trials}) > 1:
        raise ForeignFile("it has rows of several machines; a file may contain rows of one machine only")


def _check_facts(trials: Sequence[Trial], checks: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Check that the facts name the devices of the rows, and that the synchronization of each device was checked."""
    measured = checks.get("devices")
    for device, name in sorted({(trial.device, trial.device_name) for trial in trials}):
        told = facts.get("devices")
        if not isinstance(told, dict) or told.get(device) != name:
            raise ForeignFile(f"{FACTS} does not name the device {device} ({name[:60]}) of its rows")
        figures = measured.get(device) if isinstance(measured, dict) else None
        share = figures.get("drain_share") if isinstance(figures, dict) else None
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share < math.inf:
            raise ForeignFile(f"{CHECKS} lacks the synchronization check of {device}")
        if share >= MOST_DRAIN_SHARE:
            raise ForeignFile(
                f"synchronizing {device} takes {units.format_share(share)} of a block; "
                f"less than {units.format_share(MOST_DRAIN_SHARE)} is needed"
            )


def find_peak(trial: Trial) -> Peak:
    """Return the peak rates of a row's device, with a margin for boost clocks."""
    if trial.device_kind == "cpu":
        cores = trial.cores
        return Peak(
            fp32=MARGIN * cores * CPU_THREAD.fp32,
            reduced=MARGIN * cores * CPU_THREAD.reduced,
            memory=MARGIN * CPU_MEMORY,
        )
    known = next((peak for name, peak in PEAKS.items() if re.search(name, trial.device_name)), ANY_ACCELERATOR)
    return Peak(fp32=MARGIN * known.fp32, reduced=MARGIN * known.reduced, memory=MARGIN * known.memory)


def _check_blocks(trial: Trial) -> None:
    """Check every raw block of a row against the peak of the device and against the other blocks."""
    times = trial.step_s
    if len(times) < PAIRS:
        raise ForeignFile(f"{_name(trial)} has {len(times)} timed blocks; at least {PAIRS} are needed")
    peak, median = find_peak(trial), statistics.median(times)
    most_flops = peak.fp32 if trial.precision == "fp32" else peak.reduced
    weights = BYTES_PER_PARAMETER * trial.parameters
    most_bytes = peak.memory * (CACHE_SPEED if weights <= CACHE_BYTES else 1)
    for number, step_s in enumerate(times, 1):
        flops, speed = trial.flops_per_step / step_s, weights / step_s
        block = f"block {number} of {_name(trial)}"
        if flops > most_flops:
            raise ForeignFile(
                f"{block} computes {_rate(flops, 'FLOP/s')}, above the peak of {_rate(most_flops, 'FLOP/s')}"
            )
        if speed > most_bytes:
            raise ForeignFile(f"{block} moves {_rate(speed, 'B/s')}, above the peak of {_rate(most_bytes, 'B/s')}")
        if step_s * MOST_BELOW_MEDIAN < median:
            raise ForeignFile(f"{block} is {median / step_s:,.0f}x faster than the median of its row")


def _check_busy(trial: Trial) -> None:
    """Check that no accelerator is busy for longer than the step takes."""
    if trial.busy_step_s and trial.step_s:
        busy, step = statistics.median(trial.busy_step_s), statistics.median(trial.step_s)
        if busy > BUSY_ROOM * step:
            raise ForeignFile(
                f"{_name(trial)} is busy for {units.format_duration(busy)} of a step of {units.format_duration(step)}"
            )


def _check_run(rows: Sequence[Trial]) -> None:
    """Check that the contenders of a run alternated and had the same training."""
    times = sorted(
        (begin, end) for row in rows for begin, end in zip(row.block_begin_ns, row.block_end_ns, strict=True)
    )
    if any(end > begin for (_, end), (begin, _) in itertools.pairwise(times)):
        raise ForeignFile(f"two blocks of run {rows[0].run_id} overlap, but devices must be timed in turns")
    if len(rows) < 2:
        raise ForeignFile(f"run {rows[0].run_id} has one device; two are needed")
    first, *others = rows
    for other in others:
        if any(getattr(first, name) != getattr(other, name) for name in SAME_IN_A_RUN):
            raise ForeignFile(f"{_name(other)} is a different training from the other rows of its run")
        if not (first.loss and other.loss):
            raise ForeignFile(f"{_name(other)} has no loss to compare")
        allowed = MOST_LOSS_DIFFERENCE if first.loss_step[0] == other.loss_step[0] else OTHER_SEGMENT_DIFFERENCE
        if not abs(first.loss[0] - other.loss[0]) <= allowed * abs(first.loss[0]):
            raise ForeignFile(
                f"{_name(other)} starts with a loss of {other.loss[0]:.4g}, and {first.contender} with "
                f"{first.loss[0]:.4g}; both must train the same model on the same batches"
            )


def _name(trial: Trial) -> str:
    return f"{trial.dataset}, {display_name(trial.contender)} (row {trial.trial_id})"


def _rate(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}"


# Marks

UNCONFIRMED, CONFIRMED = "contributed", "contributed, confirmed"
"""Sources of contributed rows, before and after another machine with the same card agrees."""

AGREEMENT = TIE
"""Maximum ratio between the medians of two machines that agree on a GPU, equal to the limit of a tie."""


def find_confirmed(lines: Iterable[Mapping[Any, Any]]) -> set[str]:
    """Return the ids of the trials that another machine with the same card confirms.

    The interval of a median follows from the interquartile range of its blocks (McGill, Tukey and Larsen 1978).

    Args:
        lines: rows with `trial_id`, `machine_id`, the columns of `CONFIRMED_BY`, and `step_s`, `noise` and `pairs` as
            in `core.answer.gallery.overview`.
    """
    alike: dict[tuple[Any, ...], list[tuple[str, str, float, float]]] = {}
    for line in lines:
        if line["pairs"] >= PAIRS and line["step_s"] > 0 and line["noise"] >= 0:
            half = max(math.sqrt(AGREEMENT), 1 + 1.57 * line["noise"] / math.sqrt(line["pairs"]))
            key = tuple(line[name] for name in CONFIRMED_BY)
            ends = line["step_s"] / half, line["step_s"] * half
            alike.setdefault(key, []).append((line["trial_id"], line["machine_id"], *ends))
    return {
        trial_id
        for group in alike.values()
        for trial_id, machine, low, high in group
        if any(machine != other and low <= above and below <= high for _, other, below, above in group)
    }


CONFIRMED_BY = ("device_name", "contender", "protocol_version", *TRAINING)
"""Columns that must be equal in rows of two machines that confirm each other."""
