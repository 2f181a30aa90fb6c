"""The table of columns: names, types, units and meanings of all stored values of a trial.

`Trial` is the row, with three groups of columns. The parquet schema, the column dictionary in data/README.md and the
checks on foreign files are all derived from its fields. Only raw values are stored: derived values are computed when
they are read, so that a better statistic never needs a new measurement.
"""

import dataclasses
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa

from ..question.fields import FIELDS, TRAINING
from ..question.lanes import DEVICE_KINDS

# Declaration of columns


STRING, BOOL = pa.string(), pa.bool_()
INT, FLOAT = pa.int64(), pa.float64()
INTS, FLOATS = pa.list_(INT), pa.list_(FLOAT)
BYTES = pa.binary()
OF_TYPE: dict[type, pa.DataType] = {str: STRING, bool: BOOL, int: INT, float: FLOAT}

RowClass = TypeVar("RowClass")


def column(
    kind: pa.DataType, meaning: str, *, unit: str = "", default: Any = dataclasses.MISSING, after: str = ""
) -> Any:
    """Return a dataclass field that is a column of the table.

    The columns of a training up to the one named `after` precede it.
    """
    metadata = {"type": kind, "unit": unit, "meaning": meaning, "after": after}
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


def with_training(row: type[RowClass]) -> type[RowClass]:
    """Return a class of columns that includes the training columns from `core.question.fields`."""
    ordered: dict[str, Any] = {}
    left = list(TRAINING)
    for name, kind in row.__annotations__.items():
        after = getattr(row, name).metadata["after"]
        while after and after not in ordered:
            asked = left.pop(0)
            entry = FIELDS[asked]
            ordered[asked] = type(entry.default)
            default = entry.absent if entry.later else dataclasses.MISSING
            setattr(row, asked, column(OF_TYPE[ordered[asked]], entry.meaning, unit=entry.unit, default=default))
        ordered[name] = kind
    row.__annotations__ = ordered
    return row


# The columns


Outcome = Literal["completed", "timed", "budget_spent", "diverged", "out_of_memory", "stopped", "interrupted"]

OUTCOMES: dict[Outcome, str] = {
    "completed": "every epoch was trained",
    "timed": "as many pairs as wanted, or enough to tell who is faster, were timed; what was learned was not tested",
    "budget_spent": "the time budget ended before the last epoch or pair; times are valid",
    "diverged": "the loss became NaN or infinite; times are valid, there is no classification report",
    "out_of_memory": "the model and its batch did not fit; nothing was timed",
    "stopped": "stopped by the user; earlier blocks are saved",
    "interrupted": "ended early: the measuring process was killed, or its variant failed; earlier blocks are saved",
}

if TYPE_CHECKING:
    from ..question.fields import Training as TrainingColumns
else:
    TrainingColumns = object


@dataclass(frozen=True, kw_only=True)
@with_training
class QuestionColumns(TrainingColumns):
    """All columns of a row except the values read during the measurement."""

    # Identity
    trial_id: str = column(STRING, "name of this row: name of its run, and its place among the run's contenders")
    run_id: str = column(
        STRING, "run in which the contenders were measured; pairs exist only within a run", unit="12 digits"
    )
    experiment_id: str = column(STRING, "name of the question: training, contenders and methodology version")
    started_at: str = column(STRING, "start of the run", unit="ISO 8601, UTC")
    outcome: Outcome = column(STRING, "outcome: " + "; ".join(f"`{k}`: {v}" for k, v in OUTCOMES.items()))
    message: str = column(STRING, "reason in one sentence if it did not end as requested", default="")
    origin: str = column(STRING, "name of the file this row was imported from; empty if measured here", default="")

    # A custom script, which is not described by the fields of the catalogue
    training: str = column(
        STRING,
        "file and function of a custom script; empty for a built-in training, whose fields follow. For a custom "
        "script these are `own`, 0 and 1 without a meaning, and a step counts as an epoch",
        default="",
    )
    source_hash: str = column(
        STRING, "hash of the names and contents of its files", unit="SHA-256, 16 digits", default=""
    )
    size: int = column(INT, "argument of its function", default=0)

    # Facts derived from the training, whose fields are inserted here
    dataset_hash: str = column(
        STRING,
        "hash of the loaded samples, labels and split; for a custom script the hash of its source",
        unit="SHA-256, 16 digits",
        after="dataset",
    )
    test_samples: int = column(INT, "test samples", unit="samples", after="samples")
    parameters: int = column(INT, "trainable parameters; 0 if a custom script does not report them", after="width")
    flops_per_step: int = column(INT, "operations of forward and backward over one batch", unit="FLOP")
    steps_per_epoch: int = column(INT, "full batches in the training samples", unit="steps", after="epochs")

    # The device
    contender: str = column(
        STRING, "requested device, threads and variant, e.g. `cpu`, `cpu@1`, `cuda:0+graph10`", after=TRAINING[-1]
    )
    device: str = column(STRING, "device of the tensors")
    device_kind: str = column(STRING, "one of " + ", ".join(f"`{kind}`" for kind in DEVICE_KINDS))
    device_name: str = column(STRING, "name that the device reports")
    device_memory_bytes: int = column(INT, "memory of the device; the host's for a CPU", unit="bytes")
    device_driver: str = column(STRING, "driver and runtime of an accelerator", default="")
    device_power_limit_w: float | None = column(
        FLOAT,
        "power limit above which the card lowers its clocks; None if unknown, like all values that a card reports",
        unit="W",
        default=None,
    )
    device_clock_limit_mhz: float | None = column(FLOAT, "highest clock of the card", unit="MHz", default=None)
    device_ecc_errors: int | None = column(
        INT, "uncorrected memory errors of the card since its driver was loaded", default=None
    )
    threads: int = column(INT, "CPU threads that served the training", unit="threads", default=0)
    threads_tried: tuple[int, ...] = column(INTS, "thread counts tried first", unit="threads", default=())
    threads_tried_step_s: tuple[float, ...] = column(
        FLOATS, "median time of each of threads_tried", unit="s per step", default=()
    )

    # The machine
    machine_id: str = column(
        STRING,
        "hash of processor, usable cores, memory, system and GPUs; of the machine's name too if equal machines exist",
        unit="12 digits",
    )
    cpu_name: str = column(STRING, "processor")
    cores: int = column(INT, "processor threads of the machine", unit="threads")
    cores_usable: int = column(INT, "processor threads that affinity and quota allow", unit="threads")
    memory_bytes: int = column(INT, "memory of the machine", unit="bytes")
    system: str = column(STRING, "operating system and architecture")
    python_version: str = column(STRING, "Python")
    torch_version: str = column(STRING, "torch")
    torchvision_version: str = column(STRING, "torchvision", default="")
    app_version: str = column(STRING, "Crossover")
    app_commit: str = column(STRING, "commit of the code, with `+` if files were changed; empty if unknown")
    omp_wait_policy: str = column(
        STRING, "OMP_WAIT_POLICY of the measuring process, and GOMP_SPINCOUNT or KMP_BLOCKTIME"
    )

    # The protocol
    protocol_version: int = column(INT, "rows of different versions are never compared")
    precision: str = column(STRING, "arithmetic: `fp32`, strict with TF32 off, `tf32`, or `bf16` or `fp16` by autocast")
    fp32_precision: str = column(
        STRING,
        "precision of fp32 operations: `ieee`, or inputs rounded to `tf32` or `bf16`, for each kind if they "
        "differ; empty if unknown",
        default="",
    )
    execution: str = column(STRING, "`eager`, `compiled` by torch.compile, or `graph`: a replayed CUDA graph")
    steps_per_call: int = column(INT, "whole steps per compiled call or replay of a graph", unit="steps", default=1)
    optimizer: str = column(
        STRING, "implementation of the update: `default` as PyTorch chooses, `foreach` or `fused`", default="default"
    )
    memory_format: str = column(STRING, "`contiguous`, or `channels_last` for images", default="contiguous")
    host_memory: str = column(
        STRING,
        "memory that a step frees on a CPU: `returned` to the system, or `kept` for the next step",
        default="returned",
    )
    cudnn: str = column(
        STRING,
        "algorithm of a convolution: `heuristic`, chosen by its shape, or `benchmark`, the fastest of all",
        default="heuristic",
    )
    micro_batch: int = column(
        INT,
        "samples per micro-batch, whose gradients are accumulated; 0: whole batches",
        unit="samples",
        default=0,
    )
    drained: bool = column(BOOL, "whether the device was synchronized before every clock reading")
    budget_s: float = column(FLOAT, "time budget of the training", unit="s")
    lead_in_steps: int = column(
        INT,
        "minimum untimed steps before each block; more after an accelerator was idle",
        unit="steps",
        default=0,
    )


@dataclass(frozen=True, kw_only=True)
class RawValues:
    """Raw values. Lists named `block_*` have one entry per timed block; empty lists and None mean "not measured"."""

    steps: int = column(INT, "trained steps; at most epochs × steps_per_epoch are part of the result", default=0)
    warmup_steps: tuple[int, ...] = column(INTS, "steps of each warm-up block", unit="steps", default=())
    warmup_s: tuple[float, ...] = column(FLOATS, "time of each warm-up block", unit="s", default=())
    block_pair: tuple[int, ...] = column(INTS, "pair of the block; blocks with equal numbers form a pair", default=())
    block_round: tuple[int, ...] = column(
        INTS,
        "round of the run in which the block was measured; contenders are rebuilt between two rounds, and nothing"
        " is timed; empty in runs without such rounds, as in a sweep, whose sizes alternate",
        default=(),
    )
    block_first_step: tuple[int, ...] = column(
        INTS,
        "steps trained before the timed part of the block; training may continue beyond epochs × steps_per_epoch",
        default=(),
    )
    block_steps: tuple[int, ...] = column(INTS, "steps timed in the block", unit="steps", default=())
    block_begin_ns: tuple[int, ...] = column(INTS, "clock reading before", unit="ns, monotonic", default=())
    block_end_ns: tuple[int, ...] = column(INTS, "clock reading after", unit="ns, monotonic", default=())
    block_load: tuple[float, ...] = column(FLOATS, "load average over one minute after the block", default=())
    block_steal: tuple[float, ...] = column(
        FLOATS, "share of processor time used by other guests of the host since the previous block", default=()
    )
    block_switches: tuple[int, ...] = column(
        INTS,
        "involuntary context switches of the process in the block and its lead-in; empty if not counted",
        default=(),
    )
    block_waiting: tuple[float, ...] = column(
        FLOATS,
        "threads of the process that were ready to run and waited for a processor, on average over the block and its "
        "lead-in; empty if not counted",
        unit="threads",
        default=(),
    )
    block_other_use: tuple[float, ...] = column(
        FLOATS,
        "share of all processors that other programs and guests used in the block and its lead-in, except children of "
        "this process; empty if not counted",
        default=(),
    )
    block_clock_before_mhz: tuple[float, ...] = column(
        FLOATS,
        "clock of the accelerator before the lead-in; empty if unknown, like all values that a card reports",
        unit="MHz",
        default=(),
    )
    block_clock_mhz: tuple[float, ...] = column(
        FLOATS, "clock of the accelerator after the block; empty if unknown", unit="MHz", default=()
    )
    block_power_w: tuple[float, ...] = column(
        FLOATS,
        "mean power of the card in the block and its lead-in, by its energy counter; if it has none, the power after",
        unit="W",
        default=(),
    )
    block_temperature_c: tuple[float, ...] = column(
        FLOATS, "temperature of the card after the block", unit="°C", default=()
    )
    block_throttle: tuple[int, ...] = column(
        INTS,
        "reason for a lowered clock of the card after the block",
        unit="bits of nvmlClocksEventReasons",
        default=(),
    )
    block_throttled_s: tuple[float, ...] = column(
        FLOATS,
        "total time for which power, heat or the board lowered the card's clocks in the block and its lead-in",
        unit="s",
        default=(),
    )
    block_use_before: tuple[float, ...] = column(
        FLOATS,
        "share of the last second or less before the lead-in in which the card worked for any process",
        default=(),
    )
    block_other_processes: tuple[int, ...] = column(
        INTS,
        "other visible processes that computed on the card around the block",
        unit="processes",
        default=(),
    )
    resumed_at_block: tuple[int, ...] = column(
        INTS, "blocks before which another process continued the training from saved weights", default=()
    )
    loss_step: tuple[int, ...] = column(INTS, "last step of each segment of the loss curve", unit="steps", default=())
    loss: tuple[float, ...] = column(FLOATS, "mean training loss of each segment", unit="nats", default=())
    machine_shift: float | None = column(
        FLOAT,
        "shift of all pairs of a round on this machine, from the repeated questions in its store at the start of the "
        "run: standard deviation of a logarithm; None without repeated questions",
        default=None,
    )
    machine_run_shift: float | None = column(
        FLOAT,
        "shift of all rounds of a run on this machine, from the same questions: how much more their runs differed than "
        "their rounds explain, as a standard deviation of a logarithm; None without repeated questions",
        default=None,
    )
    machine_repeats: int = column(
        INT, "number of runs behind machine_shift, except the first one of each question", unit="runs", default=0
    )
    startup_device_s: float | None = column(
        FLOAT, "first use of the device: context, libraries, one small step", unit="s", default=None
    )
    startup_device_readings_s: tuple[float, ...] = column(
        FLOATS,
        "first use in each of some fresh processes, of which startup_device_s is the median; the first may have read "
        "from a cold disk",
        unit="s",
        default=(),
    )
    startup_fresh: bool = column(
        BOOL,
        "whether the first use was timed in a separate process, with this kind of layers only; otherwise in the "
        "measuring process, which may have used another device or other layers before",
        default=False,
    )
    startup_build_s: float | None = column(FLOAT, "building the model on the device", unit="s", default=None)
    startup_transfer_s: float | None = column(FLOAT, "copying resident data to the device", unit="s", default=None)
    startup_compile_s: float | None = column(
        FLOAT,
        "compiling the step with empty caches, or recording its CUDA graph; 0 for an eager variant",
        unit="s",
        default=None,
    )
    startup_compile_served: bool = column(
        BOOL,
        "whether compiled code came from this machine's disk; startup_compile_s is then the time of compiling that "
        "code with empty caches",
        default=False,
    )
    startup_first_step_s: float | None = column(
        FLOAT,
        "first step of this training; first call if a call has several steps",
        unit="s",
        default=None,
    )
    lane_loss: tuple[float, ...] = column(
        FLOATS, "training loss of the first steps of this variant, from the initial weights", unit="nats", default=()
    )
    reference_loss: tuple[float, ...] = column(
        FLOATS,
        "loss of the same steps in the default loop on the same device; both are empty for the default loop itself",
        unit="nats",
        default=(),
    )
    nudged_loss: tuple[float, ...] = column(
        FLOATS,
        "loss of the same steps in the default loop from initial weights perturbed by some roundings: how far training "
        "amplifies rounding; empty for lower precision",
        unit="nats",
        default=(),
    )
    turns_step_s: tuple[float, ...] = column(
        FLOATS, "unchanged steps, alternating with those of the next two columns", unit="s per step", default=()
    )
    float32_step_s: tuple[float, ...] = column(
        FLOATS, "the same steps in float32, if the training is in float64", unit="s per step", default=()
    )
    doubled_step_s: tuple[float, ...] = column(
        FLOATS,
        "fits of gradient boosting with every row twice: time that does not grow is independent of rows",
        unit="s per step",
        default=(),
    )
    epoch_check_s: float | None = column(
        FLOAT, "one whole epoch trained in one piece after the blocks, to check them", unit="s", default=None
    )
    breakdown_loader_s: tuple[float, ...] = column(FLOATS, "making each batch", unit="s per step", default=())
    breakdown_transfer_s: tuple[float, ...] = column(
        FLOATS, "host-to-device transfer of each batch", unit="s per step", default=()
    )
    breakdown_forward_s: tuple[float, ...] = column(FLOATS, "forward pass and loss", unit="s per step", default=())
    breakdown_backward_s: tuple[float, ...] = column(FLOATS, "backward pass", unit="s per step", default=())
    breakdown_optimizer_s: tuple[float, ...] = column(
        FLOATS, "clearing gradients and updating weights", unit="s per step", default=()
    )
    busy_step_s: tuple[float, ...] = column(
        FLOATS,
        "time for which the accelerator is busy with forward, backward and update if it never waits for the host; "
        "empty on a CPU",
        unit="s per step",
        default=(),
    )
    train_accuracy: float | None = column(
        FLOAT, "accuracy on the training samples, at most the first 10,000", default=None
    )
    validation_accuracy: float | None = column(FLOAT, "accuracy on the validation samples", default=None)
    tested_step: int = column(
        INT,
        "steps after which it was tested, if contenders of a run ended after different steps; 0: all steps that count",
        unit="steps",
        default=0,
    )
    confusion: tuple[int, ...] = column(
        INTS, "test items by true class (rows) and predicted class (columns), row by row", unit="items", default=()
    )
    predictions: bytes = column(BYTES, "predicted class of every test item, one byte each, in order", default=b"")


@dataclass(frozen=True, kw_only=True)
class CustomValues:
    """Columns of custom scripts, empty in rows of catalogue trainings."""

    breakdown_step_s: tuple[float, ...] = column(
        FLOATS, "the step of a custom script, whose parts are unknown", unit="s per step", default=()
    )
    own_operations: tuple[int, ...] = column(
        INTS, "operations of PyTorch in each examined step of a custom script", default=()
    )
    own_waits: tuple[int, ...] = column(
        INTS, "times that each watched step waited for a value or a tensor to reach the host", default=()
    )
    own_waits_at: str = column(STRING, "file and line of most waits; empty if unknown", default="")
    own_syncs: tuple[int, ...] = column(INTS, "host waits that CUDA's debug mode counts, in separate steps", default=())
    own_syncs_at: str = column(
        STRING, "file and line of most of the waits that CUDA counts; empty if unknown", default=""
    )
    own_copies: tuple[int, ...] = column(
        INTS, "tensors that each watched step copied from the host to the device", default=()
    )
    own_elsewhere: tuple[int, ...] = column(
        INTS, "operations of each examined step whose result was on another device than requested", default=()
    )
    own_float64: tuple[int, ...] = column(
        INTS, "operations of each watched step whose result was in float64", default=()
    )
    own_kept: tuple[int, ...] = column(INTS, "tensors alive in the process after each watched step", default=())
    own_inside_s: tuple[float, ...] = column(
        FLOATS,
        "time in counted operations, with a synchronization after each; without loader and transfer",
        unit="s per step",
        default=(),
    )
    own_float64_s: tuple[float, ...] = column(
        FLOATS, "part of own_inside_s in operations whose result is in float64", unit="s per step", default=()
    )
    own_between_s: tuple[float, ...] = column(
        FLOATS,
        "intervals of 0.1 ms and more between two operations, in which the host does other work",
        unit="s per step",
        default=(),
    )
    own_floor_s: tuple[float, ...] = column(
        FLOATS,
        "for an almost empty training: a step divided by its operations, time of a counted operation, reading an "
        "available value",
        unit="s",
        default=(),
    )
    own_given_s: tuple[float, ...] = column(
        FLOATS,
        "steps with the DataLoader of the custom script, alternating with those of the next five columns",
        unit="s per step",
        default=(),
    )
    own_workers0_s: tuple[float, ...] = column(
        FLOATS, "steps as in own_given_s, without workers of the loader", unit="s per step", default=()
    )
    own_workers2_s: tuple[float, ...] = column(
        FLOATS, "steps as in own_given_s, with two persistent workers", unit="s per step", default=()
    )
    own_pinned_s: tuple[float, ...] = column(
        FLOATS, "steps as in own_given_s, with batches in pinned memory", unit="s per step", default=()
    )
    own_resident_s: tuple[float, ...] = column(
        FLOATS, "steps as in own_given_s, with batches already on the device", unit="s per step", default=()
    )
    own_larger_s: tuple[float, ...] = column(
        FLOATS,
        "steps as in own_given_s, for the samples of a step, in batches four times as large",
        unit="s per step",
        default=(),
    )
    own_single_s: tuple[float, ...] = column(
        FLOATS,
        "single steps within the blocks without waiting for batches, a random sample if there are many; CPU only",
        unit="s per step",
        default=(),
    )
    own_heavy_at: str = column(
        STRING, "line of steps that take several times as long as the others; empty if unknown", default=""
    )
    own_first_at: str = column(
        STRING, "line where a first step of several seconds spent most of its time; empty if unknown", default=""
    )
    own_printed: int = column(INT, "lines printed up to the last block, on all devices of the run", default=0)
    own_threads_set: bool = column(BOOL, "whether its steps set the number of CPU threads", default=False)
    own_learns: bool | None = column(
        BOOL, "whether its parameters changed during training; None if it does not expose them", default=None
    )
    own_first_loss: float | None = column(FLOAT, "loss after the first step; None if unknown", default=None)
    own_evaluation: float | None = column(
        FLOAT, "result of its `evaluate` after the last block; None without one", default=None
    )


# The row, and the schema of files


__all__ = ["OUTCOMES", "SCHEMA", "SCHEMA_VERSION", "TRIAL_COLUMNS", "VERSION_KEY", "Outcome", "Trial", "dictionary"]

SCHEMA_VERSION = 16
"""Version of the schema, raised when a column is added, removed or changes its meaning.

2: the outcome `timed`, which a reader of version 1 would refuse as an impossible value.
3: execution variants: steps_per_call, optimizer, memory_format, micro_batch, startup_compile_s, lane_loss,
reference_loss.
4: the variant's host_memory.
5: reports of a GPU around a block; whether start-up was measured in a fresh process.
6: custom scripts: training, source_hash, size, breakdown_step_s, all that begins with own; parameters may be 0;
tested_step.
7: breakdown of a custom script's steps: own_inside_s, own_float64_s, own_between_s, own_floor_s, own_syncs;
startup_compile_served; of a training dtype, heads, sequence_length, embedding_rows, rounds, leaves.
8: nudged_loss, turns_step_s, float32_step_s, doubled_step_s.
9: other loaders of a custom script: own_given_s, own_workers0_s, own_workers2_s, own_pinned_s, own_resident_s.
10: larger batches of a custom script: own_larger_s.
11: fp32_precision; block_switches may be empty where there are blocks.
12: single steps of custom scripts: own_single_s, own_heavy_at, own_first_at.
13: startup_device_readings_s; the data path `pinned`.
14: use of the processors by others: block_waiting, block_other_use.
15: the variant's cudnn; rounds of a run: block_round, machine_shift, machine_repeats.
16: shift of whole runs: machine_run_shift; since then machine_shift is that of rounds alone.
"""

VERSION_KEY = b"crossover_schema_version"
"""Key of the version in a parquet file's metadata."""


@dataclass(frozen=True, kw_only=True)
class Trial(CustomValues, RawValues, QuestionColumns):
    """One point on one device: the question, the device, the method of measurement, and all raw values.

    Lists named `block_*` have one entry per timed block in the order of time; `warmup_*` are stored but excluded from
    every summary. Clock readings are from one monotonic host clock, so that intervals of trials on the same machine can
    be compared until it restarts. Empty lists and None mean "not measured".
    """

    @property
    def lane_failed(self) -> bool:
        """Whether the row's variant failed before any block was timed; a killed process never leaves such a row."""
        return self.outcome == "interrupted" and not self.block_steps

    @property
    def block_s(self) -> tuple[float, ...]:
        """Duration of each timed block in seconds."""
        readings = zip(self.block_begin_ns, self.block_end_ns, strict=True)
        return tuple((end - begin) / 1e9 for begin, end in readings)

    @functools.cached_property
    def step_s(self) -> tuple[float, ...]:
        """Seconds per step of each timed block; cached, because rows with many thousand blocks are read repeatedly."""
        return tuple(s / steps for s, steps in zip(self.block_s, self.block_steps, strict=True))


TRIAL_COLUMNS: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(Trial)

SCHEMA = pa.schema(
    [pa.field(entry.name, entry.metadata["type"]) for entry in TRIAL_COLUMNS],
    metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()},
)
"""Schema of every file of the store, for writing and reading."""


def dictionary() -> str:
    """Return the columns as a Markdown table: name, type, unit and meaning."""
    lines = ["| column | type | unit | meaning |", "|---|---|---|---|"]
    for entry in TRIAL_COLUMNS:
        lines.append("| `{}` | {type} | {unit} | {meaning} |".format(entry.name, **entry.metadata))
    return "\n".join(lines) + "\n"
