"""What was asked, on what it was measured, and how: identity, training, device, machine and protocol."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from core.question.devices import DEVICE_KINDS
from core.question.fields import TRAINING
from core.results.columns.column import BOOL, FLOAT, FLOATS, INT, INTS, STRING, column, with_training

Outcome = Literal["completed", "timed", "budget_spent", "diverged", "out_of_memory", "stopped", "interrupted"]

OUTCOMES: dict[Outcome, str] = {
    "completed": "every epoch was trained",
    "timed": "as many pairs as wanted, or enough to tell who is faster, were timed; what was learned was not tested",
    "budget_spent": "the time budget ended before the last epoch or pair; times are valid",
    "diverged": "the loss became NaN or infinite; times are valid, there is no classification report",
    "out_of_memory": "the model and its batch did not fit; nothing was timed",
    "stopped": "stopped by the user; what was measured by then is kept",
    "interrupted": "ended by itself: the measuring process was killed, or its lane failed; what was measured is kept",
}

if TYPE_CHECKING:
    from core.question.fields import Training as TrainingColumns
else:
    TrainingColumns = object


@dataclass(frozen=True, kw_only=True)
@with_training
class QuestionColumns(TrainingColumns):
    """All of a row but what was read while it was measured."""

    # Identity
    trial_id: str = column(STRING, "name of this row: that of its run, and its place among the run's contenders")
    run_id: str = column(
        STRING, "the run in which contenders were measured together; pairs exist within one run only", unit="12 digits"
    )
    experiment_id: str = column(STRING, "name of the question: training, contenders and protocol")
    started_at: str = column(STRING, "when the run began", unit="ISO 8601, UTC")
    outcome: Outcome = column(STRING, "how it ended: " + "; ".join(f"`{k}`: {v}" for k, v in OUTCOMES.items()))
    message: str = column(STRING, "the reason in one sentence where it did not end as asked", default="")
    origin: str = column(STRING, "name of the file this row was imported from; empty if measured here", default="")

    # A training of one's own, of which the fields of the catalogue's say nothing
    training: str = column(
        STRING,
        "file and function of one's own training; empty for one of the catalogue, whose fields are those below. In "
        "rows of one's own these are `own`, 0 and 1 and mean nothing, and a step counts as an epoch",
        default="",
    )
    source_hash: str = column(
        STRING, "hash of its files, of which names and contents count", unit="SHA-256, 16 digits", default=""
    )
    size: int = column(INT, "what its function was called with", default=0)

    # What follows from the training, whose own fields are put in between
    dataset_hash: str = column(
        STRING,
        "hash of the loaded samples, labels and split; of one's own training that of its source",
        unit="SHA-256, 16 digits",
        after="dataset",
    )
    test_samples: int = column(INT, "test samples", unit="samples", after="samples")
    parameters: int = column(INT, "trainable numbers; 0 where one's own training does not tell", after="width")
    flops_per_step: int = column(INT, "operations of forward and backward over one batch", unit="FLOP")
    steps_per_epoch: int = column(INT, "full batches in the training samples", unit="steps", after="epochs")

    # The device
    contender: str = column(
        STRING, "device, threads and lane as asked for, e.g. `cpu`, `cpu@1`, `cuda:0+graph10`", after=TRAINING[-1]
    )
    device: str = column(STRING, "where the tensors lived")
    device_kind: str = column(STRING, "one of " + ", ".join(f"`{kind}`" for kind in DEVICE_KINDS))
    device_name: str = column(STRING, "the device's own name")
    device_memory_bytes: int = column(INT, "memory of the device; the host's for a CPU", unit="bytes")
    device_driver: str = column(STRING, "driver and runtime of an accelerator", default="")
    device_power_limit_w: float | None = column(
        FLOAT,
        "power beyond which the card lowers its clocks; None, as in all that cards tell: not known",
        unit="W",
        default=None,
    )
    device_clock_limit_mhz: float | None = column(FLOAT, "highest clock of the card", unit="MHz", default=None)
    device_ecc_errors: int | None = column(
        INT, "memory errors of the card that could not be corrected since its driver was loaded", default=None
    )
    threads: int = column(INT, "CPU threads that served the training", unit="threads", default=0)
    threads_tried: tuple[int, ...] = column(INTS, "thread counts tried first", unit="threads", default=())
    threads_tried_step_s: tuple[float, ...] = column(
        FLOATS, "median time of each of threads_tried", unit="s per step", default=()
    )

    # The machine
    machine_id: str = column(
        STRING,
        "hash of processor, usable cores, memory and system; of the machine's name too where alike ones answer apart",
        unit="12 digits",
    )
    cpu_name: str = column(STRING, "processor")
    cores: int = column(INT, "processor threads of the machine", unit="threads")
    cores_usable: int = column(INT, "threads of cores that affinity and quota leave to us", unit="threads")
    memory_bytes: int = column(INT, "memory of the machine", unit="bytes")
    system: str = column(STRING, "operating system and architecture")
    python_version: str = column(STRING, "Python")
    torch_version: str = column(STRING, "torch")
    torchvision_version: str = column(STRING, "torchvision", default="")
    app_version: str = column(STRING, "Crossover")
    app_commit: str = column(STRING, "commit of the code, `+` where files were changed; empty if unknown")
    omp_wait_policy: str = column(STRING, "OMP_WAIT_POLICY of the measuring process, and GOMP_SPINCOUNT if set")

    # The protocol
    protocol_version: int = column(INT, "rows of different versions are never put beside each other")
    precision: str = column(STRING, "arithmetic: `fp32`, which is strict with TF32 off, `tf32`, or `bf16` by autocast")
    execution: str = column(STRING, "`eager`, `compiled` by torch.compile, or `graph`: a replayed CUDA graph")
    steps_per_call: int = column(
        INT, "whole steps of one compiled call or one replay of a graph", unit="steps", default=1
    )
    optimizer: str = column(
        STRING, "how the update was done: `default` as PyTorch chooses, `foreach` or `fused`", default="default"
    )
    memory_format: str = column(STRING, "`contiguous`, or `channels_last` for images", default="contiguous")
    host_memory: str = column(
        STRING,
        "what a step frees of a CPU's memory: `returned` to the system, or `kept` for the next",
        default="returned",
    )
    micro_batch: int = column(
        INT,
        "samples of each piece of a batch whose gradients were added up; 0: whole batches",
        unit="samples",
        default=0,
    )
    drained: bool = column(BOOL, "whether the device was drained before every clock reading")
    budget_s: float = column(FLOAT, "seconds the training was given", unit="s")
    lead_in_steps: int = column(
        INT,
        "untimed steps of the same training before each block, at least; an accelerator that idled has more",
        unit="steps",
        default=0,
    )
